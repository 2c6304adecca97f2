package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// beginRollback turns the run around: from here its waves undo what it has done, in reverse order. The
// rollback journal is written first, so that a run that dies in the middle can be replayed.
func (s *stackTurn) beginRollback(ctx context.Context) error {
	done := map[string]plan.Outcome{}
	for id, op := range s.ops {
		outcome, err := outcomeOf(op)
		if err != nil {
			return err
		}
		done[id] = outcome
	}
	undo := plan.BuildRollback(asDone(s.file.Plan, s.ops), done)
	if err := putOnce(ctx, s.e.Objects, rollbackPlanKey(s.h.RunID), &undo); err != nil {
		return err
	}
	seg, err := s.e.segment(ctx, s.h, s.file, s.ops, state.ReasonRollingBack)
	if err != nil {
		return err
	}
	if err := s.e.appendSegment(ctx, s.h, seg); err != nil {
		return err
	}
	s.rollback = &undo
	s.byID = index(s.file.Plan)
	maps.Copy(s.byID, index(undo))
	s.rec.Phase = plan.PhaseRollback
	ev := runEvent(s.h, s.n, runlog.RollbackStarted)
	ev.Total = len(undo.Operations)
	s.e.append(ctx, ev)
	s.tellIrreversible(ctx, undo.Irreversible)
	return nil
}

// outcomeOf is what became of an operation, as far as undoing it is concerned.
func outcomeOf(op runlog.Op) (plan.Outcome, error) {
	o := plan.Outcome{
		Succeeded: op.Status == runlog.OpSucceeded && op.Reason != reasonUnchanged,
		Touched:   touched(op),
		Gone:      op.Status == runlog.OpFailed && op.Action == string(plan.ActionReplace) && op.Stage == stageDeleted,
	}
	if op.Action != string(plan.ActionReplace) {
		return o, nil
	}
	was, err := decodeResource(op.Before)
	if err != nil {
		return o, err
	}
	o.Stateful = was != nil && diff.Stateful(was)
	return o, nil
}

// asDone is the plan as it was carried out: an operation that might have been a replacement may have been an update.
func asDone(p plan.Plan, ops map[string]runlog.Op) plan.Plan {
	p.Operations = slices.Clone(p.Operations)
	for i, planned := range p.Operations {
		if op, ok := ops[planned.ID]; ok && planned.Kind == plan.KindResource && op.Action != "" {
			p.Operations[i].Action = plan.Action(op.Action)
			p.Operations[i].DeleteFirst = planned.DeleteFirst && op.Action == string(plan.ActionReplace)
		}
	}
	return p
}

// touched: the operation is an update that has failed, and may have come half-way before it did.
func touched(op runlog.Op) bool {
	return op.Status == runlog.OpFailed && op.Action == string(plan.ActionUpdate) && op.Error != nil &&
		op.Error.Code != codeUnresolvable && op.Error.Code != codeNotInvoked
}

// tellIrreversible says what the rollback will leave as it is.
func (s *stackTurn) tellIrreversible(ctx context.Context, list []plan.Irreversible) {
	for _, i := range list {
		d := leftAsItIs(i)
		d.Stack = s.h.Stack.Name
		s.h.Diagnostics = append(s.h.Diagnostics, d)
		ev := runEvent(s.h, s.n, runlog.Warned)
		ev.ID = runlog.EventID(s.n, "irreversible."+i.ID, runlog.Warned, 0)
		ev.LogicalID, ev.Message = i.LogicalID, d.Error()
		s.e.append(ctx, ev)
	}
}

// leftAsItIs says what a rollback does not bring back.
func leftAsItIs(i plan.Irreversible) diag.Diagnostic {
	d := diag.Diagnostic{
		Severity: diag.Warning, LogicalID: i.LogicalID,
		Summary: "the rollback leaves " + i.LogicalID + " as it is now", Detail: i.Reason,
		Next: "Deploy a version that fits what is there.",
	}
	if i.Emptied {
		d.Summary, d.Next = "the rollback can't bring back the data of "+i.LogicalID, "Restore it from a backup."
	}
	return d
}

// undoInput fills in what an undo operation sends: the properties of the record as it was before the run. Where the
// update that it undoes has failed, nobody knows how far that came: it starts from what was attempted.
func (s *stackTurn) undoInput(ctx context.Context, planned plan.Operation, in *operationInput) error {
	if entry, ok := s.file.undone(planned); ok {
		return in.restoreUndone(entry)
	}
	undone := s.ops[planned.Undoes]
	was, err := decodeResource(undone.Before)
	if err != nil {
		return err
	}
	if was == nil {
		return fmt.Errorf("the journal has no record of %s from before the run", planned.LogicalID)
	}
	in.restore(was)
	if err := s.unveil(ctx, undone, in); err != nil {
		return err
	}
	if touched(undone) {
		if attempted, err := s.e.operationInput(ctx, s.h.RunID, undone.Wave, undone.OpID); err == nil {
			in.Attempted = attempted.Properties
		} else if !isAbsent(err) && !errors.Is(err, errNoInput) {
			return err
		}
	}
	return nil
}

