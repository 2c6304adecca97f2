package run

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// reasonUnchanged marks an operation that had nothing left to do: it counts as unchanged.
const reasonUnchanged = "nothing to change"

// endInline ends an operation that needs no call: a forgotten resource, changed policies, an update that turns
// out to change nothing, an old half that was never made. It reports whether it did. An operation whose values
// can't be resolved fails here, before any call.
func (s *stackTurn) endInline(ctx context.Context, planned plan.Operation) (bool, error) {
	current := s.before(planned)
	if planned.Action == plan.ActionDelete {
		if current != nil {
			return false, nil
		}
		return true, s.end(ctx, planned, reasonUnchanged, nil, nil)
	}
	if planned.Action == plan.ActionForget {
		return true, s.end(ctx, planned, "", current, nil)
	}
	in, err := s.input(ctx, planned)
	if err != nil {
		return true, s.refuse(ctx, planned, err)
	}
	if current == nil {
		return false, nil
	}
	switch {
	case planned.Action == plan.ActionUpdate && in.Operation.Action == plan.ActionReplace:
		return true, s.refuse(ctx, planned, diag.Diagnostics{{
			Severity: diag.Error, LogicalID: planned.LogicalID,
			Summary: "what it refers to has changed in a way that needs a replacement, which the plan did not foresee",
			Next:    "Deploy again: the new plan will show the replacement.",
		}})
	case in.Operation.Action != plan.ActionRecord:
		return false, nil
	}
	after := *current
	after.Dependencies, after.DeletionPolicy, after.UpdateReplacePolicy = in.Dependencies, in.DeletionPolicy, in.UpdateReplacePolicy
	reason := ""
	if planned.Action != plan.ActionRecord {
		reason = reasonUnchanged
	}
	return true, s.end(ctx, planned, reason, current, &after)
}

// end records an operation that was done without a call.
func (s *stackTurn) end(ctx context.Context, planned plan.Operation, reason string, before, after *state.Resource) error {
	op := s.ended(planned, runlog.OpSucceeded, reason)
	if err := setRecords(&op, before, after); err != nil {
		return err
	}
	if err := s.put(ctx, op); err != nil {
		return err
	}
	switch {
	case planned.Action == plan.ActionForget:
		s.e.tell(ctx, s.h.RunID, s.about(), s.ops[planned.ID], runlog.OpRetain)
	case reason == "":
		s.e.tell(ctx, s.h.RunID, s.about(), s.ops[planned.ID], runlog.OpDone)
	}
	return nil
}

// turned is what an operation on a standing resource really is, now that its properties are known: ActionRecord
// when nothing differs, an update where a replacement was only possible, or the other way round. What was
// planned without doubt stays what it is.
func turned(planned plan.Operation, before *state.Resource, props map[string]any) plan.Operation {
	if before == nil || planned.Action != plan.ActionUpdate && planned.Action != plan.ActionReplace {
		return planned
	}
	if strings.HasSuffix(planned.ID, plan.UndoSuffix) {
		if planned.Action == plan.ActionUpdate && reflect.DeepEqual(before.Properties, props) {
			planned.Action = plan.ActionRecord
		}
		return planned
	}
	if planned.Action == plan.ActionReplace && !planned.Speculative || before.ResourceType != planned.Type {
		return planned
	}
	t, _ := schema.Lookup(planned.Type)
	switch action, _ := diff.Reassess(t, planned.Type, before.Properties, props); action {
	case diff.ActionNone:
		planned.Action, planned.DeleteFirst = plan.ActionRecord, false
	case diff.ActionUpdate:
		planned.Action, planned.DeleteFirst = plan.ActionUpdate, false
	case diff.ActionReplace:
		planned.Action = plan.ActionReplace
	}
	return planned
}

// setRecords puts the record before and after into a journal entry.
func setRecords(op *runlog.Op, before, after *state.Resource) error {
	for _, r := range []struct {
		from *state.Resource
		to   *json.RawMessage
	}{{before, &op.Before}, {after, &op.After}} {
		if r.from == nil {
			continue
		}
		raw, err := marshal(r.from)
		if err != nil {
			return fmt.Errorf("encoding the record of %s: %w", op.LogicalID, err)
		}
		*r.to = raw
	}
	if after != nil {
		op.PhysicalID = after.PhysicalID
	} else if before != nil {
		op.PhysicalID = before.PhysicalID
	}
	return nil
}

// codeUnresolvable marks an operation that was refused before any call.
const codeUnresolvable = "Unresolvable"

// refuse fails an operation whose properties can't be resolved. A cause that is not about them, a store or a key that
// could not be reached, is returned: the same step may succeed later.
func (s *stackTurn) refuse(ctx context.Context, planned plan.Operation, cause error) error {
	if _, err := refusal(cause); err != nil {
		return err
	}
	op := s.ended(planned, runlog.OpFailed, "")
	op.Error = &runlog.OpError{Kind: provider.KindInvalid, Code: codeUnresolvable, Message: diag.From(cause).Error()}
	if err := s.put(ctx, op); err != nil {
		return err
	}
	s.e.tell(ctx, s.h.RunID, s.about(), s.ops[planned.ID], runlog.OpFail)
	return nil
}

// handlersChoice plans the cleanup after updates of custom resources. Their handler may answer an update with
// another physical id, and the old one is then to be deleted once the update has been made
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes-update.html). Where it has
// not, there is nothing to do when the turn of this operation comes. A leftover of an earlier run may have the usual
// id of such a cleanup: then this one has another.
func handlersChoice(p plan.Plan, rec *state.Record) []plan.Operation {
	taken := map[string]bool{}
	for _, op := range p.Operations {
		taken[op.ID] = true
	}
	var out []plan.Operation
	for _, op := range p.Operations {
		standing := recordOf(rec, op.LogicalID)
		if op.Action != plan.ActionUpdate || !template.IsCustomResource(op.Type) || standing == nil {
			continue
		}
		id := op.ID + plan.OldSuffix
		if taken[id] {
			id = op.ID + ".0" + plan.OldSuffix
		}
		out = append(out, plan.Operation{
			ID: id, Kind: plan.KindResource, Action: plan.ActionDelete, Phase: plan.PhaseCleanup,
			LogicalID: op.LogicalID, Type: op.Type, PhysicalID: standing.PhysicalID, Speculative: true,
		})
	}
	return out
}
