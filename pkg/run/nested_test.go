package run

import (
	"maps"
	"slices"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

func TestWhatNeedsAnUnknownParameterIsNamed(t *testing.T) {
	for _, c := range []struct{ name, sections, what, parameter string }{
		{"a value only", `"Resources": {"T": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Ref": "P"}}}}`, "", ""},
		{"a parameter that is known", `"Resources": {"T": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::ImportValue": {"Ref": "K"}}}}}`, "", ""},
		{"a loop", `"Resources": {"Fn::ForEach::L": ["X", {"Ref": "P"}, {"T${X}": {"Type": "AWS::SNS::Topic"}}]}`, "the loop L", "P"},
		{"a loop that uses it in its body", `"Resources": {"Fn::ForEach::L": ["X", ["a"], {"T${X}": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Ref": "P"}}}}]}`, "", ""},
		{"a loop in a loop", `"Resources": {"Fn::ForEach::L": ["X", ["a"], {"Fn::ForEach::M": ["Y", {"Fn::Split": [",", {"Ref": "P"}]}, {"T${X}${Y}": {"Type": "AWS::SNS::Topic"}}]}]}`, "the loop M", "P"},
		{"an import in an output", `"Resources": {"T": {"Type": "AWS::SNS::Topic"}}, "Outputs": {"O": {"Value": {"Fn::ImportValue": {"Fn::Sub": "${P}-x"}}}}`, "Fn::ImportValue", "P"},
		{"a policy", `"Resources": {"T": {"Type": "AWS::SNS::Topic", "UpdateReplacePolicy": {"Ref": "P"}}}`, "the UpdateReplacePolicy of T", "P"},
		{"a condition", `"Conditions": {"C": {"Fn::Equals": [{"Ref": "P"}, "x"]}}, "Resources": {"T": {"Type": "AWS::SNS::Topic"}}`, "the condition C", "P"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parsed, err := template.Parse([]byte(`{"Transform": "AWS::LanguageExtensions", "Parameters": {"P": {"Type": "String"}, "K": {"Type": "String"}}, ` + c.sections + `}`))
			if err != nil {
				t.Fatal(err)
			}
			p := &parameters{t: parsed, unknown: []string{"P"}}
			if what, parameter := p.firstUnknown(); what != c.what || parameter != c.parameter {
				t.Errorf("%q needs %q, want %q needs %q", what, parameter, c.what, c.parameter)
			}
		})
	}
}

func TestALoopWithoutAListNeedsNothing(t *testing.T) {
	p := &parameters{t: &template.Template{Document: object{"Resources": object{"Fn::ForEach::L": []any{"X"}}}}, unknown: []string{"P"}}
	if what, parameter := p.firstUnknown(); what != "" || parameter != "" {
		t.Errorf("%q needs %q", what, parameter)
	}
}

func TestWhatAParentPasses(t *testing.T) {
	unknown := intrinsic.Unknown{Refs: []string{"Q.Arn"}}
	for _, c := range []struct {
		name       string
		properties map[string]any
		secrets    []secret.Path
		known      map[string]string
		unknown    []string
		tags       map[string]string
		undecided  bool
		refused    bool
	}{
		{name: "nothing", properties: map[string]any{}},
		{
			name:       "texts, and what is not known",
			properties: map[string]any{"Parameters": map[string]any{"A": "a", "B": unknown, "C": true}},
			known:      map[string]string{"A": "a", "C": "true"}, unknown: []string{"B"},
		},
		{
			name:       "a secret of its own, and what the record holds in place of one",
			properties: map[string]any{"Parameters": map[string]any{"A": "hidden", "B": "b", "C": "is ***"}},
			secrets:    []secret.Path{{"Parameters", "A"}, {"TemplateURL"}},
			known:      map[string]string{"B": "b"}, unknown: []string{"A", "C"},
		},
		{
			name:       "everything from a secret",
			properties: map[string]any{"Parameters": map[string]any{"A": "hidden", "B": "b"}},
			secrets:    []secret.Path{{"Parameters"}},
			known:      map[string]string{}, unknown: []string{"A", "B"},
		},
		{name: "parameters that are not known at all", properties: map[string]any{"Parameters": unknown}, undecided: true},
		{name: "a list", properties: map[string]any{"Parameters": map[string]any{"A": []any{"a"}}}, known: map[string]string{}, refused: true},
		{
			name: "tags",
			properties: map[string]any{"Tags": []any{
				map[string]any{"Key": "team", "Value": "shop"}, map[string]any{"Key": "late", "Value": unknown},
			}},
			tags: map[string]string{"team": "shop"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := nestedStack{logicalID: "Kid"}
			diags := n.take(c.properties, c.secrets)
			if !maps.Equal(n.parameters, c.known) || !slices.Equal(n.unknown, c.unknown) || !maps.Equal(n.tags, c.tags) {
				t.Errorf("passed %v, unknown %v, tags %v", n.parameters, n.unknown, n.tags)
			}
			if (n.undecided != "") != c.undecided || diags.HasErrors() != c.refused {
				t.Errorf("undecided %q, %v", n.undecided, diags)
			}
		})
	}
}

func TestANestedStackThatBecomesSomethingElseIsGone(t *testing.T) {
	parsed, err := template.Parse([]byte(`{"Resources": {"Kid": {"Type": "AWS::SNS::Topic"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	rec := copyRecord(nil, runlog.StackRef{Name: "Parent"})
	rec.Resources["Kid"] = &state.Resource{ResourceType: nestedType}
	v := &veil{t: parsed}
	found, diags := v.nested(rec, diff.Result{Changes: []diff.Change{{LogicalID: "Kid", Action: diff.ActionReplace, Retain: true}}})
	if len(found) != 1 || !found[0].gone || !found[0].retained || len(diags) > 0 {
		t.Errorf("found %+v, %v", found, diags)
	}
}
