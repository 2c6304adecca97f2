package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// resolve gives the properties that a first deploy of a template would send, physical ids and attributes being
// made up. A resource that can't be resolved is left out: it has no verdict.
func resolve(source []byte) (*template.Template, map[string]map[string]any, error) {
	t, err := template.Parse(source)
	if err != nil {
		return nil, nil, err
	}
	pseudo := intrinsic.PseudoFor("123456789012", "eu-west-1", "Demo")
	given := parameters(t)
	facts := map[string]any{}
	for _, name := range template.SSMParameters(t, given) {
		facts[template.SSMFact(name)] = "fact-" + name
	}
	values, diags := t.BindParameters(given, facts)
	if diags.HasErrors() {
		return nil, nil, diags.Err()
	}
	conditions, diags := intrinsic.EvaluateConditions(t, values, pseudo)
	if diags.HasErrors() {
		return nil, nil, diags.Err()
	}
	scope := &intrinsic.Scope{
		Template: t, Parameters: values, Conditions: conditions, Pseudo: pseudo, Schema: schema.Lookup,
		Imports: map[string]any{}, StackOutputs: map[string]any{}, Zones: map[string][]string{}, Resources: map[string]intrinsic.Resource{},
	}
	needs, diags := intrinsic.Needed(scope)
	if diags.HasErrors() {
		return nil, nil, diags.Err()
	}
	for _, name := range needs.Imports {
		scope.Imports[name] = "import-" + name
	}
	for _, o := range needs.StackOutputs {
		scope.StackOutputs[o.Key()] = "output-" + o.Output
	}
	for _, region := range needs.Zones {
		scope.Zones[region] = []string{region + "a", region + "b", region + "c"}
	}
	in := diff.Input{Template: t, Conditions: conditions, Dependencies: template.Dependencies(t, conditions), Scope: scope}
	order, err := diff.Graph(in).TopologicalOrder()
	if err != nil {
		return nil, nil, err
	}
	read := map[string][]string{}
	for _, refs := range in.Dependencies {
		for _, ref := range refs {
			if ref.Attribute != "" {
				read[ref.Target] = append(read[ref.Target], ref.Attribute)
			}
		}
	}
	resolver := intrinsic.NewResolver(scope)
	resolved := map[string]map[string]any{}
	for _, id := range order {
		r := t.Resources[id]
		made := intrinsic.Resource{Type: r.Type, PhysicalID: physicalID(id, r.Type), Attributes: map[string]any{}}
		for _, name := range read[id] {
			made.Attributes[name] = attribute(id, r.Type, name)
		}
		properties, err := resolver.ResolveProperties(r.Properties, "Properties")
		if err == nil {
			if properties == nil {
				properties = map[string]any{}
			}
			resolved[id], made.Properties = properties, properties
		}
		scope.Resources[id] = made
	}
	return t, resolved, nil
}

// parameters gives every parameter without a default a value of its type.
func parameters(t *template.Template) map[string]string {
	values := map[string]string{}
	for name, p := range t.Parameters {
		if p.Default != nil {
			continue
		}
		value := "value"
		if p.MinLength != nil {
			value = strings.Repeat("v", max(5, *p.MinLength))
		}
		switch {
		case len(p.AllowedValues) > 0:
			value = fmt.Sprint(p.AllowedValues[0])
		case strings.Contains(p.Type, "Number"):
			value = "1"
		case strings.Contains(p.Type, "AWS::EC2::"):
			value = "id-0123456789abcdef0"
		case strings.Contains(strings.ToLower(name), "cidr"):
			value = "10.0.0.0/16"
		case strings.Contains(strings.ToLower(name), "arn"):
			value = "arn:aws:demo:eu-west-1:123456789012:x"
		}
		if pattern, err := regexp.Compile("^(?:" + p.AllowedPattern + ")$"); p.AllowedPattern != "" && err == nil && !pattern.MatchString(value) {
			for _, example := range examples {
				if pattern.MatchString(example) && (p.MaxLength == nil || len(example) <= *p.MaxLength) {
					value = example
					break
				}
			}
		}
		values[name] = value
	}
	return values
}

func physicalID(id, typ string) string {
	t, known := schema.Lookup(typ)
	if !known || len(t.PrimaryIdentifier) < 2 {
		return "physical-" + id
	}
	return strings.Join(slicesOf(len(t.PrimaryIdentifier), "physical-"+id), "|")
}

func attribute(id, typ, name string) any {
	value := "arn:aws:demo:eu-west-1:123456789012:" + id + "/" + name
	if strings.Contains(name, "Cidr") {
		value = "10.0.0.0/16"
	}
	if t, known := schema.Lookup(typ); known {
		if p := t.Attribute(name); p != nil && p.Kind == schema.KindList {
			return []any{value + "/0", value + "/1"}
		}
	}
	return value
}

func slicesOf(n int, s string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}
