package run_test

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// machine is one execution of run.asl.json, one call at a time, so that a test can do anything between two calls.
type machine struct {
	w           *world
	name, runID string
	// next is the planner call to make, unless items are left.
	next  run.PlannerInput
	wave  run.Step
	items []run.Item
	tries int
	// twice makes every call twice, and compares what the planner answers.
	twice bool
	ended bool
	// failed is why it has gone to the settle machine; result what Close answered.
	failed error
	result string
	// steps are the planner's answers, in order.
	steps []run.Step
	// onItem, when set, may take the place of an item's call.
	onItem func(it run.Item) (skip bool)
}

// start makes an execution, unless one of that name is there.
func (w *world) start(name, runID string) *machine {
	if m := w.machines[name]; m != nil {
		return m
	}
	m := &machine{w: w, name: name, runID: runID, next: run.PlannerInput{Action: run.ActionOpen, RunID: runID, Execution: name}}
	w.machines[name] = m
	return m
}

// stop ends the execution where it stands, without a word.
func (m *machine) stop() { m.ended = true }

// step makes one call.
func (m *machine) step() {
	m.w.Helper()
	if len(m.items) > 0 {
		it := m.items[0]
		if m.onItem != nil && m.onItem(it) {
			m.items, m.tries = m.items[1:], 0
			return
		}
		if err := m.item(it); m.retry(err) {
			return
		}
		// An item catches its own errors.
		m.items, m.tries = m.items[1:], 0
		return
	}
	if m.next.Action == run.ActionClose {
		m.close()
		return
	}
	step, err := m.plan()
	if m.retry(err) {
		return
	}
	if err != nil {
		m.settle(err)
		return
	}
	m.tries = 0
	m.steps = append(m.steps, step)
	m.follow(step)
}

// plan asks the planner.
func (m *machine) plan() (run.Step, error) {
	m.w.Helper()
	var step run.Step
	err := m.w.call(m.w.engine.HandlePlanner, m.next, &step)
	if err == nil && m.twice {
		var again run.Step
		if err := m.w.call(m.w.engine.HandlePlanner, m.next, &again); err != nil {
			m.w.Errorf("%s %d was answered, and fails when it is repeated: %v", m.next.Action, m.next.Decision, err)
		} else if d := cmp.Diff(step, again); d != "" {
			m.w.Errorf("%s %d is answered in another way the second time:\n%s", m.next.Action, m.next.Decision, d)
		}
	}
	return step, err
}

// retry reports whether the state machine repeats the call.
func (m *machine) retry(err error) bool {
	var failed *run.HandlerError
	if err == nil || !errors.As(err, &failed) || failed.Name != run.ErrorUnavailable || m.tries == 6 {
		return false
	}
	m.tries++
	m.w.faults.revive()
	m.w.clk.Advance(time.Duration(m.tries) * time.Second)
	return true
}

// follow does what a step says.
func (m *machine) follow(step run.Step) {
	m.w.Helper()
	m.next = run.PlannerInput{Action: run.ActionNext, RunID: step.RunID, Decision: step.Decision, Execution: m.name}
	switch step.Kind {
	case run.StepNext:
	case run.StepWave:
		if len(step.Items) == 0 || len(step.Items) > 200 {
			m.w.Errorf("a wave has %d items", len(step.Items))
		}
		m.wave, m.items = step, step.Items
	case run.StepWait:
		if step.Seconds <= 0 {
			m.w.Errorf("a wait of %d seconds", step.Seconds)
		}
		m.w.clk.Advance(time.Duration(step.Seconds) * time.Second)
	case run.StepContinue:
		// The predecessor waits for the successor, so for everybody else this is one execution.
		m.next.Execution = step.Successor
	case run.StepDone:
		m.next = run.PlannerInput{Action: run.ActionClose, RunID: m.runID, Execution: m.name}
	case run.StepRefused:
		m.ended, m.result = true, string(runlog.ResultFailed)
	default:
		m.w.Errorf("the planner answers %q", step.Kind)
		m.ended = true
	}
}

