// Package runlogtest is the conformance suite of runlog.Store: every implementation runs it.
package runlogtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Run checks everything that the contract of runlog.Store promises. open returns an empty store; it is called
// once per case.
func Run(t *testing.T, open func(t *testing.T) runlog.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, runlog.Store)
	}{
		{"what is not there is not found", absent},
		{"a header comes back with every member", headerRoundTrip},
		{"a run is created once", createOnce},
		{"of many concurrent creations one wins", raceCreate},
		{"a header is updated only from the version that was read", updateVersions},
		{"of many concurrent updates of one version one wins", raceUpdate},
		{"the head of a stack is the run that was set last", heads},
		{"runs are listed newest first", listOrder},
		{"open runs are listed without the closed ones", listOpen},
		{"a filter narrows by every member that is set", listFilter},
		{"an operation comes back with every member", opRoundTrip},
		{"an operation is written only from the version that was read", opVersions},
		{"an operation is refused unless the run has the expected status", opStatusFence},
		{"an operation is refused under another epoch", opEpochFence},
		{"a fence is reported before a version conflict", fenceBeforeConflict},
		{"a refused operation changes nothing", refusedOp},
		{"an operation of an unknown run is not found", opWithoutRun},
		{"of many concurrent intents one wins", raceOp},
		{"no operation slips in after the fence", raceFence},
		{"operations are listed by id and by run", opsOrder},
		{"events come back with every member", eventRoundTrip},
		{"events are ordered by id whatever the order of arrival", eventOrder},
		{"events after an id are those greater than it", eventsAfter},
		{"an event whose id is known is dropped", duplicateEvents},
		{"concurrent repetitions of an event leave one", raceEvents},
		{"events of several runs can be stored at once", eventsOfRuns},
		{"appending nothing is nothing", appendNothing},
		{"many events are stored in one call", manyEvents},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func ctx() context.Context { return context.Background() }

// at is a moment that any encoding of time keeps.
func at(seconds int) time.Time {
	return time.Date(2026, 5, 4, 3, 2, 1, 123_000_000, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func stack(name string) runlog.StackRef {
	return runlog.StackRef{Account: "111111111111", Region: "eu-west-1", Name: name}
}

func header(runID string) runlog.Header {
	return runlog.Header{
		RunID: runID, Root: runID, Kind: runlog.KindStack, Command: runlog.CommandDeploy, Stack: stack("App"),
		Owner: "me@host:slipway:" + runID, Status: runlog.StatusOpen, Epoch: 1, CreatedAt: at(0),
	}
}

func create(t *testing.T, s runlog.Store, h runlog.Header) runlog.Header {
	t.Helper()
	made, err := s.CreateRun(ctx(), h)
	if err != nil {
		t.Fatalf("CreateRun(%s): %v", h.RunID, err)
	}
	return made
}

func update(t *testing.T, s runlog.Store, h runlog.Header) runlog.Header {
	t.Helper()
	updated, err := s.UpdateHeader(ctx(), h)
	if err != nil {
		t.Fatalf("UpdateHeader(%s): %v", h.RunID, err)
	}
	return updated
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

// wantErr demands exactly one of the contract's errors.
func wantErr(t *testing.T, err, want error) {
	t.Helper()
	for _, e := range []error{runlog.ErrNotFound, runlog.ErrExists, runlog.ErrConflict, runlog.ErrFenced} {
		if errors.Is(err, e) != errors.Is(want, e) {
			t.Fatalf("error is %v, want %v", err, want)
		}
	}
}

// race starts n calls of f at once and returns what each of them returned.
func race(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-start
			errs[i] = f(i)
		}()
	}
	close(start)
	wg.Wait()
	return errs
}

// winner returns the only index without an error; every other error must be lost.
func winner(t *testing.T, errs []error, lost error) int {
	t.Helper()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			t.Fatalf("both %d and %d have won", won, i)
		case err == nil:
			won = i
		case !errors.Is(err, lost):
			t.Fatalf("loser %d: %v, want %v", i, err, lost)
		}
	}
	if won < 0 {
		t.Fatal("nobody has won")
	}
	return won
}

func absent(t *testing.T, s runlog.Store) {
	_, err := s.Header(ctx(), "none")
	wantErr(t, err, runlog.ErrNotFound)
	h := header("none")
	h.Version = 1
	_, err = s.UpdateHeader(ctx(), h)
	wantErr(t, err, runlog.ErrNotFound)
	_, err = s.Op(ctx(), "none", "op")
	wantErr(t, err, runlog.ErrNotFound)
	if ops, err := s.Ops(ctx(), "none"); err != nil || len(ops) != 0 {
		t.Fatalf("Ops = %v, %v", ops, err)
	}
	if events, err := s.Events(ctx(), "none", ""); err != nil || len(events) != 0 {
		t.Fatalf("Events = %v, %v", events, err)
	}
	if runs, err := s.ListRuns(ctx(), runlog.Filter{}); err != nil || len(runs) != 0 {
		t.Fatalf("ListRuns = %v, %v", runs, err)
	}
	if head, err := s.Head(ctx(), stack("None")); err != nil || head != "" {
		t.Fatalf("Head = %q, %v", head, err)
	}
	create(t, s, header("r"))
	_, err = s.Op(ctx(), "r", "op")
	wantErr(t, err, runlog.ErrNotFound)
}

