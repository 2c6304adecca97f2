package run_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// interrupted is a deploy of before() that stands in the middle of its first wave.
func interrupted(t *testing.T) (*world, *machine) {
	w := newWorld(t)
	m := w.submitDeploy(before())
	m.until(m.atItem("Changed"))
	return w, m
}

func TestSettleFencesWhatComesLate(t *testing.T) {
	w, m := interrupted(t)
	m.stop()
	w.settle(w.process("janitor"), m.runID)
	calls := len(w.cloud.calls)
	if _, err := m.provision(w.engine, "Changed"); failure(err) != run.ErrorFenced {
		t.Errorf("a late provisioner: %v", err)
	}
	if len(w.cloud.calls) != calls {
		t.Error("a late provisioner has called the cloud")
	}
	step, err := m.ask(w.engine, 2)
	if err != nil || step.Kind != run.StepDone {
		t.Errorf("a late planner is told %+v, %v", step, err)
	}
	h := w.header(m.runID)
	if h.Result != runlog.ResultFailed || h.Epoch != 2 || h.Failure == nil {
		t.Errorf("%+v", h)
	}
	if planned := len(before()["Resources"].(object)); h.Counts.Skipped == 0 || h.Counts.Skipped+h.Counts.Created != planned {
		t.Errorf("of %d resources %+v are told", planned, h.Counts)
	}
	w.sound(m.runID)
	w.accounted("App")
}

func TestALateResultIsRefusedAndTheJanitorFindsItByItsToken(t *testing.T) {
	w, m := interrupted(t)
	janitor := w.process("janitor")
	// The provisioner has made its call; before it records the result, its run is settled.
	w.cloud.script("create Changed", script{before: func() {
		w.cloud.script("create Changed", script{})
		w.deadHolders["process-1"] = true
		m.stop()
		w.settle(janitor, m.runID)
	}})
	if _, err := m.provision(w.engine, "Changed"); failure(err) != run.ErrorFenced {
		t.Errorf("the late result: %v", err)
	}
	if n := w.cloud.effects()["create Changed"]; n != 1 {
		t.Errorf("it was created under %d tokens", n)
	}
	w.sound(m.runID)
	w.accounted("App")
}

func TestSettleOutwaitsALivingProvisioner(t *testing.T) {
	for _, alive := range []bool{true, false} {
		t.Run(fmt.Sprintf("alive %v", alive), func(t *testing.T) {
			w, m := interrupted(t)
			// Its process stops after the intent, and nobody knows for how long.
			w.faults.killAt("put op Changed SUCCEEDED", false)
			_, _ = m.provision(w.engine, "Changed")
			w.faults.revive()
			m.stop()
			w.deadHolders["process-1"] = !alive
			waited := w.settle(w.process("janitor"), m.runID)
			if alive != (waited > 5*time.Second) {
				t.Errorf("it has waited %s", waited)
			}
			w.sound(m.runID)
			w.accounted("App")
			if n := w.cloud.effects()["create Changed"]; n != 1 {
				t.Errorf("it was created under %d tokens", n)
			}
		})
	}
}

func TestSettleFollowsSlowWorkToItsEnd(t *testing.T) {
	w := newWorld(t)
	for i := range 30 {
		w.cloud.script("create "+name(i), script{takes: time.Duration(i) * time.Minute})
	}
	all := object{}
	for i := range 30 {
		all[name(i)] = topic(object{})
	}
	m := w.submitDeploy(resources(all))
	m.until(m.atNext)
	m.stop()
	began := w.clk.Now()
	w.settle(w.process("janitor"), m.runID)
	w.sound(m.runID)
	w.accounted("App")
	if n := len(w.record("App").Resources); n != 30 {
		t.Errorf("%d of 30 are recorded", n)
	}
	if took := w.clk.Now().Sub(began); took > 4*time.Hour {
		t.Errorf("half an hour of work was followed for %s", took)
	}
	for step, n := range w.cloud.effects() {
		if n != 1 {
			t.Errorf("%s under %d tokens", step, n)
		}
	}
}

func TestSettleAtOnceInManyProcesses(t *testing.T) {
	for _, s := range stages() {
		t.Run(s.name, func(t *testing.T) {
			for after := range 12 {
				w, m := s.world(t)
				for range 2 + 2*after {
					if !m.ended {
						m.step()
					}
				}
				m.stop()
				w.deadHolders["process-1"] = true
				var wg sync.WaitGroup
				for i := range 5 {
					wg.Go(func() {
						for range 50 {
							var s run.Settled
							err := w.call(w.process(fmt.Sprint("janitor-", i)).HandleJanitor, run.SettleInput{Action: run.ActionSettle, RunID: m.runID}, &s)
							if err == nil && s.Settled {
								return
							}
							// The settle machine tries every failure again; of two that save at a time one may be told that it was fenced.
							if name := failure(err); err != nil && name != run.ErrorUnavailable && name != run.ErrorFenced {
								t.Errorf("janitor: %v", err)
							}
							w.clk.Advance(time.Second)
						}
						t.Error("a janitor does not come to an end")
					})
				}
				wg.Wait()
				w.sound(m.runID)
				w.accounted("App")
				most := 1
				if s.name == "roll back" {
					most = 2 // there and back
				}
				for step, n := range w.cloud.effects() {
					if n > most {
						t.Errorf("%s was carried out %d times", step, n)
					}
				}
			}
		})
	}
}

