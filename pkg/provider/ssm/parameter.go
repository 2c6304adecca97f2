package ssm

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// settings are what one call puts, with what a property becomes that is removed.
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_PutParameter.html
// https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-policies.html
var (
	settings        = []string{"AllowedPattern", "DataType", "Description", "Policies", "Tier", "Type", "Value"}
	settingDefaults = map[string]any{"AllowedPattern": "", "DataType": "text", "Description": "", "Policies": "[{}]", "Tier": "Standard"}
)

func parameter() direct.Kind[*ssm.Client] {
	return direct.Kind[*ssm.Client]{
		Type: "AWS::SSM::Parameter", Identity: direct.ByName,
		CreateOnly: []string{"Name"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := ssm.PutParameterInput{Tags: direct.TagList(c.Tags(), func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} })}
			if err := direct.Into(c.Properties, &in, nil, append([]string{"Name"}, settings...)...); err != nil {
				return "", err
			}
			_, err := c.Client.PutParameter(ctx, &in)
			return c.Text("Name"), err
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			name := c.Text("Name")
			if _, err := c.Client.GetParameter(ctx, &ssm.GetParameterInput{Name: &name}); err != nil {
				return direct.Found{}, err
			}
			tags, err := tagsOf(ctx, c, name)
			return direct.Found{ID: name, Tags: tags}, err
		},
		Facets: []direct.Facet[*ssm.Client]{
			{Properties: settings, Created: true, Defaults: settingDefaults, Put: putParameter},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.AddTagsToResource(ctx, &ssm.AddTagsToResourceInput{
						ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: &c.PhysicalID,
						Tags: direct.TagList(tags, func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} }),
					})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.RemoveTagsFromResource(ctx, &ssm.RemoveTagsFromResourceInput{
						ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: &c.PhysicalID, TagKeys: keys,
					})
					return err
				}),
		},
		Read: readParameter,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: &c.PhysicalID})
			return err
		},
	}
}

// putParameter makes a new version, with all that the template says: what is left out may go back to its default. The call would make a parameter
// that is not there, so that one is looked for.
func putParameter(ctx context.Context, c *call) error {
	if _, err := c.Client.GetParameter(ctx, &ssm.GetParameterInput{Name: &c.PhysicalID}); err != nil {
		return err
	}
	in := ssm.PutParameterInput{Name: &c.PhysicalID, Overwrite: aws.Bool(true)}
	if err := direct.Into(c.Properties, &in, nil, settings...); err != nil {
		return err
	}
	_, err := c.Client.PutParameter(ctx, &in)
	return err
}

func tagsOf(ctx context.Context, c *call, name string) (map[string]string, error) {
	out, err := c.Client.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: &name})
	if err != nil {
		return nil, err
	}
	return direct.TagMap(out.TagList, func(t types.Tag) (k, v *string) { return t.Key, t.Value }), nil
}

// described are the properties that only DescribeParameters tells. It takes few calls a second, and is asked where the record
// speaks of one of them, or there is none.
var described = []string{"AllowedPattern", "Description", "Policies", "Tier"}

func readParameter(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.GetParameter(ctx, &ssm.GetParameterInput{Name: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	tags, err := tagsOf(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, out.Parameter, nil)
	if len(tags) > 0 {
		model := map[string]any{}
		for k, v := range tags {
			model[k] = v
		}
		properties["Tags"] = model
	}
	wanted := len(c.Properties)+len(c.Previous) == 0
	for _, name := range described {
		wanted = wanted || c.Properties[name] != nil || c.Previous[name] != nil
	}
	if wanted {
		if err := describe(ctx, c, properties); err != nil {
			return direct.Live{}, err
		}
	}
	return direct.Live{
		Properties: properties,
		Attributes: map[string]any{"Arn": aws.ToString(out.Parameter.ARN), "Type": properties["Type"], "Value": aws.ToString(out.Parameter.Value)},
	}, nil
}

func describe(ctx context.Context, c *call, properties map[string]any) error {
	out, err := c.Client.DescribeParameters(ctx, &ssm.DescribeParametersInput{
		ParameterFilters: []types.ParameterStringFilter{{Key: aws.String("Name"), Option: aws.String("Equals"), Values: []string{c.PhysicalID}}},
	})
	if err != nil || len(out.Parameters) == 0 {
		return err
	}
	about := out.Parameters[0]
	for name, value := range direct.From(c.Type, about, nil) {
		properties[name] = value
	}
	delete(properties, "Policies")
	var policies []json.RawMessage
	for _, p := range about.Policies {
		policies = append(policies, json.RawMessage(aws.ToString(p.PolicyText)))
	}
	if len(policies) > 0 {
		if text, err := json.Marshal(policies); err == nil {
			properties["Policies"] = string(text)
		}
	}
	return nil
}
