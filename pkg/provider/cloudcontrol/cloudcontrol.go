// Package cloudcontrol provisions resources through the AWS Cloud Control API: one asynchronous protocol for
// every type that the CloudFormation registry has handlers for (reference §10.4).
//
// A step starts a request under the caller's client token, so that a repeated step finds the same request
// again for 36 hours, and answers with a handle; Poll reads the request's status and, at its end, the
// resource itself, whose model becomes the attributes.
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

const handleVersion = 1

// handle is what Poll needs: the request that runs.
type handle struct {
	RequestToken string `json:"requestToken"`
	Operation    string `json:"operation"`
	// Identifier is what Cloud Control has told of the resource so far.
	Identifier string `json:"identifier,omitempty"`
}

// Create implements provider.Provider.
func (p *Provider) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	desired, err := encode(Coerce(req.Type, req.Properties))
	if err != nil {
		return provider.Progress{}, fmt.Errorf("encoding the desired state of %s: %w", req.LogicalID, err)
	}
	out, err := p.Client(req.Account, req.Region).CreateResource(ctx, &cloudcontrol.CreateResourceInput{
		TypeName:     aws.String(req.Type),
		DesiredState: aws.String(desired),
		ClientToken:  aws.String(req.Token),
	})
	if err != nil {
		return provider.Progress{}, wrap(err)
	}
	return p.progress(ctx, req, out.ProgressEvent)
}

// Update implements provider.Provider. When nothing is left to send it is done without a call.
func (p *Provider) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	t, _ := schema.Lookup(req.Type)
	patch := Patch(t, Coerce(req.Type, req.Previous), Coerce(req.Type, req.Properties))
	if len(patch) == 0 {
		return p.finish(ctx, req, req.PhysicalID)
	}
	doc, err := encode(patch)
	if err != nil {
		return provider.Progress{}, fmt.Errorf("encoding the patch of %s: %w", req.LogicalID, err)
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
	return p.progress(ctx, req, out.ProgressEvent)
}

// Delete implements provider.Provider.
func (p *Provider) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
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
	return p.progress(ctx, req, out.ProgressEvent)
}

// Poll implements provider.Provider.
func (p *Provider) Poll(ctx context.Context, req provider.Request, h provider.Handle) (provider.Progress, error) {
	var data handle
	if h.Version != handleVersion {
		return provider.Progress{}, fmt.Errorf("Cloud Control handle of %s has version %d, this release reads %d", req.LogicalID, h.Version, handleVersion)
	}
	if err := json.Unmarshal(h.Data, &data); err != nil {
		return provider.Progress{}, fmt.Errorf("reading the Cloud Control handle of %s: %w", req.LogicalID, err)
	}
	out, err := p.Client(req.Account, req.Region).GetResourceRequestStatus(ctx, &cloudcontrol.GetResourceRequestStatusInput{
		RequestToken: aws.String(data.RequestToken),
	})
	if err != nil {
		return provider.Progress{}, wrap(err)
	}
	return p.progress(ctx, req, out.ProgressEvent)
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
		return provider.Snapshot{}, fmt.Errorf("reading the model of %s: %w", req.LogicalID, err)
	}
	return provider.Snapshot{
		PhysicalID: aws.ToString(out.ResourceDescription.Identifier),
		Properties: model,
		Attributes: model,
	}, nil
}

// progress translates a request's status.
func (p *Provider) progress(ctx context.Context, req provider.Request, ev *types.ProgressEvent) (provider.Progress, error) {
	if ev == nil {
		return provider.Progress{}, &provider.Error{Kind: provider.KindUnavailable, Message: "Cloud Control returned no progress event"}
	}
	id := aws.ToString(ev.Identifier)
	switch ev.OperationStatus {
	case types.OperationStatusSuccess:
		if ev.Operation == types.OperationDelete {
			return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
		}
		return p.finish(ctx, req, id)
	case types.OperationStatusFailed:
		failure := &provider.Error{
			Kind:      HandlerKind(string(ev.ErrorCode)),
			Code:      string(ev.ErrorCode),
			Message:   aws.ToString(ev.StatusMessage),
			RequestID: aws.ToString(ev.RequestToken),
		}
		if ev.Operation == types.OperationDelete && failure.Kind == provider.KindNotFound {
			return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
		}
		// What a failed create has left must be removed, but a resource that was there before is not ours.
		if ev.Operation == types.OperationCreate && failure.Kind != provider.KindAlreadyExists && failure.Kind != provider.KindConflict {
			failure.PhysicalID = id
		}
		return provider.Progress{}, failure
	case types.OperationStatusCancelComplete, types.OperationStatusCancelInProgress:
		return provider.Progress{}, &provider.Error{
			Kind: provider.KindFailed, Code: "Cancelled", Message: "the Cloud Control request was cancelled",
			RequestID: aws.ToString(ev.RequestToken), PhysicalID: id,
		}
	}
	data, err := json.Marshal(handle{
		RequestToken: aws.ToString(ev.RequestToken),
		Operation:    string(ev.Operation),
		Identifier:   id,
	})
	if err != nil {
		return provider.Progress{}, fmt.Errorf("encoding the Cloud Control handle of %s: %w", req.LogicalID, err)
	}
	retry := time.Second
	if ev.RetryAfter != nil {
		retry = max(ev.RetryAfter.Sub(p.Clock.Now()), 0)
	}
	return provider.Progress{
		PhysicalID: id,
		Handle:     &provider.Handle{Version: handleVersion, Provider: "cloudcontrol", Data: data},
		RetryAfter: retry,
	}, nil
}