// TestSettleBesideTheLiveRun: the janitor was called although the run lives, at any moment of it.
func TestSettleBesideTheLiveRun(t *testing.T) {
	for _, s := range stages() {
		t.Run(s.name, func(t *testing.T) {
			for after := 0; after < 40; after += stride() {
				w, m := s.world(t)
				for range after {
					if !m.ended {
						m.step()
					}
				}
				var once run.Settled
				_ = w.call(w.process("janitor").HandleJanitor, run.SettleInput{Action: run.ActionSettle, RunID: m.runID}, &once)
				w.finish(m)
				w.settle(w.process("janitor"), m.runID)
				w.sound(m.runID)
				w.accounted("App")
			}
		})
	}
}

func TestASettledDeployLeavesAJournal(t *testing.T) {
	w, m := stages()[1].world(t)
	m.until(m.atItem("Reader"))
	m.stop()
	w.deadHolders["process-1"] = true
	w.settle(w.process("janitor"), m.runID)
	j := w.journal("App")
	if j == nil || len(j.Segments) != 1 {
		t.Fatalf("journal %+v", j)
	}
	seg := j.Segments[0]
	if seg.Reason != state.ReasonInterrupted || seg.RunID != m.runID || seg.InitialDeploy || seg.FailedOperations != nil {
		t.Errorf("%+v", seg)
	}
	got := map[string]string{}
	for _, op := range seg.Operations {
		got[op.LogicalID] = op.ChangeType
	}
	if d := cmp.Diff(map[string]string{"Changed": "UPDATE", "New": "CREATE", "Replaced": "UPDATE"}, got); d != "" {
		t.Errorf("operations (-want +got):\n%s", d)
	}
	if got := w.pending("App"); len(got) != 1 {
		t.Errorf("the old half of Replaced is forgotten: %v", got)
	}
}

func TestARunThatNeverBeganIsSettled(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(before())
	m.stop()
	w.settle(w.engine, m.runID)
	w.sound(m.runID)
	var step run.Step
	if err := w.call(w.engine.HandlePlanner, run.PlannerInput{Action: run.ActionOpen, RunID: m.runID}, &step); err != nil || step.Kind != run.StepRefused {
		t.Errorf("a late Open answers %+v, %v", step, err)
	}
	w.sound(m.runID)
}

// TestSettleWhileTheRunOpens: Open holds the lock and plans when its run is settled and closed.
func TestSettleWhileTheRunOpens(t *testing.T) {
	for _, at := range []string{"put cdkd/App/eu-west-1/lock.json", "set head", "plan.json", "update header OPEN"} {
		w := newWorld(t)
		m := w.submitDeploy(before())
		w.faults.meanwhile(at, func() { w.settle(w.process("janitor"), m.runID) })
		w.finish(m)
		w.sound(m.runID)
		if len(w.cloud.exists()) > 0 {
			t.Errorf("settled at %q the run has still made %v", at, w.cloud.exists())
		}
		if h := w.deploy(before()); h.Result != runlog.ResultSucceeded {
			t.Errorf("settled at %q the next run is %s: %s", at, h.Result, w.story(h.RunID))
		}
	}
}

func TestALiveRunKeepsOthersOut(t *testing.T) {
	w, m := interrupted(t)
	second := w.submitDeploy(after())
	for !second.ended {
		second.step()
	}
	if h := w.header(second.runID); h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.Summary != "stack App is locked" {
		t.Errorf("the second run: %+v", h)
	}
	w.told(second.runID)
	if h := w.finish(m); h.Result != runlog.ResultSucceeded {
		t.Errorf("the first run is %s", h.Result)
	}
	w.sound(m.runID)
	w.accounted("App")
}

func TestARunWaitsForItsPredecessorToBeSettled(t *testing.T) {
	w, m := interrupted(t)
	w.faults.killAt("put op Changed SUCCEEDED", false)
	_, _ = m.provision(w.engine, "Changed")
	w.faults.revive()
	m.stop() // its provisioner may still be at work for the time of its lease
	w.engine = w.process("process-2")
	second := w.submitDeploy(before())
	h := w.finish(second)
	if h.Result != runlog.ResultSucceeded {
		t.Fatalf("%s: %s", h.Result, w.story(second.runID))
	}
	waits := 0
	for _, s := range second.steps {
		if s.Kind == run.StepWait {
			waits++
		}
	}
	if waits == 0 {
		t.Error("it has not waited")
	}
	w.sound(m.runID)
	w.sound(second.runID)
	w.accounted("App")
}

