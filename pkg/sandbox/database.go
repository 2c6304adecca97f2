package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"

	"github.com/slipway-cdk/slipway/pkg/localdb"
)

// DatabaseName is the file that Open makes in its directory.
const DatabaseName = "sandbox.db"

// tables is the layout. Times are milliseconds since 1970. A resource is there from born on; while changed lies
// ahead, readers see prior; from gone on it does not exist. cascades are resources that go because their owner does.
const tables = `
CREATE TABLE IF NOT EXISTS resources (
	id INTEGER PRIMARY KEY, account TEXT NOT NULL, region TEXT NOT NULL, type TEXT NOT NULL, identifier TEXT NOT NULL,
	route TEXT NOT NULL, direct TEXT NOT NULL DEFAULT '', answers TEXT NOT NULL DEFAULT '', model TEXT NOT NULL, prior TEXT NOT NULL DEFAULT '', filled TEXT NOT NULL DEFAULT '',
	born INTEGER NOT NULL, changed INTEGER NOT NULL DEFAULT 0, gone INTEGER, UNIQUE (type, account, region, identifier));
CREATE INDEX IF NOT EXISTS resources_direct ON resources (type, account, region, direct);
CREATE INDEX IF NOT EXISTS resources_gone ON resources (gone) WHERE gone IS NOT NULL;
CREATE TABLE IF NOT EXISTS claims (space TEXT NOT NULL, name TEXT NOT NULL, resource INTEGER NOT NULL, PRIMARY KEY (space, name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS claims_resource ON claims (resource);
CREATE TABLE IF NOT EXISTS identities (value TEXT PRIMARY KEY, type TEXT NOT NULL, resource INTEGER) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS identities_resource ON identities (resource) WHERE resource IS NOT NULL;
CREATE TABLE IF NOT EXISTS refs (value TEXT NOT NULL, resource INTEGER NOT NULL, path TEXT NOT NULL, relation TEXT NOT NULL,
	required INTEGER NOT NULL, PRIMARY KEY (value, resource, path)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS refs_resource ON refs (resource);
CREATE TABLE IF NOT EXISTS cascades (resource INTEGER PRIMARY KEY, owner INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sequences (name TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
	token TEXT PRIMARY KEY, account TEXT NOT NULL, region TEXT NOT NULL, route TEXT NOT NULL, client_token TEXT, digest TEXT NOT NULL,
	operation TEXT NOT NULL, type TEXT NOT NULL, identifier TEXT NOT NULL, status TEXT NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL,
	model TEXT NOT NULL, resource INTEGER, started INTEGER NOT NULL, due INTEGER NOT NULL) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS requests_client ON requests (account, region, client_token) WHERE client_token IS NOT NULL;
CREATE INDEX IF NOT EXISTS requests_started ON requests (started);
CREATE TABLE IF NOT EXISTS snapshots (account TEXT NOT NULL, region TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
	identifier TEXT NOT NULL, model TEXT NOT NULL, PRIMARY KEY (account, region, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS responses (request TEXT PRIMARY KEY, digest TEXT NOT NULL, response TEXT NOT NULL, started INTEGER NOT NULL) WITHOUT ROWID;
`

// database is the file. Writers of one process share transactions: while one commits, the next requests gather,
// and the following transaction takes them all. Other processes are kept out by SQLite's own lock.
type database struct {
	read  *sql.DB
	write *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // of conn, used by the writer alone

	queue  chan *unit
	closed chan struct{}
	done   chan struct{}
	once   sync.Once
}

// unit is one request's part of a shared transaction.
type unit struct {
	work func(*tx) error
	err  chan error
}

// errClosed is what a request gets that arrives while the sandbox closes.
var errClosed = errors.New("the sandbox is closed")

func openDatabase(ctx context.Context, dir string) (*database, error) {
	// Secrets that were deployed are in it.
	if err := localdb.Private(filepath.Join(dir, DatabaseName)); err != nil {
		return nil, fmt.Errorf("making the sandbox database: %w", err)
	}
	const pragmas = "?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=cache_size(-16000)&_pragma=temp_store(MEMORY)"
	name := "file:" + filepath.Join(dir, DatabaseName) + pragmas
	write, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox database: %w", err)
	}
	write.SetMaxOpenConns(1)
	conn, err := write.Conn(ctx)
	if err == nil {
		// Taking the write lock first keeps two processes that start at once from meeting half way.
		if _, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err == nil {
			err = prepareTables(ctx, conn)
		}
		if err == nil {
			_, err = conn.ExecContext(ctx, "COMMIT")
		}
	}
	if err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("preparing the sandbox database in %s: %w", dir, err)
	}
	read, err := sql.Open("sqlite", name)
	if err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("opening the sandbox database: %w", err)
	}
	read.SetMaxOpenConns(8)
	read.SetMaxIdleConns(8)
	d := &database{read: read, write: write, conn: conn, stmts: map[string]*sql.Stmt{},
		queue: make(chan *unit, 256), closed: make(chan struct{}), done: make(chan struct{})}
	go d.loop()
	return d, nil
}

