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

// Bounds of the state machine.
const (
	// maxStrikes is how often an operation may be sent to a function that ends without a word about it.
	maxStrikes = 5
	// defaultHistory is the number of events after which a run goes on in a successor execution; Step
	// Functions ends an execution at 25,000
	// (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html).
	defaultHistory = 14000
	// The slices of a wave: short while other work could be unblocked, long when nothing else can start.
	shortSlice = 5 * time.Second
	longSlice  = 5 * time.Minute
	// maxWait is the longest wait between two looks at operations in flight. A run that is cancelled meanwhile notices
	// it then.
	maxWait = 30 * time.Second
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
	// stop is who has cancelled the run: nothing new is begun.
	stop *Cancellation
	// followed counts the stack runs in flight (of a deployment).
	followed int
}

// Next folds what the last wave has done and decides what comes now. Decision n is made once: asked again,
// Next answers what it has answered before.
func (e *Engine) Next(ctx context.Context, in PlannerInput) (Step, error) {
	h, err := e.Log.Header(ctx, in.RunID)
	if err != nil {
		return Step{}, fmt.Errorf("reading the header of run %s: %w", in.RunID, err)
	}
	if !carries(h, in.Execution) {
		return Step{}, stranger(h, in.Execution)
	}
	var made decisionRecord
	switch err := getJSON(ctx, e.Objects, decisionKey(in.RunID, in.Decision), &made); {
	case err == nil:
		return e.remember(ctx, h, made)
	case !errors.Is(err, objectstore.ErrNotFound):
		return Step{}, err
	}
	switch {
	case h.Result != "":
		return Step{RunID: h.RunID, Kind: StepDone, Decision: in.Decision}, nil
	case h.Status == runlog.StatusSettling:
		return Step{}, fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
	case h.Status == runlog.StatusNew:
		return e.Open(ctx, in) // Open has waited for something, and goes on
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
		step, err = t.decideStack(actingFor(ctx, h.RunID, t.req.Stacks[0]))
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
	if err := t.e.openFacts(ctx, t.h.Root, &t.file.Facts); err != nil {
		return fmt.Errorf("reading the parameters of run %s: %w", t.h.RunID, err)
	}
	t.prev = decisionRecord{Phase: plan.PhaseForward}
	if t.n > 1 {
		if err := getJSON(ctx, t.e.Objects, decisionKey(t.h.RunID, t.n-1), &t.prev); err != nil {
			return err
		}
	}
	var err error
	if t.stop, err = t.e.Cancellation(ctx, t.h); err != nil {
		return err
	}
	ops, err := t.e.Log.Ops(ctx, t.h.RunID)
	if err != nil {
		return fmt.Errorf("reading the journal of run %s: %w", t.h.RunID, err)
	}
	t.ops = make(map[string]runlog.Op, len(ops))
	for _, op := range ops {
		t.ops[op.OpID] = op
	}
	if err := t.file.addUndone(t.ops); err != nil {
		return err
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
			if retryDue(op) && t.stop == nil {
				s.Status, s.NotBefore = plan.StatusRunning, t.e.retryAt(op)
				if t.freed(op) {
					s.NotBefore = time.Time{}
				}
			}
		default:
			s.Status, s.NotBefore = plan.StatusRunning, op.NotBefore
		}
		out[planned.ID] = s
	}
	return out
}

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
	now, attempt := t.e.Clock.Now(), t.attempt(planned.ID)
	return runlog.Op{
		OpID: planned.ID, Kind: string(planned.Kind), Action: string(planned.Action),
		LogicalID: planned.LogicalID, Type: planned.Type, Attempt: attempt,
		Token:  token(t.h.RunID, planned.ID, string(planned.Action), attempt),
		Status: status, Reason: reason, StartedAt: now, FinishedAt: now,
		Version: t.ops[planned.ID].Version,
	}
}

// skip records operations that will not run, and says so.
func (t *turn) skip(ctx context.Context, wave plan.Wave, byID map[string]plan.Operation) error {
	for _, id := range wave.Skip {
		planned, reason := byID[id], "something it depends on was not done"
		if t.stop != nil && wave.Because[id] == "" {
			reason = reasonCancelled
		}
		op := t.ended(planned, runlog.OpSkipped, reason)
		if err := t.put(ctx, op); err != nil {
			return err
		}
		t.e.tell(ctx, t.h.RunID, t.about(), t.ops[id], runlog.OpSkip)
	}
	return nil
}

// about is the part of an operation's input that events need.
func (t *turn) about() operationInput {
	in := operationInput{
		Stack: t.h.Stack.Name, Region: t.h.Stack.Region, Account: t.h.Stack.Account,
		Root: t.h.Root, Command: t.h.Command, Mask: t.file.Facts.NoEcho.Handle,
	}
	if t.h.Kind == runlog.KindStack && len(t.req.Stacks) == 1 {
		in.Role = t.req.Stacks[0].Role
	}
	return in
}

// strike counts the operations of the last wave whose function has not come to its end: it could not be invoked,
// or died on the way. One that does so time after time is given up: it would keep the run going for ever.
func (t *turn) strike(ctx context.Context, byID map[string]plan.Operation) error {
	for _, item := range t.prev.Step.Items {
		op, known := t.ops[item.Op]
		planned, ok := byID[item.Op]
		if !ok || planned.Kind == plan.KindStack || known && !t.struck(op) {
			continue
		}
		n := t.prev.Strikes[item.Op] + 1
		t.rec.Strikes[item.Op] = n
		if n < maxStrikes {
			continue
		}
		if !known {
			op = t.ended(planned, runlog.OpFailed, "")
		}
		if err := t.giveUp(ctx, op, n, known); err != nil {
			return err
		}
	}
	return nil
}

