package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Bounds of the state machine and of retries.
const (
	// maxAttempts is how often an operation is tried before its failure stands.
	maxAttempts = 5
	// maxStrikes is how often an operation may be sent to a provisioner that leaves no trace of it.
	maxStrikes = 5
	// historyBudget is the number of events after which the run goes on in a successor execution; Step
	// Functions ends an execution at 25,000.
	historyBudget = 14000
	// The slices of a wave: short while other work could be unblocked, long when nothing else can start.
	shortSlice = 5 * time.Second
	longSlice  = 5 * time.Minute
)

// turn is one call of Next.
type turn struct {
	e    *Engine
	h    runlog.Header
	n    int // the decision that is made
	prev decisionRecord
	req  Request
	file planFile
	ops  map[string]runlog.Op
	rec  decisionRecord
	// rollback is the plan that undoes this run, once it is rolling back.
	rollback *plan.Plan
}

// Next folds what the last wave has done and decides what comes now. Decision n is made once: asked again,
// Next answers what it has answered before.
func (e *Engine) Next(ctx context.Context, in PlannerInput) (Step, error) {
	h, err := e.Log.Header(ctx, in.RunID)
	if err != nil {
		return Step{}, fmt.Errorf("reading the header of run %s: %w", in.RunID, err)
	}
	var made decisionRecord
	switch err := getJSON(ctx, e.Objects, decisionKey(in.RunID, in.Decision), &made); {
	case err == nil:
		return e.remember(ctx, h, made)
	case !errors.Is(err, objectstore.ErrNotFound):
		return Step{}, err
	}
	switch h.Status {
	case runlog.StatusClosed:
		return Step{RunID: h.RunID, Kind: StepDone, Decision: in.Decision}, nil
	case runlog.StatusSettling:
		return Step{}, fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
	case runlog.StatusNew:
		return Step{}, &HandlerError{Name: ErrorBadRequest, Err: fmt.Errorf("run %s has not been opened", h.RunID)}
	}
	if in.Decision != h.Decision+1 {
		return Step{}, &HandlerError{Name: ErrorBadRequest, Err: fmt.Errorf("run %s is at decision %d, %d was asked for", h.RunID, h.Decision, in.Decision)}
	}
	t := &turn{e: e, h: h, n: in.Decision}
	if err := t.load(ctx); err != nil {
		return Step{}, err
	}
	var step Step
	if h.Kind == runlog.KindDeployment {
		step, err = t.decideDeployment(ctx)
	} else {
		step, err = t.decideStack(ctx)
	}
	if err != nil {
		return Step{}, err
	}
	return t.commit(ctx, step)
}

// remember repeats a decision that stands, and finishes what the process that made it may have left undone.
func (e *Engine) remember(ctx context.Context, h runlog.Header, made decisionRecord) (Step, error) {
	if h.Status == runlog.StatusSettling {
		return Step{}, fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
	}
	if h.Decision >= made.Decision || h.Status != runlog.StatusOpen {
		return made.Step, nil
	}
	h.Decision, h.Phase, h.Waves = made.Decision, string(made.Phase), made.Waves
	if _, err := e.Log.UpdateHeader(ctx, h); err != nil && !errors.Is(err, runlog.ErrConflict) {
		return Step{}, fmt.Errorf("updating the header of run %s: %w", h.RunID, err)
	}
	return made.Step, nil
}

func (t *turn) load(ctx context.Context) error {
	if err := getJSON(ctx, t.e.Objects, requestKey(t.h.RunID), &t.req); err != nil {
		return err
	}
	if err := getJSON(ctx, t.e.Objects, planKey(t.h.RunID), &t.file); err != nil {
		return err
	}
	t.prev = decisionRecord{Phase: plan.PhaseForward}
	if t.n > 1 {
		if err := getJSON(ctx, t.e.Objects, decisionKey(t.h.RunID, t.n-1), &t.prev); err != nil {
			return err
		}
	}
	ops, err := t.e.Log.Ops(ctx, t.h.RunID)
	if err != nil {
		return fmt.Errorf("reading the journal of run %s: %w", t.h.RunID, err)
	}
	t.ops = make(map[string]runlog.Op, len(ops))
	for _, op := range ops {
		t.ops[op.OpID] = op
	}
	t.rec = decisionRecord{
		Decision: t.n, Phase: t.prev.Phase, Waves: t.prev.Waves, History: t.prev.History,
		Folded: slices.Clone(t.prev.Folded), Strikes: map[string]int{},
	}
	if t.prev.Phase == plan.PhaseRollback {
		t.rollback = new(plan.Plan)
		return getJSON(ctx, t.e.Objects, rollbackPlanKey(t.h.RunID), t.rollback)
	}
	return nil
}

