// Package local is the run log of --local: four tables in the SQLite file that localdb opens.
package local

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Store is a runlog.Store in a database that localdb.Open has opened.
type Store struct {
	db   *sql.DB
	stmt statements
}

type statements struct {
	createRun, header, updateHeader    *sql.Stmt
	setHead, head                      *sql.Stmt
	insertOp, updateOp, fence, op, ops *sql.Stmt
	insertEvent, events                *sql.Stmt
}

var _ runlog.Store = (*Store)(nil)

// New prepares a run log on db. It does not close db.
func New(db *sql.DB) (*Store, error) {
	s := &Store{db: db}
	for _, p := range []struct {
		dst   **sql.Stmt
		query string
	}{
		{&s.stmt.createRun, `INSERT INTO runs (run_id, root, account, region, name, status, epoch, created, version, body)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?) ON CONFLICT DO NOTHING`},
		{&s.stmt.header, "SELECT version, body FROM runs WHERE run_id = ?"},
		{&s.stmt.updateHeader, `UPDATE runs SET root = ?2, account = ?3, region = ?4, name = ?5, status = ?6, epoch = ?7,
			created = ?8, version = version + 1, body = ?9 WHERE run_id = ?1 AND version = ?10`},
		{&s.stmt.setHead, `INSERT INTO heads (account, region, name, run_id) VALUES (?1, ?2, ?3, ?4)
			ON CONFLICT (account, region, name) DO UPDATE SET run_id = ?4`},
		{&s.stmt.head, "SELECT run_id FROM heads WHERE account = ? AND region = ? AND name = ?"},
		// The fence and the version are conditions of the one statement that writes.
		{&s.stmt.insertOp, `INSERT INTO ops (run_id, op_id, version, body)
			SELECT ?1, ?2, 1, ?3 FROM runs WHERE run_id = ?1 AND status = ?4 AND epoch = ?5
			ON CONFLICT (run_id, op_id) DO NOTHING`},
		{&s.stmt.updateOp, `UPDATE ops SET version = version + 1, body = ?3 WHERE run_id = ?1 AND op_id = ?2 AND version = ?6
			AND EXISTS (SELECT 1 FROM runs WHERE run_id = ?1 AND status = ?4 AND epoch = ?5)`},
		{&s.stmt.fence, "SELECT status, epoch FROM runs WHERE run_id = ?"},
		{&s.stmt.op, "SELECT version, body FROM ops WHERE run_id = ? AND op_id = ?"},
		{&s.stmt.ops, "SELECT version, body FROM ops WHERE run_id = ? ORDER BY op_id"},
		{&s.stmt.insertEvent, "INSERT INTO events (run_id, id, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"},
		{&s.stmt.events, "SELECT body FROM events WHERE run_id = ? AND id > ? ORDER BY id"},
	} {
		stmt, err := db.Prepare(p.query)
		if err != nil {
			return nil, fmt.Errorf("preparing the local run log: %w", err)
		}
		*p.dst = stmt
	}
	return s, nil
}

// CreateRun implements runlog.Store.
func (s *Store) CreateRun(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	args, err := headerArgs(h)
	if err != nil {
		return runlog.Header{}, err
	}
	n, err := localdb.Exec(ctx, s.stmt.createRun, args...)
	if err != nil {
		return runlog.Header{}, fmt.Errorf("creating run %s: %w", h.RunID, err)
	}
	if n == 0 {
		return runlog.Header{}, fmt.Errorf("creating run %s: %w", h.RunID, runlog.ErrExists)
	}
	h.Version = 1
	return h, nil
}

// Header implements runlog.Store.
func (s *Store) Header(ctx context.Context, runID string) (runlog.Header, error) {
	var h runlog.Header
	if err := one(ctx, s.stmt.header, &h, &h.Version, runID); err != nil {
		return runlog.Header{}, fmt.Errorf("reading run %s: %w", runID, err)
	}
	return h, nil
}

// UpdateHeader implements runlog.Store.
func (s *Store) UpdateHeader(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	args, err := headerArgs(h)
	if err != nil {
		return runlog.Header{}, err
	}
	n, err := localdb.Exec(ctx, s.stmt.updateHeader, append(args, h.Version)...)
	if err != nil {
		return runlog.Header{}, fmt.Errorf("updating run %s: %w", h.RunID, err)
	}
	if n == 0 {
		if _, err := s.Header(ctx, h.RunID); err != nil {
			return runlog.Header{}, err
		}
		return runlog.Header{}, fmt.Errorf("updating run %s: %w", h.RunID, runlog.ErrConflict)
	}
	h.Version++
	return h, nil
}

