package run_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// before and after are two versions of a stack: Same stays, Changed is updated, Replaced is replaced, Reader is
// updated because of that, Gone is deleted, New is created.
func before() object {
	return object{
		"Resources": object{
			"Same":     topic(object{"DisplayName": "same"}),
			"Changed":  topic(object{"DisplayName": "one"}),
			"Replaced": topic(object{"DisplayName": "r"}),
			"Reader":   queue(object{"KmsMasterKeyId": ref("Replaced")}),
			"Gone":     queue(object{"KmsMasterKeyId": ref("Same")}),
		},
		"Outputs": object{"Id": object{"Value": ref("Replaced"), "Export": object{"Name": "the-id"}}},
	}
}

func after() object {
	t := before()
	r := t["Resources"].(object)
	r["Changed"] = topic(object{"DisplayName": "two"})
	r["Replaced"] = topic(object{"DisplayName": "r", "FifoTopic": true})
	r["New"] = queue(object{"KmsMasterKeyId": att("Changed", "TopicArn")})
	delete(r, "Gone")
	return t
}

// stage brings a world to the point where a command is to be tested.
type stage struct {
	name string
	// prepare leads to what stands before, submit asks for the run.
	prepare func(w *world)
	submit  func(w *world) *machine
	result  runlog.Result
	// effects are the steps that must have been carried out once each, under one token.
	effects []string
}

func stages() []stage {
	return []stage{
		{
			name: "create", prepare: func(*world) {}, result: runlog.ResultSucceeded,
			submit:  func(w *world) *machine { return w.submitDeploy(before()) },
			effects: []string{"create Same", "create Changed", "create Replaced", "create Reader", "create Gone"},
		},
		{
			name: "change", prepare: func(w *world) { w.deploy(before()) }, result: runlog.ResultSucceeded,
			submit:  func(w *world) *machine { return w.submitDeploy(after()) },
			effects: []string{"update Changed", "create Replaced", "update Reader", "create New", "delete Replaced", "delete Gone"},
		},
		{
			name: "roll back", prepare: func(w *world) { w.deploy(before()) }, result: runlog.ResultFailed,
			submit: func(w *world) *machine {
				// The update fails, and undoing it does not.
				w.cloud.script("update Reader", script{fails: failsFirst()})
				return w.submitDeploy(after())
			},
		},
		{
			name: "destroy", prepare: func(w *world) { w.deploy(after()) }, result: runlog.ResultSucceeded,
			submit:  func(w *world) *machine { return w.submit(order{stack: "App", command: runlog.CommandDestroy}) },
			effects: []string{"delete Same", "delete Changed", "delete Replaced", "delete Reader", "delete New"},
		},
	}
}

// world builds the stage.
func (s stage) world(t testing.TB) (*world, *machine) {
	w := newWorld(t)
	s.prepare(w)
	w.cloud.forget()
	*w.faults = faults{}
	return w, s.submit(w)
}

// check checks the end of a run that nothing has interrupted for good.
func (s stage) check(w *world, m *machine) {
	w.Helper()
	w.sound(m.runID)
	w.accounted("App")
	if h := w.header(m.runID); h.Result != s.result {
		w.Errorf("the run is %s: %s", h.Result, w.story(m.runID))
	}
	if s.effects == nil {
		return
	}
	want := map[string]int{}
	for _, step := range s.effects {
		want[step] = 1
	}
	if d := cmp.Diff(want, w.cloud.effects()); d != "" {
		w.Errorf("the calls by token (-want +got):\n%s", d)
	}
}

// end is what a run leaves behind. The exports index is not part of it: it is a cache that a run may fail to update.
func (w *world) end() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, key := range []string{w.states.StateKey("App", region), w.states.JournalKey("App", region)} {
		o, err := w.objects.Get(context.Background(), key)
		if err != nil {
			continue
		}
		out[key] = stripped(w.TB, o.Body)
	}
	out["pending"] = fmt.Sprint(w.pending("App"))
	return out
}

func TestARunLeavesTheSameHoweverOftenEveryCallIsMade(t *testing.T) {
	for _, s := range stages() {
		t.Run(s.name, func(t *testing.T) {
			once, m := s.world(t)
			once.finish(m)
			s.check(once, m)
			twice, again := s.world(t)
			again.twice = true
			twice.finish(again)
			s.check(twice, again)
			if d := cmp.Diff(once.end(), twice.end()); d != "" {
				t.Errorf("what is left (-once +twice):\n%s", d)
			}
			if d := cmp.Diff(once.cloud.effects(), twice.cloud.effects()); d != "" {
				t.Errorf("effects (-once +twice):\n%s", d)
			}
			if a, b := len(once.events(m.runID, runlog.OpDone)), len(twice.events(again.runID, runlog.OpDone)); a != b {
				t.Errorf("%d operations are told to be done, twice %d", a, b)
			}
		})
	}
}

