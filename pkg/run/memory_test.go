package run_test

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/objectstoretest"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/runlog/runlogtest"
)

// memObjects is an objectstore.Store in memory: thousands of runs need thousands of stores.
type memObjects struct {
	mu   sync.Mutex
	objs map[string]objectstore.Object
}

func newObjects() *memObjects { return &memObjects{objs: map[string]objectstore.Object{}} }

func (m *memObjects) Get(ctx context.Context, key string) (objectstore.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return objectstore.Object{}, err
	}
	o, ok := m.objs[key]
	if !ok {
		return o, objectstore.ErrNotFound
	}
	o.Body = slices.Clone(o.Body)
	return o, nil
}

func (m *memObjects) Head(ctx context.Context, key string) (objectstore.Info, error) {
	o, err := m.Get(ctx, key)
	return o.Info, err
}

func (m *memObjects) Put(ctx context.Context, key string, body []byte, cond objectstore.Condition) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx, key, cond); err != nil {
		return "", err
	}
	sum := md5.Sum(body)
	info := objectstore.Info{Key: key, ETag: `"` + hex.EncodeToString(sum[:]) + `"`, Size: int64(len(body)), LastModified: time.Now()}
	m.objs[key] = objectstore.Object{Info: info, Body: slices.Clone(body)}
	return info.ETag, nil
}

func (m *memObjects) check(ctx context.Context, key string, cond objectstore.Condition) error {
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

func (m *memObjects) Delete(ctx context.Context, key string, cond objectstore.Condition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cond.IfNoneMatch {
		return errors.New("If-None-Match has no meaning for a deletion")
	}
	if err := m.check(ctx, key, cond); err != nil {
		return err
	}
	delete(m.objs, key)
	return nil
}

func (m *memObjects) List(ctx context.Context, prefix string) ([]objectstore.Info, error) {
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

// memLog is a runlog.Store in memory. What it holds is encoded, as it is elsewhere.
type memLog struct {
	mu      sync.Mutex
	headers map[string]versioned
	heads   map[runlog.StackRef]string
	ops     map[string]map[string]versioned
	events  map[string]map[string][]byte
}

type versioned struct {
	version int64
	body    []byte
}

func newLog() *memLog {
	return &memLog{
		headers: map[string]versioned{}, heads: map[runlog.StackRef]string{},
		ops: map[string]map[string]versioned{}, events: map[string]map[string][]byte{},
	}
}

func decoded[T any](body []byte) (v T) {
	if err := json.Unmarshal(body, &v); err != nil {
		panic(err)
	}
	return v
}

func encoded(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return body
}

func (m *memLog) CreateRun(_ context.Context, h runlog.Header) (runlog.Header, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.RunID == "" {
		return h, errors.New("the header has no run id")
	}
	if _, ok := m.headers[h.RunID]; ok {
		return runlog.Header{}, runlog.ErrExists
	}
	h.Version = 1
	m.headers[h.RunID] = versioned{1, encoded(h)}
	return h, nil
}

func (m *memLog) Header(_ context.Context, runID string) (runlog.Header, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.header(runID)
}

func (m *memLog) header(runID string) (runlog.Header, error) {
	v, ok := m.headers[runID]
	if !ok {
		return runlog.Header{}, runlog.ErrNotFound
	}
	h := decoded[runlog.Header](v.body)
	h.Version = v.version
	return h, nil
}

func (m *memLog) UpdateHeader(_ context.Context, h runlog.Header) (runlog.Header, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.headers[h.RunID]
	switch {
	case !ok:
		return runlog.Header{}, runlog.ErrNotFound
	case v.version != h.Version:
		return runlog.Header{}, runlog.ErrConflict
	}
	h.Version++
	m.headers[h.RunID] = versioned{h.Version, encoded(h)}
	return h, nil
}

func (m *memLog) ListRuns(_ context.Context, f runlog.Filter) ([]runlog.Header, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []runlog.Header
	matches := func(want, is string) bool { return want == "" || want == is }
	for id := range m.headers {
		h, _ := m.header(id)
		if matches(f.Root, h.Root) && matches(f.Stack.Account, h.Stack.Account) && matches(f.Stack.Region, h.Stack.Region) && matches(f.Stack.Name, h.Stack.Name) && (!f.Open || h.Status != runlog.StatusClosed) {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b runlog.Header) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.RunID, a.RunID))
	})
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[:f.Limit]
	}
	return out, nil
}

func (m *memLog) SetHead(_ context.Context, stack runlog.StackRef, runID string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heads[stack] = runID
	return nil
}

func (m *memLog) Head(_ context.Context, stack runlog.StackRef) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heads[stack], nil
}

func (m *memLog) PutOp(_ context.Context, runID string, in runlog.Status, op runlog.Op) (runlog.Op, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, err := m.header(runID)
	switch {
	case err != nil:
		return runlog.Op{}, err
	case h.Status != in || h.Epoch != op.Epoch:
		return runlog.Op{}, runlog.ErrFenced
	case m.ops[runID][op.OpID].version != op.Version:
		return runlog.Op{}, runlog.ErrConflict
	}
	op.Version++
	if m.ops[runID] == nil {
		m.ops[runID] = map[string]versioned{}
	}
	m.ops[runID][op.OpID] = versioned{op.Version, encoded(op)}
	return op, nil
}

func (m *memLog) Op(_ context.Context, runID, opID string) (runlog.Op, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.ops[runID][opID]
	if !ok {
		return runlog.Op{}, runlog.ErrNotFound
	}
	op := decoded[runlog.Op](v.body)
	op.Version = v.version
	return op, nil
}

func (m *memLog) Ops(_ context.Context, runID string) ([]runlog.Op, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []runlog.Op
	for _, v := range m.ops[runID] {
		op := decoded[runlog.Op](v.body)
		op.Version = v.version
		out = append(out, op)
	}
	slices.SortFunc(out, func(a, b runlog.Op) int { return strings.Compare(a.OpID, b.OpID) })
	return out, nil
}

func (m *memLog) Append(_ context.Context, events ...runlog.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ev := range events {
		if ev.RunID == "" || ev.ID == "" {
			return errors.New("the event has no run or no id")
		}
	}
	for _, ev := range events {
		if m.events[ev.RunID] == nil {
			m.events[ev.RunID] = map[string][]byte{}
		}
		if _, told := m.events[ev.RunID][ev.ID]; !told {
			m.events[ev.RunID][ev.ID] = encoded(ev)
		}
	}
	return nil
}

func (m *memLog) Events(_ context.Context, runID, after string) ([]runlog.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []runlog.Event
	for id, body := range m.events[runID] {
		if id > after {
			out = append(out, decoded[runlog.Event](body))
		}
	}
	slices.SortFunc(out, func(a, b runlog.Event) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func TestTheStoresOfTheTestsKeepTheContracts(t *testing.T) {
	t.Run("objects", func(t *testing.T) {
		objectstoretest.Run(t, func(*testing.T) objectstore.Store { return newObjects() })
	})
	t.Run("run log", func(t *testing.T) {
		runlogtest.Run(t, func(*testing.T) runlog.Store { return newLog() })
	})
}
