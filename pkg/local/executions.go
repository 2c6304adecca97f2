package local

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/localdb"
)

// executions keeps the executions of the local state machines, and their histories, in the local database.
type executions struct{ db *sql.DB }

var _ asl.Store = (*executions)(nil)

// transact runs fn in a transaction, again while another process holds the file.
func (s *executions) transact(ctx context.Context, fn func(*sql.Tx) error) error {
	return localdb.Retry(ctx, func() error {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
}

// Create implements asl.Store.
func (s *executions) Create(ctx context.Context, e asl.Execution, first []asl.Event) (existing asl.Execution, created bool, err error) {
	err = s.transact(ctx, func(tx *sql.Tx) error {
		old, err := scanExecution(tx.QueryRowContext(ctx, `SELECT body FROM executions WHERE machine = ? AND name = ?`, e.Machine, e.Name))
		if err == nil {
			existing, created = old, false
			return nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		body, err := encode(stored(e))
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO executions (arn, machine, name, status, holder, started, body) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			e.ARN, e.Machine, e.Name, e.Status, e.Holder, e.StartedAt.UnixNano(), body); err != nil {
			return err
		}
		existing, created = e, true
		return appendEvents(ctx, tx, e.ARN, first, 0)
	})
	if err != nil {
		return asl.Execution{}, false, fmt.Errorf("creating execution %s: %w", e.ARN, err)
	}
	return existing, created, nil
}

// Finish implements asl.Store.
func (s *executions) Finish(ctx context.Context, arn string, o asl.Outcome, last []asl.Event) (asl.Execution, error) {
	var e asl.Execution
	err := s.transact(ctx, func(tx *sql.Tx) error {
		n, err := s.running(ctx, tx, arn, &e)
		if err != nil {
			return err
		}
		if err := appendEvents(ctx, tx, arn, asl.Numbered(last, n), n); err != nil {
			return err
		}
		e.Status, e.Output, e.Error, e.Cause, e.StoppedAt = o.Status, o.Output, o.Error, o.Cause, o.StoppedAt
		body, err := encode(stored(e))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE executions SET status = ?, body = ? WHERE arn = ?`, e.Status, body, arn)
		return err
	})
	if err != nil {
		if !errors.Is(err, asl.ErrNotRunning) {
			e = asl.Execution{}
		}
		return e, fmt.Errorf("finishing execution %s: %w", arn, err)
	}
	return e, nil
}

// running reads an execution that must still run, and the id of its last event.
func (s *executions) running(ctx context.Context, tx *sql.Tx, arn string, into *asl.Execution) (last int64, err error) {
	*into, err = scanExecution(tx.QueryRowContext(ctx, `SELECT body FROM executions WHERE arn = ?`, arn))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, asl.ErrNotFound
	case err != nil:
		return 0, err
	case into.Status != asl.StatusRunning:
		return 0, asl.ErrNotRunning
	}
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM histories WHERE arn = ?`, arn).Scan(&last)
	return last, err
}

func appendEvents(ctx context.Context, tx *sql.Tx, arn string, events []asl.Event, last int64) error {
	if len(events) == 0 {
		return nil
	}
	insert, err := tx.PrepareContext(ctx, `INSERT INTO histories (arn, id, body) VALUES (?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close() //nolint:errcheck // it ends with the transaction
	for i, ev := range events {
		if ev.ID != last+int64(i)+1 {
			return asl.ErrHistoryGap
		}
		body, err := encode(ev)
		if err != nil {
			return err
		}
		if _, err := insert.ExecContext(ctx, arn, ev.ID, body); err != nil {
			return err
		}
	}
	return nil
}

// Get implements asl.Store.
func (s *executions) Get(ctx context.Context, arn string) (asl.Execution, error) {
	var e asl.Execution
	err := localdb.Retry(ctx, func() (err error) {
		e, err = scanExecution(s.db.QueryRowContext(ctx, `SELECT body FROM executions WHERE arn = ?`, arn))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = asl.ErrNotFound
	}
	if err != nil {
		return asl.Execution{}, fmt.Errorf("execution %s: %w", arn, err)
	}
	return e, nil
}

// AppendHistory implements asl.Store.
func (s *executions) AppendHistory(ctx context.Context, arn string, events []asl.Event) error {
	err := s.transact(ctx, func(tx *sql.Tx) error {
		var e asl.Execution
		last, err := s.running(ctx, tx, arn, &e)
		if err != nil {
			return err
		}
		return appendEvents(ctx, tx, arn, events, last)
	})
	if err != nil {
		return fmt.Errorf("history of execution %s: %w", arn, err)
	}
	return nil
}

// History implements asl.Store.
func (s *executions) History(ctx context.Context, arn string, after int64) ([]asl.Event, error) {
	if _, err := s.Get(ctx, arn); err != nil {
		return nil, err
	}
	events, err := each[asl.Event](ctx, s.db, `SELECT body FROM histories WHERE arn = ? AND id > ? ORDER BY id`, arn, after)
	if err != nil {
		return nil, fmt.Errorf("history of execution %s: %w", arn, err)
	}
	return events, nil
}

// List implements asl.Store.
func (s *executions) List(ctx context.Context, q asl.Query) ([]asl.Execution, error) {
	list, err := each[storedExecution](ctx, s.db, `SELECT body FROM executions
		WHERE (?1 = '' OR machine = ?1) AND (?2 = '' OR status = ?2) AND (?3 = '' OR holder = ?3)
		ORDER BY started DESC, arn`, q.Machine, string(q.Status), q.Holder)
	if err != nil {
		return nil, fmt.Errorf("listing executions: %w", err)
	}
	out := make([]asl.Execution, len(list))
	for i, e := range list {
		out[i] = e.execution()
	}
	return out, nil
}

// each reads a column of JSON documents.
func each[T any](ctx context.Context, db *sql.DB, query string, args ...any) ([]T, error) {
	var out []T
	err := localdb.Retry(ctx, func() error {
		out = []T{}
		rows, err := db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // rows.Err tells
		for rows.Next() {
			var body []byte
			if err := rows.Scan(&body); err != nil {
				return err
			}
			var v T
			if err := json.Unmarshal(body, &v); err != nil {
				return err
			}
			out = append(out, v)
		}
		return rows.Err()
	})
	return out, err
}

func scanExecution(row *sql.Row) (asl.Execution, error) {
	var body []byte
	if err := row.Scan(&body); err != nil {
		return asl.Execution{}, err
	}
	var e storedExecution
	err := json.Unmarshal(body, &e)
	return e.execution(), err
}

// storedExecution keeps the input and output byte for byte, which JSON inside JSON would not.
type storedExecution struct {
	asl.Execution
	RawInput  []byte `json:"rawInput"`
	RawOutput []byte `json:"rawOutput,omitempty"`
}

func stored(e asl.Execution) storedExecution {
	s := storedExecution{Execution: e, RawInput: e.Input, RawOutput: e.Output}
	s.Input, s.Output = nil, nil
	return s
}

func (s storedExecution) execution() asl.Execution {
	s.Input, s.Output = s.RawInput, s.RawOutput
	return s.Execution
}

// encode renders JSON without escaping HTML: an input must come back byte for byte.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
