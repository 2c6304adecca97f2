package run

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Close ends a run whose work is done: outputs, state, exports index, journal, terminal event, header, and
// last the lock.
func (e *Engine) Close(ctx context.Context, in PlannerInput) (Ended, error) {
	h, err := e.Log.Header(ctx, in.RunID)
	if err != nil {
		return Ended{}, fmt.Errorf("reading the header of run %s: %w", in.RunID, err)
	}
	if !carries(h, in.Execution) {
		return Ended{}, stranger(h, in.Execution)
	}
	if h.Result == "" {
		if h, err = e.conclude(ctx, h); err != nil {
			return Ended{}, err
		}
	}
	if h, err = e.closeHeader(ctx, h, h.Result); err != nil {
		return Ended{}, err
	}
	return Ended{RunID: h.RunID, Result: string(h.Result)}, e.unlock(ctx, h)
}

// conclude finishes the files of a run and says in the header, which is not stored yet, how it has ended.
func (e *Engine) conclude(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	if h.Status == runlog.StatusSettling {
		return h, fmt.Errorf("run %s: %w", h.RunID, runlog.ErrFenced)
	}
	concluded := h
	var result runlog.Result
	var err error
	if h.Kind == runlog.KindDeployment {
		result, err = e.closeDeployment(ctx, &concluded)
	} else {
		result, err = e.closeStack(ctx, &concluded)
	}
	if err != nil {
		// A twin may have closed the run meanwhile, and given up the lock.
		if now, again := e.Log.Header(ctx, h.RunID); again == nil && now.Result != "" {
			return now, nil
		}
		return h, err
	}
	return e.decide(ctx, concluded, result)
}

// decide stores the result in the header. From here on it stands: of two processes that would decide differently
// one is refused, and takes the other's word.
func (e *Engine) decide(ctx context.Context, h runlog.Header, result runlog.Result) (runlog.Header, error) {
	h.Result = result
	h.FinishedAt = e.Clock.Now().UTC()
	if h.StartedAt.IsZero() {
		h.StartedAt = h.FinishedAt
	}
	if h.Failure == nil && result == runlog.ResultFailed {
		h.Failure = firstFailure(h.Diagnostics)
	}
	stored, err := e.Log.UpdateHeader(ctx, h)
	if errors.Is(err, runlog.ErrConflict) {
		if now, again := e.Log.Header(ctx, h.RunID); again == nil && now.Result != "" {
			return now, nil
		}
	}
	if err != nil {
		return h, fmt.Errorf("deciding the result of run %s: %w", h.RunID, err)
	}
	return stored, nil
}

// closeHeader closes a run with a result, or with the one that it already has. The terminal event is made from the
// header once its result stands, and the run is CLOSED only after that: whoever finds a run that has a result and
// is not CLOSED finishes this, and event and header never contradict each other.
func (e *Engine) closeHeader(ctx context.Context, h runlog.Header, result runlog.Result) (runlog.Header, error) {
	var err error
	if h.Result == "" {
		if h, err = e.decide(ctx, h, result); err != nil {
			return h, err
		}
	}
	if e.Vault != nil && h.RunID == h.Root {
		// No step of the run needs a secret any more, and a closed run has none.
		e.forgetResolvers(h.Root)
		if err := e.Vault.Purge(ctx, h.Root); err != nil {
			return h, err
		}
	}
	if h.RunID == h.Root && h.Status != runlog.StatusClosed {
		if err := e.discardMacros(ctx, h.Root); err != nil {
			return h, err
		}
	}
	for range 5 {
		if h.Status == runlog.StatusClosed {
			return h, nil
		}
		if err := e.tellEnd(ctx, h); err != nil {
			return h, err
		}
		e.exportStory(ctx, h)
		h.Status = runlog.StatusClosed
		stored, err := e.Log.UpdateHeader(ctx, h)
		if err == nil {
			return stored, nil
		}
		if !errors.Is(err, runlog.ErrConflict) {
			return h, fmt.Errorf("closing run %s: %w", h.RunID, err)
		}
		if h, err = e.Log.Header(ctx, h.RunID); err != nil {
			return h, fmt.Errorf("reading the header of run %s: %w", h.RunID, err)
		}
	}
	return h, fmt.Errorf("closing run %s: %w", h.RunID, runlog.ErrConflict)
}

