package admission

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/run/submit"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/upload"
)

// submissionLife is for how long after it was uploaded a submission can be admitted: nobody finds one years later and
// has it carried out.
const submissionLife = 24 * time.Hour

// Desk admits the uploads of one bucket.
type Desk struct {
	Engine *run.Engine
	Bucket upload.ObjectAPI
	// Name is the bucket's name, Account the control plane's, which owns it, Region the control plane's.
	Name    string
	Account string
	Region  string
	// Limits bound archives; the zero value is upload.DefaultLimits.
	Limits upload.Limits
}

var _ run.Admission = (*Desk)(nil)

// Caller implements run.Admission.
func (d *Desk) Caller(ref run.UploadRef) (string, error) {
	p, ok := placeOf(ref.Key)
	if !ok {
		return "", refusal("the upload is in nobody's place", fmt.Sprintf("%q is neither below uploads/CALLER/ nor below inbox/NAME/", clip(ref.Key)),
			"Put archives below a prefix of their own: inbox/NAME/FILE.zip.")
	}
	return p.who.String(), nil
}

// Request implements run.Admission.
func (d *Desk) Request(ctx context.Context, runID string, command runlog.Command, ref run.UploadRef) (run.Request, error) {
	p, ok := placeOf(ref.Key)
	if !ok {
		_, err := d.Caller(ref)
		return run.Request{}, err
	}
	policy, err := ReadPolicy(ctx, d.Engine.Objects)
	if err != nil {
		return run.Request{}, err
	}
	a := &admitting{desk: d, policy: policy, ref: ref, place: p, runID: runID, command: command}
	var req run.Request
	if p.who.Inbox != "" {
		req, err = a.inbox(ctx)
	} else {
		req, err = a.submission(ctx)
	}
	return req, asRefusal(err)
}

// Cancellation implements run.Admission.
func (d *Desk) Cancellation(ctx context.Context, runID string, ref run.UploadRef) (target, by string, err error) {
	p, ok := placeOf(ref.Key)
	if !ok || p.who.Principal == "" {
		return "", "", refusal("the upload can't cancel a run", "it is in no caller's place", "")
	}
	policy, err := ReadPolicy(ctx, d.Engine.Objects)
	if err != nil {
		return "", "", err
	}
	a := &admitting{desk: d, policy: policy, ref: ref, place: p, runID: runID, command: runlog.CommandCancel}
	sub, err := a.read(ctx)
	if err != nil {
		return "", "", asRefusal(err)
	}
	unknown := refusal("there is no run "+clip(sub.Run)+" that you may cancel", "nobody knows it, or your rules do not allow that", "`slipway runs list` shows the runs.")
	if !run.ValidRunID(sub.Run) {
		return "", "", unknown
	}
	of, err := d.Engine.Request(ctx, sub.Run)
	if errors.Is(err, objectstore.ErrNotFound) {
		return "", "", unknown
	}
	if err != nil {
		return "", "", err
	}
	for _, s := range of.Stacks {
		// Who may not do it is not told whether there is such a run.
		ask := Ask{Who: p.who, Command: runlog.CommandCancel, Of: of.Command, Stack: s.StackRef, Own: d.Account}
		if _, no := policy.Decide(ask); no != nil {
			return "", "", unknown
		}
	}
	return sub.Run, a.caller(sub.Caller), nil
}

// admitting is one upload on its way to a request.
type admitting struct {
	desk    *Desk
	policy  Policy
	ref     run.UploadRef
	place   place
	runID   string
	command runlog.Command
}

// caller is who asks, for locks and logs: what is proven, and how it calls itself.
func (a *admitting) caller(name string) string {
	who := a.place.who.String()
	if name = clip(state.Printable(name)); name == "" {
		return who
	}
	return name + " as " + who
}

// read reads the submission, which must be for this run and no older than a day.
func (a *admitting) read(ctx context.Context) (Submission, error) {
	var s Submission
	if a.ref.Key != SubmissionKey(a.place.who.Principal, a.runID) {
		return s, refusal("the upload is not a submission of this run", fmt.Sprintf("it is %q", clip(a.ref.Key)), "")
	}
	obj, err := upload.OpenObject(ctx, a.desk.Bucket, a.desk.Name, a.desk.Account, upload.Ref(a.ref))
	if err != nil {
		return s, err
	}
	switch {
	case obj.Size > maxSubmission:
		return s, refusal("the submission is too large", fmt.Sprintf("it has %d bytes, and %d is the most", obj.Size, maxSubmission), "")
	case !obj.Modified.IsZero() && a.desk.Engine.Clock.Now().Sub(obj.Modified) > submissionLife:
		return s, refusal("the submission has expired", "it was uploaded more than a day ago and not begun", "Run the command again.")
	}
	body, err := io.ReadAll(io.NewSectionReader(obj, 0, obj.Size))
	if err != nil {
		return s, err
	}
	if err := strictly(body, &s); err != nil {
		return s, refusal("the submission can't be read", err.Error(), "Use the release of Slipway that the control plane was made with.")
	}
	switch {
	case s.Version != submissionVersion:
		return s, refusal("the submission can't be read", fmt.Sprintf("its version is %d, and this control plane reads version %d", s.Version, submissionVersion), "Use the release of Slipway that the control plane has.")
	case s.RunID != a.runID || s.Command != a.command:
		return s, refusal("the submission is for another run", "", "")
	}
	return s, nil
}

