//go:build emulators

package endtoend

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func TestOneOfFiftyGetsTheLockInEachOfTwentyRounds(t *testing.T) {
	client := s3.NewClient(emulators.Config(t), "")
	bucket := "slipway-locks-" + randomHex(4)
	if _, err := client.CreateBucket(t.Context(), &sdk.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	store := &state.Store{Objects: &s3.Store{Client: client, Bucket: bucket, Clock: clock.Real{}}, Clock: clock.Real{}}
	for round := range 20 {
		var won atomic.Pointer[state.Lock]
		var winners atomic.Int32
		var begin sync.WaitGroup
		var racers sync.WaitGroup
		begin.Add(1)
		for i := range 50 {
			racers.Go(func() {
				begin.Wait()
				lock, err := store.Acquire(context.Background(), "App", region, state.Owner("me@host", fmt.Sprintf("run-%d-%d", round, i)), "deploy")
				switch {
				case err == nil:
					winners.Add(1)
					won.Store(lock)
				case state.AsLocked(err) == nil:
					t.Errorf("round %d: a loser is told %v", round, err)
				}
			})
		}
		begin.Done()
		racers.Wait()
		if n := winners.Load(); n != 1 {
			t.Fatalf("round %d: %d have the lock", round, n)
		}
		if err := won.Load().Release(t.Context()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}
