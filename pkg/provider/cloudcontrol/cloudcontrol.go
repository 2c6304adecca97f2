// Package cloudcontrol provisions resources through the AWS Cloud Control API: one asynchronous protocol for
// every type that the CloudFormation registry has handlers for (reference §10.4).
//
// A step starts a request under the caller's client token, so that a repeated step finds the same request
// again for 36 hours, and answers with a handle; Poll reads the request's status and, at its end, the
// resource itself, whose model becomes the attributes. That model has what Fn::GetAtt reads (attributes_test.go counts the exceptions);
// what only derives from the identifier, package intrinsic derives.
//
// A request is never cancelled (CancelResourceRequest): a cancelled run follows what is in flight to its end, the
// settling of a dead one does too, and a request that is cut off leaves a resource of which nobody knows how far it has come. One that
// somebody else cancels has failed, and names what it has left.
package cloudcontrol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// API is the part of the Cloud Control client that is used.
type API interface {
	CreateResource(context.Context, *cloudcontrol.CreateResourceInput, ...func(*cloudcontrol.Options)) (*cloudcontrol.CreateResourceOutput, error)
	UpdateResource(context.Context, *cloudcontrol.UpdateResourceInput, ...func(*cloudcontrol.Options)) (*cloudcontrol.UpdateResourceOutput, error)
	DeleteResource(context.Context, *cloudcontrol.DeleteResourceInput, ...func(*cloudcontrol.Options)) (*cloudcontrol.DeleteResourceOutput, error)
	GetResource(context.Context, *cloudcontrol.GetResourceInput, ...func(*cloudcontrol.Options)) (*cloudcontrol.GetResourceOutput, error)
	GetResourceRequestStatus(context.Context, *cloudcontrol.GetResourceRequestStatusInput, ...func(*cloudcontrol.Options)) (*cloudcontrol.GetResourceRequestStatusOutput, error)
}

var _ API = (*cloudcontrol.Client)(nil)

// Provider implements provider.Provider over Cloud Control.
type Provider struct {
	// Client returns the client for one account and region.
	Client func(account, region string) API
	Clock  clock.Clock
}

var _ provider.Provider = (*Provider)(nil)

const (
	handleVersion = 1
	providerName  = "cloudcontrol"
)

// maxReads bounds how often a finished request's resource is read before it counts as unreadable: about two minutes
// at the growing distances of readDelay.
const maxReads = 10

// handle is what Poll needs: the request that runs.
type handle struct {
	RequestToken string `json:"requestToken"`
	Operation    string `json:"operation"`
	// Identifier is what Cloud Control has told of the resource so far.
	Identifier string `json:"identifier,omitempty"`
	// Reads counts the vain attempts to read the resource after the request succeeded.
	Reads int `json:"reads,omitempty"`
}

// Create implements provider.Provider.
func (p *Provider) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	desired, err := encode(Coerce(req.Type, req.Properties))
	if err != nil {
		return provider.Progress{}, invalid("the desired state of %s can't be written as JSON", req.LogicalID, err)
	}
	out, err := p.Client(req.Account, req.Region).CreateResource(ctx, &cloudcontrol.CreateResourceInput{
		TypeName:     aws.String(req.Type),
		DesiredState: aws.String(desired),
		ClientToken:  aws.String(req.Token),
	})
	if err != nil {
		return provider.Progress{}, wrap(err)
	}
	return p.progress(ctx, req, out.ProgressEvent, 0)
}

// Update implements provider.Provider. When nothing is left to send it is done without a call.
func (p *Provider) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	t, _ := schema.Lookup(req.Type)
	patch := Patch(t, Coerce(req.Type, req.Previous), Coerce(req.Type, req.Properties), req.Attributes)
	if len(patch) == 0 {
		return p.readBack(ctx, req, req.PhysicalID)
	}
	doc, err := encode(patch)
	if err != nil {
		return provider.Progress{}, invalid("the patch of %s can't be written as JSON", req.LogicalID, err)
	}
	out, err := p.Client(req.Account, req.Region).UpdateResource(ctx, &cloudcontrol.UpdateResourceInput{
		TypeName:      aws.String(req.Type),
		Identifier:    aws.String(req.PhysicalID),
		PatchDocument: aws.String(doc),
		ClientToken:   aws.String(req.Token),
	})
	if err != nil {
		return provider.Progress{}, wrap(err)
	}
	return p.progress(ctx, req, out.ProgressEvent, 0)
}

