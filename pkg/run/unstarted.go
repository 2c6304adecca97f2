package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// codeNotStarted marks a stack's operation whose execution Step Functions has refused to start. The operation is still
// RUNNING: it is started again, and given up by nurse.
const codeNotStarted = "NotStarted"

// longestCause is how much of a cause is kept, in bytes.
const longestCause = 600

// Unstarted notes what the state machine has caught when it started the execution of a stack's run: nobody else learns
// that. It decides nothing. The last refusal counts; one of an operation that has ended, or of an older epoch, is dropped.
func (e *Engine) Unstarted(ctx context.Context, in PlannerInput) (OperationStatus, error) {
	var none OperationStatus
	if in.Op == "" || in.Refusal == nil {
		return none, &HandlerError{Name: ErrorBadRequest, Err: errors.New("it is not told what could not be started, or why")}
	}
	h, err := e.Log.Header(ctx, in.RunID)
	if err != nil {
		return none, fmt.Errorf("reading the header of run %s: %w", in.RunID, err)
	}
	if !carries(h, in.Execution) {
		return none, stranger(h, in.Execution)
	}
	op, err := e.Log.Op(ctx, in.RunID, in.Op)
	if err != nil {
		return none, fmt.Errorf("reading %s of run %s: %w", in.Op, in.RunID, err)
	}
	why := runlog.OpError{Kind: provider.KindFailed, Code: codeNotStarted, Message: in.Refusal.text()}
	stale := op.ChildRun == "" || op.Status.Ended() || op.Epoch != in.Epoch || h.Status != runlog.StatusOpen
	if !stale && (op.Error == nil || *op.Error != why) {
		op.Error = &why
		// A twin of this call has written the same.
		if op, err = e.Log.PutOp(ctx, in.RunID, runlog.StatusOpen, op); err != nil && !errors.Is(err, runlog.ErrConflict) {
			return none, fmt.Errorf("recording %s: %w", in.Op, err)
		}
	}
	return OperationStatus{Op: in.Op, Status: string(op.Status)}, nil
}

// text is the error as people read it: "StepFunctions.AccessDeniedException: User … is not authorized to perform …".
func (r Refusal) text() string {
	cause := strings.ToValidUTF8(r.Cause[:min(len(r.Cause), longestCause)], "")
	if cause == "" {
		return r.Error
	}
	return r.Error + ": " + cause
}

// neverStarted ends a stack's run that has not begun and will not: it fences it, with the reason, and settles it. Should
// the run have come to life meanwhile nothing happens to it.
func (e *Engine) neverStarted(ctx context.Context, h runlog.Header, why *runlog.OpError) error {
	d := unstartedBecause(h, why)
	h.Status, h.Epoch = runlog.StatusSettling, h.Epoch+1
	h.Diagnostics = append(h.Diagnostics, d)
	h.Failure = firstFailure(diag.Diagnostics{d})
	if _, err := e.Log.UpdateHeader(ctx, h); err != nil {
		if errors.Is(err, runlog.ErrConflict) {
			return nil
		}
		return fmt.Errorf("fencing run %s: %w", h.RunID, err)
	}
	_, err := e.Settle(ctx, h.RunID)
	return err
}

// unstartedBecause says which run could not be started, why, and what to do.
func unstartedBecause(h runlog.Header, why *runlog.OpError) diag.Diagnostic {
	d := diag.Diagnostic{
		Severity: diag.Error, Stack: h.Stack.Name, Summary: "the run of stack " + h.Stack.Name + " could not be started; nothing of it was touched",
		Detail: "its execution " + executionOf(h) + " was asked for several times, and has never been seen",
		Next:   "Look at the execution of the deployment, run `slipway doctor`, then deploy again.",
	}
	if why == nil || why.Code != codeNotStarted {
		return d
	}
	d.Detail = "Step Functions refuses it: " + why.Message
	const denied = "The role of the state machine has to allow states:StartExecution on that state machine, and no boundary or organization policy may deny it: `slipway bootstrap` restores the role. Then deploy again."
	code, _, _ := strings.Cut(why.Message, ":")
	for _, known := range []struct{ part, next string }{
		{"AccessDenied", denied},
		{"States.Permissions", denied},
		{"ExecutionLimitExceeded", "The account has as many executions at once as it may: deploy again when others have ended, or ask AWS for a higher quota of open executions."},
		{"Throttling", "The account starts more executions than its quota allows: deploy again a little later."},
		{"ExecutionAlreadyExists", "It has ended before it did anything: look at that execution in Step Functions, then deploy again."},
		{"StateMachineDeleting", "Somebody is removing the control plane: install it again with `slipway bootstrap`."},
		{"StateMachineDoesNotExist", "Somebody has removed the control plane: install it again with `slipway bootstrap`."},
	} {
		if strings.Contains(code, known.part) {
			d.Next = known.next
			break
		}
	}
	return d
}
