package run_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/provider"
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

// TestAPublisherIsAskedAgainOnlyForWhatIsNotDone: its result is lost, and messages come late.
func TestAPublisherIsAskedAgainOnlyForWhatIsNotDone(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	m.until(m.atItem("asset.data"))
	publish := func(wave int) string {
		t.Helper()
		var status run.OperationStatus
		if err := w.call(w.engine.HandlePublisher, run.PublishInput{RunID: m.runID, Wave: wave, Epoch: m.wave.Epoch, Op: "asset.data"}, &status); err != nil {
			return failure(err)
		}
		return status.Status
	}
	w.faults.killAt("put op asset.data SUCCEEDED", false)
	if got := publish(m.wave.Wave); got != run.ErrorUnavailable {
		t.Errorf("the result is lost, and it answers %s", got)
	}
	w.faults.revive()
	began, err := w.log.Op(t.Context(), m.runID, "asset.data")
	if err != nil {
		t.Fatal(err)
	}
	w.clk.Advance(time.Minute)
	for i, want := range []int{2, 2, 2} {
		if got := publish(m.wave.Wave); got != string(runlog.OpSucceeded) || w.published["data"] != want {
			t.Errorf("call %d answers %s, published %d times", i+2, got, w.published["data"])
		}
	}
	op, err := w.log.Op(t.Context(), m.runID, "asset.data")
	if err != nil || !op.StartedAt.Equal(began.StartedAt) || !op.FinishedAt.After(op.StartedAt) {
		t.Errorf("it began at %s, and is said to have begun at %s, %v", began.StartedAt, op.StartedAt, err)
	}
	m.items = m.items[1:]
	if h := w.finish(m); h.Result != runlog.ResultSucceeded || w.published["data"] != 2 {
		t.Errorf("published %d times: %s", w.published["data"], w.story(h.RunID))
	}
}

func TestAnotherAttemptAtAnAssetBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.unpublishable["data"] = &provider.Error{Kind: provider.KindUnavailable, Message: "no answer"}
	m := w.submitApp(chain())
	m.until(func() bool { return w.published["data"] == 1 })
	first, err := w.log.Op(t.Context(), m.runID, "asset.data")
	if err != nil {
		t.Fatal(err)
	}
	delete(w.unpublishable, "data")
	w.finish(m)
	second, err := w.log.Op(t.Context(), m.runID, "asset.data")
	if err != nil || second.Attempt != 2 || !second.StartedAt.After(first.FinishedAt) {
		t.Errorf("attempt %d began at %s, %v", second.Attempt, second.StartedAt, err)
	}
}

func TestWhatBecomesOfAnAssetIsToldInItsOwnWord(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome asset.Outcome
		err     error
		told    runlog.EventType
		message string
	}{
		{"it is published", asset.Outcome{Status: asset.Published}, nil, runlog.AssetPublished, ""},
		{"it is there", asset.Outcome{Status: asset.Present}, nil, runlog.AssetPublished, "already there"},
		{"it is left out", asset.Outcome{Status: asset.Published, Reason: "there is no Docker"}, nil, runlog.AssetSkipped, "there is no Docker"},
		{"it fails", asset.Outcome{}, errors.New("the bucket is closed"), runlog.AssetFailed, ""},
	} {
		w := newWorld(t)
		w.outcome = &c.outcome
		if c.err != nil {
			w.unpublishable["code"] = c.err
		}
		m := w.submitApp(app{command: runlog.CommandDeploy, stacks: []appStack{{name: "One", template: before(), assets: []string{"code"}}}})
		w.finish(m)
		for _, word := range []runlog.EventType{runlog.AssetPublished, runlog.AssetSkipped, runlog.AssetFailed} {
			told := w.events(m.runID, word)
			if right := word == c.told; right != (len(told) == 1) || right && (told[0].LogicalID != "code" || told[0].Message != c.message) {
				t.Errorf("%s: of %s is told %+v", c.name, word, told)
			}
		}
	}
}
