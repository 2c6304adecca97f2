package local

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// parameterApp has one topic, which is named by a parameter.
func parameterApp(t *testing.T, parameter object, more object) *assembly.Assembly {
	template := object{
		"Parameters": object{"P": parameter},
		"Resources":  object{"Topic": resource("AWS::SNS::Topic", object{"DisplayName": object{"Fn::Sub": "is ${P}"}})},
	}
	for k, v := range more {
		template[k] = v
	}
	return writeApp(t, map[string]object{"Params": template}, nil)
}

// shown is the value in the record.
func shown(t *testing.T, p *Plane) any {
	t.Helper()
	rec, _, err := p.States().Load(context.Background(), "Params", p.region)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Resources["Topic"].Properties["DisplayName"]
}

func TestAValueIsGivenOrThatOfBeforeOrTheDefault(t *testing.T) {
	p := openPlane(t, Options{Dir: t.TempDir()})
	text := func(members object) object {
		members["Type"] = "String"
		return members
	}
	for _, step := range []struct {
		name      string
		parameter object
		values    map[string]string
		want      string // "" for a refusal
		says      string
	}{
		{"without anything it is refused", text(object{}), nil, "", "P: the parameter has no value"},
		{"the Default", text(object{"Default": "one"}), nil, "is one", ""},
		{"a Default is not kept: another one counts", text(object{"Default": "two"}), nil, "is two", ""},
		{"a given value wins", text(object{"Default": "two"}), map[string]string{"P": "three"}, "is three", ""},
		{"and is kept", text(object{"Default": "two"}), nil, "is three", ""},
		{"also without a Default", text(object{}), nil, "is three", ""},
		{"but not where it is no longer allowed", text(object{"Default": "two", "AllowedValues": []any{"two", "four"}}), nil, "is two", ""},
		{"a given value that is not allowed is refused", text(object{"AllowedValues": []any{"two", "four"}}), map[string]string{"P": "five"}, "", "AllowedValues"},
		{"an unknown name is refused", text(object{"Default": "two"}), map[string]string{"Q": "x"}, "", "unknown parameter Q"},
	} {
		app := parameterApp(t, step.parameter, nil)
		h := submit(t, p, app, run.Submission{Command: runlog.CommandDeploy, Parameters: given(app, step.values)})
		if step.want == "" {
			if text := story(t, p, h); h.Result != runlog.ResultFailed || !strings.Contains(text, step.says) {
				t.Errorf("%s: %s", step.name, text)
			}
			continue
		}
		if h.Result != runlog.ResultSucceeded {
			t.Fatalf("%s: %s", step.name, story(t, p, h))
		}
		if got := shown(t, p); got != step.want {
			t.Errorf("%s: %v, want %s", step.name, got, step.want)
		}
	}
}

func TestARunIsBoundToTheParametersOfItsPlan(t *testing.T) {
	p := openPlane(t, Options{Dir: t.TempDir()})
	for _, hidden := range []bool{false, true} {
		app := parameterApp(t, object{"Type": "String", "NoEcho": hidden}, nil)
		planned := submit(t, p, app, run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy, Parameters: given(app, map[string]string{"P": "one-value"})})
		h := submit(t, p, app, run.Submission{Command: runlog.CommandDeploy, PlanRun: planned.RunID, Parameters: given(app, map[string]string{"P": "another-value"})})
		if text := story(t, p, h); h.Result != runlog.ResultFailed || !strings.Contains(text, "has changed since its plan was shown") {
			t.Errorf("NoEcho %v: %s", hidden, text)
		}
	}
}

