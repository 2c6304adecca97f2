package run

import (
	"time"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

const (
	// maxAttempts is how often an operation is tried before its failure stands.
	maxAttempts = 5
	// maxDeleteAttempts is the same for a deletion that something still stands in the way of. What uses a
	// resource often goes a while after the call that removed it, as network interfaces do.
	maxDeleteAttempts = 9
)

// retryDue reports whether a failed operation is to be tried again.
func retryDue(op runlog.Op) bool {
	switch {
	case op.Status != runlog.OpFailed || op.Error == nil:
		return false
	case inUse(op):
		return op.Attempt < maxDeleteAttempts
	}
	return provider.RetryableKind(op.Error.Kind) && op.Attempt < maxAttempts
}

// inUse: a deletion was refused because something still uses the resource.
func inUse(op runlog.Op) bool {
	return op.Action == string(plan.ActionDelete) && op.Error.Kind == provider.KindDependencyViolation
}

// retryAt is the earliest moment for the next attempt: what the service has asked for, and at least a pause that
// grows with the attempts: 1, 2, 4, 8 seconds, for a resource in use 5, 10, 20, then 30 seconds.
func (e *Engine) retryAt(op runlog.Op) time.Time {
	pause := time.Second << min(op.Attempt-1, 3)
	if inUse(op) {
		pause = min(5*time.Second<<min(op.Attempt-1, 3), 30*time.Second)
	}
	at := op.FinishedAt.Add(e.wall(pause))
	if op.NotBefore.After(at) {
		return op.NotBefore
	}
	return at
}

// wall is how long a pause takes on the clock by which due times are told. A scaled clock waits shorter than it is
// asked to, but tells real time.
func (e *Engine) wall(pause time.Duration) time.Duration {
	if c, scaled := e.Clock.(interface {
		Wall(time.Duration) time.Duration
	}); scaled {
		return c.Wall(pause)
	}
	return pause
}
