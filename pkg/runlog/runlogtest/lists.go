package runlogtest

import (
	"slices"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func wantRuns(t *testing.T, s runlog.Store, f runlog.Filter, want ...string) {
	t.Helper()
	runs, err := s.ListRuns(ctx(), f)
	if err != nil {
		t.Fatalf("ListRuns(%+v): %v", f, err)
	}
	got := make([]string, 0, len(runs))
	for _, h := range runs {
		got = append(got, h.RunID)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("ListRuns(%+v) = %v, want %v", f, got, want)
	}
}

func listOrder(t *testing.T, s runlog.Store) {
	for _, r := range []struct {
		id      string
		created int
	}{{"b", 2}, {"a", 3}, {"d", 1}, {"c", 4}} {
		h := header(r.id)
		h.CreatedAt = at(r.created)
		create(t, s, h)
	}
	wantRuns(t, s, runlog.Filter{}, "c", "a", "b", "d")
	wantRuns(t, s, runlog.Filter{Limit: 2}, "c", "a")
	wantRuns(t, s, runlog.Filter{Limit: 10}, "c", "a", "b", "d")
	// An update does not make a run newer, and the list shows it as it stands.
	h, err := s.Header(ctx(), "d")
	if err != nil {
		t.Fatal(err)
	}
	h.Status, h.Result = runlog.StatusClosed, runlog.ResultFailed
	h = update(t, s, h)
	wantRuns(t, s, runlog.Filter{}, "c", "a", "b", "d")
	runs, err := s.ListRuns(ctx(), runlog.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "listed header", runs[3], h)
}

func listOpen(t *testing.T, s runlog.Store) {
	statuses := []runlog.Status{runlog.StatusNew, runlog.StatusOpen, runlog.StatusSettling, runlog.StatusClosed}
	for i, status := range statuses {
		h := header(string(status))
		h.CreatedAt, h.Status = at(i), status
		create(t, s, h)
	}
	wantRuns(t, s, runlog.Filter{Open: true}, "SETTLING", "OPEN", "NEW")
	wantRuns(t, s, runlog.Filter{Open: true, Limit: 2}, "SETTLING", "OPEN")
	wantRuns(t, s, runlog.Filter{Open: true, Stack: stack("None")})
	for _, id := range []string{"NEW", "SETTLING"} {
		h, err := s.Header(ctx(), id)
		if err != nil {
			t.Fatal(err)
		}
		h.Status, h.Result = runlog.StatusClosed, runlog.ResultFailed
		update(t, s, h)
	}
	wantRuns(t, s, runlog.Filter{Open: true}, "OPEN")
	wantRuns(t, s, runlog.Filter{}, "CLOSED", "SETTLING", "OPEN", "NEW")
}

func listFilter(t *testing.T, s runlog.Store) {
	add := func(id string, created int, root string, ref runlog.StackRef) {
		h := header(id)
		h.CreatedAt, h.Root, h.Stack = at(created), root, ref
		create(t, s, h)
	}
	west := stack("A")
	west.Region = "us-west-2"
	foreign := stack("A")
	foreign.Account = "222222222222"
	add("d1", 1, "d1", runlog.StackRef{})
	add("a1", 2, "d1", stack("A"))
	add("b1", 3, "d1", stack("B"))
	add("d2", 4, "d2", runlog.StackRef{})
	add("a2", 5, "d2", stack("A"))
	add("w2", 6, "d2", west)
	add("f2", 7, "d2", foreign)
	wantRuns(t, s, runlog.Filter{Root: "d1"}, "b1", "a1", "d1")
	wantRuns(t, s, runlog.Filter{Root: "d2", Limit: 3}, "f2", "w2", "a2")
	wantRuns(t, s, runlog.Filter{Stack: runlog.StackRef{Name: "A"}}, "f2", "w2", "a2", "a1")
	wantRuns(t, s, runlog.Filter{Stack: stack("A")}, "a2", "a1")
	wantRuns(t, s, runlog.Filter{Stack: stack("A"), Limit: 1}, "a2")
	wantRuns(t, s, runlog.Filter{Stack: stack("A"), Root: "d1"}, "a1")
	wantRuns(t, s, runlog.Filter{Stack: west}, "w2")
	wantRuns(t, s, runlog.Filter{Stack: runlog.StackRef{Region: "us-west-2"}}, "w2")
	wantRuns(t, s, runlog.Filter{Stack: runlog.StackRef{Account: "222222222222"}}, "f2")
	wantRuns(t, s, runlog.Filter{Stack: stack("None")})
	wantRuns(t, s, runlog.Filter{Root: "none"})
}