// prepareTables makes what is not there. Resources of a file that was made before the ids of the services' own APIs were kept are
// called what they were recorded as: their identifiers.
func prepareTables(ctx context.Context, conn *sql.Conn) error {
	var has, kept int
	const count = `SELECT count(*), count(*) FILTER (WHERE name = 'direct') FROM pragma_table_info('resources')`
	if err := conn.QueryRowContext(ctx, count).Scan(&has, &kept); err != nil {
		return err
	}
	statements := []string{tables}
	if has > 0 && kept == 0 {
		statements = []string{
			`ALTER TABLE resources ADD COLUMN direct TEXT NOT NULL DEFAULT ''`,
			`ALTER TABLE resources ADD COLUMN answers TEXT NOT NULL DEFAULT ''`,
			`UPDATE resources SET direct = identifier`, tables,
		}
	}
	for _, s := range statements {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// close waits for the transaction in hand and closes the file.
func (d *database) close() error {
	d.once.Do(func() { close(d.closed) })
	<-d.done
	for _, s := range d.stmts {
		_ = s.Close()
	}
	return errors.Join(d.conn.Close(), d.write.Close(), d.read.Close())
}

// update runs work in a write transaction and returns when that is on disk. An error undoes work's part only.
func (d *database) update(ctx context.Context, work func(*tx) error) error {
	u := &unit{work: work, err: make(chan error, 1)}
	select {
	case d.queue <- u:
	case <-d.closed:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-u.err:
		return err
	case <-d.done:
		// The loop may have answered just before it ended.
		select {
		case err := <-u.err:
			return err
		default:
			return errClosed
		}
	}
}

func (d *database) loop() {
	defer close(d.done)
	for {
		var units []*unit
		select {
		case u := <-d.queue:
			units = append(units, u)
		case <-d.closed:
			return
		}
	gather:
		for len(units) < 128 {
			select {
			case u := <-d.queue:
				units = append(units, u)
			default:
				break gather
			}
		}
		d.transact(units)
	}
}

// transact runs units in one transaction, each in a savepoint.
func (d *database) transact(units []*unit) {
	t := &tx{ctx: context.Background(), d: d}
	answers := make([]error, len(units))
	err := t.exec("BEGIN IMMEDIATE")
	if err == nil {
		for i, u := range units {
			answers[i] = t.unit(u.work)
		}
		if err = t.exec("COMMIT"); err != nil {
			_ = t.exec("ROLLBACK")
		}
	}
	for i, u := range units {
		if err != nil {
			answers[i] = fmt.Errorf("writing to the sandbox database: %w", err)
		}
		u.err <- answers[i]
	}
}

// tx is the transaction of the writer. Statements are prepared once.
type tx struct {
	ctx context.Context
	d   *database
}

func (t *tx) unit(work func(*tx) error) error {
	if err := t.exec("SAVEPOINT unit"); err != nil {
		return err
	}
	err := work(t)
	if err != nil {
		if undo := t.exec("ROLLBACK TO unit"); undo != nil {
			return errors.Join(err, undo)
		}
	}
	return errors.Join(err, t.exec("RELEASE unit"))
}

func (t *tx) prepare(query string) (*sql.Stmt, error) {
	if s := t.d.stmts[query]; s != nil {
		return s, nil
	}
	s, err := t.d.conn.PrepareContext(t.ctx, query)
	if err != nil {
		return nil, err
	}
	t.d.stmts[query] = s
	return s, nil
}

func (t *tx) exec(query string, args ...any) error {
	_, err := t.insert(query, args...)
	return err
}

// insert is exec that returns the new row's id.
func (t *tx) insert(query string, args ...any) (int64, error) {
	s, err := t.prepare(query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// row scans one row; false when there is none.
func (t *tx) row(query string, args []any, into ...any) (bool, error) {
	s, err := t.prepare(query)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(t.ctx, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// rows calls scan for every row.
func (t *tx) rows(query string, args []any, scan func(*sql.Rows) error) error {
	s, err := t.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(t.ctx, args...)
	if err != nil {
		return err
	}
	return eachRow(rows, scan)
}

func eachRow(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close() //nolint:errcheck // a failed read is reported by Err
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
