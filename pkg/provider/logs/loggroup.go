package logs

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

func logGroup() direct.Kind[*cloudwatchlogs.Client] {
	return direct.Kind[*cloudwatchlogs.Client]{
		Type: "AWS::Logs::LogGroup", Identity: direct.ByName,
		// The class of a group is settled when it is made.
		// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CloudWatch_Logs_Log_Classes.html
		CreateOnly: []string{"LogGroupName", "LogGroupClass"},
		Create: func(ctx context.Context, c *call) (string, error) {
			in := cloudwatchlogs.CreateLogGroupInput{Tags: c.Tags()}
			if err := direct.Into(c.Properties, &in, nil, "LogGroupName", "LogGroupClass", "KmsKeyId", "DeletionProtectionEnabled"); err != nil {
				return "", err
			}
			_, err := c.Client.CreateLogGroup(ctx, &in)
			return c.Text("LogGroupName"), err
		},
		Find: func(ctx context.Context, c *call) (direct.Found, error) {
			group, err := getLogGroup(ctx, c, c.Text("LogGroupName"))
			if err != nil {
				return direct.Found{}, err
			}
			tags, err := tagsOf(ctx, c, group)
			return direct.Found{ID: *group.LogGroupName, Tags: tags}, err
		},
		// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-logs-loggroup.html
		Facets: []direct.Facet[*cloudwatchlogs.Client]{
			{Properties: []string{"KmsKeyId"}, Created: true, Put: putKey},
			{Properties: []string{"RetentionInDays"}, Put: putRetention},
			{Properties: []string{"DataProtectionPolicy"}, Put: putDataProtection},
			{Properties: []string{"FieldIndexPolicies"}, Put: putIndexPolicy},
			{
				Properties: []string{"BearerTokenAuthenticationEnabled"}, Defaults: map[string]any{"BearerTokenAuthenticationEnabled": false},
				Put: func(ctx context.Context, c *call) error {
					_, err := c.Client.PutBearerTokenAuthentication(ctx, &cloudwatchlogs.PutBearerTokenAuthenticationInput{
						LogGroupIdentifier: &c.PhysicalID, BearerTokenAuthenticationEnabled: aws.Bool(c.Text("BearerTokenAuthenticationEnabled") == "true"),
					})
					return err
				},
			},
			{
				Properties: []string{"DeletionProtectionEnabled"}, Created: true, Defaults: map[string]any{"DeletionProtectionEnabled": false},
				Put: func(ctx context.Context, c *call) error {
					_, err := c.Client.PutLogGroupDeletionProtection(ctx, &cloudwatchlogs.PutLogGroupDeletionProtectionInput{
						LogGroupIdentifier: &c.PhysicalID, DeletionProtectionEnabled: aws.Bool(c.Text("DeletionProtectionEnabled") == "true"),
					})
					return err
				},
			},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagResource(ctx, &cloudwatchlogs.TagResourceInput{ResourceArn: resourceARN(c), Tags: tags})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagResource(ctx, &cloudwatchlogs.UntagResourceInput{ResourceArn: resourceARN(c), TagKeys: keys})
					return err
				}),
		},
		Unhandled: map[string]string{"ResourcePolicyDocument": "a policy with revisions of its own"},
		Read:      readLogGroup,
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteLogGroup(ctx, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &c.PhysicalID})
			return err
		},
	}
}

// resourceARN is the group's ARN without the ":*" that stands for its streams.
func resourceARN(c *call) *string {
	return aws.String("arn:" + direct.Partition(c.Region) + ":logs:" + c.Region + ":" + c.Account + ":log-group:" + c.PhysicalID)
}

// getLogGroup reads a group by its name. Groups are listed in the order of their names: the one that is itself the
// prefix comes first.
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DescribeLogGroups.html
func getLogGroup(ctx context.Context, c *call, name string) (*types.LogGroup, error) {
	out, err := c.Client.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &name})
	if err != nil {
		return nil, err
	}
	for i := range out.LogGroups {
		if aws.ToString(out.LogGroups[i].LogGroupName) == name {
			return &out.LogGroups[i], nil
		}
	}
	return nil, direct.NotFound("log group", name)
}

func arnOf(group *types.LogGroup) string { return strings.TrimSuffix(aws.ToString(group.Arn), ":*") }

func tagsOf(ctx context.Context, c *call, group *types.LogGroup) (map[string]string, error) {
	out, err := c.Client.ListTagsForResource(ctx, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: aws.String(arnOf(group))})
	if err != nil {
		return nil, err
	}
	if out.Tags == nil {
		return map[string]string{}, nil
	}
	return out.Tags, nil
}

