package run

import (
	"slices"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// leftovers lists the old halves that an earlier run has left, for the plan.
func leftovers(l *ledger) []plan.Leftover {
	var out []plan.Leftover
	for _, old := range l.cleanup {
		out = append(out, plan.Leftover{
			LogicalID: old.LogicalID, Type: old.Resource.ResourceType, PhysicalID: old.Resource.PhysicalID,
			Dependencies: old.Resource.Dependencies, Policy: old.Resource.UpdateReplacePolicy, RunID: old.RunID, DeleteFirst: old.Remnant,
		})
	}
	return out
}

// inTheWayFirst marks the old halves that have the name which a resource of a plan is to get: they go before it comes, not
// with the cleanup after it. That happens when a replacement is taken back before its old half was cleaned up. A
// resource that is made where none is recorded may get the name of any old half of its logical id.
func inTheWayFirst(list []plan.Leftover, l *ledger, changes []diff.Change) []plan.Leftover {
	for _, c := range changes {
		for i, old := range list {
			if old.LogicalID != c.LogicalID || old.Type != c.Type {
				continue
			}
			switch c.Action {
			case diff.ActionCreate:
				list[i].DeleteFirst = true
			case diff.ActionReplace:
				list[i].DeleteFirst = old.DeleteFirst || namedAs(c, old.PhysicalID, l.cleanup[i].Resource.Properties)
			}
		}
	}
	return list
}

// namedAs reports whether a change gives its resource a name that the old half with these properties has.
func namedAs(c diff.Change, physicalID string, properties map[string]any) bool {
	var names []string
	if rule, ok := provider.NameRuleOf(c.Type); ok {
		names = append(names, rule.Property)
	}
	if t, ok := schema.Lookup(c.Type); ok {
		names = append(names, t.PrimaryIdentifier...)
	}
	return slices.ContainsFunc(c.Changes, func(p diff.PropertyChange) bool {
		name, ok := p.New.(string)
		return ok && name != "" && slices.Contains(names, p.Path) && (name == properties[p.Path] || name == physicalID)
	})
}
