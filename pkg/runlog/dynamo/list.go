package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// maxGet is how many items one BatchGetItem takes.
const maxGet = 100

// ListRuns implements runlog.Store. The index says which runs there are, and may lag by a moment; the headers
// are read from the table as they stand.
func (s *Store) ListRuns(ctx context.Context, f runlog.Filter) ([]runlog.Header, error) {
	in := &dynamodb.QueryInput{
		IndexName:                 aws.String(RunsIndex),
		KeyConditionExpression:    aws.String("listing = :listing"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":listing": text(listingRun)},
		ScanIndexForward:          aws.Bool(false),
	}
	if f.Open {
		in.IndexName, in.KeyConditionExpression = aws.String(OpenIndex), aws.String("unclosed = :listing")
	}
	var where []string
	for _, c := range []struct{ name, value string }{
		{"root", f.Root}, {"account", f.Stack.Account}, {"region", f.Stack.Region}, {"stack", f.Stack.Name},
	} {
		if c.value == "" {
			continue
		}
		if in.ExpressionAttributeNames == nil {
			in.ExpressionAttributeNames = map[string]string{}
		}
		in.ExpressionAttributeNames["#"+c.name] = c.name
		in.ExpressionAttributeValues[":"+c.name] = text(c.value)
		where = append(where, "#"+c.name+" = :"+c.name)
	}
	switch {
	case len(where) > 0:
		in.FilterExpression = aws.String(strings.Join(where, " AND "))
	case f.Limit > 0:
		in.Limit = aws.Int32(int32(min(f.Limit, 1000)))
	}
	var keys []map[string]types.AttributeValue
	err := s.query(ctx, in, func(item map[string]types.AttributeValue) (bool, error) {
		keys = append(keys, key(textOf(item, "pk"), textOf(item, "sk")))
		return f.Limit <= 0 || len(keys) < f.Limit, nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	out := make([]runlog.Header, 0, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), maxGet)
		headers, err := s.headers(ctx, keys[:n])
		if err != nil {
			return nil, fmt.Errorf("listing runs: %w", err)
		}
		for _, h := range headers {
			if !f.Open || h.Status != runlog.StatusClosed {
				out = append(out, h)
			}
		}
		keys = keys[n:]
	}
	return out, nil
}

// headers reads up to maxGet headers in the order of their keys.
func (s *Store) headers(ctx context.Context, keys []map[string]types.AttributeValue) ([]runlog.Header, error) {
	found := map[string]map[string]types.AttributeValue{}
	want := &types.KeysAndAttributes{Keys: keys, ConsistentRead: aws.Bool(true)}
	for n := 0; len(want.Keys) > 0; n++ {
		if n == attempts {
			return nil, fmt.Errorf("%d headers stay unanswered", len(want.Keys))
		}
		if n > 0 {
			if err := s.pause(ctx, n-1); err != nil {
				return nil, err
			}
		}
		var out *dynamodb.BatchGetItemOutput
		err := s.repeat(ctx, func() (err error) {
			out, err = s.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{s.Table: *want},
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, item := range out.Responses[s.Table] {
			found[textOf(item, "pk")] = item
		}
		left := out.UnprocessedKeys[s.Table]
		want.Keys = left.Keys
		if len(out.Responses[s.Table]) > 0 {
			n = 0 // it moves on
		}
	}
	out := make([]runlog.Header, 0, len(keys))
	for _, k := range keys {
		item, ok := found[textOf(k, "pk")]
		if !ok {
			continue
		}
		h, err := s.header(ctx, item)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", textOf(k, "pk"), err)
		}
		out = append(out, h)
	}
	return out, nil
}
