package local

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func headerArgs(h runlog.Header) ([]any, error) {
	if h.RunID == "" {
		return nil, errors.New("storing a run header: it has no run id")
	}
	body, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encoding the header of run %s: %w", h.RunID, err)
	}
	var created int64
	if !h.CreatedAt.IsZero() {
		created = h.CreatedAt.UnixNano()
	}
	return []any{
		h.RunID, h.Root, h.Stack.Account, h.Stack.Region, h.Stack.Name,
		string(h.Status), h.Epoch, created, body,
	}, nil
}

// one reads the single (version, body) row of a query.
func one(ctx context.Context, stmt *sql.Stmt, into any, version *int64, args ...any) error {
	var body []byte
	err := localdb.Retry(ctx, func() error { return stmt.QueryRowContext(ctx, args...).Scan(version, &body) })
	if errors.Is(err, sql.ErrNoRows) {
		return runlog.ErrNotFound
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func scan(rows *sql.Rows, into any, version *int64) error {
	var body []byte
	if err := rows.Scan(version, &body); err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// each runs a query and hands its rows over. query resets what an attempt that met a busy database has
// collected.
func each(ctx context.Context, query func() (*sql.Rows, error), row func(*sql.Rows) error) error {
	return localdb.Retry(ctx, func() error {
		rows, err := query()
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			if err := row(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}
