package state

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/local"
)

var errCrash = errors.New("the connection broke")

// faulty is a store whose n-th write breaks, either before it reaches the store or after, its answer lost.
// It counts writes from 1; 0 breaks none. While down, everything breaks.
type faulty struct {
	objectstore.Store
	mu     sync.Mutex
	writes int
	keys   []string
	before int
	after  int
	down   bool
	// then runs before the n-th write reaches the store: what another process does in between.
	then map[int]func()
}

func (f *faulty) write(key string, do func() error) error {
	f.mu.Lock()
	f.writes++
	n := f.writes
	f.keys = append(f.keys, key)
	then := f.then[n]
	broken := f.down || n == f.before
	f.mu.Unlock()
	if broken {
		return errCrash
	}
	if then != nil {
		then()
	}
	err := do()
	if n == f.after {
		return errCrash
	}
	return err
}

func (f *faulty) Put(ctx context.Context, key string, body []byte, c objectstore.Condition) (etag string, err error) {
	err = f.write(key, func() (err error) {
		etag, err = f.Store.Put(ctx, key, body, c)
		return err
	})
	if err != nil {
		etag = ""
	}
	return etag, err
}

func (f *faulty) Delete(ctx context.Context, key string, c objectstore.Condition) error {
	return f.write(key, func() error { return f.Store.Delete(ctx, key, c) })
}

func (f *faulty) Get(ctx context.Context, key string) (objectstore.Object, error) {
	f.mu.Lock()
	down := f.down
	f.mu.Unlock()
	if down {
		return objectstore.Object{}, errCrash
	}
	return f.Store.Get(ctx, key)
}

// retrying repeats a call once after a broken connection, as the AWS SDK does: the second attempt of a
// conditional write meets the first one's effect.
type retrying struct{ *faulty }

func (r retrying) Put(ctx context.Context, key string, body []byte, c objectstore.Condition) (string, error) {
	etag, err := r.faulty.Put(ctx, key, body, c)
	if errors.Is(err, errCrash) {
		return r.faulty.Put(ctx, key, body, c)
	}
	return etag, err
}

func (r retrying) Delete(ctx context.Context, key string, c objectstore.Condition) error {
	err := r.faulty.Delete(ctx, key, c)
	if errors.Is(err, errCrash) {
		return r.faulty.Delete(ctx, key, c)
	}
	return err
}

var start = time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)

func objects(t *testing.T, clk clock.Clock) objectstore.Store {
	t.Helper()
	db, err := localdb.Open(filepath.Join(t.TempDir(), "slipway.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := local.New(db, clk)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newStore returns a store on an empty file, what stands between the two, and the clock.
func newStore(t *testing.T) (*Store, *faulty, *clock.Fake) {
	t.Helper()
	clk := clock.NewFake(start)
	clk.AutoAdvance = true
	f := &faulty{Store: objects(t, clk)}
	return &Store{Objects: f, Clock: clk}, f, clk
}

func put(t *testing.T, s *Store, key, body string) string {
	t.Helper()
	etag, err := s.Objects.Put(t.Context(), key, []byte(body), objectstore.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return etag
}

func body(t *testing.T, s *Store, key string) string {
	t.Helper()
	o, err := s.Objects.Get(t.Context(), key)
	if errors.Is(err, objectstore.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Body)
}

// rec is a small record whose content n tells apart.
func rec(stack string, n string) *Record {
	return &Record{
		StackName: stack, Region: "eu-west-1", Outputs: map[string]any{"N": n},
		Resources: map[string]*Resource{"R": {PhysicalID: "p" + n, ResourceType: "AWS::SQS::Queue", Properties: map[string]any{}}},
	}
}

func save(t *testing.T, s *Store, r *Record, etag string) string {
	t.Helper()
	etag, err := s.Save(t.Context(), r, etag)
	if err != nil {
		t.Fatal(err)
	}
	return etag
}