// tellEnd writes the terminal event of a run. Unlike other events it must not be lost.
func (e *Engine) tellEnd(ctx context.Context, h runlog.Header) error {
	ev := runEvent(h, runlog.FinalWave, runlog.RunFinished)
	ev.Version, ev.Time = runlog.EventVersion, h.FinishedAt
	ev.Result, ev.Counts, ev.Failure = h.Result, &h.Counts, h.Failure
	ev.DurationMs = h.FinishedAt.Sub(h.StartedAt).Milliseconds()
	if err := e.Log.Append(ctx, ev); err != nil {
		return fmt.Errorf("telling the end of run %s: %w", h.RunID, err)
	}
	return nil
}

// unlock releases the lock of a closed stack run, if it still is this run's.
func (e *Engine) unlock(ctx context.Context, h runlog.Header) error {
	if h.Kind != runlog.KindStack || h.Command == runlog.CommandPlan {
		return nil
	}
	if err := e.leaveLine(ctx, h); err != nil {
		return err
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
	cut, err := e.cancelled(ctx, *h)
	if err != nil {
		return "", err
	}
	result := runlog.ResultSucceeded
	if cut != nil {
		result, h.Failure = runlog.ResultFailed, cut.failure()
	}
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
	ctx = actingFor(ctx, h.RunID, req.Stacks[0])
	var file planFile
	if err := getJSON(ctx, e.Objects, planKey(h.RunID), &file); err != nil {
		return "", err
	}
	lock, err := e.States.Attach(ctx, h.Stack.Name, h.Stack.Region, h.Owner)
	if err != nil {
		return "", err
	}
	l, err := e.loadLedger(ctx, h.Stack)
	if err != nil {
		return "", err
	}
	if _, l.journalETag, err = e.States.LoadJournal(ctx, h.Stack.Name, h.Stack.Region); err != nil && !state.IsNotFound(err) {
		return "", err
	}
	// As in decideStack: what was read was read under the lock.
	if err := lock.Renew(ctx); err != nil {
		return "", err
	}
	ops, err := e.opsOf(ctx, h.RunID)
	if err != nil {
		return "", err
	}
	if err := file.addUndone(ops); err != nil {
		return "", err
	}
	if l.stateETag != h.StateETag {
		if err := e.foldRun(ctx, h, file, ops, l); err != nil {
			return "", err
		}
		if err := e.saveLedger(ctx, l, *h, file.interim(l)); err != nil {
			return "", err
		}
	}
	cut, err := e.cancelled(ctx, *h)
	if err != nil {
		return "", err
	}
	if cut != nil {
		h.Failure = cut.failure()
	}
	result := e.verdict(h, file, ops)
	if cut != nil {
		result = runlog.ResultFailed
	}
	rolledBack := plan.Phase(h.Phase) == plan.PhaseRollback
	switch {
	case cut != nil && h.Command == runlog.CommandDeploy:
		err = e.finishCancelled(ctx, *h, file, ops)
	case h.Command == runlog.CommandDestroy:
		err = e.finishDestroy(ctx, h, req, l)
	case h.Command == runlog.CommandRollback:
		result, err = e.finishReplay(ctx, h, req, file, ops, l, result)
	case result == runlog.ResultFailed:
		err = e.finishFailure(ctx, h, file, ops, l, rolledBack)
	default:
		err = e.finishDeploy(ctx, h, req, file, l)
	}
	warnLeftovers(h, l)
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
	var first runlog.Op
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
			if first.OpID == "" || op.FinishedAt.Before(first.FinishedAt) {
				first = op
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
	if h.Failure == nil && first.Error != nil {
		h.Failure = &runlog.Failure{
			Summary:   fmt.Sprintf("%s %s (%s) failed", verb(plan.Action(first.Action)), first.LogicalID, first.Type),
			Detail:    failureDetail(first.Error),
			LogicalID: first.LogicalID,
		}
	}
	return result
}

func failureDetail(e *runlog.OpError) string {
	if e.Code == "" {
		return string(e.Kind) + ": " + e.Message
	}
	return e.Code + ": " + e.Message
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
	if err := e.openFacts(ctx, h.Root, &file.Facts); err != nil {
		return fmt.Errorf("reading the parameters of run %s: %w", h.RunID, err)
	}
	v := &veil{e: e, s: req.Stacks[0], t: t, f: file.Facts, masked: l.masked}
	t, kept := v.published()
	h.Diagnostics = append(h.Diagnostics, kept.InStack(h.Stack.Name)...)
	in := diff.Input{Record: l.record, Template: t, Conditions: file.Facts.Conditions, Scope: file.Facts.scope(t)}
	in.Dependencies = template.Dependencies(t, file.Facts.Conditions)
	outputs, warnings := diff.Carry(in, diff.EvaluateOutputs(in))
	h.Diagnostics = append(h.Diagnostics, warnings.InStack(h.Stack.Name)...)
	if !reflect.DeepEqual(l.record.Outputs, outputs) || !sameImports(l.record, file.Facts) || l.stands == nil {
		l.record.Outputs = outputs
		l.record.Imports, l.record.OutputReads = file.Facts.ImportedFrom, file.Facts.OutputsFrom
		l.changed = true
	}
	if err := e.saveLedger(ctx, l, *h, file.generation()); err != nil {
		return err
	}
	h.StateETag, h.SidecarETag = l.stateETag, l.sidecarETag
	if err := e.States.UpdateExports(ctx, req.Region, h.Stack.Name, h.Stack.Region, l.record.Outputs); err != nil {
		h.Diagnostics = append(h.Diagnostics, diag.Diagnostic{
			Severity: diag.Warning, Stack: h.Stack.Name, Summary: "the exports index was not updated", Detail: err.Error(),
		})
	}
	e.reportOutputs(ctx, h, req, t, l.record.Outputs)
	return e.dropJournal(ctx, h, l)
}

// reportOutputs tells the caller the outputs that the template declares. The record has more: the names of exports.
func (e *Engine) reportOutputs(ctx context.Context, h *runlog.Header, req Request, t *template.Template, all map[string]any) {
	if e.Reports == nil || req.From == "" {
		return
	}
	outputs := map[string]any{}
	for name := range t.Outputs {
		if v, ok := all[name]; ok {
			outputs[name] = v
		}
	}
	if err := e.Reports.Deployed(ctx, req, h.RunID, outputs); err != nil {
		h.Diagnostics = append(h.Diagnostics, diag.Diagnostic{
			Severity: diag.Warning, Stack: h.Stack.Name, Summary: "the outputs could not be reported to whoever has asked for the run", Detail: err.Error(),
		})
	}
}

func sameImports(rec *state.Record, f facts) bool {
	return (len(rec.Imports) == 0 && len(f.ImportedFrom) == 0 || reflect.DeepEqual(rec.Imports, f.ImportedFrom)) &&
		(len(rec.OutputReads) == 0 && len(f.OutputsFrom) == 0 || reflect.DeepEqual(rec.OutputReads, f.OutputsFrom))
}

// finishFailure keeps what a failed deploy has left, with the journal that tells how to undo it.
func (e *Engine) finishFailure(ctx context.Context, h *runlog.Header, file planFile, ops map[string]runlog.Op, l *ledger, rolledBack bool) error {
	reason := state.ReasonNoRollback
	if rolledBack {
		clean, err := e.undone(ctx, h, ops)
		if err != nil || !clean {
			return err
		}
		reason = state.ReasonRollbackClean
	}
	seg, err := e.segment(ctx, *h, file, ops, reason)
	if err != nil {
		return err
	}
	if rolledBack {
		// What was done has been undone; what failed is kept, as cdkd keeps it (reference §0.9).
		seg.Operations = []state.CompletedOperation{}
	}
	if rolledBack && file.Initial && empty(l) {
		// A first deploy that was undone altogether leaves nothing.
		return e.forget(ctx, h, l)
	}
	if len(seg.Operations)+len(seg.FailedOperations) == 0 {
		return nil
	}
	return e.States.AppendSegment(ctx, h.Stack.Name, h.Stack.Region, seg)
}

// undone reports whether a rollback has undone everything, and warns of what it has not.
func (e *Engine) undone(ctx context.Context, h *runlog.Header, ops map[string]runlog.Op) (bool, error) {
	var undo plan.Plan
	if err := getJSON(ctx, e.Objects, rollbackPlanKey(h.RunID), &undo); err != nil {
		return false, err
	}
	clean := len(undo.Irreversible) == 0
	for _, planned := range undo.Operations {
		if ops[planned.ID].Status != runlog.OpSucceeded {
			clean = false
			h.Diagnostics = append(h.Diagnostics, diag.Diagnostic{
				Severity: diag.Warning, Stack: h.Stack.Name, LogicalID: planned.LogicalID,
				Summary: "the rollback could not undo what was done to " + planned.LogicalID,
			})
		}
	}
	return clean, nil
}

// warnLeftovers tells what still stands in AWS and waits for the next run to remove it.
func warnLeftovers(h *runlog.Header, l *ledger) {
	for _, old := range l.cleanup {
		h.Diagnostics = append(h.Diagnostics, diag.Diagnostic{
			Severity: diag.Warning, Stack: h.Stack.Name, LogicalID: old.LogicalID,
			Summary: fmt.Sprintf("%s %s still exists", old.Resource.ResourceType, old.Resource.PhysicalID),
			Detail:  "it was replaced, or left behind by a creation that failed, and could not be removed",
			Next:    "The next deploy or destroy of the stack removes it.",
		})
	}
}