// Delete implements provider.Provider.
func (p *Provider) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	if req.FinalSnapshot != "" {
		// DeleteResource takes no parameters of the service.
		return provider.Progress{}, provider.NoFinalSnapshot(req, "Cloud Control")
	}
	out, err := p.Client(req.Account, req.Region).DeleteResource(ctx, &cloudcontrol.DeleteResourceInput{
		TypeName:    aws.String(req.Type),
		Identifier:  aws.String(req.PhysicalID),
		ClientToken: aws.String(req.Token),
	})
	if err != nil {
		if err = wrap(err); provider.IsNotFound(err) {
			return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
		}
		return provider.Progress{}, err
	}
	return p.progress(ctx, req, out.ProgressEvent, 0)
}

// Poll implements provider.Provider.
func (p *Provider) Poll(ctx context.Context, req provider.Request, h provider.Handle) (provider.Progress, error) {
	data, err := open(req, h)
	if err != nil {
		return provider.Progress{}, err
	}
	out, err := p.Client(req.Account, req.Region).GetResourceRequestStatus(ctx, &cloudcontrol.GetResourceRequestStatusInput{
		RequestToken: aws.String(data.RequestToken),
	})
	if err != nil {
		return provider.Progress{}, wrap(err)
	}
	return p.progress(ctx, req, out.ProgressEvent, data.Reads)
}

// open reads a handle that this provider, in this or another process, has made.
func open(req provider.Request, h provider.Handle) (handle, error) {
	var data handle
	if h.Provider != providerName || h.Version != handleVersion {
		return data, &provider.Error{
			Kind: provider.KindFailed, Code: "UnknownHandle",
			Message: fmt.Sprintf("the operation on %s was begun by %s, version %d; this is %s, version %d", req.LogicalID, h.Provider, h.Version, providerName, handleVersion),
		}
	}
	if err := json.Unmarshal(h.Data, &data); err != nil || data.RequestToken == "" {
		return data, &provider.Error{
			Kind: provider.KindFailed, Code: "UnknownHandle", Err: err,
			Message: fmt.Sprintf("the handle of the operation on %s can't be read", req.LogicalID),
		}
	}
	return data, nil
}

func invalid(format, logicalID string, err error) error {
	return &provider.Error{Kind: provider.KindInvalid, Code: "InvalidProperties", Message: fmt.Sprintf(format, logicalID), Err: err}
}

// Read implements provider.Provider.
func (p *Provider) Read(ctx context.Context, req provider.Request) (provider.Snapshot, error) {
	out, err := p.Client(req.Account, req.Region).GetResource(ctx, &cloudcontrol.GetResourceInput{
		TypeName:   aws.String(req.Type),
		Identifier: aws.String(req.PhysicalID),
	})
	if err != nil {
		return provider.Snapshot{}, wrap(err)
	}
	if out.ResourceDescription == nil {
		return provider.Snapshot{}, &provider.Error{Kind: provider.KindUnavailable, Message: "GetResource returned no resource description"}
	}
	model, err := decode(aws.ToString(out.ResourceDescription.Properties))
	if err != nil {
		return provider.Snapshot{}, &provider.Error{Kind: provider.KindFailed, Code: "UnreadableModel", Message: "GetResource returned no JSON object", Err: err}
	}
	return provider.Snapshot{
		PhysicalID: aws.ToString(out.ResourceDescription.Identifier),
		Properties: model,
		Attributes: model,
	}, nil
}

