package statebucket

import (
	"context"
	"sync"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// Store is the object store in a bucket that is still being looked for: its calls wait until it is found. A search that
// has failed is begun again by the next call, so that one failure is not for ever.
type Store struct {
	find func(context.Context) (objectstore.Store, Found, error)

	mu      sync.Mutex
	current *search
}

var _ objectstore.Store = (*Store)(nil)

type search struct {
	done  chan struct{}
	store objectstore.Store
	found Found
	err   error
}

// NewStore begins the search at once. It goes on when ctx has ended, and keeps the values of ctx only.
func NewStore(ctx context.Context, find func(context.Context) (objectstore.Store, Found, error)) *Store {
	s := &Store{find: find}
	s.begin(ctx)
	return s
}

// begin starts a search; the caller holds mu, or nobody else knows s.
func (s *Store) begin(ctx context.Context) *search {
	looking := &search{done: make(chan struct{})}
	s.current = looking
	go func() {
		defer close(looking.done)
		looking.store, looking.found, looking.err = s.find(context.WithoutCancel(ctx))
	}()
	return looking
}

// Found returns the bucket once it is found.
func (s *Store) Found(ctx context.Context) (Found, error) {
	_, found, err := s.wait(ctx)
	return found, err
}

func (s *Store) wait(ctx context.Context) (objectstore.Store, Found, error) {
	s.mu.Lock()
	looking := s.current
	if looking == nil {
		looking = s.begin(ctx)
	}
	s.mu.Unlock()
	select {
	case <-looking.done:
	case <-ctx.Done():
		return nil, Found{}, ctx.Err()
	}
	if looking.err != nil {
		s.mu.Lock()
		if s.current == looking {
			s.current = nil
		}
		s.mu.Unlock()
	}
	return looking.store, looking.found, looking.err
}

// Get implements objectstore.Store.
func (s *Store) Get(ctx context.Context, key string) (objectstore.Object, error) {
	store, _, err := s.wait(ctx)
	if err != nil {
		return objectstore.Object{}, err
	}
	return store.Get(ctx, key)
}

// Head implements objectstore.Store.
func (s *Store) Head(ctx context.Context, key string) (objectstore.Info, error) {
	store, _, err := s.wait(ctx)
	if err != nil {
		return objectstore.Info{}, err
	}
	return store.Head(ctx, key)
}

// Put implements objectstore.Store.
func (s *Store) Put(ctx context.Context, key string, body []byte, cond objectstore.Condition) (string, error) {
	store, _, err := s.wait(ctx)
	if err != nil {
		return "", err
	}
	return store.Put(ctx, key, body, cond)
}

// Delete implements objectstore.Store.
func (s *Store) Delete(ctx context.Context, key string, cond objectstore.Condition) error {
	store, _, err := s.wait(ctx)
	if err != nil {
		return err
	}
	return store.Delete(ctx, key, cond)
}

// List implements objectstore.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]objectstore.Info, error) {
	store, _, err := s.wait(ctx)
	if err != nil {
		return nil, err
	}
	return store.List(ctx, prefix)
}