func TestALockOfAnotherToolIsRespected(t *testing.T) {
	w := newWorld(t)
	for name, body := range map[string]string{
		"cdkd's":                         `{"owner":"golden@vm:1","timestamp":1,"expiresAt":2,"operation":"deploy"}`,
		"broken":                         `{`,
		"one of a run that nobody knows": `{"owner":"me@host:slipway:gone","timestamp":1,"expiresAt":2}`,
	} {
		key := w.states.LockKey("App", region)
		w.lock("App", body)
		m := w.submitDeploy(before())
		if h := w.finish(m); h.Result != runlog.ResultFailed || len(w.cloud.exists()) > 0 {
			t.Errorf("%s: %s", name, h.Result)
		}
		if o, err := w.objects.Get(context.Background(), key); err != nil || string(o.Body) != body {
			t.Errorf("%s: the lock is now %q, %v", name, o.Body, err)
		}
		w.told(m.runID)
	}
}

func TestALostLockStopsTheRun(t *testing.T) {
	w, m := interrupted(t)
	if _, err := w.states.ForceUnlock(context.Background(), "App", region); err != nil {
		t.Fatal(err)
	}
	if _, err := w.states.Acquire(context.Background(), "App", region, "golden@vm:1", "deploy"); err != nil {
		t.Fatal(err)
	}
	h := w.finish(m)
	if failure(m.failed) != run.ErrorLockLost || h.Result != runlog.ResultFailed {
		t.Errorf("%v, %s", m.failed, h.Result)
	}
	w.told(m.runID)
	w.accounted("App")
	if lock, err := w.states.ReadLock(context.Background(), "App", region); err != nil || lock.Owner != "golden@vm:1" {
		t.Errorf("the new holder's lock is %+v, %v", lock, err)
	}
}

func TestASettledRollbackKeepsWhatItHasNotUndone(t *testing.T) {
	w, m := stages()[2].world(t)
	m.until(m.atItem("Replaced.undo"))
	m.stop()
	w.deadHolders["process-1"] = true
	w.settle(w.process("janitor"), m.runID)
	w.sound(m.runID)
	w.accounted("App")
	j := w.journal("App")
	if j == nil || len(j.Segments) != 1 || j.Segments[0].Reason != state.ReasonRollingBack || len(j.Segments[0].Operations) < 2 {
		t.Errorf("journal %+v", j)
	}
	if h := w.deploy(after()); h.Result != runlog.ResultSucceeded {
		t.Errorf("%s", w.story(h.RunID))
	}
	w.accounted("App")
}

func TestSettleRecoversAnUndo(t *testing.T) {
	w := newWorld(t)
	w.deploy(before())
	w.cloud.script("update Reader", script{fails: failsFirst()})
	m := w.submitDeploy(after())
	m.until(m.atItem("Replaced.undo"))
	w.faults.killAt("put op Replaced.undo SUCCEEDED", false)
	_, _ = m.provision(w.engine, "Replaced.undo")
	w.faults.revive()
	m.stop()
	w.deadHolders["process-1"] = true
	w.settle(w.process("janitor"), m.runID)
	w.sound(m.runID)
	w.accounted("App")
	if got := w.record("App").Resources["Replaced"]; got == nil || got.Properties["FifoTopic"] != nil {
		t.Errorf("the old half was not taken up again: %+v", got)
	}
	if n := w.cloud.effects()["delete Replaced"]; n != 1 {
		t.Errorf("the new half was deleted under %d tokens", n)
	}
}

// TestAProcessSettlesNothingThatItIsStillWorkingOn: an execution is stopped, and what it had begun goes on in the process that
// settles it. Whoever made the call again now could meet its effect after others have taken it back.
func TestAProcessSettlesNothingThatItIsStillWorkingOn(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(resources(object{"A": topic(object{})}))
	m.until(m.atItem("A"))
	settle := func() (s run.Settled) {
		t.Helper()
		if err := w.call(w.engine.HandleJanitor, run.SettleInput{Action: run.ActionSettle, RunID: m.runID}, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	w.cloud.script("create A", script{before: func() {
		w.cloud.script("create A", script{})
		m.stop()
		if s := settle(); s.Settled || s.Seconds != 1 || len(w.cloud.exists()) != 0 {
			t.Errorf("while the call is under way: %+v, %v", s, w.cloud.exists())
		}
	}})
	if _, err := m.provision(w.engine, "A"); failure(err) != run.ErrorFenced {
		t.Errorf("its result is taken: %v", err)
	}
	if s := settle(); !s.Settled {
		t.Errorf("after the call: %+v", s)
	}
	w.sound(m.runID)
	w.accounted("App")
}
