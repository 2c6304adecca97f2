package run_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

const cancelledByYou = "the run was cancelled by you@desk"

// canceller is an engine in the process of somebody who cancels: no fault strikes it.
func (w *world) canceller() *run.Engine {
	return &run.Engine{Objects: w.objects, Log: w.log, States: w.states, Clock: w.clk}
}

func (w *world) cancel(runID string) {
	w.Helper()
	if err := w.canceller().Cancel(w.Context(), runID, "you@desk"); err != nil {
		w.Fatalf("cancelling run %s: %v", runID, err)
	}
}

// cut checks that a run has ended because it was cancelled.
func (w *world) cut(h runlog.Header) {
	w.Helper()
	if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.Summary != cancelledByYou {
		w.Errorf("run %s ended as %s %+v: %s", h.RunID, h.Result, h.Failure, w.story(h.RunID))
	}
	w.sound(h.RunID)
}

// line is a template of resources that follow one another: A, B, C.
func line() object {
	return resources(object{
		"A": topic(object{}), "B": with(topic(object{}), object{"DependsOn": "A"}), "C": with(topic(object{}), object{"DependsOn": "B"}),
	})
}

func TestARunThatIsCancelledBeforeItOpensTouchesNothing(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(line())
	w.cancel(m.runID)
	h := w.finish(m)
	w.cut(h)
	if len(w.cloud.calls) > 0 || w.record("App") != nil {
		t.Errorf("calls %v, record %+v", w.cloud.calls, w.record("App"))
	}
	if next := h.Diagnostics[0].Next; !strings.Contains(next, "Nothing was changed") {
		t.Errorf("what to do next: %q", next)
	}
}

func TestACancelledDeployFinishesWhatIsInFlightAndCanBeGoneOnWith(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create B", script{takes: time.Minute})
	m := w.submitDeploy(line())
	m.until(m.atItem("B"))
	m.step()
	w.cancel(m.runID)
	w.cut(w.finish(m))
	if got := sortedKeys(w.record("App")); cmp.Diff([]string{"A", "B"}, got) != "" {
		t.Errorf("recorded: %v", got)
	}
	j := w.journal("App")
	if j == nil || len(j.Segments) != 1 || j.Segments[0].Reason != state.ReasonInterrupted || j.Segments[0].FailedOperations != nil || len(j.Segments[0].Operations) != 2 {
		t.Fatalf("journal: %+v", j)
	}
	if n := len(w.events(m.runID, runlog.RollbackStarted)); n > 0 {
		t.Error("a cancelled run has rolled back")
	}
	w.accounted("App")
	if h := w.deploy(line()); h.Result != runlog.ResultSucceeded || h.Counts.Created != 1 || h.Counts.Unchanged != 2 || w.journal("App") != nil {
		t.Errorf("the next deploy: %s %+v, journal %+v", h.Result, h.Counts, w.journal("App"))
	}
	if d := cmp.Diff(map[string]int{"create A": 1, "create B": 1, "create C": 1}, w.cloud.effects()); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

func TestAFailureOfACancelledRunIsNotRolledBack(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create B", script{takes: time.Minute, fails: fails(provider.KindInvalid)})
	m := w.submitDeploy(line())
	m.until(m.atItem("B"))
	m.step()
	w.cancel(m.runID)
	h := w.finish(m)
	w.cut(h)
	if h.Counts.Failed != 1 || h.Counts.Created != 1 || h.Counts.Skipped != 1 || len(w.cloud.steps("delete")) > 0 {
		t.Errorf("%+v, %v", h.Counts, w.cloud.calls)
	}
	w.accounted("App")
}

func TestAnAttemptThatWasDueIsNotBegunByACancelledRun(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{fails: fails(provider.KindThrottled)})
	m := w.submitDeploy(line())
	m.until(m.atItem("A"))
	m.step()
	w.cancel(m.runID)
	w.cut(w.finish(m))
	if n := w.cloud.effects()["create A"]; n != 1 {
		t.Errorf("A was attempted %d times", n)
	}
}

func TestARollbackThatIsCancelledStopsAndKeepsItsJournal(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create C", script{fails: fails(provider.KindInvalid)})
	m := w.submitDeploy(line())
	m.until(m.atItem("B.undo"))
	w.cancel(m.runID)
	w.cut(w.finish(m))
	if got := sortedKeys(w.record("App")); cmp.Diff([]string{"A"}, got) != "" {
		t.Errorf("recorded: %v", got)
	}
	j := w.journal("App")
	if j == nil || len(j.Segments) != 1 || j.Segments[0].Reason != state.ReasonRollingBack || len(j.Segments[0].Operations) != 2 {
		t.Fatalf("journal: %+v", j)
	}
	w.accounted("App")
}

