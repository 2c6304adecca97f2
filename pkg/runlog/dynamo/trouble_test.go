//go:build emulators

package dynamo_test

import (
	"context"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
)

// troubled is DynamoDB on a bad day, which no emulator has: some calls are refused because of a transaction
// in flight or because of too much traffic, and of some writes the answer is lost, so that the client has
// sent them again. What happens follows from the number of the call.
type troubled struct {
	dynamo.API
	n atomic.Int64
}

// refused returns the error of a call that is refused.
func refused(n int64, transaction bool) error {
	switch {
	case n%3 != 0:
		return nil
	case n%2 == 0:
		return &types.ProvisionedThroughputExceededException{Message: aws.String("too much")}
	case transaction:
		return &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{
			{Code: aws.String("None")}, {Code: aws.String("TransactionConflict")},
		}}
	}
	return &types.TransactionConflictException{Message: aws.String("in flight")}
}

// lost reports whether the answer to a call is lost.
func lost(n int64) bool { return n%5 == 1 }

func (d *troubled) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := refused(d.n.Add(1), false); err != nil {
		return nil, err
	}
	return d.API.GetItem(ctx, in, o...)
}

func (d *troubled) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if err := refused(d.n.Add(1), false); err != nil {
		return nil, err
	}
	// Small pages, as 1 MB of large items would make them.
	if in.Limit == nil {
		small := *in
		small.Limit = aws.Int32(7)
		in = &small
	}
	return d.API.Query(ctx, in, o...)
}

func (d *troubled) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	n := d.n.Add(1)
	if err := refused(n, false); err != nil {
		return nil, err
	}
	if lost(n) {
		_, _ = d.API.PutItem(ctx, in, o...)
	}
	return d.API.PutItem(ctx, in, o...)
}

func (d *troubled) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	n := d.n.Add(1)
	if err := refused(n, true); err != nil {
		return nil, err
	}
	if lost(n) {
		if out, err := d.API.TransactWriteItems(ctx, in, o...); err == nil {
			return out, nil // the token makes the second answer the first
		}
	}
	return d.API.TransactWriteItems(ctx, in, o...)
}

// BatchGetItem answers two keys of three and leaves the rest unprocessed.
func (d *troubled) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	if err := refused(d.n.Add(1), false); err != nil {
		return nil, err
	}
	asked, left := map[string]types.KeysAndAttributes{}, map[string]types.KeysAndAttributes{}
	for name, want := range in.RequestItems {
		some, rest := want, want
		cut := (len(want.Keys)*2 + 2) / 3
		some.Keys, rest.Keys = want.Keys[:cut], want.Keys[cut:]
		asked[name] = some
		if len(rest.Keys) > 0 {
			left[name] = rest
		}
	}
	out, err := d.API.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: asked}, o...)
	if err == nil {
		out.UnprocessedKeys = left
	}
	return out, err
}
