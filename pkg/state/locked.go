package state

import (
	"errors"
	"fmt"
	"time"
)

// LockedError says that somebody else holds a stack's lock.
type LockedError struct {
	Holder LockInfo
	Stack  string
	Region string
	// Standing is the lock as it was read, for TakeOver.
	Standing StandingLock
	// Now is when it was read; the message counts from it.
	Now time.Time
}

// AsLocked returns the *LockedError in err's chain, or nil.
func AsLocked(err error) *LockedError {
	var l *LockedError
	if errors.As(err, &l) {
		return l
	}
	return nil
}

// Expired reports whether the lock's time was over when it was read.
func (e *LockedError) Expired() bool { return !e.Standing.Unreadable && e.Holder.Expired(e.Now) }

// Error says who holds the lock, for what, since when and until when, and what can be done.
func (e *LockedError) Error() string {
	stack, region := Printable(e.Stack), Printable(e.Region)
	unlock := fmt.Sprintf("`slipway force-unlock %s`", stack)
	if e.Standing.Unreadable {
		return fmt.Sprintf("stack %s in %s is locked by an unreadable lock file: make sure that nobody is working on the stack, then run %s",
			stack, region, unlock)
	}
	until := time.UnixMilli(e.Holder.ExpiresAt)
	what := fmt.Sprintf("stack %s in %s is locked by %s since %s", stack, region, holder(e.Standing), stamp(e.Holder.Timestamp))
	if e.Expired() {
		return fmt.Sprintf("%s; the lock expired %s ago (%s), but its owner may still be working, since not every tool renews its locks: make sure that it is not, then run %s",
			what, round(e.Now.Sub(until)), stamp(e.Holder.ExpiresAt), unlock)
	}
	return fmt.Sprintf("%s, until %s (%s left): wait for it, or, if its owner is dead, run %s",
		what, stamp(e.Holder.ExpiresAt), round(until.Sub(e.Now)), unlock)
}

// Who says who holds the lock, and for what.
func (l StandingLock) Who() string { return holder(l) }

func holder(l StandingLock) string {
	if l.Unreadable {
		return "an unreadable lock file"
	}
	owner := clip(Printable(l.Owner))
	if runID, ours := RunOfOwner(l.Owner); ours {
		owner = clip(Printable(l.Owner[:len(l.Owner)-len(ownerMark)-len(runID)])) + " (run " + Printable(runID) + ")"
	}
	if owner == "" {
		owner = "somebody who left no name"
	}
	if op := clip(Printable(l.Operation)); op != "" {
		owner += " for " + op
	}
	return owner
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }

func round(d time.Duration) time.Duration { return d.Round(time.Second) }
