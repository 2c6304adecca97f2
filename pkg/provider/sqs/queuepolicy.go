package sqs

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// queuePolicy is one policy on several queues. Its id is the first of them.
func queuePolicy() direct.Kind[*sqs.Client] {
	return direct.Kind[*sqs.Client]{
		Type: "AWS::SQS::QueuePolicy", Identity: direct.ByPut,
		Create: func(ctx context.Context, c *call) (string, error) {
			queues := direct.Texts(c.Properties["Queues"])
			if len(queues) == 0 {
				return "", direct.Invalid("a queue policy needs a queue")
			}
			return queues[0], setPolicy(ctx, c, queues[:1], c.Properties["PolicyDocument"])
		},
		Facets: []direct.Facet[*sqs.Client]{{
			Properties: []string{"PolicyDocument", "Queues"},
			Put: func(ctx context.Context, c *call) error {
				queues, before := direct.Texts(c.Properties["Queues"]), direct.Texts(c.Previous["Queues"])
				left := slices.DeleteFunc(slices.Clone(before), func(q string) bool { return slices.Contains(queues, q) })
				if err := setPolicy(ctx, c, left, nil); err != nil {
					return err
				}
				if !c.Changed("PolicyDocument") {
					queues = slices.DeleteFunc(queues, func(q string) bool { return slices.Contains(before, q) })
				}
				if c.Previous == nil {
					queues = queues[1:] // Create has set it on the first
				}
				return setPolicy(ctx, c, queues, c.Properties["PolicyDocument"])
			},
		}},
		Read: readPolicy,
		Delete: func(ctx context.Context, c *call) error {
			queues := direct.Texts(c.Previous["Queues"])
			if len(queues) == 0 {
				queues = []string{c.PhysicalID}
			}
			return setPolicy(ctx, c, queues, nil)
		},
	}
}

// setPolicy puts a policy on queues, or takes it away. A queue that is gone has no policy to be taken away.
func setPolicy(ctx context.Context, c *call, queues []string, document any) error {
	policy, err := "", error(nil)
	if document != nil {
		if policy, err = direct.Document(document); err != nil {
			return err
		}
	}
	for _, q := range queues {
		_, err := c.Client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: map[string]string{"Policy": policy}})
		if err != nil && !(policy == "" && errorKinds.IsKind(err, provider.KindNotFound)) {
			return err
		}
	}
	return nil
}

func readPolicy(ctx context.Context, c *call) (direct.Live, error) {
	queues := direct.Texts(c.Known("Queues"))
	if len(queues) == 0 {
		queues = []string{c.PhysicalID}
	}
	properties := map[string]any{}
	var with []string
	for _, q := range queues {
		out, err := c.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: &q, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNamePolicy},
		})
		if err != nil && !errorKinds.IsKind(err, provider.KindNotFound) {
			return direct.Live{}, err
		}
		if err == nil && out.Attributes["Policy"] != "" {
			policy := out.Attributes["Policy"]
			properties["PolicyDocument"] = direct.ParseDocument(&policy)
			with = append(with, q)
		}
	}
	if len(with) == 0 {
		return direct.Live{}, direct.NotFound("policy on queue", c.PhysicalID)
	}
	properties["Queues"] = direct.Models(with)
	return direct.Live{Properties: properties, Attributes: map[string]any{"Id": c.PhysicalID}}, nil
}
