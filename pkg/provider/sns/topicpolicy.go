package sns

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// topicPolicy is one policy on several topics. Its id are those that it was created with, joined by commas.
func topicPolicy() direct.Kind[*sns.Client] {
	return direct.Kind[*sns.Client]{
		Type: "AWS::SNS::TopicPolicy", Identity: direct.ByPut,
		Create: func(ctx context.Context, c *call) (string, error) {
			topics := direct.Texts(c.Properties["Topics"])
			if len(topics) == 0 {
				return "", direct.Invalid("a topic policy needs a topic")
			}
			return strings.Join(topics, ","), setPolicy(ctx, c, topics[:1], c.Properties["PolicyDocument"])
		},
		Facets: []direct.Facet[*sns.Client]{{
			Properties: []string{"PolicyDocument", "Topics"},
			Put: func(ctx context.Context, c *call) error {
				topics, before := direct.Texts(c.Properties["Topics"]), direct.Texts(c.Previous["Topics"])
				if err := resetPolicy(ctx, c, direct.Without(before, topics)); err != nil {
					return err
				}
				if !c.Changed("PolicyDocument") {
					topics = direct.Without(topics, before)
				}
				if c.Previous == nil {
					topics = topics[1:] // Create has set it on the first
				}
				return setPolicy(ctx, c, topics, c.Properties["PolicyDocument"])
			},
		}},
		Read: readPolicy,
		Delete: func(ctx context.Context, c *call) error {
			return resetPolicy(ctx, c, policyTopics(c, c.Previous["Topics"]))
		},
	}
}

// policyTopics are the topics of a property, or those of the id.
func policyTopics(c *call, recorded any) []string {
	if topics := direct.Texts(recorded); len(topics) > 0 {
		return topics
	}
	return strings.Split(c.PhysicalID, ",")
}

func setPolicy(ctx context.Context, c *call, topics []string, document any) error {
	policy, err := direct.Document(document)
	if err != nil {
		return err
	}
	for _, arn := range topics {
		if err := putPolicy(ctx, c, arn, policy); err != nil {
			return err
		}
	}
	return nil
}

// resetPolicy: a topic always has a policy; without one of its own it is the one that it had at first. One that is gone needs none.
func resetPolicy(ctx context.Context, c *call, topics []string) error {
	for _, arn := range topics {
		policy, err := direct.Document(defaultPolicy(arn))
		if err != nil {
			return err
		}
		if err := putPolicy(ctx, c, arn, policy); errorKinds.Unless(err, provider.KindNotFound) != nil {
			return err
		}
	}
	return nil
}

func putPolicy(ctx context.Context, c *call, arn, policy string) error {
	_, err := c.Client.SetTopicAttributes(ctx, &sns.SetTopicAttributesInput{TopicArn: &arn, AttributeName: aws.String("Policy"), AttributeValue: &policy})
	return err
}

// defaultPolicyID is the id of the policy that the service gives a new topic.
const defaultPolicyID = "__default_policy_ID"

// defaultPolicy is what the service gives a new topic, and CloudFormation one whose policy is deleted.
// https://docs.aws.amazon.com/sns/latest/dg/sns-access-policy-use-cases.html
func defaultPolicy(arn string) map[string]any {
	return map[string]any{
		"Version": "2008-10-17", "Id": defaultPolicyID,
		"Statement": []any{map[string]any{
			"Sid": "__default_statement_ID", "Effect": "Allow", "Principal": map[string]any{"AWS": "*"},
			"Action": []any{
				"SNS:GetTopicAttributes", "SNS:SetTopicAttributes", "SNS:AddPermission", "SNS:RemovePermission",
				"SNS:DeleteTopic", "SNS:Subscribe", "SNS:ListSubscriptionsByTopic", "SNS:Publish",
			},
			"Resource":  arn,
			"Condition": map[string]any{"StringEquals": map[string]any{"AWS:SourceOwner": part(arn, 4)}},
		}},
	}
}

func readPolicy(ctx context.Context, c *call) (direct.Live, error) {
	properties := map[string]any{}
	var with []string
	for _, arn := range policyTopics(c, c.Known("Topics")) {
		out, err := c.Client.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &arn})
		if errorKinds.IsKind(err, provider.KindNotFound) {
			continue
		}
		if err != nil {
			return direct.Live{}, err
		}
		policy, _ := direct.ParseDocument(aws.String(out.Attributes["Policy"])).(map[string]any)
		if policy != nil && policy["Id"] != defaultPolicyID {
			properties["PolicyDocument"] = policy
			with = append(with, arn)
		}
	}
	if len(with) == 0 {
		return direct.Live{}, direct.NotFound("policy on topic", c.PhysicalID)
	}
	properties["Topics"] = direct.Models(with)
	return direct.Live{Properties: properties, Attributes: map[string]any{"Id": c.PhysicalID}}, nil
}