// restore fills in what makes a resource what a record says.
func (in *operationInput) restore(was *state.Resource) {
	in.Properties = was.Properties
	in.Dependencies = was.Dependencies
	in.DeletionPolicy, in.UpdateReplacePolicy = was.DeletionPolicy, was.UpdateReplacePolicy
	in.Route = provider.Route(was.ProvisionedBy)
	in.WantAttributes = sortedIDs(was.Attributes)
}

// appendSegment adds this run's segment to the stack's rollback journal (reference §1.4), once: the first one says
// what the run had done when it failed.
func (e *Engine) appendSegment(ctx context.Context, h runlog.Header, seg state.Segment) error {
	journal, _, err := e.States.LoadJournal(ctx, h.Stack.Name, h.Stack.Region)
	if err != nil && !state.IsNotFound(err) {
		return err
	}
	if journal != nil {
		for _, old := range journal.Segments {
			if old.RunID == h.RunID {
				return nil
			}
		}
	}
	return e.States.AppendSegment(ctx, h.Stack.Name, h.Stack.Region, seg)
}

// segment tells in cdkd's terms what a run has done: what succeeded in the order in which it ended, and what failed.
// A change of policies alone is an update to it that changes no property; an old half that was cleaned up, and what turned
// out to need no change, are no changes.
func (e *Engine) segment(ctx context.Context, h runlog.Header, file planFile, ops map[string]runlog.Op, reason string) (state.Segment, error) {
	seg := state.Segment{
		RunID: h.RunID, Timestamp: e.Clock.Now().UnixMilli(), Reason: reason, InitialDeploy: file.Initial,
		Operations: []state.CompletedOperation{},
	}
	var ended []runlog.Op
	for _, planned := range file.Plan.Operations {
		op, ok := ops[planned.ID]
		if ok && op.Reason != reasonUnchanged && !strings.HasSuffix(op.OpID, plan.OldSuffix) {
			ended = append(ended, op)
		}
	}
	slices.SortFunc(ended, endedBefore)
	for _, op := range ended {
		before, err := decodeResource(op.Before)
		if err != nil {
			return seg, err
		}
		switch op.Status {
		case runlog.OpSucceeded:
			done, err := completed(op, before)
			if err != nil {
				return seg, err
			}
			seg.Operations = append(seg.Operations, done)
		case runlog.OpFailed:
			lost, err := e.lost(ctx, h, op, before)
			if err != nil {
				return seg, err
			}
			seg.FailedOperations = append(seg.FailedOperations, lost)
		}
	}
	return seg, nil
}

func completed(op runlog.Op, before *state.Resource) (state.CompletedOperation, error) {
	done := state.CompletedOperation{
		LogicalID: op.LogicalID, ChangeType: changeType(plan.Action(op.Action)), ResourceType: op.Type,
		PhysicalID: op.PhysicalID, PreviousState: before,
	}
	after, err := decodeResource(op.After)
	switch {
	case err != nil:
		return done, err
	case after != nil:
		done.ProvisionedBy, done.Properties = after.ProvisionedBy, after.Properties
	case before != nil:
		done.ProvisionedBy = before.ProvisionedBy
	}
	return done, nil
}

// lost describes a failed operation. What it attempted stands in the input of its wave, unless it could not even be
// resolved.
func (e *Engine) lost(ctx context.Context, h runlog.Header, op runlog.Op, before *state.Resource) (state.FailedOperation, error) {
	lost := state.FailedOperation{LogicalID: op.LogicalID, ChangeType: changeType(plan.Action(op.Action)), ResourceType: op.Type}
	if before != nil {
		lost.PreviousState, lost.PhysicalID, lost.ProvisionedBy = before, before.PhysicalID, before.ProvisionedBy
	}
	if op.Error != nil && op.Error.Code == codeUnresolvable {
		return lost, nil
	}
	input, err := e.operationInput(ctx, h.RunID, op.Wave, op.OpID)
	switch {
	case errors.Is(err, errNoInput) || isAbsent(err):
	case err != nil:
		return lost, err
	default:
		lost.AttemptedProperties = input.recordable()
		if lost.AttemptedProperties == nil && lost.ChangeType != state.ChangeDelete {
			lost.AttemptedProperties = map[string]any{}
		}
	}
	return lost, nil
}

// changeType is cdkd's word for an action: a replacement is an UPDATE to it.
func changeType(a plan.Action) string {
	switch a {
	case plan.ActionCreate:
		return state.ChangeCreate
	case plan.ActionDelete, plan.ActionForget:
		return state.ChangeDelete
	}
	return state.ChangeUpdate
}
