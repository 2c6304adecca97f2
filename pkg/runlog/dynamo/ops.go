package dynamo

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// PutOp implements runlog.Store: one transaction checks the header and writes the record.
func (s *Store) PutOp(ctx context.Context, runID string, in runlog.Status, op runlog.Op) (runlog.Op, error) {
	read := op.Version
	op.Version++
	if err := s.putOp(ctx, runID, in, op, read); err != nil {
		return runlog.Op{}, fmt.Errorf("recording operation %s of run %s: %w", op.OpID, runID, err)
	}
	return op, nil
}

func (s *Store) putOp(ctx context.Context, runID string, in runlog.Status, op runlog.Op, read int64) error {
	if runID == "" || op.OpID == "" {
		return errors.New("it needs a run id and an operation id")
	}
	mark := newMark()
	item, overflow, err := s.document(ctx, op, opsKey(runID), opSort+op.OpID, runObjects(runID)+"op."+op.OpID+"."+mark)
	if err != nil {
		return err
	}
	item["version"] = number(op.Version)
	put := &types.Put{TableName: &s.Table, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)")}
	if read != 0 {
		put.ConditionExpression = aws.String("#version = :read")
		put.ExpressionAttributeNames = map[string]string{"#version": "version"}
		put.ExpressionAttributeValues = map[string]types.AttributeValue{":read": number(read)}
	}
	tx := &dynamodb.TransactWriteItemsInput{
		// DynamoDB answers a transaction that is sent again under its token, because the first answer was
		// lost, as it has answered the first.
		ClientRequestToken: &mark,
		TransactItems: []types.TransactWriteItem{
			{ConditionCheck: &types.ConditionCheck{
				TableName: &s.Table, Key: key(runKey(runID), headerSort),
				ConditionExpression:      aws.String("#status = :status AND #epoch = :epoch"),
				ExpressionAttributeNames: map[string]string{"#status": "status", "#epoch": "epoch"},
				ExpressionAttributeValues: map[string]types.AttributeValue{
					":status": text(string(in)), ":epoch": number(int64(op.Epoch)),
				},
			}},
			{Put: put},
		},
	}
	err = s.repeat(ctx, func() error {
		_, err := s.Client.TransactWriteItems(ctx, tx)
		return err
	})
	if err == nil {
		return nil
	}
	s.discard(ctx, overflow)
	if len(failedConditions(err)) == 0 {
		return err
	}
	// Which of the two it was decides what the caller does, and a fence comes first: the header is asked,
	// whatever the reasons of the cancellation say.
	h, readErr := s.get(ctx, runKey(runID), headerSort)
	switch {
	case readErr != nil:
		return readErr
	case textOf(h, "status") != string(in) || intOf(h, "epoch") != int64(op.Epoch):
		return runlog.ErrFenced
	case failedConditions(err)[0] == 0:
		// It was fenced at the time of the call and is not any more: the version is not known to be stale.
		return runlog.ErrFenced
	}
	return runlog.ErrConflict
}

// Op implements runlog.Store.
func (s *Store) Op(ctx context.Context, runID, opID string) (runlog.Op, error) {
	var op runlog.Op
	item, err := s.get(ctx, opsKey(runID), opSort+opID)
	if err == nil {
		op, err = s.op(ctx, item)
	}
	if err != nil {
		return runlog.Op{}, fmt.Errorf("reading operation %s of run %s: %w", opID, runID, err)
	}
	return op, nil
}

// Ops implements runlog.Store.
func (s *Store) Ops(ctx context.Context, runID string) ([]runlog.Op, error) {
	var out []runlog.Op
	err := s.query(ctx, between(opsKey(runID), opSort, opSortEnd), func(item map[string]types.AttributeValue) (bool, error) {
		op, err := s.op(ctx, item)
		out = append(out, op)
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the operations of run %s: %w", runID, err)
	}
	return out, nil
}

// op reads an operation's record from its item.
func (s *Store) op(ctx context.Context, item map[string]types.AttributeValue) (runlog.Op, error) {
	var op runlog.Op
	if err := s.decode(ctx, item, &op); err != nil {
		return runlog.Op{}, err
	}
	op.Version = intOf(item, "version")
	return op, nil
}
