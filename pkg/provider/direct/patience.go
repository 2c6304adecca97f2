package direct

import (
	"context"
	"time"

	"github.com/aws/smithy-go/middleware"
)

// patience is how long one call may take. The SDK's own client waits for an answer without end
// (https://docs.aws.amazon.com/sdk-for-go/v2/developer-guide/configure-http.html), and a connection that has gone silent would
// hold a provisioner until its function is killed. A control plane call that takes longer has lost its answer.
const patience = time.Minute

// impatient bounds each call, the reading of its answer included, which for an object of S3 goes on after the call has returned: the
// context of an answered call ends with its minute.
func impatient(stack *middleware.Stack) error {
	return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("SlipwayPatience",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			end := time.AfterFunc(patience, func() { cancel(context.DeadlineExceeded) })
			out, meta, err := next.HandleFinalize(ctx, in)
			if err != nil {
				end.Stop()
				cancel(nil)
			}
			return out, meta, err
		}), middleware.Before)
}
