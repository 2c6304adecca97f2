package template_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/template"
)

func mustParse(t testing.TB, text string) *template.Template {
	t.Helper()
	tmpl, err := template.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

const topic = `"T": {"Type": "AWS::SNS::Topic"}`

func TestParseRefusesBadShapesAndSaysWhere(t *testing.T) {
	resource := func(body string) string { return `{"Resources": {"R": {"Type": "AWS::SNS::Topic", ` + body + `}}}` }
	parameter := func(body string) string {
		return `{"Parameters": {"P": {` + body + `}}, "Resources": {` + topic + `}}`
	}
	output := func(body string) string {
		return `{"Resources": {` + topic + `}, "Outputs": {"O": {` + body + `}}}`
	}
	cases := []struct{ name, text, fails string }{
		{"no JSON at all", `hello`, "the template is not valid JSON: line 1, column 1"},
		{"an unexpected end", `{"Resources": {`, "the template is not valid JSON"},
		{"a syntax error on another line", "{\n\"Resources\": {\n\"A\" 1}}", "line 3"},
		{"text after the end", `{"Resources": {` + topic + `}} {}`, "there is text after the end"},
		{"a list in place of the template", `[]`, "the template is not a JSON object: found a list"},
		{"text that is not UTF-8", "{\"Resources\": \"\xff\"}", "the template is not UTF-8"},
		{"a key that stands twice", `{"Resources": {"A": {"Type": "X"}, "A": {"Type": "Y"}}}`, "Resources.A: the key stands twice in the same object"},
		{"a key that stands twice deep inside", resource(`"Properties": {"A": [{"B": 1, "B": 2}]}`), "Resources.R.Properties.A.0.B: the key stands twice"},
		{"nesting without end", `{"Resources": ` + strings.Repeat(`{"A":`, 300) + `1` + strings.Repeat("}", 300) + `}`, "the template nests deeper than 200 levels"},
		{"lists nested without end", `{"Resources": ` + strings.Repeat(`[`, 100000), "the template nests deeper than 200 levels"},
		{"no Resources", `{}`, "Resources: the template has no Resources"},
		{"empty Resources", `{"Resources": {}}`, "Resources: the template has no Resources"},
		{"Resources that are a list", `{"Resources": []}`, "Resources is not an object: found a list"},
		{"Resources that are null", `{"Resources": null}`, "Resources is not an object: found null"},
		{"an unknown section", `{"Resource": {}, "Resources": {` + topic + `}}`, "Resource: unknown section in the template: did you mean Resources?"},
		{"another format version", `{"AWSTemplateFormatVersion": "2011-01-01", "Resources": {` + topic + `}}`, "unsupported format version"},
		{"Hooks", `{"Hooks": {"A": {}}, "Resources": {` + topic + `}}`, "the Hooks section is not supported"},
		{"a Description that is no string", `{"Description": 1, "Resources": {` + topic + `}}`, "Description: the value is not a string: found a number"},
		{"a resource that is no object", `{"Resources": {"R": "x"}}`, "R: the resource is not an object: found a string"},
		{"a resource without a Type", `{"Resources": {"R": {"Properties": {}}}}`, "R Type: the resource has no Type"},
		{"a Type that is no string", `{"Resources": {"R": {"Type": {"Ref": "X"}}}}`, "R Type: the resource's Type is not a type name: found an object"},
		{"a logical ID with a dash", `{"Resources": {"my-r": {"Type": "X"}}}`, "my-r: the logical ID is not alphanumeric"},
		{"Properties that are a list", resource(`"Properties": []`), "R Properties: Properties is not an object: found a list"},
		{"DependsOn that is an object", resource(`"DependsOn": {"Ref": "T"}`), "R DependsOn: DependsOn is a logical ID or a list of them: found an object"},
		{"DependsOn with an object in its list", resource(`"DependsOn": ["T", {"Ref": "T"}]`), "R DependsOn.1: DependsOn lists logical IDs: found an object"},
		{"a Condition that is an object", resource(`"Condition": {"Fn::Equals": [1, 1]}`), "R Condition: a resource's Condition is the name of a condition"},
		{"an unknown DeletionPolicy", resource(`"DeletionPolicy": "Retian"`), "R DeletionPolicy: unknown DeletionPolicy: did you mean Retain?"},
		{"RetainExceptOnCreate as UpdateReplacePolicy", resource(`"UpdateReplacePolicy": "RetainExceptOnCreate"`), "R UpdateReplacePolicy: unknown UpdateReplacePolicy"},
		{"a DeletionPolicy that is a list", resource(`"DeletionPolicy": []`), "R DeletionPolicy: DeletionPolicy is not a policy name"},
		{"an UpdatePolicy that is a string", resource(`"UpdatePolicy": "x"`), "R UpdatePolicy: UpdatePolicy is not an object"},
		{"a loop without the language extensions", `{"Resources": {"Fn::ForEach::L": ["X", ["a"], {}]}}`, "Resources.Fn::ForEach::L: Fn::ForEach needs the transform AWS::LanguageExtensions"},
		{"a parameter without a Type", parameter(`"Default": "x"`), "Parameters.P.Type: the parameter has no Type"},
		{"an unknown parameter type", parameter(`"Type": "Strin"`), "Parameters.P.Type: unknown parameter type: did you mean String?"},
		{"an SSM parameter of numbers", parameter(`"Type": "AWS::SSM::Parameter::Value<Number>"`), "Parameters.P.Type: unknown parameter type"},
		{"a Default that is a list", parameter(`"Type": "CommaDelimitedList", "Default": ["a"]`), "Parameters.P.Default: a Default is a string, a number or a boolean: found a list"},
		{"AllowedValues that are a string", parameter(`"Type": "String", "AllowedValues": "a"`), "Parameters.P.AllowedValues: AllowedValues is a list of values"},
		{"an AllowedPattern that is no pattern", parameter(`"Type": "String", "AllowedPattern": "("`), "Parameters.P.AllowedPattern: the pattern is not a regular expression"},
		{"a MinLength that is no number", parameter(`"Type": "String", "MinLength": "x"`), "Parameters.P.MinLength: the value is not a whole number"},
		{"NoEcho that is neither true nor false", parameter(`"Type": "String", "NoEcho": "yes"`), "Parameters.P.NoEcho: NoEcho is true or false"},
		{"an unknown member of a parameter", parameter(`"Type": "String", "Defualt": "x"`), "Parameters.P.Defualt: unknown member of a parameter: did you mean Default?"},
		{"a parameter name with a dash", `{"Parameters": {"a-b": {"Type": "String"}}, "Resources": {` + topic + `}}`, "Parameters.a-b: the parameter's name is not alphanumeric"},
		{"a mapping that is a string", `{"Mappings": {"M": "x"}, "Resources": {` + topic + `}}`, "Mappings.M: the mapping is not an object"},
		{"a mapping with one level", `{"Mappings": {"M": {"a": "x"}}, "Resources": {` + topic + `}}`, "Mappings.M.a: a mapping's top-level key does not hold an object"},
		{"a null in a mapping", `{"Mappings": {"M": {"a": {"b": null}}}, "Resources": {` + topic + `}}`, "Mappings.M.a.b: null is not allowed here"},
		{"a rule without assertions", `{"Rules": {"R": {}}, "Resources": {` + topic + `}}`, "Rules.R.Assertions: a rule needs a list of Assertions"},
		{"an assertion without an Assert", `{"Rules": {"R": {"Assertions": [{}]}}, "Resources": {` + topic + `}}`, "Rules.R.Assertions.0: an assertion is an object with an Assert"},
		{"an output without a Value", output(`"Description": "x"`), "Outputs.O.Value: the output has no Value"},
		{"an Export without a Name", output(`"Value": "x", "Export": {}`), "Outputs.O.Export: Export is an object with a Name"},
		{"an unknown member of an output", output(`"Value": "x", "Exprot": {"Name": "n"}`), "Outputs.O.Exprot: unknown member of an output: did you mean Export?"},
		{"a Condition of an output that is an object", output(`"Value": "x", "Condition": {}`), "Outputs.O.Condition: an output's Condition is the name of a condition"},
		{"a Transform that is a number", `{"Transform": 1, "Resources": {` + topic + `}}`, "Transform: Transform is neither a name nor a list of names"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := template.Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Fatalf("the problem is\n%v\nwant %q", err, c.fails)
			}
			var ds diag.Diagnostics
			if !errors.As(err, &ds) {
				t.Fatalf("the error is a %T", err)
			}
		})
	}
}

