package intrinsic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

const conditionParameters = `"Parameters": {
  "Env": {"Type": "String", "Default": "prod"}, "Size": {"Type": "Number", "Default": 1}, "Flag": {"Type": "String", "Default": true},
  "Names": {"Type": "CommaDelimitedList", "Default": "a,b"}},
 "Mappings": {"M": {"prod": {"Big": "true", "Boolean": true}}},
 "Resources": {"R": {"Type": "AWS::SNS::Topic"}}`

func TestConditionsEvaluateAsDocumented(t *testing.T) {
	cases := []struct {
		name       string
		conditions string
		want       map[string]bool
		fails      string
	}{
		{"equal strings", `{"C": {"Fn::Equals": [{"Ref": "Env"}, "prod"]}}`, map[string]bool{"C": true}, ""},
		{"comparison is case-sensitive", `{"C": {"Fn::Equals": [{"Ref": "Env"}, "Prod"]}}`, map[string]bool{"C": false}, ""},
		{"a number equals its text", `{"C": {"Fn::Equals": [{"Ref": "Size"}, "1"]}}`, map[string]bool{"C": true}, ""},
		{"a number does not equal another notation of it", `{"C": {"Fn::Equals": [{"Ref": "Size"}, "1.0"]}}`, map[string]bool{"C": false}, ""},
		{"a boolean equals its text", `{"C": {"Fn::Equals": [{"Ref": "Flag"}, true]}}`, map[string]bool{"C": true}, ""},
		{"lists are equal item by item", `{"C": {"Fn::Equals": [{"Ref": "Names"}, ["a", "b"]]}}`, map[string]bool{"C": true}, ""},
		{"lists in another order differ", `{"C": {"Fn::Equals": [{"Ref": "Names"}, ["b", "a"]]}}`, map[string]bool{"C": false}, ""},
		{"objects are equal whatever the order of their keys", `{"C": {"Fn::Equals": [{"a": 1, "b": 2}, {"b": "2", "a": "1"}]}}`, map[string]bool{"C": true}, ""},
		{"objects with different keys differ", `{"C": {"Fn::Equals": [{"a": 1, "b": 2}, {"a": 1, "c": 2}]}}`, map[string]bool{"C": false}, ""},
		{"a string and a list differ", `{"C": {"Fn::Equals": [{"Ref": "Env"}, ["prod"]]}}`, map[string]bool{"C": false}, ""},
		{"an empty string equals an empty string", `{"C": {"Fn::Equals": [{"Fn::Join": ["", []]}, ""]}}`, map[string]bool{"C": true}, ""},
		{"string functions are allowed", `{"C": {"Fn::Equals": [{"Fn::Select": [0, {"Fn::Split": ["r", {"Fn::Sub": "${Env}"}]}]}, "p"]}}`, map[string]bool{"C": true}, ""},
		{"mappings are allowed", `{"C": {"Fn::Equals": [{"Fn::FindInMap": ["M", {"Ref": "Env"}, "Big"]}, "true"]}}`, map[string]bool{"C": true}, ""},
		{"a mapping's true is a condition", `{"C": {"Fn::Not": [{"Fn::FindInMap": ["M", "prod", "Boolean"]}]}}`, map[string]bool{"C": false}, ""},
		{"pseudo parameters are allowed", `{"C": {"Fn::Equals": [{"Ref": "AWS::Region"}, "eu-west-1"]}}`, map[string]bool{"C": true}, ""},
		{"And is true when all are", `{"A": {"Fn::Equals": [1, 1]}, "C": {"Fn::And": [{"Condition": "A"}, {"Fn::Equals": ["x", "x"]}]}}`, map[string]bool{"A": true, "C": true}, ""},
		{"And is false when one is not", `{"C": {"Fn::And": [{"Fn::Equals": [1, 2]}, {"Fn::Equals": ["x", "x"]}]}}`, map[string]bool{"C": false}, ""},
		{"Or is true when one is", `{"C": {"Fn::Or": [{"Fn::Equals": [1, 2]}, {"Fn::Equals": ["x", "x"]}]}}`, map[string]bool{"C": true}, ""},
		{"Or is false when none is", `{"C": {"Fn::Or": [{"Fn::Equals": [1, 2]}, {"Fn::Equals": ["x", "y"]}]}}`, map[string]bool{"C": false}, ""},
		{"Not turns around", `{"C": {"Fn::Not": [{"Fn::Equals": [1, 1]}]}}`, map[string]bool{"C": false}, ""},
		{"conditions refer to later ones", `{"A": {"Condition": "Z"}, "Z": {"Fn::Equals": [1, 1]}}`, map[string]bool{"A": true, "Z": true}, ""},
		{"a condition may be If of conditions", `{"A": {"Fn::Equals": [1, 1]}, "C": {"Fn::Equals": [{"Fn::If": ["A", "x", "y"]}, "x"]}}`, map[string]bool{"A": true, "C": true}, ""},
		{"And takes two at least", `{"C": {"Fn::And": [{"Fn::Equals": [1, 1]}]}}`, nil, "it takes 2 to 10 conditions"},
		{"Or takes ten at most", `{"C": {"Fn::Or": [` + strings.TrimSuffix(strings.Repeat(`{"Fn::Equals": [1, 1]},`, 11), ",") + `]}}`, nil, "it takes 2 to 10 conditions"},
		{"ten are allowed", `{"C": {"Fn::Or": [` + strings.TrimSuffix(strings.Repeat(`{"Fn::Equals": [1, 2]},`, 10), ",") + `]}}`, map[string]bool{"C": false}, ""},
		{"Not takes one", `{"C": {"Fn::Not": [{"Fn::Equals": [1, 1]}, {"Fn::Equals": [1, 1]}]}}`, nil, "it takes a list of one condition"},
		{"Not takes a list", `{"C": {"Fn::Not": {"Fn::Equals": [1, 1]}}}`, nil, "it takes a list of one condition"},
		{"Equals takes two", `{"C": {"Fn::Equals": [1]}}`, nil, "it takes two values"},
		{"a circle fails and is shown", `{"A": {"Condition": "B"}, "B": {"Fn::Not": [{"Condition": "A"}]}}`, nil, "conditions refer to each other in a circle: A → B → A"},
		{"a condition that refers to itself fails", `{"A": {"Condition": "A"}}`, nil, "A → A"},
		{"an unknown condition fails", `{"A": {"Condition": "Bee"}, "Bees": {"Fn::Equals": [1, 1]}}`, nil, "unknown condition Bee: did you mean Bees?"},
		{"a problem in an operand that would not matter fails", `{"C": {"Fn::Or": [{"Fn::Equals": [1, 1]}, {"Condition": "Nope"}]}}`, nil, "unknown condition Nope"},
		{"a resource can not be read", `{"C": {"Fn::Equals": [{"Ref": "R"}, "x"]}}`, nil, "it is a resource, and this is evaluated before any resource exists"},
		{"an attribute can not be read", `{"C": {"Fn::Equals": [{"Fn::GetAtt": ["R", "TopicArn"]}, "x"]}}`, nil, "Fn::GetAtt can't be used here"},
		{"an attribute can not be read by Sub", `{"C": {"Fn::Equals": [{"Fn::Sub": "${R.TopicArn}"}, "x"]}}`, nil, "attributes can't be read here"},
		{"an import can not be read", `{"C": {"Fn::Equals": [{"Fn::ImportValue": "x"}, "x"]}}`, nil, "Fn::ImportValue can't be used here"},
		{"a condition that is no expression fails", `{"C": "yes"}`, nil, "the operand is neither true nor false: found a string"},
		{"an unknown parameter fails", `{"C": {"Fn::Equals": [{"Ref": "Envv"}, "x"]}}`, nil, "unknown parameter Envv: did you mean Env?"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tmpl := mustParse(t, `{"Conditions": `+c.conditions+`, `+conditionParameters+`}`)
			params, ds := tmpl.BindParameters(nil, nil)
			if err := ds.Err(); err != nil {
				t.Fatal(err)
			}
			got, ds := intrinsic.EvaluateConditions(tmpl, params, intrinsic.PseudoFor("123456789012", "eu-west-1", "S"))
			if c.fails != "" {
				if err := ds.Err(); err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("the problem is %v, want %q", err, c.fails)
				}
				return
			}
			if err := ds.Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRulesAreChecked(t *testing.T) {
	cases := []struct {
		name  string
		rules string
		facts map[string]any
		fails string
	}{
		{"an assertion that holds", `{"R": {"Assertions": [{"Assert": {"Fn::Contains": [["prod", "test"], {"Ref": "Env"}]}}]}}`, nil, ""},
		{"an assertion that does not hold, with its description", `{"R": {"Assertions": [{"Assert": {"Fn::Contains": [["test"], {"Ref": "Env"}]}, "AssertDescription": "Env is test"}]}}`, nil, "the rule R is not satisfied: Env is test"},
		{"a rule whose condition is false is not checked", `{"R": {"RuleCondition": {"Fn::Equals": [{"Ref": "Env"}, "test"]}, "Assertions": [{"Assert": {"Fn::Equals": [1, 2]}}]}}`, nil, ""},
		{"a rule whose condition is true is checked", `{"R": {"RuleCondition": {"Fn::Equals": [{"Ref": "Env"}, "prod"]}, "Assertions": [{"Assert": {"Fn::Equals": [1, 2]}}]}}`, nil, "the rule R is not satisfied"},
		{"EachMemberIn of a list parameter", `{"R": {"Assertions": [{"Assert": {"Fn::EachMemberIn": [{"Ref": "Names"}, ["a", "b", "c"]]}}]}}`, nil, ""},
		{"EachMemberIn with a stranger", `{"R": {"Assertions": [{"Assert": {"Fn::EachMemberIn": [{"Ref": "Names"}, ["a"]]}}]}}`, nil, "not satisfied"},
		{"EachMemberEquals", `{"R": {"Assertions": [{"Assert": {"Fn::EachMemberEquals": [["x", "x"], "x"]}}]}}`, nil, ""},
		{"EachMemberEquals with another", `{"R": {"Assertions": [{"Assert": {"Fn::EachMemberEquals": [["x", "y"], "x"]}}]}}`, nil, "not satisfied"},
		{"RefAll gives the values of all parameters of a type", `{"R": {"Assertions": [{"Assert": {"Fn::EachMemberIn": [{"Fn::RefAll": "AWS::EC2::VPC::Id"}, ["vpc-1", "vpc-2"]]}}]}}`, nil, ""},
		{"RefAll finds the odd one", `{"R": {"Assertions": [{"Assert": {"Fn::EachMemberEquals": [{"Fn::RefAll": "AWS::EC2::VPC::Id"}, "vpc-1"]}}]}}`, nil, "not satisfied"},
		{"ValueOf reads a fact", `{"R": {"Assertions": [{"Assert": {"Fn::Equals": [{"Fn::ValueOf": ["Vpc", "Tags.Team"]}, "shop"]}}]}}`, map[string]any{intrinsic.ValueOfFact("Vpc", "Tags.Team"): "shop"}, ""},
		{"ValueOf without the fact can't be checked", `{"R": {"Assertions": [{"Assert": {"Fn::Equals": [{"Fn::ValueOf": ["Vpc", "Tags.Team"]}, "shop"]}}]}}`, nil, "the rule can't be checked: the attribute Tags.Team of what the parameter Vpc names is not known"},
		{"ValueOfAll reads the facts of all parameters of a type", `{"R": {"Assertions": [{"Assert": {"Fn::EachMemberEquals": [{"Fn::ValueOfAll": ["AWS::EC2::VPC::Id", "Tags.Team"]}, "shop"]}}]}}`,
			map[string]any{intrinsic.ValueOfFact("Vpc", "Tags.Team"): "shop", intrinsic.ValueOfFact("Vpc2", "Tags.Team"): "other"}, "not satisfied"},
		{"the CDK's bootstrap rule is left out", `{"CheckBootstrapVersion": {"Assertions": [{"Assert": {"Fn::Not": [{"Fn::Contains": [["1", "2"], {"Ref": "BootstrapVersion"}]}]}}]}}`, nil, ""},
		{"a rule may not read a resource", `{"R": {"Assertions": [{"Assert": {"Fn::Equals": [{"Ref": "Topic"}, "x"]}}]}}`, nil, "it is a resource"},
		{"If in a rule takes an expression", `{"R": {"Assertions": [{"Assert": {"Fn::If": [{"Fn::Equals": ["a", "a"]}, {"Fn::Equals": [1, 1]}, {"Fn::Equals": [1, 2]}]}}]}}`, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tmpl := mustParse(t, `{"Rules": `+c.rules+`, "Parameters": {"Env": {"Type": "String", "Default": "prod"}, "Names": {"Type": "CommaDelimitedList", "Default": "a,b"},
			 "Vpc": {"Type": "AWS::EC2::VPC::Id", "Default": "vpc-1"}, "Vpc2": {"Type": "AWS::EC2::VPC::Id", "Default": "vpc-2"},
			 "BootstrapVersion": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/cdk-bootstrap/hnb659fds/version"}},
			 "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}`)
			params, ds := tmpl.BindParameters(nil, nil)
			if err := ds.Err(); err != nil {
				t.Fatal(err)
			}
			err := intrinsic.CheckRules(tmpl, params, intrinsic.PseudoFor("123456789012", "eu-west-1", "S"), c.facts).Err()
			switch {
			case c.fails == "" && err != nil:
				t.Fatal(err)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Fatalf("the problem is %v, want %q", err, c.fails)
			}
		})
	}
}

func mustParse(t testing.TB, text string) *template.Template {
	t.Helper()
	tmpl, err := template.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}
