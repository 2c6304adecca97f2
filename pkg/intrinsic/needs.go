package intrinsic

import (
	"slices"
	"strings"
)

// Needs is what has to be fetched from AWS or from other stacks before the template can be resolved.
type Needs struct {
	// Imports are export names.
	Imports []string
	// StackOutputs are what Fn::GetStackOutput reads.
	StackOutputs []StackOutput
	// Zones are regions.
	Zones []string
	// Unresolvable are the places of Fn::ImportValue and Fn::GetStackOutput whose names depend on a resource
	// that does not exist yet: "LogicalID: Properties.X.Fn::ImportValue". CloudFormation does not allow it
	// either, and template.Validate refuses it.
	Unresolvable []string
}

// NeedsOf lists the facts that the live resources and outputs of the scope's template need and the scope does
// not have. Branches of Fn::If that are not chosen need nothing. Conditions must be evaluated before. SSM
// parameters are template.SSMParameters' matter. Problems of other kinds are left for Resolve to report.
func NeedsOf(scope *Scope) Needs {
	c := &collector{}
	e := NewResolver(scope).evaluation(inProperties)
	e.needs = c
	t := scope.Template
	for _, id := range t.Order {
		if !t.Live(id, scope.Conditions) {
			continue
		}
		r := t.Resources[id]
		c.at = id + ": "
		e.value(r.Properties, "Properties")
		e.value(r.Metadata, "Metadata")
		e.value(r.UpdatePolicy, "UpdatePolicy")
		e.value(r.CreationPolicy, "CreationPolicy")
	}
	c.at = ""
	for _, name := range sortedKeys(t.Outputs) {
		o := t.Outputs[name]
		if o.Condition == "" || scope.Conditions[o.Condition] {
			e.value(o.Value, "Outputs."+name+".Value")
			e.value(o.ExportName, "Outputs."+name+".Export.Name")
		}
	}
	return c.result()
}

// collector notes missing facts during an evaluation.
type collector struct {
	at    string // prefix of the places in Unresolvable
	needs Needs
}

func (c *collector) imported(name string) { c.needs.Imports = append(c.needs.Imports, name) }

func (c *collector) zone(region string) { c.needs.Zones = append(c.needs.Zones, region) }

func (c *collector) output(o StackOutput) { c.needs.StackOutputs = append(c.needs.StackOutputs, o) }

// unresolvable notes a place whose name is not known yet. A nil collector notes nothing.
func (c *collector) unresolvable(v any, path string) {
	if c != nil && HasUnknown(v) != nil {
		c.needs.Unresolvable = append(c.needs.Unresolvable, c.at+path)
	}
}

func (c *collector) result() Needs {
	n := c.needs
	sortDistinct(&n.Imports)
	sortDistinct(&n.Zones)
	sortDistinct(&n.Unresolvable)
	slices.SortFunc(n.StackOutputs, func(a, b StackOutput) int { return strings.Compare(a.Key(), b.Key()) })
	n.StackOutputs = slices.Compact(n.StackOutputs)
	return n
}

func sortDistinct(list *[]string) {
	slices.Sort(*list)
	*list = slices.Compact(*list)
}
