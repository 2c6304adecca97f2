package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// publishLease is how long a publisher may take: the longest that a function can run.
const publishLease = 15 * time.Minute

// Publish publishes one asset.
func (e *Engine) Publish(ctx context.Context, in PublishInput) (OperationStatus, error) {
	input, err := e.operationInput(ctx, in.RunID, in.Wave, in.Op)
	if err != nil {
		return OperationStatus{}, err
	}
	op, err := e.Log.Op(ctx, in.RunID, in.Op)
	if err != nil && !errors.Is(err, runlog.ErrNotFound) {
		return OperationStatus{}, fmt.Errorf("reading the journal of %s: %w", in.Op, err)
	}
	switch {
	case op.Version == 0:
	case op.Attempt > input.Attempt || op.Wave > in.Wave:
		return OperationStatus{Op: op.OpID, Status: string(op.Status)}, nil // the message is late
	case op.Attempt == input.Attempt && op.Status.Ended():
		e.tellAsset(ctx, in.RunID, input, op)
		return OperationStatus{Op: op.OpID, Status: string(op.Status)}, nil
	}
	var req Request
	if err := getJSON(ctx, e.Objects, requestKey(in.RunID), &req); err != nil {
		return OperationStatus{}, err
	}
	now, started := e.Clock.Now(), op.StartedAt
	if started.IsZero() || op.Attempt < input.Attempt {
		started = now
	}
	op = runlog.Op{
		OpID: in.Op, Kind: string(plan.KindAsset), Action: string(plan.ActionPublish),
		LogicalID: input.Operation.LogicalID, Type: input.Operation.Type,
		Attempt: input.Attempt, Token: token(in.RunID, in.Op, string(plan.ActionPublish), input.Attempt),
		Epoch: in.Epoch, Wave: in.Wave, Status: runlog.OpIntent, StartedAt: started,
		Lease: runlog.Lease{Holder: e.Holder, Until: now.Add(publishLease)}, Version: op.Version,
	}
	if op, err = e.Log.PutOp(ctx, in.RunID, runlog.StatusOpen, op); err != nil {
		return OperationStatus{}, fmt.Errorf("recording the intent of %s: %w", in.Op, err)
	}
	e.tell(ctx, in.RunID, input, op, runlog.AssetStarted)
	op = e.publishAsset(ctx, req, input, op)
	if ctx.Err() != nil {
		return OperationStatus{}, fmt.Errorf("publishing %s: %w", op.LogicalID, ctx.Err())
	}
	op.Lease, op.FinishedAt = runlog.Lease{}, e.Clock.Now()
	if op, err = e.Log.PutOp(ctx, in.RunID, runlog.StatusOpen, op); err != nil {
		return OperationStatus{}, fmt.Errorf("recording the result of %s: %w", in.Op, err)
	}
	e.tellAsset(ctx, in.RunID, input, op)
	return OperationStatus{Op: op.OpID, Status: string(op.Status)}, nil
}

// tellAsset writes the event of an asset whose operation has ended.
func (e *Engine) tellAsset(ctx context.Context, runID string, input operationInput, op runlog.Op) {
	told := runlog.AssetPublished
	switch {
	case op.Status == runlog.OpFailed:
		told = runlog.AssetFailed
	case op.Reason != "" && op.Reason != reasonPresent:
		told = runlog.AssetSkipped
	}
	e.tell(ctx, runID, input, op, told)
}

// reasonPresent marks an asset that every destination had already.
const reasonPresent = "already there"

// publishAsset publishes the asset that an operation names; its source is in the request.
func (e *Engine) publishAsset(ctx context.Context, req Request, input operationInput, op runlog.Op) runlog.Op {
	for _, a := range req.Assets {
		if "asset."+a.ID != op.OpID {
			continue
		}
		outcome, err := e.publishFrom(input.acting(ctx, req.RunID), req, a.Asset, assetEnvironment(input.Account, input.Region))
		if err != nil {
			return failed(op, &provider.Error{Kind: provider.KindOf(err), Err: err})
		}
		op.Status, op.Reason = runlog.OpSucceeded, outcome.Reason
		if outcome.Status == asset.Present {
			op.Reason = reasonPresent
		}
		return op
	}
	return failed(op, &provider.Error{Kind: provider.KindInvalid, Message: "the request has no such asset"})
}

// publishFrom publishes an asset from wherever its request has its source.
func (e *Engine) publishFrom(ctx context.Context, req Request, a assembly.Asset, env asset.Env) (asset.Outcome, error) {
	switch {
	case req.Upload == nil:
		return e.Assets.Publish(ctx, a, env)
	case e.Uploads == nil:
		return asset.Outcome{}, &provider.Error{Kind: provider.KindInvalid, Message: "its source is in an upload, and nothing here can read uploads"}
	}
	return e.Uploads.PublishUpload(ctx, req, a, env)
}