func TestParseReadsEveryPartAndKeepsTheOrder(t *testing.T) {
	tmpl := mustParse(t, `{
	 "AWSTemplateFormatVersion": "2010-09-09", "Description": "d", "Transform": ["AWS::LanguageExtensions", {"Name": "Other"}],
	 "Parameters": {"Zz": {"Type": "Number", "Default": 1, "MinValue": "0", "MaxValue": 9.5, "NoEcho": "true", "MinLength": "1", "MaxLength": 3, "AllowedValues": [1, "2"], "AllowedPattern": ".*", "ConstraintDescription": "c", "Description": "pd"}, "Aa": {"Type": "String"}},
	 "Mappings": {"M": {"a": {"b": "c"}}}, "Conditions": {"C": {"Fn::Equals": [1, 1]}}, "Metadata": {"x": 1},
	 "Rules": {"R": {"Assertions": [{"Assert": {"Fn::Equals": [1, 1]}}]}},
	 "Resources": {
	  "Zebra": {"Type": "A::B::C", "Properties": {"N": 1.50}, "DependsOn": ["Apple", "Apple"], "Condition": "C", "DeletionPolicy": "Retain", "UpdateReplacePolicy": "Snapshot",
	    "UpdatePolicy": {"U": 1}, "CreationPolicy": {"K": 1}, "Metadata": {"m": 1}, "Version": "1", "Description": "d"},
	  "Apple": {"Type": "Custom::X", "DependsOn": "Zebra"}, "Mango": {"Type": "X"}},
	 "Outputs": {"Zo": {"Value": 1, "Description": "od", "Condition": "C", "Export": {"Name": {"Fn::Sub": "x"}}}, "Ao": {"Value": "v"}}}`)
	if diff := cmp.Diff([]string{"Zebra", "Apple", "Mango"}, tmpl.Order); diff != "" {
		t.Errorf("Order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Zo", "Ao"}, tmpl.OutputOrder); diff != "" {
		t.Errorf("OutputOrder (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Zz", "Aa"}, tmpl.ParameterOrder); diff != "" {
		t.Errorf("ParameterOrder (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Other"}, tmpl.Macros()); diff != "" || !tmpl.HasLanguageExtensions() {
		t.Errorf("Transform (-want +got):\n%s", diff)
	}
	z := tmpl.Resources["Zebra"]
	if z.Type != "A::B::C" || z.Condition != "C" || z.DeletionPolicy != "Retain" || z.UpdateReplacePolicy != "Snapshot" || len(z.DependsOn) != 1 || z.UpdatePolicy == nil || z.CreationPolicy == nil || z.Metadata == nil || z.Extra != nil {
		t.Errorf("the resource is %+v", z)
	}
	if got := tmpl.Resources["Apple"]; got.Properties != nil || got.DependsOn[0] != "Zebra" {
		t.Errorf("the resource is %+v", got)
	}
	p := tmpl.Parameters["Zz"]
	if p.Type != "Number" || !p.NoEcho || *p.MinValue != 0 || *p.MaxValue != 9.5 || *p.MinLength != 1 || *p.MaxLength != 3 || len(p.AllowedValues) != 2 || p.AllowedPattern != ".*" || p.ConstraintDescription != "c" || p.Description != "pd" {
		t.Errorf("the parameter is %+v", p)
	}
	o := tmpl.Outputs["Zo"]
	if o.Description != "od" || o.Condition != "C" || o.ExportName == nil || tmpl.Outputs["Ao"].ExportName != nil {
		t.Errorf("the output is %+v", o)
	}
}

