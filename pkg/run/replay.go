package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// planReplay plans the run of a rollback: it undoes what the stack's rollback journal tells, whichever tool has
// written it. There is no template in it. Without a journal there is nothing to do.
func (e *Engine) planReplay(ctx context.Context, req Request, s StackRequest, l *ledger, p *stackPlan) (diag.Diagnostics, error) {
	p.file.Initial = false
	journal, etag, err := e.States.LoadJournal(ctx, s.Name, s.Region)
	switch {
	case state.IsNotFound(err):
		journal = &state.Journal{}
	case err != nil:
		return nil, err
	}
	if diags := unknownOrphans(journal, req.Options.Orphans); diags.HasErrors() {
		return diags, nil
	}
	lives, err := e.livingHalves(ctx, s.StackRef, journal, l)
	if err != nil {
		return nil, err
	}
	replay := plan.BuildReplay(plan.ReplayInput{
		Journal: journal, Record: l.stands, Leftovers: leftovers(l), Lives: lives,
		RevertFailed: req.Options.RevertFailed, Force: req.Options.Force, Orphans: req.Options.Orphans,
	})
	p.binding.Journal = etag
	p.file.Plan, p.file.Replay = replay.Plan, &replay
	p.view.Changes, p.view.Replay = replayChanges(replay, l.stands), replay.Entries
	return replayWarnings(replay), nil
}

// unknownOrphans refuses to leave alone what the journal does not speak of.
func unknownOrphans(j *state.Journal, orphans []string) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, id := range orphans {
		known := slices.ContainsFunc(j.Segments, func(seg state.Segment) bool {
			return slices.ContainsFunc(seg.Operations, func(op state.CompletedOperation) bool { return op.LogicalID == id }) ||
				slices.ContainsFunc(seg.FailedOperations, func(op state.FailedOperation) bool { return op.LogicalID == id })
		})
		if !known {
			diags = append(diags, diag.Diagnostic{
				Severity: diag.Error, Summary: "the rollback journal says nothing of " + id,
				Detail: "--orphan names what the rollback is to leave as it is", Next: "Name the resource by its logical id, or leave --orphan out.",
			})
		}
	}
	return diags
}

// livingHalves finds out which of the resources that replacements have superseded still exist. What can't be read is
// taken to exist where nobody can have deleted it: it waits for its cleanup, or is retained.
func (e *Engine) livingHalves(ctx context.Context, ref runlog.StackRef, j *state.Journal, l *ledger) (func(*state.Resource) bool, error) {
	key := func(r *state.Resource) string { return r.ResourceType + " " + r.PhysicalID }
	lives := map[string]bool{}
	for _, old := range plan.OldHalves(j) {
		live, err := e.exists(ctx, ref, "", old)
		if provider.IsUnsupported(err) {
			waits := slices.ContainsFunc(l.cleanup, func(h state.OldHalf) bool { return isSame(h.Resource, old) })
			live, err = waits || old.UpdateReplacePolicy == "Retain", nil
		}
		if err != nil {
			return nil, err
		}
		lives[key(old)] = live
	}
	return func(r *state.Resource) bool { return lives[key(r)] }, nil
}

// exists asks the service whether a recorded resource exists.
func (e *Engine) exists(ctx context.Context, ref runlog.StackRef, logicalID string, r *state.Resource) (bool, error) {
	p, _, err := e.Providers.For(r.ResourceType, provider.Route(r.ProvisionedBy), sortedIDs(r.Properties))
	if err != nil {
		return false, &provider.Error{Kind: provider.KindUnsupported, Err: err}
	}
	_, err = p.Read(ctx, provider.Request{
		Stack: ref.Name, Region: ref.Region, Account: ref.Account, LogicalID: logicalID, Type: r.ResourceType,
		PhysicalID: r.PhysicalID, Previous: r.Properties, Attributes: r.Attributes,
	})
	switch {
	case err == nil:
		return true, nil
	case provider.IsNotFound(err):
		return false, nil
	}
	return false, fmt.Errorf("looking whether %s %s exists: %w", r.ResourceType, r.PhysicalID, err)
}

