package run

import (
	"context"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Role is an IAM role that the calls to AWS for a stack are made under. The server's policy chooses it when it
// admits the request; the caller does not.
type Role struct {
	ARN string `json:"arn"`
	// ExternalID is what the role's trust policy asks for, "" for nothing. It keeps others from having this control
	// plane use a role that trusts it (https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html).
	ExternalID string `json:"externalId,omitempty"`
}

// Acting tells on whose behalf a call to AWS is made: of which stack, in which run, under which role. It travels in the
// context, because the providers between the engine and the clients have no part in it.
type Acting struct {
	Role  Role // zero: under the credentials of the process
	RunID string
	Stack runlog.StackRef
}

type actingKey struct{}

// WithActing returns a context whose calls to AWS are made on behalf of a stack. One for another stack replaces it.
func WithActing(ctx context.Context, a Acting) context.Context {
	return context.WithValue(ctx, actingKey{}, a)
}

// ActingOf returns on whose behalf calls are made: the zero Acting where nobody has said so.
func ActingOf(ctx context.Context) Acting {
	a, _ := ctx.Value(actingKey{}).(Acting)
	return a
}

// Roles tells whether the role of the context's Acting can be assumed in an account, before anything is touched.
type Roles interface {
	// Check returns why it can't be, as it is to be shown; an error is a failure of the service, and the same call may
	// succeed later.
	Check(ctx context.Context, account string) (*diag.Diagnostic, error)
}

// actingFor is the context of calls for a stack of a request.
func actingFor(ctx context.Context, runID string, s StackRequest) context.Context {
	a := Acting{RunID: runID, Stack: s.StackRef}
	if s.Role != nil {
		a.Role = *s.Role
	}
	return WithActing(ctx, a)
}

// actingFor is the context of calls for a stack's own run, whose request has the role.
func (e *Engine) actingFor(ctx context.Context, h runlog.Header) (context.Context, error) {
	req, err := e.Request(ctx, h.RunID)
	if err != nil || len(req.Stacks) != 1 {
		return ctx, err
	}
	return actingFor(ctx, h.RunID, req.Stacks[0]), nil
}

// acting is the context of the calls for an operation.
func (in operationInput) acting(ctx context.Context, runID string) context.Context {
	a := Acting{RunID: runID, Stack: runlog.StackRef{Account: in.Account, Region: in.Region, Name: in.Stack}}
	if in.Role != nil {
		a.Role = *in.Role
	}
	return WithActing(ctx, a)
}

// checkRole checks the role of a stack; ctx acts for it.
func (e *Engine) checkRole(ctx context.Context, s StackRequest) (diag.Diagnostics, error) {
	if e.Roles == nil {
		return nil, nil
	}
	problem, err := e.Roles.Check(ctx, s.Account)
	if err != nil || problem == nil {
		return nil, err
	}
	return diag.Diagnostics{*problem}.InStack(s.Name), nil
}
