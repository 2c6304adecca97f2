package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// memLog is a runlog.Store in memory. What it holds is encoded, as it is elsewhere.
type memLog struct {
	mu      sync.Mutex
	headers map[string]runlog.Header
	heads   map[runlog.StackRef]string
	ops     map[string]map[string]versioned
	events  map[string]map[string][]byte
	// was are the headers as the index has shown them last.
	was map[string]runlog.Header
	// watch sees every record of an operation before it is stored.
	watch func(h runlog.Header, op runlog.Op)
}

type versioned struct {
	version int64
	body    []byte
}

func newLog() *memLog {
	return &memLog{
		headers: map[string]runlog.Header{}, heads: map[runlog.StackRef]string{},
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

// CreateRun implements runlog.Store.
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
	m.headers[h.RunID] = own(h)
	return h, nil
}

// Header implements runlog.Store.
func (m *memLog) Header(_ context.Context, runID string) (runlog.Header, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.header(runID)
}

func (m *memLog) header(runID string) (runlog.Header, error) {
	h, ok := m.headers[runID]
	if !ok {
		return runlog.Header{}, runlog.ErrNotFound
	}
	return own(h), nil
}

// own copies a header, so that nobody who is given it can change it: what it would be after it was encoded and decoded.
func own(h runlog.Header) runlog.Header {
	h.Diagnostics = slices.Clone(h.Diagnostics)
	if h.Failure != nil {
		failure := *h.Failure
		h.Failure = &failure
	}
	return h
}

// UpdateHeader implements runlog.Store.
func (m *memLog) UpdateHeader(_ context.Context, h runlog.Header) (runlog.Header, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.headers[h.RunID]
	switch {
	case !ok:
		return runlog.Header{}, runlog.ErrNotFound
	case v.Version != h.Version:
		return runlog.Header{}, runlog.ErrConflict
	}
	h.Version++
	m.headers[h.RunID] = own(h)
	return h, nil
}

// ListRuns implements runlog.Store.
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

// SetHead implements runlog.Store.
func (m *memLog) SetHead(_ context.Context, stack runlog.StackRef, runID string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heads[stack] = runID
	return nil
}

// Head implements runlog.Store.
func (m *memLog) Head(_ context.Context, stack runlog.StackRef) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heads[stack], nil
}

// PutOp implements runlog.Store.
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
	if m.watch != nil {
		m.watch(h, op)
	}
	op.Version++
	if m.ops[runID] == nil {
		m.ops[runID] = map[string]versioned{}
	}
	m.ops[runID][op.OpID] = versioned{op.Version, encoded(op)}
	return op, nil
}

// Op implements runlog.Store.
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

// Ops implements runlog.Store.
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

// Append implements runlog.Store.
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

// Events implements runlog.Store.
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

// listStale is what an index shows that has not caught up: the headers as they were when it was looked at last.
func (m *memLog) listStale(ctx context.Context, f runlog.Filter) ([]runlog.Header, error) {
	m.mu.Lock()
	old := &memLog{headers: m.was}
	m.mu.Unlock()
	return old.ListRuns(ctx, f)
}

// freeze makes what the headers are now what a stale index shows.
func (m *memLog) freeze() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.was = maps.Clone(m.headers)
}

// gatedLog is the run log as one process reaches it.
type gatedLog struct {
	p *process
	m *memLog
}

// CreateRun implements runlog.Store.
func (g gatedLog) CreateRun(ctx context.Context, h runlog.Header) (out runlog.Header, err error) {
	a := storeAnswers
	a.echo = runlog.ErrExists
	err = g.p.call(writes|conditional, "log.CreateRun", h.RunID, a, func() error { out, err = g.m.CreateRun(ctx, h); return err })
	return orZero(out, err)
}

// Header implements runlog.Store.
func (g gatedLog) Header(ctx context.Context, runID string) (out runlog.Header, err error) {
	err = g.p.call(reads, "log.Header", runID, storeAnswers, func() error { out, err = g.m.Header(ctx, runID); return err })
	return orZero(out, err)
}

