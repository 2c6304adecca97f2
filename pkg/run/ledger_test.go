package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func (w *world) sidecar() *state.Sidecar {
	w.Helper()
	c, _, err := w.states.LoadSidecar(w.Context(), "App", region)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func TestAnOldHalfTellsWhichRunHasLeftIt(t *testing.T) {
	w := newWorld(t)
	w.deploy(before())
	w.cloud.script("delete Replaced", script{fails: fails(provider.KindAccessDenied)})
	h := w.deploy(after())
	left := w.sidecar().Cleanup
	if len(left) != 1 || left[0].RunID != h.RunID || left[0].Since == 0 {
		t.Fatalf("left of run %s: %+v", h.RunID, left)
	}
	w.deploy(after())
	if again := w.sidecar().Cleanup; len(again) != 1 || again[0].RunID != h.RunID || again[0].Since != left[0].Since {
		t.Errorf("after another run: %+v", again)
	}
}

// TestACleanupWhoseRecordingBreaksIsRecordedAtTheNextTry: only the sidecar changes.
func TestACleanupWhoseRecordingBreaksIsRecordedAtTheNextTry(t *testing.T) {
	w := newWorld(t)
	w.deploy(before())
	w.cloud.script("delete Replaced", script{fails: fails(provider.KindAccessDenied)})
	w.deploy(after())
	w.cloud.script("delete Replaced", script{})
	w.cloud.forget()
	m := w.submitDeploy(after())
	m.until(func() bool { return len(w.cloud.steps("delete Replaced")) == 1 && m.atNext() })
	w.faults.on = "put slipway/stacks/App/" + region + "/sidecar.json"
	h := w.finish(m)
	if left := w.pending("App"); h.Result != runlog.ResultSucceeded || len(left) != 0 || !w.faults.struck {
		t.Errorf("struck %v, left %v: %s", w.faults.struck, left, w.story(h.RunID))
	}
	w.accounted("App")
}

func TestAParameterThatChangesNothingIsRememberedAllTheSame(t *testing.T) {
	w := newWorld(t)
	template := one("A", topic(object{}))
	template["Parameters"] = object{"Unused": object{"Type": "String", "Default": "none"}}
	for _, value := range []string{"one", "two"} {
		h := w.finish(w.submit(order{stack: "App", command: runlog.CommandDeploy, template: template, change: func(r *run.Request) {
			r.Stacks[0].Parameters = map[string]string{"Unused": value}
		}}))
		if got := w.sidecar().Next.Parameters["Unused"]; got != value || h.Result != runlog.ResultSucceeded {
			t.Errorf("it is remembered as %q, want %q", got, value)
		}
	}
}

// TestADecisionIsRememberedWithoutMovingTheRun: the process that has made it dies before the header says so.
func TestADecisionIsRememberedWithoutMovingTheRun(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(after())
	m.until(m.atNext)
	n := m.next.Decision
	w.faults.killAt("update header OPEN", false)
	if _, err := m.ask(w.engine, n); err == nil {
		t.Fatal("the decision is answered by a dead process")
	}
	w.faults.revive()
	// Whoever repeats it moves the header on, and says so where that fails.
	w.faults.killAt("update header OPEN", false)
	w.faults.dies = false
	if step, err := m.ask(w.engine, n); failure(err) != run.ErrorUnavailable {
		t.Errorf("the header was not moved, and the answer is %+v, %v", step, err)
	}
	first, err := m.ask(w.engine, n)
	if err != nil {
		t.Fatal(err)
	}
	moved := w.header(m.runID)
	if moved.Decision != n {
		t.Errorf("the header is at decision %d, want %d", moved.Decision, n)
	}
	for _, old := range []int{n, n - 1} {
		step, err := m.ask(w.engine, old)
		if err != nil || old == n && cmp.Diff(first, step) != "" {
			t.Errorf("decision %d again: %+v, %v", old, step, err)
		}
		if d := cmp.Diff(moved, w.header(m.runID)); d != "" {
			t.Errorf("decision %d again changes the header (-before +after):\n%s", old, d)
		}
	}
	m.follow(first)
	if h := w.finish(m); h.Result != runlog.ResultSucceeded {
		t.Error(w.story(h.RunID))
	}
	w.sound(m.runID)
}

// TestAnOpenIsRefusedWhereTheRunIsSettledMeanwhile: between its plan and its header.
func TestAnOpenIsRefusedWhereTheRunIsSettledMeanwhile(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(after())
	w.faults.meanwhile("update header OPEN", func() {
		h := w.header(m.runID)
		h.Status, h.Epoch = runlog.StatusSettling, h.Epoch+1
		if _, err := w.log.UpdateHeader(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	})
	m.step()
	if failure(m.failed) != run.ErrorFenced {
		t.Errorf("it fails with %v", m.failed)
	}
	w.sound(m.runID)
	if len(w.cloud.calls) != 0 {
		t.Errorf("calls %v", stepsOf(w))
	}
}

func TestDeploymentsAreSettledBeforeTheRunsOfTheirStacks(t *testing.T) {
	w := newWorld(t)
	alone := w.submitDeploy(before())
	alone.until(alone.atNext)
	m := w.submitApp(chain())
	m.until(func() bool { return w.children(m.runID)["One"].Status == runlog.StatusOpen || w.stepOthers(m) })
	for _, x := range w.machines {
		x.stop()
	}
	dead, err := w.engine.Dead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var kinds []runlog.Kind
	for _, h := range dead {
		kinds = append(kinds, h.Kind)
	}
	if len(dead) < 3 || dead[0].RunID != m.runID || dead[1].RunID != alone.runID || kinds[2] != runlog.KindStack {
		t.Errorf("in the order %+v", dead)
	}
}

// stepOthers makes a call of every other execution.
func (w *world) stepOthers(m *machine) bool {
	for _, name := range sortedNames(w.machines) {
		if x := w.machines[name]; x != m && !x.ended && x.next.Action != run.ActionNext {
			x.step()
		}
	}
	return false
}
