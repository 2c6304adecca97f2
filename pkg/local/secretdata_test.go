package local

import (
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// secretData is a decorator under which the handler of the custom resource C answers secret data: a password that
// follows the property Generation.
func secretData() func(provider.Provider) provider.Provider {
	return through(func(_ string, req provider.Request, call func() (provider.Progress, error)) (provider.Progress, error) {
		progress, err := call()
		if err == nil && req.LogicalID == "C" && progress.Attributes != nil {
			generation, _ := req.Properties["Generation"].(string)
			progress.NoEcho = true
			progress.Attributes = map[string]any{"Password": passwordOf(generation), "User": "admin-" + generation}
		}
		return progress, err
	})
}

func passwordOf(generation string) string { return "hunter-xK9" + generation + "Zw7q-end" }

// secretDataApp reads the data of C whole, in text, and in an output; more replaces properties of the reader Text.
func secretDataApp(t *testing.T, generation string, more object) *assembly.Assembly {
	t.Helper()
	// Cloud Control's: it alone is sent only what has changed.
	text := object{"AlarmName": "text", "AlarmRule": object{"Fn::Sub": "user:${C.Password}@${Topic.TopicName}"}}
	for name, value := range more {
		text[name] = value
	}
	return writeApp(t, map[string]object{"Data": {
		"Resources": object{
			"C":      resource("Custom::Credentials", object{"ServiceToken": "arn:aws:lambda:us-east-1:000000000000:function:f", "Generation": generation}),
			"Topic":  resource("AWS::SNS::Topic", object{"TopicName": "named"}),
			"Secret": resource("AWS::SecretsManager::Secret", object{"Name": "whole", "SecretString": att("C", "Password")}),
			"Text":   resource("AWS::CloudWatch::CompositeAlarm", text),
		},
		"Outputs": object{"Out": object{"Value": att("C", "Password")}},
	}}, nil)
}

func TestSecretDataOfACustomResource(t *testing.T) {
	dir := t.TempDir()
	p := openPlane(t, Options{Dir: dir, WrapProvider: secretData()})
	deploy := func(asm *assembly.Assembly) runlog.Header {
		t.Helper()
		h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy, Options: run.Options{ForceStatefulRecreation: true}})
		concealed(t, p, dir, "after a deploy", passwordOf("one"), passwordOf("two"))
		return h
	}
	stands := func(generation, name string) {
		t.Helper()
		live := map[string]any{}
		list, err := p.Sandbox().List(t.Context(), sandbox.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			live[r.Type] = r.Properties["AlarmRule"]
			if r.Type == "AWS::CloudWatch::CompositeAlarm" && r.Properties["AlarmName"] != name {
				t.Errorf("the alarm is %v, want %s", r.Properties["AlarmName"], name)
			}
		}
		if want := "user:" + passwordOf(generation) + "@named"; live["AWS::CloudWatch::CompositeAlarm"] != want {
			t.Errorf("the alarm has not the rule of generation %s", generation)
		}
		rec, _, err := p.States().Load(t.Context(), "Data", p.region)
		if err != nil {
			t.Fatal(err)
		}
		if got := rec.Resources["Text"].Properties["AlarmRule"]; got != "***" {
			t.Errorf("the record has %v for what is made from a secret", got)
		}
		if rec.Resources["C"].Attributes["Password"] != "***" || rec.Outputs["Out"] != "***" {
			t.Errorf("the record has %v and %v", rec.Resources["C"].Attributes, rec.Outputs)
		}
	}

	if h := deploy(secretDataApp(t, "one", nil)); h.Result != runlog.ResultSucceeded || h.Counts.Created != 4 {
		t.Fatal(story(t, p, h))
	}
	stands("one", "text")
	if h := deploy(secretDataApp(t, "one", nil)); h.Result != runlog.ResultSucceeded || h.Counts.Unchanged != 4 {
		t.Errorf("the same again: %+v: %s", h.Counts, story(t, p, h))
	}
	// Something else of its reader changes, and the secret need not be known.
	if h := deploy(secretDataApp(t, "one", object{"AlarmDescription": "described"})); h.Result != runlog.ResultSucceeded || h.Counts.Updated != 1 || h.Counts.Unchanged != 3 {
		t.Errorf("a description more: %+v: %s", h.Counts, story(t, p, h))
	}
	stands("one", "text")
	// The handler answers something else: everything that is made from it follows.
	if h := deploy(secretDataApp(t, "two", object{"AlarmDescription": "described"})); h.Result != runlog.ResultSucceeded || h.Counts.Updated != 3 || h.Counts.Unchanged != 1 {
		t.Errorf("another generation: %+v: %s", h.Counts, story(t, p, h))
	}
	stands("two", "text")
	// The secret has to be written, and this run does not ask for it.
	h := deploy(secretDataApp(t, "two", object{"AlarmName": "another"}))
	if h.Result != runlog.ResultFailed || h.Failure == nil || !strings.Contains(h.Failure.Summary, "C.Password") || h.Failure.LogicalID != "Text" {
		t.Errorf("a replacement without the secret: %s %+v", h.Result, h.Failure)
	}
	stands("two", "text")
	if h := deploy(secretDataApp(t, "one", object{"AlarmName": "another"})); h.Result != runlog.ResultSucceeded || h.Counts.Replaced != 1 {
		t.Errorf("a replacement in a run that asks for the secret: %+v: %s", h.Counts, story(t, p, h))
	}
	stands("one", "another")
	destroyAll(t, p, secretDataApp(t, "one", nil))
	concealed(t, p, dir, "after the end", passwordOf("one"), passwordOf("two"))
}
