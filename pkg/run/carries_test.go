package run_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func TestAnExecutionOfSomebodyElseDoesNothingToARun(t *testing.T) {
	w := newWorld(t)
	for _, stack := range []string{"App", strings.Repeat("a-very-long-name-", 6)} {
		m := w.submit(order{stack: stack, command: runlog.CommandDeploy, template: before()})
		for m.next.Action != run.ActionNext || len(m.items) == 0 {
			m.step()
		}
		before, err := w.log.Header(w.Context(), m.runID)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"intruder", "intruder-deploy-" + m.runID, "App-x-deploy-" + m.runID, stack + "-deploy-" + run.NewRunID(w.clk.Now())} {
			for _, in := range []run.PlannerInput{
				{Action: run.ActionOpen}, {Action: run.ActionNext, Decision: before.Decision + 1}, {Action: run.ActionNext, Decision: 99}, {Action: run.ActionClose},
			} {
				in.RunID, in.Execution = m.runID, name
				var refused *run.HandlerError
				if err := w.call(w.engine.HandlePlanner, in, &struct{}{}); !errors.As(err, &refused) || refused.Name != run.ErrorBadRequest {
					t.Errorf("%s by %s: %v", in.Action, name, err)
				}
			}
			var s run.Settled
			in := run.SettleInput{Action: run.ActionSettle, RunID: m.runID, Asked: &run.SettleOrder{RunID: m.runID, Dead: name}}
			if err := w.call(w.engine.HandleJanitor, in, &s); err != nil || !s.Settled {
				t.Errorf("settling for %s: %+v, %v", name, s, err)
			}
		}
		if after, err := w.log.Header(w.Context(), m.runID); err != nil || after.Version != before.Version {
			t.Errorf("the header has changed: %+v, %v", after, err)
		}
		w.finish(m)
		if h, err := w.log.Header(w.Context(), m.runID); err != nil || h.Result != runlog.ResultSucceeded {
			t.Errorf("it ended as %s, %v", h.Result, err)
		}
	}
}

func TestTheExecutionOfARunIsSettled(t *testing.T) {
	w := newWorld(t)
	m := w.submit(order{stack: "App", command: runlog.CommandDeploy, template: before()})
	for len(m.items) == 0 {
		m.step()
	}
	m.stop()
	var s run.Settled
	in := run.SettleInput{Action: run.ActionSettle, RunID: m.runID, Asked: &run.SettleOrder{RunID: m.runID, Dead: m.name}}
	if err := w.call(w.engine.HandleJanitor, in, &s); err != nil {
		t.Fatal(err)
	}
	h, err := w.log.Header(w.Context(), m.runID)
	if err != nil || h.Status == runlog.StatusOpen {
		t.Errorf("the run is %s, %v", h.Status, err)
	}
	// What has made no run has left nothing to settle.
	in.RunID = run.NewRunID(w.clk.Now())
	if err := w.call(w.engine.HandleJanitor, in, &s); err != nil || !s.Settled {
		t.Errorf("%+v, %v", s, err)
	}
}
