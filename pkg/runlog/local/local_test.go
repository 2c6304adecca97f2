package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/runlog/local"
	"github.com/slipway-cdk/slipway/pkg/runlog/runlogtest"
)

func open(t testing.TB, path string) *local.Store {
	t.Helper()
	db, err := localdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := local.New(db)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheLocalRunLogKeepsTheContract(t *testing.T) {
	runlogtest.Run(t, func(t *testing.T) runlog.Store { return open(t, filepath.Join(t.TempDir(), "slipway.db")) })
}

func TestTwoConnectionsKeepTheContract(t *testing.T) {
	runlogtest.Run(t, func(t *testing.T) runlog.Store {
		path := filepath.Join(t.TempDir(), "slipway.db")
		return &alternating{Store: open(t, path), other: open(t, path)}
	})
}

// alternating spreads the writes over two connections to one file, as two processes would.
type alternating struct {
	runlog.Store
	other runlog.Store
	calls atomic.Int64
}

func (a *alternating) next() runlog.Store {
	if a.calls.Add(1)%2 == 0 {
		return a.other
	}
	return a.Store
}

func (a *alternating) CreateRun(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	return a.next().CreateRun(ctx, h)
}

func (a *alternating) UpdateHeader(ctx context.Context, h runlog.Header) (runlog.Header, error) {
	return a.next().UpdateHeader(ctx, h)
}

func (a *alternating) PutOp(ctx context.Context, runID string, in runlog.Status, op runlog.Op) (runlog.Op, error) {
	return a.next().PutOp(ctx, runID, in, op)
}

func (a *alternating) Append(ctx context.Context, events ...runlog.Event) error {
	return a.next().Append(ctx, events...)
}

func TestAnEventWithoutRunOrIDIsRefused(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "slipway.db"))
	good := runlog.Event{RunID: "r", ID: "1"}
	for _, bad := range []runlog.Event{{RunID: "r"}, {ID: "1"}} {
		if err := s.Append(t.Context(), good, bad); err == nil {
			t.Errorf("the event %+v was accepted", bad)
		}
	}
	if events, err := s.Events(t.Context(), "r", ""); err != nil || len(events) != 0 {
		t.Fatalf("a refused call has stored %v, %v", events, err)
	}
}

func TestAHeaderWithoutRunIsRefused(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "slipway.db"))
	if _, err := s.CreateRun(t.Context(), runlog.Header{}); err == nil {
		t.Fatal("a header without a run id was accepted")
	}
}

// deploy plays what a run of 200 operations asks of the log: an intent, a result and two events for each.
func deploy(tb testing.TB, s runlog.Store, runID string, concurrency int) {
	ctx := tb.Context()
	if _, err := s.CreateRun(ctx, runlog.Header{RunID: runID, Status: runlog.StatusOpen, Epoch: 1, CreatedAt: time.Now()}); err != nil {
		tb.Fatal(err)
	}
	record := json.RawMessage(`{"properties":"` + strings.Repeat("x", 2000) + `"}`)
	var wg sync.WaitGroup
	slots := make(chan struct{}, concurrency)
	for i := range 200 {
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			id := fmt.Sprint("Resource", i)
			op, err := s.PutOp(ctx, runID, runlog.StatusOpen, runlog.Op{OpID: id, Epoch: 1, Status: runlog.OpIntent, Before: record})
			if err == nil {
				err = s.Append(ctx, runlog.Event{RunID: runID, ID: runlog.EventID(1, id, runlog.OpStarted, 1)})
			}
			if err == nil {
				op.Status, op.After = runlog.OpSucceeded, record
				_, err = s.PutOp(ctx, runID, runlog.StatusOpen, op)
			}
			if err == nil {
				err = s.Append(ctx, runlog.Event{RunID: runID, ID: runlog.EventID(1, id, runlog.OpDone, 1)})
			}
			if err != nil {
				tb.Error(err)
			}
		}()
	}
	wg.Wait()
}

func BenchmarkARunOf200Operations(b *testing.B) {
	for _, concurrency := range []int{1, 40} {
		b.Run(fmt.Sprint(concurrency, "-at-once"), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "slipway.db"))
			for i := 0; b.Loop(); i++ {
				deploy(b, s, fmt.Sprint("run", i), concurrency)
			}
		})
	}
	b.Run("2-processes-40-at-once", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "slipway.db")
		s := &alternating{Store: open(b, path), other: open(b, path)}
		for i := 0; b.Loop(); i++ {
			deploy(b, s, fmt.Sprint("run", i), 40)
		}
	})
}
