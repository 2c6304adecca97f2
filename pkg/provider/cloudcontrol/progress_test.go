package cloudcontrol

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	api "github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

// scripted answers every mutation and status with event, and every read with model or its error.
type scripted struct {
	event   *types.ProgressEvent
	model   string
	readErr error
	calls   []string
	patch   string
	desired string
	token   string
}

func (s *scripted) CreateResource(_ context.Context, in *api.CreateResourceInput, _ ...func(*api.Options)) (*api.CreateResourceOutput, error) {
	s.calls, s.desired, s.token = append(s.calls, "create"), *in.DesiredState, *in.ClientToken
	return &api.CreateResourceOutput{ProgressEvent: s.event}, nil
}

func (s *scripted) UpdateResource(_ context.Context, in *api.UpdateResourceInput, _ ...func(*api.Options)) (*api.UpdateResourceOutput, error) {
	s.calls, s.patch, s.token = append(s.calls, "update "+*in.Identifier), *in.PatchDocument, *in.ClientToken
	return &api.UpdateResourceOutput{ProgressEvent: s.event}, nil
}

func (s *scripted) DeleteResource(_ context.Context, in *api.DeleteResourceInput, _ ...func(*api.Options)) (*api.DeleteResourceOutput, error) {
	s.calls, s.token = append(s.calls, "delete "+*in.Identifier), *in.ClientToken
	return &api.DeleteResourceOutput{ProgressEvent: s.event}, nil
}

func (s *scripted) GetResource(_ context.Context, in *api.GetResourceInput, _ ...func(*api.Options)) (*api.GetResourceOutput, error) {
	s.calls = append(s.calls, "get "+*in.Identifier)
	if s.readErr != nil {
		return nil, s.readErr
	}
	return &api.GetResourceOutput{ResourceDescription: &types.ResourceDescription{Identifier: in.Identifier, Properties: &s.model}}, nil
}

func (s *scripted) GetResourceRequestStatus(_ context.Context, in *api.GetResourceRequestStatusInput, _ ...func(*api.Options)) (*api.GetResourceRequestStatusOutput, error) {
	s.calls = append(s.calls, "status "+*in.RequestToken)
	return &api.GetResourceRequestStatusOutput{ProgressEvent: s.event}, nil
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func with(s *scripted) *Provider {
	return &Provider{Clock: clock.NewFake(now), Client: func(string, string) API { return s }}
}

func event(operation types.Operation, status types.OperationStatus, identifier string) *types.ProgressEvent {
	e := &types.ProgressEvent{Operation: operation, OperationStatus: status, RequestToken: ptr("request-1")}
	if identifier != "" {
		e.Identifier = &identifier
	}
	return e
}

func failedEvent(operation types.Operation, code types.HandlerErrorCode, identifier string) *types.ProgressEvent {
	e := event(operation, types.OperationStatusFailed, identifier)
	e.ErrorCode, e.StatusMessage = code, ptr("what the handler says")
	return e
}

var queue = provider.Request{
	Type: "AWS::SQS::Queue", LogicalID: "Queue", Token: "token-1", Properties: map[string]any{"QueueName": "q", "DelaySeconds": "5"},
}

func TestAStepStartsARequestUnderItsToken(t *testing.T) {
	s := &scripted{event: event(types.OperationCreate, types.OperationStatusInProgress, "")}
	s.event.RetryAfter = ptr(now.Add(4 * time.Second))
	p, err := with(s).Create(t.Context(), queue)
	if err != nil || p.Done || p.Handle == nil || p.RetryAfter != 4*time.Second || p.PhysicalID != "" {
		t.Fatalf("%+v, %v", p, err)
	}
	if s.token != "token-1" || s.desired != `{"DelaySeconds":5,"QueueName":"q"}` {
		t.Errorf("token %q, desired state %s", s.token, s.desired)
	}
	if text := string(p.Handle.Data); !strings.Contains(text, "request-1") || strings.Contains(text, `"q"`) || p.Handle.Version != 1 {
		t.Errorf("the handle is %s, version %d", text, p.Handle.Version)
	}
	// The hint lies in the past: poll at once.
	s.event.RetryAfter = ptr(now.Add(-time.Second))
	if p, err = with(s).Poll(t.Context(), queue, *p.Handle); err != nil || p.Done || p.RetryAfter != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	// No hint.
	s.event.RetryAfter = nil
	if p, err = with(s).Poll(t.Context(), queue, *p.Handle); err != nil || p.RetryAfter != time.Second {
		t.Errorf("%+v, %v", p, err)
	}
	s.event, s.model = event(types.OperationCreate, types.OperationStatusSuccess, "url"), `{"Arn":"a","DelaySeconds":5}`
	if p, err = with(s).Poll(t.Context(), queue, *p.Handle); err != nil || !p.Done || p.PhysicalID != "url" || p.Attributes["Arn"] != "a" || p.Attributes["DelaySeconds"] != json.Number("5") {
		t.Errorf("%+v, %v", p, err)
	}
	if got := strings.Join(s.calls, ", "); got != "create, status request-1, status request-1, status request-1, get url" {
		t.Errorf("the calls are %s", got)
	}
}

func TestAFailedStepNamesWhatItHasLeft(t *testing.T) {
	cases := []struct {
		name  string
		event *types.ProgressEvent
		kind  provider.Kind
		left  string
	}{
		{"a create that failed half way", failedEvent(types.OperationCreate, types.HandlerErrorCodeNotStabilized, "id"), provider.KindTimeout, "id"},
		{"a create that failed at once", failedEvent(types.OperationCreate, types.HandlerErrorCodeInvalidRequest, ""), provider.KindInvalid, ""},
		{"a create under a taken name", failedEvent(types.OperationCreate, types.HandlerErrorCodeAlreadyExists, "id"), provider.KindAlreadyExists, ""},
		{"a create while another operation runs", failedEvent(types.OperationCreate, types.HandlerErrorCodeResourceConflict, "id"), provider.KindConflict, ""},
		{"an update", failedEvent(types.OperationUpdate, types.HandlerErrorCodeNotStabilized, "id"), provider.KindTimeout, ""},
		{"a delete of what is in use", failedEvent(types.OperationDelete, types.HandlerErrorCodeResourceConflict, "id"), provider.KindDependencyViolation, ""},
		{"a create that was cancelled", event(types.OperationCreate, types.OperationStatusCancelComplete, "id"), provider.KindFailed, "id"},
		{"an update that was cancelled", event(types.OperationUpdate, types.OperationStatusCancelComplete, "id"), provider.KindFailed, ""},
		{"no event", nil, provider.KindUnavailable, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := &scripted{event: c.event}
			req := queue
			if c.event != nil && c.event.Operation != types.OperationCreate {
				req.PhysicalID = "id"
			}
			p, err := with(s).Poll(t.Context(), req, provider.Handle{Version: 1, Provider: "cloudcontrol", Data: json.RawMessage(`{"requestToken":"request-1"}`)})
			var e *provider.Error
			if !errors.As(err, &e) || e.Kind != c.kind || e.PhysicalID != c.left {
				t.Fatalf("%+v, %+v; want kind %s and %q left", p, e, c.kind, c.left)
			}
			if c.event != nil && e.RequestID != "request-1" {
				t.Errorf("the request is %q", e.RequestID)
			}
		})
	}
}

