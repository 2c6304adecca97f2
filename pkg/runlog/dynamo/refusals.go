package dynamo

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// A call is repeated at most attempts times, over about seven seconds. Forty provisioners check one header in
// their transactions, and transactions that meet at an item refuse one another.
const (
	attempts  = 14
	firstWait = 20 * time.Millisecond
	maxWait   = time.Second
)

// The reasons for which a transaction is cancelled
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html).
const (
	reasonCondition = "ConditionalCheckFailed"
	reasonConflict  = "TransactionConflict"
	reasonCapacity  = "ProvisionedThroughputExceeded"
	reasonThrottled = "ThrottlingError"
)

// repeat calls f again while DynamoDB has refused it for now and not for good.
func (s *Store) repeat(ctx context.Context, f func() error) error {
	for n := 0; ; n++ {
		err := f()
		if err == nil || n == attempts-1 || !passing(err) {
			return err
		}
		if sleepErr := s.pause(ctx, n); sleepErr != nil {
			return errors.Join(err, sleepErr)
		}
	}
}

// pause waits before repetition n: longer each time, and somewhere between half of that and all of it, so
// that contenders spread out.
func (s *Store) pause(ctx context.Context, n int) error {
	wait := min(firstWait<<min(n, 10), maxWait)
	return s.clock().Sleep(ctx, wait/2+rand.N(wait/2))
}

// passing reports a refusal that says nothing about the request: too much traffic, or a transaction in flight
// on the same item.
func passing(err error) bool {
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		found := false
		for _, r := range cancelled.CancellationReasons {
			switch aws.ToString(r.Code) {
			case reasonConflict, reasonCapacity, reasonThrottled:
				found = true
			case "", "None":
			default: // a reason that will stay
				return false
			}
		}
		return found
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "TransactionConflictException", "TransactionInProgressException", "ProvisionedThroughputExceededException",
		"ThrottlingException", "RequestLimitExceeded", "ReplicatedWriteConflictException":
		return true
	}
	return false
}

// refusedBy reports whether a single write was refused by its condition, and the item that stood there.
func refusedBy(err error) (item map[string]types.AttributeValue, refused bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true
	}
	return nil, false
}

// failedConditions returns the positions in a cancelled transaction whose conditions did not hold.
func failedConditions(err error) []int {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return nil
	}
	var failed []int
	for i, r := range cancelled.CancellationReasons {
		if aws.ToString(r.Code) == reasonCondition {
			failed = append(failed, i)
		}
	}
	return failed
}
