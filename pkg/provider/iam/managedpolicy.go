package iam

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// maxVersions is how many versions a policy can have.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
const maxVersions = 5

func managedPolicy() direct.Kind[*iam.Client] {
	return direct.Kind[*iam.Client]{
		Type: "AWS::IAM::ManagedPolicy", Identity: direct.ByName,
		CreateOnly: []string{"ManagedPolicyName", "Path", "Description"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := iam.CreatePolicyInput{Tags: direct.TagList(c.Tags(), tag)}
			if err := direct.Into(c.Properties, &in, direct.Renames{"ManagedPolicyName": "PolicyName"}, "ManagedPolicyName", "Path", "Description", "PolicyDocument"); err != nil {
				return "", err
			}
			out, err := c.Client.CreatePolicy(ctx, &in)
			if err != nil {
				return "", err
			}
			return *out.Policy.Arn, nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			path := c.Text("Path")
			if path == "" {
				path = "/"
			}
			arn := "arn:" + direct.Partition(c.Region) + ":iam::" + c.Account + ":policy" + path + c.Text("ManagedPolicyName")
			out, err := c.Client.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &arn})
			if err != nil {
				return direct.Found{}, err
			}
			return direct.Found{ID: *out.Policy.Arn, Tags: tagMap(out.Policy.Tags)}, nil
		},
		Facets: []direct.Facet[*iam.Client]{
			{Properties: []string{"PolicyDocument"}, Created: true, Put: putVersion},
			{
				Properties: []string{"Roles", "Users", "Groups"},
				Put:        func(ctx context.Context, c *call) error { return move(ctx, c, attachedTo, false) },
			},
		},
		Read: readManagedPolicy, Delete: deleteManagedPolicy,
	}
}

var attachedTo = []principals{
	{
		"Roles", func(ctx context.Context, c *call, name string) error {
			_, err := c.Client.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &name, PolicyArn: &c.PhysicalID})
			return err
		}, func(ctx context.Context, c *call, name string) error {
			_, err := c.Client.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &name, PolicyArn: &c.PhysicalID})
			return err
		},
	},
	{
		"Users", func(ctx context.Context, c *call, name string) error {
			_, err := c.Client.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: &name, PolicyArn: &c.PhysicalID})
			return err
		}, func(ctx context.Context, c *call, name string) error {
			_, err := c.Client.DetachUserPolicy(ctx, &iam.DetachUserPolicyInput{UserName: &name, PolicyArn: &c.PhysicalID})
			return err
		},
	},
	{
		"Groups", func(ctx context.Context, c *call, name string) error {
			_, err := c.Client.AttachGroupPolicy(ctx, &iam.AttachGroupPolicyInput{GroupName: &name, PolicyArn: &c.PhysicalID})
			return err
		}, func(ctx context.Context, c *call, name string) error {
			_, err := c.Client.DetachGroupPolicy(ctx, &iam.DetachGroupPolicyInput{GroupName: &name, PolicyArn: &c.PhysicalID})
			return err
		},
	},
}

// putVersion makes a new default version. The oldest goes when there is no room for another one.
func putVersion(ctx context.Context, c *call) error {
	document, err := direct.Document(c.Properties["PolicyDocument"])
	if err != nil {
		return err
	}
	versions, err := otherVersions(ctx, c)
	if err != nil {
		return err
	}
	if len(versions) >= maxVersions-1 {
		if _, err := c.Client.DeletePolicyVersion(ctx, &iam.DeletePolicyVersionInput{PolicyArn: &c.PhysicalID, VersionId: versions[0].VersionId}); gone(err) != nil {
			return err
		}
	}
	_, err = c.Client.CreatePolicyVersion(ctx, &iam.CreatePolicyVersionInput{PolicyArn: &c.PhysicalID, PolicyDocument: &document, SetAsDefault: true})
	return err
}

