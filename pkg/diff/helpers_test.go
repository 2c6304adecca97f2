package diff

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// inputOf parses a template and evaluates what comes before a diff. Facts from outside are made up.
func inputOf(source []byte, parameters map[string]string) (Input, error) {
	return inputIn(intrinsic.PseudoFor("123456789012", "eu-west-1", "Demo"), source, parameters)
}

func inputIn(pseudo intrinsic.Pseudo, source []byte, parameters map[string]string) (Input, error) {
	t, err := template.Parse(source)
	if err != nil {
		return Input{}, err
	}
	facts := map[string]any{}
	for _, name := range template.SSMParameters(t, parameters) {
		facts[template.SSMFact(name)] = "fact-" + name
	}
	values, diags := t.BindParameters(parameters, facts)
	if err := diags.Err(); err != nil {
		return Input{}, err
	}
	conditions, diags := intrinsic.EvaluateConditions(t, values, pseudo)
	if err := diags.Err(); err != nil {
		return Input{}, err
	}
	scope := &intrinsic.Scope{
		Template: t, Parameters: values, Conditions: conditions, Pseudo: pseudo, Schema: schema.Lookup,
		Imports: map[string]any{}, StackOutputs: map[string]any{}, Zones: map[string][]string{},
	}
	needs, diags := intrinsic.Needed(scope)
	if err := diags.Err(); err != nil {
		return Input{}, err
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
	return Input{
		Template: t, Conditions: conditions, Dependencies: template.Dependencies(t, conditions), Scope: scope,
	}, nil
}

func parse(t testing.TB, source string) Input {
	t.Helper()
	in, err := inputOf([]byte(source), nil)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// resources makes a template of nothing but resources.
func resources(t testing.TB, source string) Input {
	t.Helper()
	if source == "{}" {
		// CloudFormation wants at least one resource. A handle is the smallest one, and is taken out again.
		in := parse(t, `{"Resources":{"None":{"Type":"AWS::CloudFormation::WaitConditionHandle"}}}`)
		in.Template.Resources, in.Template.Order = nil, nil
		return in
	}
	return parse(t, `{"Resources":`+source+`}`)
}

// deploy pretends that everything the input asks for has been done, and returns the record of it.
func deploy(in Input) (*state.Record, diag.Diagnostics) {
	rec := &state.Record{Version: state.SchemaVersion, StackName: "Demo", Region: "eu-west-1", Resources: map[string]*state.Resource{}}
	order, err := Graph(in).TopologicalOrder()
	if err != nil {
		return nil, diag.From(err)
	}
	reads := map[string]map[string]bool{}
	read := func(ref template.Reference) {
		if reads[ref.Target] == nil {
			reads[ref.Target] = map[string]bool{}
		}
		if ref.Attribute != "" {
			reads[ref.Target][ref.Attribute] = true
		}
	}
	for _, refs := range in.Dependencies {
		for _, ref := range refs {
			read(ref)
		}
	}
	for _, ref := range in.Template.OutputReferences() {
		read(ref)
	}
	scope := *in.Scope
	scope.Resources = map[string]intrinsic.Resource{}
	resolver := intrinsic.NewResolver(&scope)
	for _, id := range order {
		r := in.Template.Resources[id]
		properties, err := resolver.ResolveProperties(r.Properties, "Properties")
		if err != nil {
			return nil, diag.From(intrinsic.InResource(err, id))
		}
		if properties == nil {
			properties = map[string]any{}
		}
		was := &state.Resource{
			PhysicalID: physicalID(id, r.Type), ResourceType: r.Type, Properties: properties,
			Attributes:   map[string]any{"Arn": attributeValue(id, r.Type, "Arn")},
			Dependencies: in.recordedDependencies(id),
		}
		was.DeletionPolicy, _ = r.DeletionPolicy.(string)
		was.UpdateReplacePolicy, _ = r.UpdateReplacePolicy.(string)
		for name := range reads[id] {
			was.Attributes[name] = attributeValue(id, r.Type, name)
		}
		rec.Resources[id] = was
		scope.Resources[id] = readable(was)
	}
	in.Record, in.Scope = rec, &scope
	set := EvaluateOutputs(in)
	rec.Outputs = set.Values
	return rec, set.Diagnostics
}

func physicalID(id, typ string) string {
	if t, ok := schema.Lookup(typ); ok && len(t.PrimaryIdentifier) > 1 {
		parts := make([]string, len(t.PrimaryIdentifier))
		for i := range parts {
			parts[i] = fmt.Sprintf("%s-%d", id, i)
		}
		return strings.Join(parts, "|")
	}
	return "physical-" + id
}

// attributeValue has the kind that the schema says.
func attributeValue(id, typ, name string) any {
	value := "arn:aws:demo:eu-west-1:123456789012:" + id + "/" + name
	if t, ok := schema.Lookup(typ); ok {
		if p := t.Attribute(name); p != nil && p.Kind == schema.KindList {
			return []any{value + "/0", value + "/1", value + "/2"}
		}
	}
	return value
}

func mustDeploy(t testing.TB, in Input) *state.Record {
	t.Helper()
	rec, diags := deploy(in)
	if len(diags) > 0 {
		t.Fatalf("deploying: %v", diags)
	}
	return rec
}

// change compares a template with the record of another.
func change(t testing.TB, from, to string) (Result, diag.Diagnostics) {
	t.Helper()
	in := resources(t, to)
	in.Record = mustDeploy(t, resources(t, from))
	return Compute(in)
}

// brief renders changes on one line each: "update Fn Role?always<Role".
func brief(changes []Change) string {
	var lines []string
	for _, c := range changes {
		line := string(c.Action) + " " + c.LogicalID
		for flag, on := range map[string]bool{"record": c.RecordOnly, "retain": c.Retain, "first": c.DeleteFirst} {
			if on {
				line += " [" + flag + "]"
			}
		}
		if c.Speculative {
			line += " [maybe]"
		}
		if c.Action == ActionUpdate || c.Action == ActionReplace {
			for _, p := range c.Changes {
				line += " " + p.Path
				if p.Unknown {
					line += "?"
				}
				if p.Replacement != "" {
					line += "!" + string(p.Replacement)
				}
				if p.Cause != "" {
					line += "<" + p.Cause
				}
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func decode(t testing.TB, source string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(source))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}
