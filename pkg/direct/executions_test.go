package direct

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/asl/asltest"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	locals "github.com/slipway-cdk/slipway/pkg/objectstore/local"
)

// bucket is an object store whose clock is clk.
func bucket(t *testing.T, clk clock.Clock) objectstore.Store {
	t.Helper()
	db, err := localdb.Open(filepath.Join(t.TempDir(), "objects.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := locals.New(db, clk)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestExecutionsInTheBucketKeepTheContract(t *testing.T) {
	asltest.RunStore(t, func(t *testing.T) asl.Store { return &executions{objects: bucket(t, nil)} })
}

// forgetful loses every second answer of a conditional write that was carried out. The client then sends it again, and
// is refused.
type forgetful struct {
	objectstore.Store
	n atomic.Int64
}

func (f *forgetful) Put(ctx context.Context, key string, body []byte, cond objectstore.Condition) (string, error) {
	etag, err := f.Store.Put(ctx, key, body, cond)
	if err == nil && cond != (objectstore.Condition{}) && f.n.Add(1)%2 == 0 {
		return f.Store.Put(ctx, key, body, cond)
	}
	return etag, err
}

func TestLostAnswersKeepTheContract(t *testing.T) {
	asltest.RunStore(t, func(t *testing.T) asl.Store { return &executions{objects: &forgetful{Store: bucket(t, nil)}} })
}

func TestAnotherProcessSeesWhatRunsAndEndsIt(t *testing.T) {
	b := bucket(t, nil)
	here, there := &executions{objects: b}, &executions{objects: b}
	e := asl.Execution{
		ARN: "arn:aws:states:us-east-1:000000000000:execution:m:n", Machine: "arn:aws:states:us-east-1:000000000000:stateMachine:m", Name: "n",
		Status: asl.StatusRunning, Input: []byte(`{}`), StartedAt: time.Unix(1_900_000_000, 0).UTC(), Holder: "h",
	}
	if _, created, err := here.Create(t.Context(), e, []asl.Event{{ID: 1, Type: asl.ExecutionStarted}}); err != nil || !created {
		t.Fatalf("%t, %v", created, err)
	}
	if _, created, err := there.Create(t.Context(), e, []asl.Event{{ID: 1, Type: asl.ExecutionStarted}}); err != nil || created {
		t.Errorf("the name was taken twice: %t, %v", created, err)
	}
	running, err := there.List(t.Context(), asl.Query{Status: asl.StatusRunning})
	if err != nil || len(running) != 1 || running[0].Holder != "h" {
		t.Fatalf("%v run, %v", running, err)
	}
	if _, err := there.Finish(t.Context(), e.ARN, asl.Outcome{Status: asl.StatusAborted}, []asl.Event{{Type: asl.ExecutionAborted}}); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Finish(t.Context(), e.ARN, asl.Outcome{Status: asl.StatusSucceeded}, nil); err == nil {
		t.Error("an execution has ended twice")
	}
	if running, err = here.List(t.Context(), asl.Query{Status: asl.StatusRunning}); err != nil || len(running) != 0 {
		t.Errorf("%v run, %v", running, err)
	}
	// As if its process had died before it took the note away.
	if _, err := b.Put(t.Context(), runningKey(e.ARN), nil, objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	if running, err = here.List(t.Context(), asl.Query{Status: asl.StatusRunning}); err != nil || len(running) != 0 {
		t.Errorf("%v run, %v", running, err)
	}
	if left, err := b.List(t.Context(), runningPrefix); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
