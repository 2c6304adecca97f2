package sandbox

import (
	"context"
	"strings"
	"time"
)

// directInput has the members of all requests of the direct API. Properties are JSON values, not JSON text.
type directInput struct {
	Type         string               `json:"type,omitempty"`
	Identifier   string               `json:"identifier,omitempty"`
	Properties   map[string]any       `json:"properties,omitempty"`
	ClientToken  string               `json:"clientToken,omitempty"`
	RequestToken string               `json:"requestToken,omitempty"`
	Name         string               `json:"name,omitempty"` // of a snapshot
	Event        *CustomResourceEvent `json:"event,omitempty"`
}

// direct serves the types that Cloud Control can't provision, and the handlers of custom resources. The semantics
// are Cloud Control's, except that an update brings all desired properties instead of a patch.
func (s *Sandbox) direct(ctx context.Context, caller Caller, operation string, body []byte) (any, error) {
	var in directInput
	if err := decodeBody(body, &in); err != nil {
		return nil, err
	}
	m := mutation{caller: caller, route: routeDirect, typeName: in.Type, identifier: in.Identifier, clientToken: in.ClientToken, desired: in.Properties}
	if m.desired == nil {
		m.desired = map[string]any{}
	}
	switch operation {
	case "Create":
		m.op, m.identifier = opCreate, ""
		return s.submit(ctx, m)
	case "Update":
		m.op = opUpdate
		return s.submit(ctx, m)
	case "Delete":
		m.op, m.desired = opDelete, nil
		return s.submit(ctx, m)
	case "Get":
		if _, err := s.lookup(routeDirect, in.Type); err != nil {
			return nil, err
		}
		return s.Show(ctx, caller, in.Type, in.Identifier)
	case "Snapshot":
		return struct{}{}, s.snapshot(ctx, caller, in)
	case "Status":
		return s.status(caller, routeDirect, in.RequestToken)
	case "InvokeCustomResource":
		if in.Event == nil {
			return nil, refuse(codeValidation, "an event is required")
		}
		if err := s.handlerTime(ctx, *in.Event); err != nil {
			return nil, err
		}
		return s.invokeCustom(ctx, caller, *in.Event)
	}
	return nil, refuse(codeUnknownOperation, "the direct API has no operation %s", operation)
}

// handlerTime waits as long as a custom resource's handler takes: an invocation has no operation to ask about.
func (s *Sandbox) handlerTime(ctx context.Context, e CustomResourceEvent) error {
	if s.speed <= 0 {
		return nil
	}
	d := s.latencies.sample(e.ResourceType, strings.ToUpper(e.RequestType), routeCustom, s.seed, e.RequestID)
	return s.clock.Sleep(ctx, time.Duration(float64(d)/s.speed))
}