func TestACleanupThatIsCancelledIsLeftToTheNextDeploy(t *testing.T) {
	w := newWorld(t)
	w.deploy(resources(object{"A": topic(object{}), "Gone": topic(object{}), "Too": with(topic(object{}), object{"DependsOn": "Gone"})}))
	next := resources(object{"A": topic(object{"DisplayName": "two"})})
	m := w.submitDeploy(next)
	m.until(m.atItem("Too"))
	w.cancel(m.runID)
	w.cut(w.finish(m))
	if got := sortedKeys(w.record("App")); cmp.Diff([]string{"A", "Gone"}, got) != "" {
		t.Errorf("recorded: %v", got)
	}
	if j := w.journal("App"); j == nil || j.Segments[0].Reason != state.ReasonInterrupted {
		t.Errorf("journal: %+v", j)
	}
	if h := w.deploy(next); h.Result != runlog.ResultSucceeded || h.Counts.Deleted != 1 || h.Counts.Unchanged != 1 {
		t.Errorf("the next deploy: %s %+v", h.Result, h.Counts)
	}
	w.accounted("App")
}

func TestACancelledDestroyKeepsTheRecordOfWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	w.deploy(line())
	m := w.submit(order{stack: "App", command: runlog.CommandDestroy})
	m.until(m.atItem("C"))
	w.cancel(m.runID)
	w.cut(w.finish(m))
	if got := sortedKeys(w.record("App")); cmp.Diff([]string{"A", "B"}, got) != "" || w.journal("App") != nil {
		t.Errorf("recorded: %v, journal %+v", got, w.journal("App"))
	}
	if h := w.destroy(); h.Result != runlog.ResultSucceeded || w.record("App") != nil {
		t.Errorf("the next destroy: %s", h.Result)
	}
}

func TestTheFirstWhoCancelsIsWhoHas(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(line())
	m.until(m.atItem("A"))
	w.cancel(m.runID)
	w.clk.Advance(time.Second)
	if err := w.canceller().Cancel(t.Context(), m.runID, "another@desk"); err != nil {
		t.Fatal(err)
	}
	w.cut(w.finish(m))
}

func TestWhatHasEndedCanNotBeCancelled(t *testing.T) {
	w := newWorld(t)
	if err := w.canceller().Cancel(t.Context(), "nobody", "you@desk"); !errors.Is(err, runlog.ErrNotFound) {
		t.Errorf("an unknown run: %v", err)
	}
	m := w.submitDeploy(line())
	m.until(m.atClose)
	if err := w.canceller().Cancel(t.Context(), m.runID, "you@desk"); !errors.Is(err, run.ErrEnded) || !strings.Contains(err.Error(), "its work is done") {
		t.Errorf("a run that closes: %v", err)
	}
	if h := w.finish(m); h.Result != runlog.ResultSucceeded {
		t.Errorf("%s", h.Result)
	}
	if err := w.canceller().Cancel(t.Context(), m.runID, "you@desk"); !errors.Is(err, run.ErrEnded) || !strings.Contains(err.Error(), "SUCCEEDED") {
		t.Errorf("a closed run: %v", err)
	}
	dead := w.submitDeploy(resources(object{"A": topic(object{}), "New": topic(object{})}))
	dead.until(dead.atItem("New"))
	dead.stop()
	var s run.Settled
	w.faults.killAt("update header SETTLING FAILED", false)
	if err := w.call(w.engine.HandleJanitor, run.SettleInput{Action: run.ActionSettle, RunID: dead.runID}, &s); err == nil {
		t.Fatal("the janitor has not died")
	}
	if err := w.canceller().Cancel(t.Context(), dead.runID, "you@desk"); !errors.Is(err, run.ErrEnded) || !strings.Contains(err.Error(), "settled") {
		t.Errorf("a run that is settled: %v", err)
	}
}

// TestACancellationAtAnyMoment cancels at every store call of every stage: before, in and after waves, while it rolls
// back, cleans up and closes. The run always ends soundly, either cancelled or as if nobody had said anything, and the
// command can be run again.
func TestACancellationAtAnyMoment(t *testing.T) {
	for _, s := range stages() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			calls := len(s.calls(t))
			ends := map[string]int{}
			for k := range calls {
				if testing.Short() && k%sampled != 0 {
					continue
				}
				w, m := s.world(t)
				m.twice = k%2 == 0
				refused := false
				w.faults.onCall = func(n int) {
					if n != k+1 {
						return
					}
					err := w.canceller().Cancel(t.Context(), m.runID, "you@desk")
					if err != nil && !errors.Is(err, run.ErrEnded) {
						t.Error(err)
					}
					refused = err != nil
				}
				h := w.finish(m)
				w.faults.onCall = nil
				switch {
				case h.Failure != nil && h.Failure.Summary == cancelledByYou:
					ends["cancelled"]++
					w.cut(h)
					if refused {
						t.Error("the cancellation was refused, and it has worked")
					}
				case refused:
					ends["refused"]++
				default:
					ends["too late"]++
				}
				s.checkEnd(w, m)
				w.recovers(t, s, m)
				if t.Failed() {
					t.Fatalf("cancelled ahead of call %d of %d: %s", k+1, calls, w.story(m.runID))
				}
			}
			if ends["cancelled"] == 0 || ends["too late"]+ends["refused"] == 0 {
				t.Errorf("how the runs have ended: %v", ends)
			}
		})
	}
}

