package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/state"
)

// undoOf renders a plan with what only has to have ended in brackets.
func undoOf(p Plan) string {
	var lines []string
	for _, op := range p.Operations {
		line := string(op.Action) + " " + op.ID
		if len(op.DependsOn) > 0 {
			line += " <" + strings.Join(op.DependsOn, ",")
		}
		if len(op.After) > 0 {
			line += " [" + strings.Join(op.After, ",") + "]"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func topicRecord(id, name string, depends ...string) *state.Resource {
	return &state.Resource{PhysicalID: id, ResourceType: "AWS::SNS::Topic", Properties: map[string]any{"DisplayName": name}, Dependencies: depends}
}

func journal(segments ...[]state.CompletedOperation) *state.Journal {
	j := &state.Journal{}
	for i, ops := range segments {
		j.Segments = append(j.Segments, state.Segment{RunID: fmt.Sprint("run", i), Operations: ops, InitialDeploy: i == 0})
	}
	return j
}

func created(id, physical string) state.CompletedOperation {
	return state.CompletedOperation{LogicalID: id, ChangeType: state.ChangeCreate, ResourceType: "AWS::SNS::Topic", PhysicalID: physical}
}

func updated(id string, was *state.Resource, physical string) state.CompletedOperation {
	return state.CompletedOperation{LogicalID: id, ChangeType: state.ChangeUpdate, ResourceType: "AWS::SNS::Topic", PhysicalID: physical, PreviousState: was}
}

func recordWith(resources map[string]*state.Resource) *state.Record {
	return &state.Record{Resources: resources}
}

func never(*state.Resource) bool  { return false }
func always(*state.Resource) bool { return true }

func TestAReplayIsOrderedByWhatTheRecordSaysDependsOnWhat(t *testing.T) {
	rec := recordWith(map[string]*state.Resource{
		"A": topicRecord("a2", "two"), "B": topicRecord("b", "two", "A"), "C": topicRecord("c", "x", "B"), "D": topicRecord("d", "x", "A"),
	})
	j := journal([]state.CompletedOperation{
		updated("A", topicRecord("a1", "one"), "a2"), updated("B", topicRecord("b", "one", "A"), "b"), created("C", "c"), created("D", "d"),
	})
	for _, c := range []struct {
		name  string
		lives func(*state.Resource) bool
		want  string
	}{
		{"the old half lives", always, "delete D.undo\ndelete C.undo\nupdate B.undo [C.undo]\ndelete A.undo <B.undo,D.undo"},
		{"the old half is gone", never, "delete D.undo [A.undo]\ndelete C.undo\nupdate B.undo <A.undo [C.undo]\nreplace A.undo\ndelete A.undo.old <B.undo,D.undo,A.undo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := BuildReplay(ReplayInput{Journal: j, Record: rec, Lives: c.lives})
			if got := undoOf(r.Plan); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
			if err := r.Plan.Validate(); err != nil {
				t.Error(err)
			}
			if !r.Initial || len(r.Segments) != 1 || len(r.Entries) != 4 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestAnOlderSegmentIsUndoneAfterANewerOne(t *testing.T) {
	rec := recordWith(map[string]*state.Resource{"A": topicRecord("a", "three"), "B": topicRecord("b", "x", "A")})
	r := BuildReplay(ReplayInput{Record: rec, Lives: never, Journal: journal(
		[]state.CompletedOperation{created("A", "a")},
		[]state.CompletedOperation{updated("A", topicRecord("a", "one"), "a"), created("B", "b")},
		[]state.CompletedOperation{updated("A", topicRecord("a", "two"), "a")},
	)})
	want := "update A.undo\ndelete B.undo\nupdate A.2.undo <A.undo [B.undo]\ndelete A.3.undo <A.2.undo,B.undo"
	if got := undoOf(r.Plan); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestAFailedUndoBlocksOnlyDeletionsOfWhatIsStillUsed: U is updated, A and B are created, and B uses both.
func TestAFailedUndoBlocksOnlyDeletionsOfWhatIsStillUsed(t *testing.T) {
	rec := recordWith(map[string]*state.Resource{"U": topicRecord("u", "two"), "A": topicRecord("a", "x"), "B": topicRecord("b", "x", "A", "U")})
	r := BuildReplay(ReplayInput{Record: rec, Lives: never, Journal: journal([]state.CompletedOperation{
		updated("U", topicRecord("u", "one"), "u"), created("A", "a"), created("B", "b"),
	})})
	w := Next(r.Plan, states("B.undo=f"), Options{Now: start, KeepGoing: true})
	if !slices.Equal(w.Start, []string{"U.undo"}) || !slices.Equal(w.Skip, []string{"A.undo"}) {
		t.Errorf("starts %v, skips %v", w.Start, w.Skip)
	}

	// What has failed in the first place stands in nobody's way.
	undo := BuildRollback(ops("A B<A"), map[string]Outcome{"A": {Succeeded: true}})
	if got := undoOf(undo); got != "delete A.undo" {
		t.Error(got)
	}
	p := ops("A B<A")
	p.Operations[1].Action = ActionUpdate
	undo = BuildRollback(p, map[string]Outcome{"A": {Succeeded: true}, "B": {Touched: true}})
	if w := Next(undo, states("B.undo=f"), Options{Now: start, KeepGoing: true}); !slices.Equal(w.Start, []string{"A.undo"}) {
		t.Errorf("%s\nstarts %v, skips %v", undoOf(undo), w.Start, w.Skip)
	}
}

func TestAnOperationThatOnlyComesAfterAnotherRunsWhateverBecomesOfIt(t *testing.T) {
	p := ops("a b c<b d")
	p.Operations[3].After = []string{"a", "c"}
	for given, want := range map[string]string{
		"":             "",
		"a=s b=r":      "",
		"a=f b=f":      "d", // c will never run
		"a=k b=s c=s":  "d",
		"a=s b=s c=r":  "",
		"a=f b=s c=f":  "d",
		"a=s b=s c=k":  "d",
		"a=r+9 b=f":    "",
		"a=s b=f c=k ": "d",
	} {
		w := Next(p, states(given), Options{Now: start, KeepGoing: true})
		if got := slices.Contains(w.Start, "d"); got != (want == "d") {
			t.Errorf("%s: starts %v", given, w.Start)
		}
	}
}

func TestRedactedValuesAreFound(t *testing.T) {
	for want, properties := range map[string]map[string]any{
		"":        {"A": "x", "B": []any{"y"}},
		"A":       {"A": "***"},
		"B.1.C":   {"A": "x", "B": []any{"y", map[string]any{"C": "pw=***;"}}},
		"A.First": {"A": map[string]any{"Second": "***", "First": "***"}},
	} {
		if got := MaskedPath(properties); got != want {
			t.Errorf("%v: %s, want %s", properties, got, want)
		}
	}
}

// TestEveryReplayCanBeCarriedOut plays random journals over random records: the plan is one, comes to its end, and
// undoes every entry at most once.
func TestEveryReplayCanBeCarriedOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "resources")
		rec := recordWith(map[string]*state.Resource{})
		for i := range n {
			var deps []string
			for j := range n { // cycles too: records of different ages contradict each other
				if j != i && rapid.IntRange(0, 4).Draw(t, "depends") == 0 {
					deps = append(deps, fmt.Sprint("R", j))
				}
			}
			rec.Resources[fmt.Sprint("R", i)] = topicRecord(fmt.Sprintf("p%d", i), "now", deps...)
		}
		var segments [][]state.CompletedOperation
		for range rapid.IntRange(1, 3).Draw(t, "segments") {
			var ops []state.CompletedOperation
			for i := range n {
				id, physical := fmt.Sprint("R", i), fmt.Sprintf("p%d", i)
				switch rapid.IntRange(0, 4).Draw(t, "kind") {
				case 0:
					ops = append(ops, created(id, physical))
				case 1:
					ops = append(ops, updated(id, topicRecord(physical, "was"), physical))
				case 2:
					ops = append(ops, updated(id, topicRecord("old"+physical, "was"), physical))
				case 3:
					ops = append(ops, state.CompletedOperation{LogicalID: id, ChangeType: state.ChangeDelete, ResourceType: "AWS::SNS::Topic"})
				}
			}
			segments = append(segments, ops)
		}
		lives := rapid.Bool().Draw(t, "lives")
		r := BuildReplay(ReplayInput{Journal: journal(segments...), Record: rec, Lives: func(*state.Resource) bool { return lives }})
		if err := r.Plan.Validate(); err != nil {
			t.Fatalf("%v\n%s", err, undoOf(r.Plan))
		}
		done := map[string]OpState{}
		for range len(r.Plan.Operations) + 1 {
			w := Next(r.Plan, done, Options{Now: start, KeepGoing: true})
			if w.Done {
				break
			}
			for _, id := range w.Start {
				done[id] = OpState{Status: StatusSucceeded}
			}
		}
		if len(done) != len(r.Plan.Operations) {
			t.Fatalf("%d of %d operations are carried out:\n%s", len(done), len(r.Plan.Operations), undoOf(r.Plan))
		}
		seen := map[string]bool{}
		for _, e := range r.Entries {
			for _, id := range e.Operations {
				if seen[id] {
					t.Fatalf("%s undoes two entries", id)
				}
				seen[id] = true
			}
		}
	})
}
