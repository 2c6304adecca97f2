package objects_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	locals "github.com/slipway-cdk/slipway/pkg/objectstore/local"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/runlog/objects"
	"github.com/slipway-cdk/slipway/pkg/runlog/runlogtest"
)

func bucket(t *testing.T) objectstore.Store {
	t.Helper()
	db, err := localdb.Open(filepath.Join(t.TempDir(), "objects.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := locals.New(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestTheRunLogInObjectsKeepsTheContract(t *testing.T) {
	runlogtest.Run(t, func(t *testing.T) runlog.Store { return &objects.Store{Objects: bucket(t)} })
}

// several hands every call to another store over the same objects, as several processes are.
type several struct {
	stores []*objects.Store
	n      atomic.Int64
}

func (s *several) next() *objects.Store {
	return s.stores[int(s.n.Add(1))%len(s.stores)]
}

func (s *several) CreateRun(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	return s.next().CreateRun(ctx, h)
}
func (s *several) Header(ctx context.Context, runID string) (runlog.Header, error) {
	return s.next().Header(ctx, runID)
}
func (s *several) UpdateHeader(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	return s.next().UpdateHeader(ctx, h)
}
func (s *several) ListRuns(ctx context.Context, f runlog.Filter) ([]runlog.Header, error) {
	return s.next().ListRuns(ctx, f)
}
func (s *several) SetHead(ctx context.Context, stack runlog.StackRef, runID string) error {
	return s.next().SetHead(ctx, stack, runID)
}
func (s *several) Head(ctx context.Context, stack runlog.StackRef) (string, error) {
	return s.next().Head(ctx, stack)
}
func (s *several) PutOp(ctx context.Context, runID string, in runlog.Status, op runlog.Op) (runlog.Op, error) {
	return s.next().PutOp(ctx, runID, in, op)
}
func (s *several) Op(ctx context.Context, runID, opID string) (runlog.Op, error) {
	return s.next().Op(ctx, runID, opID)
}
func (s *several) Ops(ctx context.Context, runID string) ([]runlog.Op, error) {
	return s.next().Ops(ctx, runID)
}
func (s *several) Append(ctx context.Context, events ...runlog.Event) error {
	return s.next().Append(ctx, events...)
}
func (s *several) Events(ctx context.Context, runID, after string) ([]runlog.Event, error) {
	return s.next().Events(ctx, runID, after)
}

func TestSeveralProcessesKeepTheContract(t *testing.T) {
	runlogtest.Run(t, func(t *testing.T) runlog.Store {
		shared := bucket(t)
		s := &several{}
		for range 5 {
			s.stores = append(s.stores, &objects.Store{Objects: shared})
		}
		return s
	})
}

// forgetful loses every third answer of a conditional write that was carried out. The client then sends it again, and
// is refused.
type forgetful struct {
	objectstore.Store
	n atomic.Int64
}

func (f *forgetful) Put(ctx context.Context, key string, body []byte, cond objectstore.Condition) (string, error) {
	etag, err := f.Store.Put(ctx, key, body, cond)
	if err == nil && cond != (objectstore.Condition{}) && f.n.Add(1)%3 == 0 {
		return f.Store.Put(ctx, key, body, cond)
	}
	return etag, err
}

func TestLostAnswersKeepTheContract(t *testing.T) {
	runlogtest.Run(t, func(t *testing.T) runlog.Store {
		return &objects.Store{Objects: &forgetful{Store: bucket(t)}}
	})
}

func open(t *testing.T, s *objects.Store) runlog.Header {
	t.Helper()
	h, err := s.CreateRun(t.Context(), runlog.Header{RunID: "r", Root: "r", Status: runlog.StatusOpen, Epoch: 1, CreatedAt: time.Unix(1_900_000_000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// gated lets writes of runs' objects through one by one.
type gated struct {
	objectstore.Store
	mu     sync.Mutex
	writes int
	arrive chan struct{}
	gate   chan struct{}
}

func (g *gated) Put(ctx context.Context, key string, body []byte, cond objectstore.Condition) (string, error) {
	if strings.HasSuffix(key, "/run.json") && cond.IfMatch != "" {
		g.mu.Lock()
		g.writes++
		g.mu.Unlock()
		g.arrive <- struct{}{}
		<-g.gate
	}
	return g.Store.Put(ctx, key, body, cond)
}

func TestWhatGathersDuringAWriteIsWrittenTogether(t *testing.T) {
	g := &gated{Store: bucket(t), arrive: make(chan struct{}, 100), gate: make(chan struct{})}
	s := &objects.Store{Objects: g}
	open(t, s)
	const n = 40
	errs := make(chan error, n+1)
	put := func(i int) {
		_, err := s.PutOp(t.Context(), "r", runlog.StatusOpen, runlog.Op{OpID: fmt.Sprint(i), Epoch: 1})
		errs <- err
	}
	go put(n)
	<-g.arrive // the first is being written
	for i := range n {
		go put(i)
	}
	for s.Waiting("r") < n {
		runtime.Gosched()
	}
	close(g.gate)
	for range n + 1 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if g.writes != 2 {
		t.Errorf("%d operations took %d writes, want 2", n+1, g.writes)
	}
	if ops, err := s.Ops(t.Context(), "r"); err != nil || len(ops) != n+1 {
		t.Errorf("%d operations are there, %v", len(ops), err)
	}
}

func TestOneCallersEndIsNotTheOthers(t *testing.T) {
	g := &gated{Store: bucket(t), arrive: make(chan struct{}, 100), gate: make(chan struct{})}
	s := &objects.Store{Objects: g}
	open(t, s)
	leaving, leave := context.WithCancel(t.Context())
	first, second, third := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	put := func(ctx context.Context, id string, told chan error) {
		_, err := s.PutOp(ctx, "r", runlog.StatusOpen, runlog.Op{OpID: id, Epoch: 1})
		told <- err
	}
	go put(t.Context(), "first", first)
	<-g.arrive
	go put(leaving, "second", second)
	go put(t.Context(), "third", third)
	for s.Waiting("r") < 2 {
		runtime.Gosched()
	}
	leave()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("who has left is told %v", err)
	}
	close(g.gate)
	if err := errors.Join(<-first, <-third); err != nil {
		t.Error(err)
	}
	if _, err := s.Op(t.Context(), "r", "second"); !errors.Is(err, runlog.ErrNotFound) {
		t.Errorf("an operation is recorded that nobody waited for any more: %v", err)
	}
}

func TestARunThatDiedWhileItWasCreatedOrClosedIsNotListed(t *testing.T) {
	b := bucket(t)
	s := &objects.Store{Objects: b}
	h := open(t, s)
	stale, err := b.List(t.Context(), objects.Prefix+"open/")
	if err != nil || len(stale) != 1 {
		t.Fatalf("%d open entries, %v", len(stale), err)
	}
	h.Status = runlog.StatusClosed
	if _, err := s.UpdateHeader(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if left, err := b.List(t.Context(), objects.Prefix+"open/"); err != nil || len(left) != 0 {
		t.Fatalf("the closed run is still listed as open: %v, %v", left, err)
	}
	// As if its process had died before it took the entry away; and another before it made its run.
	ghost := strings.ReplaceAll(stale[0].Key, "~r~", "~ghost~")
	for _, key := range []string{stale[0].Key, ghost, strings.Replace(ghost, "/open/", "/list/", 1)} {
		if _, err := b.Put(t.Context(), key, nil, objectstore.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	if runs, err := s.ListRuns(t.Context(), runlog.Filter{Open: true}); err != nil || len(runs) != 0 {
		t.Errorf("%d runs are open, %v", len(runs), err)
	}
	if runs, err := s.ListRuns(t.Context(), runlog.Filter{Limit: 1}); err != nil || len(runs) != 1 || runs[0].RunID != "r" {
		t.Errorf("the newest run is %v, %v", runs, err)
	}
	if _, err := b.Head(t.Context(), stale[0].Key); !errors.Is(err, objectstore.ErrNotFound) {
		t.Errorf("the entry of the closed run is still there: %v", err)
	}
	if _, err := b.Head(t.Context(), ghost); err != nil {
		t.Errorf("the entry of a run that may be about to be made is gone: %v", err)
	}
}

func TestAFormatOfANewerReleaseIsRefused(t *testing.T) {
	b := bucket(t)
	s := &objects.Store{Objects: b}
	open(t, s)
	infos, err := b.List(t.Context(), objects.Prefix+"runs/")
	if err != nil || len(infos) != 1 {
		t.Fatalf("%v, %v", infos, err)
	}
	if _, err := b.Put(t.Context(), infos[0].Key, []byte(`{"v":2,"header":{}}`), objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Header(t.Context(), "r"); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("the error is %v", err)
	}
}
