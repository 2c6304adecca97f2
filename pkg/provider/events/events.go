// Package events provisions the resource types of Amazon EventBridge through its own API.
package events

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*eventbridge.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*eventbridge.Client]{
		Name:   "events",
		New:    func(cfg aws.Config) *eventbridge.Client { return eventbridge.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*eventbridge.Client]{rule(), eventBus()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutRule.html#API_PutRule_Errors
var errorKinds = direct.Errors{
	"InvalidEventPatternException":  provider.KindInvalid,
	"InvalidStateException":         provider.KindConflict,
	"ManagedRuleException":          provider.KindInvalid,
	"OperationDisabledException":    provider.KindInvalid,
	"PolicyLengthExceededException": provider.KindInvalid,
}

func tag(k, v *string) types.Tag      { return types.Tag{Key: k, Value: v} }
func pair(t types.Tag) (k, v *string) { return t.Key, t.Value }

// tagsOf reads the tags of an ARN.
func tagsOf(ctx context.Context, c *call, arn string) (map[string]string, error) {
	out, err := c.Client.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: &arn})
	if err != nil {
		return nil, err
	}
	return direct.TagMap(out.Tags, pair), nil
}

// tags is the facet of the tags.
func tags(arn func(*call) string) direct.Facet[*eventbridge.Client] {
	return direct.Tags("Tags",
		func(ctx context.Context, c *call, tags map[string]string) error {
			_, err := c.Client.TagResource(ctx, &eventbridge.TagResourceInput{ResourceARN: aws.String(arn(c)), Tags: direct.TagList(tags, tag)})
			return err
		},
		func(ctx context.Context, c *call, keys []string) error {
			_, err := c.Client.UntagResource(ctx, &eventbridge.UntagResourceInput{ResourceARN: aws.String(arn(c)), TagKeys: keys})
			return err
		})
}
