package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// fold merges the result of one ended operation. It is idempotent: a result that is already in the record
// changes nothing. A record that is neither the one before nor the one after was written by somebody else, and
// decide merges. again: the result has been folded before, and what the record says now is not of this run. foreign:
// somebody else has written the record since this run did.
func (l *ledger) fold(op runlog.Op, planned plan.Operation, ops map[string]runlog.Op, again, foreign bool) error {
	switch {
	case op.Status == runlog.OpFailed:
		return l.foldFailure(op, planned, again, foreign)
	case op.Status != runlog.OpSucceeded || op.Kind != string(plan.KindResource):
		return nil
	}
	before, after, err := halves(op)
	if err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(op.OpID, plan.OldSuffix):
		l.dropOld(before)
	case planned.Action == plan.ActionDelete || planned.Action == plan.ActionForget:
		return l.foldDelete(op, planned, before, ops[planned.Undoes], again, foreign)
	default:
		// A record that somebody has put back to what it was looks as if nobody had written it.
		l.foldWrite(op, planned, before, after, again || foreign)
		if op.Action != string(plan.ActionRecord) && planned.Action != plan.ActionRecord && op.Reason != reasonUnchanged && isSame(l.record.Resources[op.LogicalID], after) {
			l.mask(op.LogicalID, op.Masked)
		}
	}
	return nil
}

// halves are the records before and after an operation, nil where there was or is none.
func halves(op runlog.Op) (before, after *state.Resource, err error) {
	if before, err = decodeResource(op.Before); err == nil {
		after, err = decodeResource(op.After)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("folding %s: %w", op.OpID, err)
	}
	return before, after, nil
}

// foldDelete takes a resource out of the record. A replacement that is undone, the operation undone, brings its
// old half back, which still stands: nothing is cleaned up before the rest of a run has succeeded.
func (l *ledger) foldDelete(op runlog.Op, planned plan.Operation, before *state.Resource, undone runlog.Op, again, foreign bool) error {
	var old *state.Resource
	if undone.Action == string(plan.ActionReplace) && undone.Stage != stageDeleted {
		var err error
		if old, err = decodeResource(undone.Before); err != nil {
			return fmt.Errorf("folding %s: %w", op.OpID, err)
		}
	}
	current := l.record.Resources[op.LogicalID]
	orphaned := before
	switch {
	case sameResource(current, old):
	case !again && isSame(current, before) && (!foreign || sameResource(current, before) && l.ask(current).unread):
		// Where somebody else has written, what stands may be a later one of the same name.
		orphaned = current
		l.set(op, old)
	default:
		l.decide(op, planned, before, old)
	}
	leaves := undone.Action == string(plan.ActionCreate) && op.Action == string(plan.ActionForget)
	if now := l.record.Resources[op.LogicalID]; leaves && orphaned != nil && now == nil && !l.orphaned(op.LogicalID, orphaned) {
		l.addOrphan(op.LogicalID, orphaned, op.FinishedAt.UnixMilli())
		l.changed = true
	}
	return nil
}

// orphaned reports whether the record names a resource among its orphans.
func (l *ledger) orphaned(id string, r *state.Resource) bool {
	return slices.ContainsFunc(l.record.Orphans, func(o state.Orphan) bool { return o.LogicalID == id && isSame(o.Resource, r) })
}

// addOrphan notes a resource that a rollback leaves standing under its DeletionPolicy, so that a later deploy can
// take it back instead of colliding with its name.
func (l *ledger) addOrphan(id string, r *state.Resource, at int64) {
	orphans := slices.DeleteFunc(slices.Clone(l.record.Orphans), func(o state.Orphan) bool { return o.LogicalID == id })
	l.record.Orphans = append(orphans, state.Orphan{LogicalID: id, OrphanedAt: at, Resource: r})
}

