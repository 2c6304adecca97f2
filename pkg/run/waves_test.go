package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// row is a template of four topics, one after the other: each is a wave.
func row() object {
	return resources(object{
		"A": topic(object{}), "B": with(topic(object{}), object{"DependsOn": "A"}),
		"C": with(topic(object{}), object{"DependsOn": "B"}), "D": with(topic(object{}), object{"DependsOn": "C"}),
	})
}

func kinds(m *machine) []run.StepKind {
	var out []run.StepKind
	for _, step := range m.steps {
		out = append(out, step.Kind)
	}
	return out
}

// TestARunGoesOnInASuccessorWhenItsBudgetIsSpent: a wave of one item costs 32 events. A step that still fits is done, and
// an end is never put off.
func TestARunGoesOnInASuccessorWhenItsBudgetIsSpent(t *testing.T) {
	w := newWorld(t)
	w.engine.History = 64
	m := w.submitDeploy(row())
	h := w.finish(m)
	want := []run.StepKind{run.StepNext, run.StepWave, run.StepWave, run.StepContinue, run.StepWave, run.StepWave, run.StepDone}
	if d := cmp.Diff(want, kinds(m)); d != "" || h.Result != runlog.ResultSucceeded {
		t.Errorf("steps (-want +got):\n%s\n%s", d, w.story(h.RunID))
	}
	if h.Waves != 4 {
		t.Errorf("the header counts %d waves, want 4", h.Waves)
	}
}

// TestOperationsWhoseFunctionsNeverRunAreGivenUpTogether, and each is told of once.
func TestOperationsWhoseFunctionsNeverRunAreGivenUpTogether(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(resources(object{"A": topic(object{}), "B": topic(object{}), "C": topic(object{})}), noRollback)
	m.onItem = func(it run.Item) bool { return it.Op != "C" }
	h := w.finish(m)
	waves := map[string]int{}
	for _, ev := range w.events(h.RunID, runlog.OpFail) {
		waves[ev.LogicalID] += ev.Wave
		if ev.Error == nil || ev.Error.Code != "NotInvoked" {
			t.Errorf("%+v", ev)
		}
	}
	if len(waves) != 2 || waves["A"] == 0 || waves["A"] != waves["B"] || h.Counts.Failed != 2 || h.Counts.Created != 1 {
		t.Errorf("given up in the waves %v, %+v: %s", waves, h.Counts, w.story(h.RunID))
	}
	w.sound(h.RunID)
}

func TestAnAssetWhosePublisherNeverRunsIsToldOfAsOne(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	m.onItem = func(it run.Item) bool { return it.Op == "asset.data" }
	h := w.finish(m)
	told := w.events(h.RunID, runlog.AssetFailed)
	if len(told) != 1 || told[0].LogicalID != "data" || h.Result != runlog.ResultFailed || len(w.events(h.RunID, runlog.OpFail)) != 0 {
		t.Errorf("told: %+v: %s", told, w.story(h.RunID))
	}
}
