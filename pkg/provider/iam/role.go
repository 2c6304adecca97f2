package iam

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func role() direct.Kind[*iam.Client] {
	return direct.Kind[*iam.Client]{
		Type: "AWS::IAM::Role", Identity: direct.ByName,
		CreateOnly: []string{"RoleName", "Path"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := iam.CreateRoleInput{Tags: direct.TagList(c.Tags(), tag)}
			if err := direct.Into(c.Properties, &in, nil, "RoleName", "Path", "AssumeRolePolicyDocument", "Description", "MaxSessionDuration", "PermissionsBoundary"); err != nil {
				return "", err
			}
			_, err := c.Client.CreateRole(ctx, &in)
			return c.Text("RoleName"), err
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			out, err := c.Client.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(c.Text("RoleName"))})
			if err != nil {
				return direct.Found{}, err
			}
			return direct.Found{ID: *out.Role.RoleName, Tags: tagMap(out.Role.Tags)}, nil
		},
		Facets: []direct.Facet[*iam.Client]{
			{Properties: []string{"AssumeRolePolicyDocument"}, Created: true, Put: putTrust},
			{
				Properties: []string{"Description", "MaxSessionDuration"}, Created: true,
				// https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateRole.html
				Defaults: map[string]any{"Description": "", "MaxSessionDuration": 3600},
				Put: func(ctx context.Context, c *call) error {
					in := iam.UpdateRoleInput{RoleName: &c.PhysicalID}
					if err := direct.Into(c.Properties, &in, nil, "Description", "MaxSessionDuration"); err != nil {
						return err
					}
					_, err := c.Client.UpdateRole(ctx, &in)
					return err
				},
			},
			{Properties: []string{"PermissionsBoundary"}, Created: true, Put: putBoundary},
			{Properties: []string{"ManagedPolicyArns"}, Put: attachPolicies},
			{Properties: []string{"Policies"}, Put: putPolicies},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagRole(ctx, &iam.TagRoleInput{RoleName: &c.PhysicalID, Tags: direct.TagList(tags, tag)})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagRole(ctx, &iam.UntagRoleInput{RoleName: &c.PhysicalID, TagKeys: keys})
					return err
				}),
		},
		Read: readRole, Delete: deleteRole,
	}
}

func putTrust(ctx context.Context, c *call) error {
	document, err := direct.Document(c.Properties["AssumeRolePolicyDocument"])
	if err != nil {
		return err
	}
	_, err = c.Client.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: &c.PhysicalID, PolicyDocument: &document})
	return err
}

func putBoundary(ctx context.Context, c *call) error {
	if !c.Has("PermissionsBoundary") {
		_, err := c.Client.DeleteRolePermissionsBoundary(ctx, &iam.DeleteRolePermissionsBoundaryInput{RoleName: &c.PhysicalID})
		if _, getErr := c.Client.GetRole(ctx, &iam.GetRoleInput{RoleName: &c.PhysicalID}); getErr != nil {
			return getErr // it is the role that is gone
		}
		return gone(err)
	}
	_, err := c.Client.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{
		RoleName: &c.PhysicalID, PermissionsBoundary: aws.String(c.Text("PermissionsBoundary")),
	})
	return err
}

func attachPolicies(ctx context.Context, c *call) error {
	before, now := direct.Texts(c.Previous["ManagedPolicyArns"]), direct.Texts(c.Properties["ManagedPolicyArns"])
	for _, arn := range direct.Without(before, now) {
		if _, err := c.Client.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &c.PhysicalID, PolicyArn: &arn}); gone(err) != nil {
			return err
		}
	}
	for _, arn := range direct.Without(now, before) {
		if _, err := c.Client.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &c.PhysicalID, PolicyArn: &arn}); err != nil {
			return err
		}
	}
	return nil
}

// inline are the inline policies of a property, by name.
func inline(v any) map[string]any {
	out := map[string]any{}
	list, _ := v.([]any)
	for _, e := range list {
		if policy, ok := e.(map[string]any); ok {
			out[direct.Text(policy["PolicyName"])] = policy["PolicyDocument"]
		}
	}
	return out
}

