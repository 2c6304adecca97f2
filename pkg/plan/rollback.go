package plan

import (
	"slices"

	"github.com/slipway-cdk/slipway/pkg/graph"
)

// Outcome is what became of an operation, as far as undoing it is concerned.
type Outcome struct {
	// Succeeded: it has changed something: false also for an update that turned out to change nothing.
	Succeeded bool
	// Touched: an update that has failed, and may have changed something before it did. What a failed creation
	// leaves is not undone but cleaned up by its physical id.
	Touched bool
	// Gone: a replacement that has failed after it had deleted the old half.
	Gone bool
	// Stateful: what was replaced held data.
	Stateful bool
}

// BuildRollback plans the undoing of what a run has done: every forward operation that has changed
// something is taken back by one operation "{id}.undo", in reverse order of the plan's dependencies
// (reference §8.6; https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-failure-options.html).
//
//   - A created resource is deleted, unless its DeletionPolicy is Retain: then it stays in AWS and is only
//     forgotten. RetainExceptOnCreate deletes it
//     (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html).
//   - An updated one is updated back, a changed record is changed back.
//   - Of a replaced one the new half is deleted and the old half, which cleanup has not reached, is taken up
//     again. Where the old half is gone it is made again from its record; its data is lost, and Irreversible
//     says so.
//   - A deletion can't be undone. It is listed in Irreversible.
//
// A failed update that is marked as touched is undone as well, as CloudFormation does. Assets and stacks are
// left alone: an asset is harmless, and a stack rolls itself back.
//
// BuildReplay does the same from a rollback journal, by the same rules.
func BuildRollback(p Plan, done map[string]Outcome) Plan {
	undo := Plan{Version: Version}
	changed := map[string]bool{}
	for _, op := range p.Operations {
		o := done[op.ID]
		if op.Kind != KindResource || !o.Succeeded && !(o.Touched && op.Action == ActionUpdate) && !o.Gone {
			continue
		}
		if reason := irreversible(op, done); reason != "" {
			undo.Irreversible = append(undo.Irreversible, Irreversible{ID: op.ID, LogicalID: op.LogicalID, Reason: reason})
			continue
		}
		if op.Phase == PhaseForward && op.Action != ActionDelete { // the remnant of a failed creation is not missed
			changed[op.ID] = true
		}
	}
	order := p.graph().Contract(func(id string) bool { return changed[id] })
	var undos []*undoing
	for _, op := range slices.Backward(p.Operations) {
		if !changed[op.ID] {
			continue
		}
		o := done[op.ID]
		old := oldLives
		switch {
		case o.Gone:
			old = oldMissing
		case op.Action == ActionReplace && op.DeleteFirst:
			old = oldMakesWay
		case op.Action == ActionReplace && done[op.LogicalID+OldSuffix].Succeeded:
			old = oldGone
		}
		if old != oldLives && o.Stateful {
			undo.Irreversible = append(undo.Irreversible, emptied(op.ID, op.LogicalID))
		}
		undos = append(undos, &undoing{
			node: op.ID, ops: takeBack(op, op.ID+UndoSuffix, old), spared: !o.Succeeded && !o.Gone,
		})
	}
	undo.Operations = arrange(undos, order)
	return undo
}

func irreversible(op Operation, done map[string]Outcome) string {
	switch {
	case op.Action == ActionDelete && op.Phase == PhaseCleanup && op.ID == op.LogicalID && done[op.ID].Succeeded:
		return reasonDeleted
	case op.Action == ActionForget && op.Phase == PhaseCleanup && done[op.ID].Succeeded:
		return "it has left the record and still exists in AWS"
	}
	return ""
}

const reasonDeleted = "it has been deleted"

func emptied(id, logicalID string) Irreversible {
	return Irreversible{
		ID: id, LogicalID: logicalID, Emptied: true,
		Reason: "its replacement has deleted it with its data; it is made again, empty",
	}
}

// oldHalf is what has become of the resource that a replacement was to take the place of.
type oldHalf int

const (
	oldLives oldHalf = iota // it still stands
	oldGone                 // it is gone, and can be made again while the new half stands
	// oldMakesWay: it is gone, and can be made again only after the new half has been deleted.
	oldMakesWay
	oldMissing // it is gone, and there is no new half
)