// checkEnd checks what holds at the end of a stage however it has ended.
func (s stage) checkEnd(w *world, m *machine) {
	w.Helper()
	w.sound(m.runID)
	w.accounted("App")
	if m.failed != nil {
		w.Errorf("the execution has failed: %v", m.failed)
	}
	for step, n := range w.cloud.effects() {
		if n != 1 && strings.HasPrefix(step, "create ") {
			w.Errorf("%s was made %d times", step, n)
		}
	}
}

// TestABrokenCallOfACancelledRun breaks every store call after a cancellation in turn.
func TestABrokenCallOfACancelledRun(t *testing.T) {
	begin := func(t *testing.T) (*world, *machine) {
		w := newWorld(t)
		w.cloud.script("create B", script{takes: time.Minute})
		m := w.submitDeploy(line())
		m.until(m.atItem("B"))
		w.cancel(m.runID)
		*w.faults = faults{}
		return w, m
	}
	w, m := begin(t)
	w.finish(m)
	want, calls := w.end(), w.faults.names
	for _, b := range breakages() {
		t.Run(b.name, func(t *testing.T) {
			for k, name := range calls {
				if b.after && !writes(name) {
					continue
				}
				w, m := begin(t)
				w.faults.breaks, w.faults.after, w.faults.dies = k+1, b.after, b.dies
				w.cut(w.finish(m))
				w.accounted("App")
				if d := cmp.Diff(want, w.end()); d != "" {
					t.Errorf("what is left (-without a fault +with):\n%s", d)
				}
				if t.Failed() {
					t.Fatalf("with call %d broken: %s", k+1, name)
				}
			}
		})
	}
}

func TestADeploymentThatIsCancelledStartsNoMoreStacks(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create B", script{takes: time.Minute})
	a := chain()
	a.stacks[1].template["Resources"].(object)["After"] = with(topic(object{}), object{"DependsOn": "B"})
	m := w.submitApp(a)
	for range 2000 {
		if len(w.cloud.steps("create B")) > 0 {
			break
		}
		for _, name := range sortedNames(w.machines) {
			if !w.machines[name].ended {
				w.machines[name].step()
			}
		}
	}
	w.cancel(m.runID)
	h := w.finish(m)
	w.cut(h)
	children := w.children(m.runID)
	got := map[string]string{}
	for name, c := range children {
		got[name] = string(c.Result)
		if c.Failure != nil {
			got[name] += ": " + c.Failure.Summary
		}
		w.sound(c.RunID)
	}
	want := map[string]string{"One": "SUCCEEDED", "Two": "FAILED: " + cancelledByYou, "Three": "FAILED: the run was not begun"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("stacks (-want +got):\n%s%s", d, w.story(m.runID))
	}
	w.accounted("One", "Two", "Three")
	if n := len(w.events(m.runID, runlog.StackStarted)); n != 2 {
		t.Errorf("%d stacks were started", n)
	}
	w.cloud.scripts = map[string]script{}
	if h := w.finish(w.submitApp(a)); h.Result != runlog.ResultSucceeded || h.Counts.Created != 2 || h.Counts.Unchanged != 2 {
		t.Errorf("the next deploy: %s %+v", h.Result, h.Counts)
	}
}

func TestADeploymentIsCancelledBeforeItOpens(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	w.cancel(m.runID)
	w.cut(w.finish(m))
	if len(w.children(m.runID)) > 0 || len(w.published) > 0 {
		t.Errorf("children %v, published %v", slices.Sorted(maps.Keys(w.children(m.runID))), w.published)
	}
}

// TestACancelledDeploymentAtAnyMoment cancels a deployment of three stacks at every tenth store call.
func TestACancelledDeploymentAtAnyMoment(t *testing.T) {
	count := newWorld(t)
	count.finish(count.submitApp(chain()))
	for k := 1; k < len(count.faults.names); k += 10 {
		w := newWorld(t)
		m := w.submitApp(chain())
		w.faults.onCall = func(n int) {
			if n == k {
				if err := w.canceller().Cancel(t.Context(), m.runID, "you@desk"); err != nil && !errors.Is(err, run.ErrEnded) {
					t.Error(err)
				}
			}
		}
		h := w.finish(m)
		w.faults.onCall = nil
		w.sound(m.runID)
		all := h.Result == runlog.ResultSucceeded
		for name, c := range w.children(m.runID) {
			w.sound(c.RunID)
			if all && c.Result != runlog.ResultSucceeded {
				t.Errorf("the deployment SUCCEEDED, and stack %s is %s", name, c.Result)
			}
		}
		if !all {
			w.cut(h)
		}
		w.accounted("One", "Two", "Three")
		if h := w.finish(w.submitApp(chain())); h.Result != runlog.ResultSucceeded {
			t.Errorf("the next deploy: %s", h.Result)
		}
		if t.Failed() {
			t.Fatalf("cancelled ahead of call %d: %s", k, w.story(m.runID))
		}
	}
}
