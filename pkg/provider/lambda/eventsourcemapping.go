package lambda

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// mapping is what UpdateEventSourceMapping sets, with what a property becomes that is removed. BatchSize depends on the source.
// https://docs.aws.amazon.com/lambda/latest/api/API_UpdateEventSourceMapping.html
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-eventsourcemapping.html
var (
	mapping = []string{
		"BatchSize", "BisectBatchOnFunctionError", "DestinationConfig", "Enabled", "FilterCriteria", "FunctionName", "FunctionResponseTypes", "KmsKeyArn",
		"MaximumBatchingWindowInSeconds", "MaximumRecordAgeInSeconds", "MaximumRetryAttempts", "MetricsConfig", "ParallelizationFactor",
		"ScalingConfig", "TumblingWindowInSeconds",
	}
	mappingDefaults = map[string]any{
		"BisectBatchOnFunctionError":     false,
		"DestinationConfig":              map[string]any{"OnFailure": map[string]any{}},
		"Enabled":                        true,
		"FilterCriteria":                 map[string]any{},
		"FunctionResponseTypes":          []any{},
		"KmsKeyArn":                      "",
		"MaximumBatchingWindowInSeconds": 0,
		"MaximumRecordAgeInSeconds":      -1,
		"MaximumRetryAttempts":           -1,
		"MetricsConfig":                  map[string]any{"Metrics": []any{}},
		"ParallelizationFactor":          1,
		"ScalingConfig":                  map[string]any{},
		"TumblingWindowInSeconds":        0,
	}
)

const kafka = "for Kafka, MQ and DocumentDB"

func eventSourceMapping() direct.Kind[*client] {
	return direct.Kind[*client]{
		Type: "AWS::Lambda::EventSourceMapping", Identity: direct.ByMark,
		CreateOnly: []string{"EventSourceArn", "StartingPosition", "StartingPositionTimestamp"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := lambda.CreateEventSourceMappingInput{Tags: c.Tags()}
			names := append([]string{"EventSourceArn", "StartingPosition", "StartingPositionTimestamp"}, mapping...)
			if err := direct.Into(c.Properties, &in, nil, names...); err != nil {
				return "", err
			}
			out, err := c.Client.CreateEventSourceMapping(ctx, &in)
			if err != nil {
				return "", taken(ctx, c, err, otherMapping)
			}
			return aws.ToString(out.UUID), nil
		},
		Find: findMapping, Stable: mappingLevel,
		Facets: []direct.Facet[*client]{
			{Properties: mapping, Created: true, Defaults: mappingDefaults, Put: putMapping, Settle: true},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagResource(ctx, &lambda.TagResourceInput{Resource: mappingARN(c), Tags: tags})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagResource(ctx, &lambda.UntagResourceInput{Resource: mappingARN(c), TagKeys: keys})
					return err
				}),
		},
		Unhandled: map[string]string{
			"AmazonManagedKafkaEventSourceConfig": kafka, "DocumentDBEventSourceConfig": kafka, "LoggingConfig": kafka, "ProvisionedPollerConfig": "its removal is not documented", "Queues": kafka, "SelfManagedEventSource": kafka,
			"SelfManagedKafkaEventSourceConfig": kafka, "SourceAccessConfigurations": kafka, "Topics": kafka,
		},
		Read: readMapping,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteEventSourceMapping(ctx, &lambda.DeleteEventSourceMappingInput{UUID: &c.PhysicalID})
			return err
		},
		Gone: func(ctx context.Context, c *call) (bool, error) {
			_, err := c.Client.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &c.PhysicalID})
			return false, err
		},
	}
}

func mappingARN(c *call) *string {
	return aws.String("arn:" + direct.Partition(c.Region) + ":lambda:" + c.Region + ":" + c.Account + ":event-source-mapping:" + c.PhysicalID)
}

// mappings are those of the desired function and source.
func mappings(ctx context.Context, c *call) ([]types.EventSourceMappingConfiguration, error) {
	in := lambda.ListEventSourceMappingsInput{FunctionName: aws.String(c.Text("FunctionName"))}
	if c.Has("EventSourceArn") {
		in.EventSourceArn = aws.String(c.Text("EventSourceArn"))
	}
	var all []types.EventSourceMappingConfiguration
	pages := lambda.NewListEventSourceMappingsPaginator(c.Client, &in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, page.EventSourceMappings...)
	}
	return all, nil
}

// findMapping asks each for its tags, which the list does not tell.
func findMapping(ctx context.Context, c *call) (direct.Found, error) {
	all, err := mappings(ctx, c)
	if err != nil {
		return direct.Found{}, err
	}
	for _, m := range all {
		out, err := c.Client.ListTags(ctx, &lambda.ListTagsInput{Resource: m.EventSourceMappingArn})
		if err != nil {
			return direct.Found{}, err
		}
		if out.Tags[direct.MarkKey] == c.Mark() {
			return direct.Found{ID: aws.ToString(m.UUID), Tags: out.Tags}, nil
		}
	}
	return direct.Found{}, nil
}

// otherMapping finds whatever joins the function and the source: a queue can be joined to a function once.
func otherMapping(ctx context.Context, c *call) (direct.Found, error) {
	all, err := mappings(ctx, c)
	if err != nil || len(all) == 0 {
		return direct.Found{}, err
	}
	return direct.Found{ID: aws.ToString(all[0].UUID)}, nil
}

// mappingLevel: nothing in a deploy needs a mapping, and what is wrong with one is said when it is made. CloudFormation waits until it polls.
func mappingLevel(ctx context.Context, c *call) (direct.Level, error) {
	out, err := c.Client.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &c.PhysicalID})
	if err != nil {
		return direct.NotYet, err
	}
	switch strings.ToLower(aws.ToString(out.State)) {
	case "creating", "enabling", "disabling", "updating":
		return direct.Ready, nil
	}
	return direct.Settled, nil
}

func putMapping(ctx context.Context, c *call) error {
	names := slices.DeleteFunc(slices.Clone(mapping), func(name string) bool { return !c.Changed(name) })
	if c.Removed("BatchSize") {
		if c.Properties["BatchSize"] = 100; strings.Contains(c.Text("EventSourceArn"), ":sqs:") {
			c.Properties["BatchSize"] = 10
		}
	}
	in := lambda.UpdateEventSourceMappingInput{UUID: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, nil, names...); err != nil {
		return err
	}
	_, err := c.Client.UpdateEventSourceMapping(ctx, &in)
	return err
}

func readMapping(ctx context.Context, c *call) (direct.Live, error) {
	out, err := c.Client.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &c.PhysicalID})
	if err != nil {
		return direct.Live{}, err
	}
	if strings.EqualFold(aws.ToString(out.State), "deleting") {
		return direct.Live{}, direct.NotFound("event source mapping", c.PhysicalID)
	}
	tags, err := c.Client.ListTags(ctx, &lambda.ListTagsInput{Resource: mappingARN(c)})
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, out, nil)
	delete(properties, "StartingPositionTimestamp") // a time there, seconds in the template
	properties["FunctionName"] = functionName(c, "FunctionName", aws.ToString(out.FunctionArn))
	properties["Enabled"] = !slices.Contains([]string{"disabled", "disabling"}, strings.ToLower(aws.ToString(out.State)))
	properties["Tags"] = direct.TagModel(tags.Tags)
	return direct.Live{
		Properties: properties,
		Attributes: map[string]any{"Id": c.PhysicalID, "EventSourceMappingArn": *mappingARN(c)},
	}, nil
}
