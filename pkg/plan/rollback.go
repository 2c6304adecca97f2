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
//     again. Where the old half is gone, that is irreversible.
//   - A deletion can't be undone. It is listed in Irreversible.
//
// A failed update that is marked as touched is undone as well, as CloudFormation does. Assets and stacks are
// left alone: an asset is harmless, and a stack rolls itself back.
func BuildRollback(p Plan, done map[string]Outcome) Plan {
	undo := Plan{Version: Version}
	changed := map[string]bool{}
	for _, op := range p.Operations {
		o := done[op.ID]
		if op.Kind != KindResource || !o.Succeeded && !(o.Touched && op.Action == ActionUpdate) {
			continue
		}
		if reason := irreversible(op, done); reason != "" {
			undo.Irreversible = append(undo.Irreversible, Irreversible{ID: op.ID, LogicalID: op.LogicalID, Reason: reason})
			continue
		}
		if op.Phase != PhaseForward {
			continue
		}
		changed[op.ID] = true
	}
	order := p.graph().Contract(func(id string) bool { return changed[id] })
	for _, op := range slices.Backward(p.Operations) {
		if changed[op.ID] {
			undo.Operations = append(undo.Operations, takeBack(op, order))
		}
	}
	return undo
}

func takeBack(op Operation, order *graph.Graph) Operation {
	back := Operation{
		ID: op.ID + UndoSuffix, Kind: KindResource, Action: op.Action, Phase: PhaseRollback,
		LogicalID: op.LogicalID, Type: op.Type, Undoes: op.ID, Policy: op.Policy,
	}
	switch op.Action {
	case ActionCreate:
		back.Action = ActionDelete
		if op.Policy == "Retain" {
			back.Action, back.Retain = ActionForget, true
		}
	case ActionReplace:
		// The new half has never been in use by anybody but this run: it goes whatever the policies say.
		back.Action = ActionDelete
	}
	for _, d := range order.Dependents(op.ID) {
		back.DependsOn = append(back.DependsOn, d+UndoSuffix)
	}
	return back
}

func irreversible(op Operation, done map[string]Outcome) string {
	switch {
	case op.Action == ActionDelete && op.Phase == PhaseCleanup && op.ID == op.LogicalID && done[op.ID].Succeeded:
		return "it has been deleted"
	case op.Action == ActionForget && op.Phase == PhaseCleanup && done[op.ID].Succeeded:
		return "it has left the record and still exists in AWS"
	case op.Action == ActionReplace && op.DeleteFirst:
		return "its old half was deleted before the new one was created"
	case op.Action == ActionReplace && done[op.LogicalID+OldSuffix].Succeeded:
		return "its old half has been deleted"
	}
	return ""
}
