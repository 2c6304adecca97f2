package state

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// renewEvery leaves five more attempts before a lock's time is over.
	renewEvery = LockTTL / 6
	// renewRetry is the pause after a renewal that failed for another reason than loss.
	renewRetry = 15 * time.Second
	// staleMargin is how long before the lock's end the work is cancelled.
	staleMargin = LockTTL / 6
)

// Keep renews the lock in the background for as long as the caller works. The returned context ends with
// ctx, with stop, and, its cause then being ErrLockLost, as soon as the lock is lost or cannot be renewed
// any more well before its time is over: the work stops before the lock can go stale. stop waits until the
// renewals have ended; it does not release the lock.
func (l *Lock) Keep(ctx context.Context) (kept context.Context, stop func()) {
	kept, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.keep(kept); err != nil {
			cancel(err)
		}
	}()
	return kept, func() {
		cancel(context.Canceled)
		<-done
	}
}

func (l *Lock) keep(ctx context.Context) error {
	c := l.store.clock()
	due := c.Now().Add(renewEvery)
	for {
		// A scaled clock sleeps for less than it is asked to: go by the time.
		if now := c.Now(); now.Before(due) {
			if c.Sleep(ctx, due.Sub(now)) != nil {
				return nil
			}
			continue
		}
		err := l.Renew(ctx)
		switch end := time.UnixMilli(l.Info().ExpiresAt); {
		case err == nil:
			due = c.Now().Add(renewEvery)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrLockLost):
			return err
		case !c.Now().Add(renewRetry).Before(end.Add(-staleMargin)):
			return fmt.Errorf("the lock of stack %s in %s could not be renewed: %w: %w", l.Stack, l.Region, ErrLockLost, err)
		default:
			due = c.Now().Add(renewRetry)
		}
	}
}
