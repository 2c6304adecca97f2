// Package dynamo is the run log of the control plane: one DynamoDB table.
//
//	pk                               sk          what
//	run#{run id}                     header      the run's header
//	run#{run id}                     event#{id}  one event
//	ops#{run id}                     op#{id}     one operation's record
//	stack#{account}#{region}#{name}  head        the run that is on the stack now
//
// Every item is a JSON document with the few members beside it that conditions and the index need. What must
// hold together is written in one transaction; what must be decided on is read with strong consistency. The
// indexes list runs, newest first. Operations have partitions of their own, because what the records before them hold
// is not for everybody who may follow a run: IAM tells partitions apart, and not sort keys
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html).
package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// API is the part of the DynamoDB client that is used.
type API interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

var _ API = (*dynamodb.Client)(nil)

// Store is a runlog.Store in one table. It is safe for concurrent use.
type Store struct {
	Client API
	// Table is the name of a table that Table defines.
	Table string
	// Objects takes the documents that are too large for an item. Without it they are refused.
	Objects objectstore.Store
	// Clock is what repeats wait on. Nil is real time.
	Clock clock.Clock
}

var _ runlog.Store = (*Store)(nil)

// fenceGrace is how long UpdateHeader waits after a fence. An intent whose check of the header came before
// the fence is accepted, but its own item may be written a moment later: a transaction is applied item by
// item, and a query is not serialized with it
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html, "Isolation levels").
// Who has fenced a run reads its operations next, and must find that intent.
const fenceGrace = time.Second

// CreateRun implements runlog.Store.
func (s *Store) CreateRun(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	h.Version = 1
	_, err := s.putHeader(ctx, h, "attribute_not_exists(pk)", nil)
	if _, refused := refusedBy(err); refused {
		err = runlog.ErrExists
	}
	if err != nil {
		return runlog.Header{}, fmt.Errorf("creating run %s: %w", h.RunID, err)
	}
	return h, nil
}

// Header implements runlog.Store.
func (s *Store) Header(ctx context.Context, runID string) (runlog.Header, error) {
	var h runlog.Header
	item, err := s.get(ctx, runKey(runID), headerSort)
	if err == nil {
		h, err = s.header(ctx, item)
	}
	if err != nil {
		return runlog.Header{}, fmt.Errorf("reading run %s: %w", runID, err)
	}
	return h, nil
}

// UpdateHeader implements runlog.Store. An update that raises the epoch is a fence: it returns only when
// every operation that was accepted before it can be read.
func (s *Store) UpdateHeader(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	read := h.Version
	h.Version++
	old, err := s.putHeader(ctx, h, "#version = :read", map[string]types.AttributeValue{":read": number(read)})
	if item, refused := refusedBy(err); refused {
		if err = runlog.ErrConflict; len(item) == 0 {
			err = runlog.ErrNotFound
		}
	}
	if err == nil && intOf(old, "epoch") < int64(h.Epoch) {
		err = s.clock().Sleep(ctx, fenceGrace)
	}
	if err != nil {
		return runlog.Header{}, fmt.Errorf("updating run %s: %w", h.RunID, err)
	}
	return h, nil
}

