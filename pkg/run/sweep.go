package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

const (
	// sweepMost is how many runs one sweep settles, sweepTime how long after its begin it starts on another one: with
	// the time that one call of Settle may take it stays within an invocation.
	sweepMost = 20
	sweepTime = 5 * time.Minute
	// sweepEvery is how often the sweep comes round.
	sweepEvery = 5 * time.Minute
	// unstartedGrace is how long a requested run may be without an execution: its caller is about to start that.
	unstartedGrace = 5 * time.Minute
	// sweptLocks is how many of the newest runs a sweep looks at for a lock that was left.
	sweptLocks = 50
	// sweptFor is how long after its end a run is looked at for them.
	sweptFor = 24 * time.Hour
	// vaultDays is for how many days a sweep comes back to the vaults of the runs of one hour.
	vaultDays = 3
)

// Swept is what a sweep has done.
type Swept struct {
	// Ended are the runs that were not closed, nor carried on by anybody, and are closed now. The next sweep goes on with
	// those in Waiting: somebody may still be at work on them.
	Ended   []string `json:"ended,omitempty"`
	Waiting []string `json:"waiting,omitempty"`
	// Emptied are the runs whose vault had been left full.
	Emptied []string `json:"emptied,omitempty"`
}

// Dead lists the runs that are not closed and that nobody carries on, deployments before the runs of their stacks, then
// the oldest first. The list that it starts from may lag; each run is looked at again as it stands. Whoever asks
// settles them: Settle decides again, so nothing happens to one that has come back to life. A run that could not be
// looked at is left out and part of the error.
func (e *Engine) Dead(ctx context.Context) ([]runlog.Header, error) {
	listed, err := e.Log.ListRuns(ctx, runlog.Filter{Open: true})
	if err != nil {
		return nil, fmt.Errorf("looking for runs that nobody carries on: %w", err)
	}
	var dead []runlog.Header
	var errs []error
	for _, h := range listed {
		// Whether it runs is asked first: an execution that has ended has written all it will write before.
		running, err := e.Executions.Running(ctx, executionOf(h))
		if err == nil && running {
			continue
		}
		if err == nil {
			h, err = e.Log.Header(ctx, h.RunID)
		}
		abandoned := false
		if err == nil {
			abandoned, err = e.abandoned(ctx, h)
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("looking at run %s: %w", h.RunID, err))
		case abandoned:
			dead = append(dead, h)
		}
	}
	slices.SortFunc(dead, func(a, b runlog.Header) int {
		if a.Kind != b.Kind {
			if a.Kind == runlog.KindDeployment {
				return -1
			}
			return 1
		}
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.RunID, b.RunID))
	})
	return dead, errors.Join(errs...)
}

// abandoned decides about a run whose execution does not run.
func (e *Engine) abandoned(ctx context.Context, h runlog.Header) (bool, error) {
	switch {
	case h.Status == runlog.StatusClosed:
		return false, nil
	case h.Status != runlog.StatusNew:
		return true, nil
	case h.Root != "" && h.Root != h.RunID:
		// The run of a stack: its deployment starts it, or closes it at its own end.
		root, err := e.Log.Header(ctx, h.Root)
		if errors.Is(err, runlog.ErrNotFound) {
			return true, nil
		}
		return root.Status == runlog.StatusClosed, err
	case e.Clock.Now().Sub(h.CreatedAt) > unstartedGrace:
		return true, nil
	}
	var req Request
	err := getJSON(ctx, e.Objects, requestKey(h.RunID), &req)
	if isAbsent(err) {
		return false, nil
	}
	return err == nil && req.Holder != "" && !e.Executions.HolderAlive(ctx, req.Holder), err
}

// Sweep finds what nobody has told of, because the notices of dead executions are best effort, and settles it: runs that
// are not closed and that nobody carries on, locks and places in a line that closed runs have left, vaults that were not emptied. It is
// bounded, may be repeated, and may run beside itself and beside every run. What fails is part of the error, and does
// not keep it from the rest.
func (e *Engine) Sweep(ctx context.Context) (Swept, error) {
	var out Swept
	var errs []error
	failed := func(err error) {
		if err != nil {
			e.logger().LogAttrs(ctx, slog.LevelError, "part of the sweep has failed", slog.String("error", err.Error()))
			errs = append(errs, err)
		}
	}
	dead, err := e.Dead(ctx)
	failed(err)
	began := e.Clock.Now()
	for _, h := range turnOf(dead, began) {
		if ctx.Err() != nil || e.Clock.Now().Sub(began) > sweepTime {
			break
		}
		settled, err := e.Settle(ctx, h.RunID)
		switch {
		case err != nil:
			failed(fmt.Errorf("settling run %s: %w", h.RunID, err))
		case settled.Settled:
			out.Ended = append(out.Ended, h.RunID)
		default:
			out.Waiting = append(out.Waiting, h.RunID)
		}
	}
	failed(e.sweepLocks(ctx))
	emptied, err := e.sweepVaults(ctx)
	out.Emptied = emptied
	failed(err)
	return out, errors.Join(errs...)
}

