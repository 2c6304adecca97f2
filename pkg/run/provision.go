package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// waveInput is waves/{n}.json: what the provisioners of one wave need, and nothing else.
type waveInput struct {
	Wave       int                        `json:"wave"`
	Operations map[string]json.RawMessage `json:"operations"` // operationInput by operation id
}

// operationInput is one resolved operation.
type operationInput struct {
	Operation plan.Operation `json:"operation"`
	Attempt   int            `json:"attempt"`
	Account   string         `json:"account"`
	Region    string         `json:"region"`
	Stack     string         `json:"stack"`
	// Role is what the calls are made under; nil for the credentials of the process.
	Role *Role `json:"role,omitempty"`
	// Properties are the resolved desired properties.
	Properties map[string]any `json:"properties,omitempty"`
	// Before is the resource's record now; it is absent for a create.
	Before json.RawMessage `json:"before,omitempty"`
	// Attempted are the properties that a failed update may have left the resource with, in part or altogether.
	Attempted map[string]any `json:"attempted,omitempty"`
	// Secrets tells which of the properties are secret.
	Secrets *inputSecrets `json:"secrets,omitempty"`
	// Mask is where the vault has the values of the run's NoEcho parameters: nothing that comes back may hold one.
	Mask string `json:"mask,omitempty"`
	// The rest becomes part of the record.
	Dependencies        []string       `json:"dependencies,omitempty"`
	DeletionPolicy      string         `json:"deletionPolicy,omitempty"`
	UpdateReplacePolicy string         `json:"updateReplacePolicy,omitempty"`
	Route               provider.Route `json:"route,omitempty"`
	// WantAttributes names the attributes that the template reads of this resource.
	WantAttributes []string `json:"wantAttributes,omitempty"`
	NameSuffix     string   `json:"nameSuffix,omitempty"`
	// FinalSnapshot is the name of the snapshot that the deletion of a resource takes first, "" for none.
	FinalSnapshot string `json:"finalSnapshot,omitempty"`
	// NewAccess: a role, policy or key that the resource relies on was made or changed a moment ago.
	NewAccess bool `json:"newAccess,omitempty"`
	// Uncounted: the failure before does not count, because what stood in its way has gone since.
	Uncounted bool `json:"uncounted,omitempty"`
	// Root and Command are the run's, for the events.
	Root    string         `json:"root,omitempty"`
	Command runlog.Command `json:"command,omitempty"`

	// Wait says how far creates and updates are followed.
	Wait provider.WaitMode `json:"wait,omitempty"`

	// repeats: this is not the first time that a process takes the operation up.
	repeats bool
	// concealed are the positions of Properties whose values have to be sealed before they are stored.
	concealed []secret.Path
}

// recordable are the properties as they may be recorded.
func (in operationInput) recordable() map[string]any {
	if in.Properties == nil {
		return nil
	}
	return secret.Concealed(in.Properties).(map[string]any)
}

// leaseSlack is added to a slice: the time between a provisioner's last look at the clock and its return.
const leaseSlack = 30 * time.Second

// Provision carries out one operation of a wave, or goes on with it, for at most the wave's slice. Invoked
// again it returns the recorded result, or recovers the unfinished call under the same token.
func (e *Engine) Provision(ctx context.Context, in ProvisionInput) (OperationStatus, error) {
	input, err := e.operationInput(ctx, in.RunID, in.Wave, in.Op)
	if err != nil {
		return OperationStatus{}, err
	}
	op, err := e.carryOut(ctx, in.RunID, in.Wave, in.Epoch, runlog.StatusOpen, input, time.Duration(max(in.Slice, 1))*time.Second)
	if err != nil {
		return OperationStatus{}, err
	}
	return OperationStatus{Op: op.OpID, Status: string(op.Status)}, nil
}

func (e *Engine) operationInput(ctx context.Context, runID string, wave int, opID string) (operationInput, error) {
	w, err := e.wave(ctx, runID, wave)
	if err != nil {
		return operationInput{}, fmt.Errorf("operation %s of run %s: %w", opID, runID, err)
	}
	raw, ok := w.Operations[opID]
	if !ok {
		return operationInput{}, fmt.Errorf("operation %s of run %s, wave %d: %w", opID, runID, wave, errNoInput)
	}
	var input operationInput
	if err := unmarshal(raw, &input); err != nil {
		return operationInput{}, fmt.Errorf("operation %s of run %s: %w", opID, runID, err)
	}
	return input, nil
}

// errNoInput: an operation is not among those of a wave.
var errNoInput = errors.New("the wave has no such operation")

