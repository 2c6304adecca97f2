package asl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// MemoryStore is a Store that lives as long as the process.
type MemoryStore struct {
	mu         sync.Mutex
	executions map[string]*memoryExecution // by ARN
	names      map[[2]string]string        // machine and name to ARN
}

type memoryExecution struct {
	record Execution
	events []Event
}

var _ Store = (*MemoryStore)(nil)

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{executions: map[string]*memoryExecution{}, names: map[[2]string]string{}}
}

// Create implements Store.
func (s *MemoryStore) Create(_ context.Context, e Execution, first []Event) (Execution, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := [2]string{e.Machine, e.Name}
	if old, ok := s.executions[s.names[name]]; ok {
		return old.record, false, nil
	}
	x := &memoryExecution{record: e}
	if err := x.add(first); err != nil {
		return Execution{}, false, fmt.Errorf("creating execution %s: %w", e.ARN, err)
	}
	s.executions[e.ARN], s.names[name] = x, e.ARN
	return e, true, nil
}

// add appends events that continue the history.
func (x *memoryExecution) add(events []Event) error {
	last := int64(len(x.events))
	for i, e := range events {
		if e.ID != last+int64(i)+1 {
			return ErrHistoryGap
		}
	}
	x.events = append(x.events, events...)
	return nil
}

// Finish implements Store.
func (s *MemoryStore) Finish(_ context.Context, arn string, o Outcome, last []Event) (Execution, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.find(arn)
	if err != nil {
		return Execution{}, err
	}
	if x.record.Status != StatusRunning {
		return x.record, fmt.Errorf("finishing execution %s: %w", arn, ErrNotRunning)
	}
	if err := x.add(Numbered(last, int64(len(x.events)))); err != nil {
		return Execution{}, fmt.Errorf("finishing execution %s: %w", arn, err)
	}
	x.record.Status, x.record.Output = o.Status, o.Output
	x.record.Error, x.record.Cause, x.record.StoppedAt = o.Error, o.Cause, o.StoppedAt
	return x.record, nil
}

// Numbered returns the events with each ID of 0 replaced by the id that follows the event before it, and such an
// event's PreviousEventID by the id of that event. last is the id before the first. It is what Store.Finish
// asks of every store.
func Numbered(events []Event, last int64) []Event {
	events = slices.Clone(events)
	for i := range events {
		if events[i].ID == 0 {
			events[i].ID, events[i].PreviousEventID = last+1, last
		}
		last = events[i].ID
	}
	return events
}

func (s *MemoryStore) find(arn string) (*memoryExecution, error) {
	x, ok := s.executions[arn]
	if !ok {
		return nil, fmt.Errorf("execution %s: %w", arn, ErrNotFound)
	}
	return x, nil
}

// Get implements Store.
func (s *MemoryStore) Get(_ context.Context, arn string) (Execution, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.find(arn)
	if err != nil {
		return Execution{}, err
	}
	return x.record, nil
}

// AppendHistory implements Store.
func (s *MemoryStore) AppendHistory(_ context.Context, arn string, events []Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.find(arn)
	if err != nil {
		return err
	}
	if x.record.Status != StatusRunning {
		return fmt.Errorf("history of execution %s: %w", arn, ErrNotRunning)
	}
	if err := x.add(events); err != nil {
		return fmt.Errorf("history of execution %s: %w", arn, err)
	}
	return nil
}

// History implements Store.
func (s *MemoryStore) History(_ context.Context, arn string, after int64) ([]Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, err := s.find(arn)
	if err != nil {
		return nil, err
	}
	return slices.Clone(x.events[min(max(after, 0), int64(len(x.events))):]), nil
}

// List implements Store.
func (s *MemoryStore) List(_ context.Context, q Query) ([]Execution, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Execution{}
	for _, x := range s.executions {
		e := x.record
		if (q.Machine == "" || q.Machine == e.Machine) && (q.Status == "" || q.Status == e.Status) && (q.Holder == "" || q.Holder == e.Holder) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Execution) int {
		if c := b.StartedAt.Compare(a.StartedAt); c != 0 {
			return c
		}
		return cmp.Compare(a.ARN, b.ARN)
	})
	return all, nil
}
