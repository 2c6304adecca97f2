// Package clock is the one source of time for logic that waits or stamps. Real time in production, scaled
// time for the sandbox (a wait of a minute can take a millisecond), and a fake that tests advance by hand.
package clock

import (
	"context"
	"sync"
	"time"
)

// Clock tells the time and waits.
type Clock interface {
	// Now is the wall-clock time. It is never scaled: locks and leases are compared across processes.
	Now() time.Time
	// Sleep waits for d, or less on a scaled clock, or until ctx ends, whose error it then returns.
	Sleep(ctx context.Context, d time.Duration) error
}

// Real is wall-clock time.
type Real struct{}

// Now implements Clock.
func (Real) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (Real) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, d) }

// Scaled waits shorter than asked. Speed N > 0 waits d/N. Speed 0 ("instant") waits d/200, at most 25 ms:
// a wait then only yields, it does not model latency.
type Scaled struct{ Speed float64 }

// Now implements Clock.
func (Scaled) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (s Scaled) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, s.Wall(d)) }

// Wall is how long a wait of d takes in real time.
func (s Scaled) Wall(d time.Duration) time.Duration {
	if s.Speed > 0 {
		return time.Duration(float64(d) / s.Speed)
	}
	return min(d/200, 25*time.Millisecond)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Fake is a clock that stands still until Advance moves it. The zero value starts at the zero time;
// use NewFake for a start of your choice. It is safe for concurrent use.
type Fake struct {
	mu      sync.Mutex
	now     time.Time
	waiters []waiter
	// AutoAdvance makes every Sleep move the clock by its duration and return at once: for code that is
	// tested without a second goroutine.
	AutoAdvance bool
}

type waiter struct {
	until time.Time
	done  chan struct{}
}

// NewFake returns a fake clock that shows start.
func NewFake(start time.Time) *Fake { return &Fake{now: start} }

// Now implements Clock.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Sleep implements Clock. It returns when Advance has moved the clock past its end.
func (f *Fake) Sleep(ctx context.Context, d time.Duration) error {
	f.mu.Lock()
	if d <= 0 || f.AutoAdvance {
		if d > 0 {
			f.advance(d)
		}
		f.mu.Unlock()
		return ctx.Err()
	}
	w := waiter{until: f.now.Add(d), done: make(chan struct{})}
	f.waiters = append(f.waiters, w)
	f.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Advance moves the clock and wakes every sleeper whose time has come.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(d)
}

func (f *Fake) advance(d time.Duration) {
	f.now = f.now.Add(d)
	left := f.waiters[:0]
	for _, w := range f.waiters {
		if w.until.After(f.now) {
			left = append(left, w)
			continue
		}
		close(w.done)
	}
	f.waiters = left
}

// Sleepers is the number of goroutines that wait on the clock now.
func (f *Fake) Sleepers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiters)
}

var (
	_ Clock = Real{}
	_ Clock = Scaled{}
	_ Clock = (*Fake)(nil)
)
