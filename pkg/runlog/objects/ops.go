package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func opKey(runID, opID, mark string) string {
	return runsPrefix + escape(runID) + "/ops/" + escape(opID) + "~" + mark + ".json"
}

// PutOp implements runlog.Store.
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
	body, err := encode(op)
	if err != nil {
		return err
	}
	mark := newMark()
	key := opKey(runID, op.OpID, mark)
	// No other call writes under this key: a repetition after a lost answer writes the same.
	if _, err := s.Objects.Put(ctx, key, body, objectstore.Condition{}); err != nil {
		return err
	}
	err = s.desk(runID).hand(ctx, func(doc *runDocument) (bool, error) {
		entry := doc.Ops[op.OpID]
		switch {
		case entry.Mark == mark:
			return true, nil
		case doc.Header.Status != in || doc.Header.Epoch != op.Epoch:
			return false, runlog.ErrFenced
		case entry.Version != read:
			return false, runlog.ErrConflict
		}
		if doc.Ops == nil {
			doc.Ops = map[string]opEntry{}
		}
		doc.Ops[op.OpID] = opEntry{Version: op.Version, Mark: mark}
		return false, nil
	})
	if err == nil {
		s.kept.put(key, body)
	}
	return err
}

// Op implements runlog.Store.
func (s *Store) Op(ctx context.Context, runID, opID string) (runlog.Op, error) {
	var op runlog.Op
	doc, _, err := s.read(ctx, runID)
	if err == nil {
		if entry, ok := doc.Ops[opID]; ok {
			op, err = s.op(ctx, runID, opID, entry)
		} else {
			err = runlog.ErrNotFound
		}
	}
	if err != nil {
		return runlog.Op{}, fmt.Errorf("reading operation %s of run %s: %w", opID, runID, err)
	}
	return op, nil
}

// Ops implements runlog.Store.
func (s *Store) Ops(ctx context.Context, runID string) ([]runlog.Op, error) {
	doc, _, err := s.read(ctx, runID)
	if errors.Is(err, runlog.ErrNotFound) {
		return nil, nil
	}
	ids := slices.Sorted(maps.Keys(doc.Ops))
	out := make([]runlog.Op, len(ids))
	if err == nil {
		var group *errgroup.Group
		group, ctx = errgroup.WithContext(ctx)
		group.SetLimit(parallel)
		for i, id := range ids {
			group.Go(func() (err error) {
				out[i], err = s.op(ctx, runID, id, doc.Ops[id])
				return err
			})
		}
		err = group.Wait()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the operations of run %s: %w", runID, err)
	}
	return out, nil
}

// op reads the record that an entry names. It never changes under its key.
func (s *Store) op(ctx context.Context, runID, opID string, entry opEntry) (runlog.Op, error) {
	var op runlog.Op
	if err := s.unchanging(ctx, opKey(runID, opID, entry.Mark), &op); err != nil {
		return runlog.Op{}, fmt.Errorf("operation %s: %w", opID, err)
	}
	op.Version = entry.Version
	return op, nil
}

// unchanging reads a document that is never written again under its key, once.
func (s *Store) unchanging(ctx context.Context, key string, into any) error {
	body, ok := s.kept.get(key)
	if !ok {
		obj, err := s.Objects.Get(ctx, key)
		if err != nil {
			return err
		}
		body = obj.Body
		s.kept.put(key, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decoding object %q: %w", key, err)
	}
	return nil
}
