package run_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// timeout is a template of one queue.
func timeout(seconds string) object {
	return resources(object{"A": queue(object{"VisibilityTimeout": seconds})})
}

// recordedTimeout fails unless the record and the cloud say the same of the queue.
func (w *world) recordedTimeout(want string) {
	w.Helper()
	is := w.record("App").Resources["A"]
	if is.Properties["VisibilityTimeout"] != want || w.cloud.live[is.PhysicalID].Properties["VisibilityTimeout"] != want {
		w.Errorf("A is recorded as %v and is %v, want %s", is.Properties, w.cloud.live[is.PhysicalID].Properties, want)
	}
	if j := w.journal("App"); j != nil {
		w.Errorf("the last deploy has succeeded, and there is a rollback journal: %+v", j.Segments)
	}
}

func TestASettlerThatIsHeldUpDoesNotFoldOverTheNextDeploy(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(timeout("1"))
	m.until(m.atNext)
	m.stop()
	w.faults.meanwhile("get cdkd/App/eu-west-1/lock.json", func() {
		w.settle(w.process("process-2"), m.runID)
		w.deploy(timeout("2"))
	})
	w.settle(w.engine, m.runID)
	w.sound(m.runID)
	w.recordedTimeout("2")
}

func TestAPlannerThatIsHeldUpDoesNotFoldOverTheNextDeploy(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(timeout("1"))
	m.until(m.atNext)
	w.faults.meanwhile("get cdkd/App/eu-west-1/state.json", func() {
		m.stop()
		w.settle(w.process("process-2"), m.runID)
		w.deploy(timeout("2"))
	})
	if step, err := m.ask(w.engine, m.next.Decision); failure(err) != run.ErrorLockLost {
		t.Errorf("it decides %+v, %v", step, err)
	}
	w.recordedTimeout("2")
}

// TestAFirstRecordThatIsSavedLateNamesNothingThatIsGone: the put of a stack's first record is held up until others have
// settled the run and destroyed the stack. Its condition, that there is no record, holds again.
func TestAFirstRecordThatIsSavedLateNamesNothingThatIsGone(t *testing.T) {
	for name, next := range map[string]func(w *world){
		"destroyed": func(w *world) { w.destroy() },
		"retained":  func(w *world) { w.destroy(); w.cloud.live["kept"] = thing{"AWS::SQS::Queue", "A", object{}} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cloud.script("create A", script{id: "kept"})
			m := w.submitDeploy(timeout("1"))
			m.until(m.atNext)
			w.faults.meanwhile("put cdkd/App/eu-west-1/state.json", func() {
				m.stop()
				w.settle(w.process("process-2"), m.runID)
				next(w)
			})
			if step, err := m.ask(w.engine, m.next.Decision); !errors.Is(err, runlog.ErrFenced) {
				t.Errorf("it decides %+v, %v", step, err)
			}
			w.accounted("App")
			rec := w.record("App")
			if _, live := w.cloud.live["kept"]; live != (rec != nil) {
				t.Errorf("the record is %+v", rec)
			}
		})
	}
}

// TestACustomResourceWhoseStackIsGoneIsNotRecordedLate: nobody can read it, and whoever has closed the run has recorded it.
func TestACustomResourceWhoseStackIsGoneIsNotRecordedLate(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(resources(object{"A": object{"Type": "Custom::Thing", "Properties": object{"ServiceToken": "arn:aws:lambda:eu-west-1:1:function:f"}}}))
	m.until(m.atNext)
	w.faults.meanwhile("put cdkd/App/eu-west-1/state.json", func() {
		m.stop()
		w.clk.Advance(time.Second)
		w.settle(w.process("process-2"), m.runID)
		w.destroy()
	})
	if step, err := m.ask(w.engine, m.next.Decision); !errors.Is(err, runlog.ErrFenced) {
		t.Errorf("it decides %+v, %v", step, err)
	}
	if rec := w.record("App"); rec != nil || len(w.cloud.exists()) != 0 {
		t.Errorf("recorded is %+v, and there is %v", rec, w.cloud.exists())
	}
}