// putHeader writes a header under a condition and returns the item that stood there. A write whose answer was
// lost is refused when it is sent again; its mark tells that it is this very write that stands there.
func (s *Store) putHeader(ctx context.Context, h runlog.Header, condition string, values map[string]types.AttributeValue) (map[string]types.AttributeValue, error) {
	if h.RunID == "" {
		return nil, errors.New("it has no run id")
	}
	mark := newMark()
	item, overflow, err := s.document(ctx, h, runKey(h.RunID), headerSort, runObjects(h.RunID)+"header."+mark)
	if err != nil {
		return nil, err
	}
	item["version"], item["epoch"] = number(h.Version), number(int64(h.Epoch))
	item["status"], item["mark"] = text(string(h.Status)), text(mark)
	item["listing"], item["created"] = text(listingRun), text(createdSort(h))
	if h.Status != runlog.StatusClosed {
		item["unclosed"] = text(listingRun)
	}
	item["root"], item["account"] = text(h.Root), text(h.Stack.Account)
	item["region"], item["stack"] = text(h.Stack.Region), text(h.Stack.Name)
	in := &dynamodb.PutItemInput{
		TableName: &s.Table, Item: item, ConditionExpression: &condition, ExpressionAttributeValues: values,
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if len(values) > 0 {
		in.ExpressionAttributeNames = map[string]string{"#version": "version"}
	}
	var out *dynamodb.PutItemOutput
	err = s.repeat(ctx, func() (err error) {
		out, err = s.Client.PutItem(ctx, in)
		return err
	})
	if stands, refused := refusedBy(err); refused && textOf(stands, "mark") == mark {
		return nil, nil
	}
	if err != nil {
		s.discard(ctx, overflow)
		return nil, err
	}
	return out.Attributes, nil
}

// header reads a header from its item.
func (s *Store) header(ctx context.Context, item map[string]types.AttributeValue) (runlog.Header, error) {
	var h runlog.Header
	if err := s.decode(ctx, item, &h); err != nil {
		return runlog.Header{}, err
	}
	h.Version = intOf(item, "version")
	return h, nil
}

// SetHead implements runlog.Store.
func (s *Store) SetHead(ctx context.Context, stack runlog.StackRef, runID string) error {
	err := s.repeat(ctx, func() error {
		_, err := s.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.Table, Item: map[string]types.AttributeValue{
			"pk": text(stackKey(stack)), "sk": text(headSort), "run": text(runID),
		}})
		return err
	})
	if err != nil {
		return fmt.Errorf("setting the head of stack %s: %w", stack.Name, err)
	}
	return nil
}

// Head implements runlog.Store.
func (s *Store) Head(ctx context.Context, stack runlog.StackRef) (string, error) {
	item, err := s.get(ctx, stackKey(stack), headSort)
	if errors.Is(err, runlog.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the head of stack %s: %w", stack.Name, err)
	}
	return textOf(item, "run"), nil
}

// get reads one item, or returns runlog.ErrNotFound.
func (s *Store) get(ctx context.Context, pk, sk string) (map[string]types.AttributeValue, error) {
	var out *dynamodb.GetItemOutput
	err := s.repeat(ctx, func() (err error) {
		out, err = s.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.Table, Key: key(pk, sk), ConsistentRead: aws.Bool(true)})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(out.Item) == 0 {
		return nil, runlog.ErrNotFound
	}
	return out.Item, nil
}

// query hands over every item of a query, page by page; more says whether to go on after one.
func (s *Store) query(ctx context.Context, in *dynamodb.QueryInput, each func(map[string]types.AttributeValue) (more bool, err error)) error {
	in.TableName = &s.Table
	for {
		var page *dynamodb.QueryOutput
		err := s.repeat(ctx, func() (err error) {
			page, err = s.Client.Query(ctx, in)
			return err
		})
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if more, err := each(item); err != nil || !more {
				return err
			}
		}
		if len(page.LastEvaluatedKey) == 0 {
			return nil
		}
		in.ExclusiveStartKey = page.LastEvaluatedKey
	}
}

// between is a strongly consistent query for the items of a partition whose sort keys lie between two, inclusively.
func between(pk, from, to string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		KeyConditionExpression: aws.String("pk = :pk AND sk BETWEEN :from AND :to"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": text(pk), ":from": text(from), ":to": text(to),
		},
		ConsistentRead: aws.Bool(true),
	}
}

func (s *Store) clock() clock.Clock {
	if s.Clock == nil {
		return clock.Real{}
	}
	return s.Clock
}

func text(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }

func number(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

// textOf and intOf read a member of an item; one that is not there is zero.
func textOf(item map[string]types.AttributeValue, name string) string {
	v, _ := item[name].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

func intOf(item map[string]types.AttributeValue, name string) int64 {
	v, _ := item[name].(*types.AttributeValueMemberN)
	if v == nil {
		return 0
	}
	n, _ := strconv.ParseInt(v.Value, 10, 64) // the store has written it
	return n
}
