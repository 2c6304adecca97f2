package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func TestARefusedRunTellsItsFirstProblem(t *testing.T) {
	w := newWorld(t)
	h := w.deploy(resources(object{"C": object{"Type": "AWS::Nowhere::Thing", "Properties": object{}}}))
	if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.Summary != h.Diagnostics[0].Summary {
		t.Errorf("%s: %+v of %v", h.Result, h.Failure, h.Diagnostics)
	}
}

// closing is a run that is about to be closed.
func closing(t *testing.T) (*world, *machine) {
	w := newWorld(t)
	m := w.submitDeploy(resources(object{"A": topic(object{})}))
	m.until(m.atClose)
	return w, m
}

// TestOfTwoThatEndARunTheSecondTakesTheWordOfTheFirst: nothing is tried again, because the end is decided.
func TestOfTwoThatEndARunTheSecondTakesTheWordOfTheFirst(t *testing.T) {
	w, m := closing(t)
	w.faults.meanwhile("update header OPEN SUCCEEDED", func() {
		h := w.header(m.runID)
		h.Result, h.FinishedAt = runlog.ResultFailed, w.clk.Now()
		if _, err := w.log.UpdateHeader(t.Context(), h); err != nil {
			t.Error(err)
		}
	})
	var out struct{ Result string }
	if err := w.call(w.engine.HandlePlanner, m.next, &out); err != nil {
		t.Fatal(err)
	}
	if h := w.header(m.runID); h.Result != runlog.ResultFailed || h.Status != runlog.StatusClosed {
		t.Errorf("it is %s, %s", h.Status, h.Result)
	}
	w.told(m.runID)
}

// TestADecidedRunIsClosedThoughItsHeaderHasMoved: what others write into the header meanwhile does not reopen anything.
func TestADecidedRunIsClosedThoughItsHeaderHasMoved(t *testing.T) {
	w, m := closing(t)
	w.faults.meanwhile("update header CLOSED", func() {
		if _, err := w.log.UpdateHeader(t.Context(), w.header(m.runID)); err != nil {
			t.Error(err)
		}
	})
	var out struct{ Result string }
	if err := w.call(w.engine.HandlePlanner, m.next, &out); err != nil {
		t.Fatal(err)
	}
	if h := w.header(m.runID); h.Result != runlog.ResultSucceeded || h.Status != runlog.StatusClosed {
		t.Errorf("it is %s, %s", h.Status, h.Result)
	}
	w.told(m.runID)
}

func TestTheVaultIsEmptiedByTheRunThatWasAskedForAndNotByOneOfItsStacks(t *testing.T) {
	w := newWorld(t)
	w.engine.Vault = w.vault()
	full := func(root string) bool {
		list, err := w.vault().Filled(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		return len(list) > 0
	}
	m := w.submitApp(chain())
	if _, err := w.vault().Put(t.Context(), m.runID, "v"); err != nil {
		t.Fatal(err)
	}
	for w.children(m.runID)["One"].Status != runlog.StatusClosed {
		for _, execution := range w.running() {
			execution.step()
		}
	}
	if !full(m.runID) {
		t.Error("the first stack has emptied the vault of the deployment")
	}
	w.finish(m)
	if full(m.runID) {
		t.Error("the deployment has left its vault full")
	}
}

// leaving is an app of one stack in which the deletion of what its second version lacks fails.
func leaving(w *world, name string) (old, next app) {
	version := func(r object) app {
		return app{command: runlog.CommandDeploy, stacks: []appStack{{name: name, template: resources(r)}}}
	}
	w.cloud.script("delete Gone"+name, script{fails: fails(provider.KindInvalid)})
	kept := "Kept" + name
	return version(object{kept: topic(object{}), "Gone" + name: topic(object{})}), version(object{kept: topic(object{})})
}

func TestADeploymentIsPartialWhenAStackIsAndFailedWhenAnotherFails(t *testing.T) {
	w := newWorld(t)
	old, next := leaving(w, "One")
	w.finish(w.submitApp(old))
	other := appStack{name: "Two", template: resources(object{"B": topic(object{})})}
	next.stacks = append(next.stacks, other)
	h := w.finish(w.submitApp(next))
	if h.Result != runlog.ResultPartial {
		t.Fatalf("%s: %s", h.Result, w.story(h.RunID))
	}

	w.cloud.script("create C", script{fails: fails(provider.KindInvalid)})
	next.stacks[1].template = resources(object{"B": topic(object{}), "C": topic(object{})})
	if h = w.finish(w.submitApp(next)); h.Result != runlog.ResultFailed {
		t.Errorf("%s: %s", h.Result, w.story(h.RunID))
	}
	// What a stack has failed of is in the deployment's journal too.
	ops, err := w.log.Ops(t.Context(), h.RunID)
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, op := range ops {
		told = told || op.Error != nil && strings.Contains(op.Error.Message, "C (AWS::SNS::Topic) failed")
	}
	if !told {
		t.Errorf("the journal does not tell of the failure: %+v", ops)
	}
}

func TestWhatWasNeverBegunIsCountedAsSkipped(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{fails: fails(provider.KindInvalid)})
	after := func(id string) object { return with(topic(object{}), object{"DependsOn": id}) }
	h := w.deploy(resources(object{"A": topic(object{}), "B": after("A"), "C": after("B")}), noRollback)
	if want := (runlog.Counts{Failed: 1, Skipped: 2}); h.Counts != want {
		t.Errorf("counted are %+v, want %+v: %s", h.Counts, want, w.story(h.RunID))
	}
}

