package sandbox

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
)

// cloudControlInput has the members of all of Cloud Control's requests
// (https://docs.aws.amazon.com/cloudcontrolapi/latest/APIReference/API_Operations.html).
type cloudControlInput struct {
	TypeName                    string
	TypeVersionID               string `json:"TypeVersionId"`
	RoleARN                     string `json:"RoleArn"`
	ClientToken                 string
	DesiredState                string
	Identifier                  string
	PatchDocument               string
	RequestToken                string
	NextToken                   string
	MaxResults                  *int
	ResourceModel               string
	ResourceRequestStatusFilter struct{ Operations, OperationStatuses []string }
}

func (s *Sandbox) cloudControl(ctx context.Context, caller Caller, operation string, body []byte) (any, error) {
	var in cloudControlInput
	if err := decodeBody(body, &in); err != nil {
		return nil, err
	}
	m := mutation{caller: caller, route: routeCloudControl, typeName: in.TypeName, identifier: in.Identifier, clientToken: in.ClientToken}
	switch operation {
	case "CreateResource":
		m.op = opCreate
		desired, err := parseModel("desired state", in.DesiredState)
		if err != nil {
			return nil, err
		}
		m.desired, m.identifier = desired, ""
		return s.progress(ctx, m)
	case "UpdateResource":
		m.op, m.patch = opUpdate, in.PatchDocument
		if in.PatchDocument == "" || len(in.PatchDocument) > maxModel {
			return nil, refuse(codeValidation, "a patch document of at most %d bytes is required", maxModel)
		}
		return s.progress(ctx, m)
	case "DeleteResource":
		m.op = opDelete
		return s.progress(ctx, m)
	case "GetResource":
		t, err := s.lookup(routeCloudControl, in.TypeName)
		if err != nil {
			return nil, err
		}
		r, model, err := s.read(ctx, routeCloudControl, caller, in.TypeName, in.Identifier, nil)
		if err != nil {
			return nil, err
		}
		return map[string]any{"TypeName": in.TypeName, "ResourceDescription": description(r.identifier, public(t, model))}, nil
	case "ListResources":
		return s.listResources(ctx, caller, in)
	case "GetResourceRequestStatus":
		e, err := s.status(caller, routeCloudControl, in.RequestToken)
		return map[string]any{"ProgressEvent": e}, err
	case "ListResourceRequests":
		return s.listRequests(caller, in)
	case "CancelResourceRequest":
		e, err := s.cancel(ctx, caller, in.RequestToken)
		return map[string]any{"ProgressEvent": e}, err
	}
	return nil, refuse(codeUnknownOperation, "Cloud Control has no operation %s", operation)
}

func (s *Sandbox) progress(ctx context.Context, m mutation) (any, error) {
	if m.op != opCreate && (m.identifier == "" || len(m.identifier) > 1024) {
		return nil, refuse(codeValidation, "an identifier of at most 1024 characters is required")
	}
	e, err := s.submit(ctx, m)
	return map[string]any{"ProgressEvent": e}, err
}

func parseModel(what, text string) (map[string]any, error) {
	if text == "" || len(text) > maxModel {
		return nil, refuse(codeValidation, "a %s of at most %d bytes is required", what, maxModel)
	}
	m, err := decodeObject(text)
	if err != nil {
		return nil, refuse(codeInvalidRequest, "the %s is not a JSON object", what)
	}
	return m, nil
}

func description(identifier string, properties map[string]any) map[string]any {
	return map[string]any{"Identifier": identifier, "Properties": encode(properties)}
}

// listResources pages through a type's resources. A resource model narrows the list to resources that have its
// values: list handlers of child types take the parent that way.
func (s *Sandbox) listResources(ctx context.Context, caller Caller, in cloudControlInput) (any, error) {
	t, err := s.lookup(routeCloudControl, in.TypeName)
	if err != nil {
		return nil, err
	}
	if !t.Listable {
		return nil, refuse(codeUnsupported, "Resource type %s does not support LIST action", in.TypeName)
	}
	var want map[string]any
	if in.ResourceModel != "" {
		if want, err = parseModel("resource model", in.ResourceModel); err != nil {
			return nil, err
		}
	}
	offset, limit, err := page(in)
	if err != nil {
		return nil, err
	}
	all, err := s.List(ctx, Filter{Account: caller.Account, Region: caller.scopeOf(in.TypeName), Type: in.TypeName})
	if err != nil {
		return nil, err
	}
	out := map[string]any{"TypeName": in.TypeName}
	descriptions := []any{}
	matched := 0
	for _, r := range all {
		if !has(r.model, want) {
			continue
		}
		matched++
		switch {
		case matched <= offset:
		case len(descriptions) < limit:
			descriptions = append(descriptions, description(r.primary, r.model))
		default:
			out["NextToken"] = pageToken(offset + limit)
		}
	}
	out["ResourceDescriptions"] = descriptions
	return out, nil
}

func has(model, want map[string]any) bool {
	for k, v := range want {
		if !equal(model[k], v) {
			return false
		}
	}
	return true
}

func (s *Sandbox) listRequests(caller Caller, in cloudControlInput) (any, error) {
	offset, limit, err := page(in)
	if err != nil {
		return nil, err
	}
	f := requestFilter{in.ResourceRequestStatusFilter.Operations, in.ResourceRequestStatusFilter.OperationStatuses}
	events, next, err := s.requests(caller, f, offset, limit)
	if err != nil {
		return nil, err
	}
	if events == nil {
		events = []ProgressEvent{}
	}
	out := map[string]any{"ResourceRequestStatusSummaries": events}
	if next > 0 {
		out["NextToken"] = pageToken(next)
	}
	return out, nil
}

// page reads the paging members. Tokens are opaque to clients.
func page(in cloudControlInput) (offset, limit int, err error) {
	limit = 20
	if in.MaxResults != nil {
		if limit = *in.MaxResults; limit < 1 || limit > 100 {
			return 0, 0, refuse(codeValidation, "MaxResults must be between 1 and 100")
		}
	}
	if in.NextToken == "" {
		return 0, limit, nil
	}
	raw, err := base64.StdEncoding.DecodeString(in.NextToken)
	if err == nil {
		offset, err = strconv.Atoi(string(raw))
	}
	if err != nil || offset < 0 {
		return 0, 0, refuse(codeInvalidRequest, "the NextToken is not one that this service gave")
	}
	return offset, limit, nil
}

func pageToken(offset int) string {
	return base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(offset)))
}
