// Package localdb opens the one SQLite file that --local keeps everything in: objects and the run log. It
// holds the schema and what it takes to share the file between processes; the tables' meaning belongs to
// objectstore/local and runlog/local.
package localdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// BusyTimeout is how long one statement waits for another process's write before it fails with SQLITE_BUSY.
const BusyTimeout = 30 * time.Second

// Open opens the database at path, creates it (mode 0600, parents 0700) if it is not there, and brings its
// schema up to date. A file that a newer Slipway has written is refused.
//
// The file is in WAL mode with synchronous=NORMAL: a killed process loses nothing, a power failure at most
// the last commits, and the file stays consistent in both. Transactions begin IMMEDIATE, so that a
// transaction that reads before it writes can never fail half-way with a stale snapshot
// (https://www.sqlite.org/lang_transaction.html).
//
// The returned pool has one connection. SQLite has one writer anyway, and waiting for the connection is
// fair and exact where SQLite's busy handler would sleep and poll. Therefore a caller must close its rows
// or transaction before it asks for anything else.
func Open(path string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening local database %s: %w", path, err)
	}
	if err := Private(abs); err != nil {
		return nil, fmt.Errorf("opening local database %s: %w", path, err)
	}
	db, err := sql.Open("sqlite", dsn(abs))
	if err != nil {
		return nil, fmt.Errorf("opening local database %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	db.SetConnMaxIdleTime(0)
	ctx, cancel := context.WithTimeout(context.Background(), 2*BusyTimeout)
	defer cancel()
	// Switching a fresh file to WAL takes an exclusive lock for which SQLite does not call the busy handler.
	if err := Retry(ctx, func() error { return migrate(ctx, db) }); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("opening local database %s: %w", path, err)
	}
	return db, nil
}

func dsn(abs string) string {
	p := filepath.ToSlash(abs)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	q := url.Values{}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", BusyTimeout.Milliseconds()))
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous(NORMAL)")
	q.Add("_pragma", "foreign_keys(ON)")
	q.Set("_txlock", "immediate")
	return (&url.URL{Scheme: "file", Path: p, OmitHost: true, RawQuery: q.Encode()}).String()
}

// IsBusy reports whether err is SQLite's "another connection holds the lock": the statement had no effect
// and may be repeated.
func IsBusy(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	primary := e.Code() & 0xff
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}

// Retry calls f until it returns something else than a busy database, or ctx ends, or BusyTimeout has
// passed; the last error is returned. f must be repeatable as a whole: one statement or one transaction.
func Retry(ctx context.Context, f func() error) error {
	deadline := time.Now().Add(BusyTimeout)
	wait := time.Millisecond
	for {
		err := f()
		if err == nil || !IsBusy(err) || time.Now().After(deadline) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), err)
		case <-timer.C:
		}
		wait = min(2*wait, 100*time.Millisecond)
	}
}

// Exec runs a statement, again while another process holds the file, and returns how many rows it has changed.
func Exec(ctx context.Context, stmt *sql.Stmt, args ...any) (int64, error) {
	var n int64
	err := Retry(ctx, func() error {
		res, err := stmt.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}

// Private makes the file of a database that is yet to be opened, with mode 0600 and its parents with 0700. One that
// is there keeps its mode. SQLite gives its -wal and -shm files the mode of the main file.
func Private(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
