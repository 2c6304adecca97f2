package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// Open begins a run: for a stack it takes the lock, settles a dead predecessor, loads the state, plans, and
// writes the immutable plan; for a deployment it plans every stack and prepares their runs. It may be
// repeated: each step looks for what an earlier try has left.
func (e *Engine) Open(ctx context.Context, in PlannerInput) (Step, error) {
	h, err := e.Log.Header(ctx, in.RunID)
	if err != nil {
		return Step{}, fmt.Errorf("reading the header of run %s: %w", in.RunID, err)
	}
	var req Request
	if err := getJSON(ctx, e.Objects, requestKey(in.RunID), &req); err != nil {
		return Step{}, err
	}
	switch h.Status {
	case runlog.StatusSettling:
		return Step{}, fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
	case runlog.StatusClosed:
		return closedStep(h), nil
	case runlog.StatusOpen:
		return nextStep(h), nil
	}
	started := runEvent(h, 0, runlog.RunStarted)
	e.append(ctx, started)
	if h.Kind == runlog.KindDeployment {
		return e.openDeployment(ctx, h, req)
	}
	return e.openStack(ctx, h, req)
}

func closedStep(h runlog.Header) Step {
	kind := StepDone
	if h.Result == runlog.ResultFailed {
		kind = StepRefused
	}
	return Step{RunID: h.RunID, Kind: kind, Decision: h.Decision + 1, Epoch: h.Epoch}
}

func nextStep(h runlog.Header) Step {
	return Step{RunID: h.RunID, Kind: StepNext, Decision: h.Decision + 1, Epoch: h.Epoch}
}

// openStack opens a stack's own run.
func (e *Engine) openStack(ctx context.Context, h runlog.Header, req Request) (Step, error) {
	lock, held, err := e.lock(ctx, h)
	if err != nil {
		return Step{}, err
	}
	if held != nil {
		return e.refuse(ctx, h, diag.Diagnostics{*held})
	}
	if err := e.Log.SetHead(ctx, h.Stack, h.RunID); err != nil {
		return Step{}, fmt.Errorf("recording the run on stack %s: %w", h.Stack.Name, err)
	}
	file, warnings, err := e.planRun(ctx, h, req)
	if err != nil {
		var refused diag.Diagnostics
		if !errors.As(err, &refused) {
			return Step{}, err
		}
		step, err := e.refuse(ctx, h, append(refused, warnings...))
		if err != nil {
			return Step{}, err
		}
		return step, lock.Release(ctx)
	}
	if err := putOnce(ctx, e.Objects, planKey(h.RunID), &file); err != nil {
		return Step{}, err
	}
	h.Diagnostics = warnings
	return e.opened(ctx, h, len(file.Plan.Operations))
}

// opened moves the header to OPEN and tells how much there is to do.
func (e *Engine) opened(ctx context.Context, h runlog.Header, total int) (Step, error) {
	h.Status, h.Epoch = runlog.StatusOpen, 1
	if h.StartedAt.IsZero() {
		h.StartedAt = e.Clock.Now().UTC()
	}
	stored, err := e.Log.UpdateHeader(ctx, h)
	if errors.Is(err, runlog.ErrConflict) {
		if stored, err = e.Log.Header(ctx, h.RunID); err == nil && stored.Status == runlog.StatusSettling {
			return Step{}, fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
		}
	}
	if err != nil {
		return Step{}, fmt.Errorf("opening run %s: %w", h.RunID, err)
	}
	planned := runEvent(h, 0, runlog.Planned)
	planned.Total = total
	events := []runlog.Event{planned}
	for i, d := range h.Diagnostics {
		ev := runEvent(h, 0, runlog.Warned)
		ev.ID = runlog.EventID(0, fmt.Sprintf("warning%03d", i), runlog.Warned, 0)
		ev.LogicalID, ev.Message = d.LogicalID, d.Error()
		events = append(events, ev)
	}
	e.append(ctx, events...)
	return nextStep(stored), nil
}

// refuse closes a run that never touched anything.
func (e *Engine) refuse(ctx context.Context, h runlog.Header, diags diag.Diagnostics) (Step, error) {
	h.Diagnostics = diags
	h.Failure = firstFailure(diags)
	if err := e.closeHeader(ctx, h, runlog.ResultFailed); err != nil {
		return Step{}, err
	}
	return Step{RunID: h.RunID, Kind: StepRefused, Decision: 1}, nil
}

func firstFailure(diags diag.Diagnostics) *runlog.Failure {
	for _, d := range diags {
		if d.Severity == diag.Error {
			detail := d.Detail
			if d.Path != "" {
				detail = d.Path + ": " + detail
			}
			return &runlog.Failure{Summary: d.Summary, Detail: detail, LogicalID: d.LogicalID}
		}
	}
	return nil
}

// lock takes the stack's lock for this run. A lock that an earlier run of ours has left is taken over once
// that run is settled; held is the diagnostic when somebody else is at work.
func (e *Engine) lock(ctx context.Context, h runlog.Header) (lock *state.Lock, held *diag.Diagnostic, err error) {
	for {
		lock, err = e.States.Acquire(ctx, h.Stack.Name, h.Stack.Region, h.Owner, string(h.Command))
		if err == nil {
			return lock, nil, nil
		}
		locked := state.AsLocked(err)
		if locked == nil {
			return nil, nil, err
		}
		if locked.Holder.Owner == h.Owner {
			lock, err = e.States.Attach(ctx, h.Stack.Name, h.Stack.Region, h.Owner)
			return lock, nil, err
		}
		free, err := e.settlePredecessor(ctx, locked.Standing)
		if err != nil {
			return nil, nil, err
		}
		if !free {
			return nil, &diag.Diagnostic{
				Severity: diag.Error, Stack: h.Stack.Name,
				Summary: "stack " + h.Stack.Name + " is locked", Detail: locked.Error(),
			}, nil
		}
	}
}

// settlePredecessor ends the run that holds a lock if its execution has died, and reports whether the lock
// may be tried again.
func (e *Engine) settlePredecessor(ctx context.Context, standing state.StandingLock) (bool, error) {
	runID, ours := state.RunOfOwner(standing.Owner)
	if !ours || standing.Unreadable {
		return false, nil
	}
	h, err := e.Log.Header(ctx, runID)
	if errors.Is(err, runlog.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the header of run %s: %w", runID, err)
	}
	if h.Status != runlog.StatusClosed {
		running, err := e.Executions.Running(ctx, executionOf(h))
		if err != nil {
			return false, fmt.Errorf("asking for the execution of run %s: %w", runID, err)
		}
		if running {
			return false, nil
		}
	}
	for {
		settled, err := e.Settle(ctx, runID)
		if err != nil {
			return false, fmt.Errorf("settling run %s: %w", runID, err)
		}
		if settled.Settled {
			return true, nil
		}
		if err := e.Clock.Sleep(ctx, seconds(settled.Seconds)); err != nil {
			return false, err
		}
	}
}