// item makes the call of one item of the wave.
func (m *machine) item(it run.Item) error {
	m.w.Helper()
	times := 1
	if m.twice {
		times = 2
	}
	var err error
	for range times {
		var status run.OperationStatus
		switch it.Kind {
		case "resource":
			err = m.w.call(m.w.engine.HandleProvisioner, run.ProvisionInput{
				RunID: m.runID, Wave: m.wave.Wave, Epoch: m.wave.Epoch, Slice: m.wave.Slice, Op: it.Op,
				LogicalID: it.LogicalID, Type: it.Type, Action: it.Action,
			}, &status)
		case "asset":
			err = m.w.call(m.w.engine.HandlePublisher, run.PublishInput{RunID: m.runID, Wave: m.wave.Wave, Epoch: m.wave.Epoch, Op: it.Op}, &status)
		case "stack":
			why, refused := m.w.unstartable[it.Execution]
			switch {
			case !refused:
				m.w.start(it.Execution, it.ChildRun)
			case why.Error != "":
				err = m.w.call(m.w.engine.HandlePlanner, run.PlannerInput{
					Action: run.ActionUnstarted, RunID: m.runID, Epoch: m.wave.Epoch, Op: it.Op, Refusal: &why, Execution: m.name,
				}, &status)
			}
		}
	}
	return err
}

func (m *machine) close() {
	m.w.Helper()
	var ended run.Ended
	err := m.w.call(m.w.engine.HandlePlanner, m.next, &ended)
	if err == nil && m.twice {
		var again run.Ended
		if err := m.w.call(m.w.engine.HandlePlanner, m.next, &again); err != nil || again != ended {
			m.w.Errorf("close is answered with %+v, then with %+v, %v", ended, again, err)
		}
	}
	if m.retry(err) {
		return
	}
	if err != nil {
		m.settle(err)
		return
	}
	m.ended, m.result = true, ended.Result
}

// settle hands the run to the settle machine, which runs to its end at once.
func (m *machine) settle(err error) {
	m.w.Helper()
	m.ended, m.failed = true, err
	m.w.faults.revive()
	m.w.settle(m.w.engine, m.runID)
}

// until makes calls until the next one is what the test waits for.
func (m *machine) until(what func() bool) {
	m.w.Helper()
	for range 20000 {
		if m.ended {
			m.w.Fatalf("run %s has ended before that: %s", m.runID, m.w.story(m.runID))
		}
		if what() {
			return
		}
		m.step()
	}
	m.w.Fatalf("run %s never comes to that: %s", m.runID, m.w.story(m.runID))
}

// atItem: the next call is this operation's.
func (m *machine) atItem(op string) func() bool {
	return func() bool { return len(m.items) > 0 && m.items[0].Op == op }
}

// atNext: the next call asks for a decision, after a wave.
func (m *machine) atNext() bool {
	return len(m.items) == 0 && m.next.Action == run.ActionNext && m.wave.Kind == run.StepWave
}

// atClose: the next call closes the run.
func (m *machine) atClose() bool { return m.next.Action == run.ActionClose }

// provision makes one provisioner call of the current wave with a given engine.
func (m *machine) provision(e *run.Engine, op string) (run.OperationStatus, error) {
	m.w.Helper()
	var status run.OperationStatus
	err := m.w.call(e.HandleProvisioner, run.ProvisionInput{
		RunID: m.runID, Wave: m.wave.Wave, Epoch: m.wave.Epoch, Slice: m.wave.Slice, Op: op,
	}, &status)
	return status, err
}

// ask asks the planner for a decision.
func (m *machine) ask(e *run.Engine, decision int) (run.Step, error) {
	m.w.Helper()
	var step run.Step
	err := m.w.call(e.HandlePlanner, run.PlannerInput{Action: run.ActionNext, RunID: m.runID, Decision: decision}, &step)
	return step, err
}

// failure is the name under which the state machine sees an error.
func failure(err error) string {
	var failed *run.HandlerError
	if errors.As(err, &failed) {
		return failed.Name
	}
	return ""
}

var _ run.Executions = (*world)(nil)
