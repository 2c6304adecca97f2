package plan

import (
	"fmt"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/graph"
)

// graph is the order that the plan states: its operations, in plan order, their DependsOn and their After.
func (p Plan) graph() *graph.Graph {
	g := graph.New(len(p.Operations))
	for _, op := range p.Operations {
		g.AddNode(op.ID)
	}
	for _, op := range p.Operations {
		for _, d := range slices.Concat(op.DependsOn, op.After) {
			if g.Has(d) {
				g.AddEdge(d, op.ID)
			}
		}
	}
	return g
}

// Validate reports the first thing that makes a plan impossible to carry out: an id that is missing or not
// unique, a dependency on an operation that is not there or that runs in a later phase, or a cycle.
func (p Plan) Validate() error {
	byID := make(map[string]Operation, len(p.Operations))
	for _, op := range p.Operations {
		if op.ID == "" {
			return fmt.Errorf("the operation on %q has no id", op.LogicalID)
		}
		if _, twice := byID[op.ID]; twice {
			return fmt.Errorf("two operations have the id %s", op.ID)
		}
		byID[op.ID] = op
	}
	for _, op := range p.Operations {
		for _, d := range slices.Concat(op.DependsOn, op.After) {
			dep, ok := byID[d]
			if !ok {
				return fmt.Errorf("operation %s depends on %s, which is not in the plan", op.ID, d)
			}
			if op.Phase == PhaseForward && dep.Phase == PhaseCleanup {
				return fmt.Errorf("operation %s depends on %s, which runs after it", op.ID, d)
			}
		}
	}
	if _, err := p.graph().TopologicalOrder(); err != nil {
		return fmt.Errorf("ordering the operations: %w", err)
	}
	return nil
}
