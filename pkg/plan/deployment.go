package plan

import (
	"fmt"
	"slices"
)

// DeploymentInput is what a deployment's plan is built from.
type DeploymentInput struct {
	// Destroy plans the removal of the stacks: dependents first, and no assets.
	Destroy bool
	// Rollback plans that of each stack, in the order of a destroy.
	Rollback bool
	Assets   []DeploymentAsset
	Stacks   []DeploymentStack
}

// DeploymentAsset is an asset to publish.
type DeploymentAsset struct {
	ID   string // its hash, or whatever tells it from the others
	Name string // what people call it
}

// DeploymentStack is a stack of a deployment, in template terms a node of its graph.
type DeploymentStack struct {
	// ID tells the stack from the others and defaults to Name.
	ID   string
	Name string
	// ChildRun is the run that the operation starts.
	ChildRun string
	// DependsOn lists ids or names of stacks of the deployment; others are not waited for.
	DependsOn []string
	// Assets lists the ids of the assets that the stack needs published.
	Assets []string
}

// BuildDeployment plans a deployment: an operation "asset.{id}" per asset, an operation "stack.{id}" per
// stack, which waits for its assets and for the stacks it depends on. A destroy has the stacks alone, each
// after those that depend on it, in the cleanup phase: one that fails does not keep unrelated ones alive.
// Two stacks of one name, in two environments, become "stack.{name}" and "stack.{name}~2"; what depends on
// the name waits for both.
func BuildDeployment(in DeploymentInput) Plan {
	p := Plan{Version: Version}
	backward := in.Destroy || in.Rollback
	assets := map[string]bool{}
	if !backward {
		for _, a := range in.Assets {
			if assets[a.ID] {
				continue
			}
			assets[a.ID] = true
			name := a.Name
			if name == "" {
				name = a.ID
			}
			p.Operations = append(p.Operations, Operation{
				ID: assetID(a.ID), Kind: KindAsset, Action: ActionPublish, Phase: PhaseForward, LogicalID: name,
			})
		}
	}
	ids := make([]string, len(in.Stacks))
	called := map[string][]string{} // operation ids by what others call the stack
	taken := map[string]bool{}
	for i, s := range in.Stacks {
		name := s.ID
		if name == "" {
			name = s.Name
		}
		id := "stack." + name
		for n := 2; taken[id]; n++ {
			id = fmt.Sprintf("stack.%s~%d", name, n)
		}
		taken[id], ids[i] = true, id
		called[name] = append(called[name], id)
		if s.Name != name {
			called[s.Name] = append(called[s.Name], id)
		}
	}
	first := len(p.Operations)
	for i, s := range in.Stacks {
		op := Operation{
			ID: ids[i], Kind: KindStack, Action: ActionDeploy, Phase: PhaseForward, LogicalID: s.Name, ChildRun: s.ChildRun,
		}
		if in.Destroy {
			op.Action, op.Phase = ActionDestroy, PhaseCleanup
		}
		if in.Rollback {
			op.Action, op.Phase = ActionRollback, PhaseRollback
		}
		for _, a := range s.Assets {
			if assets[a] {
				op.DependsOn = appendNew(op.DependsOn, assetID(a))
			}
		}
		p.Operations = append(p.Operations, op)
	}
	for i, s := range in.Stacks {
		for _, d := range s.DependsOn {
			for _, id := range called[d] {
				from, to := id, first+i
				if backward {
					from, to = ids[i], first+slices.Index(ids, id)
				}
				if p.Operations[to].ID != from {
					p.Operations[to].DependsOn = appendNew(p.Operations[to].DependsOn, from)
				}
			}
		}
	}
	return p
}

func assetID(id string) string { return "asset." + id }

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