// current is the plan that is being carried out: the run's own, or the one that undoes it.
func (t *turn) current() plan.Plan {
	if t.rollback != nil {
		return *t.rollback
	}
	return t.file.Plan
}

// states tells the wave chooser where every operation stands.
func (t *turn) states() map[string]plan.OpState {
	out := make(map[string]plan.OpState, len(t.ops))
	for _, planned := range t.current().Operations {
		op, ok := t.ops[planned.ID]
		if !ok {
			continue
		}
		s := plan.OpState{}
		switch op.Status {
		case runlog.OpSucceeded:
			s.Status = plan.StatusSucceeded
		case runlog.OpSkipped:
			s.Status = plan.StatusSkipped
		case runlog.OpFailed:
			s.Status = plan.StatusFailed
			if retryDue(op) {
				s.Status, s.NotBefore = plan.StatusRunning, op.FinishedAt.Add(backoff(op.Attempt))
			}
		default:
			s.Status, s.NotBefore = plan.StatusRunning, op.NotBefore
		}
		out[planned.ID] = s
	}
	return out
}

// retryDue reports whether a failed operation is to be tried again.
func retryDue(op runlog.Op) bool {
	return op.Status == runlog.OpFailed && op.Error != nil && provider.RetryableKind(op.Error.Kind) && op.Attempt < maxAttempts
}

// backoff is the pause before the next attempt: 1, 2, 4, 8 seconds.
func backoff(attempt int) time.Duration { return time.Second << min(attempt-1, 3) }

// attempt is the number of the attempt that an operation is at, or is due to begin.
func (t *turn) attempt(id string) int {
	op, ok := t.ops[id]
	switch {
	case !ok:
		return 1
	case retryDue(op):
		return op.Attempt + 1
	}
	return op.Attempt
}

// put stores an operation record that the planner itself writes.
func (t *turn) put(ctx context.Context, op runlog.Op) error {
	op.Epoch, op.Wave = t.h.Epoch, t.n
	stored, err := t.e.Log.PutOp(ctx, t.h.RunID, runlog.StatusOpen, op)
	if err != nil {
		return fmt.Errorf("recording %s: %w", op.OpID, err)
	}
	t.ops[op.OpID] = stored
	return nil
}

// ended builds the record of an operation that the planner ends itself, without a call.
func (t *turn) ended(planned plan.Operation, status runlog.OpStatus, reason string) runlog.Op {
	now := t.e.Clock.Now()
	return runlog.Op{
		OpID: planned.ID, Kind: string(planned.Kind), Action: string(planned.Action),
		LogicalID: planned.LogicalID, Type: planned.Type, Attempt: max(t.attempt(planned.ID), 1),
		Token:  token(t.h.RunID, planned.ID, string(planned.Action), 1),
		Status: status, Reason: reason, StartedAt: now, FinishedAt: now,
		Version: t.ops[planned.ID].Version,
	}
}

// skip records operations that will not run, and says so.
func (t *turn) skip(ctx context.Context, ids []string, byID map[string]plan.Operation) error {
	for _, id := range ids {
		planned := byID[id]
		op := t.ended(planned, runlog.OpSkipped, "something it depends on was not done")
		if err := t.put(ctx, op); err != nil {
			return err
		}
		t.e.tell(ctx, t.h.RunID, t.about(), t.ops[id], runlog.OpSkip)
	}
	return nil
}

// about is the part of an operation's input that events need.
func (t *turn) about() operationInput {
	return operationInput{
		Stack: t.h.Stack.Name, Region: t.h.Stack.Region, Account: t.h.Stack.Account,
		Root: t.h.Root, Command: t.h.Command,
	}
}