// carryOut moves one operation on: intent, call, result. `in` is the status that the run must have: OPEN for
// a provisioner, SETTLING for a janitor that recovers what a dead one has left.
func (e *Engine) carryOut(ctx context.Context, runID string, wave, epoch int, in runlog.Status, input operationInput, slice time.Duration) (runlog.Op, error) {
	ctx = input.acting(ctx, runID)
	defer e.atWork().begin(runID, input.Operation.ID)()
	op, err := e.Log.Op(ctx, runID, input.Operation.ID)
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		op = runlog.Op{}
	case err != nil:
		return runlog.Op{}, fmt.Errorf("reading the journal of %s: %w", input.Operation.ID, err)
	}
	input.repeats = op.Version != 0
	switch {
	case op.Version == 0:
	case op.Attempt > input.Attempt || op.Wave > wave:
		// The message is late: the operation has been taken further in another wave.
		return op, nil
	case op.Attempt == input.Attempt && op.Status.Ended():
		// Whoever recorded it may have died before telling.
		e.tellResult(ctx, runID, input, op)
		return op, nil
	}
	now := e.Clock.Now()
	// No call outlives the lease that begins now: whoever recovers the operation after it must not meet one that is still
	// under way, or that a process makes which was held up.
	leased, release := context.WithTimeout(ctx, slice+leaseSlack)
	defer release()
	fresh := op.Version == 0 || op.Attempt < input.Attempt
	begins := fresh || op.Status == runlog.OpIntent && op.Wave == wave
	if fresh {
		op = intent(runID, input, op, now)
	}
	op.Epoch, op.Wave = epoch, wave
	op.Lease = runlog.Lease{Holder: e.Holder, Until: now.Add(slice + leaseSlack)}
	if op, err = e.Log.PutOp(ctx, runID, in, op); err != nil {
		return runlog.Op{}, fmt.Errorf("recording the intent of %s: %w", input.Operation.ID, err)
	}
	if begins {
		e.tell(ctx, runID, input, op, runlog.OpStarted)
	}

	op, err = e.work(leased, runID, in, input, op, now.Add(slice))
	if err != nil {
		return runlog.Op{}, err
	}
	op.Lease = runlog.Lease{}
	if op.Status.Ended() {
		op.FinishedAt = e.Clock.Now()
	}
	recorded, err := e.Log.PutOp(ctx, runID, in, op)
	if err != nil {
		return runlog.Op{}, fmt.Errorf("recording the result of %s: %w", input.Operation.ID, err)
	}
	e.tellResult(ctx, runID, input, recorded)
	if recorded.Status.Ended() {
		e.clean(ctx, input, recorded)
	}
	return recorded, nil
}

// clean lets a provider remove what it kept to repeat the steps of an attempt whose result is recorded. What it can't
// remove is of no further use to anybody, so a failure is only logged.
func (e *Engine) clean(ctx context.Context, input operationInput, op runlog.Op) {
	p, _, err := e.Providers.For(op.Type, input.Route, slices.Sorted(maps.Keys(input.Properties)))
	cleaner, ok := p.(provider.Cleaner)
	if err != nil || !ok {
		return
	}
	tokens := []string{op.Token}
	if input.Operation.DeleteFirst {
		tokens = append(tokens, op.Token+oldToken)
	}
	if op.Status == runlog.OpFailed && input.creates() {
		tokens = append(tokens, op.Token+remnantToken)
	}
	for _, token := range tokens {
		err := cleaner.Clean(ctx, provider.Request{
			Stack: input.Stack, Region: input.Region, Account: input.Account, LogicalID: op.LogicalID, Type: op.Type, Token: token,
		})
		if err != nil {
			e.logger().WarnContext(ctx, "what a step has kept for its repetition could not be removed", "operation", op.OpID, "error", err)
		}
	}
}

// The deletions that belong to a creation have tokens of their own, made from its token.
const (
	oldToken     = "-old"     // of the resource that it replaces
	remnantToken = "-remnant" // of what it has left when it failed
)

// intent is the record of an attempt that is about to begin. last is the attempt before, if there was one: where
// that has deleted the old half of a replacement, this one goes on from there.
func intent(runID string, input operationInput, last runlog.Op, now time.Time) runlog.Op {
	planned := input.Operation
	op := runlog.Op{
		OpID: planned.ID, Kind: string(planned.Kind), Action: string(planned.Action),
		LogicalID: planned.LogicalID, Type: planned.Type,
		Attempt: input.Attempt, Status: runlog.OpIntent,
		Token:  token(runID, planned.ID, string(planned.Action), input.Attempt),
		Before: input.Before, StartedAt: now, Version: last.Version,
	}
	if last.Stage == stageDeleted {
		op.Stage, op.Before = last.Stage, last.Before
	}
	op.Failures = failuresOf(last)
	if input.Uncounted {
		op.Failures = last.Failures
	}
	return op
}