// foldWrite puts the record after a create, update or replacement in place.
func (l *ledger) foldWrite(op runlog.Op, planned plan.Operation, before, after *state.Resource, again bool) {
	id := op.LogicalID
	current := l.record.Resources[id]
	switch {
	case after == nil || sameResource(current, after):
		return
	case !again && sameResource(current, before):
	case !again && current == nil && op.Stage == stageDeleted:
		// An earlier attempt has deleted the old half, which has been folded.
	default:
		l.decide(op, planned, before, after)
		return
	}
	if before != nil && !isSame(before, after) && leavesOld(planned, op, after) {
		l.addOld(id, before)
	}
	// What is recorded now does not wait for its cleanup: it may have the name of something that did.
	l.dropOld(after)
	l.record.Resources[id] = after
	l.changed = true
}

// leavesOld reports whether an operation that has led to another resource leaves the one before it to be cleaned
// up. An update does so where the service has chosen to replace, as the handler of a custom resource can
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes-update.html).
func leavesOld(planned plan.Operation, op runlog.Op, after *state.Resource) bool {
	switch plan.Action(op.Action) {
	case plan.ActionReplace:
		return !planned.Retain && op.Stage != stageDeleted
	case plan.ActionUpdate:
		return after.UpdateReplacePolicy != "Retain"
	case plan.ActionCreate:
		// When this was planned there was nothing; what somebody has recorded since must not lose its name.
		return true
	}
	return false
}

// foldFailure keeps what a failed create could not remove, drops the old half that had to go before it, and records how
// far a failed update has come.
func (l *ledger) foldFailure(op runlog.Op, planned plan.Operation, again, foreign bool) error {
	before, after, err := halves(op)
	if err != nil {
		return err
	}
	if op.Action == string(plan.ActionUpdate) && op.After != nil {
		l.foldWrite(op, planned, before, after, again || foreign)
		return nil
	}
	if op.Stage == stageDeleted {
		switch current := l.record.Resources[op.LogicalID]; {
		case !isSame(current, before):
		case again:
			l.decide(op, planned, before, nil)
		default:
			delete(l.record.Resources, op.LogicalID)
			l.changed = true
		}
	}
	if op.PhysicalID == "" || (op.Action != string(plan.ActionCreate) && op.Action != string(plan.ActionReplace)) {
		return nil
	}
	remnant := after
	if remnant == nil {
		// The attempt was given up, and all that is known is what it was making.
		remnant = &state.Resource{PhysicalID: op.PhysicalID, ResourceType: op.Type, Properties: map[string]any{}}
	}
	if isSame(l.record.Resources[op.LogicalID], remnant) {
		return nil // a later attempt has made it
	}
	l.addRemnant(op.LogicalID, remnant)
	return nil
}

// addRemnant notes a resource for its cleanup that was never recorded, so that nothing can rely on it: it makes way for
// the next creation under its logical id.
func (l *ledger) addRemnant(id string, r *state.Resource) {
	n := len(l.cleanup)
	if l.addOld(id, r); len(l.cleanup) > n {
		l.cleanup[n].Remnant = true
	}
}

// isSame reports whether two records are of one resource in AWS.
func isSame(a, b *state.Resource) bool {
	return a != nil && b != nil && a.PhysicalID == b.PhysicalID && a.ResourceType == b.ResourceType
}

func (l *ledger) addOld(id string, r *state.Resource) {
	for _, old := range l.cleanup {
		if old.LogicalID == id && isSame(old.Resource, r) {
			return
		}
	}
	l.cleanup = append(l.cleanup, state.OldHalf{LogicalID: id, Resource: r})
	l.cleanupChanged = true
}

func (l *ledger) dropOld(r *state.Resource) {
	if r == nil {
		return
	}
	n := len(l.cleanup)
	l.cleanup = slices.DeleteFunc(l.cleanup, func(old state.OldHalf) bool {
		return isSame(old.Resource, r)
	})
	l.cleanupChanged = l.cleanupChanged || len(l.cleanup) != n
}

func decodeResource(raw json.RawMessage) (*state.Resource, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	r := new(state.Resource)
	if err := unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("reading the recorded resource: %w", err)
	}
	return r, nil
}

// sameResource compares two records by their JSON; two absent ones are the same.
func sameResource(a, b *state.Resource) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	x, errA := marshal(a)
	y, errB := marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}