func putKey(ctx context.Context, c *call) error {
	if !c.Has("KmsKeyId") {
		_, err := c.Client.DisassociateKmsKey(ctx, &cloudwatchlogs.DisassociateKmsKeyInput{LogGroupName: &c.PhysicalID})
		return err
	}
	_, err := c.Client.AssociateKmsKey(ctx, &cloudwatchlogs.AssociateKmsKeyInput{LogGroupName: &c.PhysicalID, KmsKeyId: aws.String(c.Text("KmsKeyId"))})
	return err
}

// putRetention: events of a group without the property never expire.
func putRetention(ctx context.Context, c *call) error {
	if !c.Has("RetentionInDays") {
		_, err := c.Client.DeleteRetentionPolicy(ctx, &cloudwatchlogs.DeleteRetentionPolicyInput{LogGroupName: &c.PhysicalID})
		return err
	}
	in := cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: &c.PhysicalID}
	if err := direct.Into(c.Properties, &in, nil, "RetentionInDays"); err != nil {
		return err
	}
	_, err := c.Client.PutRetentionPolicy(ctx, &in)
	return err
}

func putDataProtection(ctx context.Context, c *call) error {
	if !c.Has("DataProtectionPolicy") {
		_, err := c.Client.DeleteDataProtectionPolicy(ctx, &cloudwatchlogs.DeleteDataProtectionPolicyInput{LogGroupIdentifier: &c.PhysicalID})
		return err
	}
	document, err := direct.Document(c.Properties["DataProtectionPolicy"])
	if err != nil {
		return err
	}
	_, err = c.Client.PutDataProtectionPolicy(ctx, &cloudwatchlogs.PutDataProtectionPolicyInput{LogGroupIdentifier: &c.PhysicalID, PolicyDocument: &document})
	return err
}

// putIndexPolicy: the property is a list, of which a group can have one.
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutIndexPolicy.html
func putIndexPolicy(ctx context.Context, c *call) error {
	list, _ := c.Properties["FieldIndexPolicies"].([]any)
	switch len(list) {
	case 0:
		_, err := c.Client.DeleteIndexPolicy(ctx, &cloudwatchlogs.DeleteIndexPolicyInput{LogGroupIdentifier: &c.PhysicalID})
		return errorKinds.Unless(err, provider.KindNotFound)
	case 1:
		document, err := direct.Document(list[0])
		if err != nil {
			return err
		}
		_, err = c.Client.PutIndexPolicy(ctx, &cloudwatchlogs.PutIndexPolicyInput{LogGroupIdentifier: &c.PhysicalID, PolicyDocument: &document})
		return err
	}
	return direct.Invalid("a log group can have one field index policy")
}

// readLogGroup asks for policies only where the group says that it has one, or the record does.
func readLogGroup(ctx context.Context, c *call) (direct.Live, error) {
	group, err := getLogGroup(ctx, c, c.PhysicalID)
	if err != nil {
		return direct.Live{}, err
	}
	tags, err := tagsOf(ctx, c, group)
	if err != nil {
		return direct.Live{}, err
	}
	properties := direct.From(c.Type, group, nil)
	properties["Tags"] = direct.TagModel(tags)
	if group.DataProtectionStatus == types.DataProtectionStatusActivated || c.Known("DataProtectionPolicy") != nil {
		out, err := c.Client.GetDataProtectionPolicy(ctx, &cloudwatchlogs.GetDataProtectionPolicyInput{LogGroupIdentifier: &c.PhysicalID})
		if err != nil {
			return direct.Live{}, err
		}
		properties["DataProtectionPolicy"] = direct.ParseDocument(out.PolicyDocument)
	}
	if len(c.Properties)+len(c.Previous) == 0 || c.Known("FieldIndexPolicies") != nil {
		out, err := c.Client.DescribeIndexPolicies(ctx, &cloudwatchlogs.DescribeIndexPoliciesInput{LogGroupIdentifiers: []string{c.PhysicalID}})
		if err != nil {
			return direct.Live{}, err
		}
		for _, p := range out.IndexPolicies {
			if p.Source == types.IndexSourceLogGroup {
				properties["FieldIndexPolicies"] = []any{direct.ParseDocument(p.PolicyDocument)}
			}
		}
	}
	return direct.Live{Properties: properties, Attributes: map[string]any{"Arn": arnOf(group) + ":*"}}, nil
}
