// Package remote is the command line's side of a control plane: it uploads what is to be done, starts the execution
// that admits it, and follows the run in the run log. It may do no more than any caller of the control plane, so the
// records of stacks are out of its reach: it reads what the control plane reports to it.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/slipway-cdk/slipway/pkg/admission"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/upload"
)

// Starter starts executions of the run state machine. An execution of the name that is there already, with the same
// input or an older one, is success.
type Starter interface {
	StartExecution(ctx context.Context, name string, input []byte) error
}

// ReportAPI is the part of the S3 client that reports are read with.
type ReportAPI interface {
	GetObject(context.Context, *sdk.GetObjectInput, ...func(*sdk.Options)) (*sdk.GetObjectOutput, error)
}

// Plane is a control plane as one caller sees it. It is safe for concurrent use.
type Plane struct {
	// Account and Region are the control plane's; Region may be another one that the caller has chosen for stacks that
	// name none.
	Account, Region string
	// Who is the caller as IAM knows it: its aws:userid.
	Who string
	// Uploads puts into the bucket of uploads, Reports reads from it.
	Uploads *upload.Client
	Reports ReportAPI
	// Runs is the run log. Only what callers may read is read.
	Runs  runlog.Store
	Start Starter
	// Sealer seals the values of NoEcho parameters with the control plane's vault key; nil where it has none.
	Sealer secret.Sealer
	Clock  clock.Clock
	// Console is the address of an execution in the console of AWS, by its name; nil is none.
	Console func(execution string) string

	// watch shows an upload to whoever waits for it; nil shows nothing.
	watch func() (sent func(done, total int64), end func())

	mu     sync.Mutex
	packed map[*assembly.Assembly]packed
}

// packed is what was gathered of an assembly: a plan and the deploy after it upload the same.
type packed struct {
	stacks string
	pack   *upload.Package
}

const (
	// beginWithin is for how long the control plane may take to begin a run: it is normally there within seconds.
	beginWithin = 3 * time.Minute
	// beginEvery and waitEvery are how often it is looked for the beginning and for the end of a run.
	beginEvery = 500 * time.Millisecond
	waitEvery  = 2 * time.Second
)

// Identity returns the account and region that environment-agnostic stacks go to.
func (p *Plane) Identity(context.Context) (account, region string, err error) {
	return p.Account, p.Region, nil
}

// Log is the run log.
func (p *Plane) Log() runlog.Store { return followed{p.Runs} }

// States refuses every use: callers of a control plane can't read the state bucket.
func (p *Plane) States() *state.Store { return &state.Store{Objects: unreachable{}, Clock: p.Clock} }

// Close implements the command line's Plane. Nothing of a run is in this process.
func (p *Plane) Close() error { return nil }

// FollowEvery is how often a run is looked at while it is followed: every look is a request.
func (p *Plane) FollowEvery() time.Duration { return time.Second }

// WatchUploads has uploads shown: watch is called before each, sent with how many bytes of how many are there, end when it
// is over, however it has ended. It is called before the plane is used.
func (p *Plane) WatchUploads(watch func() (sent func(done, total int64), end func())) {
	p.watch = watch
}

// Link is where the execution of a run is in the console of AWS, "" where it is not known.
func (p *Plane) Link(runID string, command runlog.Command) string {
	if p.Console == nil {
		return ""
	}
	return p.Console(run.UploadExecution{RunID: runID, Command: command}.Name())
}

// Submit uploads what is to be done and starts it. It returns when the control plane has begun the run, which may have
// ended by then: one that is not admitted is CLOSED as failed, with the reason.
func (p *Plane) Submit(ctx context.Context, asm *assembly.Assembly, stacks []*assembly.Stack, sub run.Submission) (string, error) {
	s := admission.NewSubmission(run.NewRunID(p.Clock.Now()), sub.Command)
	s.Of, s.Options, s.PlanRun, s.Caller, s.Region = sub.Of, sub.Options, sub.PlanRun, sub.Caller, p.Region
	for _, stack := range stacks {
		d := admission.Stack{ID: stack.ID}
		if !sub.Deploys() {
			d = admission.Stack{
				ID: stack.ID, Name: stack.Name, DisplayName: stack.DisplayName, Account: stack.Account, Region: stack.Region,
				DependsOn: stack.DependsOn, TerminationProtection: stack.TerminationProtection,
			}
		}
		s.Stacks = append(s.Stacks, d)
	}
	if sub.Deploys() {
		if err := p.parameters(ctx, &s, stacks, sub); err != nil {
			return "", err
		}
		digest, err := p.upload(ctx, asm, stacks)
		if err != nil {
			return "", err
		}
		s.Assembly = digest
	}
	return s.RunID, p.begin(ctx, s)
}

