// Package objectstore is the contract of the store that holds state, locks, plans and journals: keys and
// small JSON bodies with conditional writes, as S3 offers them. The implementations are S3 (the control
// plane and --direct) and one SQLite file (--local); objectstoretest is the suite that all of them pass.
package objectstore

import (
	"context"
	"errors"
	"time"
)

// Errors that callers decide on. Every other error is a failure of the store itself and may be retried.
var (
	// ErrNotFound: no object stands under the key.
	ErrNotFound = errors.New("object not found")
	// ErrPrecondition: the object exists (IfNoneMatch) or its ETag is another one (IfMatch). S3 answers 412.
	// After a lost answer it may be the caller's own write that stands there: read and compare first.
	ErrPrecondition = errors.New("precondition failed")
)

// Condition guards a write. The zero value writes unconditionally.
type Condition struct {
	// IfNoneMatch: only when no object stands under the key ("If-None-Match: *").
	IfNoneMatch bool
	// IfMatch: only when the object's ETag is this one, quotes included.
	IfMatch string
}

// Info describes an object without its body.
type Info struct {
	Key          string
	ETag         string // with its quotes, as S3 returns it
	Size         int64
	LastModified time.Time
}

// Object is an object with its body.
type Object struct {
	Info
	Body []byte
}

// Store is a keyed store of whole objects.
//
// Reads are strongly consistent: a Get or List that starts after a Put has returned sees it. Every call may
// be repeated: an unconditional Put or Delete is idempotent, a conditional one reports ErrPrecondition when
// its first attempt had already succeeded. Two concurrent conditional writes never both succeed.
// Implementations are safe for concurrent use by several processes.
type Store interface {
	// Get returns the object, or ErrNotFound.
	Get(ctx context.Context, key string) (Object, error)
	// Head returns the object's description, or ErrNotFound.
	Head(ctx context.Context, key string) (Info, error)
	// Put stores the body and returns the new ETag, or ErrPrecondition. With IfMatch on a key under which
	// nothing stands it returns ErrNotFound, as S3 does.
	Put(ctx context.Context, key string, body []byte, cond Condition) (etag string, err error)
	// Delete removes the object. Nothing there is success, but with IfMatch it is ErrNotFound; another ETag
	// is ErrPrecondition. IfNoneMatch has no meaning here and is refused.
	Delete(ctx context.Context, key string, cond Condition) error
	// List returns every object whose key starts with prefix, in byte order of the keys, paging as needed.
	List(ctx context.Context, prefix string) ([]Info, error)
}