// tellResult writes the event of an operation that has ended.
func (e *Engine) tellResult(ctx context.Context, runID string, input operationInput, op runlog.Op) {
	switch op.Status {
	case runlog.OpSucceeded:
		e.tell(ctx, runID, input, op, runlog.OpDone)
	case runlog.OpFailed:
		if retryDue(op) {
			e.tell(ctx, runID, input, op, runlog.OpRetry)
		} else {
			e.tell(ctx, runID, input, op, runlog.OpFail)
		}
	case runlog.OpSkipped:
		e.tell(ctx, runID, input, op, runlog.OpSkip)
	}
}

// work makes the provider calls of one operation until it has ended or the slice is over. It returns the
// operation as it is to be recorded; an error means that nothing is known and the intent stays open.
func (e *Engine) work(ctx context.Context, runID string, in runlog.Status, input operationInput, op runlog.Op, until time.Time) (runlog.Op, error) {
	p, route, err := e.Providers.For(op.Type, input.Route, slices.Sorted(maps.Keys(input.Properties)))
	if err != nil {
		return failed(op, &provider.Error{Kind: provider.KindUnsupported, Err: err}), nil
	}
	if input.FinalSnapshot != "" && !provider.CanSnapshot(op.Type) {
		return failed(op, unsupportedSnapshot(op)), nil
	}
	req, before, err := input.request(op)
	if err != nil {
		return op, err
	}
	req.Operation = token(runID, op.OpID, op.Action, 0)
	if p, req, err = e.reveal(ctx, p, input, req); err != nil {
		if ctx.Err() != nil {
			return op, fmt.Errorf("%s %s: %w", op.Action, op.LogicalID, ctx.Err())
		}
		return failed(op, unresolvable(err)), nil
	}
	if input.Operation.Action == plan.ActionDelete {
		req.FinalSnapshot = input.FinalSnapshot
		op.PhysicalID = req.PhysicalID
	}
	deleting := input.Operation.DeleteFirst && op.Stage == ""
	if deleting && before == nil {
		deleting, op.Stage = false, stageDeleted
	}
	var progress provider.Progress
	switch {
	case op.Status == runlog.OpRunning && op.Handle != nil:
		progress, err = p.Poll(ctx, stageRequest(req, before, deleting, input.FinalSnapshot), *op.Handle)
	case deleting:
		progress, err = p.Delete(ctx, stageRequest(req, before, true, input.FinalSnapshot))
	default:
		progress, err = start(ctx, p, input.Operation.Action, req)
	}
	for {
		if err != nil {
			if ctx.Err() != nil {
				return op, fmt.Errorf("%s %s: %w", op.Action, op.LogicalID, ctx.Err())
			}
			if provider.IsUndecided(err) && op.Doubts < maxDoubts {
				return e.doubt(op, err), nil
			}
			return e.fail(ctx, p, req, attempted{
				op: op, route: route, before: before, creates: input.creates() && !deleting,
				recorded: input.recordable(), until: until, newAccess: input.NewAccess,
			}, err)
		}
		op.Doubts, op.Doubt = 0, ""
		if progress.Done && deleting && progress.Skipped == "" {
			// The old half is gone: that is recorded before the new one is begun.
			deleting, op.Stage, op.Status, op.Handle = false, stageDeleted, runlog.OpIntent, nil
			if op, err = e.Log.PutOp(ctx, runID, in, op); err != nil {
				return op, fmt.Errorf("recording the progress of %s: %w", op.OpID, err)
			}
			progress, err = p.Create(ctx, req)
			continue
		}
		if progress.PhysicalID != "" && !deleting {
			op.PhysicalID = progress.PhysicalID
		}
		if progress.Done {
			return e.succeed(ctx, op, input, route, before, progress)
		}
		if progress.Handle == nil {
			return failed(op, &provider.Error{Kind: provider.KindFailed, Message: "the provider gave neither a result nor a handle to poll"}), nil
		}
		op.Status, op.Handle = runlog.OpRunning, progress.Handle
		op.NotBefore = e.Clock.Now().Add(progress.RetryAfter)
		if op.NotBefore.After(until) {
			return op, nil
		}
		// The handle is recorded before the wait: a process that dies here can be followed by another one.
		if op, err = e.Log.PutOp(ctx, runID, in, op); err != nil {
			return op, fmt.Errorf("recording the progress of %s: %w", op.OpID, err)
		}
		if err := e.Clock.Sleep(ctx, max(progress.RetryAfter, 0)); err != nil {
			return op, fmt.Errorf("%s %s: %w", op.Action, op.LogicalID, err)
		}
		progress, err = p.Poll(ctx, stageRequest(req, before, deleting, input.FinalSnapshot), *op.Handle)
	}
}

