package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// The names under which a function's failure reaches the state machine. Its Retry rules repeat Unavailable
// only; the other two end the execution and leave the run to the settle machine.
const (
	ErrorUnavailable = "Slipway.Unavailable" // a store or service failed: the same call may succeed later
	ErrorFenced      = "Slipway.Fenced"      // somebody else is settling this run
	ErrorLockLost    = "Slipway.LockLost"    // the stack's lock is no longer this run's
	ErrorBadRequest  = "Slipway.BadRequest"  // the payload is not one of ours
)

// HandlerError is a function's failure with the name that the state machine sees.
type HandlerError struct {
	Name string
	Err  error
}

// Error implements error.
func (e *HandlerError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *HandlerError) Unwrap() error { return e.Err }

func named(err error) error {
	var already *HandlerError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &already):
		return err
	case errors.Is(err, runlog.ErrFenced):
		return &HandlerError{Name: ErrorFenced, Err: err}
	case errors.Is(err, state.ErrLockLost):
		return &HandlerError{Name: ErrorLockLost, Err: err}
	}
	return &HandlerError{Name: ErrorUnavailable, Err: err}
}

// handlerLife is how long a call of a handler may take, wherever it runs: what Lambda gives a function
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html). A process that was held up for longer
// writes nothing more: what it has read may have been written, deleted and written anew since, and then no condition
// on a write would tell.
const handlerLife = 15 * time.Minute

// handle decodes a payload, calls fn and encodes its answer.
func handle[In, Out any](ctx context.Context, payload []byte, fn func(context.Context, In) (Out, error)) ([]byte, error) {
	var in In
	if err := unmarshal(payload, &in); err != nil {
		return nil, &HandlerError{Name: ErrorBadRequest, Err: fmt.Errorf("reading the payload: %w", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, handlerLife)
	defer cancel()
	out, err := fn(ctx, in)
	if err != nil {
		return nil, named(err)
	}
	return marshal(out)
}

// HandlePlanner is the planner function: admit, open, next, unstarted and close.
func (e *Engine) HandlePlanner(ctx context.Context, payload []byte) ([]byte, error) {
	return handle(ctx, payload, func(ctx context.Context, in PlannerInput) (any, error) {
		switch in.Action {
		case ActionAdmit:
			return e.Admit(ctx, in)
		case ActionOpen:
			return e.Open(ctx, in)
		case ActionNext:
			return e.Next(ctx, in)
		case ActionUnstarted:
			return e.Unstarted(ctx, in)
		case ActionClose:
			return e.Close(ctx, in)
		}
		return nil, &HandlerError{Name: ErrorBadRequest, Err: fmt.Errorf("the planner has no action %q", in.Action)}
	})
}

// HandleProvisioner is the provisioner function.
func (e *Engine) HandleProvisioner(ctx context.Context, payload []byte) ([]byte, error) {
	return handle(ctx, payload, e.Provision)
}

// HandlePublisher is the publisher function.
func (e *Engine) HandlePublisher(ctx context.Context, payload []byte) ([]byte, error) {
	return handle(ctx, payload, e.Publish)
}

// HandleJanitor is the janitor function: settle and sweep.
func (e *Engine) HandleJanitor(ctx context.Context, payload []byte) ([]byte, error) {
	return handle(ctx, payload, func(ctx context.Context, in SettleInput) (any, error) {
		switch in.Action {
		case ActionSettle:
			return e.settleAsked(ctx, in)
		case ActionSweep:
			return e.Sweep(ctx)
		}
		return nil, &HandlerError{Name: ErrorBadRequest, Err: fmt.Errorf("the janitor has no action %q", in.Action)}
	})
}
