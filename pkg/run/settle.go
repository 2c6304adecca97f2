package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

const (
	// settleSlice is how long one call of Settle works on an open operation before it answers.
	settleSlice = 4 * time.Minute
	// recoveries is how many operations Settle recovers at a time.
	recoveries = 20
)

// Settle ends a run whose execution has died. It fences the run, so that a late process of it is refused;
// outwaits what may still be working; recovers every open operation under its own token; folds; leaves a
// rollback journal; closes the run and frees its lock. It may be repeated, and run beside itself or beside
// the live run: the fence decides who goes on.
func (e *Engine) Settle(ctx context.Context, runID string) (Settled, error) {
	h, err := e.Log.Header(ctx, runID)
	if errors.Is(err, runlog.ErrNotFound) {
		// An execution whose input was refused: it has made no run, so there is nothing to settle.
		return Settled{RunID: runID, Settled: true}, nil
	}
	if err != nil {
		return Settled{}, fmt.Errorf("reading the header of run %s: %w", runID, err)
	}
	if h.Result == "" {
		if h, err = e.fence(ctx, h); err != nil {
			return Settled{}, err
		}
	}
	if h.Result != "" {
		if h, err = e.closeHeader(ctx, h, h.Result); err != nil {
			return Settled{}, err
		}
		return Settled{RunID: runID, Settled: true}, e.unlock(ctx, h)
	}
	if h.Kind == runlog.KindDeployment {
		return e.settleDeployment(ctx, h)
	}
	return e.settleStack(ctx, h)
}

// fence moves a run to SETTLING, so that its own late processes are refused, unless it has its result already.
func (e *Engine) fence(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	for range 5 {
		if h.Status == runlog.StatusSettling || h.Result != "" {
			return h, nil
		}
		h.Status, h.Epoch = runlog.StatusSettling, h.Epoch+1
		stored, err := e.Log.UpdateHeader(ctx, h)
		if err == nil {
			return stored, nil
		}
		if !errors.Is(err, runlog.ErrConflict) {
			return h, fmt.Errorf("fencing run %s: %w", h.RunID, err)
		}
		// It is alive, or somebody else settles it.
		if h, err = e.Log.Header(ctx, h.RunID); err != nil {
			return h, fmt.Errorf("reading the header of run %s: %w", h.RunID, err)
		}
	}
	return h, fmt.Errorf("fencing run %s: %w", h.RunID, runlog.ErrConflict)
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
	result, err := e.closeDeployment(ctx, &h)
	if err != nil {
		return Settled{}, err
	}
	if done, err := e.workDone(ctx, h); err != nil || !done {
		if err != nil {
			return Settled{}, err
		}
		return e.interrupted(ctx, h)
	}
	return e.settled(ctx, h, result)
}

