package dynamodb

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// putTimeToLive: another attribute has to wait until the one before is no longer used. Saying again what is so is refused, so
// that a refusal is held against what is so.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html
func putTimeToLive(ctx context.Context, c *call) error {
	before, now := object(c.Previous["TimeToLiveSpecification"]), object(c.Properties["TimeToLiveSpecification"])
	was, is := direct.Text(before["Enabled"]) == "true", direct.Text(now["Enabled"]) == "true"
	if was && (!is || direct.Text(before["AttributeName"]) != direct.Text(now["AttributeName"])) {
		if err := setTimeToLive(ctx, c, direct.Text(before["AttributeName"]), false); err != nil {
			return err
		}
	}
	if !is {
		return nil
	}
	return setTimeToLive(ctx, c, direct.Text(now["AttributeName"]), true)
}

func setTimeToLive(ctx context.Context, c *call, attribute string, enabled bool) error {
	_, err := c.Client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &c.PhysicalID, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: &enabled},
	})
	if code(err) != "ValidationException" {
		return err
	}
	live, liveErr := timeToLive(ctx, c)
	if liveErr != nil {
		return liveErr
	}
	if (live == attribute) == enabled {
		return nil
	}
	return err
}

// timeToLive is the attribute that tells when items end, "" when there is none.
func timeToLive(ctx context.Context, c *call) (string, error) {
	out, err := c.Client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &c.PhysicalID})
	if err != nil {
		return "", err
	}
	if d := out.TimeToLiveDescription; d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return aws.ToString(d.AttributeName), nil
	}
	return "", nil
}

func putRecovery(ctx context.Context, c *call) error {
	spec := types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(false)}
	if given := object(c.Properties["PointInTimeRecoverySpecification"]); direct.Text(given["PointInTimeRecoveryEnabled"]) == "true" {
		spec.PointInTimeRecoveryEnabled = nil
		if err := direct.Into(given, &spec, nil); err != nil {
			return err
		}
	} else if c.Previous == nil {
		return nil // as a new table is
	}
	_, err := c.Client.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{TableName: &c.PhysicalID, PointInTimeRecoverySpecification: &spec})
	return err
}

// insight is whether and what contributors are counted of.
type insight struct {
	enabled bool
	mode    types.ContributorInsightsMode
}

// insights are those of the table ("") and of its indexes.
func insights(properties map[string]any) map[string]insight {
	read := func(v any) insight {
		spec := object(v)
		return insight{enabled: direct.Text(spec["Enabled"]) == "true", mode: types.ContributorInsightsMode(direct.Text(spec["Mode"]))}
	}
	out := map[string]insight{"": read(properties["ContributorInsightsSpecification"])}
	for _, i := range objects(properties["GlobalSecondaryIndexes"]) {
		out[direct.Text(i["IndexName"])] = read(i["ContributorInsightsSpecification"])
	}
	return out
}

func putInsights(ctx context.Context, c *call) error {
	before := insights(c.Previous)
	for name, want := range insights(c.Properties) {
		if want == before[name] {
			continue
		}
		in := dynamodb.UpdateContributorInsightsInput{TableName: &c.PhysicalID, ContributorInsightsAction: types.ContributorInsightsActionDisable}
		if name != "" {
			in.IndexName = &name
		}
		if want.enabled {
			in.ContributorInsightsAction, in.ContributorInsightsMode = types.ContributorInsightsActionEnable, want.mode
		}
		if _, err := c.Client.UpdateContributorInsights(ctx, &in); err != nil {
			return err
		}
	}
	return nil
}

// streaming reports whether a destination gets records, or will.
func streaming(d types.KinesisDataStreamDestination) bool {
	switch d.DestinationStatus {
	case types.DestinationStatusActive, types.DestinationStatusEnabling, types.DestinationStatusUpdating:
		return true
	}
	return false
}

