package run_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// apart is a resource A, and B with C that depends on it.
func apart() object {
	return resources(object{"A": topic(object{}), "B": topic(object{}), "C": with(topic(object{}), object{"DependsOn": "B"})})
}

func TestADeployBeginsNothingMoreOnceSomethingHasFailed(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{fails: fails(provider.KindInvalid)})
	h := w.deploy(apart(), noRollback)
	if d := cmp.Diff([]string{"create A", "create B"}, sorted(stepsOf(w))); d != "" || h.Result != runlog.ResultFailed {
		t.Errorf("%s, calls (-want +got):\n%s", h.Result, d)
	}
	w.accounted("App")
}

func TestADestroyGoesOnWhereItCan(t *testing.T) {
	w := newWorld(t)
	w.deploy(apart())
	w.cloud.forget()
	w.cloud.script("delete A", script{fails: fails(provider.KindInvalid)})
	h := w.destroy()
	if d := cmp.Diff([]string{"delete A", "delete B", "delete C"}, sorted(stepsOf(w))); d != "" || h.Result != runlog.ResultPartial {
		t.Errorf("%s, calls (-want +got):\n%s", h.Result, d)
	}
	w.accounted("App")
}

func TestARollbackGoesOnWhereItCan(t *testing.T) {
	w := newWorld(t)
	template := apart()
	template["Resources"].(object)["Bad"] = with(topic(object{}), object{"DependsOn": []any{"A", "C"}})
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	w.cloud.script("delete A", script{fails: fails(provider.KindInvalid)})
	h := w.deploy(template)
	var deleted []string
	for _, c := range w.cloud.steps("delete") {
		deleted = append(deleted, c.step)
	}
	if d := cmp.Diff([]string{"delete A", "delete B", "delete C"}, sorted(deleted)); d != "" || h.Result != runlog.ResultFailed {
		t.Errorf("%s, calls (-want +got):\n%s", h.Result, d)
	}
	w.accounted("App")
}

func TestTheStoryOfARunStandsBesideTheRecord(t *testing.T) {
	w := newWorld(t)
	var logged strings.Builder
	w.engine.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	h := w.deploy(apart())
	index, _, err := w.states.LoadDeployments(t.Context(), "App", region)
	if err != nil || len(index.Runs) != 1 || index.Runs[0].RunID != h.RunID || index.Runs[0].Result != "SUCCEEDED" {
		t.Fatalf("%+v, %v", index, err)
	}
	events, err := w.states.LoadDeploymentEvents(t.Context(), "App", region, h.RunID)
	if err != nil || len(events) != 8 || logged.Len() != 0 {
		t.Errorf("%d events, %v, logged %q", len(events), err, logged.String())
	}
	// A run ends well without it.
	w.faults.on, w.faults.dies = "put cdkd/App/"+region+"/deployments/", false
	if h = w.destroy(); h.Result != runlog.ResultSucceeded || !w.faults.struck || !strings.Contains(logged.String(), "could not be written beside the record") {
		t.Errorf("struck %v, logged %q: %s", w.faults.struck, logged.String(), w.story(h.RunID))
	}
}

func TestARunIsLookedAtAsItStandsBeforeItIsCalledDead(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(apart())
	m.until(m.atNext)
	m.stop()
	if dead, err := w.engine.Dead(t.Context()); err != nil || len(dead) != 1 {
		t.Fatalf("%+v, %v", dead, err)
	}
	w.faults.meanwhile("header "+m.runID, func() { w.settle(w.process("process-2"), m.runID) })
	if dead, err := w.engine.Dead(t.Context()); err != nil || len(dead) != 0 {
		t.Errorf("settled meanwhile: %+v, %v", dead, err)
	}
}

func TestARequestedRunHasFiveMinutesToBegin(t *testing.T) {
	w := newWorld(t)
	w.submitDeploy(apart()).stop()
	for _, c := range []struct {
		after time.Duration
		dead  int
	}{{5 * time.Minute, 0}, {time.Nanosecond, 1}} {
		w.clk.Advance(c.after)
		if dead, err := w.engine.Dead(t.Context()); err != nil || len(dead) != c.dead {
			t.Errorf("%s later: %+v, %v", c.after, dead, err)
		}
	}
}
