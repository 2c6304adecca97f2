package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// LockTTL is how long a lock is good for after it was taken or renewed (reference §2).
const LockTTL = 30 * time.Minute

// LockInfo is lock.json (reference §2): milliseconds since 1970.
type LockInfo struct {
	Owner     string `json:"owner"`
	Timestamp int64  `json:"timestamp"`
	ExpiresAt int64  `json:"expiresAt"`
	Operation string `json:"operation,omitempty"`
}

// Expired reports whether the lock's time was over at now.
func (i LockInfo) Expired(now time.Time) bool { return now.UnixMilli() >= i.ExpiresAt }

// StandingLock is a lock as it was read: somebody's, and perhaps unreadable.
type StandingLock struct {
	LockInfo
	Stack  string
	Region string
	ETag   string
	// Unreadable: the body is not a lock. It excludes everybody all the same (reference §2).
	Unreadable bool
}

// Lock is a lock that this process holds. Its methods may be called concurrently.
type Lock struct {
	Stack  string
	Region string

	store *Store
	mu    sync.Mutex
	info  LockInfo
	etag  string
	over  bool // released or lost
}

// Info returns what the lock says now.
func (l *Lock) Info() LockInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.info
}

// ETag returns the ETag of the lock's last write by this process.
func (l *Lock) ETag() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.etag
}

// Acquire takes the lock of a stack, or returns a *LockedError that says who holds it. An expired lock is
// not taken: cdkd never renews its own, so expired does not mean dead. If the holder is a run of Slipway
// (RunOfOwner), the caller can settle it and use TakeOver, or Attach if it is the caller's own run.
func (s *Store) Acquire(ctx context.Context, stack, region, owner, operation string) (*Lock, error) {
	now := s.now()
	info := LockInfo{Owner: owner, Timestamp: now.UnixMilli(), ExpiresAt: now.Add(LockTTL).UnixMilli(), Operation: operation}
	body, err := pretty(info)
	if err != nil {
		return nil, fmt.Errorf("encoding the lock of stack %s: %w", stack, err)
	}
	// The lock may vanish between the refusal and the look at it; then it is tried again.
	for range 3 {
		etag, err := s.Objects.Put(ctx, s.LockKey(stack, region), body, objectstore.Condition{IfNoneMatch: true})
		if err == nil {
			return &Lock{Stack: stack, Region: Region(region), store: s, info: info, etag: etag}, nil
		}
		if !errors.Is(err, objectstore.ErrPrecondition) {
			return nil, fmt.Errorf("locking stack %s in %s: %w", stack, Region(region), err)
		}
		held, err := s.ReadLock(ctx, stack, region)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !held.Unreadable && held.LockInfo == info {
			return s.holding(held), nil
		}
		return nil, s.locked(held)
	}
	return nil, fmt.Errorf("locking stack %s in %s: the lock keeps appearing and vanishing: try again", stack, Region(region))
}

// Attach makes the lock that a run of the same owner string has taken this process's own: a run is carried
// by many short processes. It returns ErrLockLost when the lock is somebody else's or gone.
func (s *Store) Attach(ctx context.Context, stack, region, owner string) (*Lock, error) {
	held, err := s.ReadLock(ctx, stack, region)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("lock of stack %s in %s: it is gone: %w", stack, Region(region), ErrLockLost)
	}
	if err != nil {
		return nil, err
	}
	if held.Unreadable || held.Owner != owner {
		return nil, fmt.Errorf("%w: %w", ErrLockLost, s.locked(held))
	}
	return s.holding(held), nil
}

// TakeOver replaces a lock that was read with one of the caller's, provided that it is still the same. The
// caller must know that its run is dead or that it is the one who settles it. A lock that Slipway has not
// written is refused with a *LockedError, expired or not: it takes a force-unlock.
func (s *Store) TakeOver(ctx context.Context, from StandingLock, owner, operation string) (*Lock, error) {
	if _, ours := RunOfOwner(from.Owner); from.Unreadable || !ours {
		return nil, s.locked(from)
	}
	now := s.now()
	info := LockInfo{Owner: owner, Timestamp: now.UnixMilli(), ExpiresAt: now.Add(LockTTL).UnixMilli(), Operation: operation}
	body, err := pretty(info)
	if err != nil {
		return nil, fmt.Errorf("encoding the lock of stack %s: %w", from.Stack, err)
	}
	etag, err := s.Objects.Put(ctx, s.LockKey(from.Stack, from.Region), body, objectstore.Condition{IfMatch: from.ETag})
	switch {
	case err == nil:
		return &Lock{Stack: from.Stack, Region: from.Region, store: s, info: info, etag: etag}, nil
	case errors.Is(err, objectstore.ErrNotFound):
		return s.Acquire(ctx, from.Stack, from.Region, owner, operation)
	case !errors.Is(err, objectstore.ErrPrecondition):
		return nil, fmt.Errorf("taking over the lock of stack %s in %s: %w", from.Stack, from.Region, err)
	}
	held, err := s.ReadLock(ctx, from.Stack, from.Region)
	if errors.Is(err, ErrNotFound) {
		return s.Acquire(ctx, from.Stack, from.Region, owner, operation)
	}
	if err != nil {
		return nil, err
	}
	if !held.Unreadable && held.LockInfo == info {
		return s.holding(held), nil
	}
	return nil, s.locked(held)
}

