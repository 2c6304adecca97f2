package run_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func TestARunOpensAtTheFirstCall(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(before())
	m.step()
	if d := cmp.Diff([]run.StepKind{run.StepNext}, kinds(m)); d != "" || m.tries != 0 || w.header(m.runID).Status != runlog.StatusOpen {
		t.Errorf("after %d tries, steps (-want +got):\n%s", m.tries, d)
	}
}

// TestOfTwoOpensOneIsEnough: while one writes its header, another one opens the run, or the run is settled.
func TestOfTwoOpensOneIsEnough(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(w *world, m *machine)
		kind      run.StepKind
		result    runlog.Result
	}{
		"a twin opens it": {func(w *world, m *machine) {
			var step run.Step
			if err := w.call(w.process("process-2").HandlePlanner, m.next, &step); err != nil || step.Kind != run.StepNext {
				w.Errorf("the twin answers %+v, %v", step, err)
			}
		}, run.StepNext, runlog.ResultSucceeded},
		"it is settled": {func(w *world, m *machine) { w.settle(w.process("process-2"), m.runID) }, run.StepRefused, runlog.ResultFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.submitDeploy(before())
			w.faults.meanwhile("update header OPEN", func() { c.meanwhile(w, m) })
			m.step()
			if len(m.steps) != 1 || m.steps[0].Kind != c.kind {
				t.Errorf("it answers %+v, %v", m.steps, m.failed)
			}
			if h := w.finish(m); h.Result != c.result {
				t.Errorf("%s: %s", h.Result, w.story(h.RunID))
			}
			w.sound(m.runID)
			w.accounted("App")
		})
	}
}

func TestAnOpenThatIsRepeatedRenewsItsLock(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(before())
	w.faults.killAt("put cdkd/App/"+region+"/lock.json", true)
	m.step()
	w.faults.revive()
	w.clk.Advance(state.LockTTL / 2)
	m.step()
	lock, err := w.states.ReadLock(t.Context(), "App", region)
	if err != nil || len(m.steps) != 1 {
		t.Fatalf("%+v, %v", m.steps, err)
	}
	if left := time.UnixMilli(lock.ExpiresAt).Sub(w.clk.Now()); left < state.LockTTL*9/10 {
		t.Errorf("the lock ends in %s", left)
	}
	w.finish(m)
}

// TestADeploymentThatIsRefusedLateClosesTheRunsThatItHasMade: its first try has made the runs of the stacks, and before
// the second one it is cancelled.
func TestADeploymentThatIsRefusedLateClosesTheRunsThatItHasMade(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	w.faults.killAt("put slipway/runs/"+m.runID+"/plan.json", false)
	m.step()
	w.faults.revive()
	made := w.children(m.runID)
	if len(made) != 3 {
		t.Fatalf("%d runs were made", len(made))
	}
	w.cancel(m.runID)
	if h := w.finish(m); h.Result != runlog.ResultFailed {
		t.Errorf("%s", h.Result)
	}
	for name, h := range w.children(m.runID) {
		if h.Status != runlog.StatusClosed || h.Failure == nil {
			t.Errorf("the run of %s is %s", name, h.Status)
		}
	}
}

func TestALoopIsDeployedWrittenOut(t *testing.T) {
	w := newWorld(t)
	template := object{
		"Transform":  "AWS::LanguageExtensions",
		"Parameters": object{"Names": object{"Type": "CommaDelimitedList", "Default": "One,Two"}},
		"Resources":  object{"Fn::ForEach::L": []any{"X", ref("Names"), object{"T${X}": topic(object{"DisplayName": ref("X")})}}},
	}
	for _, unchanged := range []int{0, 2} {
		h := w.deploy(template)
		if d := cmp.Diff([]string{"TOne", "TTwo"}, sortedKeys(w.record("App"))); d != "" || h.Counts.Unchanged != unchanged {
			t.Errorf("%+v, resources (-want +got):\n%s\n%s", h.Counts, d, w.story(h.RunID))
		}
	}
	if got := w.record("App").Resources["TTwo"].Properties["DisplayName"]; got != "Two" {
		t.Errorf("TTwo has %v", got)
	}
	// What it makes is checked as if it had been written out.
	template["Resources"] = object{"Fn::ForEach::L": []any{"X", ref("Names"), object{"T${X}": topic(object{"DisplayName": ref("Nothing")})}}}
	if h := w.deploy(template); h.Result != runlog.ResultFailed || !says(h, "Nothing") || len(w.cloud.steps("update")) != 0 {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
}

func TestATemplateThatIsWrittenOutIsStoredOnce(t *testing.T) {
	w := newWorld(t)
	template := object{
		"Transform": "AWS::LanguageExtensions",
		"Resources": object{"Fn::ForEach::L": []any{"X", []any{"One"}, object{"T${X}": topic(object{})}}},
	}
	for range 2 { // the second run finds it there
		m := w.submitDeploy(template)
		m.step()
		if len(m.steps) != 1 || m.tries != 0 {
			t.Errorf("after %d tries: %+v", m.tries, m.steps)
		}
		w.finish(m)
	}
}

func TestAFirstDeployThatIsTakenBackIsForgottenAtTheNextTryToo(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	w.deploy(resources(object{"A": topic(object{}), "Bad": with(topic(object{}), object{"DependsOn": "A"})}), noRollback)
	w.faults.on = "delete " + w.states.StateKey("App", region)
	if h := w.rollback(); h.Result != runlog.ResultSucceeded || !w.faults.struck || w.record("App") != nil {
		t.Errorf("struck %v, record %+v: %s", w.faults.struck, w.record("App"), w.story(h.RunID))
	}
}
