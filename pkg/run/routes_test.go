package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func TestAChangeThatNobodyCanMakeIsRefusedBeforeAnythingIsTouched(t *testing.T) {
	for name, next := range map[string]object{
		"an update":     queue(object{"DelaySeconds": 1}),
		"a replacement": queue(object{"DelaySeconds": 1, "FifoQueue": true}),
	} {
		w := newWorld(t)
		w.engine.Providers = &switchboard{cloud: w.cloud, lacks: "DelaySeconds"}
		w.deploy(resources(object{"A": queue(object{}), "B": topic(object{})}))
		w.cloud.forget()
		h := w.deploy(resources(object{"A": next, "B": topic(object{"DisplayName": "b"})}))
		if h.Result != runlog.ResultFailed || !says(h, "nobody can set DelaySeconds") || len(w.cloud.calls) != 0 {
			t.Errorf("%s: %s %v, calls %v", name, h.Result, h.Diagnostics, stepsOf(w))
		}
	}
}

// asked is the cloud behind a registry that notes which routes it is asked for, by type.
type asked struct {
	*cloud
	routes map[string]provider.Route
}

func (a *asked) For(typeName string, recorded provider.Route, properties []string) (provider.Provider, provider.Route, error) {
	a.routes[typeName] = recorded
	return a.cloud.For(typeName, recorded, properties)
}

func TestTheRouteOfAResourceStaysWithItsType(t *testing.T) {
	w := newWorld(t)
	w.deploy(resources(object{"A": queue(object{}), "B": topic(object{})}))
	w.editUnderSidecar(func(rec *state.Record) {
		for _, r := range rec.Resources {
			r.ProvisionedBy = string(provider.RouteCloudControl)
		}
	})
	board := &asked{w.cloud, map[string]provider.Route{}}
	w.engine.Providers = board
	m := w.submitDeploy(resources(object{"A": object{"Type": "AWS::S3::Bucket"}, "B": topic(object{"DisplayName": "b"})}))
	m.step() // the plan alone
	want := map[string]provider.Route{"AWS::S3::Bucket": "", "AWS::SNS::Topic": provider.RouteCloudControl}
	if d := cmp.Diff(want, board.routes); d != "" {
		t.Errorf("asked for (-want +got):\n%s", d)
	}
	w.finish(m)
}

// TestARunWhoseTicketWasTakenKeepsItsPlace: somebody has removed it by mistake.
func TestARunWhoseTicketWasTakenKeepsItsPlace(t *testing.T) {
	w := newWorld(t)
	first := w.busy()
	second := w.submitDeploy(line(), waits(600)).waitIn()
	third := w.submitDeploy(line(), waits(600)).waitIn()
	w.finishOnly(first)
	infos, err := w.objects.List(t.Context(), w.states.QueuePrefix("App", region))
	if err != nil || len(infos) != 2 {
		t.Fatalf("%d wait, %v", len(infos), err)
	}
	if err := w.objects.Delete(t.Context(), infos[0].Key, objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	second.step()
	if last := second.steps[len(second.steps)-1]; last.Kind != run.StepNext {
		t.Errorf("the second run answers %+v", last)
	}
	if h := w.finish(third); h.Result != runlog.ResultSucceeded {
		t.Error(w.story(h.RunID))
	}
}

// TestADeadDeploymentIsSettledAfterTheRunsOfItsStacks: one of them still runs, then it is dead as well.
func TestADeadDeploymentIsSettledAfterTheRunsOfItsStacks(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	child := func() *machine { return w.machines[w.children(m.runID)["One"].Execution] }
	m.until(func() bool { return child() != nil })
	child().until(child().atItem("A"))
	m.stop()
	janitor := w.process("janitor")
	ask := func() (s run.Settled) {
		t.Helper()
		if err := w.call(janitor.HandleJanitor, run.SettleInput{Action: run.ActionSettle, RunID: m.runID}, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := ask(); s.Settled || s.Seconds != 10 || w.header(child().runID).Status != runlog.StatusOpen {
		t.Errorf("while the run of a stack goes on: %+v", s)
	}
	// It dies in the middle of a call, and whoever makes that may still be at work.
	w.faults.killAt("put op A SUCCEEDED", false)
	_, _ = child().provision(w.engine, "A")
	w.faults.revive()
	child().stop()
	if s := ask(); s.Settled || s.Seconds < 1 || w.header(child().runID).Status != runlog.StatusSettling {
		t.Errorf("while a call may be under way: %+v", s)
	}
	w.deadHolders["process-1"] = true
	if s := ask(); !s.Settled {
		t.Errorf("with everybody dead: %+v", s)
	}
	for _, h := range w.children(m.runID) {
		w.sound(h.RunID)
		if h.Result != runlog.ResultFailed {
			t.Errorf("the run of %s is %s", h.Stack.Name, h.Result)
		}
	}
	w.sound(m.runID)
	w.accounted("One", "Two", "Three")
	if h := w.header(m.runID); h.Result != runlog.ResultFailed || h.Failure == nil {
		t.Errorf("%s %+v", h.Result, h.Failure)
	}
}

func TestADeadDeploymentWhoseWorkWasDoneEndsWithItsTrueResult(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	for !m.atClose() {
		for _, name := range sortedNames(w.machines) {
			if x := w.machines[name]; !x.ended && !(x == m && m.atClose()) {
				x.step()
			}
		}
	}
	m.stop()
	w.settle(w.process("janitor"), m.runID)
	if h := w.header(m.runID); h.Result != runlog.ResultSucceeded || h.Counts.Created != 3 || h.Failure != nil {
		t.Errorf("%s %+v %+v", h.Result, h.Counts, h.Failure)
	}
	w.sound(m.runID)
}

func TestOfTwoWhoSettleTheSecondHasNothingToDo(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(before())
	m.until(m.atNext)
	m.stop()
	w.faults.meanwhile("get "+w.states.StateKey("App", region), func() { w.settle(w.process("process-3"), m.runID) })
	var s run.Settled
	if err := w.call(w.process("process-2").HandleJanitor, run.SettleInput{Action: run.ActionSettle, RunID: m.runID}, &s); err != nil || !s.Settled {
		t.Errorf("%+v, %v", s, err)
	}
	w.sound(m.runID)
	w.accounted("App")
}
