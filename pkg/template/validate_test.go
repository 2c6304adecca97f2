package template_test

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/template"
)

func TestValidateFindsWhatCanNotWork(t *testing.T) {
	property := func(value string) string {
		return `"Resources": {"R": {"Type": "T", "Properties": {"A": ` + value + `}}, "Queue": {"Type": "T"}}`
	}
	cases := []struct{ name, template, fails string }{
		{"a Ref to nothing", property(`{"Ref": "Queu"}`), "R Properties.A.Ref: nothing in the template is called Queu: did you mean Queue?"},
		{"a GetAtt to nothing", property(`{"Fn::GetAtt": ["Nope", "Arn"]}`), "R Properties.A.Fn::GetAtt: nothing in the template is called Nope"},
		{"a Sub to nothing", property(`{"Fn::Sub": "${Nope}"}`), "R Properties.A.Fn::Sub: nothing in the template is called Nope"},
		{"a Ref to nothing in the branch that is not chosen", property(`{"Fn::If": ["C", "a", {"Ref": "Nope"}]}`) + `, "Conditions": {"C": {"Fn::Equals": [1, 1]}}`, "R Properties.A.Fn::If.2.Ref: nothing in the template is called Nope"},
		{"an unknown pseudo parameter", property(`{"Ref": "AWS::Acount"}`), "unknown pseudo parameter AWS::Acount"},
		{"an attribute of a pseudo parameter", property(`{"Fn::Sub": "${AWS::Region.Name}"}`), "the pseudo parameter AWS::Region has no attributes"},
		{"an attribute of a parameter", `"Parameters": {"P": {"Type": "String"}}, ` + property(`{"Fn::GetAtt": ["P", "Arn"]}`), "P is a parameter and has no attributes"},
		{"a misspelt function", property(`{"Fn::GettAtt": ["Queue", "Arn"]}`), "R Properties.A.Fn::GettAtt: unknown function Fn::GettAtt: did you mean Fn::GetAtt?"},
		{"a function with another key beside it", property(`{"Fn::Join": [",", []], "B": 1}`), "R Properties.A.Fn::Join: a function with other keys beside it"},
		{"a malformed Sub", property(`{"Fn::Sub": "${a b}"}`), "malformed Fn::Sub: placeholder 1"},
		{"a Sub of a number", property(`{"Fn::Sub": 1}`), "Fn::Sub takes a string, or a list of a string and a map"},
		{"a Ref of a list", property(`{"Ref": ["Queue"]}`), "Ref takes a name: found a list"},
		{"a GetAtt of one item", property(`{"Fn::GetAtt": ["Queue"]}`), "Fn::GetAtt takes a logical ID and an attribute name"},
		{"a null property", property(`null`), "R Properties.A: null is not allowed here"},
		{"a null argument", property(`{"Fn::GetAZs": null}`), "R Properties.A.Fn::GetAZs: null is not allowed here"},
		{"a macro in a property", property(`{"Fn::Transform": {"Name": "M"}}`), "Resources.R.Properties.A.Fn::Transform: the template needs the macro M"},
		{"an unknown condition in If", property(`{"Fn::If": ["Nope", 1, 2]}`), "R Properties.A.Fn::If.0: unknown condition Nope"},
		{"an expression as the condition of If", property(`{"Fn::If": [{"Fn::Equals": [1, 1]}, 1, 2]}`), "the condition of Fn::If is the name of a condition"},
		{"Equals in a property", property(`{"Fn::Equals": [1, 1]}`), "Fn::Equals can't be used here"},
		{"Length without the language extensions", property(`{"Fn::Length": []}`), "Fn::Length needs the transform AWS::LanguageExtensions"},
		{"a DefaultValue without the language extensions", property(`{"Fn::FindInMap": ["M", "a", "b", {"DefaultValue": 1}]}`), "a DefaultValue needs the transform AWS::LanguageExtensions"},
		{"an unknown mapping", property(`{"Fn::FindInMap": ["Regoins", "a", "b"]}`) + `, "Mappings": {"Regions": {"a": {"b": "c"}}}`, "unknown mapping Regoins: did you mean Regions?"},
		{"an unknown key of a mapping", property(`{"Fn::FindInMap": ["Regions", "z", "b"]}`) + `, "Mappings": {"Regions": {"a": {"b": "c"}}}`, "the mapping Regions has no top-level key z"},
		{"an import by a resource's name", property(`{"Fn::ImportValue": {"Ref": "Queue"}}`), "the name of an export or an output can't depend on a resource: it refers to Queue"},
		{"an export by a resource's name", property(`1`) + `, "Outputs": {"O": {"Value": "v", "Export": {"Name": {"Fn::GetAtt": ["Queue", "Arn"]}}}}`, "Outputs.O.Export.Name.Fn::GetAtt: the name of an export can't depend on a resource"},
		{"a DependsOn to nothing", `"Resources": {"R": {"Type": "T", "DependsOn": "Tabel"}, "Table": {"Type": "T"}}`, "R DependsOn: nothing in the template is called Tabel: did you mean Table?"},
		{"a DependsOn to a parameter", `"Parameters": {"P": {"Type": "String"}}, "Resources": {"R": {"Type": "T", "DependsOn": "P"}}`, "R DependsOn: nothing in the template is called P"},
		{"a resource with an unknown condition", `"Resources": {"R": {"Type": "T", "Condition": "Nope"}}`, "R Condition: unknown condition Nope"},
		{"a misspelt attribute of a resource", `"Resources": {"R": {"Type": "T", "DeletonPolicy": "Retain"}}`, "R DeletonPolicy: unknown attribute of a resource: did you mean DeletionPolicy?"},
		{"a computed policy without the language extensions", `"Resources": {"R": {"Type": "T", "DeletionPolicy": {"Ref": "AWS::Region"}}}`, "R DeletionPolicy: DeletionPolicy is not a policy name"},
		{"a reference to nothing in Metadata", `"Resources": {"R": {"Type": "T", "Metadata": {"A": {"Ref": "Nope"}}}}`, "R Metadata.A.Ref: nothing in the template is called Nope"},
		{"a reference to nothing in UpdatePolicy", `"Resources": {"R": {"Type": "T", "UpdatePolicy": {"A": {"Ref": "Nope"}}}}`, "R UpdatePolicy.A.Ref: nothing in the template is called Nope"},
		{"an output of nothing", property(`1`) + `, "Outputs": {"O": {"Value": {"Ref": "Nope"}}}`, "Outputs.O.Value.Ref: nothing in the template is called Nope"},
		{"an output with an unknown condition", property(`1`) + `, "Outputs": {"O": {"Value": 1, "Condition": "Nope"}}`, "Outputs.O.Condition: unknown condition Nope"},
		{"a name that is both", `"Parameters": {"Queue": {"Type": "String"}}, ` + property(`1`), "Queue: a parameter and a resource share one name"},
		{"a resource in a condition", property(`1`) + `, "Conditions": {"C": {"Fn::Equals": [{"Ref": "Queue"}, 1]}}`, "Conditions.C.Fn::Equals.0.Ref: Queue is a resource: Conditions and Rules are evaluated before any resource exists"},
		{"an unknown condition in a condition", property(`1`) + `, "Conditions": {"C": {"Fn::Not": [{"Condition": "D"}]}}`, "Conditions.C.Fn::Not.0.Condition: unknown condition D"},
		{"a circle of conditions", property(`1`) + `, "Conditions": {"A": {"Condition": "B"}, "B": {"Fn::Not": [{"Condition": "C"}]}, "C": {"Condition": "A"}}`, "conditions refer to each other in a circle: A → B → C → A"},
		{"GetAtt in a condition", property(`1`) + `, "Conditions": {"C": {"Fn::Equals": [{"Fn::GetAtt": ["Queue", "Arn"]}, 1]}}`, "Fn::GetAtt can't be used here"},
		{"a rule function in a condition", property(`1`) + `, "Conditions": {"C": {"Fn::Contains": [["a"], "a"]}}`, "Fn::Contains can't be used here"},
		{"a reference to nothing in a rule", property(`1`) + `, "Rules": {"R": {"Assertions": [{"Assert": {"Fn::Equals": [{"Ref": "Nope"}, 1]}}]}}`, "nothing in the template is called Nope"},
		{"a macro", `"Transform": "AWS::Serverless-2016-10-31", ` + property(`1`), "Transform: the template needs the macro AWS::Serverless-2016-10-31: only CloudFormation can run it"},
		{"a macro beside the resources", `"Resources": {"Fn::Transform": {"Name": "AWS::Include"}, "R": {"Type": "T"}}`, "Resources.Fn::Transform: the template needs the macro AWS::Include"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := template.Validate(mustParse(t, `{`+c.template+`}`)).Err()
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Fatalf("the problem is\n%v\nwant %q", err, c.fails)
			}
		})
	}
}

