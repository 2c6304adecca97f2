package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// A write that meets another process's is decided again on what that one has left, at most attempts times; the waits
// before grow from firstWait to sixty-four times as much.
const (
	attempts  = 20
	firstWait = 20 * time.Millisecond
	waitSteps = 6
)

// change is one call's change to a run's object. It changes doc, refuses with an error of the contract and then leaves
// doc alone, or says that doc has it already: the answer to an earlier write was lost. It may be asked again, about
// another doc.
type change func(doc *runDocument) (done bool, err error)

// desk is where the changes of this process to one run are handed in. One of those who wait writes for all.
type desk struct {
	store *Store
	runID string
	// turn holds a token while somebody writes.
	turn chan struct{}
	// doc and etag are what the run's object was when this process last wrote or read it; etag "" is unknown. They
	// belong to whoever holds the turn.
	doc  runDocument
	etag string

	mu    sync.Mutex
	queue []*handed
}

// handed is a change that waits, and its answer.
type handed struct {
	change change
	ctx    context.Context
	answer chan error // of capacity 1
}

func (s *Store) desk(runID string) *desk {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.desks[runID]
	if !ok {
		if s.desks == nil {
			s.desks = map[string]*desk{}
		}
		d = &desk{store: s, runID: runID, turn: make(chan struct{}, 1)}
		s.desks[runID] = d
	}
	return d
}

// dismiss forgets the desk of a run that is closed. Who still has it goes on with it, and meets the next one as
// another process would.
func (s *Store) dismiss(runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.desks, runID)
}

// hand makes a change and returns once it is stored or refused. When ctx ends first, it may be either.
func (d *desk) hand(ctx context.Context, c change) error {
	h := &handed{change: c, ctx: ctx, answer: make(chan error, 1)}
	d.mu.Lock()
	d.queue = append(d.queue, h)
	d.mu.Unlock()
	select {
	case err := <-h.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case d.turn <- struct{}{}:
	}
	defer func() { <-d.turn }()
	d.mu.Lock()
	batch := d.queue
	d.queue = nil
	d.mu.Unlock()
	if len(batch) > 0 {
		// The others of the batch have contexts of their own: this one's end is not theirs.
		d.write(context.WithoutCancel(ctx), batch)
	}
	return <-h.answer
}

// write decides a batch and answers all of it.
func (d *desk) write(ctx context.Context, batch []*handed) {
	for n := 0; len(batch) > 0; n++ {
		fresh := d.etag == ""
		if fresh {
			doc, etag, err := d.store.read(ctx, d.runID)
			if err != nil {
				answer(batch, err)
				return
			}
			d.doc, d.etag = doc, etag
		}
		next := d.doc
		next.Ops = maps.Clone(d.doc.Ops)
		var accepted []*handed
		refused := map[*handed]error{}
		for _, h := range batch {
			done, err := false, h.ctx.Err() // what nobody waits for any more is not begun
			if err == nil {
				done, err = h.change(&next)
			}
			switch {
			case err != nil || done:
				refused[h] = err
			default:
				accepted = append(accepted, h)
			}
		}
		if len(refused) > 0 && !fresh {
			// They may have read what somebody else has written since this process has.
			d.etag = ""
			continue
		}
		for h, err := range refused {
			h.answer <- err
		}
		if batch = accepted; len(batch) == 0 {
			return
		}
		body, err := encode(next)
		if err != nil {
			answer(batch, err)
			return
		}
		etag, err := d.store.Objects.Put(ctx, runKey(d.runID), body, objectstore.Condition{IfMatch: d.etag})
		switch {
		case err == nil:
			d.doc, d.etag = next, etag
			answer(batch, nil)
			return
		case !errors.Is(err, objectstore.ErrPrecondition):
			d.etag = ""
			if errors.Is(err, objectstore.ErrNotFound) {
				err = runlog.ErrNotFound
			}
			answer(batch, err)
			return
		case n == attempts-1:
			d.etag = ""
			answer(batch, fmt.Errorf("somebody else wrote first, %d times in a row: %w", attempts, err))
			return
		}
		d.etag = ""
		wait := firstWait << min(n, waitSteps)
		if err := d.store.clock().Sleep(ctx, wait/2+rand.N(wait/2)); err != nil {
			answer(batch, err)
			return
		}
	}
}

func answer(batch []*handed, err error) {
	for _, h := range slices.Clone(batch) {
		h.answer <- err
	}
}
