package sandbox

import (
	"context"
	"strings"
	"time"
)

// directInput has the members of all requests of the direct API. Properties are JSON values, not JSON text.
type directInput struct {
	Type         string         `json:"type,omitempty"`
	Identifier   string         `json:"identifier,omitempty"`
	Properties   map[string]any `json:"properties,omitempty"`
	ClientToken  string         `json:"clientToken,omitempty"`
	RequestToken string         `json:"requestToken,omitempty"`
	// Known are properties that the caller knows the resource by. Some services call resources of different owners the
	// same: a stage is known by its name and its API.
	Known map[string]any `json:"known,omitempty"`
	// Label is what the caller would call a new resource, for ids that are the caller's choice.
	Label string               `json:"label,omitempty"`
	Name  string               `json:"name,omitempty"` // of a snapshot
	Event *CustomResourceEvent `json:"event,omitempty"`
}

// DirectResource is a resource as its service's own API answers.
type DirectResource struct {
	Identifier string `json:"identifier"`
	// Properties are those that a template may set and that can be read; Attributes are what Fn::GetAtt may read.
	Properties map[string]any `json:"properties"`
	Attributes map[string]any `json:"attributes"`
}

// direct stands for the services' own APIs, and serves the handlers of custom resources. The semantics are Cloud
// Control's, except that an update brings all desired properties instead of a patch, and that resources are called what
// their services call them.
func (s *Sandbox) direct(ctx context.Context, caller Caller, operation string, body []byte) (any, error) {
	var in directInput
	if err := decodeBody(body, &in); err != nil {
		return nil, err
	}
	m := mutation{caller: caller, route: routeDirect, typeName: in.Type, identifier: in.Identifier, clientToken: in.ClientToken, desired: in.Properties,
		known: in.Known, label: in.Label}
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
		m.op, m.desired, m.label = opDelete, nil, ""
		return s.submit(ctx, m)
	case "Get":
		return s.get(ctx, caller, in)
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

// get reads a resource as its service's own API answers.
func (s *Sandbox) get(ctx context.Context, caller Caller, in directInput) (DirectResource, error) {
	t, err := s.lookup(routeDirect, in.Type)
	if err != nil {
		return DirectResource{}, err
	}
	r, model, err := s.read(ctx, routeDirect, caller, in.Type, in.Identifier, in.Known)
	if err != nil {
		return DirectResource{}, err
	}
	return DirectResource{Identifier: r.direct, Properties: settableOf(t, public(t, model)), Attributes: attributesOf(t, model, r.answers)}, nil
}

// handlerTime waits as long as a custom resource's handler takes: an invocation has no operation to ask about.
func (s *Sandbox) handlerTime(ctx context.Context, e CustomResourceEvent) error {
	if s.speed <= 0 {
		return nil
	}
	d := s.latencies.sample(e.ResourceType, strings.ToUpper(e.RequestType), routeCustom, s.seed, e.RequestID)
	return s.clock.Sleep(ctx, time.Duration(float64(d)/s.speed))
}