// UpdateHeader implements runlog.Store.
func (g gatedLog) UpdateHeader(ctx context.Context, h runlog.Header) (out runlog.Header, err error) {
	a := storeAnswers
	a.echo = runlog.ErrConflict
	detail := h.RunID + " " + string(h.Status) + " " + string(h.Result)
	err = g.p.call(writes|conditional, "log.UpdateHeader", detail, a, func() error { out, err = g.m.UpdateHeader(ctx, h); return err })
	g.p.closing = err == nil && h.Status == runlog.StatusClosed && h.Kind == runlog.KindStack
	return orZero(out, err)
}

// ListRuns implements runlog.Store. The index that it reads lags: a stale answer is that of the last look.
func (g gatedLog) ListRuns(ctx context.Context, f runlog.Filter) (out []runlog.Header, err error) {
	v := g.p.s.park(&gate{p: g.p, method: "log.ListRuns", kind: reads | lists})
	switch v.fault {
	case Broken:
		err = errStore
	case CrashBefore:
		g.p.crash(v)
	case Stale:
		out, err = g.m.listStale(ctx, f)
	default:
		out, err = g.m.ListRuns(ctx, f)
	}
	g.p.s.told(v.step, outcome(err))
	return out, err
}

// SetHead implements runlog.Store.
func (g gatedLog) SetHead(ctx context.Context, stack runlog.StackRef, runID string) error {
	return g.p.call(writes, "log.SetHead", stack.Name+" "+runID, storeAnswers, func() error { return g.m.SetHead(ctx, stack, runID) })
}

// Head implements runlog.Store.
func (g gatedLog) Head(ctx context.Context, stack runlog.StackRef) (out string, err error) {
	err = g.p.call(reads, "log.Head", stack.Name, storeAnswers, func() error { out, err = g.m.Head(ctx, stack); return err })
	return orZero(out, err)
}

// PutOp implements runlog.Store.
func (g gatedLog) PutOp(ctx context.Context, runID string, in runlog.Status, op runlog.Op) (out runlog.Op, err error) {
	a := storeAnswers
	a.echo = runlog.ErrConflict
	detail := runID + " " + op.OpID + " " + string(op.Status) + " #" + number(op.Attempt)
	err = g.p.call(writes|conditional, "log.PutOp", detail, a, func() error { out, err = g.m.PutOp(ctx, runID, in, op); return err })
	return orZero(out, err)
}

// Op implements runlog.Store.
func (g gatedLog) Op(ctx context.Context, runID, opID string) (out runlog.Op, err error) {
	err = g.p.call(reads, "log.Op", runID+" "+opID, storeAnswers, func() error { out, err = g.m.Op(ctx, runID, opID); return err })
	return orZero(out, err)
}

// Ops implements runlog.Store.
func (g gatedLog) Ops(ctx context.Context, runID string) (out []runlog.Op, err error) {
	err = g.p.call(reads, "log.Ops", runID, storeAnswers, func() error { out, err = g.m.Ops(ctx, runID); return err })
	return orZero(out, err)
}

// Append implements runlog.Store.
func (g gatedLog) Append(ctx context.Context, events ...runlog.Event) error {
	detail := ""
	if len(events) > 0 {
		detail = events[0].RunID + " " + events[0].ID
	}
	return g.p.call(writes, "log.Append", detail, storeAnswers, func() error { return g.m.Append(ctx, events...) })
}

// Events implements runlog.Store.
func (g gatedLog) Events(ctx context.Context, runID, after string) (out []runlog.Event, err error) {
	err = g.p.call(reads, "log.Events", runID, storeAnswers, func() error { out, err = g.m.Events(ctx, runID, after); return err })
	return orZero(out, err)
}

// orZero keeps what a lost answer held from its caller.
func orZero[T any](v T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return v, nil
}

var (
	_ runlog.Store = (*memLog)(nil)
	_ runlog.Store = gatedLog{}
)

// ends are the terminal events of a run.
func (m *memLog) ends(runID string) []runlog.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []runlog.Event
	for id, body := range m.events[runID] {
		if strings.Contains(id, string(runlog.RunFinished)) {
			out = append(out, decoded[runlog.Event](body))
		}
	}
	return out
}
