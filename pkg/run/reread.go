package run

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// foldResults folds what has ended since, into the ledger, and returns the grown list of what is folded. With foreign
// another tool has written the record since this run saved it last: then what was folded before is looked at again.
//
// Where the record says neither what it did before an operation nor what it shall say after, the live resources
// decide. Folding itself asks nobody: it runs over a copy, notes what it would have to know, and runs again once that
// has been read. A read that fails is an error of the step, which is repeated; nothing is guessed.
func (e *Engine) foldResults(ctx context.Context, ref runlog.StackRef, l *ledger, ops map[string]runlog.Op, byID map[string]plan.Operation, folded []string, foreign bool) ([]string, error) {
	answers := map[string]answer{}
	for {
		try := l.clone()
		try.answers = answers
		grown, err := try.foldAll(ops, byID, folded, foreign)
		if err != nil {
			return nil, err
		}
		if len(try.asked) == 0 {
			*l = *try
			return grown, nil
		}
		for _, id := range sortedIDs(try.asked) {
			if answers[id], err = e.look(ctx, ref, try.asked[id]); err != nil {
				return nil, err
			}
		}
	}
}

// foldRun folds what a run has done that is not folded yet, once nothing of it is in flight any more: what its last
// decision did not see, and everything where another tool has written since.
func (e *Engine) foldRun(ctx context.Context, h *runlog.Header, file planFile, ops map[string]runlog.Op, l *ledger) error {
	byID := index(file.Plan)
	var undo plan.Plan
	switch err := getJSON(ctx, e.Objects, rollbackPlanKey(h.RunID), &undo); {
	case err == nil:
		maps.Copy(byID, index(undo))
	case !isAbsent(err):
		return err
	}
	var last decisionRecord
	if h.Decision > 0 {
		if err := getJSON(ctx, e.Objects, decisionKey(h.RunID, h.Decision), &last); err != nil {
			return err
		}
	}
	// Where there is no record, the run may have saved one all the same and died before its header told so, and others
	// may have removed it since.
	foreign := l.stateETag != h.StateETag || l.stateETag == ""
	if _, err := e.foldResults(ctx, h.Stack, l, ops, byID, last.Folded, foreign); err != nil {
		return err
	}
	for _, id := range l.conflicts {
		h.Diagnostics = append(h.Diagnostics, conflict(h.Stack.Name, id))
	}
	l.conflicts = nil
	return nil
}

// answer is what reading a live resource has told.
type answer struct {
	live bool
	// unread: nobody can tell, and it is taken to exist.
	unread bool
	// properties are those that the service reports, nil where it can't be asked.
	properties map[string]any
}

// look reads a recorded resource. One that nobody can read is taken to exist: its name is then kept.
func (e *Engine) look(ctx context.Context, ref runlog.StackRef, r *state.Resource) (answer, error) {
	p, _, err := e.Providers.For(r.ResourceType, provider.Route(r.ProvisionedBy), sortedIDs(r.Properties))
	if err != nil {
		return answer{live: true, unread: true}, nil //nolint:nilerr // nobody can read it
	}
	live, err := p.Read(ctx, provider.Request{
		Stack: ref.Name, Region: ref.Region, Account: ref.Account, Type: r.ResourceType,
		PhysicalID: r.PhysicalID, Previous: r.Properties, Attributes: r.Attributes,
	})
	switch {
	case err == nil:
		return answer{live: true, properties: live.Properties}, nil
	case provider.IsNotFound(err):
		return answer{}, nil
	case provider.IsUnsupported(err):
		return answer{live: true, unread: true}, nil
	}
	return answer{}, fmt.Errorf("reading %s %s, whose record another tool has changed: %w", r.ResourceType, r.PhysicalID, err)
}

// clone copies what folding changes.
func (l *ledger) clone() *ledger {
	c := *l
	c.record = copyRecord(l.record, runlog.StackRef{})
	c.cleanup, c.conflicts = slices.Clone(l.cleanup), slices.Clone(l.conflicts)
	c.masked = maps.Clone(l.masked)
	c.asked = map[string]*state.Resource{}
	return &c
}

// ask returns what is known of a live resource. What is not known yet is noted as a question, and taken to exist.
func (l *ledger) ask(r *state.Resource) answer {
	if r == nil {
		return answer{}
	}
	id := r.ResourceType + " " + r.PhysicalID
	a, known := l.answers[id]
	if !known {
		l.asked[id] = r
		return answer{live: true}
	}
	return a
}

// lastWords are the operations of a run after which nothing more was done to their resource, by foldKey: only they
// tell how it shall stand.
func lastWords(ended []runlog.Op) map[string]bool {
	last := map[string]string{}
	for _, op := range ended {
		if !strings.HasSuffix(op.OpID, plan.OldSuffix) {
			last[op.LogicalID] = foldKey(op)
		}
	}
	words := map[string]bool{}
	for _, key := range last {
		words[key] = true
	}
	return words
}

// decide merges the outcome of an operation, ours, into a record in which another tool has written, theirs.
//
//   - Ours lives and theirs does not: ours is recorded. Theirs lives and ours does not: it stays. Neither: no record.
//   - Both live. If theirs is the resource from before the operation, it has been superseded all the same. If it is
//     another one it stays in the record, and ours waits for its cleanup: nothing loses its name.
//   - They are one resource: what it is like says whose properties are true.
func (l *ledger) decide(op runlog.Op, planned plan.Operation, before, ours *state.Resource) {
	id := op.LogicalID
	theirs := l.record.Resources[id]
	l.conflicts = append(l.conflicts, id)
	oursLives, theirsLives := l.ask(ours), l.ask(theirs)
	switch {
	case isSame(ours, theirs):
		if !oursLives.live {
			l.set(op, nil)
			return
		}
		l.set(op, merged(ours, theirs, oursLives.properties))
	case oursLives.live && theirsLives.live && !isSame(theirs, before):
		l.addRemnant(id, ours)
	case oursLives.live:
		if theirsLives.live && leavesOld(planned, op, ours) {
			l.addOld(id, theirs)
		}
		l.set(op, ours)
	case !theirsLives.live:
		l.set(op, nil)
	}
}

// set puts the record of an operation's resource in place; nil takes it out.
func (l *ledger) set(op runlog.Op, r *state.Resource) {
	id := op.LogicalID
	switch {
	case r != nil:
		l.record.Resources[id] = r
		l.dropOld(r)
	case l.record.Resources[id] == nil:
		return
	default:
		delete(l.record.Resources, id)
	}
	l.changed = true
	l.mask(id, nil)
}

// merged is the record of a resource that both this run and another tool have written. Where the properties differ, ours
// are true unless the service says that theirs are: also those from before the operation, which may be a copy from that
// time, or what somebody has put back since.
func merged(ours, theirs *state.Resource, live map[string]any) *state.Resource {
	if reflect.DeepEqual(ours.Properties, theirs.Properties) {
		// What they have added to it stays.
		both := *theirs
		both.Dependencies, both.DeletionPolicy, both.UpdateReplacePolicy = ours.Dependencies, ours.DeletionPolicy, ours.UpdateReplacePolicy
		return &both
	}
	for name, value := range theirs.Properties {
		if now, known := live[name]; known && !reflect.DeepEqual(value, ours.Properties[name]) && reflect.DeepEqual(now, value) {
			return theirs
		}
	}
	return ours
}
