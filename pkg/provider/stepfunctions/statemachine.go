package stepfunctions

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

var configurations = []string{"EncryptionConfiguration", "LoggingConfiguration", "TracingConfiguration"}

// stateMachine's id is its ARN (reference §10.3). The service answers the creation of what is there already, with the same
// definition, as if it had made it.
func stateMachine() direct.Kind[clients] {
	return direct.Kind[clients]{
		Type: "AWS::StepFunctions::StateMachine", Identity: direct.ByName, LookFirst: true,
		CreateOnly: []string{"StateMachineName", "StateMachineType"},
		Create: func(ctx context.Context, c *call) (string, error) {
			text, err := definition(ctx, c, c.Properties)
			if err != nil {
				return "", err
			}
			in := sfn.CreateStateMachineInput{Definition: &text, Tags: direct.TagList(c.Tags(), tag)}
			renames := direct.Renames{"StateMachineName": "Name", "StateMachineType": "Type"}
			if err := direct.Into(c.Properties, &in, renames, append([]string{"RoleArn", "StateMachineName", "StateMachineType"}, configurations...)...); err != nil {
				return "", err
			}
			out, err := c.Client.CreateStateMachine(ctx, &in)
			if err != nil {
				return "", err
			}
			return *out.StateMachineArn, nil
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			arn := "arn:" + direct.Partition(c.Region) + ":states:" + c.Region + ":" + c.Account + ":stateMachine:" + c.Text("StateMachineName")
			out, err := c.Client.DescribeStateMachine(ctx, &sfn.DescribeStateMachineInput{StateMachineArn: &arn})
			if err != nil {
				return direct.Found{}, err
			}
			tags, err := tagsOf(ctx, c, arn)
			return direct.Found{ID: aws.ToString(out.StateMachineArn), Tags: tags}, err
		},
		Facets: []direct.Facet[clients]{
			{
				Properties: append(append([]string{"RoleArn"}, definitionProperties...), configurations...), Created: true,
				// https://docs.aws.amazon.com/step-functions/latest/apireference/API_LoggingConfiguration.html and the pages of the other two
				Defaults: map[string]any{
					"EncryptionConfiguration": map[string]any{"Type": "AWS_OWNED_KEY"},
					"LoggingConfiguration":    map[string]any{"Level": "OFF", "IncludeExecutionData": false},
					"TracingConfiguration":    map[string]any{"Enabled": false},
				},
				Put: func(ctx context.Context, c *call) error {
					text, err := definition(ctx, c, c.Properties)
					if err != nil {
						return err
					}
					in := sfn.UpdateStateMachineInput{StateMachineArn: &c.PhysicalID, Definition: &text}
					if err := direct.Into(c.Properties, &in, nil, append([]string{"RoleArn"}, configurations...)...); err != nil {
						return err
					}
					_, err = c.Client.UpdateStateMachine(ctx, &in)
					return err
				},
			},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagResource(ctx, &sfn.TagResourceInput{ResourceArn: &c.PhysicalID, Tags: direct.TagList(tags, tag)})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagResource(ctx, &sfn.UntagResourceInput{ResourceArn: &c.PhysicalID, TagKeys: keys})
					return err
				}),
		},
		Read: readStateMachine,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteStateMachine(ctx, &sfn.DeleteStateMachineInput{StateMachineArn: &c.PhysicalID})
			return err
		},
		// It goes when its executions have ended.
		Gone: func(ctx context.Context, c *call) (bool, error) {
			_, err := c.Client.DescribeStateMachine(ctx, &sfn.DescribeStateMachineInput{StateMachineArn: &c.PhysicalID})
			return false, err
		},
	}
}

func tag(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} }

func tagsOf(ctx context.Context, c *call, arn string) (map[string]string, error) {
	out, err := c.Client.ListTagsForResource(ctx, &sfn.ListTagsForResourceInput{ResourceArn: &arn})
	if err != nil {
		return nil, err
	}
	return direct.TagMap(out.Tags, func(t types.Tag) (k, v *string) { return t.Key, t.Value }), nil
}

func readStateMachine(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.DescribeStateMachine(ctx, &sfn.DescribeStateMachineInput{StateMachineArn: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, out, direct.Renames{"StateMachineName": "Name", "StateMachineType": "Type"})
	delete(properties, "Definition")
	readDefinition(c, aws.ToString(out.Definition), properties)
	tags, err := tagsOf(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	properties["Tags"] = direct.TagModel(tags)
	revision := aws.ToString(out.RevisionId)
	if revision == "" {
		// As the first one is called.
		// https://docs.aws.amazon.com/step-functions/latest/apireference/API_PublishStateMachineVersion.html
		revision = "INITIAL"
	}
	return direct.Live{
		Properties: properties,
		Attributes: map[string]any{"Arn": c.PhysicalID, "Name": aws.ToString(out.Name), "StateMachineRevisionId": revision},
	}, nil
}
