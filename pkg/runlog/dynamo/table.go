package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// The names in the table that its definition and its readers share.
const (
	// RunsIndex lists the headers of runs by the moment of their creation.
	RunsIndex = "runs"
	// OpenIndex lists the headers of the runs that are not CLOSED: a header that is closed has not the attribute that
	// the index is by.
	OpenIndex = "open"
	// ExpiryAttribute holds when an item may go, in seconds since 1970.
	ExpiryAttribute = "expires"

	listingRun = "run" // the one partition of RunsIndex

	headerSort = "header"
	headSort   = "head"
	eventSort  = "event#"
	opSort     = "op#"
)

// The sort keys that follow every key with the prefix: '$' comes after '#'.
const (
	eventSortEnd = "event$"
	opSortEnd    = "op$"
)

// The prefixes of the partitions that everybody may read who may follow runs: headers and events, and which run is on a
// stack.
const (
	RunPartitions   = "run#"
	StackPartitions = "stack#"
	// RunsPartition is the one partition of RunsIndex.
	RunsPartition = listingRun
)

func runKey(runID string) string { return RunPartitions + runID }

func opsKey(runID string) string { return "ops#" + runID }

func stackKey(s runlog.StackRef) string {
	return StackPartitions + s.Account + "#" + s.Region + "#" + s.Name
}

// createdSort orders the index: a fixed width makes the order of text that of time.
func createdSort(h runlog.Header) string {
	return h.CreatedAt.UTC().Format("2006-01-02T15:04:05.000000000Z") + "#" + h.RunID
}

func key(pk, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": text(pk), "sk": text(sk)}
}

// Table defines the table: on-demand, two indexes. They hold what a filter looks at and nothing that changes in a
// run before its end, so that a header's updates are not written twice; the headers themselves are read from the
// table.
func Table(name string) *dynamodb.CreateTableInput {
	index := func(name, attribute string) types.GlobalSecondaryIndex {
		return types.GlobalSecondaryIndex{
			IndexName: aws.String(name),
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String(attribute), KeyType: types.KeyTypeHash},
				{AttributeName: aws.String("created"), KeyType: types.KeyTypeRange},
			},
			Projection: &types.Projection{
				ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"root", "account", "region", "stack"},
			},
		}
	}
	return &dynamodb.CreateTableInput{
		TableName:   &name,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("listing"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("created"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("unclosed"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{index(RunsIndex, "listing"), index(OpenIndex, "unclosed")},
	}
}

// TimeToLive makes DynamoDB remove what Expire has marked.
func TimeToLive(name string) *dynamodb.UpdateTimeToLiveInput {
	return &dynamodb.UpdateTimeToLiveInput{
		TableName: &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(ExpiryAttribute), Enabled: aws.Bool(true),
		},
	}
}
