package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// The fates of orphans. One that has none stays what it is.
const (
	orphanAdopted = "adopt"   // it becomes the resource of its logical id again
	orphanDropped = "drop"    // it does not exist any more, or is recorded as a resource anyway
	orphanCleaned = "cleanup" // it is deleted
)

// orphanFate is what a run does with a resource that a rollback has left standing.
type orphanFate struct {
	LogicalID  string `json:"logicalId"`
	Type       string `json:"type"`
	PhysicalID string `json:"physicalId"`
	Fate       string `json:"fate"`
}

func (f orphanFate) means(o state.Orphan) bool {
	return o.LogicalID == f.LogicalID && o.Resource.ResourceType == f.Type && o.Resource.PhysicalID == f.PhysicalID
}

func fateOf(o state.Orphan, fate string) orphanFate {
	return orphanFate{LogicalID: o.LogicalID, Type: o.Resource.ResourceType, PhysicalID: o.Resource.PhysicalID, Fate: fate}
}

// adoption is what a deploy does with the orphans of its stack.
type adoption struct {
	fates   []orphanFate
	adopted map[string]*state.Resource // by logical id
	diags   diag.Diagnostics
}

// adoptable finds out which orphans a deploy takes back (seed 001): those whose logical id the template has again, with
// the same type, and which still exist. The plan then starts from their record, as if they had never left it: creating
// them again would collide with their names. One that has gone is dropped, and the resource is created.
func (e *Engine) adoptable(ctx context.Context, s StackRequest, t *template.Template, conditions map[string]bool, l *ledger) (adoption, error) {
	a := adoption{adopted: map[string]*state.Resource{}}
	if l.stands == nil {
		return a, nil
	}
	for _, o := range l.stands.Orphans {
		wanted, recorded := t.Resources[o.LogicalID], l.stands.Resources[o.LogicalID]
		switch {
		case isSame(recorded, o.Resource):
			a.fates = append(a.fates, fateOf(o, orphanDropped))
			continue
		case !t.Live(o.LogicalID, conditions) || recorded != nil:
			a.keep(o, "the template has nothing to take its place")
			continue
		case wanted.Type != o.Resource.ResourceType:
			a.keep(o, "the template has a "+wanted.Type+" in its place")
			continue
		}
		now, err := e.look(ctx, s.StackRef, o.Resource)
		if err != nil {
			return a, err
		}
		if now.live {
			a.fates = append(a.fates, fateOf(o, orphanAdopted))
			a.adopted[o.LogicalID] = o.Resource
			continue
		}
		a.fates = append(a.fates, fateOf(o, orphanDropped))
		a.diags = append(a.diags, diag.Diagnostic{
			Severity: diag.Warning, LogicalID: o.LogicalID,
			Summary: "an orphan of " + o.LogicalID + " is gone",
			Detail:  fmt.Sprintf("a rollback had left %s %s in AWS; it does not exist any more and is created anew", o.Resource.ResourceType, o.Resource.PhysicalID),
		})
	}
	return a, nil
}

// keep says that an orphan stays one.
func (a *adoption) keep(o state.Orphan, why string) {
	a.diags = append(a.diags, orphanStays(o, why))
}

func orphanStays(o state.Orphan, why string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, LogicalID: o.LogicalID,
		Summary: fmt.Sprintf("%s %s, which a rollback has left, stays in AWS as an orphan", o.Resource.ResourceType, o.Resource.PhysicalID),
		Detail:  why, Next: "Delete it by hand if nobody needs it.",
	}
}

// into returns a copy of a record that holds the adopted resources.
func (a *adoption) into(rec *state.Record) *state.Record {
	if len(a.adopted) == 0 {
		return rec
	}
	with := *rec
	with.Resources = make(map[string]*state.Resource, len(rec.Resources)+len(a.adopted))
	for id, r := range rec.Resources {
		with.Resources[id] = r
	}
	for id, r := range a.adopted {
		with.Resources[id] = r
	}
	return &with
}

// release gives up adopting what would be replaced at once: the orphan was to be retained, and would be deleted. It
// reports whether there was such a one.
func (a *adoption) release(changes []diff.Change, orphans []state.Orphan) bool {
	released := false
	for _, c := range changes {
		if a.adopted[c.LogicalID] == nil || c.Action != diff.ActionReplace {
			continue
		}
		released = true
		delete(a.adopted, c.LogicalID)
		for _, o := range orphans {
			if o.LogicalID == c.LogicalID {
				a.fates = slices.DeleteFunc(a.fates, func(f orphanFate) bool { return f.means(o) })
				a.keep(o, "what the template wants in its place can't be made of it")
			}
		}
	}
	return released
}

// show marks the changes of adopted resources. One that is as it should be becomes a change of the record.
func (a *adoption) show(result *diff.Result, t *template.Template) {
	for _, id := range sortedIDs(a.adopted) {
		at := slices.IndexFunc(result.Changes, func(c diff.Change) bool { return c.LogicalID == id })
		if at < 0 {
			res := t.Resources[id]
			c := diff.Change{LogicalID: id, Type: res.Type, Action: diff.ActionNone, RecordOnly: true}
			c.DeletionPolicy, _ = res.DeletionPolicy.(string)
			c.UpdateReplacePolicy, _ = res.UpdateReplacePolicy.(string)
			result.Changes = append(result.Changes, c)
			result.Unchanged--
			at = len(result.Changes) - 1
		}
		result.Changes[at].Adopted = true
	}
}

// settleOrphans does what was planned for orphans, before anything else is folded. It may be repeated.
func (l *ledger) settleOrphans(fates []orphanFate) {
	for _, f := range fates {
		at := slices.IndexFunc(l.record.Orphans, f.means)
		if at < 0 {
			continue
		}
		o := l.record.Orphans[at]
		switch f.Fate {
		case orphanAdopted:
			if l.record.Resources[f.LogicalID] != nil {
				continue // another tool has put something there
			}
			l.record.Resources[f.LogicalID] = o.Resource
		case orphanCleaned:
			l.addOld(f.LogicalID, o.Resource)
		}
		l.record.Orphans = slices.Delete(slices.Clone(l.record.Orphans), at, at+1)
		l.changed = true
	}
}

// destroyOrphans says what a destroy does with orphans: they stay, unless what is retained is to be deleted as well.
func destroyOrphans(l *ledger, deleteRetained bool) (fates []orphanFate, old []plan.Leftover, diags diag.Diagnostics) {
	if l.stands == nil {
		return nil, nil, nil
	}
	for _, o := range l.stands.Orphans {
		if !deleteRetained {
			diags = append(diags, orphanStays(o, "its DeletionPolicy is Retain; the record of the stack stays too, to name it"))
			continue
		}
		fates = append(fates, fateOf(o, orphanCleaned))
		old = append(old, plan.Leftover{
			LogicalID: o.LogicalID, Type: o.Resource.ResourceType, PhysicalID: o.Resource.PhysicalID,
			Dependencies: o.Resource.Dependencies, Policy: o.Resource.DeletionPolicy,
		})
	}
	return fates, old, diags
}
