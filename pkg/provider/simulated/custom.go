package simulated

import (
	"context"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// Custom sends the requests of custom resources to the sandbox's simulated handler (reference §8.9). The
// client token is the request id, so a repeated step is one request to the handler.
type Custom struct{ Client Client }

var _ provider.Provider = (*Custom)(nil)

// Create implements provider.Provider.
func (c *Custom) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return c.invoke(ctx, req, "Create")
}

// Update implements provider.Provider.
func (c *Custom) Update(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return c.invoke(ctx, req, "Update")
}

// Delete implements provider.Provider.
func (c *Custom) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	return c.invoke(ctx, req, "Delete")
}

// Poll implements provider.Provider. The simulated handler answers at once, so there is nothing to poll.
func (c *Custom) Poll(context.Context, provider.Request, provider.Handle) (provider.Progress, error) {
	return provider.Progress{}, &provider.Error{Kind: provider.KindUnsupported, Message: "a simulated custom resource has no operation in flight"}
}

// Read implements provider.Provider. A custom resource can't be read: its handler alone knows it.
func (c *Custom) Read(context.Context, provider.Request) (provider.Snapshot, error) {
	return provider.Snapshot{}, &provider.Error{Kind: provider.KindUnsupported, Message: "a custom resource can't be read"}
}

func (c *Custom) invoke(ctx context.Context, req provider.Request, requestType string) (provider.Progress, error) {
	if !provider.IsCustom(req.Type) {
		return provider.Progress{}, &provider.Error{Kind: provider.KindUnsupported, Code: "NotCustom", Message: req.Type + " is no custom resource"}
	}
	props := req.Properties
	if requestType == "Delete" {
		props = req.Previous
	}
	serviceToken, ok := props["ServiceToken"].(string)
	if !ok {
		return provider.Progress{}, &provider.Error{
			Kind: provider.KindInvalid, Code: "ValidationError", Message: "ServiceToken is not a string",
		}
	}
	event := sandbox.CustomResourceEvent{
		RequestType: requestType, RequestID: req.Token, ServiceToken: serviceToken,
		StackID:           intrinsic.PseudoFor(req.Account, req.Region, req.Stack).StackID,
		LogicalResourceID: req.LogicalID, PhysicalResourceID: req.PhysicalID, ResourceType: req.Type,
		ResourceProperties: props, WantAttributes: req.WantAttributes,
	}
	if requestType == "Update" {
		event.OldResourceProperties = req.Previous
	}
	answer, err := c.Client(req.Account, req.Region).InvokeCustomResource(ctx, event)
	if err != nil {
		if err = wrap(err); requestType == "Delete" && provider.IsNotFound(err) {
			return provider.Progress{Done: true, PhysicalID: req.PhysicalID}, nil
		}
		return provider.Progress{}, err
	}
	if answer.Status != "SUCCESS" {
		return provider.Progress{}, &provider.Error{Kind: provider.KindFailed, Code: "HandlerFailed", Message: answer.Reason}
	}
	data := answer.Data
	if data == nil {
		data = map[string]any{}
	}
	return provider.Progress{Done: true, PhysicalID: answer.PhysicalResourceID, Attributes: data}, nil
}