// TestACustomResourceStaysInTheRecordThatATwinHasSavedAndClosed: of two that fold a dead run alike, the second finds its own
// words in the record of the first, who has closed the run by then.
func TestACustomResourceStaysInTheRecordThatATwinHasSavedAndClosed(t *testing.T) {
	for _, held := range []string{"put cdkd/App/eu-west-1/state.json", "header "} {
		w := newWorld(t)
		m := w.submitDeploy(resources(object{"A": object{"Type": "Custom::Thing", "Properties": object{"ServiceToken": "arn:aws:lambda:eu-west-1:1:function:f"}}}))
		m.until(m.atNext)
		m.stop()
		twin := func() { w.settle(w.process("process-2"), m.runID) }
		if held == "header " { // the first has saved, and does not know yet whether the run still is its own
			w.faults.meanwhile("put cdkd/App/eu-west-1/state.json", func() { w.faults.meanwhile("header "+m.runID, twin) })
		} else {
			w.faults.meanwhile(held, twin)
		}
		w.settle(w.engine, m.runID)
		w.accounted("App")
		if rec := w.record("App"); rec == nil || rec.Resources["A"] == nil {
			t.Errorf("held up before %q, the record is %+v", held, rec)
		}
	}
}

// TestARecordThatOthersRemoveIsMadeAnewOfWhatThereIs: another tool removes the record of a run that goes on, and one of
// the two resources in it after the run has looked at them.
func TestARecordThatOthersRemoveIsMadeAnewOfWhatThereIs(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(resources(object{"A": topic(object{}), "B": topic(object{}), "C": with(topic(object{}), object{"DependsOn": []any{"A", "B"}})}))
	m.until(func() bool { return w.header(m.runID).StateETag != "" })
	gone := w.record("App").Resources["A"].PhysicalID
	w.deleteRecord()
	w.faults.meanwhile("put cdkd/App/eu-west-1/state.json", func() { delete(w.cloud.live, gone) })
	h := w.finish(m)
	if d := cmp.Diff([]string{"B", "C"}, sortedKeys(w.record("App"))); d != "" || h.Result != runlog.ResultSucceeded {
		t.Errorf("the record (-want +got):\n%s\n%s", d, w.story(m.runID))
	}
	w.sound(m.runID)
	w.accounted("App")
}

// TestARunIsSettledWhoseRecordWasSavedAndRemoved: a run dies after it has saved the stack's first record and before its
// header says so; somebody frees its lock and destroys the stack. What it had made is gone when it is settled.
func TestARunIsSettledWhoseRecordWasSavedAndRemoved(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(timeout("1"))
	m.until(m.atNext)
	w.faults.on = "put slipway/runs/" + m.runID + "/decisions/00002.json"
	w.faults.dies = true
	m.step()
	m.stop()
	w.faults.revive()
	if w.record("App") == nil || w.header(m.runID).StateETag != "" {
		t.Fatalf("the record is %+v, the header %+v", w.record("App"), w.header(m.runID))
	}
	if _, err := w.states.ForceUnlock(t.Context(), "App", region); err != nil {
		t.Fatal(err)
	}
	w.finish(w.submit(order{stack: "App", command: runlog.CommandDestroy}))
	w.settle(w.process("janitor"), m.runID)
	w.accounted("App")
	if rec := w.record("App"); rec != nil && len(rec.Resources) > 0 {
		t.Errorf("the record names %v", sortedKeys(rec))
	}
}

func TestAnOpenThatIsHeldUpLeavesNoLock(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(timeout("1"))
	w.faults.meanwhile("put cdkd/App/eu-west-1/lock.json", func() { w.settle(w.process("process-2"), m.runID) })
	m.step()
	w.sound(m.runID)
	if h := w.header(m.runID); h.Result != runlog.ResultFailed || len(w.cloud.exists()) != 0 {
		t.Errorf("%s, and there is %v", h.Result, w.cloud.exists())
	}
}

func TestADeployFromAPlanThatWasNeverMadeIsRefused(t *testing.T) {
	w := newWorld(t)
	o := order{stack: "App", command: runlog.CommandDeploy, template: timeout("1"), change: func(r *run.Request) { r.PlanRun = "20261129T210000000Z-00000000" }}
	h := w.finish(w.submit(o))
	if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.Summary != "run 20261129T210000000Z-00000000 has no plan" {
		t.Errorf("%s %+v", h.Result, h.Failure)
	}
	w.sound(h.RunID)
}

