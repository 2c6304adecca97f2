package controlplane

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/iampolicy"
)

// The role of examples/execution-role trusts this control plane for the stacks that it was made for, and nobody else.
func TestTheExampleRoleTrustsTheControlPlaneForItsStacks(t *testing.T) {
	b, err := os.ReadFile("../../examples/execution-role/template.json")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources struct {
			Role struct{ Properties map[string]json.RawMessage }
		}
	}
	if err := json.Unmarshal(b, &template); err != nil {
		t.Fatal(err)
	}
	trust := strings.NewReplacer(
		`{ "Ref": "ExternalId" }`, `"acme-7f3a"`, `{ "Ref": "StackNames" }`, `["web-*"]`,
		`{ "Fn::Sub": "arn:${AWS::Partition}:iam::${ControlPlaneAccount}:role/${ControlPlaneRoles}" }`, `"arn:aws:iam::111122223333:role/SlipwayControlPlane-*"`,
		`{ "Fn::Sub": "arn:${AWS::Partition}:iam::${ControlPlaneAccount}:root" }`, `"arn:aws:iam::111122223333:root"`,
		// A trust policy is the role's own: it has no resource.
		`"Effect": "Allow",`, `"Effect": "Allow", "Resource": "*",`,
	).Replace(string(template.Resources.Role.Properties["AssumeRolePolicyDocument"]))
	policy, err := iampolicy.Parse([]byte(trust))
	if err != nil {
		t.Fatal(err)
	}
	const ours = "arn:aws:iam::111122223333:role/SlipwayControlPlane-ProvisionerRole-1A2B"
	asked := func(principal, externalID, stack string, tags ...string) map[string][]string {
		c := map[string][]string{"aws:PrincipalArn": {principal}, "aws:RequestTag/" + StackTag: {stack}, "aws:TagKeys": append([]string{StackTag, RunTag}, tags...)}
		if externalID != "" {
			c["sts:ExternalId"] = []string{externalID}
		}
		return c
	}
	for name, c := range map[string]struct {
		context map[string][]string
		want    bool
	}{
		"the control plane":         {asked(ours, "acme-7f3a", "web-prod"), true},
		"another stack":             {asked(ours, "acme-7f3a", "payments"), false},
		"another external id":       {asked(ours, "other", "web-prod"), false},
		"no external id":            {asked(ours, "", "web-prod"), false},
		"another role":              {asked("arn:aws:iam::111122223333:role/admin", "acme-7f3a", "web-prod"), false},
		"a role of another account": {asked("arn:aws:iam::999999999999:role/SlipwayControlPlane-X", "acme-7f3a", "web-prod"), false},
		"more tags":                 {asked(ours, "acme-7f3a", "web-prod", "admin"), false},
	} {
		t.Run(name, func(t *testing.T) {
			allowed := true
			// A session with tags takes both.
			for _, action := range []string{"sts:AssumeRole", "sts:TagSession"} {
				d, err := iampolicy.Evaluate(iampolicy.Call{Action: action, Resource: "arn:aws:iam::444455556666:role/slipway-execution-web", Context: c.context}, policy)
				if err != nil {
					t.Fatal(err)
				}
				allowed = allowed && d.Allowed
			}
			if allowed != c.want {
				t.Errorf("it is allowed: %t", allowed)
			}
		})
	}
}

// For those who use macros the role lets CloudFormation run them, in stacks that are never executed, and nothing else.
func TestTheExampleRoleRunsMacrosInTransientStacksOnly(t *testing.T) {
	b, err := os.ReadFile("../../examples/execution-role/template.json")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources struct {
			Role struct {
				Properties struct {
					Policies []struct {
						If []json.RawMessage `json:"Fn::If"`
					}
				}
			}
		}
	}
	if err := json.Unmarshal(b, &template); err != nil {
		t.Fatal(err)
	}
	var chosen struct{ PolicyDocument json.RawMessage }
	for _, p := range template.Resources.Role.Properties.Policies {
		if len(p.If) == 3 && string(p.If[0]) == `"HasMacros"` {
			if err := json.Unmarshal(p.If[1], &chosen); err != nil {
				t.Fatal(err)
			}
		}
	}
	document := regexp.MustCompile(`\{ "Fn::Sub": ("[^"]*") \}`).ReplaceAllString(string(chosen.PolicyDocument), "$1")
	policy, err := iampolicy.Parse([]byte(strings.NewReplacer("${AWS::Partition}", "aws", "${AWS::AccountId}", "444455556666").Replace(document)))
	if err != nil {
		t.Fatal(err)
	}
	const here = "arn:aws:cloudformation:eu-west-1:444455556666:"
	for _, c := range []struct {
		action, resource string
		want             bool
	}{
		{"CreateChangeSet", here + "stack/cdkd-macro-expand-0123456789abcdef/*", true},
		{"DescribeChangeSet", here + "stack/cdkd-macro-expand-0123456789abcdef/*", true},
		{"GetTemplate", here + "stack/cdkd-macro-expand-0123456789abcdef/*", true},
		{"DeleteStack", here + "stack/cdkd-macro-expand-0123456789abcdef/*", true},
		{"CreateChangeSet", "arn:aws:cloudformation:eu-west-1:aws:transform/Serverless-2016-10-31", true},
		{"CreateChangeSet", here + "transform/Own", true},
		{"ExecuteChangeSet", here + "stack/cdkd-macro-expand-0123456789abcdef/*", false},
		{"CreateChangeSet", here + "stack/Payments/*", false},
		{"DeleteStack", here + "stack/Payments/*", false},
	} {
		d, err := iampolicy.Evaluate(iampolicy.Call{Action: "cloudformation:" + c.action, Resource: c.resource}, policy)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed != c.want {
			t.Errorf("%s on %s is allowed: %t", c.action, c.resource, d.Allowed)
		}
	}
}
