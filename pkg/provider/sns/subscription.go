package sns

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// subscriptionAttributes are the properties that are attributes of the same name, with the defaults of the API.
// https://docs.aws.amazon.com/sns/latest/api/API_SetSubscriptionAttributes.html
var subscriptionAttributes = map[string]string{
	"DeliveryPolicy":      "",
	"FilterPolicy":        "{}",
	"FilterPolicyScope":   "MessageAttributes",
	"RawMessageDelivery":  "false",
	"RedrivePolicy":       "", // sent as no value at all
	"ReplayPolicy":        "{}",
	"SubscriptionRoleArn": "",
}

// subscription has no tags and no name, but a topic has one subscription of each endpoint. Subscribe answers for one
// that exists, too, so that it is looked for first.
func subscription() direct.Kind[*sns.Client] {
	return direct.Kind[*sns.Client]{
		Type: "AWS::SNS::Subscription", Identity: direct.ByName, LookFirst: true,
		CreateOnly: []string{"TopicArn", "Protocol", "Endpoint"},
		Create:     createSubscription, Find: findSubscription, Read: readSubscription, Delete: unsubscribe,
		Facets: []direct.Facet[*sns.Client]{
			{Properties: slices.Sorted(maps.Keys(subscriptionAttributes)), Created: true, Put: putSubscriptionAttributes},
			{Properties: []string{"Region"}, Created: true, Put: sameRegion},
		},
	}
}

// at sends a call to the region of a topic or a subscription: Region of the template says the same.
func at(arn string) func(*sns.Options) {
	return func(o *sns.Options) {
		if region := part(arn, 3); region != "" {
			o.Region = region
		}
	}
}

// sameRegion: the region is the topic's, whether the template says so or not.
func sameRegion(_ context.Context, c *call) error {
	if c.Has("Region") && c.Text("Region") != part(c.PhysicalID, 3) {
		return &provider.Error{Kind: provider.KindImmutable, Code: "NotUpdatable", Message: "the region of a subscription is its topic's"}
	}
	return nil
}

func createSubscription(ctx context.Context, c *call) (string, error) {
	attributes := map[string]string{}
	for name := range subscriptionAttributes {
		if c.Has(name) {
			attributes[name] = c.Text(name)
		}
	}
	in := sns.SubscribeInput{
		TopicArn: aws.String(c.Text("TopicArn")), Protocol: aws.String(c.Text("Protocol")), Attributes: attributes,
		ReturnSubscriptionArn: true, // also while it has not been confirmed
	}
	if c.Has("Endpoint") {
		in.Endpoint = aws.String(c.Text("Endpoint"))
	}
	out, err := c.Client.Subscribe(ctx, &in, at(*in.TopicArn))
	if err != nil {
		return "", taken(err, "subscription of this endpoint")
	}
	return *out.SubscriptionArn, nil
}

// findSubscription does not find what has not been confirmed: subscribing again names it, and asks for the confirmation again.
func findSubscription(ctx context.Context, c *call) (direct.Found, error) {
	topicARN := c.Text("TopicArn")
	arns, err := subscribed(ctx, c, topicARN, at(topicARN))
	if err != nil {
		return direct.Found{}, err
	}
	arn := arns[endpoint{c.Text("Protocol"), c.Text("Endpoint")}]
	if arn == "" {
		return direct.Found{}, nil
	}
	out, err := c.Client.GetSubscriptionAttributes(ctx, &sns.GetSubscriptionAttributesInput{SubscriptionArn: &arn}, at(arn))
	if err != nil {
		return direct.Found{}, err
	}
	return direct.Found{ID: arn, Properties: subscriptionModel(c, out.Attributes)}, nil
}

// putSubscriptionAttributes makes a call for each attribute that differs: the API takes one at a time. What a filter may say
// depends on its scope: a scope that allows more is set before the filter, one that allows less after it.
func putSubscriptionAttributes(ctx context.Context, c *call) error {
	names := slices.Sorted(maps.Keys(subscriptionAttributes))
	if c.Text("FilterPolicyScope") == "MessageBody" {
		i, j := slices.Index(names, "FilterPolicy"), slices.Index(names, "FilterPolicyScope")
		names[i], names[j] = names[j], names[i]
	}
	for _, name := range names {
		if !c.Changed(name) {
			continue
		}
		value := subscriptionAttributes[name]
		if c.Has(name) {
			value = c.Text(name)
		}
		in := sns.SetSubscriptionAttributesInput{SubscriptionArn: &c.PhysicalID, AttributeName: &name, AttributeValue: &value}
		if name == "RedrivePolicy" && value == "" {
			in.AttributeValue = nil // the API refuses an empty one
		}
		if _, err := c.Client.SetSubscriptionAttributes(ctx, &in, at(c.PhysicalID)); err != nil {
			return err
		}
	}
	return nil
}

// unsubscribe: what nobody has confirmed can't be unsubscribed. The service forgets it after two days.
// https://docs.aws.amazon.com/sns/latest/dg/sns-delete-subscription-topic.html
func unsubscribe(ctx context.Context, c *call) error {
	_, err := c.Client.Unsubscribe(ctx, &sns.UnsubscribeInput{SubscriptionArn: &c.PhysicalID}, at(c.PhysicalID))
	var invalid *types.InvalidParameterException
	if errors.As(err, &invalid) && strings.Contains(invalid.ErrorMessage(), "pending confirmation") {
		return nil
	}
	return err
}

func readSubscription(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.GetSubscriptionAttributes(ctx, &sns.GetSubscriptionAttributesInput{SubscriptionArn: &c.PhysicalID}, at(c.PhysicalID))
	if err != nil {
		return direct.Live{}, err
	}
	return direct.Live{Properties: subscriptionModel(c, out.Attributes), Attributes: map[string]any{"Arn": c.PhysicalID}}, nil
}

func subscriptionModel(c *call, attributes map[string]string) map[string]any {
	properties := direct.From(c.Type, attributes, nil)
	for _, name := range []string{"DeliveryPolicy", "FilterPolicy", "RedrivePolicy", "ReplayPolicy"} {
		if v, ok := properties[name].(map[string]any); ok && len(v) == 0 {
			delete(properties, name)
		}
	}
	if region := c.Known("Region"); region != nil {
		properties["Region"] = part(attributes["TopicArn"], 3)
	}
	return properties
}