// destinations are where the table's changes go, by the ARN of the stream.
func destinations(ctx context.Context, c *call) (map[string]types.KinesisDataStreamDestination, error) {
	out, err := c.Client.DescribeKinesisStreamingDestination(ctx, &dynamodb.DescribeKinesisStreamingDestinationInput{TableName: &c.PhysicalID})
	if err != nil {
		return nil, err
	}
	live := map[string]types.KinesisDataStreamDestination{}
	for _, d := range out.KinesisDataStreamDestinations {
		if streaming(d) {
			live[aws.ToString(d.StreamArn)] = d
		}
	}
	return live, nil
}

func putKinesis(ctx context.Context, c *call) error {
	before, now := object(c.Previous["KinesisStreamSpecification"]), object(c.Properties["KinesisStreamSpecification"])
	was, is := direct.Text(before["StreamArn"]), direct.Text(now["StreamArn"])
	live, err := destinations(ctx, c)
	if err != nil {
		return err
	}
	if _, flows := live[was]; flows && was != is {
		if _, err := c.Client.DisableKinesisStreamingDestination(ctx, &dynamodb.DisableKinesisStreamingDestinationInput{TableName: &c.PhysicalID, StreamArn: &was}); err != nil {
			return err
		}
	}
	if is == "" {
		return nil
	}
	precision := types.ApproximateCreationDateTimePrecision(direct.Text(now["ApproximateCreationDateTimePrecision"]))
	at, flows := live[is]
	switch {
	case !flows:
		in := dynamodb.EnableKinesisStreamingDestinationInput{TableName: &c.PhysicalID, StreamArn: &is}
		if precision != "" {
			in.EnableKinesisStreamingConfiguration = &types.EnableKinesisStreamingConfiguration{ApproximateCreationDateTimePrecision: precision}
		}
		_, err = c.Client.EnableKinesisStreamingDestination(ctx, &in)
	case precision != "" && precision != at.ApproximateCreationDateTimePrecision:
		_, err = c.Client.UpdateKinesisStreamingDestination(ctx, &dynamodb.UpdateKinesisStreamingDestinationInput{
			TableName: &c.PhysicalID, StreamArn: &is,
			UpdateKinesisStreamingConfiguration: &types.UpdateKinesisStreamingConfiguration{ApproximateCreationDateTimePrecision: precision},
		})
	}
	return err
}

// putPolicy puts the policy of a table or of its stream, or takes it away.
func putPolicy(ctx context.Context, c *call, arn string, given any) error {
	policy := object(given)
	if policy == nil {
		_, err := c.Client.DeleteResourcePolicy(ctx, &dynamodb.DeleteResourcePolicyInput{ResourceArn: &arn})
		if code(err) == "PolicyNotFoundException" {
			return nil
		}
		return err
	}
	text, err := direct.Document(policy["PolicyDocument"])
	if err != nil {
		return err
	}
	_, err = c.Client.PutResourcePolicy(ctx, &dynamodb.PutResourcePolicyInput{ResourceArn: &arn, Policy: &text})
	return err
}

// putStream puts the policy and the tags of a stream. A stream that has been replaced has neither.
func putStream(ctx context.Context, c *call) error {
	before, now := object(c.Previous["StreamSpecification"]), object(c.Properties["StreamSpecification"])
	if direct.Text(before["StreamViewType"]) != direct.Text(now["StreamViewType"]) {
		before = nil
	}
	policy := direct.Text(before["ResourcePolicy"]) != direct.Text(now["ResourcePolicy"])
	tags, gone := direct.TagsOf(now["Tags"]), []string(nil)
	for k, v := range direct.TagsOf(before["Tags"]) {
		if now, ok := tags[k]; !ok {
			gone = append(gone, k)
		} else if now == v {
			delete(tags, k)
		}
	}
	if !policy && len(tags) == 0 && len(gone) == 0 {
		return nil
	}
	live, err := describe(ctx, c)
	if err != nil {
		return err
	}
	arn := aws.ToString(live.LatestStreamArn)
	if policy {
		if err := putPolicy(ctx, c, arn, now["ResourcePolicy"]); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		if _, err := c.Client.UntagResource(ctx, &dynamodb.UntagResourceInput{ResourceArn: &arn, TagKeys: gone}); err != nil {
			return err
		}
	}
	if len(tags) > 0 {
		_, err = c.Client.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: &arn, Tags: direct.TagList(tags, tag)})
	}
	return err
}
