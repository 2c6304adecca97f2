package asl

import (
	"context"
	"errors"
	"sync"
)

// historyLimit is how many events the history of an execution may have; the last is kept for its end
// (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html).
const historyLimit = 25000

var errHistoryFull = errors.New("history is full")

// recorder keeps the history of one execution: it numbers events, and writes them to the store behind the
// execution's back. While one write is on its way the events after it gather, so that a slow store gets few,
// large writes and never holds up a transition.
type recorder struct {
	store Store
	arn   string
	// lost is called when the store says that the execution has ended or gone: somebody else has stopped it.
	lost func()

	mu      sync.Mutex
	last    int64
	pending []Event
	sealed  bool
	doubt   bool // a write has failed and may have been done nevertheless

	wake    chan struct{} // capacity 1
	stopped chan struct{}
	idle    chan struct{} // closed when the writer has returned
}

// newRecorder continues a history whose last event is last.
func newRecorder(store Store, arn string, last int64, lost func()) *recorder {
	r := &recorder{
		store: store, arn: arn, last: last, lost: lost,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}), idle: make(chan struct{}),
	}
	go r.write()
	return r
}

// add numbers an event, whose Type, PreviousEventID, Timestamp and details are set, and returns its id.
func (r *recorder) add(e Event) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last >= historyLimit-1 {
		return 0, errHistoryFull
	}
	if r.sealed {
		return 0, context.Canceled
	}
	r.last++
	e.ID = r.last
	r.pending = append(r.pending, e)
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return e.ID, nil
}

func (r *recorder) write() {
	defer close(r.idle)
	for {
		select {
		case <-r.wake:
			r.flush()
		case <-r.stopped:
			return
		}
	}
}

// flush writes what has gathered. What cannot be written now is kept for the next time, and for the end.
func (r *recorder) flush() {
	r.mu.Lock()
	events := r.pending
	r.pending = nil
	r.mu.Unlock()
	events = r.unrecorded(events)
	if len(events) == 0 {
		return
	}
	err := r.store.AppendHistory(context.Background(), r.arn, events)
	switch {
	case err == nil:
	case errors.Is(err, ErrNotRunning), errors.Is(err, ErrNotFound):
		r.lost()
	default:
		r.doubt = true
		r.mu.Lock()
		r.pending = append(events, r.pending...)
		r.mu.Unlock()
	}
}

// unrecorded drops the events that a write in doubt has recorded after all.
func (r *recorder) unrecorded(events []Event) []Event {
	if !r.doubt || len(events) == 0 {
		return events
	}
	recorded, err := r.store.History(context.Background(), r.arn, events[0].ID-1)
	if err != nil {
		return events
	}
	r.doubt = false
	return events[min(len(recorded), len(events)):]
}

// seal ends the writing. After it, last does not change and rest returns the events that are not written.
func (r *recorder) seal() {
	close(r.stopped)
	<-r.idle
	r.mu.Lock()
	r.sealed = true
	r.mu.Unlock()
}

// rest returns the events that are not written yet. Only for a sealed recorder.
func (r *recorder) rest() []Event {
	r.pending = r.unrecorded(r.pending)
	return r.pending
}