// Renew makes the lock good for another LockTTL. It returns ErrLockLost when the lock is not the caller's
// any more; any other error leaves it as it was, and Renew may be repeated.
func (l *Lock) Renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	info := l.info
	info.ExpiresAt = l.store.now().Add(LockTTL).UnixMilli()
	body, err := pretty(info)
	if err != nil {
		return fmt.Errorf("encoding the lock of stack %s: %w", l.Stack, err)
	}
	return l.ifMine(ctx, "renewing", func(etag string) error {
		newETag, err := l.store.Objects.Put(ctx, l.key(), body, objectstore.Condition{IfMatch: etag})
		if err == nil {
			l.info, l.etag = info, newETag
		}
		return err
	}, false)
}

// Release gives the lock up. A lock that is gone already is success; one that is somebody else's stays and
// is ErrLockLost.
func (l *Lock) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.ifMine(ctx, "releasing", func(etag string) error {
		return l.store.Objects.Delete(ctx, l.key(), objectstore.Condition{IfMatch: etag})
	}, true)
	if err == nil {
		l.over = true
	}
	return err
}

// ifMine makes a conditional write. After a refusal it looks: an ETag that changed under the very same owner
// string is this write's lost answer or a renewal by another process of the same run, and the write is
// repeated against it.
func (l *Lock) ifMine(ctx context.Context, doing string, write func(etag string) error, goneIsFine bool) error {
	lost := func(why string) error {
		l.over = true
		return fmt.Errorf("%s the lock of stack %s in %s: %s: %w", doing, l.Stack, l.Region, why, ErrLockLost)
	}
	if l.over {
		if goneIsFine {
			return nil
		}
		return lost("it was given up or lost before")
	}
	for range 4 {
		err := write(l.etag)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, objectstore.ErrNotFound):
			if goneIsFine {
				return nil
			}
			return lost("it is gone")
		case !errors.Is(err, objectstore.ErrPrecondition):
			return fmt.Errorf("%s the lock of stack %s in %s: %w", doing, l.Stack, l.Region, err)
		}
		held, err := l.store.ReadLock(ctx, l.Stack, l.Region)
		switch {
		case errors.Is(err, ErrNotFound) && goneIsFine:
			return nil
		case errors.Is(err, ErrNotFound):
			return lost("it is gone")
		case err != nil:
			return err
		case held.Unreadable || held.Owner != l.info.Owner || held.Timestamp != l.info.Timestamp:
			return lost("it is held by " + holder(held))
		}
		l.etag = held.ETag
	}
	return fmt.Errorf("%s the lock of stack %s in %s: it keeps changing under the same owner: try again", doing, l.Stack, l.Region)
}

func (l *Lock) key() string { return l.store.LockKey(l.Stack, l.Region) }

// ReadLock returns the lock that stands, or ErrNotFound.
func (s *Store) ReadLock(ctx context.Context, stack, region string) (StandingLock, error) {
	obj, err := s.Objects.Get(ctx, s.LockKey(stack, region))
	if errors.Is(err, objectstore.ErrNotFound) {
		return StandingLock{}, fmt.Errorf("lock of stack %s in %s: %w", stack, Region(region), ErrNotFound)
	}
	if err != nil {
		return StandingLock{}, fmt.Errorf("reading the lock of stack %s in %s: %w", stack, Region(region), err)
	}
	held := StandingLock{Stack: stack, Region: Region(region), ETag: obj.ETag}
	if !is(obj.Body, "an object") || json.Unmarshal(bytes.TrimSpace(obj.Body), &held.LockInfo) != nil {
		held.LockInfo, held.Unreadable = LockInfo{}, true
	}
	return held, nil
}

// ForceUnlock removes whatever lock stands, readable or not, and returns what it was; nil when there was
// none. Where a version 1 record of the same region stands, its lock goes too.
func (s *Store) ForceUnlock(ctx context.Context, stack, region string) (*StandingLock, error) {
	held, err := s.ReadLock(ctx, stack, region)
	found := err == nil
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	keys := []string{s.LockKey(stack, region)}
	legacy, err := s.Objects.Get(ctx, s.legacyStateKey(stack))
	if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
		return nil, fmt.Errorf("removing the lock of stack %s in %s: %w", stack, Region(region), err)
	}
	if of := legacyRegion(legacy.Body); err == nil && (of == "" || of == Region(region)) {
		keys = append(keys, s.legacyLockKey(stack))
	}
	for _, key := range keys {
		if err := s.Objects.Delete(ctx, key, objectstore.Condition{}); err != nil {
			return nil, fmt.Errorf("removing the lock of stack %s in %s: %w", stack, Region(region), err)
		}
	}
	if !found {
		return nil, nil
	}
	return &held, nil
}

// LockedRegions lists the regions in which a lock stands for the stack, also where a first deploy has died
// before it saved a record.
func (s *Store) LockedRegions(ctx context.Context, stack string) ([]string, error) {
	base := s.prefix() + "/" + stack + "/"
	infos, err := s.Objects.List(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("listing the locks of stack %s: %w", stack, err)
	}
	var regions []string
	for _, info := range infos {
		region, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, base), "/lock.json")
		if ok && region != "" && !strings.Contains(region, "/") {
			regions = append(regions, region)
		}
	}
	sort.Strings(regions)
	return regions, nil
}

func (s *Store) holding(held StandingLock) *Lock {
	return &Lock{Stack: held.Stack, Region: held.Region, store: s, info: held.LockInfo, etag: held.ETag}
}

func (s *Store) locked(held StandingLock) *LockedError {
	return &LockedError{Holder: held.LockInfo, Stack: held.Stack, Region: held.Region, Standing: held, Now: s.now()}
}
