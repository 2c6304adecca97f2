package events

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// busProperties are those that one UpdateEventBus sets all of.
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_UpdateEventBus.html
var busProperties = []string{"DeadLetterConfig", "Description", "KmsKeyIdentifier", "LogConfig"}

func eventBus() direct.Kind[*eventbridge.Client] {
	return direct.Kind[*eventbridge.Client]{
		Type: "AWS::Events::EventBus", Identity: direct.ByName,
		CreateOnly: []string{"EventSourceName", "Name"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := eventbridge.CreateEventBusInput{Tags: direct.TagList(c.Tags(), tag)}
			if err := direct.Into(c.Properties, &in, nil, append([]string{"EventSourceName", "Name"}, busProperties...)...); err != nil {
				return "", err
			}
			_, err := c.Client.CreateEventBus(ctx, &in)
			return c.Text("Name"), err
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			out, err := c.Client.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: aws.String(c.Text("Name"))})
			if err != nil {
				return direct.Found{}, err
			}
			tags, err := tagsOf(ctx, c, aws.ToString(out.Arn))
			return direct.Found{ID: aws.ToString(out.Name), Tags: tags}, err
		},
		Facets: []direct.Facet[*eventbridge.Client]{
			{
				Properties: busProperties, Created: true,
				Put: func(ctx context.Context, c *call) error {
					in := eventbridge.UpdateEventBusInput{Name: &c.PhysicalID}
					if err := direct.Into(c.Properties, &in, nil, busProperties...); err != nil {
						return err
					}
					_, err := c.Client.UpdateEventBus(ctx, &in)
					return err
				},
			},
			{Properties: []string{"Policy"}, Put: putPolicy},
			tags(busARN),
		},
		Read: readBus,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteEventBus(ctx, &eventbridge.DeleteEventBusInput{Name: &c.PhysicalID})
			return err
		},
	}
}

func busARN(c *call) string {
	if arn := direct.Text(c.Attributes["Arn"]); arn != "" {
		return arn
	}
	return "arn:" + direct.Partition(c.Region) + ":events:" + c.Region + ":" + c.Account + ":event-bus/" + c.PhysicalID
}

func putPolicy(ctx context.Context, c *call) error {
	if !c.Has("Policy") {
		_, err := c.Client.RemovePermission(ctx, &eventbridge.RemovePermissionInput{EventBusName: &c.PhysicalID, RemoveAllPermissions: true})
		if errorKinds.IsKind(err, provider.KindNotFound) { // the policy, or the bus
			_, err = c.Client.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: &c.PhysicalID})
		}
		return err
	}
	policy, err := direct.Document(c.Properties["Policy"])
	if err != nil {
		return err
	}
	_, err = c.Client.PutPermission(ctx, &eventbridge.PutPermissionInput{EventBusName: &c.PhysicalID, Policy: &policy})
	return err
}

// readBus tells of the policy only where the record does: AWS::Events::EventBusPolicy adds to it, too.
func readBus(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, out, nil)
	delete(properties, "Policy")
	attributes := map[string]any{"Arn": aws.ToString(out.Arn), "Name": aws.ToString(out.Name)}
	if policy := direct.ParseDocument(out.Policy); policy != nil {
		attributes["Policy"] = aws.ToString(out.Policy)
		if c.Known("Policy") != nil || len(c.Properties)+len(c.Previous) == 0 {
			properties["Policy"] = policy
		}
	}
	tags, err := tagsOf(ctx, c, aws.ToString(out.Arn))
	if err != nil {
		return direct.Live{}, err
	}
	properties["Tags"] = direct.TagModel(tags)
	return direct.Live{Properties: properties, Attributes: attributes}, nil
}