func TestValidateAcceptsWhatWorks(t *testing.T) {
	for name, text := range map[string]string{
		"null deep inside a JSON document":                  `"Resources": {"R": {"Type": "T", "Properties": {"Definition": {"ResultPath": null}}}}`,
		"a key called Ref among others":                     `"Resources": {"R": {"Type": "T", "Properties": {"A": {"Ref": "x", "B": 1}}}}`,
		"a policy's Condition":                              `"Resources": {"R": {"Type": "T", "Properties": {"Statement": {"Condition": {"StringEquals": {"a": "b"}}}}}}`,
		"a computed policy under the language extensions":   `"Transform": "AWS::LanguageExtensions", "Parameters": {"P": {"Type": "String"}}, "Resources": {"R": {"Type": "T", "DeletionPolicy": {"Ref": "P"}}}`,
		"Length under the language extensions":              `"Transform": ["AWS::LanguageExtensions"], "Resources": {"R": {"Type": "T", "Properties": {"A": {"Fn::Length": []}}}}`,
		"a condition of a condition":                        `"Conditions": {"A": {"Fn::Equals": [1, 1]}, "B": {"Fn::And": [{"Condition": "A"}, {"Condition": "A"}]}}, "Resources": {"R": {"Type": "T", "Condition": "B"}}`,
		"a Sub whose map names it":                          `"Resources": {"R": {"Type": "T", "Properties": {"A": {"Fn::Sub": ["${X}", {"X": 1}]}}}}`,
		"a resource that refers to itself is for the graph": `"Resources": {"R": {"Type": "T", "Properties": {"A": {"Ref": "R"}}}}`,
		"an export named by pseudo parameters":              `"Resources": {"R": {"Type": "T"}}, "Outputs": {"O": {"Value": {"Ref": "R"}, "Export": {"Name": {"Fn::Sub": "${AWS::StackName}-x"}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if ds := template.Validate(mustParse(t, `{`+text+`}`)); len(ds) > 0 {
				t.Fatal(ds)
			}
		})
	}
}
