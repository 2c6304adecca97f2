package iam

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func instanceProfile() direct.Kind[*iam.Client] {
	return direct.Kind[*iam.Client]{
		Type: "AWS::IAM::InstanceProfile", Identity: direct.ByName,
		CreateOnly: []string{"InstanceProfileName", "Path"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := iam.CreateInstanceProfileInput{Tags: direct.TagList(c.Tags(), tag)}
			if err := direct.Into(c.Properties, &in, nil, "InstanceProfileName", "Path"); err != nil {
				return "", err
			}
			_, err := c.Client.CreateInstanceProfile(ctx, &in)
			return c.Text("InstanceProfileName"), err
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			p, err := getProfile(ctx, c, c.Text("InstanceProfileName"))
			if err != nil {
				return direct.Found{}, err
			}
			return direct.Found{ID: *p.InstanceProfileName, Tags: tagMap(p.Tags)}, nil
		},
		Facets: []direct.Facet[*iam.Client]{{Properties: []string{"Roles"}, Put: putRole}},
		Read: func(ctx context.Context, c *call) (direct.Live, error) {
			p, err := getProfile(ctx, c, c.PhysicalID)
			if err != nil {
				return direct.Live{}, err
			}
			return direct.Live{
				Properties: map[string]any{
					"InstanceProfileName": *p.InstanceProfileName, "Path": aws.ToString(p.Path), "Roles": direct.Models(roleNames(p)),
				},
				Attributes: map[string]any{"Arn": aws.ToString(p.Arn)},
			}, nil
		},
		Delete: func(ctx context.Context, c *call) error {
			for _, name := range direct.Texts(c.Previous["Roles"]) {
				if err := gone(removeRole(ctx, c, name)); err != nil {
					return err
				}
			}
			_, err := c.Client.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &c.PhysicalID})
			if !errorKinds.IsKind(err, provider.KindDependencyViolation) {
				return err
			}
			p, getErr := getProfile(ctx, c, c.PhysicalID)
			if getErr != nil {
				return getErr
			}
			for _, name := range roleNames(p) {
				if err := gone(removeRole(ctx, c, name)); err != nil {
					return err
				}
			}
			_, err = c.Client.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &c.PhysicalID})
			return err
		},
	}
}

func getProfile(ctx context.Context, c *call, name string) (*types.InstanceProfile, error) {
	out, err := c.Client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if err != nil {
		return nil, err
	}
	return out.InstanceProfile, nil
}

func roleNames(p *types.InstanceProfile) []string {
	var names []string
	for _, r := range p.Roles {
		names = append(names, aws.ToString(r.RoleName))
	}
	return names
}

func removeRole(ctx context.Context, c *call, name string) error {
	_, err := c.Client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &c.PhysicalID, RoleName: &name})
	return err
}

// putRole looks first: a profile has one role, and adding it twice is refused.
func putRole(ctx context.Context, c *call) error {
	p, err := getProfile(ctx, c, c.PhysicalID)
	if err != nil {
		return err
	}
	have, want := roleNames(p), direct.Texts(c.Properties["Roles"])
	for _, name := range direct.Without(have, want) {
		if err := gone(removeRole(ctx, c, name)); err != nil {
			return err
		}
	}
	for _, name := range direct.Without(want, have) {
		_, err := c.Client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &c.PhysicalID, RoleName: &name})
		if err != nil && !added(ctx, c, name, err) {
			return err
		}
	}
	return nil
}

// added reports whether a refused role is the one that the profile has: what an earlier call has added may not have been
// seen when putRole looked.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_AddRoleToInstanceProfile.html
func added(ctx context.Context, c *call, name string, refused error) bool {
	var api smithy.APIError
	if !errors.As(refused, &api) || api.ErrorCode() != "LimitExceeded" {
		return false
	}
	p, err := getProfile(ctx, c, c.PhysicalID)
	return err == nil && slices.Contains(roleNames(p), name)
}
