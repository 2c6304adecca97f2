package dynamodb

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// readTable reads what calls of their own tell only when the operation or the record speaks of it; what has a default that anybody may
// have changed also in a drift check.
func readTable(ctx context.Context, c *call) (direct.Live, error) {
	t, err := describe(ctx, c)
	if err != nil {
		return direct.Live{}, err
	}
	tags, err := tableTags(ctx, c)
	if err != nil {
		return direct.Live{}, err
	}
	properties := tableModel(c, t)
	properties["Tags"] = direct.TagModel(tags)
	unrecorded := len(c.Properties) == 0 && len(c.Previous) == 0
	for _, part := range []struct {
		property string
		drift    bool
		get      func(context.Context, *call) (any, error)
	}{
		{"TimeToLiveSpecification", true, readTimeToLive},
		{"PointInTimeRecoverySpecification", true, readRecovery},
		{"ContributorInsightsSpecification", false, readInsights},
		{"KinesisStreamSpecification", false, readKinesis},
		{"ResourcePolicy", false, readPolicy},
	} {
		if c.Known(part.property) == nil && !unrecorded && (!part.drift || len(c.Properties) > 0) {
			continue
		}
		v, err := part.get(ctx, c)
		if err != nil {
			return direct.Live{}, err
		}
		if v != nil {
			properties[part.property] = v
		}
	}
	attributes := map[string]any{"Arn": aws.ToString(t.TableArn), "TableId": aws.ToString(t.TableId), "TableName": c.PhysicalID}
	if streamView(t) != "" {
		attributes["StreamArn"] = aws.ToString(t.LatestStreamArn)
	}
	return direct.Live{Properties: properties, Attributes: attributes}, nil
}

// tableModel is what DescribeTable tells, in CloudFormation's shapes.
func tableModel(c *call, t *types.TableDescription) map[string]any {
	shown := *t
	provisioned := billingMode(t) == types.BillingModeProvisioned
	if !provisioned {
		shown.ProvisionedThroughput = nil
	}
	if sameMaximum(nil, t.OnDemandThroughput) {
		shown.OnDemandThroughput = nil
	}
	shown.GlobalSecondaryIndexes = nil
	for _, i := range t.GlobalSecondaryIndexes {
		if !provisioned {
			i.ProvisionedThroughput = nil
		}
		if sameMaximum(nil, i.OnDemandThroughput) {
			i.OnDemandThroughput = nil
		}
		shown.GlobalSecondaryIndexes = append(shown.GlobalSecondaryIndexes, i)
	}
	shown.StreamSpecification = nil
	properties := direct.From(c.Type, shown, renames)
	properties["BillingMode"], properties["TableClass"] = string(billingMode(t)), string(tableClass(t))
	properties["DeletionProtectionEnabled"] = aws.ToBool(t.DeletionProtectionEnabled)
	if view := streamView(t); view != "" {
		properties["StreamSpecification"] = map[string]any{"StreamViewType": string(view)}
	}
	if encrypted(t) {
		sse := map[string]any{"SSEEnabled": true}
		if kind := t.SSEDescription.SSEType; kind != "" {
			sse["SSEType"] = string(kind)
		}
		if key := aws.ToString(t.SSEDescription.KMSMasterKeyArn); key != "" {
			sse["KMSMasterKeyId"] = key
			if id := direct.Text(object(c.Known("SSESpecification"))["KMSMasterKeyId"]); id != "" && strings.HasSuffix(key, "/"+id) {
				sse["KMSMasterKeyId"] = id // as it is written there
			}
		}
		properties["SSESpecification"] = sse
	}
	return properties
}

func readTimeToLive(ctx context.Context, c *call) (any, error) {
	attribute, err := timeToLive(ctx, c)
	if err != nil || attribute == "" {
		return nil, err
	}
	return map[string]any{"Enabled": true, "AttributeName": attribute}, nil
}

func readRecovery(ctx context.Context, c *call) (any, error) {
	out, err := c.Client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &c.PhysicalID})
	if err != nil {
		return nil, err
	}
	model := map[string]any{"PointInTimeRecoveryEnabled": false}
	if out.ContinuousBackupsDescription == nil || out.ContinuousBackupsDescription.PointInTimeRecoveryDescription == nil {
		return model, nil
	}
	if d := out.ContinuousBackupsDescription.PointInTimeRecoveryDescription; d.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled {
		model["PointInTimeRecoveryEnabled"] = true
		if d.RecoveryPeriodInDays != nil {
			model["RecoveryPeriodInDays"] = int(*d.RecoveryPeriodInDays)
		}
	}
	return model, nil
}

func readInsights(ctx context.Context, c *call) (any, error) {
	out, err := c.Client.DescribeContributorInsights(ctx, &dynamodb.DescribeContributorInsightsInput{TableName: &c.PhysicalID})
	if err != nil {
		return nil, err
	}
	status := out.ContributorInsightsStatus
	model := map[string]any{"Enabled": status == types.ContributorInsightsStatusEnabled || status == types.ContributorInsightsStatusEnabling}
	if out.ContributorInsightsMode != "" {
		model["Mode"] = string(out.ContributorInsightsMode)
	}
	return model, nil
}

func readKinesis(ctx context.Context, c *call) (any, error) {
	live, err := destinations(ctx, c)
	if err != nil {
		return nil, err
	}
	wanted := direct.Text(object(c.Known("KinesisStreamSpecification"))["StreamArn"])
	for arn, d := range live {
		if arn != wanted && len(live) > 1 {
			continue
		}
		model := map[string]any{"StreamArn": arn}
		if d.ApproximateCreationDateTimePrecision != "" {
			model["ApproximateCreationDateTimePrecision"] = string(d.ApproximateCreationDateTimePrecision)
		}
		return model, nil
	}
	return nil, nil
}

func readPolicy(ctx context.Context, c *call) (any, error) {
	out, err := c.Client.GetResourcePolicy(ctx, &dynamodb.GetResourcePolicyInput{ResourceArn: aws.String(tableARN(c))})
	if code(err) == "PolicyNotFoundException" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"PolicyDocument": direct.ParseDocument(out.Policy)}, nil
}
