package diff

import (
	"fmt"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/graph"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Check validates what is wanted before anything is touched: resource types, their properties, the
// attributes that are read of them, and that nothing depends on itself. Values that only the deploy knows are
// accepted anywhere. What breaks an enumeration, a pattern or a range is a warning: services widen those
// faster than their schemas say.
func Check(in Input) diag.Diagnostics {
	diags := cycles(Graph(in))
	scope := intrinsic.Scope{}
	if in.Scope != nil {
		scope = *in.Scope
	}
	scope.Template, scope.Conditions, scope.Resources = in.Template, in.Conditions, nil
	resolver := intrinsic.NewResolver(&scope)
	for _, r := range in.live() {
		t := in.lookup(r.Type)
		if t == nil {
			diags = append(diags, unknownType(r))
			continue
		}
		properties, err := resolver.ResolveProperties(r.Properties, "Properties")
		if err != nil {
			// Compute reports what can't be resolved. The rest is checked as it is written.
			properties = r.Properties
		}
		options := schema.Options{Lenient: true, Opaque: opaque}
		for _, p := range schema.Validate(t, properties, options) {
			diags = append(diags, problem(r, p))
		}
		diags = append(diags, overridden(r, t, properties)...)
		for _, ref := range in.Dependencies[r.LogicalID] {
			diags = append(diags, attribute(in, ref, r.LogicalID)...)
		}
	}
	for _, ref := range in.Template.OutputReferences() {
		name := strings.SplitN(ref.Path, ".", 3)[1]
		if o := in.Template.Outputs[name]; o != nil && (o.Condition == "" || in.Conditions[o.Condition]) {
			diags = append(diags, attribute(in, ref, "")...)
		}
	}
	return diags
}

func opaque(v any) bool {
	if _, unknown := v.(intrinsic.Unknown); unknown {
		return true
	}
	return intrinsic.IsIntrinsic(v)
}

func unknownType(r *template.Resource) diag.Diagnostic {
	d := diag.Diagnostic{
		Severity: diag.Error, LogicalID: r.LogicalID, Path: "Type", Summary: "unknown resource type " + r.Type,
		Next: "Correct the type, or remove the resource.",
	}
	if near := schema.Suggest(r.Type); len(near) > 0 {
		d.Detail = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return d
}

func problem(r *template.Resource, p schema.Problem) diag.Diagnostic {
	d := diag.Diagnostic{
		Severity: diag.Error, LogicalID: r.LogicalID, Path: dotted(append([]string{"Properties"}, p.Path...)), Summary: p.Message,
	}
	switch p.Kind {
	case schema.ProblemEnum, schema.ProblemPattern, schema.ProblemRange:
		d.Severity = diag.Warning
	}
	if p.Suggestion != "" {
		d.Detail = "did you mean " + p.Suggestion + "?"
	}
	return d
}

// overridden warns of properties that a template may set although the registry says that AWS sets them: AWS may
// well choose its own value.
func overridden(r *template.Resource, t *schema.Type, properties map[string]any) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, name := range t.ReadOnly {
		if properties[name] == nil || t.Properties[name] == nil {
			continue
		}
		diags = append(diags, diag.Diagnostic{
			Severity: diag.Warning, LogicalID: r.LogicalID, Path: "Properties." + name, Summary: name + " is set by AWS",
			Detail: "the value in the template may be ignored",
		})
	}
	return diags
}

// attribute checks that the type of what is referred to has the attribute.
func attribute(in Input, ref template.Reference, reader string) diag.Diagnostics {
	target := in.Template.Resources[ref.Target]
	if ref.Attribute == "" || target == nil {
		return nil
	}
	t := in.lookup(target.Type)
	if t == nil || t.IsAttribute(ref.Attribute) {
		return nil
	}
	d := diag.Diagnostic{
		Severity: diag.Error, LogicalID: reader, Path: place(ref.Path),
		Summary: fmt.Sprintf("%s %s has no attribute %s", target.Type, ref.Target, ref.Attribute),
	}
	if near := t.SuggestAttribute(ref.Attribute); near != "" {
		d.Detail = "did you mean " + near + "?"
	}
	return diag.Diagnostics{d}
}

// cycles reports the shortest cycles with what makes them: "A.Properties.X → B" reads "X of A refers to B".
func cycles(g *graph.Graph) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, c := range g.Cycles() {
		var members, reasons []string
		// Edges lead from dependency to dependent; people read the other way, from what refers to its target.
		for i := len(c.Edges) - 1; i >= 0; i-- {
			e := c.Edges[i]
			members = append(members, e.To)
			reasons = append(reasons, strings.Join(e.Labels, " and ")+" → "+e.From)
		}
		summary := "the resources " + strings.Join(members, ", ") + " depend on each other"
		if len(members) == 1 {
			summary = "the resource " + members[0] + " depends on itself"
		}
		diags = append(diags, diag.Diagnostic{
			Severity: diag.Error, LogicalID: members[0], Summary: summary, Detail: strings.Join(reasons, ", "),
			Next: "Remove one of these references or DependsOn.",
		})
	}
	return diags
}
