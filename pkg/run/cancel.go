package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// ErrEnded: a run has its result, or nothing is left for it to decide, so that it can't be cancelled.
var ErrEnded = errors.New("there is nothing left to cancel")

// Cancellation is slipway/runs/{id}/cancel.json: who wants a run to end, and since when. It is written once; the
// run looks at it whenever it decides what to do next, and so do the runs of a deployment's stacks.
type Cancellation struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

func cancelKey(runID string) string { return "slipway/runs/" + runID + "/cancel.json" }

// Cancel asks a run to end: nothing new is begun, what is in flight is followed to its end, and what was done is
// saved. It returns as soon as that is durable, and may be repeated; the first one is who has cancelled. The error is
// runlog.ErrNotFound for a run that nobody knows, and ErrEnded for one whose work has ended.
func (e *Engine) Cancel(ctx context.Context, runID, by string) error {
	h, err := e.Log.Header(ctx, runID)
	if err != nil {
		return fmt.Errorf("cancelling run %s: %w", runID, err)
	}
	switch {
	case h.Result != "" || h.Status == runlog.StatusClosed:
		return fmt.Errorf("cancelling run %s: it has ended as %s: %w", runID, h.Result, ErrEnded)
	case h.Status == runlog.StatusSettling:
		return fmt.Errorf("cancelling run %s: its execution has died, and what it has left is being settled: %w", runID, ErrEnded)
	}
	if h.Decision > 0 {
		var last decisionRecord
		if err := getJSON(ctx, e.Objects, decisionKey(runID, h.Decision), &last); err != nil {
			return err
		}
		if last.Step.Kind == StepDone {
			return fmt.Errorf("cancelling run %s: its work is done, and it is about to end: %w", runID, ErrEnded)
		}
	}
	return putOnce(ctx, e.Objects, cancelKey(runID), &Cancellation{By: state.Printable(by), At: e.Clock.Now().UTC()})
}

// Cancellation returns who has cancelled a run or the deployment that it belongs to, nil when nobody has.
func (e *Engine) Cancellation(ctx context.Context, h runlog.Header) (*Cancellation, error) {
	ids := []string{h.RunID}
	if h.Root != "" && h.Root != h.RunID {
		ids = append(ids, h.Root)
	}
	for _, id := range ids {
		var c Cancellation
		err := getJSON(ctx, e.Objects, cancelKey(id), &c)
		if err == nil {
			return &c, nil
		}
		if !isAbsent(err) {
			return nil, err
		}
	}
	return nil, nil
}

// reasonCancelled marks an operation that a cancelled run has not begun.
const reasonCancelled = "the run was cancelled before its turn came"

// summary is what is said of a run that was cancelled.
func (c Cancellation) summary() string {
	if c.By == "" {
		return "the run was cancelled"
	}
	return "the run was cancelled by " + c.By
}

// failure is how a cancelled run ends.
func (c Cancellation) failure() *runlog.Failure {
	return &runlog.Failure{
		Summary: c.summary(),
		Detail:  "what was in flight was brought to its end and saved; nothing new was begun, and nothing was undone",
	}
}

// refusal is how a run ends that was cancelled before it had begun.
func (c Cancellation) refusal(stack string) diag.Diagnostics {
	return diag.Diagnostics{{
		Severity: diag.Error, Stack: stack, Summary: c.summary(), Detail: "it had not begun",
		Next: "Nothing was changed: run the command again when you want it.",
	}}
}

// held tells, once a run has nothing more to do, whether its cancellation has kept something back: an operation that
// was not begun, one that was to be tried again, or the rollback of a failure. Where it has not, it came too late, and
// the run ends as if nobody had cancelled it. It only looks at what is recorded, so a repeated decision finds the same.
func (t *turn) held(mayRollBack bool) bool {
	if t.stop == nil {
		return false
	}
	for _, planned := range t.current().Operations {
		op, known := t.ops[planned.ID]
		if !known || op.Status == runlog.OpSkipped && op.Reason == reasonCancelled || retryDue(op) {
			return true
		}
	}
	return mayRollBack
}

// cancelled returns who has cut a run short, nil for one that has come to its own end.
func (e *Engine) cancelled(ctx context.Context, h runlog.Header) (*Cancellation, error) {
	if h.Decision == 0 {
		return nil, nil
	}
	var last decisionRecord
	if err := getJSON(ctx, e.Objects, decisionKey(h.RunID, h.Decision), &last); err != nil {
		return nil, err
	}
	return last.Cancelled, nil
}

// finishCancelled leaves the journal of a deploy that was cancelled: what it has done can be undone by a rollback,
// and is gone on with by the next deploy (reference §0.9, §8.6). A rollback that was cut short keeps the journal that
// it began with.
func (e *Engine) finishCancelled(ctx context.Context, h runlog.Header, file planFile, ops map[string]runlog.Op) error {
	if plan.Phase(h.Phase) == plan.PhaseRollback {
		return nil
	}
	return e.journalInterrupted(ctx, h, file, ops)
}

// journalInterrupted adds the segment of a deploy that was interrupted: what it has done, without what has failed.
func (e *Engine) journalInterrupted(ctx context.Context, h runlog.Header, file planFile, ops map[string]runlog.Op) error {
	seg, err := e.segment(ctx, h, file, ops, state.ReasonInterrupted)
	if err != nil {
		return err
	}
	seg.FailedOperations = nil
	if len(seg.Operations) == 0 {
		return nil
	}
	return e.appendSegment(ctx, h, seg)
}
