package controlplane

import (
	"encoding/json"
	"os"
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
