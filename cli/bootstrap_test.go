package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
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
	bootstraps(t, []bootstrapStep{
		{"install", []string{"--execution-policy", "arn:aws:iam::aws:policy/PowerUserAccess"}, "3 created"},
		{"repeat, without the policies", nil, "no changes, 3 unchanged"},
		{"remove", []string{"--destroy"}, "2 deleted"},
		{"remove again", []string{"--destroy"}, "no changes"},
		// The table was kept, and has a name of its own: the next one takes it back.
		{"install again", []string{"--execution-policy", "arn:aws:iam::aws:policy/ReadOnlyAccess"}, "2 created"},
		{"repeat again", nil, "no changes, 3 unchanged"},
	})
}

func TestControlPlanesOfARegionStandBesideEachOther(t *testing.T) {
	other := []string{"--plane", "other"}
	policy := []string{"--execution-policy", "arn:aws:iam::aws:policy/PowerUserAccess"}
	bootstraps(t, []bootstrapStep{
		{"install the first", policy, "3 created"},
		{"install the other", slices.Concat(other, policy), "3 created"},
		{"repeat the first", nil, "no changes, 3 unchanged"},
		{"repeat the other", other, "no changes, 3 unchanged"},
		{"remove the first", []string{"--destroy"}, "2 deleted"},
		{"repeat the other when the first is gone", other, "no changes, 3 unchanged"},
		{"install the first again", policy, "2 created"},
		{"remove the other", slices.Concat(other, []string{"--destroy"}), "2 deleted"},
		{"repeat the first when the other is gone", nil, "no changes, 3 unchanged"},
	})
}

// bootstrapStep is one bootstrap, and what it must say on standard output.
type bootstrapStep struct {
	what string
	args []string
	says string
}

// bootstraps plays bootstraps of one simulated AWS in a row.
func bootstraps(t *testing.T, steps []bootstrapStep) {
	t.Helper()
	dir, simulated := planeAssembly(t), t.TempDir()
	for _, step := range steps {
		if code, out, errs := bootstrapIn(t, dir, simulated, step.args); code != exitDone || !strings.Contains(out, step.says) {
			t.Fatalf("%s: exit code %d, want %q:\n%s%s", step.what, code, step.says, out, errs)
		}
	}
}

func TestANameOfAControlPlaneIsForOneRegion(t *testing.T) {
	dir, simulated := planeAssembly(t), t.TempDir()
	if code, out, errs := bootstrapIn(t, dir, simulated, []string{"--no-execution-role"}); code != exitDone {
		t.Fatalf("exit code %d:\n%s%s", code, out, errs)
	}
	code, out, errs := bootstrapIn(t, dir, simulated, []string{"--no-execution-role", "--region", "eu-west-1"})
	if code != exitFailed || !strings.Contains(errs, "a control plane named slipway in us-east-1") || !strings.Contains(errs, "--plane NAME") {
		t.Errorf("in another region: exit code %d:\n%s%s", code, out, errs)
	}
	code, out, errs = bootstrapIn(t, dir, simulated, []string{"--no-execution-role", "--region", "eu-west-1", "--plane", "europe"})
	if code != exitDone {
		t.Errorf("under another name: exit code %d:\n%s%s", code, out, errs)
	}
}

// planeAssembly is the directory of a small control plane's assembly.
func planeAssembly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string]string{"manifest.json": planeManifest, "t.template.json": planeTemplate} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bootstrapIn runs a bootstrap of the simulated AWS in a directory.
func bootstrapIn(t *testing.T, dir, simulated string, args []string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := &environment{
		streams: &views.Streams{Out: views.Stream{Writer: &out}, Err: views.Stream{Writer: &errs}, In: strings.NewReader("")},
		getenv:  func(string) string { return "" }, clock: clock.Real{}, open: openPlane,
	}
	code = execute(t.Context(), env, append([]string{"bootstrap", "--local", "--local-dir", simulated, "--yes", "--assembly", dir}, args...))
	return code, out.String(), errs.String()
}
