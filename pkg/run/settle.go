package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// settleSlice is how long one call of Settle works on an open operation before it answers.
const settleSlice = 4 * time.Minute

// Settle ends a run whose execution has died. It fences the run, so that a late process of it is refused;
// outwaits what may still be working; recovers every open operation under its own token; folds; leaves a
// rollback journal; closes the run and frees its lock. It may be repeated, and run beside itself or beside
// the live run: the fence decides who goes on.
func (e *Engine) Settle(ctx context.Context, runID string) (Settled, error) {
	h, err := e.Log.Header(ctx, runID)
	if err != nil {
		return Settled{}, fmt.Errorf("reading the header of run %s: %w", runID, err)
	}
	if h.Status == runlog.StatusClosed {
		return Settled{RunID: runID, Settled: true}, e.unlock(ctx, h)
	}
	if h.Status != runlog.StatusSettling {
		h.Status, h.Epoch = runlog.StatusSettling, h.Epoch+1
		if h, err = e.Log.UpdateHeader(ctx, h); err != nil {
			return Settled{}, fmt.Errorf("fencing run %s: %w", runID, err)
		}
	}
	if h.Kind == runlog.KindDeployment {
		return e.settleDeployment(ctx, h)
	}
	return e.settleStack(ctx, h)
}

// settleDeployment settles the runs of a dead deployment's stacks that have died with it, and closes it.
func (e *Engine) settleDeployment(ctx context.Context, h runlog.Header) (Settled, error) {
	ops, err := e.Log.Ops(ctx, h.RunID)
	if err != nil {
		return Settled{}, fmt.Errorf("reading the journal of run %s: %w", h.RunID, err)
	}
	for _, op := range ops {
		if op.ChildRun == "" {
			continue
		}
		child, err := e.Log.Header(ctx, op.ChildRun)
		if err != nil {
			return Settled{}, fmt.Errorf("reading the header of run %s: %w", op.ChildRun, err)
		}
		if child.Status != runlog.StatusClosed {
			running, err := e.Executions.Running(ctx, executionOf(child))
			if err != nil {
				return Settled{}, fmt.Errorf("asking for the execution of run %s: %w", child.RunID, err)
			}
			if running {
				return Settled{RunID: h.RunID, Seconds: 10}, nil
			}
			if s, err := e.Settle(ctx, child.RunID); err != nil || !s.Settled {
				return Settled{RunID: h.RunID, Seconds: s.Seconds}, err
			}
		}
	}
	if _, err := e.closeDeployment(ctx, &h); err != nil {
		return Settled{}, err
	}
	return e.interrupted(ctx, h)
}

// closeUnbegun closes the stack runs of a deployment that ends before their turn came.
func (e *Engine) closeUnbegun(ctx context.Context, h runlog.Header) error {
	var req Request
	if err := getJSON(ctx, e.Objects, requestKey(h.RunID), &req); err != nil {
		return err
	}
	for _, s := range req.Stacks {
		child, err := e.Log.Header(ctx, childRunID(h.RunID, s.Name, s.StackRef))
		switch {
		case errors.Is(err, runlog.ErrNotFound):
			continue // the deployment has not come that far
		case err != nil:
			return fmt.Errorf("reading the header of the run of stack %s: %w", s.Name, err)
		case child.Status != runlog.StatusNew:
			continue
		}
		child.Failure = &runlog.Failure{Summary: "the run was not begun", Detail: "its deployment ended before its turn came"}
		if err := e.closeHeader(ctx, child, runlog.ResultFailed); err != nil {
			return err
		}
	}
	return nil
}