// parameters divides the values: those that are secret are sealed for this submission.
func (p *Plane) parameters(ctx context.Context, s *admission.Submission, stacks []*assembly.Stack, sub run.Submission) error {
	secrets := map[string]map[string]string{}
	for _, stack := range stacks {
		_, lies, err := run.DivideParameters(stack.Template, stack.Parameters)
		if err != nil {
			return diag.From(err).InStack(stack.Name)
		}
		for name := range lies {
			return diag.Diagnostics{{
				Severity: diag.Error, Stack: stack.Name, Path: "Parameters", Summary: "the assembly holds the value of parameter " + name + " for everybody to read",
				Detail: "it is a NoEcho parameter, or one that the template does not declare, and the app gives it a value: that would be uploaded as it is",
				Next:   "Leave the value out of the app and give it with --parameters or --parameters-file, which are sealed.",
			}}
		}
		plain, hidden, err := run.DivideParameters(stack.Template, sub.Parameters[stack.ID])
		if err != nil {
			return diag.From(err).InStack(stack.Name)
		}
		if len(plain) > 0 {
			if s.Parameters == nil {
				s.Parameters = map[string]map[string]string{}
			}
			s.Parameters[stack.ID] = plain
		}
		if len(hidden) > 0 {
			secrets[stack.ID] = hidden
		}
	}
	if len(secrets) == 0 {
		return nil
	}
	if p.Sealer == nil {
		return diag.Diagnostics{{
			Severity: diag.Error, Path: "Parameters", Summary: "a NoEcho parameter needs the control plane's vault key, and it has none",
			Next: "Take a dynamic reference in place of the parameter, or add --direct.",
		}}
	}
	body, err := json.Marshal(secrets)
	if err != nil {
		return errors.New("encoding the values of NoEcho parameters has failed") // an encoder could quote them
	}
	if s.Sealed, err = p.Sealer.Seal(ctx, body, admission.SubmissionKey(p.Who, s.RunID)); err != nil {
		return fmt.Errorf("sealing the values of NoEcho parameters: %w", err)
	}
	return nil
}

// upload packs and uploads an assembly, unless that was done before.
func (p *Plane) upload(ctx context.Context, asm *assembly.Assembly, stacks []*assembly.Stack) (digest string, err error) {
	names := ""
	for _, s := range stacks {
		names += s.ID + "\n"
	}
	p.mu.Lock()
	have, ok := p.packed[asm]
	p.mu.Unlock()
	if !ok || have.stacks != names {
		have = packed{stacks: names}
		if have.pack, err = upload.Gather(ctx, asm, stacks); err != nil {
			return "", err
		}
		p.mu.Lock()
		if p.packed == nil {
			p.packed = map[*assembly.Assembly]packed{}
		}
		p.packed[asm] = have
		p.mu.Unlock()
	}
	var sent func(done, total int64)
	if p.watch != nil {
		var end func()
		sent, end = p.watch()
		defer end()
	}
	_, err = p.Uploads.Upload(ctx, admission.ArchiveKey(p.Who, have.pack.Digest), have.pack, sent)
	return have.pack.Digest, err
}