func putPolicies(ctx context.Context, c *call) error {
	before, now := inline(c.Previous["Policies"]), inline(c.Properties["Policies"])
	for name := range before {
		if now[name] != nil {
			continue
		}
		if _, err := c.Client.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &c.PhysicalID, PolicyName: &name}); gone(err) != nil {
			return err
		}
	}
	for name, document := range now {
		text, err := direct.Document(document)
		if err != nil {
			return err
		}
		if _, err := c.Client.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &c.PhysicalID, PolicyName: &name, PolicyDocument: &text}); err != nil {
			return err
		}
	}
	return nil
}

// readRole reads policies only as far as the record speaks of them: other resources put policies on a role, too
// (AWS::IAM::Policy, AWS::IAM::ManagedPolicy). Without a record it reads all.
func readRole(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.GetRole(ctx, &iam.GetRoleInput{RoleName: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	r := out.Role
	properties := direct.From(c.Type, r, nil)
	properties["AssumeRolePolicyDocument"] = direct.ParseDocument(r.AssumeRolePolicyDocument)
	properties["Tags"] = direct.TagModel(tagMap(r.Tags))
	delete(properties, "PermissionsBoundary")
	if r.PermissionsBoundary != nil {
		properties["PermissionsBoundary"] = aws.ToString(r.PermissionsBoundary.PermissionsBoundaryArn)
	}
	unrecorded := len(c.Properties) == 0 && len(c.Previous) == 0
	if unrecorded || c.Known("ManagedPolicyArns") != nil {
		arns, err := attached(ctx, c)
		if err != nil {
			return direct.Live{}, err
		}
		properties["ManagedPolicyArns"] = direct.Models(arns)
	}
	if unrecorded || c.Known("Policies") != nil {
		names, err := inlineNames(ctx, c)
		if err != nil {
			return direct.Live{}, err
		}
		recorded := inline(c.Known("Policies"))
		var policies []any
		for _, name := range names {
			if _, ok := recorded[name]; !ok && !unrecorded {
				continue
			}
			p, err := c.Client.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &c.PhysicalID, PolicyName: &name})
			if err != nil {
				return direct.Live{}, err
			}
			policies = append(policies, map[string]any{"PolicyName": name, "PolicyDocument": direct.ParseDocument(p.PolicyDocument)})
		}
		if len(policies) > 0 {
			properties["Policies"] = policies
		}
	}
	return direct.Live{Properties: properties, Attributes: map[string]any{"Arn": aws.ToString(r.Arn), "RoleId": aws.ToString(r.RoleId)}}, nil
}

func attached(ctx context.Context, c *call) ([]string, error) {
	var arns []string
	pages := iam.NewListAttachedRolePoliciesPaginator(c.Client, &iam.ListAttachedRolePoliciesInput{RoleName: &c.PhysicalID})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range page.AttachedPolicies {
			arns = append(arns, aws.ToString(p.PolicyArn))
		}
	}
	slices.Sort(arns)
	return arns, nil
}

func inlineNames(ctx context.Context, c *call) ([]string, error) {
	var names []string
	pages := iam.NewListRolePoliciesPaginator(c.Client, &iam.ListRolePoliciesInput{RoleName: &c.PhysicalID})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		names = append(names, page.PolicyNames...)
	}
	slices.Sort(names)
	return names, nil
}

// deleteRole takes its policies away only when they stand in the way.
func deleteRole(ctx context.Context, c *call) error {
	_, err := c.Client.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &c.PhysicalID})
	if !errorKinds.IsKind(err, provider.KindDependencyViolation) {
		return err
	}
	arns, listErr := attached(ctx, c)
	if listErr != nil {
		return listErr
	}
	for _, arn := range arns {
		if _, err := c.Client.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &c.PhysicalID, PolicyArn: &arn}); gone(err) != nil {
			return err
		}
	}
	names, listErr := inlineNames(ctx, c)
	if listErr != nil {
		return listErr
	}
	for _, name := range names {
		if _, err := c.Client.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &c.PhysicalID, PolicyName: &name}); gone(err) != nil {
			return err
		}
	}
	if len(arns)+len(names) == 0 {
		return err // it is something else
	}
	_, err = c.Client.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &c.PhysicalID})
	return err
}
