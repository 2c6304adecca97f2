package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// A transaction takes 100 items and 4 MB
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html).
const (
	maxBatch      = 100
	maxBatchBytes = 3 << 20
)

// notYet is the condition of an event: the first one of an id is the one that stays. A plain batch write has
// no conditions and would let the last one win.
const notYet = "attribute_not_exists(pk)"

// Append implements runlog.Store. Several events go in transactions of up to a hundred; those that the
// log already has are taken out and the rest is sent again.
func (s *Store) Append(ctx context.Context, events ...runlog.Event) error {
	seen := map[[2]string]bool{}
	var batch []entry
	size := 0
	for _, e := range events {
		if e.RunID == "" || e.ID == "" {
			return errors.New("appending an event: it needs a run id and an id")
		}
	}
	for _, e := range events {
		if id := [2]string{e.RunID, e.ID}; seen[id] {
			continue
		} else {
			seen[id] = true
		}
		item, overflow, err := s.document(ctx, e, runKey(e.RunID), eventSort+e.ID, runObjects(e.RunID)+"event."+e.ID+"."+newMark())
		if err != nil {
			return fmt.Errorf("appending event %s of run %s: %w", e.ID, e.RunID, err)
		}
		bytes := len(textOf(item, "body")) + 4096 // keys and the rest, generously
		if len(batch) == maxBatch || size+bytes > maxBatchBytes {
			if err := s.appendBatch(ctx, batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
		batch, size = append(batch, entry{item: item, overflow: overflow}), size+bytes
	}
	return s.appendBatch(ctx, batch)
}

// entry is an event ready to be written.
type entry struct {
	item     map[string]types.AttributeValue
	overflow string
}

func (s *Store) appendBatch(ctx context.Context, batch []entry) error {
	for len(batch) > 0 {
		known, err := s.appendOnce(ctx, batch)
		if err != nil {
			run, _ := strings.CutPrefix(textOf(batch[0].item, "pk"), RunPartitions)
			return fmt.Errorf("appending events of run %s: %w", run, err)
		}
		if len(known) == 0 {
			return nil
		}
		var rest []entry
		for i, e := range batch {
			if slices.Contains(known, i) {
				s.discard(ctx, e.overflow)
				continue
			}
			rest = append(rest, e)
		}
		batch = rest
	}
	return nil
}

// appendOnce writes the batch as a whole, or returns the positions of the events that the log already has.
func (s *Store) appendOnce(ctx context.Context, batch []entry) (known []int, err error) {
	if len(batch) == 1 {
		err = s.repeat(ctx, func() error {
			_, err := s.Client.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: &s.Table, Item: batch[0].item, ConditionExpression: aws.String(notYet),
			})
			return err
		})
		if _, refused := refusedBy(err); refused {
			return []int{0}, nil
		}
		return nil, err
	}
	mark := newMark()
	tx := &dynamodb.TransactWriteItemsInput{ClientRequestToken: &mark}
	for _, e := range batch {
		tx.TransactItems = append(tx.TransactItems, types.TransactWriteItem{Put: &types.Put{
			TableName: &s.Table, Item: e.item, ConditionExpression: aws.String(notYet),
		}})
	}
	err = s.repeat(ctx, func() error {
		_, err := s.Client.TransactWriteItems(ctx, tx)
		return err
	})
	if known := failedConditions(err); len(known) > 0 {
		return known, nil
	}
	return nil, err
}

// Events implements runlog.Store.
func (s *Store) Events(ctx context.Context, runID, after string) ([]runlog.Event, error) {
	var out []runlog.Event
	err := s.query(ctx, between(runKey(runID), eventSort+after, eventSortEnd), func(item map[string]types.AttributeValue) (bool, error) {
		var e runlog.Event
		if err := s.decode(ctx, item, &e); err != nil {
			return false, err
		}
		if e.ID != after { // a range in DynamoDB has both its ends
			out = append(out, e)
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the events of run %s: %w", runID, err)
	}
	return out, nil
}
