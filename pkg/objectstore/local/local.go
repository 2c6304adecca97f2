// Package local is the object store of --local: one table in the SQLite file that localdb opens. It behaves
// as S3 does, ETags included, and is never more permissive.
package local

import (
	"context"
	"crypto/md5"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// maxKey is S3's limit for a key, in bytes of UTF-8
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html).
const maxKey = 1024

// Store is an objectstore.Store in a database that localdb.Open has opened.
type Store struct {
	db    *sql.DB
	clock clock.Clock
	stmt  statements
}

type statements struct {
	get, head, put, putNew, putMatch, del, delMatch, list, listFrom *sql.Stmt
}

var _ objectstore.Store = (*Store)(nil)

// New prepares a store on db. clk stamps LastModified; nil is real time. The store does not close db.
func New(db *sql.DB, clk clock.Clock) (*Store, error) {
	if clk == nil {
		clk = clock.Real{}
	}
	s := &Store{db: db, clock: clk}
	for _, p := range []struct {
		dst   **sql.Stmt
		query string
	}{
		{&s.stmt.get, "SELECT etag, size, modified, body FROM objects WHERE key = ?"},
		{&s.stmt.head, "SELECT etag, size, modified FROM objects WHERE key = ?"},
		{&s.stmt.put, `INSERT INTO objects (key, etag, size, modified, body) VALUES (?1, ?2, ?3, ?4, ?5)
			ON CONFLICT (key) DO UPDATE SET etag = ?2, size = ?3, modified = ?4, body = ?5`},
		{&s.stmt.putNew, `INSERT INTO objects (key, etag, size, modified, body) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (key) DO NOTHING`},
		{&s.stmt.putMatch, "UPDATE objects SET etag = ?2, size = ?3, modified = ?4, body = ?5 WHERE key = ?1 AND etag = ?6"},
		{&s.stmt.del, "DELETE FROM objects WHERE key = ?"},
		{&s.stmt.delMatch, "DELETE FROM objects WHERE key = ? AND etag = ?"},
		{&s.stmt.list, "SELECT key, etag, size, modified FROM objects WHERE key >= ? AND key < ? ORDER BY key"},
		{&s.stmt.listFrom, "SELECT key, etag, size, modified FROM objects WHERE key >= ? ORDER BY key"},
	} {
		stmt, err := db.Prepare(p.query)
		if err != nil {
			return nil, fmt.Errorf("preparing the local object store: %w", err)
		}
		*p.dst = stmt
	}
	return s, nil
}

// Get implements objectstore.Store.
func (s *Store) Get(ctx context.Context, key string) (objectstore.Object, error) {
	if err := checkKey(key); err != nil {
		return objectstore.Object{}, err
	}
	o := objectstore.Object{Info: objectstore.Info{Key: key}}
	var modified int64
	err := localdb.Retry(ctx, func() error {
		return s.stmt.get.QueryRowContext(ctx, []byte(key)).Scan(&o.ETag, &o.Size, &modified, &o.Body)
	})
	if err != nil {
		return objectstore.Object{}, readError(key, err)
	}
	if o.Body == nil {
		o.Body = []byte{}
	}
	o.LastModified = time.UnixMilli(modified).UTC()
	return o, nil
}

// Head implements objectstore.Store.
func (s *Store) Head(ctx context.Context, key string) (objectstore.Info, error) {
	if err := checkKey(key); err != nil {
		return objectstore.Info{}, err
	}
	i := objectstore.Info{Key: key}
	var modified int64
	err := localdb.Retry(ctx, func() error {
		return s.stmt.head.QueryRowContext(ctx, []byte(key)).Scan(&i.ETag, &i.Size, &modified)
	})
	if err != nil {
		return objectstore.Info{}, readError(key, err)
	}
	i.LastModified = time.UnixMilli(modified).UTC()
	return i, nil
}

// Put implements objectstore.Store. The ETag is the quoted MD5 of the body, as S3's is for a single put
// without SSE-KMS.
func (s *Store) Put(ctx context.Context, key string, body []byte, cond objectstore.Condition) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	if body == nil {
		body = []byte{}
	}
	sum := md5.Sum(body)
	etag := `"` + hex.EncodeToString(sum[:]) + `"`
	args := []any{[]byte(key), etag, len(body), s.clock.Now().UnixMilli(), body}
	stmt := s.stmt.put
	switch {
	case cond.IfNoneMatch && cond.IfMatch != "":
		return "", fmt.Errorf("putting object %q: IfNoneMatch and IfMatch exclude each other", key)
	case cond.IfNoneMatch:
		stmt = s.stmt.putNew
	case cond.IfMatch != "":
		stmt, args = s.stmt.putMatch, append(args, cond.IfMatch)
	}
	n, err := localdb.Exec(ctx, stmt, args...)
	if err != nil {
		return "", fmt.Errorf("putting object %q: %w", key, err)
	}
	if n == 0 {
		return "", s.refused(ctx, "putting", key, cond)
	}
	return etag, nil
}

// Delete implements objectstore.Store.
func (s *Store) Delete(ctx context.Context, key string, cond objectstore.Condition) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if cond.IfNoneMatch {
		return fmt.Errorf("deleting object %q: IfNoneMatch has no meaning for a delete", key)
	}
	stmt, args := s.stmt.del, []any{[]byte(key)}
	if cond.IfMatch != "" {
		stmt, args = s.stmt.delMatch, append(args, cond.IfMatch)
	}
	n, err := localdb.Exec(ctx, stmt, args...)
	if err != nil {
		return fmt.Errorf("deleting object %q: %w", key, err)
	}
	if n == 0 && cond.IfMatch != "" {
		return s.refused(ctx, "deleting", key, cond)
	}
	return nil
}

// List implements objectstore.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]objectstore.Info, error) {
	stmt, args := s.stmt.listFrom, []any{[]byte(prefix)}
	if end := after([]byte(prefix)); end != nil {
		stmt, args = s.stmt.list, append(args, end)
	}
	var out []objectstore.Info
	err := localdb.Retry(ctx, func() error {
		out = nil
		rows, err := stmt.QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var key []byte
			var i objectstore.Info
			var modified int64
			if err := rows.Scan(&key, &i.ETag, &i.Size, &modified); err != nil {
				return err
			}
			i.Key, i.LastModified = string(key), time.UnixMilli(modified).UTC()
			out = append(out, i)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("listing objects below %q: %w", prefix, err)
	}
	return out, nil
}

// refused says which of the two refusals a conditional write met that changed no row.
func (s *Store) refused(ctx context.Context, doing, key string, cond objectstore.Condition) error {
	if cond.IfMatch != "" {
		if _, err := s.Head(ctx, key); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s object %q: %w", doing, key, objectstore.ErrPrecondition)
}

func readError(key string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		err = objectstore.ErrNotFound
	}
	return fmt.Errorf("reading object %q: %w", key, err)
}

func checkKey(key string) error {
	if key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		return fmt.Errorf("object key %q: a key is 1 to %d bytes of UTF-8", key, maxKey)
	}
	return nil
}

// after returns the smallest byte string that is greater than every string that starts with prefix, or nil
// when there is none.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
