package main

import (
	"context"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// Plane is where a command's runs happen: a control plane, the account itself with --direct, or the simulated AWS of
// --local. Commands know nothing else of it.
type Plane interface {
	// Identity returns the account and region that environment-agnostic stacks go to.
	Identity(ctx context.Context) (account, region string, err error)
	// Submit hands in a run over the given stacks (in dependency order, ends of DependsOn included) and
	// starts it. It returns the id of the deployment run as soon as it is durable.
	Submit(ctx context.Context, asm *assembly.Assembly, stacks []*assembly.Stack, req run.Submission) (runID string, err error)
	// Wait returns the header of a run once it is CLOSED. When ctx ends first it returns its error and the
	// run goes on.
	Wait(ctx context.Context, runID string) (runlog.Header, error)
	// Cancel asks a run to end, as run.Engine.Cancel does. A run that nothing carries any more is settled.
	Cancel(ctx context.Context, runID, by string) error
	// PlanViews returns the redacted plans that a plan run has computed, in stack order.
	PlanViews(ctx context.Context, runID string) ([]plan.StackView, error)
	// Log is the run log: headers, events.
	Log() runlog.Store
	// States reads and unlocks stack records.
	States() *state.Store
	// Close ends the plane's processes. Runs that are still going are left to be settled.
	Close() error
}

// reportingPlane is a plane whose records are out of reach, as a control plane's are: what a command needs of them is
// what the runs report.
type reportingPlane interface {
	// Outputs returns the outputs that a stack's run has reported to this caller, nil when there are none.
	Outputs(ctx context.Context, runID string) (map[string]any, error)
	// Link is where the run can be looked at in AWS's own console, "" where that is not known.
	Link(runID string, command runlog.Command) string
}

// uploadingPlane is a plane that what is deployed has to be uploaded to.
type uploadingPlane interface {
	// WatchUploads has uploads shown: watch is called before each of them, sent with how many bytes of how many are there,
	// end when it is over.
	WatchUploads(watch func() (sent func(done, total int64), end func()))
}