func TestAFailedDeployKeepsTheParametersOfTheLastGoodOne(t *testing.T) {
	p := openPlane(t, Options{Dir: t.TempDir(), WrapProvider: through(refuseBad)})
	good := parameterApp(t, object{"Type": "String"}, nil)
	bad := parameterApp(t, object{"Type": "String"}, object{"Resources": object{
		"Topic": resource("AWS::SNS::Topic", object{"DisplayName": object{"Fn::Sub": "is ${P}"}}),
		"Bad":   with(resource("AWS::SNS::Topic", object{"DisplayName": "bad"}), "DependsOn", "Topic"),
	}})
	for i, step := range []struct {
		app    *assembly.Assembly
		values map[string]string
		want   runlog.Result
	}{
		{good, map[string]string{"P": "one"}, runlog.ResultSucceeded},
		{bad, map[string]string{"P": "two"}, runlog.ResultFailed},
		{good, nil, runlog.ResultSucceeded},
	} {
		h := submit(t, p, step.app, run.Submission{Command: runlog.CommandDeploy, Parameters: given(step.app, step.values)})
		if h.Result != step.want {
			t.Fatalf("step %d: %s", i, story(t, p, h))
		}
		if got := shown(t, p); got != "is one" {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

func TestConditionsOfANoEchoParameterKeepTheirOutcome(t *testing.T) {
	p := openPlane(t, Options{Dir: t.TempDir()})
	app := func(compared any) *assembly.Assembly {
		return parameterApp(t, object{"Type": "String", "NoEcho": true}, object{
			"Conditions": object{
				"Big":   object{"Fn::Equals": []any{ref("P"), compared}},
				"Small": object{"Fn::Not": []any{object{"Condition": "Big"}}},
			},
			"Rules": object{"Long": object{"Assertions": []any{object{"Assert": object{"Fn::Not": []any{object{"Fn::Equals": []any{ref("P"), ""}}}}}}}},
			"Resources": object{
				"Topic": resource("AWS::SNS::Topic", object{"DisplayName": object{"Fn::If": []any{"Big", "big", "small"}}}),
				"Queue": with(resource("AWS::SQS::Queue", object{}), "Condition", "Small"),
			},
		})
	}
	first := app("the-big-one")
	h := submit(t, p, first, run.Submission{Command: runlog.CommandDeploy, Parameters: given(first, map[string]string{"P": "the-big-one"})})
	if h.Result != runlog.ResultSucceeded || h.Counts.Created != 1 || shown(t, p) != "big" {
		t.Fatalf("%v %s", shown(t, p), story(t, p, h))
	}
	h = submit(t, p, first, run.Submission{Command: runlog.CommandDeploy})
	if h.Result != runlog.ResultSucceeded || h.Counts.Unchanged != 1 {
		t.Errorf("without the value: %+v %s", h.Counts, story(t, p, h))
	}
	h = submit(t, p, app("another-one"), run.Submission{Command: runlog.CommandDeploy})
	if text := story(t, p, h); h.Result != runlog.ResultFailed || !strings.Contains(text, "parameter P is needed: the condition Big") {
		t.Errorf("another condition without the value: %s", text)
	}
}

func TestWhatIsMadeFromASecretCanNotBeImported(t *testing.T) {
	p := openPlane(t, Options{Dir: t.TempDir()})
	app := writeApp(t, map[string]object{
		"Producer": {
			"Parameters": object{"P": object{"Type": "String", "NoEcho": true}},
			"Resources":  object{"Topic": resource("AWS::SNS::Topic", object{})},
			"Outputs":    object{"Out": object{"Value": ref("P"), "Export": object{"Name": "hidden"}}},
		},
		"Consumer": {"Resources": object{"Topic": resource("AWS::SNS::Topic", object{"DisplayName": object{"Fn::ImportValue": "hidden"}})}},
	}, map[string][]string{"Consumer": {"Producer"}})
	values := map[string]map[string]string{}
	for _, s := range app.Stacks {
		if s.Name == "Producer" {
			values[s.ID] = map[string]string{"P": "the-secret"}
		}
	}
	h := submit(t, p, app, run.Submission{Command: runlog.CommandDeploy, Parameters: values})
	if text := story(t, p, h); h.Result != runlog.ResultFailed || !strings.Contains(text, "the export hidden is made from a NoEcho parameter") {
		t.Errorf("%s", text)
	}
}
