package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

const (
	mine   = "me@host:slipway:run-1"
	theirs = "you@host:slipway:run-2"
	cdkds  = "golden@vm:29677"
)

func acquire(t *testing.T, s *Store, owner string) *Lock {
	t.Helper()
	l, err := s.Acquire(t.Context(), "App", "eu-west-1", owner, "deploy")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func readLock(t *testing.T, s *Store) StandingLock {
	t.Helper()
	l, err := s.ReadLock(t.Context(), "App", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// foreign puts a lock as cdkd does.
func foreign(t *testing.T, s *Store, since time.Time) {
	t.Helper()
	data, err := json.Marshal(LockInfo{Owner: cdkds, Timestamp: since.UnixMilli(), ExpiresAt: since.Add(LockTTL).UnixMilli(), Operation: "deploy"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, s.LockKey("App", "eu-west-1"), string(data))
}

func TestALockIsWrittenAsCdkdWritesIt(t *testing.T) {
	s, f, _ := newStore(t)
	if _, err := s.Acquire(t.Context(), "App", "EU-West-1", mine, "deploy"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"cdkd/App/eu-west-1/lock.json"}, f.keys); d != "" {
		t.Fatalf("keys (-want +got):\n%s", d)
	}
	const want = `{
  "owner": "me@host:slipway:run-1",
  "timestamp": 1795986000000,
  "expiresAt": 1795987800000,
  "operation": "deploy"
}`
	if d := cmp.Diff(want, body(t, s, s.LockKey("App", "eu-west-1"))); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

func TestALockExcludesEverybodyElse(t *testing.T) {
	s, _, clk := newStore(t)
	l := acquire(t, s, mine)
	clk.Advance(time.Minute)
	_, err := s.Acquire(t.Context(), "App", "eu-west-1", theirs, "destroy")
	locked := AsLocked(err)
	if locked == nil || locked.Holder.Owner != mine || locked.Stack != "App" || locked.Region != "eu-west-1" || locked.Expired() {
		t.Fatalf("error is %#v", err)
	}
	for _, want := range []string{
		"stack App in eu-west-1", "me@host", "run run-1", "for deploy", "2026-11-29 21:00:00 UTC", "2026-11-29 21:30:00 UTC",
		"29m0s left", "slipway force-unlock App",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q: %v", want, err)
		}
	}
	// Another stack and another region are free.
	for _, at := range [][2]string{{"App", "us-east-1"}, {"App2", "eu-west-1"}} {
		if _, err := s.Acquire(t.Context(), at[0], at[1], theirs, "deploy"); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	acquire(t, s, theirs)
}

func TestOneOfManyGetsTheLock(t *testing.T) {
	s, _, _ := newStore(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 30 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, err := s.Acquire(context.Background(), "App", "eu-west-1", Owner("me@host", fmt.Sprint("run-", i)), "deploy")
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if AsLocked(err) == nil {
				t.Errorf("loser: %v", err)
			}
		}()
	}
	wg.Wait()
	if won != 1 {
		t.Fatalf("%d have won", won)
	}
}

func TestAnExpiredForeignLockIsNotTaken(t *testing.T) {
	s, _, clk := newStore(t)
	foreign(t, s, clk.Now())
	clk.Advance(LockTTL + 5*time.Minute)
	_, err := s.Acquire(t.Context(), "App", "eu-west-1", mine, "deploy")
	locked := AsLocked(err)
	if locked == nil || !locked.Expired() {
		t.Fatalf("error is %v", err)
	}
	for _, want := range []string{cdkds, "expired 5m0s ago", "slipway force-unlock App"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q: %v", want, err)
		}
	}
	if _, err := s.TakeOver(t.Context(), locked.Standing, mine, "deploy"); AsLocked(err) == nil {
		t.Fatalf("TakeOver = %v", err)
	}
	removed, err := s.ForceUnlock(t.Context(), "App", "eu-west-1")
	if err != nil || removed == nil || removed.Owner != cdkds {
		t.Fatalf("ForceUnlock = %+v, %v", removed, err)
	}
	acquire(t, s, mine)
}

func TestAnUnreadableLockExcludesAndCanBeRemoved(t *testing.T) {
	for _, data := range []string{"", "null", "[]", `"x"`, "{", `{"owner":5}`, "nonsense"} {
		s, _, _ := newStore(t)
		put(t, s, s.LockKey("App", "eu-west-1"), data)
		_, err := s.Acquire(t.Context(), "App", "eu-west-1", mine, "deploy")
		locked := AsLocked(err)
		if locked == nil || !locked.Standing.Unreadable || !strings.Contains(err.Error(), "unreadable") || !strings.Contains(err.Error(), "force-unlock") {
			t.Fatalf("%q: %v", data, err)
		}
		if _, err := s.TakeOver(t.Context(), locked.Standing, mine, "deploy"); AsLocked(err) == nil {
			t.Fatalf("%q: TakeOver = %v", data, err)
		}
		if _, err := s.Attach(t.Context(), "App", "eu-west-1", ""); !errors.Is(err, ErrLockLost) {
			t.Fatalf("%q: Attach = %v", data, err)
		}
		if removed, err := s.ForceUnlock(t.Context(), "App", "eu-west-1"); err != nil || removed == nil || !removed.Unreadable {
			t.Fatalf("%q: ForceUnlock = %+v, %v", data, removed, err)
		}
		acquire(t, s, mine)
	}
}

func TestForceUnlockWithoutLockSaysSo(t *testing.T) {
	s, _, _ := newStore(t)
	if removed, err := s.ForceUnlock(t.Context(), "App", "eu-west-1"); removed != nil || err != nil {
		t.Fatalf("ForceUnlock = %+v, %v", removed, err)
	}
}

func TestForceUnlockRemovesTheVersion1LockOfAVersion1Record(t *testing.T) {
	s, _, _ := newStore(t)
	put(t, s, "cdkd/App/lock.json", "{}")
	if _, err := s.ForceUnlock(t.Context(), "App", "eu-west-1"); err != nil || body(t, s, "cdkd/App/lock.json") == "" {
		t.Fatalf("without a version 1 record: %v", err)
	}
	put(t, s, "cdkd/App/state.json", stateWith())
	if _, err := s.ForceUnlock(t.Context(), "App", "us-east-1"); err != nil || body(t, s, "cdkd/App/lock.json") == "" {
		t.Fatalf("of another region: %v", err)
	}
	if _, err := s.ForceUnlock(t.Context(), "App", "eu-west-1"); err != nil || body(t, s, "cdkd/App/lock.json") != "" {
		t.Fatalf("it still stands: %v", err)
	}
}

func TestControlCharactersOfAnOwnerAreNotShown(t *testing.T) {
	s, _, _ := newStore(t)
	put(t, s, s.LockKey("App", "eu-west-1"), `{"owner":"evil\u001b[2J\u202e\r\n\u0007x","timestamp":0,"expiresAt":1,"operation":"\u001b]0;t\u0007"}`)
	_, err := s.Acquire(t.Context(), "App", "eu-west-1", mine, "deploy")
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\r\n\a\u202e") || !strings.Contains(err.Error(), "evil[2Jx for ]0;t") {
		t.Fatalf("error is %q", err)
	}
}

func TestRenewExtendsTheLock(t *testing.T) {
	s, _, clk := newStore(t)
	l := acquire(t, s, mine)
	before := l.ETag()
	clk.Advance(10 * time.Minute)
	if err := l.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := readLock(t, s)
	want := LockInfo{Owner: mine, Timestamp: start.UnixMilli(), ExpiresAt: start.Add(10*time.Minute + LockTTL).UnixMilli(), Operation: "deploy"}
	if d := cmp.Diff(want, got.LockInfo); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	if l.Info() != want || l.ETag() != got.ETag || l.ETag() == before {
		t.Fatalf("the lock knows %+v %s", l.Info(), l.ETag())
	}
	clk.Advance(10 * time.Minute)
	if err := l.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestALostLockIsNeitherRenewedNorReleased(t *testing.T) {
	for name, happens := range map[string]func(*testing.T, *Store){
		"taken by cdkd": func(t *testing.T, s *Store) { foreign(t, s, start) },
		"unreadable":    func(t *testing.T, s *Store) { put(t, s, s.LockKey("App", "eu-west-1"), "?") },
		"taken over": func(t *testing.T, s *Store) {
			if _, err := s.TakeOver(t.Context(), readLock(t, s), theirs, "settle"); err != nil {
				t.Fatal(err)
			}
		},
		"taken by the next run of the same caller": func(t *testing.T, s *Store) {
			if _, err := s.ForceUnlock(t.Context(), "App", "eu-west-1"); err != nil {
				t.Fatal(err)
			}
			acquire(t, s, "me@host:slipway:run-1b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := newStore(t)
			l := acquire(t, s, mine)
			l2, err := s.Attach(t.Context(), "App", "eu-west-1", mine)
			if err != nil {
				t.Fatal(err)
			}
			happens(t, s)
			before := body(t, s, s.LockKey("App", "eu-west-1"))
			if err := l.Renew(t.Context()); !errors.Is(err, ErrLockLost) || !strings.Contains(err.Error(), "App") {
				t.Errorf("Renew = %v", err)
			}
			if err := l2.Release(t.Context()); !errors.Is(err, ErrLockLost) {
				t.Errorf("Release = %v", err)
			}
			if err := l.Renew(t.Context()); !errors.Is(err, ErrLockLost) {
				t.Errorf("second Renew = %v", err)
			}
			if _, err := s.Attach(t.Context(), "App", "eu-west-1", mine); !errors.Is(err, ErrLockLost) || AsLocked(err) == nil {
				t.Errorf("Attach = %v", err)
			}
			if after := body(t, s, s.LockKey("App", "eu-west-1")); after != before {
				t.Errorf("the other's lock was %s and is %s", before, after)
			}
		})
	}
}

func TestALockThatIsGone(t *testing.T) {
	s, _, _ := newStore(t)
	l := acquire(t, s, mine)
	l2, err := s.Attach(t.Context(), "App", "eu-west-1", mine)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ForceUnlock(t.Context(), "App", "eu-west-1"); err != nil {
		t.Fatal(err)
	}
	if err := l.Renew(t.Context()); !errors.Is(err, ErrLockLost) {
		t.Errorf("Renew = %v", err)
	}
	for range 2 {
		if err := l2.Release(t.Context()); err != nil {
			t.Errorf("Release = %v", err)
		}
	}
	if err := l2.Renew(t.Context()); !errors.Is(err, ErrLockLost) {
		t.Errorf("Renew after Release = %v", err)
	}
	if _, err := s.Attach(t.Context(), "App", "eu-west-1", mine); !errors.Is(err, ErrLockLost) {
		t.Errorf("Attach = %v", err)
	}
	if body(t, s, s.LockKey("App", "eu-west-1")) != "" {
		t.Error("a lock came back")
	}
}

func TestProcessesOfOneRunShareItsLock(t *testing.T) {
	s, _, clk := newStore(t)
	first := acquire(t, s, mine)
	clk.Advance(time.Minute)
	second, err := s.Attach(t.Context(), "App", "EU-WEST-1", mine)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	clk.Advance(time.Minute)
	if err := first.Renew(t.Context()); err != nil {
		t.Fatalf("the first process, after the second has renewed: %v", err)
	}
	if err := second.Release(t.Context()); err != nil {
		t.Fatalf("the second process, after the first has renewed: %v", err)
	}
	if body(t, s, s.LockKey("App", "eu-west-1")) != "" {
		t.Fatal("the lock still stands")
	}
}

func TestTakeOverReplacesExactlyTheLockThatWasRead(t *testing.T) {
	s, _, clk := newStore(t)
	acquire(t, s, theirs)
	seen := readLock(t, s)
	clk.Advance(LockTTL + time.Minute)
	// The holder turns out to be alive.
	alive, err := s.Attach(t.Context(), "App", "eu-west-1", theirs)
	if err != nil {
		t.Fatal(err)
	}
	if err := alive.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TakeOver(t.Context(), seen, mine, "deploy"); AsLocked(err) == nil || AsLocked(err).Holder.Owner != theirs {
		t.Fatalf("TakeOver of a lock that was renewed = %v", err)
	}
	l, err := s.TakeOver(t.Context(), readLock(t, s), mine, "settle")
	if err != nil {
		t.Fatal(err)
	}
	if got := readLock(t, s); got.Owner != mine || got.Operation != "settle" || got.ETag != l.ETag() || got.Timestamp != clk.Now().UnixMilli() {
		t.Fatalf("the lock is %+v", got)
	}
	if err := alive.Renew(t.Context()); !errors.Is(err, ErrLockLost) {
		t.Fatalf("Renew by the one before = %v", err)
	}
	stale := readLock(t, s)
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TakeOver(t.Context(), stale, theirs, "deploy"); err != nil {
		t.Fatalf("TakeOver of a lock that was released meanwhile = %v", err)
	}
}

func TestLostAnswersOfTheLock(t *testing.T) {
	s, f, clk := newStore(t)
	s.Objects = retrying{f}
	lose := func() { f.after = f.writes + 1 }
	lose()
	l := acquire(t, s, mine)
	clk.Advance(time.Minute)
	lose()
	if err := l.Renew(t.Context()); err != nil {
		t.Fatalf("Renew = %v", err)
	}
	if got := readLock(t, s); got.LockInfo != l.Info() || got.ETag != l.ETag() {
		t.Fatalf("the lock is %+v, the holder knows %+v", got, l.Info())
	}
	lose()
	l, err := s.TakeOver(t.Context(), readLock(t, s), theirs, "deploy")
	if err != nil {
		t.Fatalf("TakeOver = %v", err)
	}
	lose()
	if err := l.Release(t.Context()); err != nil {
		t.Fatalf("Release = %v", err)
	}
	// Two each, and a third for the renewal, which is simply made again.
	if f.writes != 9 {
		t.Fatalf("%d writes: the faults did not all happen", f.writes)
	}
}

func TestAFailedRenewalLeavesTheLock(t *testing.T) {
	s, f, _ := newStore(t)
	l := acquire(t, s, mine)
	f.down = true
	if err := l.Renew(t.Context()); !errors.Is(err, errCrash) || errors.Is(err, ErrLockLost) {
		t.Fatalf("Renew = %v", err)
	}
	if err := l.Release(t.Context()); !errors.Is(err, errCrash) || errors.Is(err, ErrLockLost) {
		t.Fatalf("Release = %v", err)
	}
	f.down = false
	if err := l.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil || body(t, s, s.LockKey("App", "eu-west-1")) != "" {
		t.Fatalf("Release = %v", err)
	}
}

func TestOwners(t *testing.T) {
	for _, c := range []struct{ caller, run, owner string }{
		{"me@host", "r1", "me@host:slipway:r1"},
		{"", "r1", "unknown:slipway:r1"},
		{"a\x1b[1m\nb", "r1", "a[1mb:slipway:r1"},
		{"x:slipway:y", "r1", "x:slipway:y:slipway:r1"},
	} {
		if got := Owner(c.caller, c.run); got != c.owner {
			t.Errorf("Owner(%q, %q) = %q, want %q", c.caller, c.run, got, c.owner)
		}
		if run, ours := RunOfOwner(c.owner); run != c.run || !ours {
			t.Errorf("RunOfOwner(%q) = %q, %v", c.owner, run, ours)
		}
	}
	for _, owner := range []string{"", cdkds, "me@host:slipway:", "slipway:r1", "me@host:slipway"} {
		if run, ours := RunOfOwner(owner); run != "" || ours {
			t.Errorf("RunOfOwner(%q) = %q, %v", owner, run, ours)
		}
	}
}

func TestLockedRegionsFindsTheLockOfAStackWithoutRecord(t *testing.T) {
	s, _, _ := newStore(t)
	for _, key := range []string{
		"cdkd/App/us-west-2/lock.json", "cdkd/App/eu-west-1/lock.json", "cdkd/App/lock.json", "cdkd/App2/eu-west-1/lock.json",
		"cdkd/App/eu-west-1/deployments/lock.json", "cdkd/App~Kid/eu-west-1/lock.json",
	} {
		put(t, s, key, "{}")
	}
	got, err := s.LockedRegions(t.Context(), "App")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"eu-west-1", "us-west-2"}, got); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

// await gives the goroutine of Keep time to come to rest on the clock.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		runtime.Gosched()
	}
}

