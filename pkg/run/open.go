package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// Open begins a run: for a stack it takes the lock, settles a dead predecessor, loads the state, plans, and
// writes the immutable plan; for a deployment it plans every stack and prepares their runs. It may be
// repeated: each step looks for what an earlier try has left. Where it has to wait for a predecessor, or for the
// macros of a template, it answers WAIT, and is asked again.
func (e *Engine) Open(ctx context.Context, in PlannerInput) (Step, error) {
	h, err := e.Log.Header(ctx, in.RunID)
	if err != nil {
		return Step{}, fmt.Errorf("reading the header of run %s: %w", in.RunID, err)
	}
	switch {
	case !carries(h, in.Execution):
		return Step{}, stranger(h, in.Execution)
	case h.Result != "":
		return e.closed(ctx, h)
	case h.Status == runlog.StatusSettling:
		return Step{}, fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
	}
	var file planFile
	err = getJSON(ctx, e.Objects, planKey(h.RunID), &file)
	if err != nil && !isAbsent(err) {
		return Step{}, err
	}
	planned := err == nil
	if h.Status == runlog.StatusOpen {
		e.tellPlan(ctx, h, file)
		return nextStep(h), nil
	}
	e.append(ctx, runEvent(h, 0, runlog.RunStarted))
	if planned {
		// The plan was made under the lock that this run still has.
		return e.opened(ctx, h, file)
	}
	stop, err := e.Cancellation(ctx, h)
	if err != nil {
		return Step{}, err
	}
	if stop != nil {
		return e.refuse(ctx, h, stop.refusal(h.Stack.Name))
	}
	var req Request
	if err := getJSON(ctx, e.Objects, requestKey(h.RunID), &req); err != nil {
		return Step{}, err
	}
	var step Step
	if h.Kind == runlog.KindDeployment {
		step, err = e.openDeployment(ctx, h, req)
	} else {
		step, err = e.openStack(ctx, h, req)
	}
	if running := stillRunning(err); running != nil {
		return e.awaitMacros(ctx, h, running), nil
	}
	return step, err
}

// closed answers for a run that has its result, and finishes what whoever decided it may have left undone.
func (e *Engine) closed(ctx context.Context, h runlog.Header) (Step, error) {
	h, err := e.closeHeader(ctx, h, h.Result)
	if err != nil {
		return Step{}, err
	}
	kind := StepDone
	if h.Result == runlog.ResultFailed {
		kind = StepRefused
	}
	return Step{RunID: h.RunID, Kind: kind, Decision: h.Decision + 1, Epoch: h.Epoch}, e.unlock(ctx, h)
}

func nextStep(h runlog.Header) Step {
	return Step{RunID: h.RunID, Kind: StepNext, Decision: h.Decision + 1, Epoch: h.Epoch}
}

// openStack opens a stack's own run.
func (e *Engine) openStack(ctx context.Context, h runlog.Header, req Request) (Step, error) {
	held, wait, err := e.awaitLock(ctx, h, req)
	switch {
	case err != nil:
		return Step{}, err
	case wait > 0:
		return Step{RunID: h.RunID, Kind: StepWait, Decision: h.Decision + 1, Seconds: wait}, nil
	case held != nil:
		return e.refuse(ctx, h, diag.Diagnostics{*held})
	}
	// The lock may have been taken by a late call, for a run that has ended: whoever ended it did not see the lock.
	now, err := e.Log.Header(ctx, h.RunID)
	switch {
	case err != nil:
		return Step{}, fmt.Errorf("reading the header of run %s: %w", h.RunID, err)
	case now.Result != "":
		return e.closed(ctx, now)
	case now.Status == runlog.StatusSettling:
		return Step{}, fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
	}
	if err := e.Log.SetHead(ctx, h.Stack, h.RunID); err != nil {
		return Step{}, fmt.Errorf("recording the run on stack %s: %w", h.Stack.Name, err)
	}
	file, diags, err := e.planRun(ctx, h, req)
	if err != nil {
		return Step{}, err
	}
	if diags.HasErrors() {
		return e.refuse(ctx, h, diags)
	}
	file.Warnings = diags
	if err := putOnce(ctx, e.Objects, planKey(h.RunID), &file); err != nil {
		return Step{}, err
	}
	return e.opened(ctx, h, file)
}

