package sqs

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// queueAttributes are the properties that are attributes of the same name, with the defaults of the API.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
var queueAttributes = map[string]any{
	"ContentBasedDeduplication":     false,
	"DeduplicationScope":            "queue",
	"DelaySeconds":                  0,
	"FifoThroughputLimit":           "perQueue",
	"KmsDataKeyReusePeriodSeconds":  300,
	"KmsMasterKeyId":                "",
	"MaximumMessageSize":            1048576,
	"MessageRetentionPeriod":        345600,
	"ReceiveMessageWaitTimeSeconds": 0,
	"RedriveAllowPolicy":            "",
	"RedrivePolicy":                 "",
	"SqsManagedSseEnabled":          true,
	"VisibilityTimeout":             30,
}

func queue() direct.Kind[*sqs.Client] {
	return direct.Kind[*sqs.Client]{
		Type: "AWS::SQS::Queue", Identity: direct.ByName, LookFirst: true,
		CreateOnly: []string{"QueueName", "FifoQueue"},
		Create:     createQueue, Find: findQueue, Read: readQueue,
		Facets: []direct.Facet[*sqs.Client]{
			{Properties: slices.Sorted(maps.Keys(queueAttributes)), Created: true, Defaults: queueAttributes, Put: putQueueAttributes},
			direct.Tags("Tags", tagQueue, untagQueue),
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &c.PhysicalID})
			return err
		},
	}
}

func createQueue(ctx context.Context, c *call) (string, error) {
	name, attributes := c.Text("QueueName"), map[string]string{}
	for property := range queueAttributes {
		if c.Has(property) {
			attributes[property] = c.Text(property)
		}
	}
	if c.Text("FifoQueue") == "true" { // the API refuses a false one
		attributes["FifoQueue"] = "true"
	}
	out, err := c.Client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes, Tags: c.Tags()})
	if err != nil {
		return "", err
	}
	return *out.QueueUrl, nil
}

func findQueue(ctx context.Context, c *call) (direct.Found, error) {
	name := c.Text("QueueName")
	out, err := c.Client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return direct.Found{}, err
	}
	tags, err := c.Client.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: out.QueueUrl})
	if err != nil {
		return direct.Found{}, err
	}
	found := direct.Found{ID: *out.QueueUrl, Tags: map[string]string{}}
	maps.Copy(found.Tags, tags.Tags)
	return found, nil
}

func putQueueAttributes(ctx context.Context, c *call) error {
	attributes := map[string]string{}
	for property := range queueAttributes {
		if c.Changed(property) {
			attributes[property] = c.Text(property)
		}
	}
	if c.Changed("KmsMasterKeyId") && c.Text("KmsMasterKeyId") == "" && !c.Has("SqsManagedSseEnabled") {
		attributes["SqsManagedSseEnabled"] = "true" // as a queue without a key of its own has it
	}
	if len(attributes) == 0 {
		return nil
	}
	_, err := c.Client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &c.PhysicalID, Attributes: attributes})
	return err
}

func tagQueue(ctx context.Context, c *call, tags map[string]string) error {
	_, err := c.Client.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: &c.PhysicalID, Tags: tags})
	return err
}

func untagQueue(ctx context.Context, c *call, keys []string) error {
	_, err := c.Client.UntagQueue(ctx, &sqs.UntagQueueInput{QueueUrl: &c.PhysicalID, TagKeys: keys})
	return err
}

func readQueue(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &c.PhysicalID, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return direct.Live{}, err
	}
	tags, err := c.Client.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	arn := out.Attributes["QueueArn"]
	name := arn[strings.LastIndexByte(arn, ':')+1:]
	properties := direct.From(c.Type, out.Attributes, nil)
	properties["QueueName"], properties["Tags"] = name, direct.TagModel(tags.Tags)
	return direct.Live{
		Properties: properties,
		Attributes: map[string]any{"Arn": arn, "QueueName": name, "QueueUrl": c.PhysicalID},
	}, nil
}
