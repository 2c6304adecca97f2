package local_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/local"
	"github.com/slipway-cdk/slipway/pkg/objectstore/objectstoretest"
)

func open(t testing.TB, path string, clk clock.Clock) *local.Store {
	t.Helper()
	db, err := localdb.Open(path)
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

func TestTheLocalStoreKeepsTheContract(t *testing.T) {
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store {
		return open(t, filepath.Join(t.TempDir(), "slipway.db"), nil)
	})
}

// alternating spreads calls over two connections to one file, as two processes would.
type alternating struct {
	stores [2]objectstore.Store
	calls  atomic.Int64
}

func (a *alternating) next() objectstore.Store { return a.stores[a.calls.Add(1)%2] }

func (a *alternating) Get(ctx context.Context, key string) (objectstore.Object, error) {
	return a.next().Get(ctx, key)
}

func (a *alternating) Head(ctx context.Context, key string) (objectstore.Info, error) {
	return a.next().Head(ctx, key)
}

func (a *alternating) Put(ctx context.Context, key string, body []byte, c objectstore.Condition) (string, error) {
	return a.next().Put(ctx, key, body, c)
}

func (a *alternating) Delete(ctx context.Context, key string, c objectstore.Condition) error {
	return a.next().Delete(ctx, key, c)
}

func (a *alternating) List(ctx context.Context, prefix string) ([]objectstore.Info, error) {
	return a.next().List(ctx, prefix)
}

func TestTwoConnectionsKeepTheContract(t *testing.T) {
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store {
		path := filepath.Join(t.TempDir(), "slipway.db")
		return &alternating{stores: [2]objectstore.Store{open(t, path, nil), open(t, path, nil)}}
	})
}

func TestKeysThatS3RefusesAreRefused(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "slipway.db"), nil)
	for _, key := range []string{"", string(bytes.Repeat([]byte("k"), 1025)), "a\xffb"} {
		if _, err := s.Put(t.Context(), key, nil, objectstore.Condition{}); err == nil {
			t.Errorf("a key of %d bytes was accepted", len(key))
		}
		if _, err := s.Get(t.Context(), key); err == nil {
			t.Errorf("reading a key of %d bytes was accepted", len(key))
		}
	}
}

func TestLastModifiedComesFromTheClock(t *testing.T) {
	clk := clock.NewFake(time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.UTC))
	s := open(t, filepath.Join(t.TempDir(), "slipway.db"), clk)
	if _, err := s.Put(t.Context(), "k", nil, objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	clk.Advance(time.Minute)
	got, err := s.Head(t.Context(), "k")
	if want := clk.Now().Add(-time.Minute); err != nil || !got.LastModified.Equal(want) {
		t.Fatalf("LastModified = %v, %v, want %v", got.LastModified, err, want)
	}
}

func TestObjectsSurviveReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "a file?#%.db")
	if _, err := open(t, path, nil).Put(t.Context(), "k", []byte("body"), objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	o, err := open(t, path, nil).Get(t.Context(), "k")
	if err != nil || string(o.Body) != "body" {
		t.Fatalf("Get = %q, %v", o.Body, err)
	}
}

func BenchmarkPutAndGet(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "slipway.db"), nil)
			body := bytes.Repeat([]byte("x"), size)
			for i := 0; b.Loop(); i++ {
				key := fmt.Sprint("k", i%100)
				if _, err := s.Put(b.Context(), key, body, objectstore.Condition{}); err != nil {
					b.Fatal(err)
				}
				if _, err := s.Get(b.Context(), key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
