package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// manifold are two versions of a template: the second creates, updates, replaces, deletes and leaves n resources each.
func manifold(n int) (old, next object) {
	was, is := object{}, object{}
	for _, i := range "123"[:n] {
		number := string(i)
		was["Same"+number], is["Same"+number] = topic(object{}), topic(object{})
		was["Updated"+number], is["Updated"+number] = topic(object{"DisplayName": "one"}), topic(object{"DisplayName": "two"})
		was["Replaced"+number], is["Replaced"+number] = topic(object{}), topic(object{"FifoTopic": true})
		was["Gone"+number] = topic(object{})
		is["New"+number] = topic(object{})
	}
	return resources(was), resources(is)
}

func TestADeploymentAddsUpWhatItsStacksHaveDone(t *testing.T) {
	w := newWorld(t)
	one, oneNext := manifold(1)
	two, twoNext := manifold(2)
	both := func(a, b object) app {
		return app{command: runlog.CommandDeploy, stacks: []appStack{{name: "One", template: a}, {name: "Two", template: b}}}
	}
	w.finish(w.submitApp(both(one, two)))
	h := w.finish(w.submitApp(both(oneNext, twoNext)))
	want := runlog.Counts{Created: 3, Updated: 3, Replaced: 3, Deleted: 3, Unchanged: 3}
	if d := cmp.Diff(want, h.Counts); d != "" {
		t.Errorf("what is done (-want +got):\n%s\n%s", d, w.story(h.RunID))
	}

	// One resource of each fails, and one that waits for it is left out.
	failing := func(id string) object {
		t := resources(object{id: topic(object{}), "After" + id: with(topic(object{}), object{"DependsOn": id})})
		w.cloud.script("create "+id, script{fails: fails(provider.KindInvalid)})
		return t
	}
	a := both(failing("X"), failing("Y"))
	a.options = run.Options{NoRollback: true}
	h = w.finish(w.submitApp(a))
	if h.Counts.Failed != 2 || h.Counts.Skipped < 2 || h.Result != runlog.ResultFailed {
		t.Errorf("what has failed: %s %+v", h.Result, h.Counts)
	}
}

// TestOnlyAnAssetThatWasPublishedWithAWordIsWarnedOf: an asset that is there already is as it should be.
func TestOnlyAnAssetThatWasPublishedWithAWordIsWarnedOf(t *testing.T) {
	const word = "its bucket is not there yet"
	for outcome, warnings := range map[*asset.Outcome]int{
		{Status: asset.Published}: 0, {Status: asset.Present}: 0, {Status: asset.Skipped, Reason: word}: 2,
	} {
		w := newWorld(t)
		w.outcome = outcome
		h := w.finish(w.submitApp(chain()))
		if h.Result != runlog.ResultSucceeded || len(h.Diagnostics) != warnings {
			t.Errorf("%q: %s, %+v", outcome.Status, h.Result, h.Diagnostics)
		}
		for _, d := range h.Diagnostics {
			if d.Severity != diag.Warning || d.Summary != word {
				t.Errorf("it tells %+v", d)
			}
		}
	}
}