// replayChanges shows a replay as a plan is shown: what becomes of the resources, not of the journal's entries.
func replayChanges(r plan.Replay, rec *state.Record) []diff.Change {
	var out []diff.Change
	for _, op := range r.Plan.Operations {
		if strings.HasSuffix(op.ID, plan.UndoSuffix+plan.OldSuffix) && op.Undoes == "" && slices.ContainsFunc(r.Plan.Operations, func(first plan.Operation) bool {
			return first.ID+plan.OldSuffix == op.ID
		}) {
			continue // part of the replacement before it
		}
		c := diff.Change{LogicalID: op.LogicalID, Type: op.Type, Retain: op.Retain, DeleteFirst: op.DeleteFirst}
		undone := r.Undone[op.Undoes]
		current := recordOf(rec, op.LogicalID)
		c.Stateful = op.Action == plan.ActionDelete && current != nil && diff.Stateful(current)
		switch {
		case undone.Action == plan.ActionReplace:
			c.Action, c.Changes = diff.ActionReplace, propertyChanges(current, undone.Before)
			if recordedType(current) != recordedType(undone.Before) {
				c.OldType = recordedType(current)
			}
		case op.Action == plan.ActionUpdate:
			c.Action, c.Changes = diff.ActionUpdate, propertyChanges(current, undone.Before)
		case op.Action == plan.ActionRecord:
			c.RecordOnly = true
		case op.Action == plan.ActionDelete || op.Action == plan.ActionForget:
			c.Action = diff.ActionDelete
		default:
			c.Action = diff.ActionCreate
		}
		out = append(out, c)
	}
	return out
}

func propertyChanges(from, to *state.Resource) []diff.PropertyChange {
	if from == nil || to == nil || from.ResourceType != to.ResourceType {
		return nil
	}
	t, _ := schema.Lookup(to.ResourceType)
	_, changes := diff.Reassess(t, to.ResourceType, from.Properties, to.Properties)
	return changes
}

// replayWarnings says what a replay will not bring back.
func replayWarnings(r plan.Replay) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, i := range r.Plan.Irreversible {
		diags = append(diags, leftAsItIs(i))
	}
	for _, id := range sortedIDs(r.Undone) {
		undone := r.Undone[id]
		if path := maskedBefore(undone); path != "" && sends(r.Plan, id) {
			diags = append(diags, diag.Diagnostic{
				Severity: diag.Warning, LogicalID: undone.LogicalID, Path: "Properties." + path,
				Summary: undone.LogicalID + " can't be restored: the value that a property had is a secret and is not kept",
				Next:    "Deploy again with the value, or pass --force to leave the resource as it is.",
			})
		}
	}
	return diags
}

// maskedBefore is the path of a property whose former value is not kept, "" when there is none.
func maskedBefore(u plan.Undone) string {
	if u.Before == nil {
		return ""
	}
	return plan.MaskedPath(u.Before.Properties)
}

// sends reports whether the taking back of an entry needs the values that the properties had.
func sends(p plan.Plan, id string) bool {
	return slices.ContainsFunc(p.Operations, func(op plan.Operation) bool {
		return op.Undoes == id && op.Action != plan.ActionDelete && op.Action != plan.ActionForget && op.Action != plan.ActionRecord
	})
}

// undone is the entry of the rollback journal that an operation takes back.
func (f planFile) undone(planned plan.Operation) (plan.Undone, bool) {
	if f.Replay == nil {
		return plan.Undone{}, false
	}
	u, ok := f.Replay.Undone[planned.Undoes]
	return u, ok
}