// otherVersions are those that are not the default, the oldest first.
func otherVersions(ctx context.Context, c *call) ([]types.PolicyVersion, error) {
	var versions []types.PolicyVersion
	pages := iam.NewListPolicyVersionsPaginator(c.Client, &iam.ListPolicyVersionsInput{PolicyArn: &c.PhysicalID})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, v := range page.Versions {
			if !v.IsDefaultVersion {
				versions = append(versions, v)
			}
		}
	}
	slices.SortFunc(versions, func(a, b types.PolicyVersion) int {
		return aws.ToTime(a.CreateDate).Compare(aws.ToTime(b.CreateDate))
	})
	return versions, nil
}

// entities are the names of those that the policy is attached to, by property.
func entities(ctx context.Context, c *call) (map[string][]string, error) {
	out := map[string][]string{}
	pages := iam.NewListEntitiesForPolicyPaginator(c.Client, &iam.ListEntitiesForPolicyInput{PolicyArn: &c.PhysicalID})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range page.PolicyRoles {
			out["Roles"] = append(out["Roles"], aws.ToString(e.RoleName))
		}
		for _, e := range page.PolicyUsers {
			out["Users"] = append(out["Users"], aws.ToString(e.UserName))
		}
		for _, e := range page.PolicyGroups {
			out["Groups"] = append(out["Groups"], aws.ToString(e.GroupName))
		}
	}
	return out, nil
}

// readManagedPolicy reads who has the policy only where the record names somebody, or where there is none: others attach it, too.
func readManagedPolicy(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	version, err := c.Client.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{PolicyArn: &c.PhysicalID, VersionId: out.Policy.DefaultVersionId})
	if err != nil {
		return direct.Live{}, err
	}
	p := out.Policy
	properties := direct.From(c.Type, p, direct.Renames{"ManagedPolicyName": "PolicyName"})
	properties["PolicyDocument"] = direct.ParseDocument(version.PolicyVersion.Document)
	unrecorded := len(c.Properties) == 0 && len(c.Previous) == 0
	if unrecorded || c.Known("Roles") != nil || c.Known("Users") != nil || c.Known("Groups") != nil {
		who, err := entities(ctx, c)
		if err != nil {
			return direct.Live{}, err
		}
		for property, names := range who {
			if unrecorded || c.Known(property) != nil {
				properties[property] = direct.Models(names)
			}
		}
	}
	return direct.Live{Properties: properties, Attributes: map[string]any{
		"PolicyArn": c.PhysicalID, "PolicyId": aws.ToString(p.PolicyId), "DefaultVersionId": aws.ToString(p.DefaultVersionId),
		"IsAttachable": p.IsAttachable, "AttachmentCount": int(aws.ToInt32(p.AttachmentCount)),
		"PermissionsBoundaryUsageCount": int(aws.ToInt32(p.PermissionsBoundaryUsageCount)),
		"CreateDate":                    aws.ToTime(p.CreateDate).UTC().Format("2006-01-02T15:04:05Z"),
		"UpdateDate":                    aws.ToTime(p.UpdateDate).UTC().Format("2006-01-02T15:04:05Z"),
	}}, nil
}

// deleteManagedPolicy takes the policy from those that the record names. From anybody else, and from its other versions, only
// when they stand in the way.
func deleteManagedPolicy(ctx context.Context, c *call) error {
	for _, k := range attachedTo {
		for _, name := range direct.Texts(c.Previous[k.property]) {
			if err := gone(k.remove(ctx, c, name)); err != nil {
				return err
			}
		}
	}
	_, err := c.Client.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: &c.PhysicalID})
	if !errorKinds.IsKind(err, provider.KindDependencyViolation) {
		return err
	}
	who, listErr := entities(ctx, c)
	if listErr != nil {
		return listErr
	}
	for _, k := range attachedTo {
		for _, name := range who[k.property] {
			if err := gone(k.remove(ctx, c, name)); err != nil {
				return err
			}
		}
	}
	versions, listErr := otherVersions(ctx, c)
	if listErr != nil {
		return listErr
	}
	for _, v := range versions {
		if _, err := c.Client.DeletePolicyVersion(ctx, &iam.DeletePolicyVersionInput{PolicyArn: &c.PhysicalID, VersionId: v.VersionId}); gone(err) != nil {
			return err
		}
	}
	_, err = c.Client.DeletePolicy(ctx, &iam.DeletePolicyInput{PolicyArn: &c.PhysicalID})
	return err
}