// ListRuns implements runlog.Store.
func (s *Store) ListRuns(ctx context.Context, f runlog.Filter) ([]runlog.Header, error) {
	var where []string
	var args []any
	for _, c := range []struct{ column, value string }{
		{"root", f.Root}, {"account", f.Stack.Account}, {"region", f.Stack.Region}, {"name", f.Stack.Name},
	} {
		if c.value != "" {
			where = append(where, c.column+" = ?")
			args = append(args, c.value)
		}
	}
	if f.Open {
		where = append(where, "status <> ?")
		args = append(args, string(runlog.StatusClosed))
	}
	query := "SELECT version, body FROM runs"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	query += " ORDER BY created DESC, run_id DESC"
	if f.Limit > 0 {
		query += " LIMIT ?"
		args = append(args, f.Limit)
	}
	var out []runlog.Header
	err := each(ctx, func() (*sql.Rows, error) { out = nil; return s.db.QueryContext(ctx, query, args...) },
		func(rows *sql.Rows) error {
			var h runlog.Header
			if err := scan(rows, &h, &h.Version); err != nil {
				return err
			}
			out = append(out, h)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	return out, nil
}

// SetHead implements runlog.Store.
func (s *Store) SetHead(ctx context.Context, stack runlog.StackRef, runID string) error {
	if _, err := localdb.Exec(ctx, s.stmt.setHead, stack.Account, stack.Region, stack.Name, runID); err != nil {
		return fmt.Errorf("recording run %s as the head of stack %s: %w", runID, stack.Name, err)
	}
	return nil
}

// Head implements runlog.Store.
func (s *Store) Head(ctx context.Context, stack runlog.StackRef) (string, error) {
	var runID string
	err := localdb.Retry(ctx, func() error {
		return s.stmt.head.QueryRowContext(ctx, stack.Account, stack.Region, stack.Name).Scan(&runID)
	})
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("reading the head of stack %s: %w", stack.Name, err)
	}
	return runID, nil
}

// PutOp implements runlog.Store.
func (s *Store) PutOp(ctx context.Context, runID string, in runlog.Status, op runlog.Op) (runlog.Op, error) {
	body, err := json.Marshal(op)
	if err != nil {
		return runlog.Op{}, fmt.Errorf("encoding operation %s: %w", op.OpID, err)
	}
	stmt, args := s.stmt.insertOp, []any{runID, op.OpID, body, string(in), op.Epoch}
	if op.Version != 0 {
		stmt, args = s.stmt.updateOp, append(args, op.Version)
	}
	n, err := localdb.Exec(ctx, stmt, args...)
	if err == nil && n == 0 {
		err = s.refusal(ctx, runID, in, op.Epoch)
	}
	if err != nil {
		return runlog.Op{}, fmt.Errorf("recording operation %s of run %s: %w", op.OpID, runID, err)
	}
	op.Version++
	return op, nil
}

// refusal says why PutOp changed nothing: a fence is final, so it is reported before a version conflict.
func (s *Store) refusal(ctx context.Context, runID string, in runlog.Status, epoch int) error {
	var status string
	var stored int
	err := localdb.Retry(ctx, func() error {
		return s.stmt.fence.QueryRowContext(ctx, runID).Scan(&status, &stored)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return runlog.ErrNotFound
	case err != nil:
		return err
	case status != string(in) || stored != epoch:
		return runlog.ErrFenced
	}
	return runlog.ErrConflict
}

// Op implements runlog.Store.
func (s *Store) Op(ctx context.Context, runID, opID string) (runlog.Op, error) {
	var op runlog.Op
	if err := one(ctx, s.stmt.op, &op, &op.Version, runID, opID); err != nil {
		return runlog.Op{}, fmt.Errorf("reading operation %s of run %s: %w", opID, runID, err)
	}
	return op, nil
}

// Ops implements runlog.Store.
func (s *Store) Ops(ctx context.Context, runID string) ([]runlog.Op, error) {
	var out []runlog.Op
	err := each(ctx, func() (*sql.Rows, error) { out = nil; return s.stmt.ops.QueryContext(ctx, runID) },
		func(rows *sql.Rows) error {
			var op runlog.Op
			if err := scan(rows, &op, &op.Version); err != nil {
				return err
			}
			out = append(out, op)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("reading the operations of run %s: %w", runID, err)
	}
	return out, nil
}

// Append implements runlog.Store. All events of one call are stored in one transaction.
func (s *Store) Append(ctx context.Context, events ...runlog.Event) error {
	if len(events) == 0 {
		return nil
	}
	bodies := make([][]byte, len(events))
	for i, e := range events {
		if e.RunID == "" || e.ID == "" {
			return fmt.Errorf("appending event %s: it has no run or no id", e.Type)
		}
		body, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encoding event %s of run %s: %w", e.ID, e.RunID, err)
		}
		bodies[i] = body
	}
	if len(events) == 1 {
		if _, err := localdb.Exec(ctx, s.stmt.insertEvent, events[0].RunID, events[0].ID, bodies[0]); err != nil {
			return fmt.Errorf("appending an event of run %s: %w", events[0].RunID, err)
		}
		return nil
	}
	err := localdb.Retry(ctx, func() error {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		insert := tx.StmtContext(ctx, s.stmt.insertEvent)
		for i, e := range events {
			if _, err := insert.ExecContext(ctx, e.RunID, e.ID, bodies[i]); err != nil {
				return err
			}
		}
		return tx.Commit()
	})
	if err != nil {
		return fmt.Errorf("appending events of run %s: %w", events[0].RunID, err)
	}
	return nil
}

// Events implements runlog.Store.
func (s *Store) Events(ctx context.Context, runID, after string) ([]runlog.Event, error) {
	var out []runlog.Event
	err := each(ctx, func() (*sql.Rows, error) { out = nil; return s.stmt.events.QueryContext(ctx, runID, after) },
		func(rows *sql.Rows) error {
			var body []byte
			if err := rows.Scan(&body); err != nil {
				return err
			}
			var e runlog.Event
			if err := json.Unmarshal(body, &e); err != nil {
				return err
			}
			out = append(out, e)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("reading the events of run %s: %w", runID, err)
	}
	return out, nil
}