func TestADeletionOfWhatIsGoneIsDone(t *testing.T) {
	s := &scripted{event: failedEvent(types.OperationDelete, types.HandlerErrorCodeNotFound, "")}
	req := queue
	req.PhysicalID = "url"
	if p, err := with(s).Delete(t.Context(), req); err != nil || !p.Done || p.PhysicalID != "url" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestACancellationUnderWayIsPolled(t *testing.T) {
	s := &scripted{event: event(types.OperationCreate, types.OperationStatusCancelInProgress, "id")}
	if p, err := with(s).Create(t.Context(), queue); err != nil || p.Handle == nil || p.PhysicalID != "id" {
		t.Errorf("%+v, %v", p, err)
	}
}

// A request that has succeeded has had its effect, whether or not its resource can be read.
func TestAResourceThatCannotBeReadBack(t *testing.T) {
	code := func(c string) error { return &smithy.GenericAPIError{Code: c, Message: "m"} }
	t.Run("not yet", func(t *testing.T) {
		s := &scripted{event: event(types.OperationCreate, types.OperationStatusSuccess, "url"), readErr: code("ThrottlingException"), model: `{}`}
		p, err := with(s).Create(t.Context(), queue)
		delays := []time.Duration{}
		for i := 0; err == nil && !p.Done && i < 3; i++ {
			delays = append(delays, p.RetryAfter)
			p, err = with(s).Poll(t.Context(), queue, *p.Handle)
		}
		if err != nil || p.Done || p.PhysicalID != "url" || len(delays) != 3 || delays[0] != time.Second || delays[2] != 4*time.Second {
			t.Fatalf("%+v, %v, after %v", p, err, delays)
		}
		s.readErr = code("ResourceNotFoundException") // not consistent yet
		if p, err = with(s).Poll(t.Context(), queue, *p.Handle); err != nil || p.Done {
			t.Fatalf("%+v, %v", p, err)
		}
		s.readErr = nil
		if p, err = with(s).Poll(t.Context(), queue, *p.Handle); err != nil || !p.Done || p.PhysicalID != "url" {
			t.Errorf("%+v, %v", p, err)
		}
	})
	t.Run("never", func(t *testing.T) {
		s := &scripted{event: event(types.OperationCreate, types.OperationStatusSuccess, "url"), readErr: code("ThrottlingException")}
		p, err := with(s).Create(t.Context(), queue)
		polls := 0
		for err == nil && polls < 100 {
			polls++
			p, err = with(s).Poll(t.Context(), queue, *p.Handle)
		}
		var e *provider.Error
		if !errors.As(err, &e) || e.PhysicalID != "url" || e.Kind != provider.KindThrottled || polls != maxReads {
			t.Errorf("%+v after %d polls", e, polls)
		}
	})
	t.Run("without permission", func(t *testing.T) {
		s := &scripted{event: event(types.OperationCreate, types.OperationStatusSuccess, "url"), readErr: code("AccessDeniedException")}
		_, err := with(s).Create(t.Context(), queue)
		var e *provider.Error
		if !errors.As(err, &e) || e.PhysicalID != "url" || !provider.IsAccessDenied(err) {
			t.Errorf("%+v", e)
		}
	})
	t.Run("an update leaves nothing to name", func(t *testing.T) {
		s := &scripted{event: event(types.OperationUpdate, types.OperationStatusSuccess, "url"), readErr: code("AccessDeniedException")}
		req := queue
		req.PhysicalID, req.Previous = "url", map[string]any{"QueueName": "q"}
		_, err := with(s).Update(t.Context(), req)
		var e *provider.Error
		if !errors.As(err, &e) || e.PhysicalID != "" || !provider.IsAccessDenied(err) {
			t.Errorf("%+v", e)
		}
	})
	t.Run("a model that is no object", func(t *testing.T) {
		s := &scripted{event: event(types.OperationCreate, types.OperationStatusSuccess, "url"), model: `[]`}
		_, err := with(s).Create(t.Context(), queue)
		var e *provider.Error
		if !errors.As(err, &e) || e.PhysicalID != "url" || e.Kind != provider.KindFailed {
			t.Errorf("%+v", e)
		}
	})
}

func TestAnUpdateSendsAPatch(t *testing.T) {
	s := &scripted{event: event(types.OperationUpdate, types.OperationStatusSuccess, ""), model: `{"DelaySeconds":5}`}
	req := queue
	req.PhysicalID = "url"
	req.Previous = map[string]any{"QueueName": "q", "DelaySeconds": json.Number("4"), "VisibilityTimeout": "60"}
	p, err := with(s).Update(t.Context(), req)
	if err != nil || !p.Done || p.PhysicalID != "url" {
		t.Fatalf("%+v, %v", p, err)
	}
	if want := `[{"op":"add","path":"/DelaySeconds","value":5},{"op":"add","path":"/VisibilityTimeout","value":60},{"op":"remove","path":"/VisibilityTimeout"}]`; s.patch != want || s.token != "token-1" {
		t.Errorf("the patch is %s under %s", s.patch, s.token)
	}
	// "5" was recorded, 5 is desired: there is nothing to send.
	s.calls = nil
	req.Previous, req.Properties = req.Properties, map[string]any{"QueueName": "q", "DelaySeconds": json.Number("5")}
	if p, err = with(s).Update(t.Context(), req); err != nil || !p.Done || strings.Join(s.calls, ", ") != "get url" {
		t.Errorf("%+v, %v, %v", p, err, s.calls)
	}
}

func TestClientsAreMadeOnce(t *testing.T) {
	made := 0
	clients := Cached(func(account, region string) API { made++; return &scripted{model: account + region} })
	a, b, c := clients("1", "x"), clients("1", "x"), clients("1", "y")
	if a != b || a == c || clients("2", "x") == a || made != 3 {
		t.Errorf("%d clients were made", made)
	}
}

func TestADeletionWithAFinalSnapshotIsRefusedBeforeAnyCall(t *testing.T) {
	p := &Provider{Client: func(string, string) API { t.Fatal("Cloud Control was called"); return nil }}
	_, err := p.Delete(t.Context(), provider.Request{Type: "AWS::RDS::DBInstance", PhysicalID: "db", FinalSnapshot: "db-final"})
	if !provider.IsUnsupported(err) {
		t.Errorf("error %v", err)
	}
}

func TestADeletionThatProtectionForbidsSaysSo(t *testing.T) {
	for _, code := range []types.HandlerErrorCode{types.HandlerErrorCodeInvalidRequest, types.HandlerErrorCodeGeneralServiceException, types.HandlerErrorCodeResourceConflict} {
		s := &scripted{event: failedEvent(types.OperationDelete, code, "db")}
		s.event.StatusMessage = ptr("Cannot delete protected DB Instance, please disable deletion protection and try again. (Service: Rds, Status Code: 400, Request ID: x)")
		_, err := with(s).Delete(t.Context(), provider.Request{Type: "AWS::RDS::DBInstance", PhysicalID: "db"})
		if !provider.IsProtected(err) || provider.Retryable(err) || !strings.Contains(err.Error(), "turn the protection off in the template") {
			t.Errorf("%s: %v", code, err)
		}
	}
}
