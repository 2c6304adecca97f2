package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// expiring is how many items are marked at once.
const expiring = 16

// Expire lets DynamoDB remove the events and the operation journal of a run that is CLOSED, at the moment
// given or some days later (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html). The
// header stays. A run that is not closed is left as it is, and reported as not done: until its results are
// folded into the state, the journal is the only one who knows of them. It may be repeated, and goes on where
// it was interrupted.
func (s *Store) Expire(ctx context.Context, runID string, at time.Time) (done bool, err error) {
	h, err := s.get(ctx, runKey(runID), headerSort)
	if err != nil {
		return false, fmt.Errorf("reading run %s: %w", runID, err)
	}
	if textOf(h, "status") != string(runlog.StatusClosed) {
		return false, nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(expiring)
	for _, in := range []*dynamodb.QueryInput{
		between(runKey(runID), eventSort, eventSortEnd), between(opsKey(runID), opSort, opSortEnd),
	} {
		in.ProjectionExpression = aws.String("pk, sk")
		in.FilterExpression = aws.String("attribute_not_exists(#expires)")
		in.ExpressionAttributeNames = map[string]string{"#expires": ExpiryAttribute}
		queryErr := s.query(ctx, in, func(item map[string]types.AttributeValue) (bool, error) {
			group.Go(func() error { return s.expireItem(ctx, item, at) })
			return ctx.Err() == nil, nil
		})
		if queryErr != nil {
			err = queryErr
			break
		}
	}
	if groupErr := group.Wait(); groupErr != nil {
		err = groupErr
	}
	if err != nil {
		return false, fmt.Errorf("marking the journal of run %s as expiring: %w", runID, err)
	}
	return true, nil
}

func (s *Store) expireItem(ctx context.Context, item map[string]types.AttributeValue, at time.Time) error {
	return s.repeat(ctx, func() error {
		_, err := s.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.Table, Key: key(textOf(item, "pk"), textOf(item, "sk")),
			UpdateExpression:          aws.String("SET #expires = :at"),
			ConditionExpression:       aws.String("attribute_exists(pk)"), // an update would make what is gone
			ExpressionAttributeNames:  map[string]string{"#expires": ExpiryAttribute},
			ExpressionAttributeValues: map[string]types.AttributeValue{":at": number(at.Unix())},
		})
		if _, gone := refusedBy(err); gone {
			return nil
		}
		return err
	})
}
