package run

import (
	"context"
	"fmt"
	"maps"

	"github.com/slipway-cdk/slipway/pkg/diag"
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
		done[id] = plan.Outcome{
			Succeeded: op.Status == runlog.OpSucceeded && op.Reason != reasonUnchanged,
			Touched:   op.Status == runlog.OpFailed && op.Action == string(plan.ActionUpdate) && op.Error.Code != codeUnresolvable,
		}
	}
	undo := plan.BuildRollback(s.file.Plan, done)
	if err := putOnce(ctx, s.e.Objects, rollbackPlanKey(s.h.RunID), &undo); err != nil {
		return err
	}
	if err := s.writeRollbackSegment(ctx, state.ReasonRollingBack); err != nil {
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

// tellIrreversible says what the rollback will leave as it is.
func (s *stackTurn) tellIrreversible(ctx context.Context, list []plan.Irreversible) {
	for _, i := range list {
		d := diag.Diagnostic{
			Severity: diag.Warning, Stack: s.h.Stack.Name, LogicalID: i.LogicalID,
			Summary: "the rollback leaves " + i.LogicalID + " as it is now", Detail: i.Reason,
			Next: "Deploy a version that fits what is there.",
		}
		s.h.Diagnostics = append(s.h.Diagnostics, d)
		ev := runEvent(s.h, s.n, runlog.Warned)
		ev.ID = runlog.EventID(s.n, "irreversible."+i.ID, runlog.Warned, 0)
		ev.LogicalID, ev.Message = i.LogicalID, d.Error()
		s.e.append(ctx, ev)
	}
}

// undoInput fills in what an undo operation sends: the properties of the record as it was before the run.
func (s *stackTurn) undoInput(planned plan.Operation, in *operationInput) error {
	was, err := decodeResource(s.ops[planned.Undoes].Before)
	if err != nil {
		return err
	}
	if was == nil {
		return fmt.Errorf("the journal has no record of %s from before the run", planned.LogicalID)
	}
	in.Properties = was.Properties
	in.Dependencies = was.Dependencies
	in.DeletionPolicy, in.UpdateReplacePolicy = was.DeletionPolicy, was.UpdateReplacePolicy
	in.Route = provider.Route(was.ProvisionedBy)
	in.WantAttributes = sortedIDs(was.Attributes)
	return nil
}

// writeRollbackSegment appends this run's segment to the stack's rollback journal (reference §1.4), once.
func (s *stackTurn) writeRollbackSegment(ctx context.Context, reason string) error {
	seg, err := s.segment(reason)
	if err != nil {
		return err
	}
	return s.e.appendSegment(ctx, s.h, seg)
}

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

// segment tells in cdkd's terms what this run has done.
func (s *stackTurn) segment(reason string) (state.Segment, error) {
	return segmentOf(s.h, s.file, s.ops, reason, s.e.Clock.Now().UnixMilli())
}

func segmentOf(h runlog.Header, file planFile, ops map[string]runlog.Op, reason string, now int64) (state.Segment, error) {
	seg := state.Segment{
		RunID: h.RunID, Timestamp: now, Reason: reason, InitialDeploy: file.Initial,
		Operations: []state.CompletedOperation{},
	}
	for _, planned := range file.Plan.Operations {
		op, ok := ops[planned.ID]
		if !ok || op.Reason == reasonUnchanged || planned.Action == plan.ActionRecord {
			continue
		}
		before, err := decodeResource(op.Before)
		if err != nil {
			return seg, err
		}
		after, err := decodeResource(op.After)
		if err != nil {
			return seg, err
		}
		change := changeType(planned.Action)
		switch op.Status {
		case runlog.OpSucceeded:
			done := state.CompletedOperation{
				LogicalID: planned.LogicalID, ChangeType: change, ResourceType: planned.Type,
				PhysicalID: op.PhysicalID, PreviousState: before,
			}
			if after != nil {
				done.ProvisionedBy, done.Properties = after.ProvisionedBy, after.Properties
			} else if before != nil {
				done.ProvisionedBy = before.ProvisionedBy
			}
			seg.Operations = append(seg.Operations, done)
		case runlog.OpFailed:
			lost := state.FailedOperation{LogicalID: planned.LogicalID, ChangeType: change, ResourceType: planned.Type}
			if before != nil {
				lost.PreviousState, lost.PhysicalID, lost.ProvisionedBy = before, before.PhysicalID, before.ProvisionedBy
			}
			seg.FailedOperations = append(seg.FailedOperations, lost)
		}
	}
	return seg, nil
}

// changeType is cdkd's word for an action: a replacement is an UPDATE to it.
func changeType(a plan.Action) string {
	switch a {
	case plan.ActionCreate:
		return "CREATE"
	case plan.ActionDelete, plan.ActionForget:
		return "DELETE"
	}
	return "UPDATE"
}
