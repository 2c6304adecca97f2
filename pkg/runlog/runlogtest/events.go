package runlogtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func event(runID, id string) runlog.Event {
	return runlog.Event{Version: runlog.EventVersion, ID: id, RunID: runID, Type: runlog.OpStarted, Time: at(0)}
}

func add(t *testing.T, s runlog.Store, events ...runlog.Event) {
	t.Helper()
	if err := s.Append(ctx(), events...); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

func wantEvents(t *testing.T, s runlog.Store, runID, after string, want ...string) []runlog.Event {
	t.Helper()
	events, err := s.Events(ctx(), runID, after)
	if err != nil {
		t.Fatalf("Events(%s, %q): %v", runID, after, err)
	}
	got := make([]string, 0, len(events))
	for _, e := range events {
		got = append(got, e.ID)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("Events(%s, %q) = %q, want %q", runID, after, got, want)
	}
	return events
}

func eventRoundTrip(t *testing.T, s runlog.Store) {
	want := runlog.Event{
		Version: runlog.EventVersion, ID: runlog.EventID(3, "Queue", runlog.OpFail, 2), Type: runlog.OpFail, Time: at(5),
		RunID: "r1", Root: "r0", Stack: "App", Region: "eu-west-1", Command: runlog.CommandDeploy, LogicalID: "Queue",
		ResourceType: "AWS::SQS::Queue", Action: "create", Wave: 3, Attempt: 2, PhysicalID: "p<&>é", DurationMs: 1500,
		Total: 9, ChildRun: "r2", Message: "m", Error: &runlog.OpError{Kind: provider.KindInvalid, Code: "C", Message: "m"},
		Result: runlog.ResultFailed, Counts: &runlog.Counts{Created: 1}, Failure: &runlog.Failure{Summary: "s"},
	}
	add(t, s, want)
	got := wantEvents(t, s, "r1", "", want.ID)
	equal(t, "event", got[0], want)
}

func eventOrder(t *testing.T, s runlog.Store) {
	ids := []string{
		runlog.EventID(2, "B", runlog.OpStarted, 1), runlog.EventID(runlog.FinalWave, "run", runlog.RunFinished, 1),
		runlog.EventID(10, "A", runlog.OpDone, 1), runlog.EventID(0, "run", runlog.RunStarted, 1),
		runlog.EventID(2, "A", runlog.OpStarted, 10), runlog.EventID(2, "A", runlog.OpStarted, 2),
		runlog.EventID(2, "é", runlog.OpStarted, 1), runlog.EventID(2, "a", runlog.OpStarted, 1),
	}
	for _, id := range ids {
		add(t, s, event("r1", id))
	}
	slices.Sort(ids)
	wantEvents(t, s, "r1", "", ids...)
}

func eventsAfter(t *testing.T, s runlog.Store) {
	add(t, s, event("r1", "1"), event("r1", "2"), event("r1", "3"), event("r2", "4"))
	wantEvents(t, s, "r1", "", "1", "2", "3")
	wantEvents(t, s, "r1", "1", "2", "3")
	wantEvents(t, s, "r1", "11", "2", "3")
	wantEvents(t, s, "r1", "3")
	wantEvents(t, s, "r1", "0", "1", "2", "3")
	wantEvents(t, s, "r", "")
}

func duplicateEvents(t *testing.T, s runlog.Store) {
	first := event("r1", "1")
	first.Message = "first"
	again := first
	again.Message, again.Time = "again", at(60)
	add(t, s, first)
	add(t, s, again)
	twice := event("r1", "2")
	twice.Message = "kept"
	double := twice
	double.Message = "dropped"
	add(t, s, again, twice, double, event("r1", "3"))
	got := wantEvents(t, s, "r1", "", "1", "2", "3")
	equal(t, "event", got[0], first)
	equal(t, "event", got[1], twice)
	// The same id in another run is another event.
	add(t, s, event("r2", "1"))
	wantEvents(t, s, "r2", "", "1")
}

func raceEvents(t *testing.T, s runlog.Store) {
	for i, err := range race(20, func(i int) error {
		return s.Append(ctx(), event("r1", "same"), event("r1", fmt.Sprintf("own%02d", i)))
	}) {
		if err != nil {
			t.Fatalf("racer %d: %v", i, err)
		}
	}
	want := []string{}
	for i := range 20 {
		want = append(want, fmt.Sprintf("own%02d", i))
	}
	wantEvents(t, s, "r1", "", append(want, "same")...)
}

func eventsOfRuns(t *testing.T, s runlog.Store) {
	add(t, s, event("r1", "1"), event("r2", "1"), event("r1", "2"))
	wantEvents(t, s, "r1", "", "1", "2")
	wantEvents(t, s, "r2", "", "1")
}

func appendNothing(t *testing.T, s runlog.Store) {
	add(t, s)
	wantEvents(t, s, "r1", "")
}

func manyEvents(t *testing.T, s runlog.Store) {
	var events []runlog.Event
	var want []string
	for i := range 230 {
		id := fmt.Sprintf("%04d", i)
		events, want = append(events, event("r1", id)), append(want, id)
	}
	add(t, s, events...)
	add(t, s, events[:50]...)
	wantEvents(t, s, "r1", "", want...)
}
