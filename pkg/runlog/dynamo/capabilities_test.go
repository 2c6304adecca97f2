//go:build emulators

package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/emulators"
)

func item(id string, size int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: id}, "sk": &types.AttributeValueMemberS{Value: "s"},
		"body": &types.AttributeValueMemberS{Value: strings.Repeat("x", size)},
	}
}

func reasons(err error) []string {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return nil
	}
	var out []string
	for _, r := range cancelled.CancellationReasons {
		out = append(out, aws.ToString(r.Code))
	}
	return out
}

// capabilities are what DynamoDB does and the suite, or the store, relies on.
func capabilities(t *testing.T, client *dynamodb.Client) []emulators.Capability {
	name := aws.String(table(t, client).Table)
	put := func(id string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: name, Item: item(id, 1), ConditionExpression: aws.String("attribute_not_exists(pk)"),
		}}
	}
	return []emulators.Capability{
		{Name: "DynamoDB: a cancelled transaction tells every condition that failed",
			Cases: []string{"an operation is written only from the version that was read", "an event whose id is known is dropped",
				"many events are stored in one call", "of many concurrent intents one wins"},
			Probe: func(ctx context.Context) (string, error) {
				in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put("r1"), put("r2")}}
				if _, err := client.TransactWriteItems(ctx, in); err != nil {
					return "", err
				}
				in = &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put("r1"), put("r3"), put("r2")}}
				_, err := client.TransactWriteItems(ctx, in)
				got := reasons(err)
				ok := len(got) == 3 && got[0] == "ConditionalCheckFailed" && got[1] == "None" && got[2] == got[0]
				return emulators.Unless(ok, fmt.Sprint("reasons ", got)), nil
			}},
		{Name: "DynamoDB: a refused PutItem returns the item that stands there",
			Cases: []string{"a header is updated only from the version that was read"},
			Probe: func(ctx context.Context) (string, error) {
				in := &dynamodb.PutItemInput{
					TableName: name, Item: item("old", 1), ConditionExpression: aws.String("attribute_not_exists(pk)"),
					ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
				}
				if _, err := client.PutItem(ctx, in); err != nil {
					return "", err
				}
				_, err := client.PutItem(ctx, in)
				var failed *types.ConditionalCheckFailedException
				return emulators.Unless(errors.As(err, &failed) && len(failed.Item) == 3, fmt.Sprint("it returns ", err)), nil
			}},
		{Name: "DynamoDB: a transaction repeated under its token is answered as the first", Probe: func(ctx context.Context) (string, error) {
			in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("token-1"), TransactItems: []types.TransactWriteItem{put("token")}}
			if _, err := client.TransactWriteItems(ctx, in); err != nil {
				return "", err
			}
			_, err := client.TransactWriteItems(ctx, in)
			return emulators.Unless(err == nil, fmt.Sprint("the repetition is cancelled: ", reasons(err))), nil
		}},
		{Name: "DynamoDB: an item of more than 400 KB is refused", Probe: func(ctx context.Context) (string, error) {
			_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: item("large", 410<<10)})
			return emulators.Unless(err != nil, "410 KB are accepted"), nil
		}},
		{Name: "DynamoDB: TransactionConflict between transactions in flight", Probe: func(ctx context.Context) (string, error) {
			var seen atomic.Bool
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					_, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
						{Put: &types.Put{TableName: name, Item: item("shared", 1)}}, {Put: &types.Put{TableName: name, Item: item(fmt.Sprint("own", i), 1)}},
					}})
					for _, r := range reasons(err) {
						if r == "TransactionConflict" {
							seen.Store(true)
						}
					}
				})
			}
			wg.Wait()
			return emulators.Unless(seen.Load(), "none in 50 concurrent transactions (injected by the suite)"), nil
		}},
	}
}
