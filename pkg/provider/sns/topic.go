package sns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// topicAttributes are the properties that are attributes of the same name, with the defaults of the API.
// https://docs.aws.amazon.com/sns/latest/api/API_SetTopicAttributes.html
// https://docs.aws.amazon.com/sns/latest/dg/message-archiving-and-replay-topic-owner.html for the archive.
var topicAttributes = map[string]string{
	"ArchivePolicy":             "{}",
	"ContentBasedDeduplication": "false",
	"DisplayName":               "",
	"FifoThroughputScope":       "Topic",
	"KmsMasterKeyId":            "",
	"MaximumMessageSize":        "262144",
	"SignatureVersion":          "1",
	"TracingConfig":             "PassThrough",
}

// loggedProtocols are the names that attributes have for the protocols of DeliveryStatusLogging.
var loggedProtocols = map[string]string{
	"application": "Application", "firehose": "Firehose", "http/s": "HTTP", "lambda": "Lambda", "sqs": "SQS",
}

// loggingFields are the fields of DeliveryStatusLogging: attributes have them after the protocol.
var loggingFields = []string{"SuccessFeedbackRoleArn", "SuccessFeedbackSampleRate", "FailureFeedbackRoleArn"}

// topic: CreateTopic answers for a topic that exists, too, so that it is looked for first.
func topic() direct.Kind[*sns.Client] {
	return direct.Kind[*sns.Client]{
		Type: "AWS::SNS::Topic", Identity: direct.ByName, LookFirst: true,
		CreateOnly: []string{"TopicName", "FifoTopic"},
		Create:     createTopic, Find: findTopic, Read: readTopic,
		Facets: []direct.Facet[*sns.Client]{
			{
				Properties: append(slices.Sorted(maps.Keys(topicAttributes)), "DeliveryStatusLogging"), Created: true,
				Put: putTopicAttributes,
			},
			{Properties: []string{"DataProtectionPolicy"}, Created: true, Put: putDataProtection},
			{Properties: []string{"Subscription"}, Put: putSubscriptions},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagResource(ctx, &sns.TagResourceInput{ResourceArn: &c.PhysicalID, Tags: direct.TagList(tags, tag)})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagResource(ctx, &sns.UntagResourceInput{ResourceArn: &c.PhysicalID, TagKeys: keys})
					return err
				}),
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteTopic(ctx, &sns.DeleteTopicInput{TopicArn: &c.PhysicalID})
			return err
		},
	}
}

func createTopic(ctx context.Context, c *call) (string, error) {
	attributes, err := attributesOf(c.Properties)
	if err != nil {
		return "", err
	}
	if c.Text("FifoTopic") == "true" { // a topic that is none does not have the attribute
		attributes["FifoTopic"] = "true"
	}
	in := sns.CreateTopicInput{Name: aws.String(c.Text("TopicName")), Attributes: attributes, Tags: direct.TagList(c.Tags(), tag)}
	if c.Has("DataProtectionPolicy") {
		if err := direct.Into(c.Properties, &in, nil, "DataProtectionPolicy"); err != nil {
			return "", err
		}
	}
	out, err := c.Client.CreateTopic(ctx, &in)
	if err != nil {
		return "", taken(err, "topic")
	}
	return *out.TopicArn, nil
}

// taken tells that what is there already differs from what was to be created: the service has no code of its own for it.
func taken(err error, what string) error {
	var invalid *types.InvalidParameterException
	if errors.As(err, &invalid) && strings.Contains(strings.ToLower(invalid.ErrorMessage()), "already exists with different") {
		return &provider.Error{Kind: provider.KindAlreadyExists, Code: invalid.ErrorCode(), Message: "there is another " + what + " already", Err: err}
	}
	return err
}

func findTopic(ctx context.Context, c *call) (direct.Found, error) {
	arn := fmt.Sprintf("arn:%s:sns:%s:%s:%s", direct.Partition(c.Region), c.Region, c.Account, c.Text("TopicName"))
	out, err := c.Client.ListTagsForResource(ctx, &sns.ListTagsForResourceInput{ResourceArn: &arn})
	if err != nil {
		return direct.Found{}, err
	}
	return direct.Found{ID: arn, Tags: tagMap(out.Tags)}, nil
}

// attributesOf are the attributes that properties ask for.
func attributesOf(properties map[string]any) (map[string]string, error) {
	attributes := map[string]string{}
	for name := range topicAttributes {
		if v := properties[name]; v != nil {
			attributes[name] = direct.Text(v)
		}
	}
	list, _ := properties["DeliveryStatusLogging"].([]any)
	for _, e := range list {
		logging, _ := e.(map[string]any)
		protocol, known := loggedProtocols[strings.ToLower(direct.Text(logging["Protocol"]))]
		if !known {
			return nil, direct.Invalid("DeliveryStatusLogging has a protocol that is not application, firehose, http/s, lambda or sqs")
		}
		for _, field := range loggingFields {
			if v := logging[field]; v != nil {
				attributes[protocol+field] = direct.Text(v)
			}
		}
	}
	return attributes, nil
}

// putTopicAttributes makes a call for each attribute that differs: the API takes one at a time.
func putTopicAttributes(ctx context.Context, c *call) error {
	before, err := attributesOf(c.Previous)
	if err != nil {
		return err
	}
	now, err := attributesOf(c.Properties)
	if err != nil {
		return err
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			now[name] = topicAttributes[name] // "" is the default of what is not in it
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if was, ok := before[name]; ok && was == now[name] {
			continue
		}
		in := sns.SetTopicAttributesInput{TopicArn: &c.PhysicalID, AttributeName: &name, AttributeValue: aws.String(now[name])}
		if _, err := c.Client.SetTopicAttributes(ctx, &in); err != nil {
			return err
		}
	}
	return nil
}

