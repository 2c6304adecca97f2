package local

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// sourceApp makes what dynamicApp refers to.
func sourceApp(t *testing.T, password string) *assembly.Assembly {
	return writeApp(t, map[string]object{"Source": {"Resources": object{
		"Secret": resource("AWS::SecretsManager::Secret", object{"Name": "prod/db", "GenerateSecretString": object{
			"SecretStringTemplate": `{"user":"admin"}`, "GenerateStringKey": "password", "PasswordLength": 24}}),
		"Fixed": resource("AWS::SecretsManager::Secret", object{"Name": "fixed", "SecretString": password}),
		"Plain": resource("AWS::SSM::Parameter", object{"Name": "/size", "Type": "String", "Value": "medium-size"}),
	}}}, nil)
}

func dynamicApp(t *testing.T, note, reference string) *assembly.Assembly {
	return writeApp(t, map[string]object{"Uses": {"Resources": object{
		"Whole":    resource("AWS::SSM::Parameter", object{"Type": "String", "Value": reference, "Description": note}),
		"Embedded": resource("AWS::SSM::Parameter", object{"Type": "String", "Description": note, "Value": object{"Fn::Join": []any{"", []any{"{{resolve:secretsmanager:prod/db:SecretString:user}}:{{resolve:secretsmanager:", "prod/db", ":SecretString:password}}@h"}}}}),
		"Size":     resource("AWS::SNS::Topic", object{"DisplayName": "is {{resolve:ssm:/size}}"}),
	}, "Outputs": object{"Out": object{"Value": reference}}}}, nil)
}

func TestDynamicReferencesAreResolvedForTheCallAlone(t *testing.T) {
	const password = "marker-delta-4444"
	dir := t.TempDir()
	p := openPlane(t, Options{Dir: dir})
	ctx := context.Background()
	deploy := func(where string, asm *assembly.Assembly, want runlog.Result) runlog.Header {
		t.Helper()
		h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy})
		if h.Result != want {
			t.Fatalf("%s: %s", where, story(t, p, h))
		}
		return h
	}
	deploy("the source", sourceApp(t, password), runlog.ResultSucceeded)
	in := sandbox.Caller{Account: p.account, Region: p.region}
	generated, err := p.Sandbox().SecretString(ctx, in, "prod/db")
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]string
	if err := json.Unmarshal([]byte(generated), &fields); err != nil || len(fields["password"]) != 24 || fields["user"] != "admin" {
		t.Fatalf("generated %q: %v", generated, err)
	}
	const whole = "{{resolve:secretsmanager:fixed}}"
	app := dynamicApp(t, "first", whole)
	deploy("the first deploy", app, runlog.ResultSucceeded)
	rec, _, err := p.States().Load(ctx, "Uses", p.region)
	if err != nil {
		t.Fatal(err)
	}
	live := func(id, property string) any {
		r := rec.Resources[id]
		found, err := p.Sandbox().Show(ctx, in, r.ResourceType, r.PhysicalID)
		if err != nil {
			t.Fatal(err)
		}
		return found.Properties[property]
	}
	for _, c := range []struct{ id, property, live, recorded string }{
		{"Whole", "Value", password, whole},
		{"Embedded", "Value", "admin:" + fields["password"] + "@h", "{{resolve:secretsmanager:prod/db:SecretString:user}}:{{resolve:secretsmanager:prod/db:SecretString:password}}@h"},
		{"Size", "DisplayName", "is medium-size", "is {{resolve:ssm:/size}}"},
	} {
		if got := live(c.id, c.property); got != c.live {
			t.Errorf("%s in AWS: %v", c.id, got)
		}
		if got := rec.Resources[c.id].Properties[c.property]; got != c.recorded {
			t.Errorf("%s recorded: %v", c.id, got)
		}
	}
	if rec.Outputs["Out"] != whole {
		t.Errorf("output %v", rec.Outputs["Out"])
	}
	concealedFrom(t, p, "Uses", password, fields["password"])

	if h := deploy("again", app, runlog.ResultSucceeded); h.Counts.Unchanged != 3 {
		t.Errorf("again: %+v", h.Counts)
	}
	deploy("another property", dynamicApp(t, "second", whole), runlog.ResultSucceeded)
	if got := live("Whole", "Value"); got != password {
		t.Errorf("after an update: %v", got)
	}
	concealedFrom(t, p, "Uses", password, fields["password"])

	for reference, says := range map[string]string{
		"{{resolve:secretsmanager:absent}}":                                "does not exist",
		"{{resolve:ssm:/absent}}":                                          "does not exist",
		"{{resolve:secretsmanager:prod/db:SecretString:nothing}}":          "has no key nothing",
		"{{resolve:secretsmanager:fixed:SecretString:password}}":           "no JSON object",
		"{{resolve:secretsmanager:fixed:SecretString::AWSPREVIOUS}}":       "no such version",
		"{{resolve:secretsmanager:prod/db:SecretString:password::absent}}": "no such version",
	} {
		h := deploy(reference, dynamicApp(t, "third", reference), runlog.ResultFailed)
		text := story(t, p, h)
		if !strings.Contains(text, reference) || !strings.Contains(text, says) {
			t.Errorf("%s: %s", reference, text)
		}
		if strings.Contains(text, password) || strings.Contains(text, fields["password"]) {
			t.Errorf("%s: the message quotes a secret", reference)
		}
	}
}

// concealedFrom fails where a value stands in the record, runs or events of a stack.
func concealedFrom(t *testing.T, p *Plane, stack string, values ...string) {
	t.Helper()
	ctx := context.Background()
	runs, err := p.Log().ListRuns(ctx, runlog.Filter{Stack: runlog.StackRef{Name: stack}})
	if err != nil || len(runs) == 0 {
		t.Fatalf("%d runs: %v", len(runs), err)
	}
	var all []any
	rec, _, err := p.States().Load(ctx, stack, p.region)
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, rec)
	for _, r := range runs {
		ops, err := p.Log().Ops(ctx, r.RunID)
		if err != nil {
			t.Fatal(err)
		}
		events, err := p.Log().Events(ctx, r.RunID, "")
		if err != nil {
			t.Fatal(err)
		}
		infos, err := p.engine.Objects.List(ctx, "slipway/runs/"+r.RunID+"/")
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			object, err := p.engine.Objects.Get(ctx, info.Key)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(object.Body))
		}
		all = append(all, r, ops, events)
	}
	body, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range values {
		if i := strings.Index(string(body), value); i >= 0 {
			t.Errorf("%s stands in %.300s", value, string(body)[max(0, i-150):])
		}
	}
}
