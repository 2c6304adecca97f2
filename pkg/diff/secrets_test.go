package diff

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const secretTemplate = `{
	"Parameters":{"Password":{"Type":"String","NoEcho":true},"Plain":{"Type":"String","Default":"p"}},
	"Resources":{
		"D":{"Type":"AWS::RDS::DBInstance","Properties":{
			"MasterUserPassword":{"Ref":"Password"},"MasterUsername":"admin",
			"Tags":[{"Key":"dsn","Value":{"Fn::Sub":"u:${Password}@h"}},{"Key":"plain","Value":{"Ref":"Plain"}}]}},
		"E":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"%s"}}}}`

func secretInput(t *testing.T, value, other string) Input {
	t.Helper()
	in, err := inputOf([]byte(strings.Replace(secretTemplate, "%s", other, 1)), map[string]string{"Password": value})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// maskRecord does what saving a record does to it.
func maskRecord(in Input, value string) {
	for _, r := range in.Record.Resources {
		data, _ := json.Marshal(r.Properties)
		var masked map[string]any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), value, Mask)), &masked); err != nil {
			panic(err)
		}
		r.Properties = masked
	}
}

func TestANoEchoValueIsNeverShown(t *testing.T) {
	const old, current = "old-marker", "new-marker"
	in := secretInput(t, current, "x")
	in.Record = mustDeploy(t, secretInput(t, old, "x")) // recorded in clear, as cdkd does
	for name, record := range map[string]bool{"an update": true, "a creation": false} {
		if !record {
			in.Record = nil
		}
		result, diags := Compute(in)
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		if len(result.Changes) == 0 {
			t.Fatalf("%s: nothing changes", name)
		}
		shown, err := json.Marshal(result.Changes)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(shown), "marker") || !strings.Contains(string(shown), Mask) {
			t.Errorf("%s shows %s", name, shown)
		}
	}
}

func TestAMaskedRecordDiffersOnlyWhenTheParameterDoes(t *testing.T) {
	in := secretInput(t, "s3cr3t", "x")
	in.Record = mustDeploy(t, in)
	maskRecord(in, "s3cr3t")
	if got := in.Record.Resources["D"].Properties["MasterUserPassword"]; got != Mask {
		t.Fatalf("recorded as %v", got)
	}
	result, _ := Compute(in)
	if got := brief(result.Changes); got != "" {
		t.Errorf("the same value: %s", got)
	}
	in.ChangedParameters = map[string]bool{"Password": true}
	result, _ = Compute(in)
	if got, want := brief(result.Changes), "update D MasterUserPassword Tags.0.Value"; got != want {
		t.Errorf("another value: %s, want %s", got, want)
	}
	// The text around the mask still counts.
	in.ChangedParameters = nil
	in.Record.Resources["D"].Properties["Tags"].([]any)[0].(map[string]any)["Value"] = "v:***@h"
	result, _ = Compute(in)
	if got, want := brief(result.Changes), "update D Tags.0.Value"; got != want {
		t.Errorf("another text around it: %s, want %s", got, want)
	}
}

func TestAMaskElsewhereIsJustText(t *testing.T) {
	in := secretInput(t, "s", "now")
	in.Record = mustDeploy(t, in)
	in.Record.Resources["E"].Properties["Value"] = Mask
	result, _ := Compute(in)
	if got, want := brief(result.Changes), "update E Value"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDynamicReferencesAreShownAsTheirText(t *testing.T) {
	result, _ := change(t,
		`{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"{{resolve:secretsmanager:a}}"}}}`,
		`{"P":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"{{resolve:secretsmanager:b}}"}}}`)
	p := result.Changes[0].Changes[0]
	if got := fmt.Sprint(p.Old, " ", p.New); got != "{{resolve:secretsmanager:a}} {{resolve:secretsmanager:b}}" {
		t.Errorf("shown as %s", got)
	}
}

func TestMatchesMask(t *testing.T) {
	c := &comparer{}
	for _, tt := range []struct {
		recorded string
		desired  any
		want     bool
	}{
		{"***", "anything", true}, {"***", json.Number("5"), true}, {"a***b", "a-x-b", true}, {"a***b", "ab", true},
		{"a***b", "a-x-c", false}, {"a***b***c", "a1b2c", true}, {"a***b***c", "a1c", false}, {"a***b", []any{"x"}, false},
		{"aa***aa", "aaa", false},
	} {
		if got := c.matchesMask(tt.recorded, tt.desired); got != tt.want {
			t.Errorf("%s matches %v: %v", tt.recorded, tt.desired, got)
		}
	}
}

func TestAPlainReferenceThatWasRecordedResolvedReplacesNothing(t *testing.T) {
	for _, tt := range []struct{ recorded, desired, want string }{
		{"team-queue", "{{resolve:ssm:/name}}", "update Q QueueName!maybe"},
		{"team-queue", "team-{{resolve:ssm:/name:1}}", "update Q QueueName!maybe"},
		{"team-queue", "crew-{{resolve:ssm:/name}}", "replace Q QueueName!always"},
		{"team-queue", "{{resolve:secretsmanager:name}}", "replace Q QueueName!always"},
		{"{{resolve:ssm:/old}}", "{{resolve:ssm:/name}}", "replace Q QueueName!always"},
		{"team-queue", "{{resolve:ssm:/name", "replace Q QueueName!always"},
	} {
		result, diags := change(t,
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"`+tt.recorded+`"}}}`,
			`{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"`+tt.desired+`"}}}`)
		if got := brief(result.Changes); len(diags) > 0 || got != tt.want {
			t.Errorf("%s over %s: %s, %v", tt.desired, tt.recorded, got, diags)
		}
	}
}