// stageDeleted marks a replacement whose old half had to go first, and has.
const stageDeleted = "deleted"

// stageRequest is the request of the deletion that comes before the creation, or the request itself.
func stageRequest(req provider.Request, before *state.Resource, deleting bool, snapshot string) provider.Request {
	if !deleting {
		return req
	}
	req.PhysicalID, req.Properties = before.PhysicalID, nil
	req.Token += oldToken
	req.FinalSnapshot = snapshot
	return req
}

// start makes the first call of an operation.
func start(ctx context.Context, p provider.Provider, action plan.Action, req provider.Request) (provider.Progress, error) {
	switch action {
	case plan.ActionCreate, plan.ActionReplace:
		return p.Create(ctx, req)
	case plan.ActionUpdate:
		return p.Update(ctx, req)
	case plan.ActionDelete:
		return p.Delete(ctx, req)
	}
	return provider.Progress{}, fmt.Errorf("the provisioner cannot %s a resource", action)
}

// request builds the provider's request and decodes the record before.
func (in operationInput) request(op runlog.Op) (provider.Request, *state.Resource, error) {
	req := provider.Request{
		Stack: in.Stack, Region: in.Region, Account: in.Account,
		LogicalID: op.LogicalID, Type: op.Type,
		Properties: in.Properties, Token: op.Token, Attempt: op.Attempt, NameSuffix: in.NameSuffix,
		WantAttributes: in.WantAttributes, Wait: in.Wait, Repeat: in.repeats,
	}
	if len(in.Before) == 0 {
		return req, nil, nil
	}
	before := new(state.Resource)
	if err := unmarshal(in.Before, before); err != nil {
		return req, nil, fmt.Errorf("reading the record of %s: %w", op.LogicalID, err)
	}
	req.Previous, req.Attributes = before.Properties, before.Attributes
	if in.Attempted != nil {
		req.Previous = in.Attempted
	}
	if in.Operation.Action != plan.ActionReplace {
		req.PhysicalID = before.PhysicalID
	}
	return req, before, nil
}

// succeed records what the resource is now, without what its provider calls secret.
func (e *Engine) succeed(ctx context.Context, op runlog.Op, input operationInput, route provider.Route, before *state.Resource, p provider.Progress) (runlog.Op, error) {
	if !p.NoEcho || p.Skipped != "" {
		return succeeded(op, input, route, before, p)
	}
	handle, digests, err := e.concealAttributes(ctx, input, &p)
	if err != nil {
		return op, err
	}
	if op, err = succeeded(op, input, route, before, p); err != nil || op.Status != runlog.OpSucceeded {
		return op, err
	}
	op.Attributes, op.Masked = handle, maps.Clone(op.Masked)
	if op.Masked == nil {
		op.Masked = map[string]string{}
	}
	maps.Copy(op.Masked, digests)
	return op, nil
}

func succeeded(op runlog.Op, input operationInput, route provider.Route, before *state.Resource, p provider.Progress) (runlog.Op, error) {
	op.Handle, op.Error = nil, nil
	if p.Skipped != "" {
		op.Status, op.Reason = runlog.OpSkipped, p.Skipped
		return op, nil
	}
	if input.Operation.Action == plan.ActionReplace && op.Stage == "" && before != nil && before.ResourceType == op.Type &&
		before.PhysicalID == op.PhysicalID && !provider.IsCustom(op.Type) {
		// Nothing of it may be removed: it is the old half.
		op.PhysicalID = ""
		return failed(op, &provider.Error{
			Kind: provider.KindFailed, Code: "SameResource",
			Message: "the service has answered the creation of the replacement with the resource that stands: give it another name",
		}), nil
	}
	op.Status = runlog.OpSucceeded
	if input.Operation.Action == plan.ActionDelete {
		op.After = nil
		return op, nil
	}
	after := &state.Resource{
		PhysicalID: op.PhysicalID, ResourceType: op.Type,
		Properties: input.recordable(), Attributes: p.Attributes, ObservedProperties: p.Observed,
		Dependencies: input.Dependencies, ProvisionedBy: string(route),
		DeletionPolicy: input.DeletionPolicy, UpdateReplacePolicy: input.UpdateReplacePolicy,
	}
	if p.Effective != nil {
		after.Properties = p.Effective
	}
	if after.Properties == nil {
		after.Properties = map[string]any{}
	}
	if before != nil && input.Operation.Action == plan.ActionUpdate {
		after.Metadata, after.Extra = before.Metadata, before.Extra
		if after.Attributes == nil {
			after.Attributes = before.Attributes
		}
		if after.PhysicalID == "" {
			after.PhysicalID = before.PhysicalID
		}
	}
	raw, err := marshal(after)
	if err != nil {
		return op, fmt.Errorf("encoding the record of %s: %w", op.LogicalID, err)
	}
	op.PhysicalID, op.After = after.PhysicalID, raw
	if input.Secrets != nil {
		op.Masked = input.Secrets.Masked
	}
	return op, nil
}

