// Package simulated provides what the sandbox serves beside Cloud Control: types through its direct API, which stands for
// the services' own, and custom resources, through its simulated handler. Both are recorded as "sdk", as the services'
// own providers are, and have the physical ids and attributes that those give them.
package simulated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/cloudcontrol"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// Client returns the sandbox's client for one account and region.
type Client func(account, region string) *sandbox.Client

// Direct provisions types through the direct API: those that have a direct provider, and those that Cloud Control cannot
// provision.
type Direct struct {
	Client Client
	Clock  clock.Clock
}

var _ provider.Provider = (*Direct)(nil)

const (
	handleVersion = 1
	providerName  = "simulated"
)

type handle struct {
	RequestToken string `json:"requestToken"`
}

// Create implements provider.Provider.
func (d *Direct) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	ev, err := d.Client(req.Account, req.Region).Create(ctx, req.Type, req.Stack+"-"+req.LogicalID, cloudcontrol.Coerce(req.Type, req.Properties), req.Token)
	return d.progress(ctx, req, ev, err)
}

// Update implements provider.Provider.
func (d *Direct) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	ev, err := d.Client(req.Account, req.Region).Update(ctx, req.Type, req.PhysicalID, cloudcontrol.Coerce(req.Type, req.Previous), cloudcontrol.Coerce(req.Type, req.Properties), req.Token)
	return d.progress(ctx, req, ev, err)
}

// Delete implements provider.Provider.
func (d *Direct) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	if req.FinalSnapshot != "" {
		return provider.Progress{}, provider.NoFinalSnapshot(req, "the direct API") // see Snapshots
	}
	ev, err := d.Client(req.Account, req.Region).Delete(ctx, req.Type, req.PhysicalID, cloudcontrol.Coerce(req.Type, req.Previous), req.Token)
	if provider.IsNotFound(wrap(err)) {
		return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
	}
	return d.progress(ctx, req, ev, err)
}

// Poll implements provider.Provider.
func (d *Direct) Poll(ctx context.Context, req provider.Request, h provider.Handle) (provider.Progress, error) {
	var data handle
	if err := json.Unmarshal(h.Data, &data); err != nil || h.Provider != providerName || h.Version != handleVersion || data.RequestToken == "" {
		return provider.Progress{}, &provider.Error{
			Kind: provider.KindFailed, Code: "UnknownHandle", Err: err,
			Message: fmt.Sprintf("the handle of the operation on %s (%s, version %d) can't be read", req.LogicalID, h.Provider, h.Version),
		}
	}
	ev, err := d.Client(req.Account, req.Region).Status(ctx, data.RequestToken)
	return d.progress(ctx, req, ev, err)
}

// Read implements provider.Provider.
func (d *Direct) Read(ctx context.Context, req provider.Request) (provider.Snapshot, error) {
	known := req.Properties
	if known == nil {
		known = req.Previous
	}
	r, err := d.Client(req.Account, req.Region).Get(ctx, req.Type, req.PhysicalID, cloudcontrol.Coerce(req.Type, known))
	if err != nil {
		return provider.Snapshot{}, wrap(err)
	}
	return provider.Snapshot{PhysicalID: r.Identifier, Properties: r.Properties, Attributes: r.Attributes}, nil
}

func (d *Direct) progress(ctx context.Context, req provider.Request, ev sandbox.ProgressEvent, err error) (provider.Progress, error) {
	if err != nil {
		return provider.Progress{}, wrap(err)
	}
	switch ev.OperationStatus {
	case "SUCCESS":
		if ev.Operation == "DELETE" {
			return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
		}
		read := req
		read.PhysicalID = ev.Identifier
		snap, err := d.Read(ctx, read)
		if err != nil {
			var failure *provider.Error
			if errors.As(err, &failure) && ev.Operation == "CREATE" {
				failure.PhysicalID = ev.Identifier
			}
			return provider.Progress{}, fmt.Errorf("reading %s back: %w", req.LogicalID, err)
		}
		return provider.Progress{Done: true, PhysicalID: ev.Identifier, Attributes: snap.Attributes, Observed: snap.Properties}, nil
	case "FAILED", "CANCEL_COMPLETE":
		failure := &provider.Error{
			Kind: cloudcontrol.HandlerKind(ev.Operation, ev.ErrorCode), Code: ev.ErrorCode,
			Message: ev.StatusMessage, RequestID: ev.RequestToken,
		}
		if ev.Operation == "DELETE" && failure.Kind == provider.KindNotFound {
			return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
		}
		if ev.Operation == "CREATE" && failure.Kind != provider.KindAlreadyExists && failure.Kind != provider.KindConflict {
			failure.PhysicalID = ev.Identifier
		}
		return provider.Progress{}, provider.Refined(failure)
	}
	data, err := json.Marshal(handle{RequestToken: ev.RequestToken})
	if err != nil {
		return provider.Progress{}, fmt.Errorf("encoding the handle of %s: %w", req.LogicalID, err)
	}
	retry := time.Second
	if ev.RetryAfter > 0 {
		retry = max(time.Unix(0, int64(ev.RetryAfter*1e9)).Sub(d.Clock.Now()), 0)
	}
	return provider.Progress{
		PhysicalID: ev.Identifier,
		Handle:     &provider.Handle{Version: handleVersion, Provider: providerName, Data: data},
		RetryAfter: retry,
	}, nil
}

// wrap gives a refusal its kind. Anything else means that the sandbox did not answer, and may be repeated.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	var refusal *sandbox.Refusal
	if errors.As(err, &refusal) {
		return provider.Refined(&provider.Error{Kind: cloudcontrol.APIKind(refusal.Code), Code: refusal.Code, Message: refusal.Message, Err: err})
	}
	return &provider.Error{Kind: provider.KindUnavailable, Undecided: true, Err: err}
}
