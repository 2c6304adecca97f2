package asl

import (
	"context"
	"errors"
	"sync"
)

// errSibling ends the iterations of a Map of which another has failed.
var errSibling = errors.New("another iteration of the Map has failed")

// mapItems runs a Map state once: its iterations, at most so many at a time, started in the order of the items.
func (v *visit) mapItems() (doc, error) {
	data, err := v.filter(v.state.inputPath, v.raw.value)
	if err != nil {
		return doc{}, err
	}
	found, ok := v.state.itemsPath.get(data)
	if !ok {
		return doc{}, v.runtime("Invalid path '%s' : Missing property in path", v.state.itemsPath.text)
	}
	items, ok := found.([]any)
	if !ok {
		return doc{}, v.runtime("Reference path \"%s\" must point to array.", v.state.itemsPath.text)
	}
	if err := v.add(Event{Type: MapStateStarted, MapStateStarted: &MapStateStartedDetails{Length: len(items)}}); err != nil {
		return doc{}, err
	}
	its := &iterations{visit: v, data: data, results: make([]any, len(items)), last: v.last}
	its.ctx, its.cancel = context.WithCancelCause(v.ctx)
	defer its.cancel(context.Canceled)
	if err := its.run(items); err != nil {
		return doc{}, v.mapFailed(err)
	}
	v.last = its.last
	if err := v.add(Event{Type: MapStateSucceeded}); err != nil {
		return doc{}, err
	}
	// In Step Functions' histories the exit follows the last iteration, beside MapStateSucceeded.
	v.last = its.last
	return v.result(its.results)
}

// mapFailed records that the Map has failed because an iteration has, with the iteration's error.
func (v *visit) mapFailed(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	v.last = max(v.last, f.at)
	if err := v.add(Event{Type: MapStateFailed}); err != nil {
		return err
	}
	if f.name == errRuntime {
		return f
	}
	return &failure{f.name, f.cause, v.last}
}

// iterations are those of one try of a Map state.
type iterations struct {
	visit  *visit
	data   any // the Map's effective input
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	results []any
	last    int64 // the last iteration's end
	failed  error // the first
}

// run starts the iterations and waits for all of them. It returns the first failure.
func (its *iterations) run(items []any) error {
	// A slot carries the event that has freed it: the iteration that takes it follows from that.
	slots := make(chan int64, its.visit.state.concurrency)
	for range cap(slots) {
		slots <- its.visit.last
	}
	var all sync.WaitGroup
	for i := range items {
		var free int64
		select {
		case free = <-slots:
		case <-its.ctx.Done():
		}
		if its.ctx.Err() != nil {
			break
		}
		details := &MapIterationDetails{Name: its.visit.state.name, Index: i}
		started, err := its.visit.run.add(free, Event{Type: MapIterationStarted, MapIterationStarted: details})
		if err != nil {
			its.fail(err)
			break
		}
		all.Go(func() {
			if end, err := its.iterate(item{i, items[i]}, started, details); err != nil {
				its.fail(err)
			} else {
				slots <- end
			}
		})
	}
	all.Wait()
	its.mu.Lock()
	defer its.mu.Unlock()
	if its.failed == nil && its.visit.ctx.Err() != nil {
		return context.Cause(its.visit.ctx)
	}
	return its.failed
}

// fail keeps the first failure and ends the other iterations.
func (its *iterations) fail(err error) {
	its.isFirst(err)
	its.cancel(errSibling)
}

// isFirst keeps err if nothing has failed before, and says so.
func (its *iterations) isFirst(err error) bool {
	its.mu.Lock()
	defer its.mu.Unlock()
	if its.failed != nil {
		return false
	}
	its.failed = err
	return true
}

// iterate runs one iteration and returns the event of its success.
func (its *iterations) iterate(it item, last int64, details *MapIterationDetails) (int64, error) {
	v := its.visit
	out, last, err := its.walk(&it, last)
	var f *failure
	switch {
	case err == nil:
		end, err := v.run.add(last, Event{Type: MapIterationSucceeded, MapIterationSucceeded: details})
		if err != nil {
			return 0, err
		}
		its.mu.Lock()
		its.results[it.index] = out.value
		its.last = max(its.last, end)
		its.mu.Unlock()
		return end, nil
	case errors.As(err, &f) && its.isFirst(err):
		if _, e := v.run.add(last, Event{Type: MapIterationFailed, MapIterationFailed: details}); e != nil {
			return 0, e
		}
	case f != nil || errors.Is(err, errSibling):
		if _, e := v.run.add(last, Event{Type: MapIterationAborted, MapIterationAborted: details}); e != nil {
			return 0, e
		}
	}
	return 0, err
}

func (its *iterations) walk(it *item, last int64) (doc, int64, error) {
	v := *its.visit
	v.item = it
	in := it.value
	if v.state.itemSelector != nil {
		var err error
		if in, err = v.fill(v.state.itemSelector, its.data); err != nil {
			return doc{}, last, err
		}
	}
	input, err := v.limited(in, v.state.name)
	if err != nil {
		return doc{}, last, err
	}
	return v.run.walk(its.ctx, v.state.processor, input, last, it)
}