func keeping(t *testing.T) (*Store, *faulty, *clock.Fake, *Lock) {
	s, f, clk := newStore(t)
	clk.AutoAdvance = false
	return s, f, clk, acquire(t, s, mine)
}

func TestKeepRenewsUntilItIsStopped(t *testing.T) {
	s, f, clk, l := keeping(t)
	ctx, stop := l.Keep(t.Context())
	for i := range 20 {
		await(t, "it sleeps", func() bool { return clk.Sleepers() == 1 })
		if readLock(t, s).Expired(clk.Now()) {
			t.Fatalf("expired after %d rounds", i)
		}
		clk.Advance(renewEvery)
	}
	await(t, "it sleeps", func() bool { return clk.Sleepers() == 1 })
	if ctx.Err() != nil {
		t.Fatalf("the work was cancelled: %v", context.Cause(ctx))
	}
	stop()
	writes := f.writes
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), ErrLockLost) {
		t.Fatalf("after stop: %v", context.Cause(ctx))
	}
	clk.Advance(renewEvery)
	if f.writes != writes {
		t.Fatal("it renews after it was stopped")
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestKeepCancelsTheWorkWhenTheLockIsLost(t *testing.T) {
	s, _, clk, l := keeping(t)
	ctx, stop := l.Keep(t.Context())
	defer stop()
	await(t, "it sleeps", func() bool { return clk.Sleepers() == 1 })
	foreign(t, s, clk.Now())
	clk.Advance(renewEvery)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), ErrLockLost) {
		t.Fatalf("cause is %v", context.Cause(ctx))
	}
}