// addUndone adds the entries of the rollback journal that the run takes back to its operations, as if they were some
// that have ended: what undoes them finds there what it undoes, wherever that was done.
func (f planFile) addUndone(ops map[string]runlog.Op) error {
	if f.Replay == nil {
		return nil
	}
	for id, u := range f.Replay.Undone {
		op := runlog.Op{
			OpID: id, Kind: string(plan.KindResource), Action: string(u.Action), LogicalID: u.LogicalID, Type: u.Type,
			Status: runlog.OpSucceeded,
		}
		if u.Failed {
			op.Status = runlog.OpFailed
		}
		if err := setRecords(&op, u.Before, nil); err != nil {
			return err
		}
		op.PhysicalID = u.PhysicalID
		ops[id] = op
	}
	return nil
}

// restoreUndone fills in what an operation sends that takes back an entry of the rollback journal.
func (in *operationInput) restoreUndone(u plan.Undone) error {
	if u.Before == nil {
		return fmt.Errorf("the journal has no record of %s from before the run", u.LogicalID)
	}
	if path := plan.MaskedPath(u.Before.Properties); path != "" {
		return diag.Diagnostics{{
			Severity: diag.Error, LogicalID: u.LogicalID, Path: "Properties." + path,
			Summary: "it can't be restored: the value that it had is a secret and is not kept",
			Next:    "Deploy again with the value, or pass --force to leave the resource as it is.",
		}}
	}
	in.restore(u.Before)
	in.Attempted = u.Attempted
	return nil
}

// finishReplay takes what has been undone out of the rollback journal. Where that was the stack's first deploy, and
// nothing is left of it, the record goes too.
func (e *Engine) finishReplay(ctx context.Context, h *runlog.Header, req Request, file planFile, ops map[string]runlog.Op, l *ledger, result runlog.Result) (runlog.Result, error) {
	if len(file.Plan.Irreversible) > 0 && result == runlog.ResultSucceeded {
		result = runlog.ResultPartial
	}
	left, err := e.popSegments(ctx, h.Stack, file.Replay, ops)
	if err != nil || left > 0 || !file.Replay.Initial || !empty(l) {
		return result, err
	}
	if err := e.forget(ctx, h, l); err != nil {
		return result, err
	}
	e.withdrawExports(ctx, h, req)
	return result, nil
}

// popSegments removes the segments of the rollback journal that have been replayed altogether, and returns how many
// are left. It may be repeated; a segment that somebody has added meanwhile stays.
func (e *Engine) popSegments(ctx context.Context, ref runlog.StackRef, r *plan.Replay, ops map[string]runlog.Op) (int, error) {
	open := map[plan.SegmentID]bool{}
	for i, id := range r.Segments {
		for _, entry := range r.Entries {
			open[id] = open[id] || entry.Segment == i && slices.ContainsFunc(entry.Operations, func(op string) bool {
				return ops[op].Status != runlog.OpSucceeded
			})
		}
	}
	for range 5 {
		j, etag, err := e.States.LoadJournal(ctx, ref.Name, ref.Region)
		if state.IsNotFound(err) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		n := len(j.Segments)
		j.Segments = slices.DeleteFunc(j.Segments, func(seg state.Segment) bool {
			id := plan.IDOf(seg)
			return slices.Contains(r.Segments, id) && !open[id]
		})
		if len(j.Segments) == n {
			return n, nil
		}
		_, err = e.States.ReplaceJournal(ctx, j, etag)
		if err == nil || !errors.Is(err, state.ErrModified) {
			return len(j.Segments), err
		}
	}
	return 0, fmt.Errorf("taking replayed segments out of the rollback journal of stack %s: %w", ref.Name, state.ErrModified)
}

// withdrawExports takes a stack that is gone out of the exports index.
func (e *Engine) withdrawExports(ctx context.Context, h *runlog.Header, req Request) {
	if err := e.States.UpdateExports(ctx, req.Region, h.Stack.Name, h.Stack.Region, nil); err != nil {
		h.Diagnostics = append(h.Diagnostics, diag.Diagnostic{
			Severity: diag.Warning, Stack: h.Stack.Name, Summary: "the exports index was not updated", Detail: err.Error(),
		})
	}
}