// creates reports whether the operation makes a new resource: only then is what a failure names its own remnant.
func (in operationInput) creates() bool {
	return in.Operation.Action == plan.ActionCreate || in.Operation.Action == plan.ActionReplace
}

// attempted is a call that has failed.
type attempted struct {
	op    runlog.Op
	route provider.Route
	// creates: the call was to make a new resource.
	creates bool
	// before is the record of the resource before the operation, nil where there was none.
	before *state.Resource
	// recorded are the properties as they may be recorded.
	recorded map[string]any
	until    time.Time
	// newAccess: see operationInput.
	newAccess bool
}

// fail records a failure, after removing what a failed create has left behind. What can't be removed is recorded
// as a resource of its own, to be cleaned up.
func (e *Engine) fail(ctx context.Context, p provider.Provider, req provider.Request, call attempted, cause error) (runlog.Op, error) {
	op := call.op
	var perr *provider.Error
	if !errors.As(cause, &perr) {
		perr = &provider.Error{Kind: provider.KindFailed, Err: cause}
	}
	perr = withoutValues(perr, req.Type, req.Properties, req.Previous)
	if perr.Kind == provider.KindPropagation && !call.newAccess {
		// What it relies on has been there for long: it will not do later either.
		perr.Kind = provider.KindAccessDenied
	}
	if perr.Undecided {
		perr = unresolvedDoubt(perr, op.Doubts)
	}
	op.NotBefore = time.Time{}
	if perr.RetryAfter > 0 {
		op.NotBefore = e.Clock.Now().Add(perr.RetryAfter)
	}
	if !call.creates {
		return e.halfway(ctx, p, req, call, failed(op, perr))
	}
	op.PhysicalID, op.After = "", nil
	if perr.PhysicalID != "" && e.removeRemnant(ctx, p, req, perr.PhysicalID, call.until) != nil {
		if ctx.Err() != nil {
			return op, fmt.Errorf("%s %s: %w", op.Action, op.LogicalID, ctx.Err())
		}
		remnant, err := marshal(&state.Resource{
			PhysicalID: perr.PhysicalID, ResourceType: op.Type, Properties: call.recorded, ProvisionedBy: string(call.route),
		})
		if err != nil {
			return op, fmt.Errorf("encoding what the failed creation of %s has left: %w", op.LogicalID, err)
		}
		op.PhysicalID, op.After = perr.PhysicalID, remnant
	}
	return failed(op, perr), nil
}

func failed(op runlog.Op, perr *provider.Error) runlog.Op {
	op.Status, op.Handle = runlog.OpFailed, nil
	message := perr.Message
	if message == "" && perr.Err != nil {
		message = perr.Err.Error()
	}
	op.Error = &runlog.OpError{Kind: perr.Kind, Code: perr.Code, Message: message, RequestID: perr.RequestID}
	return op
}

// removeRemnant deletes what a failed create has left, so that the next attempt does not meet it.
func (e *Engine) removeRemnant(ctx context.Context, p provider.Provider, req provider.Request, physicalID string, until time.Time) error {
	req.PhysicalID = physicalID
	req.Previous, req.Properties = req.Properties, nil
	req.Token += remnantToken
	progress, err := p.Delete(ctx, req)
	for err == nil && !progress.Done {
		if progress.Handle == nil || e.Clock.Now().Add(progress.RetryAfter).After(until) {
			return errRemains
		}
		if err = e.Clock.Sleep(ctx, progress.RetryAfter); err == nil {
			progress, err = p.Poll(ctx, req, *progress.Handle)
		}
	}
	if err == nil && progress.Skipped != "" {
		return errRemains
	}
	return err
}

// errRemains: a remnant could not be removed in the time that there was.
var errRemains = errors.New("it still exists")