func TestAResourceThatIsRecordedAfterThePlanKeepsAName(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(timeout("1"))
	m.step()
	theirs := map[string]any{"VisibilityTimeout": "9"}
	w.cloud.live["theirs"] = thing{"AWS::SQS::Queue", "A", theirs}
	rec := &state.Record{StackName: "App", Region: region, Resources: map[string]*state.Resource{
		"A": {PhysicalID: "theirs", ResourceType: "AWS::SQS::Queue", Properties: theirs},
	}}
	if _, err := w.states.Save(t.Context(), rec, ""); err != nil {
		t.Fatal(err)
	}
	w.finish(m)
	w.sound(m.runID)
	w.accounted("App")
}

func TestWhatAFailedCreationHasLeftMakesWayForTheNext(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{id: "the-name", remnant: true, fails: fails(provider.KindFailed)})
	w.cloud.script("delete A", script{fails: fails(provider.KindFailed)})
	w.deploy(timeout("1"))
	if d := cmp.Diff([]string{"the-name"}, w.pending("App")); d != "" {
		t.Fatalf("what awaits its cleanup (-want +got):\n%s", d)
	}
	w.cloud.forget()
	w.cloud.script("create A", script{id: "the-name"})
	w.cloud.script("delete A", script{})
	if h := w.deploy(timeout("1")); h.Result != runlog.ResultSucceeded || h.Counts.Created != 1 {
		t.Errorf("%s", w.story(h.RunID))
	}
	var steps []string
	for _, c := range w.cloud.calls {
		steps = append(steps, c.step)
	}
	if d := cmp.Diff([]string{"delete A", "create A"}, steps); d != "" {
		t.Errorf("the calls (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"the-name"}, w.cloud.exists()); d != "" {
		t.Errorf("what exists (-want +got):\n%s", d)
	}
	w.accounted("App")
}

func TestARollbackDoesNotMissTheRemnantOfAFailedCreation(t *testing.T) {
	w := newWorld(t)
	w.deploy(resources(object{"B": topic(object{})}))
	both := resources(object{"A": queue(object{}), "B": topic(object{}), "C": topic(object{"DisplayName": ref("A")})})
	w.cloud.script("create A", script{id: "the-name", remnant: true, fails: fails(provider.KindFailed)})
	w.cloud.script("delete A", script{fails: fails(provider.KindFailed)})
	w.deploy(both)
	w.cloud.script("create A", script{})
	w.cloud.script("delete A", script{})
	w.cloud.script("create C", script{fails: fails(provider.KindFailed)})
	h := w.deploy(both)
	w.sound(h.RunID)
	if d := cmp.Diff([]string{"B"}, sortedKeys(w.record("App"))); h.Result != runlog.ResultFailed || d != "" {
		t.Errorf("%s, the record (-want +got):\n%s\n%s", h.Result, d, w.story(h.RunID))
	}
	w.accounted("App")
}

// hanging is a provider whose calls are never answered.
type hanging struct{ *cloud }

func (h hanging) For(_ string, recorded provider.Route, _ []string) (provider.Provider, provider.Route, error) {
	return h, recorded, nil
}

func (h hanging) Create(ctx context.Context, _ provider.Request) (provider.Progress, error) {
	<-ctx.Done()
	return provider.Progress{}, ctx.Err()
}

func TestNoCallOutlivesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.engine.Providers = hanging{w.cloud}
		m := w.submitDeploy(timeout("1"))
		m.until(m.atItem("A"))
		began := time.Now()
		if status, err := m.provision(w.engine, "A"); failure(err) != run.ErrorUnavailable {
			t.Errorf("it answers %+v, %v", status, err)
		}
		op, err := w.log.Op(t.Context(), m.runID, "A")
		if err != nil || op.Status != runlog.OpIntent {
			t.Fatalf("the operation is %+v, %v", op, err)
		}
		if took := time.Since(began); took > op.Lease.Until.Sub(op.StartedAt) {
			t.Errorf("the call took %s, its lease was for %s", took, op.Lease.Until.Sub(op.StartedAt))
		}
	})
}