func TestAnOldDecisionIsRepeatedAsItWas(t *testing.T) {
	w, m := stages()[1].world(t)
	w.finish(m)
	for _, step := range m.steps[1:] {
		again, err := m.ask(w.engine, step.Decision-1)
		if err != nil || cmp.Diff(step, again) != "" {
			t.Errorf("decision %d is repeated as %+v, %v", step.Decision-1, again, err)
		}
	}
	stages()[1].check(w, m)
}

func TestADecisionOutOfTurnIsRefused(t *testing.T) {
	w, m := stages()[1].world(t)
	m.until(func() bool { return m.atNext() && m.next.Decision > 1 })
	for _, n := range []int{m.next.Decision + 1, m.next.Decision + 7} {
		if _, err := m.ask(w.engine, n); failure(err) != run.ErrorBadRequest {
			t.Errorf("decision %d while %d is due: %v", n, m.next.Decision, err)
		}
	}
	w.finish(m)
	stages()[1].check(w, m)
}

func TestNextGoesOnAfterItWasAskedTheLastDecisionAgain(t *testing.T) {
	w, m := stages()[1].world(t)
	m.until(func() bool { return m.atNext() && m.next.Decision > 2 })
	last, err := m.ask(w.engine, m.next.Decision-1)
	if err != nil || last.Kind != run.StepWave {
		t.Fatalf("%+v, %v", last, err)
	}
	w.finish(m)
	stages()[1].check(w, m)
}

// TestTwinsOfEveryPlannerCall makes every call of the planner in four processes at once.
func TestTwinsOfEveryPlannerCall(t *testing.T) {
	for _, s := range stages() {
		t.Run(s.name, func(t *testing.T) {
			w, m := s.world(t)
			for !m.ended {
				if len(m.items) == 0 && m.next.Action == run.ActionNext {
					var wg sync.WaitGroup
					for i := range 4 {
						wg.Go(func() {
							_, err := m.ask(w.process(fmt.Sprint("twin-", i)), m.next.Decision)
							if err != nil && failure(err) != run.ErrorUnavailable {
								t.Errorf("decision %d: %v", m.next.Decision, err)
							}
						})
					}
					wg.Wait()
				}
				m.step()
			}
			s.check(w, m)
		})
	}
}

func TestTwinsOfEveryProvisionerCall(t *testing.T) {
	w, m := stages()[1].world(t)
	m.onItem = func(it run.Item) bool {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				if _, err := m.provision(w.process(fmt.Sprint("twin-", i)), it.Op); err != nil && failure(err) != run.ErrorUnavailable {
					t.Errorf("%s: %v", it.Op, err)
				}
			})
		}
		wg.Wait()
		return false
	}
	w.finish(m)
	stages()[1].check(w, m)
}

func TestTwinsOfClose(t *testing.T) {
	for _, s := range stages() {
		w, m := s.world(t)
		m.until(m.atClose)
		// The twin closes the run while this one is in the middle of it, at any of its calls.
		w.faults.n, w.faults.names = 0, nil
		for _, at := range []string{"lock.json", "ops", "state.json", "update header OPEN", "append RUN_FINISHED", "update header CLOSED"} {
			w, m := s.world(t)
			m.until(m.atClose)
			w.faults.meanwhile(at, func() {
				var ended run.Ended
				if err := w.call(w.process("twin").HandlePlanner, m.next, &ended); err != nil {
					t.Errorf("%s: the twin at %q: %v", s.name, at, err)
				}
			})
			w.finish(m)
			if m.failed != nil || m.result != string(s.result) {
				t.Errorf("%s: with a twin at %q close answers %q, %v", s.name, at, m.result, m.failed)
			}
			s.check(w, m)
		}
	}
}

func TestALateProvisionerOfAnEarlierWaveChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{fails: failsUntil(3, "Throttled")})
	m := w.submitDeploy(resources(object{"A": topic(object{})}))
	m.until(m.atNext)
	late := m.wave
	m.until(func() bool { return m.wave.Wave > late.Wave && m.atNext() })
	calls := len(w.cloud.calls)
	now := m.wave
	m.wave = late
	if _, err := m.provision(w.engine, "A"); err != nil {
		t.Fatal(err)
	}
	m.wave = now
	if n := len(w.cloud.calls); n != calls {
		t.Errorf("the late message has made %d calls", n-calls)
	}
	w.finish(m)
	w.sound(m.runID)
	if got := w.cloud.effects()["create A"]; got != 3 {
		t.Errorf("A was tried %d times, want 3", got)
	}
}