// struck: the last wave has left the operation neither ended nor in the provider's hands.
func (t *turn) struck(op runlog.Op) bool {
	return !op.Status.Ended() && (op.Wave < t.n-1 || op.Lease.Holder != "")
}

// codeNotInvoked marks an operation whose function has never run.
const codeNotInvoked = "NotInvoked"

// giveUp fails an operation that no function brings to its end.
func (t *turn) giveUp(ctx context.Context, op runlog.Op, times int, begun bool) error {
	op.Status, op.FinishedAt, op.Lease = runlog.OpFailed, t.e.Clock.Now(), runlog.Lease{}
	op.Error = &runlog.OpError{
		Kind: provider.KindFailed, Code: codeNotInvoked,
		Message: "the function for this operation ended " + strconv.Itoa(times) + " times without recording anything; see its log",
	}
	if begun {
		op.Error.Code = "Abandoned"
		op.Error.Message = "the function for this operation died " + strconv.Itoa(times) +
			" times in the middle of it; see its log, and look in AWS for what it has made"
	}
	if err := t.put(ctx, op); err != nil {
		return err
	}
	event := runlog.OpFail
	if op.Kind == string(plan.KindAsset) {
		event = runlog.AssetFailed
	}
	t.e.tell(ctx, t.h.RunID, t.about(), t.ops[op.OpID], event)
	return nil
}

// waitFor is a decision to wait until the next poll or attempt is due. Nothing can happen before: everything in
// flight is polled by the waves that this decides.
func (t *turn) waitFor(d time.Duration) Step {
	seconds := max(1, int((min(d, maxWait)+time.Second-1)/time.Second))
	t.rec.Until = t.now().Add(time.Duration(seconds) * time.Second)
	return Step{Kind: StepWait, Seconds: seconds}
}

// now is the time, and at least the end of the wait that has just been.
func (t *turn) now() time.Time {
	if now := t.e.Clock.Now(); now.After(t.prev.Until) {
		return now
	}
	return t.prev.Until
}

// waitForStacks is a decision to wait for the runs of stacks, which may end at any time: 1, 1, 2, 3, then 5 seconds.
func (t *turn) waitForStacks() Step {
	t.rec.Idle = t.prev.Idle + 1
	steps := []int{1, 1, 2, 3, 5}
	return Step{Kind: StepWait, Seconds: steps[min(t.prev.Idle, len(steps)-1)]}
}

// slice is how long the provisioners of a wave may stay: long when nothing but they can unblock what waits. Else
// they come back soon, so that what ends early is followed up; but the longer nothing has ended, the less often
// it pays to look. A twentieth of that time costs at most 5 %. A wave of several turns of the Map gets less per
// item, so that the whole stays well within the time of the lock.
func (t *turn) slice(items, inFlight, waiting int) time.Duration {
	turns := (items + plan.MapWidth - 1) / plan.MapWidth
	most := max(longSlice/time.Duration(max(turns, 1)), shortSlice)
	if waiting == 0 || items == 1 && inFlight <= 1 {
		return most
	}
	last := t.h.StartedAt
	for _, op := range t.ops {
		if op.FinishedAt.After(last) {
			last = op.FinishedAt
		}
	}
	return min(max(t.e.Clock.Now().Sub(last)/20, shortSlice), most)
}

// commit writes the decision, once, and moves the header on.
func (t *turn) commit(ctx context.Context, step Step) (Step, error) {
	step.RunID, step.Epoch, step.Decision = t.h.RunID, t.h.Epoch, t.n+1
	t.rec.History += historyOf(step)
	if t.rec.History > t.e.historyBudget() && t.prev.History > 0 && (step.Kind == StepWave || step.Kind == StepWait) {
		// The work of this decision is done by the next one, in the successor. A step that alone is too much for the
		// budget would be too much for the successor, too: it is done.
		step = Step{
			RunID: t.h.RunID, Kind: StepContinue, Decision: t.n + 1, Epoch: t.h.Epoch,
			Successor: successorOf(t.h, t.n),
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

// writeWave stores the inputs of a wave and returns the items that have one. Where a twin was faster its inputs
// stand, and what is not among them has to wait for the next wave.
func (t *turn) writeWave(ctx context.Context, inputs map[string]operationInput, items []Item) ([]Item, error) {
	w := waveInput{Wave: t.n, Operations: make(map[string]json.RawMessage, len(inputs))}
	for id, in := range inputs {
		in, err := t.seal(ctx, in)
		if err != nil {
			return nil, err
		}
		raw, err := marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encoding the input of %s: %w", id, err)
		}
		w.Operations[id] = raw
	}
	if err := putOnce(ctx, t.e.Objects, waveKey(t.h.RunID, t.n), &w); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(items, func(it Item) bool {
		_, ok := w.Operations[it.Op]
		return !ok && it.Kind != string(plan.KindStack)
	}), nil
}

func index(p plan.Plan) map[string]plan.Operation {
	byID := make(map[string]plan.Operation, len(p.Operations))
	for _, op := range p.Operations {
		byID[op.ID] = op
	}
	return byID
}
