package dynamodb

import (
	"context"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// renames are what the API calls otherwise than CloudFormation.
var renames = direct.Renames{"SSESpecification/SSEEnabled": "Enabled"}

// atOnce are the properties that CreateTable sets and UpdateTable changes, one kind of them at a time.
var atOnce = []string{
	"AttributeDefinitions", "BillingMode", "DeletionProtectionEnabled", "GlobalSecondaryIndexes", "OnDemandThroughput", "ProvisionedThroughput",
	"SSESpecification", "StreamSpecification", "TableClass", "WarmThroughput",
}

func table() direct.Kind[*dynamodb.Client] {
	return direct.Kind[*dynamodb.Client]{
		Type: "AWS::DynamoDB::Table", Identity: direct.ByName,
		CreateOnly: []string{"TableName", "KeySchema", "LocalSecondaryIndexes"},
		Create:     createTable, Find: findTable, Stable: stableTable, Read: readTable,
		Facets: []direct.Facet[*dynamodb.Client]{
			{
				Properties: atOnce, Created: true, Put: putTable, Settle: true,
				// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html
				Defaults: map[string]any{"BillingMode": "PROVISIONED", "DeletionProtectionEnabled": false, "TableClass": "STANDARD"},
			},
			{Properties: []string{"StreamSpecification"}, Put: putStream},
			{Properties: []string{"TimeToLiveSpecification"}, Put: putTimeToLive},
			{Properties: []string{"PointInTimeRecoverySpecification"}, Put: putRecovery},
			{Properties: []string{"ContributorInsightsSpecification", "GlobalSecondaryIndexes"}, Put: putInsights},
			{Properties: []string{"KinesisStreamSpecification"}, Put: putKinesis},
			{Properties: []string{"ResourcePolicy"}, Created: true, Put: func(ctx context.Context, c *call) error {
				return putPolicy(ctx, c, tableARN(c), c.Properties["ResourcePolicy"])
			}},
			direct.Tags("Tags",
				func(ctx context.Context, c *call, tags map[string]string) error {
					_, err := c.Client.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: aws.String(tableARN(c)), Tags: direct.TagList(tags, tag)})
					return err
				},
				func(ctx context.Context, c *call, keys []string) error {
					_, err := c.Client.UntagResource(ctx, &dynamodb.UntagResourceInput{ResourceArn: aws.String(tableARN(c)), TagKeys: keys})
					return err
				}),
		},
		Unhandled: map[string]string{
			"ImportSourceSpecification": "a table that is made from data is made by another call",
			"VectorIndexes":             "rare",
		},
		Delete: func(ctx context.Context, c *call) error {
			_, err := c.Client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &c.PhysicalID})
			return err
		},
		Gone: func(ctx context.Context, c *call) (bool, error) {
			_, err := describe(ctx, c)
			return false, err
		},
	}
}

func tableARN(c *call) string {
	return fmt.Sprintf("arn:%s:dynamodb:%s:%s:table/%s", direct.Partition(c.Region), c.Region, c.Account, c.PhysicalID)
}

func createTable(ctx context.Context, c *call) (string, error) {
	in := dynamodb.CreateTableInput{Tags: direct.TagList(c.Tags(), tag)}
	properties := maps.Clone(c.Properties)
	var indexes []any
	for _, index := range objects(c.Properties["GlobalSecondaryIndexes"]) {
		indexes = append(indexes, without(index, "ContributorInsightsSpecification"))
	}
	properties["GlobalSecondaryIndexes"] = nil
	if len(indexes) > 0 {
		properties["GlobalSecondaryIndexes"] = indexes
	}
	if stream := object(c.Properties["StreamSpecification"]); stream != nil {
		stream = without(stream, "ResourcePolicy", "Tags")
		stream["StreamEnabled"] = true
		properties["StreamSpecification"] = stream
	}
	if err := direct.Into(properties, &in, renames, append([]string{"TableName", "KeySchema", "LocalSecondaryIndexes"}, atOnce...)...); err != nil {
		return "", err
	}
	if policy := object(c.Properties["ResourcePolicy"]); policy != nil {
		text, err := direct.Document(policy["PolicyDocument"])
		if err != nil {
			return "", err
		}
		in.ResourcePolicy = &text
	}
	_, err := c.Client.CreateTable(ctx, &in)
	return aws.ToString(in.TableName), taken(err)
}

func findTable(ctx context.Context, c *call) (direct.Found, error) {
	c.PhysicalID = c.Text("TableName")
	if _, err := describe(ctx, c); err != nil { // which tells best that there is none
		return direct.Found{}, err
	}
	tags, err := tableTags(ctx, c)
	if err != nil {
		return direct.Found{}, err
	}
	return direct.Found{ID: c.PhysicalID, Tags: tags}, nil
}

func tableTags(ctx context.Context, c *call) (map[string]string, error) {
	tags := map[string]string{}
	pages := dynamodb.ListTagsOfResourceInput{ResourceArn: aws.String(tableARN(c))}
	for {
		out, err := c.Client.ListTagsOfResource(ctx, &pages)
		if err != nil {
			return nil, err
		}
		maps.Copy(tags, direct.TagMap(out.Tags, pair))
		if out.NextToken == nil {
			return tags, nil
		}
		pages.NextToken = out.NextToken
	}
}

// describe returns the table, NotFound when there is none.
func describe(ctx context.Context, c *call) (*types.TableDescription, error) {
	out, err := c.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &c.PhysicalID})
	if err != nil {
		return nil, err
	}
	return out.Table, nil
}

// stableTable: no other change of a table is possible while one of its indexes is being built.
func stableTable(ctx context.Context, c *call) (direct.Level, error) {
	t, err := describe(ctx, c)
	if err != nil {
		return direct.NotYet, err
	}
	switch t.TableStatus {
	case types.TableStatusActive:
	case types.TableStatusInaccessibleEncryptionCredentials, types.TableStatusArchived, types.TableStatusArchiving:
		return direct.NotYet, &provider.Error{Kind: provider.KindFailed, Code: string(t.TableStatus), Message: "the key of the table can't be used"}
	default:
		return direct.NotYet, nil
	}
	for _, index := range t.GlobalSecondaryIndexes {
		if index.IndexStatus != "" && index.IndexStatus != types.IndexStatusActive {
			return direct.NotYet, nil
		}
	}
	return direct.Settled, nil
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func objects(v any) []map[string]any {
	var out []map[string]any
	list, _ := v.([]any)
	for _, e := range list {
		if m := object(e); m != nil {
			out = append(out, m)
		}
	}
	return out
}

func without(m map[string]any, names ...string) map[string]any {
	out := maps.Clone(m)
	for _, name := range names {
		delete(out, name)
	}
	return out
}