// takeBack returns the operation that undoes another one, and after it the removal of a new half that has to stand
// until the old one is made again.
func takeBack(op Operation, id string, old oldHalf) []Operation {
	back := Operation{
		ID: id, Kind: KindResource, Action: op.Action, Phase: PhaseRollback,
		LogicalID: op.LogicalID, Type: op.Type, Undoes: op.ID, Policy: op.Policy,
	}
	switch {
	case op.Action == ActionCreate:
		back.Action = ActionDelete
		if op.Policy == "Retain" {
			back.Action, back.Retain = ActionForget, true
		}
	case op.Action != ActionReplace:
	case old == oldMissing:
		back.Action = ActionCreate
	case old == oldMakesWay:
		back.DeleteFirst = true
	case old == oldGone:
		removal := back
		removal.ID, removal.Action, removal.Undoes, removal.Policy = id+OldSuffix, ActionDelete, "", ""
		return []Operation{back, removal}
	default:
		// The new half has never been in use by anybody but this run: it goes whatever the policies say.
		back.Action, back.Policy = ActionDelete, ""
	}
	return []Operation{back}
}

// undoing is the taking back of one operation.
type undoing struct {
	// node is its place in the graph of what depends on what.
	node string
	// segment orders the undoings of several runs: that of a later run, which is higher, comes first.
	segment int
	// ops are one operation, or two: the making of the old half and the removal of the new one.
	ops []Operation
	// spared: what failed to be undone here stands in nobody's way. It is an update that has failed itself, and
	// what it depends on was not changed for it.
	spared bool
}

func (u *undoing) first() *Operation { return &u.ops[0] }
func (u *undoing) last() *Operation  { return &u.ops[len(u.ops)-1] }

// remakes: a resource is made again, which those that depend on it may need.
func (u *undoing) remakes() bool {
	return u.ops[0].Action == ActionCreate || u.ops[0].Action == ActionReplace
}

// arrange puts undoings into an order: the reverse of what depends on what. Only a deletion really needs that what
// depended on the resource has been undone: elsewhere a failure there changes the order of nothing, and must not
// keep the rest from being undone. What is made again comes before what depended on it. order must have no cycle.
func arrange(undos []*undoing, order *graph.Graph) []Operation {
	byNode := map[string][]*undoing{}
	for _, u := range undos {
		byNode[u.node] = append(byNode[u.node], u)
	}
	for _, list := range byNode {
		slices.SortStableFunc(list, func(a, b *undoing) int { return b.segment - a.segment })
	}
	for _, u := range undos {
		for i, other := range byNode[u.node] {
			if other == u && i > 0 {
				u.first().DependsOn = appendNew(u.first().DependsOn, byNode[u.node][i-1].last().ID)
			}
		}
		for _, d := range dependents(order, u, byNode) {
			last := u.last()
			if last.Action == ActionDelete && !d.spared {
				last.DependsOn = appendNew(last.DependsOn, d.last().ID)
			} else if !u.remakes() || len(u.ops) == 2 {
				last.After = appendNew(last.After, d.last().ID)
			}
		}
		if len(u.ops) == 2 {
			u.last().DependsOn = appendNew(u.last().DependsOn, u.first().ID)
		}
		if !u.remakes() {
			continue
		}
		for _, id := range order.Dependents(u.node) {
			for _, d := range byNode[id] {
				if d.segment > u.segment {
					continue
				}
				switch d.first().Action {
				case ActionDelete, ActionForget:
					d.first().After = appendNew(d.first().After, u.first().ID)
				default:
					d.first().DependsOn = appendNew(d.first().DependsOn, u.first().ID)
				}
				break
			}
		}
	}
	var ops []Operation
	for _, u := range undos {
		ops = append(ops, u.ops...)
	}
	return ops
}

// dependents are the undoings that come before u because they are about what depends on it: of each resource the
// last one that is not of an earlier run. Through a resource that has none, those of its dependents.
func dependents(order *graph.Graph, u *undoing, byNode map[string][]*undoing) []*undoing {
	var out []*undoing
	seen := map[string]bool{u.node: true}
	var visit func(node string)
	visit = func(node string) {
		for _, id := range order.Dependents(node) {
			if seen[id] {
				continue
			}
			seen[id] = true
			var last *undoing
			for _, d := range byNode[id] {
				if d.segment >= u.segment {
					last = d
				}
			}
			if last == nil {
				visit(id)
				continue
			}
			out = append(out, last)
		}
	}
	visit(u.node)
	return out
}
