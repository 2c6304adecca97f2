package run

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/run/execution"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// UploadRef points to what a run was asked for with.
type UploadRef = execution.UploadRef

// Upload is the archive that the sources of a request's assets are in, as it was admitted.
type Upload struct {
	UploadRef
	// Digest is that of its index; the archive's own, or the one that was computed and is kept with the run.
	Digest string `json:"digest"`
	// Computed: the archive came without an index.
	Computed bool `json:"computed,omitempty"`
}

// Admission decides which uploads become runs. A request that it refuses is told by diag.Diagnostics; any other error
// is a failure of a store or service, and the same call may succeed later.
type Admission interface {
	// Caller is who has put the upload there, as the place where it is proves.
	Caller(ref UploadRef) (string, error)
	// Request makes the request of a run out of an upload that the caller may have carried out. It has the run's id and
	// command, and may be called again for the same run.
	Request(ctx context.Context, runID string, command runlog.Command, ref UploadRef) (Request, error)
	// Cancellation returns which run an upload wants cancelled, and in whose name. May the caller do that, err is nil.
	Cancellation(ctx context.Context, runID string, ref UploadRef) (target, by string, err error)
}

// Reports tell the caller of an admitted run what the run log does not hold. They may be written again.
type Reports interface {
	// Planned tells the redacted plans of a plan run.
	Planned(ctx context.Context, req Request, views []plan.StackView) error
	// Deployed tells the outputs that the template of a stack declares, secrets masked. runID is the stack's own run.
	Deployed(ctx context.Context, req Request, runID string, outputs map[string]any) error
}

// runIDPattern is what every run id matches; see NewRunID.
var runIDPattern = regexp.MustCompile(`^[0-9]{8}T[0-9]{9}Z-[0-9a-f]{8}$`)

// admitted are the commands that an upload may ask for.
var admitted = []runlog.Command{runlog.CommandDeploy, runlog.CommandDestroy, runlog.CommandRollback, runlog.CommandPlan, runlog.CommandCancel}

// Admit turns an upload into a run, and is what an execution with an upload begins with. The header is made first, so
// that whatever becomes of the upload is told by the run: one that is refused is CLOSED as failed, with the reason. It
// may be repeated, also after the run has gone on: an id is admitted once.
func (e *Engine) Admit(ctx context.Context, in PlannerInput) (Step, error) {
	refuse := func(format string, args ...any) (Step, error) {
		return Step{}, &HandlerError{Name: ErrorBadRequest, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case e.Admission == nil:
		return refuse("nothing is admitted here")
	case !runIDPattern.MatchString(in.RunID):
		return refuse("the run id is not one")
	case !slices.Contains(admitted, in.Command):
		return refuse("run %s: there is no such command", in.RunID)
	case in.Upload == nil:
		return refuse("run %s: there is no upload", in.RunID)
	}
	caller, unknown := e.Admission.Caller(*in.Upload)
	h := runlog.Header{
		RunID: in.RunID, Kind: runlog.KindDeployment, Command: in.Command, Root: in.RunID,
		Owner: state.Owner(caller, in.RunID), Status: runlog.StatusNew, CreatedAt: e.Clock.Now().UTC(),
	}
	if h.Execution = executionOf(h); in.Execution != h.Execution {
		// Whether a run goes on is asked by this name.
		return refuse("run %s: its execution must have the name %s", in.RunID, h.Execution)
	}
	stands, err := e.Log.CreateRun(ctx, h)
	if errors.Is(err, runlog.ErrExists) {
		stands, err = e.Log.Header(ctx, in.RunID)
	}
	if err != nil {
		return Step{}, fmt.Errorf("creating run %s: %w", in.RunID, err)
	}
	switch {
	case stands.Owner != h.Owner || stands.Command != h.Command:
		return refuse("run %s is another one", in.RunID)
	case stands.Result != "" && in.Command == runlog.CommandCancel && stands.Result == runlog.ResultSucceeded:
		return Step{RunID: in.RunID, Kind: StepEnded}, nil
	case stands.Result != "":
		return e.closed(ctx, stands)
	case unknown != nil:
		return e.refuseUpload(ctx, stands, unknown)
	case in.Command == runlog.CommandCancel:
		return e.admitCancel(ctx, stands, *in.Upload)
	}
	open := Step{RunID: in.RunID, Kind: StepOpen}
	if _, err := e.Request(ctx, in.RunID); err == nil {
		return open, nil // it was admitted
	} else if !isAbsent(err) {
		return Step{}, err
	}
	req, err := e.Admission.Request(ctx, in.RunID, in.Command, *in.Upload)
	if err != nil {
		return e.refuseUpload(ctx, stands, err)
	}
	if _, err := e.Submit(ctx, req); err != nil {
		return Step{}, err
	}
	return open, nil
}

// refuseUpload closes a run whose upload was refused; a failure leaves it for the next try.
func (e *Engine) refuseUpload(ctx context.Context, h runlog.Header, why error) (Step, error) {
	var diags diag.Diagnostics
	if !errors.As(why, &diags) {
		return Step{}, why
	}
	e.append(ctx, runEvent(h, 0, runlog.RunStarted))
	return e.refuse(ctx, h, diags)
}

// admitCancel cancels another run for the caller of this one, which has nothing else to do.
func (e *Engine) admitCancel(ctx context.Context, h runlog.Header, ref UploadRef) (Step, error) {
	target, by, err := e.Admission.Cancellation(ctx, h.RunID, ref)
	if err != nil {
		return e.refuseUpload(ctx, h, err)
	}
	err = e.Cancel(ctx, target, by)
	if errors.Is(err, ErrEnded) || errors.Is(err, runlog.ErrNotFound) {
		return e.refuseUpload(ctx, h, diag.Diagnostics{{
			Severity: diag.Error, Summary: "run " + target + " can't be cancelled", Detail: err.Error(), Path: target,
			Next: "`slipway runs show " + target + "` tells how it has ended.",
		}})
	}
	if err != nil {
		return Step{}, err
	}
	e.append(ctx, runEvent(h, 0, runlog.RunStarted))
	if _, err := e.closeHeader(ctx, h, runlog.ResultSucceeded); err != nil {
		return Step{}, err
	}
	return Step{RunID: h.RunID, Kind: StepEnded}, nil
}

// ValidRunID reports whether a string has the form of a run id.
func ValidRunID(s string) bool { return runIDPattern.MatchString(s) }

// UploadExecution is the input of the execution that an upload begins with.
type UploadExecution = execution.Upload