// putDataProtection: an empty policy removes it.
func putDataProtection(ctx context.Context, c *call) error {
	policy := ""
	if c.Has("DataProtectionPolicy") {
		var err error
		if policy, err = direct.Document(c.Properties["DataProtectionPolicy"]); err != nil {
			return err
		}
	}
	_, err := c.Client.PutDataProtectionPolicy(ctx, &sns.PutDataProtectionPolicyInput{ResourceArn: &c.PhysicalID, DataProtectionPolicy: &policy})
	return err
}

// endpoint is a subscription that a topic's template gives.
type endpoint struct{ protocol, address string }

func endpoints(v any) []endpoint {
	var out []endpoint
	list, _ := v.([]any)
	for _, e := range list {
		s, _ := e.(map[string]any)
		out = append(out, endpoint{direct.Text(s["Protocol"]), direct.Text(s["Endpoint"])})
	}
	return out
}

// putSubscriptions takes away what the template no longer gives and leaves alone what it never gave: other resources
// subscribe to a topic, too. Subscribing twice is subscribing once.
func putSubscriptions(ctx context.Context, c *call) error {
	before, now := endpoints(c.Previous["Subscription"]), endpoints(c.Properties["Subscription"])
	if gone := slices.DeleteFunc(slices.Clone(before), func(e endpoint) bool { return slices.Contains(now, e) }); len(gone) > 0 {
		arns, err := subscribed(ctx, c, c.PhysicalID)
		if err != nil {
			return err
		}
		for _, e := range gone {
			if arn := arns[e]; arn != "" {
				if _, err := c.Client.Unsubscribe(ctx, &sns.UnsubscribeInput{SubscriptionArn: &arn}); errorKinds.Unless(err, provider.KindNotFound) != nil {
					return err
				}
			}
		}
	}
	for _, e := range now {
		if slices.Contains(before, e) {
			continue
		}
		if _, err := c.Client.Subscribe(ctx, &sns.SubscribeInput{TopicArn: &c.PhysicalID, Protocol: &e.protocol, Endpoint: &e.address}); err != nil {
			return err
		}
	}
	return nil
}

// subscribed are the subscriptions of a topic, by endpoint; "" stands for one that has not been confirmed: it can't be named.
func subscribed(ctx context.Context, c *call, topicARN string, options ...func(*sns.Options)) (map[endpoint]string, error) {
	out := map[endpoint]string{}
	pages := sns.NewListSubscriptionsByTopicPaginator(c.Client, &sns.ListSubscriptionsByTopicInput{TopicArn: &topicARN})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, options...)
		if err != nil {
			return nil, err
		}
		for _, s := range page.Subscriptions {
			arn := aws.ToString(s.SubscriptionArn)
			if !strings.HasPrefix(arn, "arn:") { // PendingConfirmation
				arn = ""
			}
			out[endpoint{aws.ToString(s.Protocol), aws.ToString(s.Endpoint)}] = arn
		}
	}
	return out, nil
}

// readTopic reads the data protection and the subscriptions only when the record speaks of them, or when there is none: it costs calls,
// and other resources subscribe, too.
func readTopic(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	tags, err := c.Client.ListTagsForResource(ctx, &sns.ListTagsForResourceInput{ResourceArn: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, out.Attributes, nil)
	name := part(c.PhysicalID, 5)
	properties["TopicName"], properties["Tags"] = name, direct.TagModel(tagMap(tags.Tags))
	if v, ok := properties["ArchivePolicy"].(map[string]any); ok && len(v) == 0 {
		delete(properties, "ArchivePolicy")
	}
	if logging := loggingModel(out.Attributes); len(logging) > 0 {
		properties["DeliveryStatusLogging"] = logging
	}
	unrecorded := len(c.Properties) == 0 && len(c.Previous) == 0
	if unrecorded || c.Known("DataProtectionPolicy") != nil {
		policy, err := c.Client.GetDataProtectionPolicy(ctx, &sns.GetDataProtectionPolicyInput{ResourceArn: &c.PhysicalID})
		if err != nil {
			return direct.Live{}, err
		}
		if v := direct.ParseDocument(policy.DataProtectionPolicy); v != nil {
			properties["DataProtectionPolicy"] = v
		}
	}
	if c.Known("Subscription") != nil {
		arns, err := subscribed(ctx, c, c.PhysicalID)
		if err != nil {
			return direct.Live{}, err
		}
		var list []any
		for _, e := range endpoints(c.Known("Subscription")) {
			if _, ok := arns[e]; ok {
				list = append(list, map[string]any{"Protocol": e.protocol, "Endpoint": e.address})
			}
		}
		if len(list) > 0 {
			properties["Subscription"] = list
		}
	}
	return direct.Live{Properties: properties, Attributes: map[string]any{"TopicArn": c.PhysicalID, "TopicName": name}}, nil
}

// loggingModel is DeliveryStatusLogging, sorted by protocol.
func loggingModel(attributes map[string]string) []any {
	var out []any
	for _, protocol := range slices.Sorted(maps.Keys(loggedProtocols)) {
		logging := map[string]any{}
		for _, field := range loggingFields {
			if v := attributes[loggedProtocols[protocol]+field]; v != "" {
				logging[field] = v
			}
		}
		if len(logging) > 0 {
			logging["Protocol"] = protocol
			out = append(out, logging)
		}
	}
	return out
}