// turnOf chooses the runs of one sweep. Where there are more than it can settle every sweep begins further on, so that
// runs that can't be settled do not keep the others from their turn.
func turnOf(dead []runlog.Header, now time.Time) []runlog.Header {
	if len(dead) <= sweepMost {
		return dead
	}
	first := int(now.Unix()/int64(sweepEvery.Seconds())*sweepMost) % len(dead)
	return slices.Concat(dead[first:], dead[:first])[:sweepMost]
}

// sweepLocks frees the locks, and the places in the line for one, that runs have left which have closed and died before
// they could free them. It looks at runs that have ended in the last day, and asks for each stack's lock once: at rest a
// sweep costs nothing here. What it has not freed in a day's sweeps the next run of the stack finds.
func (e *Engine) sweepLocks(ctx context.Context) error {
	runs, err := e.Log.ListRuns(ctx, runlog.Filter{Limit: sweptLocks})
	if err != nil {
		return fmt.Errorf("looking for locks that were left: %w", err)
	}
	var errs []error
	failed := func(stack runlog.StackRef, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("freeing what closed runs have left of the lock of stack %s: %w", stack.Name, err))
		}
	}
	closed := map[string]runlog.Header{} // by the owner of the lock, which names the run
	var stacks []runlog.StackRef
	for _, h := range runs {
		if h.Status != runlog.StatusClosed || h.Kind != runlog.KindStack || e.Clock.Now().Sub(h.FinishedAt) > sweptFor {
			continue
		}
		failed(h.Stack, e.leaveLine(ctx, h))
		closed[h.Owner] = h
		if !slices.Contains(stacks, h.Stack) {
			stacks = append(stacks, h.Stack)
		}
	}
	for _, stack := range stacks {
		failed(stack, e.sweepLock(ctx, stack, closed))
	}
	return errors.Join(errs...)
}

// sweepLock frees the lock of a stack if it is that of a closed run which does not go on to free it itself.
func (e *Engine) sweepLock(ctx context.Context, stack runlog.StackRef, closed map[string]runlog.Header) error {
	held, err := e.States.ReadLock(ctx, stack.Name, stack.Region)
	if state.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	h, ours := closed[held.Owner]
	if !ours {
		return nil
	}
	running, err := e.Executions.Running(ctx, executionOf(h))
	if err != nil || running {
		return err
	}
	return e.unlock(ctx, h)
}

// sweepVaults empties the vaults that runs have left which are closed, or were never requested. A run that was asked for
// at this hour of a day before is a day old, and the objects of one hour are few: each is looked at by every sweep of
// the same hour of the next days.
func (e *Engine) sweepVaults(ctx context.Context) (emptied []string, err error) {
	if e.Vault == nil {
		return nil, nil
	}
	var errs []error
	for day := range vaultDays {
		hour := e.Clock.Now().UTC().Add(-time.Duration(day+1)*24*time.Hour - time.Hour).Format("20060102T15")
		roots, err := e.Vault.Filled(ctx, hour)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, root := range roots {
			h, err := e.Log.Header(ctx, root)
			if err != nil && !errors.Is(err, runlog.ErrNotFound) {
				errs = append(errs, fmt.Errorf("reading the header of run %s: %w", root, err))
				continue
			}
			if err == nil && h.Status != runlog.StatusClosed {
				continue
			}
			if err != nil && day < vaultDays-1 {
				// It was never requested, or it is the run of another control plane over the same bucket, or of --direct, which
				// may be going on: it is given all the time there is.
				continue
			}
			if err := e.Vault.Purge(ctx, root); err != nil {
				errs = append(errs, err)
				continue
			}
			emptied = append(emptied, root)
		}
	}
	return emptied, errors.Join(errs...)
}