// submission makes the request of what a caller has submitted.
func (a *admitting) submission(ctx context.Context) (run.Request, error) {
	s, err := a.read(ctx)
	if err != nil {
		return run.Request{}, err
	}
	sub := run.Submission{
		Command: s.Command, Of: s.Of, Options: s.Options, PlanRun: s.PlanRun, Caller: a.caller(s.Caller), Parameters: s.Parameters,
	}
	if s.Command == runlog.CommandPlan && !slices.Contains([]runlog.Command{runlog.CommandDeploy, runlog.CommandDestroy, runlog.CommandRollback}, s.Of) {
		return run.Request{}, refusal("the submission says not what to plan", "", "")
	}
	if !sub.Deploys() {
		return a.request(ctx, nil, s.described(), sub, s.Region, s.Role)
	}
	if b, err := hex.DecodeString(s.Assembly); err != nil || len(b) != sha256.Size {
		return run.Request{}, refusal("the submission has no assembly", "it does not say the digest of one", "")
	}
	arch, err := a.desk.open(ctx, upload.Ref{Key: ArchiveKey(a.place.who.Principal, s.Assembly)})
	if err != nil {
		return run.Request{}, err
	}
	if err := arch.reader.Verify(s.Assembly); err != nil {
		return run.Request{}, err
	}
	asm, err := arch.assembly()
	if err != nil {
		return run.Request{}, err
	}
	stacks, err := s.among(asm)
	if err != nil {
		return run.Request{}, err
	}
	if err := readable(stacks, s.Parameters); err != nil {
		return run.Request{}, err
	}
	if sub.Parameters, err = a.unseal(ctx, s); err != nil {
		return run.Request{}, err
	}
	return a.deploy(ctx, arch, asm, stacks, sub, s.Region, s.Role)
}

// described are the stacks as the submission describes them: nothing of them is deployed.
func (s Submission) described() []*assembly.Stack {
	var out []*assembly.Stack
	for _, d := range s.Stacks {
		out = append(out, &assembly.Stack{
			ID: d.ID, Name: d.Name, DisplayName: d.DisplayName, Account: d.Account, Region: d.Region, DependsOn: d.DependsOn,
			TerminationProtection: d.TerminationProtection,
		})
	}
	return out
}

// among finds the submission's stacks in the assembly.
func (s Submission) among(asm *assembly.Assembly) ([]*assembly.Stack, error) {
	wanted := map[string]bool{}
	for _, d := range s.Stacks {
		wanted[d.ID] = true
	}
	var out []*assembly.Stack
	for _, stack := range asm.Stacks {
		if wanted[stack.ID] {
			out = append(out, stack)
			delete(wanted, stack.ID)
		}
	}
	if len(wanted) > 0 {
		return nil, refusal("the assembly has not all of the submission's stacks", "it lacks "+clip(strings.Join(slices.Sorted(maps.Keys(wanted)), ", ")), "")
	}
	return out, nil
}

// unseal returns all parameters of a submission, those of NoEcho parameters opened.
func (a *admitting) unseal(ctx context.Context, s Submission) (map[string]map[string]string, error) {
	if len(s.Sealed) == 0 {
		return s.Parameters, nil
	}
	if a.desk.Engine.Vault == nil {
		return nil, refusal("sealed parameters can't be opened", "this control plane has no vault key", "")
	}
	plain, err := a.desk.Engine.Vault.Sealer.Open(ctx, s.Sealed, a.ref.Key)
	if errors.Is(err, secret.ErrSealed) {
		return nil, refusal("sealed parameters can't be opened", "they were sealed with another key, or for another submission", "Run the command again.")
	}
	if err != nil {
		return nil, fmt.Errorf("opening the sealed parameters of run %s: %w", a.runID, err)
	}
	var secrets map[string]map[string]string
	if json.NewDecoder(bytes.NewReader(plain)).Decode(&secrets) != nil {
		return nil, refusal("sealed parameters can't be read", "they are not what was expected", "") // the decoder could quote them
	}
	all := map[string]map[string]string{}
	for _, values := range []map[string]map[string]string{s.Parameters, secrets} {
		for id, of := range values {
			if all[id] == nil {
				all[id] = map[string]string{}
			}
			maps.Copy(all[id], of)
		}
	}
	return all, nil
}

