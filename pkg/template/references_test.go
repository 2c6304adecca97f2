package template_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/template"
)

func show(refs []template.Reference) []string {
	var out []string
	for _, r := range refs {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s @%s", r.Kind, r.Target, r.Attribute, r.Path)))
	}
	return out
}

func TestEveryKindOfReferenceIsFound(t *testing.T) {
	cases := []struct {
		name string
		body string
		want []string
	}{
		{"Ref", `"Properties": {"A": {"Ref": "X"}}`, []string{"Ref X  @Properties.A.Ref"}},
		{"Ref of a parameter is found too", `"Properties": {"A": {"Ref": "P"}}`, []string{"Ref P  @Properties.A.Ref"}},
		{"pseudo parameters are no references", `"Properties": {"A": {"Ref": "AWS::Region"}}`, nil},
		{"GetAtt in list form", `"Properties": {"A": {"Fn::GetAtt": ["X", "Arn"]}}`, []string{"Fn::GetAtt X Arn @Properties.A.Fn::GetAtt"}},
		{"GetAtt in string form splits at the first dot", `"Properties": {"A": {"Fn::GetAtt": "X.Endpoint.Port"}}`, []string{"Fn::GetAtt X Endpoint.Port @Properties.A.Fn::GetAtt"}},
		{"GetAtt with a computed attribute refers to both", `"Properties": {"A": {"Fn::GetAtt": ["X", {"Ref": "P"}]}}`, []string{"Fn::GetAtt X  @Properties.A.Fn::GetAtt", "Ref P  @Properties.A.Fn::GetAtt.Ref"}},
		{"Sub", `"Properties": {"A": {"Fn::Sub": "${X}-${Y.A.B}-${!Z}-${AWS::Region}"}}`, []string{"Fn::Sub X  @Properties.A.Fn::Sub", "Fn::Sub Y A.B @Properties.A.Fn::Sub"}},
		{"Sub's own names are no references, their values are walked", `"Properties": {"A": {"Fn::Sub": ["${X}${V}", {"V": {"Ref": "Y"}}]}}`, []string{"Fn::Sub X  @Properties.A.Fn::Sub", "Ref Y  @Properties.A.Fn::Sub.1.V.Ref"}},
		{"Join", `"Properties": {"A": {"Fn::Join": [",", ["a", {"Ref": "X"}]]}}`, []string{"Ref X  @Properties.A.Fn::Join.1.1.Ref"}},
		{"both branches of If", `"Properties": {"A": {"Fn::If": ["C", {"Ref": "X"}, {"Ref": "Y"}]}}`, []string{"Ref X  @Properties.A.Fn::If.1.Ref", "Ref Y  @Properties.A.Fn::If.2.Ref"}},
		{"Select's index and list", `"Properties": {"A": {"Fn::Select": [{"Ref": "P"}, [{"Ref": "X"}]]}}`, []string{"Ref P  @Properties.A.Fn::Select.0.Ref", "Ref X  @Properties.A.Fn::Select.1.0.Ref"}},
		{"any other function", `"Properties": {"A": {"Fn::Base64": {"Fn::Cidr": [{"Fn::GetAtt": "X.CidrBlock"}, 1, 8]}}}`, []string{"Fn::GetAtt X CidrBlock @Properties.A.Fn::Base64.Fn::Cidr.0.Fn::GetAtt"}},
		{"a Ref with other keys beside it is data", `"Properties": {"A": {"Ref": "X", "B": {"Ref": "Y"}}}`, []string{"Ref Y  @Properties.A.B.Ref"}},
		{"DependsOn comes first", `"DependsOn": ["Y", "X"], "Properties": {"A": {"Ref": "X"}}`, []string{"DependsOn Y  @DependsOn", "DependsOn X  @DependsOn", "Ref X  @Properties.A.Ref"}},
		{"Metadata", `"Metadata": {"A": {"Fn::Sub": "${X}"}}`, []string{"Fn::Sub X  @Metadata.A.Fn::Sub"}},
		{"UpdatePolicy", `"UpdatePolicy": {"CodeDeployLambdaAliasUpdate": {"ApplicationName": {"Ref": "X"}}}`, []string{"Ref X  @UpdatePolicy.CodeDeployLambdaAliasUpdate.ApplicationName.Ref"}},
		{"CreationPolicy", `"CreationPolicy": {"ResourceSignal": {"Count": {"Ref": "P"}}}`, []string{"Ref P  @CreationPolicy.ResourceSignal.Count.Ref"}},
		{"a computed DeletionPolicy", `"DeletionPolicy": {"Ref": "P"}`, []string{"Ref P  @DeletionPolicy.Ref"}},
		{"a malformed function is walked like data", `"Properties": {"A": {"Fn::GetAtt": [{"Ref": "X"}, "B", "C"]}}`, []string{"Ref X  @Properties.A.Fn::GetAtt.0.Ref"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tmpl := mustParse(t, `{"Parameters": {"P": {"Type": "String"}}, "Resources": {"R": {"Type": "T", `+c.body+`}, "X": {"Type": "T"}, "Y": {"Type": "T"}}}`)
			if diff := cmp.Diff(c.want, show(tmpl.References("R"))); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if !tmpl.IsParameter("P") || tmpl.IsParameter("X") {
				t.Error("parameters and resources are mixed up")
			}
		})
	}
}

