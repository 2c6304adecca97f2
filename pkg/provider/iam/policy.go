package iam

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// policy is one inline policy on several principals. Its id is the name that it was created with; the name itself is
// the template's, or, after a change of it, the record's.
func policy() direct.Kind[*iam.Client] {
	return direct.Kind[*iam.Client]{
		Type: "AWS::IAM::Policy", Identity: direct.ByPut,
		Create: func(ctx context.Context, c *call) (string, error) {
			for _, k := range inlineOn {
				if names := direct.Texts(c.Properties[k.property]); len(names) > 0 {
					return c.Text("PolicyName"), k.put(ctx, c, names[0])
				}
			}
			return "", direct.Invalid("a policy needs a role, a user or a group")
		},
		Facets: []direct.Facet[*iam.Client]{{
			Properties: []string{"PolicyName", "PolicyDocument", "Roles", "Users", "Groups"},
			Put: func(ctx context.Context, c *call) error {
				if c.Previous != nil && c.Changed("PolicyName") {
					if err := removePolicy(ctx, c); err != nil {
						return err
					}
				}
				return move(ctx, c, inlineOn, c.Previous == nil || c.Changed("PolicyDocument") || c.Changed("PolicyName"))
			},
		}},
		Read: readPolicy, Delete: removePolicy,
	}
}

var inlineOn = []principals{
	{
		"Roles", func(ctx context.Context, c *call, name string) error {
			document, err := direct.Document(c.Properties["PolicyDocument"])
			if err == nil {
				_, err = c.Client.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &name, PolicyName: policyName(c), PolicyDocument: &document})
			}
			return err
		}, func(ctx context.Context, c *call, name string) error {
			_, err := c.Client.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &name, PolicyName: formerName(c)})
			return err
		},
	},
	{
		"Users", func(ctx context.Context, c *call, name string) error {
			document, err := direct.Document(c.Properties["PolicyDocument"])
			if err == nil {
				_, err = c.Client.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: &name, PolicyName: policyName(c), PolicyDocument: &document})
			}
			return err
		}, func(ctx context.Context, c *call, name string) error {
			_, err := c.Client.DeleteUserPolicy(ctx, &iam.DeleteUserPolicyInput{UserName: &name, PolicyName: formerName(c)})
			return err
		},
	},
	{
		"Groups", func(ctx context.Context, c *call, name string) error {
			document, err := direct.Document(c.Properties["PolicyDocument"])
			if err == nil {
				_, err = c.Client.PutGroupPolicy(ctx, &iam.PutGroupPolicyInput{GroupName: &name, PolicyName: policyName(c), PolicyDocument: &document})
			}
			return err
		}, func(ctx context.Context, c *call, name string) error {
			_, err := c.Client.DeleteGroupPolicy(ctx, &iam.DeleteGroupPolicyInput{GroupName: &name, PolicyName: formerName(c)})
			return err
		},
	},
}

// policyName is the name to put the policy under, formerName that under which it stands.
func policyName(c *call) *string {
	if name := direct.Text(c.Known("PolicyName")); name != "" {
		return &name
	}
	return &c.PhysicalID
}

func formerName(c *call) *string {
	if name := direct.Text(c.Previous["PolicyName"]); name != "" {
		return &name
	}
	return policyName(c)
}

// removePolicy takes the policy from everybody who had it.
func removePolicy(ctx context.Context, c *call) error {
	for _, k := range inlineOn {
		for _, name := range direct.Texts(c.Previous[k.property]) {
			if err := gone(k.remove(ctx, c, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPolicy asks each principal of the record for the policy.
func readPolicy(ctx context.Context, c *call) (direct.Live, error) {
	name := policyName(c)
	properties := map[string]any{"PolicyName": *name}
	get := map[string]func(string) (*string, error){
		"Roles": func(principal string) (*string, error) {
			out, err := c.Client.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &principal, PolicyName: name})
			if err != nil {
				return nil, err
			}
			return out.PolicyDocument, nil
		},
		"Users": func(principal string) (*string, error) {
			out, err := c.Client.GetUserPolicy(ctx, &iam.GetUserPolicyInput{UserName: &principal, PolicyName: name})
			if err != nil {
				return nil, err
			}
			return out.PolicyDocument, nil
		},
		"Groups": func(principal string) (*string, error) {
			out, err := c.Client.GetGroupPolicy(ctx, &iam.GetGroupPolicyInput{GroupName: &principal, PolicyName: name})
			if err != nil {
				return nil, err
			}
			return out.PolicyDocument, nil
		},
	}
	for _, k := range inlineOn {
		var have []string
		for _, principal := range direct.Texts(c.Known(k.property)) {
			document, err := get[k.property](principal)
			if errorKinds.IsKind(err, provider.KindNotFound) {
				continue
			}
			if err != nil {
				return direct.Live{}, err
			}
			properties["PolicyDocument"] = direct.ParseDocument(document)
			have = append(have, principal)
		}
		if len(have) > 0 {
			properties[k.property] = direct.Models(have)
		}
	}
	if properties["PolicyDocument"] == nil {
		return direct.Live{}, direct.NotFound("inline policy", *name)
	}
	return direct.Live{Properties: properties, Attributes: map[string]any{"Id": c.PhysicalID}}, nil
}