// finish reads the resource back: a progress event's model often echoes the identifier only.
func (p *Provider) finish(ctx context.Context, req provider.Request, id string) (provider.Progress, error) {
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

// HandlerKind is the kind of a handler error code.
func HandlerKind(code string) provider.Kind {
	if k, ok := handlerKinds[types.HandlerErrorCode(code)]; ok {
		return k
	}
	return provider.KindFailed
}

// APIKind is the kind of an exception of the API itself, KindFailed for one that is not known.
func APIKind(code string) provider.Kind {
	if k, ok := apiKinds[code]; ok {
		return k
	}
	return provider.KindFailed
}

// handlerKinds maps the handler error codes of a failed request.
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract-errors.html
var handlerKinds = map[types.HandlerErrorCode]provider.Kind{
	types.HandlerErrorCodeNotUpdatable:                 provider.KindImmutable,
	types.HandlerErrorCodeInvalidRequest:               provider.KindInvalid,
	types.HandlerErrorCodeAccessDenied:                 provider.KindAccessDenied,
	types.HandlerErrorCodeUnauthorizedTaggingOperation: provider.KindAccessDenied,
	types.HandlerErrorCodeInvalidCredentials:           provider.KindAccessDenied,
	types.HandlerErrorCodeAlreadyExists:                provider.KindAlreadyExists,
	types.HandlerErrorCodeNotFound:                     provider.KindNotFound,
	types.HandlerErrorCodeResourceConflict:             provider.KindDependencyViolation,
	types.HandlerErrorCodeThrottling:                   provider.KindThrottled,
	types.HandlerErrorCodeServiceLimitExceeded:         provider.KindFailed,
	types.HandlerErrorCodeNotStabilized:                provider.KindTimeout,
	types.HandlerErrorCodeGeneralServiceException:      provider.KindFailed,
	types.HandlerErrorCodeServiceInternalError:         provider.KindUnavailable,
	types.HandlerErrorCodeServiceTimeout:               provider.KindUnavailable,
	types.HandlerErrorCodeNetworkFailure:               provider.KindUnavailable,
	types.HandlerErrorCodeInternalFailure:              provider.KindUnavailable,
}

// wrap classifies an error of the API call itself.
func wrap(err error) error {
	e := &provider.Error{Kind: provider.KindFailed, Err: err}
	var api interface {
		ErrorCode() string
		ErrorMessage() string
	}
	if errors.As(err, &api) {
		e.Code, e.Message = api.ErrorCode(), api.ErrorMessage()
	}
	var rid interface{ ServiceRequestID() string }
	if errors.As(err, &rid) {
		e.RequestID = rid.ServiceRequestID()
	}
	if e.Code == "" {
		// No service answered: the connection failed, or the deadline ended the call. The token makes a
		// repeat safe.
		e.Kind = provider.KindUnavailable
	} else {
		e.Kind = APIKind(e.Code)
	}
	return e
}

// apiKinds maps the exceptions of the Cloud Control API.
// https://docs.aws.amazon.com/cloudcontrolapi/latest/APIReference/CommonErrors.html
var apiKinds = map[string]provider.Kind{
	"ResourceNotFoundException":       provider.KindNotFound,
	"RequestTokenNotFoundException":   provider.KindNotFound,
	"AlreadyExistsException":          provider.KindAlreadyExists,
	"ThrottlingException":             provider.KindThrottled,
	"Throttling":                      provider.KindThrottled,
	"TooManyRequestsException":        provider.KindThrottled,
	"RequestLimitExceeded":            provider.KindThrottled,
	"AccessDeniedException":           provider.KindAccessDenied,
	"InvalidCredentialsException":     provider.KindAccessDenied,
	"UnrecognizedClientException":     provider.KindAccessDenied,
	"ExpiredTokenException":           provider.KindAccessDenied,
	"InvalidClientTokenId":            provider.KindAccessDenied,
	"ClientTokenConflictException":    provider.KindTokenConflict,
	"ConcurrentOperationException":    provider.KindConflict,
	"ConcurrentModificationException": provider.KindConflict,
	"ResourceConflictException":       provider.KindDependencyViolation,
	"NotUpdatableException":           provider.KindImmutable,
	"InvalidRequestException":         provider.KindInvalid,
	"ValidationException":             provider.KindInvalid,
	"UnsupportedActionException":      provider.KindUnsupported,
	"TypeNotFoundException":           provider.KindUnsupported,
	"PrivateTypeException":            provider.KindUnsupported,
	"NotStabilizedException":          provider.KindTimeout,
	"ServiceInternalErrorException":   provider.KindUnavailable,
	"HandlerInternalFailureException": provider.KindUnavailable,
	"NetworkFailureException":         provider.KindUnavailable,
	"InternalFailure":                 provider.KindUnavailable,
	"ServiceUnavailable":              provider.KindUnavailable,
}
