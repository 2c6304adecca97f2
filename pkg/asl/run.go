package asl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// run is an execution that this executor runs.
type run struct {
	e       *Executor
	machine *Machine
	arn     arn // of the machine
	record  Execution
	input   doc
	history *recorder
	// ctx ends when the execution is stopped, lost to another process, or the executor is closed. Its cause
	// says which.
	ctx    context.Context
	cancel context.CancelCauseFunc

	done  chan struct{}
	final Execution // valid once done is closed, and err is nil
	err   error
}

// stopped is why an execution ends from outside of its states.
type stopped struct {
	status           Status
	errorName, cause string
}

func (s *stopped) Error() string { return "execution is " + string(s.status) }

// errLost is the end of a run whose execution somebody else has ended.
var errLost = errors.New("execution was ended by another process")

func newRun(e *Executor, m *Machine, a arn, record Execution, input doc) *run {
	r := &run{e: e, machine: m, arn: a, record: record, input: input, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(e.base)
	r.history = newRecorder(e.Store, record.ARN, 1, func() { r.cancel(errLost) })
	return r
}

func (r *run) stop(s *stopped) { r.cancel(s) }

// drive runs the execution to its end and records it.
func (r *run) drive() {
	defer r.cancel(context.Canceled)
	if r.machine.timeout > 0 {
		r.e.work.Go(func() {
			if r.e.timers.Sleep(r.ctx, r.machine.timeout) == nil {
				r.stop(&stopped{status: StatusTimedOut})
			}
		})
	}
	out, last, err := r.walk(r.ctx, &r.machine.states, r.input, 0, nil)
	r.history.seal()
	outcome, event := r.outcome(out, last, err)
	switch {
	case outcome.Status != "":
		r.final, r.err = r.finish(outcome, event)
	case errors.Is(err, errLost):
		r.final, r.err = r.e.Store.Get(context.Background(), r.record.ARN)
	default:
		// The executor is closed. What is known of the execution helps whoever settles it.
		if rest := r.history.rest(); len(rest) > 0 {
			_ = r.e.Store.AppendHistory(context.Background(), r.record.ARN, rest) // the execution is given up either way
		}
		r.err = ErrClosed
	}
	if r.err == nil {
		r.e.tell(r.final)
		r.e.mu.Lock()
		delete(r.e.runs, r.record.ARN)
		r.e.mu.Unlock()
	}
	close(r.done)
}

// outcome says how the execution has ended, with the event that tells of it; a zero outcome where it has not.
func (r *run) outcome(out doc, last int64, err error) (Outcome, Event) {
	now := r.e.Clock.Now()
	o := Outcome{StoppedAt: now}
	e := Event{ID: r.history.last + 1, PreviousEventID: last, Timestamp: now}
	var s *stopped
	var f *failure
	switch {
	case err == nil:
		o.Status, o.Output = StatusSucceeded, json.RawMessage(out.text)
		e.Type, e.ExecutionSucceeded = ExecutionSucceeded, &ExecutionSucceededDetails{Output: out.text}
		return o, e
	case errors.As(err, &s):
		o.Status, o.Error, o.Cause = s.status, s.errorName, s.cause
		e.PreviousEventID = r.history.last
		if s.status == StatusTimedOut {
			e.Type, e.ExecutionTimedOut = ExecutionTimedOut, &ErrorDetails{s.errorName, s.cause}
		} else {
			e.Type, e.ExecutionAborted = ExecutionAborted, &ErrorDetails{s.errorName, s.cause}
		}
		return o, e
	case errors.Is(err, errHistoryFull):
		f = &failure{name: errRuntime, cause: fmt.Sprintf("The execution reached the maximum number of history events (%d).", historyLimit)}
	case !errors.As(err, &f):
		return Outcome{}, Event{}
	}
	o.Status, o.Error, o.Cause = StatusFailed, f.name, f.cause
	e.Type, e.PreviousEventID, e.ExecutionFailed = ExecutionFailed, f.at, &ErrorDetails{f.name, f.cause}
	return o, e
}

// finishAttempts is how often the end of an execution is tried to be recorded.
const finishAttempts = 5

// finish records the end. Somebody else may have recorded another one before: that one stands.
func (r *run) finish(o Outcome, end Event) (Execution, error) {
	delay := 100 * time.Millisecond
	for attempt := 1; ; attempt++ {
		// Not bound to the executor: an end that is reached is recorded even while it closes.
		x, err := r.e.Store.Finish(context.Background(), r.record.ARN, o, append(r.history.rest(), end))
		if err == nil || errors.Is(err, ErrNotRunning) {
			return x, nil
		}
		r.history.doubt = true
		if attempt == finishAttempts || r.e.timers.Sleep(r.e.base, delay) != nil {
			return Execution{}, fmt.Errorf("recording the end of execution %s: %w", r.record.ARN, err)
		}
		delay *= 2
	}
}

// add records an event of the execution. It fails when the execution is no longer this run's to tell of, or its
// history is full.
func (r *run) add(previous int64, e Event) (int64, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	e.PreviousEventID, e.Timestamp = previous, r.e.Clock.Now()
	return r.history.add(e)
}

// item is the item that an iteration of a Map works on.
type item struct {
	index int
	value any
}

// walk runs the states of a scope from its start to its end and returns the output and the last event.
func (r *run) walk(ctx context.Context, sc *scope, in doc, last int64, it *item) (doc, int64, error) {
	for name := sc.startAt; ; {
		v := &visit{run: r, ctx: ctx, state: sc.states[name], raw: in, last: last, item: it}
		out, next, err := v.enter()
		if err != nil {
			return doc{}, v.last, err
		}
		if next == "" {
			return out, v.last, nil
		}
		in, last, name = out, v.last, next
	}
}