// opened moves the header to OPEN and tells how much there is to do.
func (e *Engine) opened(ctx context.Context, h runlog.Header, file planFile) (Step, error) {
	h.Status, h.Epoch, h.Diagnostics = runlog.StatusOpen, 1, file.Warnings
	h.StartedAt = e.Clock.Now().UTC()
	stored, err := e.Log.UpdateHeader(ctx, h)
	if errors.Is(err, runlog.ErrConflict) {
		stored, err = e.Log.Header(ctx, h.RunID)
		switch {
		case err != nil:
		case stored.Result != "":
			return e.closed(ctx, stored)
		case stored.Status == runlog.StatusSettling:
			return Step{}, fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
		}
	}
	if err != nil {
		return Step{}, fmt.Errorf("opening run %s: %w", h.RunID, err)
	}
	e.tellPlan(ctx, h, file)
	return nextStep(stored), nil
}

// tellPlan writes the events of a plan: how much there is to do, and its warnings.
func (e *Engine) tellPlan(ctx context.Context, h runlog.Header, file planFile) {
	planned := runEvent(h, 0, runlog.Planned)
	planned.Total = len(file.Plan.Operations)
	events := []runlog.Event{planned}
	for i, d := range file.Warnings {
		ev := runEvent(h, 0, runlog.Warned)
		ev.ID = runlog.EventID(0, fmt.Sprintf("warning%03d", i), runlog.Warned, 0)
		ev.LogicalID, ev.Message = d.LogicalID, d.Error()
		events = append(events, ev)
	}
	e.append(ctx, events...)
}

// refuse closes a run that never touched anything.
func (e *Engine) refuse(ctx context.Context, h runlog.Header, diags diag.Diagnostics) (Step, error) {
	if h.Kind == runlog.KindDeployment {
		// An earlier try may have come as far as making the runs of the stacks.
		if err := e.closeUnbegun(ctx, h); err != nil {
			return Step{}, err
		}
	}
	h.Diagnostics = withNext(diags)
	h.Failure = firstFailure(diags)
	h, err := e.closeHeader(ctx, h, runlog.ResultFailed)
	if errors.Is(err, runlog.ErrConflict) {
		// A twin has opened the run, or somebody settles it.
		return Step{}, fmt.Errorf("refusing run %s: %w", h.RunID, err)
	}
	if err != nil {
		return Step{}, err
	}
	return e.closed(ctx, h)
}

// withNext gives every error a next step; many have a better one of their own.
func withNext(diags diag.Diagnostics) diag.Diagnostics {
	out := slices.Clone(diags)
	for i := range out {
		if out[i].Severity == diag.Error && out[i].Next == "" {
			out[i].Next = "Nothing was changed: correct this and run the command again."
		}
	}
	return out
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
// that run is settled; wait says for how many seconds that can't be. held is the lock when somebody else is at
// work.
func (e *Engine) lock(ctx context.Context, h runlog.Header) (held *state.LockedError, wait int, err error) {
	var locked *state.LockedError
	for range 3 {
		_, err := e.States.Acquire(ctx, h.Stack.Name, h.Stack.Region, h.Owner, string(h.Command))
		if err == nil {
			return nil, 0, nil
		}
		if locked = state.AsLocked(err); locked == nil {
			return nil, 0, err
		}
		if locked.Holder.Owner == h.Owner {
			lock, err := e.States.Attach(ctx, h.Stack.Name, h.Stack.Region, h.Owner)
			if err != nil {
				return nil, 0, err
			}
			return nil, 0, lock.Renew(ctx)
		}
		free, wait, err := e.settlePredecessor(ctx, locked.Standing)
		if err != nil || wait > 0 {
			return nil, wait, err
		}
		if !free {
			break
		}
	}
	return locked, 0, nil
}

// settlePredecessor ends the run that holds a lock if its execution has died. It reports whether the lock may be
// tried again, or for how many seconds the run can't be settled yet.
func (e *Engine) settlePredecessor(ctx context.Context, standing state.StandingLock) (free bool, wait int, err error) {
	runID, ours := state.RunOfOwner(standing.Owner)
	if !ours || standing.Unreadable {
		return false, 0, nil
	}
	h, err := e.Log.Header(ctx, runID)
	if errors.Is(err, runlog.ErrNotFound) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, fmt.Errorf("reading the header of run %s: %w", runID, err)
	}
	if h.Status != runlog.StatusClosed {
		running, err := e.Executions.Running(ctx, executionOf(h))
		if err != nil {
			return false, 0, fmt.Errorf("asking for the execution of run %s: %w", runID, err)
		}
		if running {
			return false, 0, nil
		}
	}
	settled, err := e.Settle(ctx, runID)
	if err != nil {
		return false, 0, fmt.Errorf("settling run %s: %w", runID, err)
	}
	if !settled.Settled {
		return false, max(settled.Seconds, 1), nil
	}
	return true, 0, nil
}