// readable refuses values that should have been sealed: they lie in the bucket for everybody to read who may.
func readable(stacks []*assembly.Stack, parameters map[string]map[string]string) error {
	for _, s := range stacks {
		_, secret, err := run.DivideParameters(s.Template, parameters[s.ID])
		if err != nil {
			return diag.From(err).InStack(s.Name)
		}
		if len(secret) > 0 {
			return diag.Diagnostics{{
				Severity: diag.Error, Stack: s.Name, Path: "Parameters",
				Summary: "the value of parameter " + slices.Sorted(maps.Keys(secret))[0] + " was uploaded for everybody to read who may",
				Detail:  "it is a NoEcho parameter, or one that the template does not declare",
				Next:    "Change that secret. Take a dynamic reference in place of the parameter, or give its value to `slipway deploy`, which seals it.",
			}}
		}
	}
	return nil
}

// deploy is request for stacks of an archive.
func (a *admitting) deploy(ctx context.Context, arch *archive, asm *assembly.Assembly, stacks []*assembly.Stack, sub run.Submission, region, role string) (run.Request, error) {
	req, err := a.request(ctx, asm, stacks, sub, region, role)
	if err != nil {
		return req, arch.reason(err)
	}
	req.Upload = arch.upload()
	return req, nil
}

// request asks the policy for every stack and makes the request.
func (a *admitting) request(ctx context.Context, asm *assembly.Assembly, stacks []*assembly.Stack, sub run.Submission, region, role string) (run.Request, error) {
	d := a.desk
	if region == "" {
		region = d.Region
	}
	if len(stacks) == 0 {
		return run.Request{}, refusal("the submission is about no stack", "", "")
	}
	desk := submit.Desk{Engine: d.Engine, Account: d.Account, Region: region, RunID: a.runID}
	var denied diag.Diagnostics
	roles := make([]*run.Role, len(stacks))
	for i, s := range stacks {
		if why := illegal(desk.Place(s)); why != "" {
			return run.Request{}, refusal("the submission names a stack that can't be", clip(s.Name)+": "+why, "Synthesize the app again.")
		}
		var no *diag.Diagnostic
		ask := Ask{Who: a.place.who, Command: sub.Command, Of: sub.Of, Stack: desk.Place(s), Options: sub.Options, Role: role, Own: d.Account}
		if roles[i], no = a.policy.Decide(ask); no != nil {
			denied = append(denied, *no)
		}
		for _, asked := range s.Assets {
			if err := asset.Check(asked); err != nil && sub.Deploys() {
				denied = append(denied, diag.From(err).InStack(s.Name)...)
			}
		}
	}
	if denied.HasErrors() {
		return run.Request{}, denied
	}
	req, err := desk.Prepare(ctx, asm, stacks, sub)
	if err != nil {
		return req, err
	}
	req.From = a.ref.Key
	for i := range req.Stacks {
		req.Stacks[i].Role = roles[i]
	}
	return req, nil
}

// What AWS allows for the names of stacks
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html), accounts and regions. They
// become parts of keys.
var (
	stackName  = regexp.MustCompile(`^[A-Za-z][-A-Za-z0-9]{0,127}$`)
	accountID  = regexp.MustCompile(`^[0-9]{12}$`)
	regionName = regexp.MustCompile(`^[a-z]{2,8}(-[a-z]+)+-[0-9]{1,2}$`)
)

// illegal says what is wrong with where a stack is.
func illegal(s runlog.StackRef) string {
	switch {
	case !stackName.MatchString(s.Name):
		return "that is no name of a stack"
	case !accountID.MatchString(s.Account):
		return "its account is no account"
	case !regionName.MatchString(s.Region):
		return "its region is no region"
	}
	return ""
}

func refusal(summary, detail, next string) diag.Diagnostics {
	if next == "" {
		next = "Run the command again, with the release of Slipway that the control plane has."
	}
	return diag.Diagnostics{{Severity: diag.Error, Summary: summary, Detail: detail, Next: next}}
}

// asRefusal tells what is wrong with an upload from what is wrong with a service.
func asRefusal(err error) error {
	var no *upload.Refusal
	var diags diag.Diagnostics
	switch {
	case errors.As(err, &diags):
		return diags
	case errors.As(err, &no):
		return refusal("the upload is refused", strings.TrimPrefix(no.Error(), "the upload is refused: "), "Make the archive again from a cdk.out that the app has synthesized.")
	case errors.Is(err, upload.ErrNoUpload):
		return refusal("the upload is gone", err.Error(), "Upload it again: uploads are kept for a limited time.")
	}
	return err
}

// clip keeps text from an upload short enough for a message.
func clip(s string) string {
	s = state.Printable(s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