func TestOutputsReferToo(t *testing.T) {
	tmpl := mustParse(t, `{"Resources": {`+topic+`}, "Outputs": {"B": {"Value": {"Ref": "T"}, "Export": {"Name": {"Fn::Sub": "${AWS::StackName}-${P}"}}}, "A": {"Value": {"Fn::GetAtt": ["T", "TopicArn"]}}}}`)
	want := []string{"Fn::GetAtt T TopicArn @Outputs.A.Value.Fn::GetAtt", "Ref T  @Outputs.B.Value.Ref", "Fn::Sub P  @Outputs.B.Export.Name.Fn::Sub"}
	if diff := cmp.Diff(want, show(tmpl.OutputReferences())); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

func TestDependenciesFollowTheConditions(t *testing.T) {
	tmpl := mustParse(t, `{"Parameters": {"P": {"Type": "String"}}, "Conditions": {"Yes": {"Fn::Equals": [1, 1]}, "No": {"Fn::Equals": [1, 2]}}, "Resources": {
	 "A": {"Type": "T", "DependsOn": ["Gone", "B"], "Properties": {"V": {"Fn::If": ["No", {"Ref": "Gone"}, {"Ref": "C"}]}, "W": {"Ref": "P"}, "X": {"Ref": "AWS::Region"}}},
	 "B": {"Type": "T", "Condition": "Yes"}, "C": {"Type": "T", "Properties": {"Self": {"Ref": "C"}}},
	 "Gone": {"Type": "T", "Condition": "No", "DependsOn": "A"}}}`)
	got := map[string][]string{}
	for id, refs := range template.Dependencies(tmpl, map[string]bool{"Yes": true, "No": false}) {
		got[id] = show(refs)
	}
	want := map[string][]string{
		"A": {"DependsOn B  @DependsOn", "Ref C  @Properties.V.Fn::If.2.Ref"},
		"B": nil,
		"C": {"Ref C  @Properties.Self.Ref"}, // a circle of one, for the graph to report
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

const handler = `
 "Thing": {"Type": "Custom::Thing", "Properties": {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}}},
 "Function": {"Type": "AWS::Lambda::Function", "Properties": {"Role": {"Fn::GetAtt": ["Role", "Arn"]}}},
 "Role": {"Type": "AWS::IAM::Role"}, "Other": {"Type": "AWS::IAM::Role"}`

func TestACustomResourceWaitsForThePoliciesOfItsHandler(t *testing.T) {
	cases := []struct {
		name, resources string
		want            []string
	}{
		{"a policy attached by Ref", `"Policy": {"Type": "AWS::IAM::Policy", "Properties": {"Roles": [{"Ref": "Role"}]}}`, []string{"Policy"}},
		{"a managed policy", `"Policy": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"Roles": [{"Ref": "Other"}, {"Ref": "Role"}]}}`, []string{"Policy"}},
		{"a role policy", `"Policy": {"Type": "AWS::IAM::RolePolicy", "Properties": {"RoleName": {"Ref": "Role"}}}`, []string{"Policy"}},
		{"a policy of another role", `"Policy": {"Type": "AWS::IAM::Policy", "Properties": {"Roles": [{"Ref": "Other"}]}}`, nil},
		{"a policy that waits for the custom resource", `"Policy": {"Type": "AWS::IAM::Policy", "Properties": {"Roles": [{"Ref": "Role"}], "PolicyName": {"Ref": "Thing"}}}`, nil},
		{"a policy that waits for it over another", `"Policy": {"Type": "AWS::IAM::Policy", "DependsOn": "Mid", "Properties": {"Roles": [{"Ref": "Role"}]}}, "Mid": {"Type": "T", "Properties": {"A": {"Ref": "Thing"}}}`, nil},
		{"two policies", `"P1": {"Type": "AWS::IAM::Policy", "Properties": {"Roles": [{"Ref": "Role"}]}}, "P2": {"Type": "AWS::IAM::Policy", "Properties": {"Roles": [{"Ref": "Role"}]}}`, []string{"P1", "P2"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tmpl := mustParse(t, `{"Resources": {`+handler+`, `+c.resources+`}}`)
			var got []string
			for _, ref := range template.Dependencies(tmpl, nil)["Thing"] {
				if ref.Kind == template.RefImplicit {
					got = append(got, ref.Target)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}