// closeUnbegun closes the stack runs of a deployment that ends before their turn came.
func (e *Engine) closeUnbegun(ctx context.Context, h runlog.Header) error {
	var req Request
	err := getJSON(ctx, e.Objects, requestKey(h.RunID), &req)
	if isAbsent(err) {
		return nil // an upload that was not admitted
	}
	if err != nil {
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
		if child, err = e.closeHeader(ctx, child, runlog.ResultFailed); err != nil {
			return err
		}
		if err := e.leaveLine(ctx, child); err != nil {
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
	if ctx, err = e.actingFor(ctx, h); err != nil {
		return Settled{}, err
	}
	ops, err := e.opsOf(ctx, h.RunID)
	if err != nil {
		return Settled{}, err
	}
	if err := file.addUndone(ops); err != nil {
		return Settled{}, err
	}
	wait, err := e.recoverAll(ctx, h, ops)
	if err != nil {
		return Settled{}, err
	}
	if wait > 0 {
		return Settled{RunID: h.RunID, Seconds: int((wait + time.Second - 1) / time.Second)}, nil
	}
	if closed, s, err := e.closeDead(ctx, h); closed || err != nil {
		return s, err
	}
	return e.foldDead(ctx, h, file, ops)
}

// recoverAll brings every open operation of a dead run to its end, in ops too, several at a time. Where one
// can't be ended yet it returns how long to wait: somebody may still be working on it, or it is slow.
func (e *Engine) recoverAll(ctx context.Context, h runlog.Header, ops map[string]runlog.Op) (time.Duration, error) {
	var open []runlog.Op
	for _, id := range sortedIDs(ops) {
		if op := ops[id]; !op.Status.Ended() {
			open = append(open, op)
		}
	}
	var mu sync.Mutex
	var wait time.Duration
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(recoveries)
	for _, op := range open {
		if left := e.leaseLeft(ctx, h.RunID, op); left > 0 {
			mu.Lock()
			wait = max(wait, left)
			mu.Unlock()
			continue
		}
		g.Go(func() error {
			op, err := e.recover(ctx, h, op)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			ops[op.OpID] = op
			if !op.Status.Ended() {
				wait = max(wait, op.NotBefore.Sub(e.Clock.Now()), time.Second)
			}
			return nil
		})
	}
	err := g.Wait()
	return wait, err
}

// leaseLeft is how long to wait for whoever may still be working on an operation. Of a lease of its own this process
// knows whether somebody is, and looks again soon.
func (e *Engine) leaseLeft(ctx context.Context, runID string, op runlog.Op) time.Duration {
	left := op.Lease.Until.Sub(e.Clock.Now())
	switch {
	case left <= 0:
		return 0
	case op.Lease.Holder != e.Holder:
		if e.Executions.HolderAlive(ctx, op.Lease.Holder) {
			return left
		}
	case e.atWork().on(runID, op.OpID):
		return min(left, time.Second)
	}
	return 0
}

// recover carries an open operation of a dead run to its end, under the token it was begun with.
func (e *Engine) recover(ctx context.Context, h runlog.Header, op runlog.Op) (runlog.Op, error) {
	input, err := e.operationInput(ctx, h.RunID, op.Wave, op.OpID)
	if err != nil {
		return runlog.Op{}, err
	}
	input.Attempt = op.Attempt
	return e.carryOut(ctx, h.RunID, op.Wave, h.Epoch, runlog.StatusSettling, input, settleSlice)
}

// workDone reports whether all that a run still had to do was to close.
func (e *Engine) workDone(ctx context.Context, h runlog.Header) (bool, error) {
	if h.Decision == 0 {
		return false, nil
	}
	var last decisionRecord
	if err := getJSON(ctx, e.Objects, decisionKey(h.RunID, h.Decision), &last); err != nil {
		return false, err
	}
	return last.Step.Kind == StepDone, nil
}

// closeDead closes a dead run whose work was done, as the run itself would have: it ends with its true result. Without
// the stack's lock that can't be: somebody else may be at work.
func (e *Engine) closeDead(ctx context.Context, h runlog.Header) (closed bool, s Settled, err error) {
	done, err := e.workDone(ctx, h)
	if err != nil || !done {
		return false, Settled{}, err
	}
	result, err := e.closeStack(ctx, &h)
	if errors.Is(err, state.ErrLockLost) {
		return false, Settled{}, nil
	}
	if err != nil {
		return false, Settled{}, err
	}
	s, err = e.settled(ctx, h, result)
	return true, s, err
}

// settled closes a run with its result and frees its lock.
func (e *Engine) settled(ctx context.Context, h runlog.Header, result runlog.Result) (Settled, error) {
	h, err := e.closeHeader(ctx, h, result)
	if err != nil {
		return Settled{}, err
	}
	return Settled{RunID: h.RunID, Settled: true}, e.unlock(ctx, h)
}

// foldDead folds the results of a dead run and closes it.
func (e *Engine) foldDead(ctx context.Context, h runlog.Header, file planFile, ops map[string]runlog.Op) (Settled, error) {
	l, err := e.loadLedger(ctx, h.Stack)
	if err != nil {
		return Settled{}, err
	}
	// Somebody else may have settled the run meanwhile, and others may have worked on the stack since. What was loaded
	// before they did can't be saved over it; what was loaded after must not be.
	if now, err := e.Log.Header(ctx, h.RunID); err != nil || now.Result != "" {
		if err != nil {
			return Settled{}, fmt.Errorf("reading the header of run %s: %w", h.RunID, err)
		}
		return e.settled(ctx, now, now.Result)
	}
	if err := e.foldRun(ctx, &h, file, ops, l); err != nil {
		return Settled{}, err
	}
	if err := e.saveLedger(ctx, l, h, file.interim(l)); err != nil {
		return Settled{}, err
	}
	h.StateETag, h.SidecarETag = l.stateETag, l.sidecarETag
	if file.Replay != nil {
		if _, err := e.popSegments(ctx, h.Stack, file.Replay, ops); err != nil {
			return Settled{}, err
		}
	}
	if h.Command == runlog.CommandDeploy {
		if err := e.journalInterrupted(ctx, h, file, ops); err != nil {
			return Settled{}, err
		}
	}
	e.verdict(&h, file, ops)
	return e.interrupted(ctx, h)
}

// interrupted closes a settled run.
func (e *Engine) interrupted(ctx context.Context, h runlog.Header) (Settled, error) {
	if h.Failure == nil {
		h.Failure = &runlog.Failure{
			Summary: "the run was interrupted",
			Detail:  "its execution ended before its work did; what it had done was saved",
		}
		stop, err := e.Cancellation(ctx, h)
		if err != nil {
			return Settled{}, err
		}
		if stop != nil {
			h.Failure.Summary = stop.summary()
		}
	}
	return e.settled(ctx, h, runlog.ResultFailed)
}