func TestParseKeepsAByteOrderMarkOut(t *testing.T) {
	mustParse(t, "\xef\xbb\xbf"+`{"Resources": {`+topic+`}}`)
}

func TestAModelBuiltFromADocumentEqualsTheParsedOne(t *testing.T) {
	parsed := mustParse(t, `{"Resources": {"B": {"Type": "X"}, "A": {"Type": "Y", "Properties": {"P": {"Ref": "B"}}}}, "Outputs": {"O": {"Value": "v"}}}`)
	built, err := template.FromDocument(parsed.Document, parsed.Order)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed, built); diff != "" {
		t.Fatalf("(-parsed +built):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"Resources": {"R": {"Type": "AWS::SNS::Topic", "Properties": {"A": {"Fn::Sub": "${R.Arn}"}}}}}`))
	f.Add([]byte(`{"Parameters": {"P": {"Type": "List<Number>", "Default": "1,2"}}, "Conditions": {"C": {"Fn::Equals": [{"Ref": "P"}, 1]}}, "Resources": {"R": {"Type": "X", "Condition": "C"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tmpl, err := template.Parse(data)
		if err != nil {
			var ds diag.Diagnostics
			if !errors.As(err, &ds) {
				t.Fatalf("the error is a %T", err)
			}
			return
		}
		_ = template.Validate(tmpl)
		_, _ = tmpl.BindParameters(nil, nil)
		edges := template.Dependencies(tmpl, nil)
		for id, refs := range edges {
			for _, ref := range refs {
				if tmpl.Resources[ref.Target] == nil {
					t.Fatalf("%s waits for %s, which is no resource", id, ref.Target)
				}
			}
		}
	})
}

func FuzzParseSub(f *testing.F) {
	for _, s := range []string{"${A}", "${!A}", "a${A.B.C}b", "${", "${}", "$${A}", "${AWS::Region}", "${${A}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		parts, err := template.ParseSub(body)
		if err != nil {
			return
		}
		// Writing the parts out again gives the body, with each ${!x} as ${x}.
		var out strings.Builder
		for _, p := range parts {
			if p.Name != "" {
				out.WriteString("${" + p.Name + "}")
			} else {
				out.WriteString(p.Text)
			}
		}
		if got, want := strings.ReplaceAll(out.String(), "${!", "${"), strings.ReplaceAll(body, "${!", "${"); len(got) > len(want) {
			t.Fatalf("got %q from %q", got, body)
		}
	})
}
