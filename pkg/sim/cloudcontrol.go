package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"
	"github.com/aws/smithy-go"

	cc "github.com/slipway-cdk/slipway/pkg/provider/cloudcontrol"
)

// ccAPI is Cloud Control as one process reaches it. A client token finds its request again for 36 hours
// (https://docs.aws.amazon.com/cloudcontrolapi/latest/userguide/resource-operations.html).
type ccAPI struct {
	p *process
	c *cloud
}

var _ cc.API = ccAPI{}

// tokenLife is how long Cloud Control knows a client token.
const tokenLife = 36 * time.Hour

func exception(code, message string) error {
	return &smithy.GenericAPIError{Code: code, Message: message}
}

var ccAnswers = answers{
	broken:    exception("ServiceInternalErrorException", "the service did not answer"),
	throttled: exception("ThrottlingException", "Rate exceeded"),
}

// CreateResource implements cloudcontrol.API.
func (a ccAPI) CreateResource(_ context.Context, in *cloudcontrol.CreateResourceInput, _ ...func(*cloudcontrol.Options)) (out *cloudcontrol.CreateResourceOutput, err error) {
	ev, err := a.start("CREATE", *in.TypeName, "", *in.DesiredState, *in.ClientToken, func(r *request) error {
		props := map[string]any{}
		if err := json.Unmarshal([]byte(*in.DesiredState), &props); err != nil {
			return exception("InvalidRequestException", err.Error())
		}
		bad := isBad(props, *in.TypeName)
		if (bad || r.code != "") && hashed(a.c.w.seed, "remnant", r.token)%2 == 0 {
			if bad && r.code == "" {
				r.code, r.message = "GeneralServiceException", "the service does not want it"
			}
			return nil
		}
		t, ok := a.c.make(*in.TypeName, props, r.token)
		if !ok {
			r.code, r.message = "AlreadyExists", "the name is taken"
			return nil
		}
		r.id = t.id
		if bad && r.code == "" {
			r.code, r.message = "GeneralServiceException", "the service does not want it"
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudcontrol.CreateResourceOutput{ProgressEvent: ev}, nil
}

// UpdateResource implements cloudcontrol.API.
func (a ccAPI) UpdateResource(_ context.Context, in *cloudcontrol.UpdateResourceInput, _ ...func(*cloudcontrol.Options)) (*cloudcontrol.UpdateResourceOutput, error) {
	ev, err := a.start("UPDATE", *in.TypeName, *in.Identifier, *in.PatchDocument, *in.ClientToken, func(r *request) error {
		t := a.c.get(r.typ, r.id)
		if t == nil {
			return exception("ResourceNotFoundException", "there is no "+r.id)
		}
		if r.code != "" {
			return nil
		}
		props, err := patched(t.props, *in.PatchDocument)
		if err != nil {
			return exception("InvalidRequestException", err.Error())
		}
		if isBad(props, r.typ) {
			r.code, r.message = "GeneralServiceException", "the service does not want it"
			if hashed(a.c.w.seed, "half", r.token)%2 == 0 {
				return nil
			}
		}
		a.c.change(t, props)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudcontrol.UpdateResourceOutput{ProgressEvent: ev}, nil
}

// DeleteResource implements cloudcontrol.API.
func (a ccAPI) DeleteResource(_ context.Context, in *cloudcontrol.DeleteResourceInput, _ ...func(*cloudcontrol.Options)) (*cloudcontrol.DeleteResourceOutput, error) {
	ev, err := a.start("DELETE", *in.TypeName, *in.Identifier, "", *in.ClientToken, func(r *request) error {
		t := a.c.get(r.typ, r.id)
		switch {
		case t == nil:
			return exception("ResourceNotFoundException", "there is no "+r.id)
		case r.code != "":
		case a.c.inUse(t):
			r.code, r.message = "ResourceConflict", "something uses it"
		default:
			a.c.remove(t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudcontrol.DeleteResourceOutput{ProgressEvent: ev}, nil
}

// start makes a request, or finds the one that the token has made.
func (a ccAPI) start(operation, typ, id, body, token string, effect func(*request) error) (ev *types.ProgressEvent, err error) {
	method := "cloudcontrol." + operation[:1] + strings.ToLower(operation[1:]) + "Resource"
	ans := ccAnswers
	// A handler that fails is an answer of its own: the request exists.
	ans.refused = errHandler
	once := func(code string) error {
		now := a.c.w.s.time()
		known := a.c.tokens["cc "+token]
		if known != nil && now.Sub(known.at) < tokenLife {
			if known.operation != operation || known.typ != typ || known.body != body || operation != "CREATE" && known.id != id {
				return exception("ClientTokenConflictException", "the token was used for another request")
			}
			ev = a.c.event(known)
			return nil
		}
		for _, r := range a.c.requests {
			if operation != "CREATE" && r.typ == typ && r.id == id && r.ready.After(now) {
				return exception("ConcurrentOperationException", "another operation runs on "+id)
			}
		}
		r := &request{token: token, operation: operation, typ: typ, id: id, body: body, at: now, ready: now.Add(a.c.takes(token)), code: code}
		if code != "" {
			r.message = "the handler failed"
		}
		if err := effect(r); err != nil {
			return err
		}
		a.c.tokens["cc "+token] = r
		a.c.requests[requestToken(token)] = r
		ev = a.c.event(r)
		return nil
	}
	detail := typ + " " + id + " " + token[len("slipway-"):len("slipway-")+6] + token[min(len(token), len("slipway-")+48):]
	err = a.p.call(provides|writes, method, detail, ans, func() error { return once("") })
	if err == errHandler { //nolint:errorlint // it is the very value
		codes := []string{"InternalFailure", "ServiceInternalError", "Throttling", "GeneralServiceException", "NotStabilized"}
		err = once(codes[hashed(a.c.w.seed, "code", token)%uint64(len(codes))])
	}
	if err != nil {
		return nil, err
	}
	return ev, nil
}

// errHandler stands for a handler that fails.
var errHandler = fmt.Errorf("the handler of the resource fails")

func requestToken(token string) string { return "request-of-" + token }

// event is how a request stands now.
func (c *cloud) event(r *request) *types.ProgressEvent {
	ev := &types.ProgressEvent{
		Operation: types.Operation(r.operation), TypeName: aws.String(r.typ), RequestToken: aws.String(requestToken(r.token)),
		OperationStatus: types.OperationStatusInProgress, EventTime: aws.Time(r.at),
	}
	now := c.w.s.time()
	if r.id != "" && (r.operation != "CREATE" || !r.ready.After(now) || hashed(c.w.seed, "early", r.token)%2 == 0) {
		ev.Identifier = aws.String(r.id)
	}
	switch {
	case r.ready.After(now):
		ev.RetryAfter = aws.Time(now.Add(min(r.ready.Sub(now), 30*time.Second)))
	case r.code != "":
		ev.OperationStatus, ev.ErrorCode, ev.StatusMessage = types.OperationStatusFailed, types.HandlerErrorCode(r.code), aws.String(r.message)
	default:
		ev.OperationStatus = types.OperationStatusSuccess
	}
	return ev
}

// GetResource implements cloudcontrol.API.
func (a ccAPI) GetResource(_ context.Context, in *cloudcontrol.GetResourceInput, _ ...func(*cloudcontrol.Options)) (out *cloudcontrol.GetResourceOutput, err error) {
	err = a.p.call(provides, "cloudcontrol.GetResource", *in.TypeName+" "+*in.Identifier, ccAnswers, func() error {
		t := a.c.get(*in.TypeName, *in.Identifier)
		if t == nil || a.c.eventual && a.c.w.s.time().Sub(t.made) < 3*time.Second {
			return exception("ResourceNotFoundException", "there is no "+*in.Identifier)
		}
		out = &cloudcontrol.GetResourceOutput{TypeName: in.TypeName, ResourceDescription: &types.ResourceDescription{
			Identifier: in.Identifier, Properties: aws.String(encodeJSON(t.model())),
		}}
		return nil
	})
	return orZero(out, err)
}

// GetResourceRequestStatus implements cloudcontrol.API.
func (a ccAPI) GetResourceRequestStatus(_ context.Context, in *cloudcontrol.GetResourceRequestStatusInput, _ ...func(*cloudcontrol.Options)) (out *cloudcontrol.GetResourceRequestStatusOutput, err error) {
	err = a.p.call(provides, "cloudcontrol.GetResourceRequestStatus", *in.RequestToken, ccAnswers, func() error {
		r := a.c.requests[*in.RequestToken]
		if r == nil {
			return exception("RequestTokenNotFoundException", "there is no such request")
		}
		out = &cloudcontrol.GetResourceRequestStatusOutput{ProgressEvent: a.c.event(r)}
		return nil
	})
	return orZero(out, err)
}

// patched applies a JSON patch to top-level properties, which is all that the patches of the provider name.
func patched(props map[string]any, document string) (map[string]any, error) {
	var patch []cc.PatchOperation
	if err := json.Unmarshal([]byte(document), &patch); err != nil {
		return nil, err
	}
	out := maps.Clone(props)
	for _, op := range patch {
		name := strings.TrimPrefix(op.Path, "/")
		if strings.Contains(name, "/") {
			return nil, fmt.Errorf("the patch names %s", op.Path)
		}
		if op.Op == "remove" {
			delete(out, name)
		} else {
			out[name] = op.Value
		}
	}
	return out, nil
}
