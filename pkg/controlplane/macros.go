package controlplane

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/run"
)

// ownRoleMacros is what to do where a stack has no execution role and the planner's own may not run macros: it has no
// permission for them, because whoever may ask for a change set may have any macro of the account run.
const ownRoleMacros = "Name an execution role for the stack in the control plane's policy, and allow it cloudformation:CreateChangeSet, DescribeChangeSet, GetTemplate and DeleteStack on stack/cdkd-macro-expand-*, and CreateChangeSet on transform/*: the functions' own roles may not run macros."

// Macros has CloudFormation run the macros of templates, in the account and region of the stack that the context acts
// for, under its role. denied is what to do where a stack without a role is denied it; "" is to allow the actions.
func (a *Accounts) Macros(templates macro.Templates, clk clock.Clock, denied string) run.Macros {
	return macros{aws: a, templates: templates, clock: clk, denied: denied}
}

type macros struct {
	aws       *Accounts
	templates macro.Templates
	clock     clock.Clock
	denied    string
}

// expander is that of the context's stack. Its client is made here, and not with the plane: few stacks have macros.
func (m macros) expander(ctx context.Context) *macro.Expander {
	acting := run.ActingOf(ctx)
	e := &macro.Expander{
		CloudFormation: cloudformation.NewFromConfig(m.aws.Config(acting.Stack.Account, acting.Stack.Region)),
		Templates:      m.templates, Clock: m.clock,
	}
	if acting.Role.ARN == "" {
		e.Denied = m.denied
	}
	return e
}

// Start implements run.Macros.
func (m macros) Start(ctx context.Context, req macro.Request, h macro.Handle) (macro.Progress, error) {
	return m.expander(ctx).Start(ctx, req, h)
}

// Poll implements run.Macros.
func (m macros) Poll(ctx context.Context, req macro.Request, h macro.Handle) (macro.Progress, error) {
	return m.expander(ctx).Poll(ctx, req, h)
}

// Discard implements run.Macros.
func (m macros) Discard(ctx context.Context, h macro.Handle) error {
	return m.expander(ctx).Discard(ctx, h)
}
