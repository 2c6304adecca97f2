package localdb

import (
	"context"
	"database/sql"
	"fmt"
)

// schema lists the steps that lead to the current schema. A step is never edited once it was released: the
// file's user_version counts the steps it has seen.
var schema = [...]string{
	// Keys are blobs: SQLite compares them byte by byte, which is S3's order.
	`CREATE TABLE objects (
		key      BLOB PRIMARY KEY NOT NULL,
		etag     TEXT NOT NULL,
		size     INTEGER NOT NULL,
		modified INTEGER NOT NULL, -- Unix milliseconds
		body     BLOB NOT NULL
	);
	CREATE TABLE runs (
		run_id  TEXT PRIMARY KEY NOT NULL,
		root    TEXT NOT NULL,
		account TEXT NOT NULL,
		region  TEXT NOT NULL,
		name    TEXT NOT NULL,
		status  TEXT NOT NULL,
		epoch   INTEGER NOT NULL,
		created INTEGER NOT NULL, -- Unix nanoseconds
		version INTEGER NOT NULL,
		body    BLOB NOT NULL
	);
	CREATE INDEX runs_by_created ON runs (created DESC, run_id DESC);
	CREATE INDEX runs_by_root ON runs (root, created DESC);
	CREATE INDEX runs_by_stack ON runs (name, created DESC);
	CREATE TABLE heads (
		account TEXT NOT NULL,
		region  TEXT NOT NULL,
		name    TEXT NOT NULL,
		run_id  TEXT NOT NULL,
		PRIMARY KEY (account, region, name)
	) WITHOUT ROWID;
	CREATE TABLE ops (
		run_id  TEXT NOT NULL,
		op_id   TEXT NOT NULL,
		version INTEGER NOT NULL,
		body    BLOB NOT NULL,
		PRIMARY KEY (run_id, op_id)
	);
	CREATE TABLE events (
		run_id TEXT NOT NULL,
		id     TEXT NOT NULL,
		body   BLOB NOT NULL,
		PRIMARY KEY (run_id, id)
	) WITHOUT ROWID;`,
	`CREATE TABLE executions (
		arn     TEXT PRIMARY KEY NOT NULL,
		machine TEXT NOT NULL,
		name    TEXT NOT NULL,
		status  TEXT NOT NULL,
		holder  TEXT NOT NULL,
		started INTEGER NOT NULL, -- Unix nanoseconds
		body    BLOB NOT NULL,
		UNIQUE (machine, name)
	);
	CREATE INDEX executions_by_started ON executions (started DESC, arn);
	CREATE TABLE histories (
		arn  TEXT NOT NULL,
		id   INTEGER NOT NULL,
		body BLOB NOT NULL,
		PRIMARY KEY (arn, id)
	) WITHOUT ROWID;`,
}

func migrate(ctx context.Context, db *sql.DB) error {
	var have int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return fmt.Errorf("reading the schema version: %w", err)
	}
	if have == len(schema) {
		return nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("updating the schema: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	// Another process may have done it while this one waited for the lock.
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return fmt.Errorf("reading the schema version: %w", err)
	}
	if have > len(schema) {
		return fmt.Errorf("its schema is version %d, this Slipway knows up to %d: upgrade Slipway", have, len(schema))
	}
	for i := have; i < len(schema); i++ {
		if _, err := tx.ExecContext(ctx, schema[i]); err != nil {
			return fmt.Errorf("updating the schema to version %d: %w", i+1, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(schema))); err != nil {
		return fmt.Errorf("recording the schema version: %w", err)
	}
	return tx.Commit()
}