// TestAStackOfNothingIsRecorded: it has been deployed, and can be listed and destroyed.
func TestAStackOfNothingIsRecorded(t *testing.T) {
	w := newWorld(t)
	nothing := object{
		"Conditions": object{"Never": object{"Fn::Equals": []any{"a", "b"}}},
		"Resources":  object{"A": with(topic(object{}), object{"Condition": "Never"})},
	}
	if h := w.deploy(nothing); h.Result != runlog.ResultSucceeded || w.record("App") == nil {
		t.Fatalf("%s, record %+v: %s", h.Result, w.record("App"), w.story(h.RunID))
	}
	if h := w.destroy(); h.Result != runlog.ResultSucceeded || w.record("App") != nil {
		t.Errorf("%s, record %+v: %s", h.Result, w.record("App"), w.story(h.RunID))
	}
}

// reports are what callers of uploads have been told.
type reports struct {
	outputs []map[string]any
	fails   error
}

func (r *reports) Planned(context.Context, run.Request, []plan.StackView) error { return nil }

func (r *reports) Deployed(_ context.Context, _ run.Request, _ string, outputs map[string]any) error {
	r.outputs = append(r.outputs, outputs)
	return r.fails
}

func TestOutputsAreReportedToWhoHasUploadedTheRun(t *testing.T) {
	template := func(label string) object {
		return object{"Resources": object{"A": topic(object{"DisplayName": label})}, "Outputs": object{
			"Out": object{"Value": ref("A"), "Export": object{"Name": "out"}},
		}}
	}
	for _, from := range []string{"", "uploads/me/submissions/x.json"} {
		w := newWorld(t)
		told := &reports{}
		w.engine.Reports = told
		o := order{stack: "App", command: runlog.CommandDeploy, template: template("one"), change: func(r *run.Request) { r.From = from }}
		if h := w.finish(w.submit(o)); h.Result != runlog.ResultSucceeded {
			t.Fatalf("%s: %s", h.Result, w.story(h.RunID))
		}
		if from == "" {
			if len(told.outputs) != 0 {
				t.Errorf("nobody has uploaded it, and told is %v", told.outputs)
			}
			continue
		}
		// The record has the names of exports as well.
		if len(told.outputs) != 1 || len(told.outputs[0]) != 1 || told.outputs[0]["Out"] == nil {
			t.Errorf("told is %v", told.outputs)
		}
		told.fails = errors.New("the bucket does not answer")
		o.template = template("two")
		if h := w.finish(w.submit(o)); h.Result != runlog.ResultSucceeded || len(h.Diagnostics) != 1 {
			t.Errorf("%s, %v", h.Result, h.Diagnostics)
		}
	}
}

func TestAnAdoptedResourceIsNotCountedTwice(t *testing.T) {
	w := orphaned(t)
	template := resources(object{"Data": data(object{"DisplayName": "one"}), "B": topic(object{})})
	h := w.deploy(template)
	if want := (runlog.Counts{Created: 1, Updated: 1}); h.Counts != want {
		t.Errorf("counted are %+v, want %+v: %s", h.Counts, want, w.story(h.RunID))
	}
}