// progress translates a request's status. reads is how often the resource has been read in vain.
func (p *Provider) progress(ctx context.Context, req provider.Request, ev *types.ProgressEvent, reads int) (provider.Progress, error) {
	if ev == nil {
		return provider.Progress{}, &provider.Error{Kind: provider.KindUnavailable, Message: "Cloud Control returned no progress event"}
	}
	id := aws.ToString(ev.Identifier)
	if id == "" {
		id = req.PhysicalID
	}
	switch ev.OperationStatus {
	case types.OperationStatusSuccess:
		if ev.Operation == types.OperationDelete {
			return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
		}
		return p.finish(ctx, req, ev, id, reads)
	case types.OperationStatusFailed, types.OperationStatusCancelComplete:
		failure := &provider.Error{
			Kind:      HandlerKind(string(ev.Operation), string(ev.ErrorCode)),
			Code:      string(ev.ErrorCode),
			Message:   aws.ToString(ev.StatusMessage),
			RequestID: aws.ToString(ev.RequestToken),
		}
		if ev.OperationStatus == types.OperationStatusCancelComplete {
			failure.Kind, failure.Code, failure.Message = provider.KindFailed, "Cancelled", "the Cloud Control request was cancelled"
		}
		if ev.Operation == types.OperationDelete && failure.Kind == provider.KindNotFound {
			return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
		}
		// What a failed create has left must be removed, but a resource that was there before is not ours.
		if ev.Operation == types.OperationCreate && failure.Kind != provider.KindAlreadyExists && failure.Kind != provider.KindConflict {
			failure.PhysicalID = aws.ToString(ev.Identifier)
		}
		return provider.Progress{}, provider.Refined(failure)
	}
	retry := time.Second
	if ev.RetryAfter != nil {
		retry = max(ev.RetryAfter.Sub(p.Clock.Now()), 0)
	}
	return unfinished(req, ev, id, 0, retry)
}

// unfinished is the progress of a request that is to be polled again.
func unfinished(req provider.Request, ev *types.ProgressEvent, id string, reads int, retry time.Duration) (provider.Progress, error) {
	data, err := json.Marshal(handle{
		RequestToken: aws.ToString(ev.RequestToken),
		Operation:    string(ev.Operation),
		Identifier:   id,
		Reads:        reads,
	})
	if err != nil {
		return provider.Progress{}, fmt.Errorf("encoding the Cloud Control handle of %s: %w", req.LogicalID, err)
	}
	return provider.Progress{
		PhysicalID: id,
		Handle:     &provider.Handle{Version: handleVersion, Provider: providerName, Data: data},
		RetryAfter: retry,
	}, nil
}

// finish reads what a successful request has made. The request has had its effect: when the resource can't be read
// yet (throttling, a service that is not consistent at once) the request is not over, and when it can't be read
// at all the error names what exists.
func (p *Provider) finish(ctx context.Context, req provider.Request, ev *types.ProgressEvent, id string, reads int) (provider.Progress, error) {
	done, err := p.readBack(ctx, req, id)
	if err == nil || ctx.Err() != nil {
		return done, err
	}
	if reads < maxReads && (provider.Retryable(err) || provider.IsNotFound(err)) {
		return unfinished(req, ev, id, reads+1, readDelay(reads))
	}
	var failure *provider.Error
	if errors.As(err, &failure) && ev.Operation == types.OperationCreate {
		named := *failure
		named.PhysicalID, named.Err, named.Undecided = id, err, false
		return provider.Progress{}, &named
	}
	return provider.Progress{}, err
}

// readDelay grows from one second to sixteen.
func readDelay(reads int) time.Duration { return time.Second << min(reads, 4) }

// readBack reads the resource: a progress event's model often echoes the identifier only.
func (p *Provider) readBack(ctx context.Context, req provider.Request, id string) (provider.Progress, error) {
	read := req
	read.PhysicalID = id
	snap, err := p.Read(ctx, read)
	if err != nil {
		return provider.Progress{}, fmt.Errorf("reading %s back: %w", req.LogicalID, err)
	}
	return provider.Progress{
		Done:       true,
		PhysicalID: id,
		Attributes: snap.Attributes,
		Observed:   snap.Properties,
	}, nil
}
