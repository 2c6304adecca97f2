package run

import (
	"errors"
	"fmt"
	"time"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// maxDoubts is how often in a row a call may end without anybody knowing what it has done: at pauses of up to half a
// minute, about nine minutes.
const maxDoubts = 20

// doubt leaves an operation open whose last call has not been decided. It is not another attempt: the same call under
// the same token is made again, or the same handle is polled, and finds out.
func (e *Engine) doubt(op runlog.Op, cause error) runlog.Op {
	op.Doubts++
	pause := doubling(time.Second, 30*time.Second)
	var perr *provider.Error
	if errors.As(cause, &perr) {
		op.Doubt = perr.Kind
	}
	if op.Doubt == provider.KindThrottled {
		pause = jittered(time.Second, 30*time.Second)
	}
	wait := pause(op, op.Doubts)
	if perr != nil {
		wait = max(wait, min(perr.RetryAfter, maxHint))
	}
	op.NotBefore = e.Clock.Now().Add(e.wall(wait))
	return op
}

// unresolvedDoubt is the failure of an operation about which nothing could be learned. It is not tried under another
// token: what it was to do may have been done.
func unresolvedDoubt(perr *provider.Error, doubts int) *provider.Error {
	failure := *perr
	failure.Kind = provider.KindTimeout
	message := perr.Message
	if message == "" && perr.Err != nil {
		message = perr.Err.Error()
	}
	failure.Message = fmt.Sprintf("the service has not said %d times in a row what became of the call, so it may have had its effect; the last answer: %s", doubts+1, message)
	return &failure
}