// begin uploads a submission, starts its execution and waits until the run is there. Each step may be repeated.
func (p *Plane) begin(ctx context.Context, s admission.Submission) error {
	body, err := s.Encode()
	if err != nil {
		return err
	}
	key := admission.SubmissionKey(p.Who, s.RunID)
	if err := p.Uploads.Put(ctx, key, bytes.NewReader(body), int64(len(body))); err != nil {
		return err
	}
	x := run.UploadExecution{RunID: s.RunID, Command: s.Command, Upload: run.UploadRef{Key: key}}
	input, err := x.Input()
	if err != nil {
		return fmt.Errorf("encoding the input of run %s: %w", s.RunID, err)
	}
	// From here on the run may be there: who is interrupted must learn its id, to cancel it.
	ctx = context.WithoutCancel(ctx)
	if err := p.Start.StartExecution(ctx, x.Name(), input); err != nil {
		return err
	}
	for began := p.Clock.Now(); ; {
		_, err := p.Runs.Header(ctx, s.RunID)
		if !errors.Is(err, runlog.ErrNotFound) {
			return err
		}
		if p.Clock.Now().Sub(began) > beginWithin {
			return diag.Diagnostics{{
				Severity: diag.Error, Summary: "the control plane has not begun the run", Detail: fmt.Sprintf("run %s was submitted %s ago", s.RunID, beginWithin),
				Next: "Look at its execution " + p.Link(s.RunID, s.Command) + " and run `slipway doctor`. The run may still begin: `slipway cancel " + s.RunID + "` ends it then.",
			}}
		}
		if err := p.Clock.Sleep(ctx, beginEvery); err != nil {
			return err
		}
	}
}

// Wait returns the header of a run once it is CLOSED.
func (p *Plane) Wait(ctx context.Context, runID string) (runlog.Header, error) {
	for {
		h, err := p.Runs.Header(ctx, runID)
		if err != nil {
			return h, fmt.Errorf("reading the header of run %s: %w", runID, err)
		}
		if h.Status == runlog.StatusClosed {
			return h, nil
		}
		if err := p.Clock.Sleep(ctx, waitEvery); err != nil {
			return h, err
		}
	}
}

// Cancel asks the control plane to end a run, which is a run of its own. The error has run.ErrEnded where it is too late.
func (p *Plane) Cancel(ctx context.Context, runID, by string) error {
	s := admission.NewSubmission(run.NewRunID(p.Clock.Now()), runlog.CommandCancel)
	s.Run, s.Caller = runID, by
	if err := p.begin(ctx, s); err != nil {
		return err
	}
	h, err := p.Wait(ctx, s.RunID)
	if err != nil || h.Result == runlog.ResultSucceeded {
		return err
	}
	for _, d := range h.Diagnostics {
		if d.Severity == diag.Error && d.Path == runID {
			return fmt.Errorf("%s: %w", d.Detail, run.ErrEnded)
		}
	}
	if h.Diagnostics.HasErrors() {
		return h.Diagnostics
	}
	return diag.Errorf("run "+runID+" could not be cancelled", "the control plane has failed to; it may be tried again")
}

// PlanViews returns the redacted plans that a plan run has computed, in stack order.
func (p *Plane) PlanViews(ctx context.Context, runID string) ([]plan.StackView, error) {
	r, err := p.report(ctx, runID)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, diag.Diagnostics{{
			Severity: diag.Error, Summary: "there is no plan of run " + runID + " for you", Detail: "plans are reported to whoever has asked for them",
			Next: "Run `slipway diff`.",
		}}
	}
	return r.Plans, nil
}

// Outputs returns the outputs of a stack that a run of it has reported to this caller, nil when it has reported none.
func (p *Plane) Outputs(ctx context.Context, runID string) (map[string]any, error) {
	r, err := p.report(ctx, runID)
	if err != nil || r == nil {
		return nil, err
	}
	return r.Outputs, nil
}

// report reads what the control plane reports of a run, nil when there is nothing.
func (p *Plane) report(ctx context.Context, runID string) (*admission.Report, error) {
	key := admission.ReportKey(p.Who, runID)
	out, err := p.Reports.GetObject(ctx, &sdk.GetObjectInput{Bucket: &p.Uploads.Bucket, Key: &key, ExpectedBucketOwner: aws.String(p.Uploads.Owner)})
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && (response.HTTPStatusCode() == http.StatusNotFound || response.HTTPStatusCode() == http.StatusForbidden) {
		return nil, nil // S3 says 403 of an absent object to whoever may not list
	}
	if err != nil {
		return nil, fmt.Errorf("reading the report of run %s: %w", runID, err)
	}
	defer out.Body.Close()
	var r admission.Report
	dec := json.NewDecoder(out.Body)
	dec.UseNumber()
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("reading the report of run %s: %w", runID, err)
	}
	return &r, nil
}
