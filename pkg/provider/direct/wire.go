package direct

import (
	"context"
	"sync"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// Recorder notes the calls that clients make: add Middleware to the APIOptions of their configuration.
type Recorder struct {
	// Lose, when there is one, is asked before each call is sent, counted from 1. It may return an error to answer with: at once,
	// or, when sent is true, after the service has done what it was asked to.
	Lose func(n int, operation string) (answer error, sent bool)

	// Heard, when there is one, is told of each call that has ended.
	Heard func(WireCall)

	mu    sync.Mutex
	calls []WireCall
}

// WireCall is one call.
type WireCall struct {
	Operation string // "CreateQueue"
	// Sent: the service has got it.
	Sent bool
	// Err is what the caller got; Answer what the service said.
	Err, Answer error
}

// Calls returns those since the last Reset.
func (r *Recorder) Calls() []WireCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]WireCall(nil), r.calls...)
}

// Reset forgets the calls.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// Middleware adds the recorder to a client's stack.
func (r *Recorder) Middleware(stack *middleware.Stack) error {
	return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("SlipwayRecorder", r.handle), middleware.After)
}

func (r *Recorder) handle(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	operation := awsmiddleware.GetOperationName(ctx)
	r.mu.Lock()
	r.calls = append(r.calls, WireCall{Operation: operation})
	n := len(r.calls)
	lose := r.Lose
	r.mu.Unlock()
	var answer error
	sent := true
	if lose != nil {
		answer, sent = lose(n, operation)
	}
	var out middleware.FinalizeOutput
	var meta middleware.Metadata
	var err error
	if sent = sent || answer == nil; sent {
		if answer != nil {
			ctx = context.WithoutCancel(ctx) // the caller is gone, the call is not
		}
		out, meta, err = next.HandleFinalize(ctx, in)
	}
	said := err
	if answer != nil {
		out, err = middleware.FinalizeOutput{}, answer
	}
	call := WireCall{Operation: operation, Sent: sent, Err: err, Answer: said}
	if r.Heard != nil {
		r.Heard(call)
	}
	r.mu.Lock()
	if n <= len(r.calls) {
		r.calls[n-1] = call
	}
	r.mu.Unlock()
	return out, meta, err
}
