package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/clock"
)

const (
	planeManifest = `{"version": "36.0.0", "artifacts": {"SlipwayControlPlane": {"type": "aws:cloudformation:stack",
		"environment": "aws://unknown-account/unknown-region", "properties": {"templateFile": "t.template.json"}}}}`
	planeTemplate = `{
		"Parameters": {"StateBucketName": {"Type": "String"}, "NamePrefix": {"Type": "String", "Default": "slipway"}},
		"Resources": {
			"PlannerRole": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Statement": []}}},
			"Table": {"Type": "AWS::DynamoDB::Table", "DeletionPolicy": "Retain", "Properties": {
				"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}], "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
				"BillingMode": "PAY_PER_REQUEST"}}
		},
		"Outputs": {
			"PlannerRoleArn": {"Value": {"Fn::GetAtt": ["PlannerRole", "Arn"]}}, "ProvisionerRoleArn": {"Value": {"Fn::GetAtt": ["PlannerRole", "Arn"]}},
			"PublisherRoleArn": {"Value": {"Fn::GetAtt": ["PlannerRole", "Arn"]}}, "JanitorRoleArn": {"Value": {"Fn::GetAtt": ["PlannerRole", "Arn"]}}
		}
	}`
)

// TestBootstrapInstallsRepeatsRemovesAndInstallsAgain has the simulated AWS for an account.
func TestBootstrapInstallsRepeatsRemovesAndInstallsAgain(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{"manifest.json": planeManifest, "t.template.json": planeTemplate} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	simulated := t.TempDir()
	for _, step := range []struct {
		what string
		args []string
		says string
	}{
		{"install", []string{"--execution-policy", "arn:aws:iam::aws:policy/PowerUserAccess"}, "3 created"},
		{"repeat, without the policies", nil, "no changes, 3 unchanged"},
		{"remove", []string{"--destroy"}, "2 deleted"},
		{"remove again", []string{"--destroy"}, "no changes"},
		// The table was kept, and has a name of its own: the next one takes it back.
		{"install again", []string{"--execution-policy", "arn:aws:iam::aws:policy/ReadOnlyAccess"}, "2 created"},
		{"repeat again", nil, "no changes, 3 unchanged"},
	} {
		var out, errs bytes.Buffer
		env := &environment{
			streams: &views.Streams{Out: views.Stream{Writer: &out}, Err: views.Stream{Writer: &errs}, In: strings.NewReader("")},
			getenv:  func(string) string { return "" }, clock: clock.Real{}, open: openPlane,
		}
		args := append([]string{"bootstrap", "--local", "--local-dir", simulated, "--yes", "--assembly", dir}, step.args...)
		if code := execute(t.Context(), env, args); code != exitDone || !strings.Contains(out.String(), step.says) {
			t.Fatalf("%s: exit code %d, want %q:\n%s%s", step.what, code, step.says, out.String(), errs.String())
		}
	}
}
