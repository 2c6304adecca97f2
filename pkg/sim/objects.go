package sim

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// memory is an objectstore.Store in memory.
type memory struct {
	mu   sync.Mutex
	objs map[string]objectstore.Object
	now  func() time.Time
	// watch sees every write before it is made.
	watch func(key string, was objectstore.Object, body []byte, cond objectstore.Condition)
}

func newMemory(now func() time.Time) *memory {
	return &memory{objs: map[string]objectstore.Object{}, now: now}
}

// Get implements objectstore.Store.
func (m *memory) Get(ctx context.Context, key string) (objectstore.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return objectstore.Object{}, err
	}
	o, ok := m.objs[key]
	if !ok {
		return objectstore.Object{}, objectstore.ErrNotFound
	}
	o.Body = slices.Clone(o.Body)
	return o, nil
}

// Head implements objectstore.Store.
func (m *memory) Head(ctx context.Context, key string) (objectstore.Info, error) {
	o, err := m.Get(ctx, key)
	return o.Info, err
}

// Put implements objectstore.Store. An ETag is the body's digest, as S3's is: equal bodies have equal ones.
func (m *memory) Put(ctx context.Context, key string, body []byte, cond objectstore.Condition) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx, key, cond); err != nil {
		return "", err
	}
	if m.watch != nil {
		m.watch(key, m.objs[key], body, cond)
	}
	sum := md5.Sum(body)
	info := objectstore.Info{Key: key, ETag: `"` + hex.EncodeToString(sum[:]) + `"`, Size: int64(len(body)), LastModified: m.now()}
	m.objs[key] = objectstore.Object{Info: info, Body: slices.Clone(body)}
	return info.ETag, nil
}

func (m *memory) check(ctx context.Context, key string, cond objectstore.Condition) error {
	o, ok := m.objs[key]
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case key == "" || len(key) > 1024 || cond.IfNoneMatch && cond.IfMatch != "":
		return errors.New("the request is not valid")
	case cond.IfNoneMatch && ok:
		return objectstore.ErrPrecondition
	case cond.IfMatch != "" && !ok:
		return objectstore.ErrNotFound
	case cond.IfMatch != "" && o.ETag != cond.IfMatch:
		return objectstore.ErrPrecondition
	}
	return nil
}

// Delete implements objectstore.Store.
func (m *memory) Delete(ctx context.Context, key string, cond objectstore.Condition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cond.IfNoneMatch {
		return errors.New("If-None-Match has no meaning for a deletion")
	}
	if err := m.check(ctx, key, cond); err != nil {
		return err
	}
	if m.watch != nil {
		m.watch(key, m.objs[key], nil, cond)
	}
	delete(m.objs, key)
	return nil
}

// List implements objectstore.Store.
func (m *memory) List(ctx context.Context, prefix string) ([]objectstore.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := []objectstore.Info{}
	for key, o := range m.objs {
		if strings.HasPrefix(key, prefix) {
			out = append(out, o.Info)
		}
	}
	slices.SortFunc(out, func(a, b objectstore.Info) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// errStore is a failure of a store: nobody knows whether the call has had its effect.
var errStore = errors.New("the store did not answer")

// gatedObjects is the object store as one process reaches it.
type gatedObjects struct {
	p *process
	m *memory
}

var storeAnswers = answers{broken: errStore, throttled: errStore, refused: errStore}

// Get implements objectstore.Store.
func (g gatedObjects) Get(ctx context.Context, key string) (o objectstore.Object, err error) {
	err = g.p.call(reads, "objects.Get", key, storeAnswers, func() error { o, err = g.m.Get(ctx, key); return err })
	if err != nil {
		return objectstore.Object{}, err
	}
	return o, nil
}

// Head implements objectstore.Store.
func (g gatedObjects) Head(ctx context.Context, key string) (i objectstore.Info, err error) {
	err = g.p.call(reads, "objects.Head", key, storeAnswers, func() error { i, err = g.m.Head(ctx, key); return err })
	if err != nil {
		return objectstore.Info{}, err
	}
	return i, nil
}

// Put implements objectstore.Store.
func (g gatedObjects) Put(ctx context.Context, key string, body []byte, cond objectstore.Condition) (etag string, err error) {
	kind, a := writes, storeAnswers
	if cond != (objectstore.Condition{}) {
		kind, a.echo = writes|conditional, objectstore.ErrPrecondition
	}
	err = g.p.call(kind, "objects.Put", key, a, func() error { etag, err = g.m.Put(ctx, key, body, cond); return err })
	if err != nil {
		return "", err
	}
	return etag, nil
}

// Delete implements objectstore.Store.
func (g gatedObjects) Delete(ctx context.Context, key string, cond objectstore.Condition) error {
	kind, a := writes, storeAnswers
	if cond.IfMatch != "" {
		kind, a.echo = writes|conditional, objectstore.ErrNotFound
	}
	return g.p.call(kind, "objects.Delete", key, a, func() error { return g.m.Delete(ctx, key, cond) })
}

// List implements objectstore.Store.
func (g gatedObjects) List(ctx context.Context, prefix string) (list []objectstore.Info, err error) {
	err = g.p.call(reads, "objects.List", prefix, storeAnswers, func() error { list, err = g.m.List(ctx, prefix); return err })
	if err != nil {
		return nil, err
	}
	return list, nil
}

var (
	_ objectstore.Store = (*memory)(nil)
	_ objectstore.Store = gatedObjects{}
)