func TestALateMessageDoesNotTakeASlowOperationBack(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{takes: 20 * time.Minute})
	m := w.submitDeploy(one("A", topic(object{})))
	m.until(m.atNext)
	late := m.wave
	m.until(func() bool { return m.wave.Wave > late.Wave && m.atNext() })
	calls, now := len(w.cloud.calls), m.wave
	m.wave = late
	if _, err := m.provision(w.engine, "A"); err != nil {
		t.Fatal(err)
	}
	m.wave = now
	if op, err := w.log.Op(t.Context(), m.runID, "A"); err != nil || op.Wave != now.Wave || len(w.cloud.calls) != calls {
		t.Errorf("the operation is in wave %d of %d after %d calls, %v", op.Wave, now.Wave, len(w.cloud.calls)-calls, err)
	}
	w.finish(m)
	w.sound(m.runID)
}

// TestOfTwoDecisionsTheFirstStands: a twin decides at another moment, and so otherwise, just before this process
// writes its decision.
func TestOfTwoDecisionsTheFirstStands(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{takes: 20 * time.Minute})
	m := w.submitDeploy(one("A", topic(object{})))
	m.until(func() bool { return m.atNext() && m.wave.Wave > 0 })
	n := m.next.Decision
	// What is in flight is due in ten seconds: a wait now, a wave a minute later.
	op, err := w.log.Op(t.Context(), m.runID, "A")
	if err != nil {
		t.Fatal(err)
	}
	op.NotBefore = w.clk.Now().Add(10 * time.Second)
	if _, err := w.log.PutOp(t.Context(), m.runID, runlog.StatusOpen, op); err != nil {
		t.Fatal(err)
	}
	var twin run.Step
	w.faults.meanwhile(fmt.Sprintf("put slipway/runs/%s/decisions/%05d", m.runID, n), func() {
		w.clk.Advance(time.Minute)
		twin, err = m.ask(w.process("twin"), n)
	})
	mine, mineErr := m.ask(w.engine, n)
	if err != nil || mineErr != nil {
		t.Fatal(err, mineErr)
	}
	if twin.Kind != run.StepWave || cmp.Diff(twin, mine) != "" {
		t.Errorf("the twin has decided %+v, this process %+v", twin, mine)
	}
	w.finish(m)
	w.sound(m.runID)
}

func TestRequestsThatAreNotOursAreRefused(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(before())
	for name, call := range map[string]func() error{
		"an unknown action": func() error {
			var out any
			return w.call(w.engine.HandlePlanner, run.PlannerInput{Action: "dance", RunID: m.runID}, &out)
		},
		"the janitor asked to plan": func() error {
			var out any
			return w.call(w.engine.HandleJanitor, run.SettleInput{Action: "next", RunID: m.runID}, &out)
		},
		"a payload that is not JSON": func() error {
			_, err := w.engine.HandleProvisioner(context.Background(), []byte("{"))
			return err
		},
	} {
		if err := call(); failure(err) != run.ErrorBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sortedKeys lists the resources of a record.
func sortedKeys(rec *state.Record) []string {
	var out []string
	if rec != nil {
		for id := range rec.Resources {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// TestTheBeginOfAnOperationIsToldOnce: also where the process dies before it has told it, and where another wave goes on.
func TestTheBeginOfAnOperationIsToldOnce(t *testing.T) {
	for _, at := range []string{"append RESOURCE_STARTED", "put op A SUCCEEDED"} {
		w := newWorld(t)
		m := w.submitDeploy(one("A", topic(object{})))
		m.until(m.atItem("A"))
		m.onItem = func(run.Item) bool { // the function dies, and is not invoked again in this wave
			w.faults.killAt(at, false)
			_, _ = m.provision(w.engine, "A")
			w.faults.revive()
			if strings.HasPrefix(at, "append") {
				_, _ = m.provision(w.engine, "A")
			}
			m.onItem = nil
			return true
		}
		h := w.finish(m)
		if told := w.events(h.RunID, runlog.OpStarted); len(told) != 1 || h.Result != runlog.ResultSucceeded {
			t.Errorf("dead at %s: %d events tell of the begin: %s", at, len(told), w.story(h.RunID))
		}
	}
}
