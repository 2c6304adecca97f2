package intrinsic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
)

func needsScope(t *testing.T, text string) *intrinsic.Scope {
	t.Helper()
	tmpl := mustParse(t, text)
	params, ds := tmpl.BindParameters(nil, nil)
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	pseudo := intrinsic.PseudoFor("123456789012", "eu-west-1", "S")
	conditions, ds := intrinsic.EvaluateConditions(tmpl, params, pseudo)
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	return &intrinsic.Scope{Template: tmpl, Parameters: params, Conditions: conditions, Pseudo: pseudo}
}

func TestNeededListsWhatHasToBeFetched(t *testing.T) {
	scope := needsScope(t, `{
	 "Parameters": {"Net": {"Type": "String", "Default": "Main"}},
	 "Conditions": {"No": {"Fn::Equals": [1, 2]}},
	 "Resources": {
	  "A": {"Type": "AWS::SNS::Topic", "Properties": {
	    "Vpc": {"Fn::ImportValue": {"Fn::Sub": "${Net}-Vpc"}},
	    "Twice": {"Fn::ImportValue": "Main-Vpc"},
	    "Zone": {"Fn::Select": [0, {"Fn::GetAZs": ""}]}, "Far": {"Fn::GetAZs": "us-east-1"},
	    "Out": {"Fn::GetStackOutput": {"StackName": "Other", "OutputName": {"Ref": "Net"}}},
	    "Unchosen": {"Fn::If": ["No", {"Fn::ImportValue": "Never"}, "x"]},
	    "Broken": {"Ref": "Nope"},
	    "AfterBroken": {"Fn::Join": ["", [{"Fn::ImportValue": "Late"}]]}}},
	  "B": {"Type": "AWS::SNS::Topic", "Condition": "No", "Properties": {"X": {"Fn::ImportValue": "Dropped"}}}},
	 "Outputs": {"O": {"Value": {"Fn::ImportValue": "ForOutput"}}, "P": {"Condition": "No", "Value": {"Fn::ImportValue": "DroppedToo"}}}}`)
	got, ds := intrinsic.Needed(scope)
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	want := intrinsic.Needs{
		Imports:      []string{"ForOutput", "Late", "Main-Vpc"},
		StackOutputs: []intrinsic.StackOutput{{Stack: "Other", Region: "eu-west-1", Output: "Main"}},
		Zones:        []string{"eu-west-1", "us-east-1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	scope.Imports = map[string]any{"ForOutput": "x", "Late": "x", "Main-Vpc": "x"}
	scope.StackOutputs = map[string]any{want.StackOutputs[0].Key(): "x"}
	scope.Zones = map[string][]string{"eu-west-1": {"a"}, "us-east-1": {"b"}}
	if got, _ := intrinsic.Needed(scope); len(got.Imports)+len(got.StackOutputs)+len(got.Zones) != 0 {
		t.Errorf("with all facts there is still need of %v", got)
	}
}

func TestNeededReportsNamesThatDependOnAResource(t *testing.T) {
	scope := needsScope(t, `{"Resources": {"A": {"Type": "AWS::SNS::Topic"}, "B": {"Type": "AWS::SNS::Topic", "Properties": {"X": {"Fn::ImportValue": {"Ref": "A"}}}}}}`)
	_, ds := intrinsic.Needed(scope)
	if err := ds.Err(); err == nil || !strings.Contains(err.Error(), "B Properties.X.Fn::ImportValue: the name depends on a resource: it waits for A") {
		t.Fatalf("the problem is %v", err)
	}
}
