package intrinsic

import (
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// Needs is what has to be fetched from AWS or from other stacks before the template can be resolved.
type Needs struct {
	// Imports are export names.
	Imports []string
	// StackOutputs are what Fn::GetStackOutput reads.
	StackOutputs []StackOutput
	// Zones are regions.
	Zones []string
}

// Needed lists the facts that the live resources and outputs of the scope's template need and the scope does
// not have. Branches of Fn::If that are not chosen need nothing. Conditions must be evaluated before. SSM
// parameters are template.SSMParameters' matter.
//
// An export or an output whose name depends on a resource, which may not exist yet, is an error: CloudFormation
// does not allow it either. Problems of other kinds are left for Resolve to report.
func Needed(scope *Scope) (Needs, diag.Diagnostics) {
	c := &collector{}
	e := NewResolver(scope).evaluation(inProperties)
	e.needs = c
	t := scope.Template
	for _, id := range t.Order {
		if !t.Live(id, scope.Conditions) {
			continue
		}
		r := t.Resources[id]
		c.logicalID = id
		e.value(r.Properties, "Properties")
		e.value(r.Metadata, "Metadata")
		e.value(r.UpdatePolicy, "UpdatePolicy")
		e.value(r.CreationPolicy, "CreationPolicy")
	}
	c.logicalID = ""
	for _, name := range sortedKeys(t.Outputs) {
		o := t.Outputs[name]
		if o.Condition == "" || scope.Conditions[o.Condition] {
			e.value(o.Value, "Outputs."+name+".Value")
			e.value(o.ExportName, "Outputs."+name+".Export.Name")
		}
	}
	return c.result(), c.diags
}

// collector notes missing facts during an evaluation.
type collector struct {
	logicalID string
	needs     Needs
	diags     diag.Diagnostics
}

func (c *collector) imported(name string) { c.needs.Imports = append(c.needs.Imports, name) }

func (c *collector) zone(region string) { c.needs.Zones = append(c.needs.Zones, region) }

func (c *collector) output(o StackOutput) { c.needs.StackOutputs = append(c.needs.StackOutputs, o) }

// unresolvable reports a name that is not known yet. A nil collector notes nothing.
func (c *collector) unresolvable(v any, path string) {
	if refs := HasUnknown(v); c != nil && refs != nil {
		c.diags = append(c.diags, diag.Diagnostic{Severity: diag.Error, Summary: "the name depends on a resource", Detail: "it waits for " + strings.Join(refs, ", "),
			LogicalID: c.logicalID, Path: path, Next: "Build the name from parameters and pseudo parameters only."})
	}
}

func (c *collector) result() Needs {
	n := c.needs
	sortDistinct(&n.Imports)
	sortDistinct(&n.Zones)
	slices.SortFunc(n.StackOutputs, func(a, b StackOutput) int { return strings.Compare(a.Key(), b.Key()) })
	n.StackOutputs = slices.Compact(n.StackOutputs)
	return n
}

func sortDistinct(list *[]string) {
	slices.Sort(*list)
	*list = slices.Compact(*list)
}