// settleStack recovers, folds, and closes one stack's run.
func (e *Engine) settleStack(ctx context.Context, h runlog.Header) (Settled, error) {
	lock, err := e.States.Attach(ctx, h.Stack.Name, h.Stack.Region, h.Owner)
	switch {
	case errors.Is(err, state.ErrLockLost):
		// It never had the lock, or somebody forced it: its results still have to be folded, which the
		// conditional save does safely.
	case err != nil:
		return Settled{}, err
	default:
		if err := lock.Renew(ctx); err != nil && !errors.Is(err, state.ErrLockLost) {
			return Settled{}, err
		}
	}
	var file planFile
	err = getJSON(ctx, e.Objects, planKey(h.RunID), &file)
	if isAbsent(err) {
		return e.interrupted(ctx, h) // it died before it had a plan: nothing was touched
	}
	if err != nil {
		return Settled{}, err
	}
	ops, err := e.opsOf(ctx, h.RunID)
	if err != nil {
		return Settled{}, err
	}
	until := e.Clock.Now().Add(settleSlice)
	for _, id := range sortedIDs(ops) {
		op := ops[id]
		if op.Status.Ended() {
			continue
		}
		if wait := op.Lease.Until.Sub(e.Clock.Now()); wait > 0 && op.Lease.Holder != e.Holder && e.Executions.HolderAlive(ctx, op.Lease.Holder) {
			return Settled{RunID: h.RunID, Seconds: int(wait/time.Second) + 1}, nil
		}
		recovered, err := e.recover(ctx, h, op, until.Sub(e.Clock.Now()))
		if err != nil {
			return Settled{}, err
		}
		if !recovered.Status.Ended() {
			return Settled{RunID: h.RunID, Seconds: int(max(recovered.NotBefore.Sub(e.Clock.Now()), 0)/time.Second) + 1}, nil
		}
		ops[id] = recovered
	}
	return e.foldDead(ctx, h, file, ops)
}

// recover carries an open operation of a dead run to its end, under the token it was begun with.
func (e *Engine) recover(ctx context.Context, h runlog.Header, op runlog.Op, slice time.Duration) (runlog.Op, error) {
	input, err := e.operationInput(ctx, h.RunID, op.Wave, op.OpID)
	if err != nil {
		return runlog.Op{}, err
	}
	input.Attempt = op.Attempt
	return e.carryOut(ctx, h.RunID, op.Wave, h.Epoch, runlog.StatusSettling, input, max(slice, time.Second))
}

// foldDead folds the results of a dead run and closes it.
func (e *Engine) foldDead(ctx context.Context, h runlog.Header, file planFile, ops map[string]runlog.Op) (Settled, error) {
	byID := index(file.Plan)
	var undo plan.Plan
	switch err := getJSON(ctx, e.Objects, rollbackPlanKey(h.RunID), &undo); {
	case err == nil:
		for id, planned := range index(undo) {
			byID[id] = planned
		}
	case !isAbsent(err):
		return Settled{}, err
	}
	var last decisionRecord
	if h.Decision > 0 {
		if err := getJSON(ctx, e.Objects, decisionKey(h.RunID, h.Decision), &last); err != nil {
			return Settled{}, err
		}
	}
	l, err := e.loadLedger(ctx, h.Stack)
	if err != nil {
		return Settled{}, err
	}
	if _, err := l.foldAll(ops, byID, last.Folded); err != nil {
		return Settled{}, err
	}
	if err := e.saveLedger(ctx, l, h.RunID, file.generation()); err != nil {
		return Settled{}, err
	}
	h.StateETag, h.SidecarETag = l.stateETag, l.sidecarETag
	if h.Command == runlog.CommandDeploy {
		seg, err := segmentOf(h, file, ops, state.ReasonInterrupted, e.Clock.Now().UnixMilli())
		if err != nil {
			return Settled{}, err
		}
		seg.FailedOperations = nil
		if len(seg.Operations) > 0 {
			if err := e.appendSegment(ctx, h, seg); err != nil {
				return Settled{}, err
			}
		}
	}
	e.verdict(&h, file, ops)
	return e.interrupted(ctx, h)
}

// interrupted closes a settled run. One that had already told its end was done with everything but its header:
// what it told stands.
func (e *Engine) interrupted(ctx context.Context, h runlog.Header) (Settled, error) {
	told, err := e.told(ctx, h.RunID)
	if err != nil {
		return Settled{}, err
	}
	result := runlog.ResultFailed
	switch {
	case told != nil:
		result, h.Failure = told.Result, told.Failure
		if told.Counts != nil {
			h.Counts = *told.Counts
		}
	case h.Failure == nil:
		h.Failure = &runlog.Failure{
			Summary: "the run was interrupted",
			Detail:  "its execution ended before its work did; what it had done was saved",
		}
	}
	if err := e.closeHeader(ctx, h, result); err != nil {
		return Settled{}, err
	}
	return Settled{RunID: h.RunID, Settled: true}, e.unlock(ctx, h)
}

// told returns the event with which a run has told its end, nil when it has not.
func (e *Engine) told(ctx context.Context, runID string) (*runlog.Event, error) {
	events, err := e.Log.Events(ctx, runID, "")
	if err != nil {
		return nil, fmt.Errorf("reading the events of run %s: %w", runID, err)
	}
	for _, ev := range events {
		if ev.Type == runlog.RunFinished {
			return &ev, nil
		}
	}
	return nil, nil
}