// strike counts operations that were in the last wave and left no trace: their function could not be
// invoked, or died before its first write. One that has too many is given up.
func (t *turn) strike(ctx context.Context, byID map[string]plan.Operation) error {
	for _, item := range t.prev.Step.Items {
		if _, traced := t.ops[item.Op]; traced {
			continue
		}
		n := t.prev.Strikes[item.Op] + 1
		t.rec.Strikes[item.Op] = n
		planned, ok := byID[item.Op]
		if n < maxStrikes || !ok {
			continue
		}
		op := t.ended(planned, runlog.OpFailed, "")
		op.Error = &runlog.OpError{
			Kind: provider.KindFailed, Code: "NotInvoked",
			Message: "the function for this operation ended " + strconv.Itoa(n) + " times without recording anything; see its log",
		}
		if err := t.put(ctx, op); err != nil {
			return err
		}
		t.e.tell(ctx, t.h.RunID, t.about(), t.ops[item.Op], runlog.OpFail)
	}
	return nil
}

// waitStep is a decision to wait. Waits grow while nothing ends: 1, 1, 2, 3, 5, 8 … 20 seconds.
func (t *turn) waitStep(least time.Duration) Step {
	t.rec.Idle = t.prev.Idle + 1
	steps := []int{1, 1, 2, 3, 5, 8, 13, 20}
	seconds := steps[min(t.prev.Idle, len(steps)-1)]
	if s := int((least + time.Second - 1) / time.Second); s > 0 && s < seconds {
		seconds = s
	}
	return Step{Kind: StepWait, Seconds: seconds}
}

// commit writes the decision, once, and moves the header on.
func (t *turn) commit(ctx context.Context, step Step) (Step, error) {
	step.RunID, step.Epoch, step.Decision = t.h.RunID, t.h.Epoch, t.n+1
	t.rec.History += historyOf(step)
	if t.rec.History > historyBudget && (step.Kind == StepWave || step.Kind == StepWait) {
		// The work of this decision is done by the next one, in the successor.
		step = Step{
			RunID: t.h.RunID, Kind: StepContinue, Decision: t.n + 1, Epoch: t.h.Epoch,
			Successor: ExecutionName(t.h.Stack.Name+"-"+strconv.Itoa(t.n), t.h.Command, t.h.RunID),
		}
		t.rec.History = 0
	}
	if step.Kind == StepWave {
		t.rec.Waves++
	}
	t.rec.Step = step
	if err := putOnce(ctx, t.e.Objects, decisionKey(t.h.RunID, t.n), &t.rec); err != nil {
		return Step{}, err
	}
	t.h.Decision, t.h.Phase, t.h.Waves = t.n, string(t.rec.Phase), t.rec.Waves
	_, err := t.e.Log.UpdateHeader(ctx, t.h)
	switch {
	case errors.Is(err, runlog.ErrConflict):
		// Somebody else moved the header: a twin of this call, or a fence. The fence must win.
		now, err := t.e.Log.Header(ctx, t.h.RunID)
		if err != nil {
			return Step{}, fmt.Errorf("reading the header of run %s: %w", t.h.RunID, err)
		}
		return t.e.remember(ctx, now, t.rec)
	case err != nil:
		return Step{}, fmt.Errorf("updating the header of run %s: %w", t.h.RunID, err)
	}
	return t.rec.Step, nil
}

// historyOf estimates how many history events a step will cost, generously: the Lambda task and choice around
// it, and for every item its iteration, choice and task with a retry.
func historyOf(s Step) int {
	n := 12
	if s.Kind == StepWave {
		n += 6 + 14*len(s.Items)
	}
	return n
}

// item shows an operation to the state machine.
func item(op plan.Operation) Item {
	return Item{Kind: string(op.Kind), Op: op.ID, LogicalID: op.LogicalID, Type: op.Type, Action: string(op.Action)}
}

// writeWave stores the inputs of a wave.
func (t *turn) writeWave(ctx context.Context, inputs map[string]operationInput) error {
	w := waveInput{Wave: t.n, Operations: make(map[string]json.RawMessage, len(inputs))}
	for id, in := range inputs {
		raw, err := marshal(in)
		if err != nil {
			return fmt.Errorf("encoding the input of %s: %w", id, err)
		}
		w.Operations[id] = raw
	}
	return putOnce(ctx, t.e.Objects, waveKey(t.h.RunID, t.n), &w)
}

func index(p plan.Plan) map[string]plan.Operation {
	byID := make(map[string]plan.Operation, len(p.Operations))
	for _, op := range p.Operations {
		byID[op.ID] = op
	}
	return byID
}