func TestKeepCancelsTheWorkBeforeTheLockGoesStale(t *testing.T) {
	s, f, clk, l := keeping(t)
	ctx, stop := l.Keep(t.Context())
	defer stop()
	f.mu.Lock()
	f.down = true
	f.mu.Unlock()
	for range 1000 {
		await(t, "it sleeps or has given up", func() bool { return clk.Sleepers() == 1 || ctx.Err() != nil })
		if ctx.Err() != nil {
			break
		}
		clk.Advance(renewRetry)
	}
	if !errors.Is(context.Cause(ctx), ErrLockLost) || !errors.Is(context.Cause(ctx), errCrash) {
		t.Fatalf("cause is %v", context.Cause(ctx))
	}
	f.mu.Lock()
	f.down = false
	f.mu.Unlock()
	left := time.UnixMilli(readLock(t, s).ExpiresAt).Sub(clk.Now())
	if left < staleMargin || left > staleMargin+2*renewRetry {
		t.Fatalf("the work was cancelled %v before the lock's end", left)
	}
}

func TestKeepSurvivesAShortOutage(t *testing.T) {
	s, f, clk, l := keeping(t)
	ctx, stop := l.Keep(t.Context())
	defer stop()
	await(t, "it sleeps", func() bool { return clk.Sleepers() == 1 })
	f.mu.Lock()
	f.before = f.writes + 1
	f.mu.Unlock()
	clk.Advance(renewEvery)
	await(t, "it sleeps", func() bool { return clk.Sleepers() == 1 })
	clk.Advance(renewRetry)
	await(t, "the lock is renewed", func() bool {
		return readLock(t, s).ExpiresAt == start.Add(renewEvery+renewRetry+LockTTL).UnixMilli()
	})
	if ctx.Err() != nil {
		t.Fatal(context.Cause(ctx))
	}
}
