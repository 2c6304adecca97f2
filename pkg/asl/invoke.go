package asl

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

// invoke runs lambda:invoke. The function runs apart from the visit: one that ends before the function does leaves it
// alone.
func (v *visit) invoke(arguments map[string]any) (any, error) {
	function, err := v.text(arguments, "FunctionName")
	if err != nil {
		return nil, err
	}
	payload, err := encode(arguments["Payload"])
	if err != nil {
		return nil, err
	}
	e := v.run.e
	ctx, release := newDeadline(e.base, e.timers, v.state.timeout)
	answers := make(chan answer, 1)
	e.work.Go(func() {
		defer release()
		a := invokeSafely(ctx, e.Functions, function, []byte(payload))
		a.late = ctx.Err() != nil
		answers <- a
	})
	var a answer
	select {
	case <-v.ctx.Done():
		return nil, context.Cause(v.ctx)
	case a = <-answers:
	case <-ctx.Done():
		// Of an answer, the context may have ended in its wake: it counts.
		select {
		case a = <-answers:
		default:
			a.late = true
		}
	}
	if !a.late {
		return a.result(function)
	}
	if e.base.Err() != nil {
		return nil, ErrClosed
	}
	return nil, errTimedOut
}

// answer is what a function has returned.
type answer struct {
	payload []byte
	err     error
	// late says that the task's time, or the executor, had ended before.
	late bool
}

// invokeSafely turns a panic of the function into its failure, as the Lambda runtime does.
func invokeSafely(ctx context.Context, f Functions, function string, payload []byte) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{err: &FunctionError{Type: typeName(p), Message: fmt.Sprint(p)}}
		}
	}()
	out, err := f.Invoke(ctx, function, payload)
	return answer{payload: out, err: err}
}

// result is what lambda:invoke returns for the answer.
func (a answer) result(function string) (any, error) {
	if a.err != nil {
		return nil, functionFailure(function, a.err)
	}
	var payload any
	if len(a.payload) > 0 {
		var err error
		if payload, err = decode(a.payload); err != nil {
			return nil, &failure{name: errTaskFailed, cause: fmt.Sprintf("function %s has returned a response that is not JSON", function)}
		}
	}
	return map[string]any{"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": json.Number("200")}, nil
}

// deadline is a context that ends a time after its making on a clock that need not be the wall's, which
// context.WithTimeout cannot do.
type deadline struct {
	parent context.Context
	at     time.Time // zero: none
	done   chan struct{}

	mu  sync.Mutex
	err error
}

// newDeadline returns a context that ends when parent does, or d after now on the clock; 0 is never. release ends
// it as well, and must be called.
func newDeadline(parent context.Context, c clock.Clock, d time.Duration) (context.Context, func()) {
	x := &deadline{parent: parent, done: make(chan struct{})}
	unhook := context.AfterFunc(parent, func() { x.end(parent.Err()) })
	release := func() {
		unhook()
		x.end(context.Canceled)
	}
	if d > 0 {
		x.at = c.Now().Add(d)
		go func() {
			if c.Sleep(x, d) == nil {
				x.end(context.DeadlineExceeded)
			}
		}()
	}
	return x, release
}

func (x *deadline) end(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = err
		close(x.done)
	}
}

// Deadline implements context.Context.
func (x *deadline) Deadline() (time.Time, bool) { return x.at, !x.at.IsZero() }

// Done implements context.Context.
func (x *deadline) Done() <-chan struct{} { return x.done }

// Err implements context.Context.
func (x *deadline) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// Value implements context.Context.
func (x *deadline) Value(key any) any { return x.parent.Value(key) }
