// Package cloudwatch provisions the resource types of Amazon CloudWatch through its own API.
package cloudwatch

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/schemas"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*cloudwatch.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*cloudwatch.Client]{
		Name:   "monitoring",
		New:    NewClient,
		Errors: errorKinds,
		Kinds:  []direct.Kind[*cloudwatch.Client]{alarm(), dashboard()},
	}
}

// NewClient makes a client that speaks, of the service's protocols, the one that emulators speak, too: what is tested is what
// is deployed with.
func NewClient(cfg aws.Config) *cloudwatch.Client {
	return cloudwatch.NewFromConfig(cfg, func(o *cloudwatch.Options) { o.Protocol = awsjson.New10(schemas.GraniteServiceVersion20100801) })
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutDashboard.html#API_PutDashboard_Errors
var errorKinds = direct.Errors{
	"DashboardNotFoundError":     provider.KindNotFound,
	"InvalidParameterInput":      provider.KindInvalid,
	"DashboardInvalidInputError": provider.KindInvalid,
}

func tag(k, v *string) types.Tag      { return types.Tag{Key: k, Value: v} }
func pair(t types.Tag) (k, v *string) { return t.Key, t.Value }

// arn is that of an alarm or a dashboard, which has no region.
func arn(c *call, kind string) *string {
	region := c.Region
	if kind == "dashboard/" {
		region = ""
	}
	return aws.String("arn:" + direct.Partition(c.Region) + ":cloudwatch:" + region + ":" + c.Account + ":" + kind + c.PhysicalID)
}

func tagsOf(ctx context.Context, c *call, arn *string) (map[string]string, error) {
	out, err := c.Client.ListTagsForResource(ctx, &cloudwatch.ListTagsForResourceInput{ResourceARN: arn})
	if err != nil {
		return nil, err
	}
	return direct.TagMap(out.Tags, pair), nil
}

func tags(kind string) direct.Facet[*cloudwatch.Client] {
	return direct.Tags("Tags",
		func(ctx context.Context, c *call, tags map[string]string) error {
			_, err := c.Client.TagResource(ctx, &cloudwatch.TagResourceInput{ResourceARN: arn(c, kind), Tags: direct.TagList(tags, tag)})
			return err
		},
		func(ctx context.Context, c *call, keys []string) error {
			_, err := c.Client.UntagResource(ctx, &cloudwatch.UntagResourceInput{ResourceARN: arn(c, kind), TagKeys: keys})
			return err
		})
}