func headerRoundTrip(t *testing.T, s runlog.Store) {
	h := runlog.Header{
		RunID: "r1", Kind: runlog.KindDeployment, Command: runlog.CommandDestroy, Stack: stack("App~Kid"), Root: "r0",
		Parent: "r0", Owner: "é@host:slipway:r1", Status: runlog.StatusNew, Result: runlog.ResultPartial, Epoch: 3,
		Decision: 7, Waves: 5, Execution: "App-deploy-r1", StateETag: `"abc"`, SidecarETag: `"def"`, Phase: "cleanup",
		CreatedAt: at(0), StartedAt: at(1), FinishedAt: at(2),
		Counts:  runlog.Counts{Created: 1, Updated: 2, Replaced: 3, Deleted: 4, Unchanged: 5, Failed: 6, Skipped: 7},
		Failure: &runlog.Failure{Summary: "s <&>", Detail: "d", LogicalID: "L"},
		Diagnostics: diag.Diagnostics{{
			Severity: diag.Warning, Summary: "w", Detail: "d", Stack: "App", LogicalID: "L", Path: "Properties.X", Next: "n",
		}},
	}
	made := create(t, s, h)
	got, err := s.Header(ctx(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "header", got, made)
	got.Version = 0
	equal(t, "header without version", got, h)
	got.Version = made.Version
	got.Status, got.Failure, got.Diagnostics = runlog.StatusOpen, nil, nil
	updated := update(t, s, got)
	again, err := s.Header(ctx(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "updated header", again, updated)
}

func createOnce(t *testing.T, s runlog.Store) {
	h := header("r1")
	made := create(t, s, h)
	if made.Version == 0 {
		t.Fatal("a created header has version 0")
	}
	other := h
	other.Command, other.Version = runlog.CommandDestroy, made.Version
	_, err := s.CreateRun(ctx(), other)
	wantErr(t, err, runlog.ErrExists)
	got, err := s.Header(ctx(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "header after a refused creation", got, made)
}

func raceCreate(t *testing.T, s runlog.Store) {
	errs := race(20, func(i int) error {
		h := header("r1")
		h.Execution = fmt.Sprint("racer ", i)
		_, err := s.CreateRun(ctx(), h)
		return err
	})
	won := winner(t, errs, runlog.ErrExists)
	if got, err := s.Header(ctx(), "r1"); err != nil || got.Execution != fmt.Sprint("racer ", won) {
		t.Fatalf("racer %d has won, the header is of %q, %v", won, got.Execution, err)
	}
}

func updateVersions(t *testing.T, s runlog.Store) {
	first := create(t, s, header("r1"))
	change := first
	change.Decision = 1
	second := update(t, s, change)
	if second.Version == first.Version || second.Decision != 1 {
		t.Fatalf("updated to %+v from version %d", second, first.Version)
	}
	stale := first
	stale.Decision = 99
	_, err := s.UpdateHeader(ctx(), stale)
	wantErr(t, err, runlog.ErrConflict)
	stale.Version = 0
	_, err = s.UpdateHeader(ctx(), stale)
	wantErr(t, err, runlog.ErrConflict)
	got, err := s.Header(ctx(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "header after a refused update", got, second)
	second.Decision = 2
	if third := update(t, s, second); third.Version == second.Version {
		t.Fatal("the version stayed")
	}
}

func raceUpdate(t *testing.T, s runlog.Store) {
	h := create(t, s, header("r1"))
	errs := race(30, func(i int) error {
		mine := h
		mine.Decision = i + 1
		_, err := s.UpdateHeader(ctx(), mine)
		return err
	})
	won := winner(t, errs, runlog.ErrConflict)
	if got, err := s.Header(ctx(), "r1"); err != nil || got.Decision != won+1 {
		t.Fatalf("racer %d has won, the header says %d, %v", won, got.Decision-1, err)
	}
}

func heads(t *testing.T, s runlog.Store) {
	set := func(ref runlog.StackRef, runID string) {
		if err := s.SetHead(ctx(), ref, runID); err != nil {
			t.Fatal(err)
		}
	}
	set(stack("A"), "r1")
	set(stack("A"), "r2")
	set(stack("B"), "r3")
	west := stack("A")
	west.Region = "us-west-2"
	set(west, "r4")
	other := stack("A")
	other.Account = "222222222222"
	set(other, "r5")
	for _, c := range []struct {
		ref  runlog.StackRef
		want string
	}{{stack("A"), "r2"}, {stack("B"), "r3"}, {west, "r4"}, {other, "r5"}, {stack("C"), ""}} {
		if got, err := s.Head(ctx(), c.ref); err != nil || got != c.want {
			t.Errorf("Head(%+v) = %q, %v, want %q", c.ref, got, err, c.want)
		}
	}
}

// same compares JSON that a store may have formatted anew.
func same(t *testing.T, what string, got, want json.RawMessage) {
	t.Helper()
	if len(want) == 0 || len(got) == 0 {
		if len(want) != len(got) {
			t.Fatalf("%s is %s, want %s", what, got, want)
		}
		return
	}
	var g, w any
	if err := errors.Join(json.Unmarshal(got, &g), json.Unmarshal(want, &w)); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	equal(t, what, g, w)
}

func fullOp() runlog.Op {
	return runlog.Op{
		OpID: "Queue.old", Kind: "resource", Action: "delete", LogicalID: "Queue", Type: "AWS::SQS::Queue", Attempt: 2,
		Token: "token-1", Epoch: 1, Wave: 4, Status: runlog.OpRunning,
		Lease:  runlog.Lease{Holder: "h", Until: at(30)},
		Before: json.RawMessage(`{"physicalId":"p","n":1.50,"s":"<&>"}`), After: json.RawMessage(`{"a":[1,null]}`),
		PhysicalID: "https://sqs/é", Handle: &provider.Handle{Version: 1, Provider: "cc", Data: json.RawMessage(`{"t":"x"}`)},
		NotBefore: at(10), Error: &runlog.OpError{Kind: provider.KindThrottled, Code: "C", Message: "m", RequestID: "q"},
		Reason: "why", ChildRun: "r9", StartedAt: at(1), FinishedAt: at(2), Folded: true,
	}
}
