package run

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// Close ends a run whose work is done: outputs, state, exports index, journal, terminal event, header, and
// last the lock.
func (e *Engine) Close(ctx context.Context, in PlannerInput) (Ended, error) {
	h, err := e.Log.Header(ctx, in.RunID)
	if err != nil {
		return Ended{}, fmt.Errorf("reading the header of run %s: %w", in.RunID, err)
	}
	switch h.Status {
	case runlog.StatusSettling:
		return Ended{}, fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
	case runlog.StatusClosed:
		return Ended{RunID: h.RunID, Result: string(h.Result)}, e.unlock(ctx, h)
	}
	if h.Kind == runlog.KindDeployment {
		h.Result, err = e.closeDeployment(ctx, &h)
	} else {
		h.Result, err = e.closeStack(ctx, &h)
	}
	if err != nil {
		return Ended{}, err
	}
	if err := e.closeHeader(ctx, h, h.Result); err != nil {
		return Ended{}, err
	}
	return Ended{RunID: h.RunID, Result: string(h.Result)}, e.unlock(ctx, h)
}

// closeHeader writes the terminal event and the final header.
func (e *Engine) closeHeader(ctx context.Context, h runlog.Header, result runlog.Result) error {
	h.Result, h.Status = result, runlog.StatusClosed
	h.FinishedAt = e.Clock.Now().UTC()
	if h.StartedAt.IsZero() {
		h.StartedAt = h.FinishedAt
	}
	if h.Failure == nil && result == runlog.ResultFailed {
		h.Failure = firstFailure(h.Diagnostics)
	}
	ev := runEvent(h, runlog.FinalWave, runlog.RunFinished)
	ev.Result, ev.Counts, ev.Failure = result, &h.Counts, h.Failure
	ev.DurationMs = h.FinishedAt.Sub(h.StartedAt).Milliseconds()
	e.append(ctx, ev)
	_, err := e.Log.UpdateHeader(ctx, h)
	if errors.Is(err, runlog.ErrConflict) {
		now, readErr := e.Log.Header(ctx, h.RunID)
		if readErr == nil && now.Status == runlog.StatusClosed {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("closing run %s: %w", h.RunID, err)
	}
	return nil
}

// unlock releases the lock of a closed stack run, if it still is this run's.
func (e *Engine) unlock(ctx context.Context, h runlog.Header) error {
	if h.Kind != runlog.KindStack || h.Command == runlog.CommandPlan {
		return nil
	}
	lock, err := e.States.Attach(ctx, h.Stack.Name, h.Stack.Region, h.Owner)
	if errors.Is(err, state.ErrLockLost) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := lock.Release(ctx); err != nil && !errors.Is(err, state.ErrLockLost) {
		return err
	}
	return nil
}

// closeDeployment adds up the runs of the stacks.
func (e *Engine) closeDeployment(ctx context.Context, h *runlog.Header) (runlog.Result, error) {
	if err := e.closeUnbegun(ctx, *h); err != nil {
		return "", err
	}
	ops, err := e.Log.Ops(ctx, h.RunID)
	if err != nil {
		return "", fmt.Errorf("reading the journal of run %s: %w", h.RunID, err)
	}
	result := runlog.ResultSucceeded
	for _, op := range ops {
		if op.ChildRun != "" {
			child, err := e.Log.Header(ctx, op.ChildRun)
			if err != nil {
				return "", fmt.Errorf("reading the header of run %s: %w", op.ChildRun, err)
			}
			h.Counts = add(h.Counts, child.Counts)
			if child.Result == runlog.ResultPartial && result == runlog.ResultSucceeded {
				result = runlog.ResultPartial
			}
			if child.Failure != nil && h.Failure == nil {
				h.Failure = child.Failure
			}
		}
		if op.Status == runlog.OpFailed {
			result = runlog.ResultFailed
			if h.Failure == nil && op.Error != nil {
				h.Failure = &runlog.Failure{Summary: op.LogicalID + " could not be published", Detail: op.Error.Message, LogicalID: op.LogicalID}
			}
		}
		if op.Kind == string(plan.KindAsset) && op.Status == runlog.OpSucceeded && op.Reason != "" && op.Reason != reasonPresent {
			h.Diagnostics = append(h.Diagnostics, diag.Diagnostic{Severity: diag.Warning, Summary: op.Reason})
		}
	}
	return result, nil
}

func add(a, b runlog.Counts) runlog.Counts {
	return runlog.Counts{
		Created: a.Created + b.Created, Updated: a.Updated + b.Updated, Replaced: a.Replaced + b.Replaced,
		Deleted: a.Deleted + b.Deleted, Unchanged: a.Unchanged + b.Unchanged,
		Failed: a.Failed + b.Failed, Skipped: a.Skipped + b.Skipped,
	}
}

// closeStack finishes a stack's files and says how its run has ended.
func (e *Engine) closeStack(ctx context.Context, h *runlog.Header) (runlog.Result, error) {
	var req Request
	if err := getJSON(ctx, e.Objects, requestKey(h.RunID), &req); err != nil {
		return "", err
	}
	var file planFile
	if err := getJSON(ctx, e.Objects, planKey(h.RunID), &file); err != nil {
		return "", err
	}
	lock, err := e.States.Attach(ctx, h.Stack.Name, h.Stack.Region, h.Owner)
	if err != nil {
		return "", err
	}
	if err := lock.Renew(ctx); err != nil {
		return "", err
	}
	ops, err := e.opsOf(ctx, h.RunID)
	if err != nil {
		return "", err
	}
	l, err := e.loadLedger(ctx, h.Stack)
	if err != nil {
		return "", err
	}
	result := e.verdict(h, file, ops)
	rolledBack := plan.Phase(h.Phase) == plan.PhaseRollback
	switch {
	case h.Command == runlog.CommandDestroy:
		err = e.finishDestroy(ctx, h, req, l)
	case result == runlog.ResultFailed:
		err = e.finishFailure(ctx, h, file, ops, l, rolledBack)
	default:
		err = e.finishDeploy(ctx, h, req, file, l)
	}
	return result, err
}

func (e *Engine) opsOf(ctx context.Context, runID string) (map[string]runlog.Op, error) {
	list, err := e.Log.Ops(ctx, runID)
	if err != nil {
		return nil, fmt.Errorf("reading the journal of run %s: %w", runID, err)
	}
	ops := make(map[string]runlog.Op, len(list))
	for _, op := range list {
		ops[op.OpID] = op
	}
	return ops, nil
}

// verdict counts what was done and says how the run has ended. A forward operation that failed fails a
// deploy; a deletion that failed leaves something behind, which makes it PARTIAL.
func (e *Engine) verdict(h *runlog.Header, file planFile, ops map[string]runlog.Op) runlog.Result {
	result := runlog.ResultSucceeded
	counts := runlog.Counts{Unchanged: file.Plan.Unchanged}
	for _, planned := range file.Plan.Operations {
		op, ok := ops[planned.ID]
		if !ok {
			counts.Skipped++
			continue
		}
		switch op.Status {
		case runlog.OpSucceeded:
			count(&counts, planned, op)
		case runlog.OpFailed:
			counts.Failed++
			if h.Failure == nil && op.Error != nil {
				h.Failure = &runlog.Failure{
					Summary:   fmt.Sprintf("%s %s (%s) failed", verb(planned.Action), op.LogicalID, op.Type),
					Detail:    op.Error.Code + ": " + op.Error.Message,
					LogicalID: op.LogicalID,
				}
			}
			if planned.Phase == plan.PhaseForward {
				result = runlog.ResultFailed
			} else if result == runlog.ResultSucceeded {
				result = runlog.ResultPartial
			}
		default:
			counts.Skipped++
			if result == runlog.ResultSucceeded {
				result = runlog.ResultPartial
			}
		}
	}
	h.Counts = counts
	return result
}

func verb(a plan.Action) string {
	switch a {
	case plan.ActionCreate:
		return "creating"
	case plan.ActionUpdate:
		return "updating"
	case plan.ActionReplace:
		return "replacing"
	case plan.ActionDelete:
		return "deleting"
	}
	return string(a)
}

func count(c *runlog.Counts, planned plan.Operation, op runlog.Op) {
	if strings.HasSuffix(planned.ID, plan.OldSuffix) {
		return // part of its replacement
	}
	if op.Reason == reasonUnchanged {
		c.Unchanged++
		return
	}
	switch plan.Action(op.Action) {
	case plan.ActionCreate:
		c.Created++
	case plan.ActionReplace:
		c.Replaced++
	case plan.ActionUpdate, plan.ActionRecord:
		c.Updated++
	case plan.ActionDelete:
		c.Deleted++
	}
}

// finishDeploy resolves the outputs against the final record and saves everything that a successful deploy
// leaves.
func (e *Engine) finishDeploy(ctx context.Context, h *runlog.Header, req Request, file planFile, l *ledger) error {
	t, err := e.template(ctx, file.TemplateKey)
	if err != nil {
		return err
	}
	in := diff.Input{Record: l.record, Template: t, Conditions: file.Facts.Conditions, Scope: file.Facts.scope(t)}
	in.Dependencies = template.Dependencies(t, file.Facts.Conditions)
	outputs, warnings := diff.Carry(in, diff.EvaluateOutputs(in))
	h.Diagnostics = append(h.Diagnostics, warnings.InStack(h.Stack.Name)...)
	if !reflect.DeepEqual(l.record.Outputs, outputs) || !sameImports(l.record, file.Facts) || l.stands == nil {
		l.record.Outputs = outputs
		l.record.Imports, l.record.OutputReads = file.Facts.ImportedFrom, file.Facts.OutputsFrom
		l.changed = true
	}
	if err := e.saveLedger(ctx, l, h.RunID, file.generation()); err != nil {
		return err
	}
	h.StateETag, h.SidecarETag = l.stateETag, l.sidecarETag
	if err := e.States.UpdateExports(ctx, req.Region, h.Stack.Name, h.Stack.Region, l.record.Outputs); err != nil {
		h.Diagnostics = append(h.Diagnostics, diag.Diagnostic{
			Severity: diag.Warning, Stack: h.Stack.Name, Summary: "the exports index was not updated", Detail: err.Error(),
		})
	}
	return e.States.DeleteJournal(ctx, h.Stack.Name, h.Stack.Region, "")
}

func sameImports(rec *state.Record, f facts) bool {
	return (len(rec.Imports) == 0 && len(f.ImportedFrom) == 0 || reflect.DeepEqual(rec.Imports, f.ImportedFrom)) &&
		(len(rec.OutputReads) == 0 && len(f.OutputsFrom) == 0 || reflect.DeepEqual(rec.OutputReads, f.OutputsFrom))
}

// finishFailure keeps what a failed deploy has left, with the journal that tells how to undo it.
func (e *Engine) finishFailure(ctx context.Context, h *runlog.Header, file planFile, ops map[string]runlog.Op, l *ledger, rolledBack bool) error {
	if !rolledBack {
		seg, err := segmentOf(*h, file, ops, state.ReasonNoRollback, e.Clock.Now().UnixMilli())
		if err != nil {
			return err
		}
		if len(seg.Operations)+len(seg.FailedOperations) == 0 {
			return nil
		}
		return e.appendSegment(ctx, *h, seg)
	}
	clean := true
	for id, op := range ops {
		if strings.HasSuffix(id, plan.UndoSuffix) && op.Status != runlog.OpSucceeded {
			clean = false
			h.Diagnostics = append(h.Diagnostics, diag.Diagnostic{
				Severity: diag.Warning, Stack: h.Stack.Name, LogicalID: op.LogicalID,
				Summary: "the rollback could not undo what was done to " + op.LogicalID,
			})
		}
	}
	if !clean {
		return nil
	}
	if err := e.dropSegment(ctx, *h); err != nil {
		return err
	}
	// A first deploy that was undone altogether leaves no record.
	if file.Initial && len(l.record.Resources) == 0 && l.stands != nil && len(l.cleanup) == 0 {
		if err := e.States.Delete(ctx, h.Stack.Name, h.Stack.Region, l.stateETag); err != nil {
			return err
		}
		return e.States.DeleteSidecar(ctx, h.Stack.Name, h.Stack.Region)
	}
	return nil
}

// dropSegment removes this run's segment from the rollback journal: everything in it has been undone.
func (e *Engine) dropSegment(ctx context.Context, h runlog.Header) error {
	journal, etag, err := e.States.LoadJournal(ctx, h.Stack.Name, h.Stack.Region)
	if state.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	kept := journal.Segments[:0]
	for _, seg := range journal.Segments {
		if seg.RunID != h.RunID {
			kept = append(kept, seg)
		}
	}
	if journal.Segments = kept; len(kept) == 0 {
		return e.States.DeleteJournal(ctx, h.Stack.Name, h.Stack.Region, etag)
	}
	_, err = e.States.ReplaceJournal(ctx, journal, etag)
	return err
}

// finishDestroy removes the files of a stack of which nothing is left.
func (e *Engine) finishDestroy(ctx context.Context, h *runlog.Header, req Request, l *ledger) error {
	if len(l.record.Resources) > 0 || len(l.cleanup) > 0 {
		return nil
	}
	if l.stands != nil {
		if err := e.States.Delete(ctx, h.Stack.Name, h.Stack.Region, l.stateETag); err != nil {
			return err
		}
	}
	if err := e.States.DeleteSidecar(ctx, h.Stack.Name, h.Stack.Region); err != nil {
		return err
	}
	if err := e.States.DeleteJournal(ctx, h.Stack.Name, h.Stack.Region, ""); err != nil {
		return err
	}
	if err := e.States.UpdateExports(ctx, req.Region, h.Stack.Name, h.Stack.Region, nil); err != nil {
		h.Diagnostics = append(h.Diagnostics, diag.Diagnostic{
			Severity: diag.Warning, Stack: h.Stack.Name, Summary: "the exports index was not updated", Detail: err.Error(),
		})
	}
	return nil
}
