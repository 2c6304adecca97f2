package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"github.com/slipway-cdk/slipway/pkg/admission"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// RoleStackName is the name of the stack with the execution role of a control plane's own account.
func RoleStackName(plane string) string { return named("SlipwayExecutionRole", plane) }

// RoleName is the name of the role: one that the template's ExecutionRoleNames allow the functions to assume.
func RoleName(plane, region string) string { return "slipway-execution-" + plane + "-" + region }

// PoliciesParameter is the parameter of the role's stack with the ARNs of its policies.
const PoliciesParameter = "ManagedPolicyArns"

// CheckPolicies refuses what are no ARNs of IAM policies.
func CheckPolicies(policies []string) error {
	for _, p := range policies {
		a, err := arn.Parse(p)
		if err != nil || a.Service != "iam" || !strings.HasPrefix(a.Resource, "policy/") {
			return diag.Diagnostics{{
				Severity: diag.Error, Summary: fmt.Sprintf("%q is not the ARN of an IAM policy", p),
				Next: "An ARN looks like arn:aws:iam::111122223333:policy/deploy, one of AWS's own like arn:aws:iam::aws:policy/PowerUserAccess.",
			}}
		}
	}
	return nil
}

// RoleStack is the stack with the execution role under which the stacks of the control plane's own account are worked
// on. It may be assumed by the roles of the control plane's functions, and may do what the policies in its parameter
// allow; stack is the control plane's. Without policies those of the deploy before are kept.
func RoleStack(stack, plane, region string, policies []string) (*assembly.Stack, error) {
	role := RoleName(plane, region)
	var trusted []any
	for _, output := range []string{"PlannerRoleArn", "ProvisionerRoleArn", "PublisherRoleArn", "JanitorRoleArn"} {
		trusted = append(trusted, map[string]any{"Fn::GetStackOutput": map[string]any{"StackName": stack, "OutputName": output}})
	}
	template, err := json.Marshal(map[string]any{
		"Description": "Slipway: the role under which the control plane " + plane + " works on stacks of its own account",
		"Parameters": map[string]any{PoliciesParameter: map[string]any{
			"Type": "CommaDelimitedList", "Description": "The IAM policies that say what stacks may be made of.",
		}},
		"Resources": map[string]any{"Role": map[string]any{"Type": "AWS::IAM::Role", "Properties": map[string]any{
			"RoleName": role, "Description": "Slipway works on stacks of this account under this role",
			"AssumeRolePolicyDocument": map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
				"Effect": "Allow", "Principal": map[string]any{"AWS": trusted}, "Action": []any{"sts:AssumeRole", "sts:TagSession"},
			}}},
			"ManagedPolicyArns": map[string]any{"Ref": PoliciesParameter},
		}}},
		"Outputs": map[string]any{"RoleArn": map[string]any{"Value": map[string]any{"Fn::GetAtt": []any{"Role", "Arn"}}}},
	})
	if err != nil {
		return nil, err
	}
	name := RoleStackName(plane)
	s := &assembly.Stack{ID: name, DisplayName: name, Name: name, Template: template, DependsOn: []string{stack}}
	if len(policies) > 0 {
		s.Parameters = map[string]string{PoliciesParameter: strings.Join(policies, ",")}
	}
	return s, nil
}

// WritePolicy makes the control plane work under the execution role, by a policy that otherwise is the one of a control
// plane that was given none. Another policy that is there is left as it is, and then stands is false.
func WritePolicy(ctx context.Context, objects objectstore.Store, roleARN string) (stands bool, err error) {
	p := admission.Open()
	for i := range p.Rules {
		p.Rules[i].Name = "everybody who may upload, under the execution role of this account"
		p.Rules[i].Roles = []admission.Role{{ARN: roleARN}}
	}
	body, err := json.MarshalIndent(p, "", "  ")
	if err == nil {
		_, err = objects.Put(ctx, admission.PolicyKey, body, objectstore.Condition{IfNoneMatch: true})
	}
	if errors.Is(err, objectstore.ErrPrecondition) {
		there, err := objects.Get(ctx, admission.PolicyKey)
		if err != nil {
			return false, fmt.Errorf("reading the control plane's policy: %w", err)
		}
		return bytes.Equal(there.Body, body), nil
	}
	if err != nil {
		return false, fmt.Errorf("writing the control plane's policy: %w", err)
	}
	return true, nil
}
