package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

const (
	account  = "111111111111"
	region   = "eu-west-1"
	function = "arn:aws:lambda:eu-west-1:111111111111:function:handler"
	topic    = "arn:aws:sns:eu-west-1:111111111111:handlers"
)

// object is a JSON object.
type object = map[string]any

// handlers is everything behind the provider: one handler, reachable as a function and over a topic, and the bucket
// for its responses. A test says how the handler answers.
type handlers struct {
	clk *clock.Fake

	mu        sync.Mutex
	responses map[string][]byte
	events    []event
	busy      int   // looks at the function before it is ready
	refuses   error // of a call to the service
	due       time.Time
	then      func()

	// answer is what the function returns; respond puts the response of an event.
	answer func(h *handlers, e event) (payload string, functionError bool)
}

func newHandlers(answer func(h *handlers, e event) (string, bool)) *handlers {
	return &handlers{clk: clock.NewFake(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)), responses: map[string][]byte{}, answer: answer}
}

func (h *handlers) provider() *Provider {
	return &Provider{
		Functions: func(string, string) Functions { return h }, Topics: func(string, string) Topics { return h },
		Responses: h, Clock: h.clk,
	}
}

func (h *handlers) GetFunctionConfiguration(context.Context, *lambda.GetFunctionConfigurationInput, ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuses != nil {
		return nil, h.refuses
	}
	out := &lambda.GetFunctionConfigurationOutput{State: lambdatypes.StateActive, LastUpdateStatus: lambdatypes.LastUpdateStatusSuccessful}
	if h.busy > 0 {
		h.busy--
		out.LastUpdateStatus = lambdatypes.LastUpdateStatusInProgress
	}
	return out, nil
}

func (h *handlers) Invoke(_ context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	payload, failed := h.receive(in.Payload)
	out := &lambda.InvokeOutput{StatusCode: 200, Payload: []byte(payload)}
	if failed {
		out.FunctionError = aws.String("Unhandled")
	}
	if payload == lost {
		return nil, errors.New("connection reset by peer")
	}
	return out, nil
}

// lost is the payload of an invocation whose answer nobody gets.
const lost = "lost"

func (h *handlers) Publish(_ context.Context, in *sns.PublishInput, _ ...func(*sns.Options)) (*sns.PublishOutput, error) {
	h.receive([]byte(*in.Message))
	return &sns.PublishOutput{}, nil
}

func (h *handlers) receive(payload []byte) (string, bool) {
	var e event
	if err := json.Unmarshal(payload, &e); err != nil {
		panic(err)
	}
	h.mu.Lock()
	h.events = append(h.events, e)
	h.mu.Unlock()
	return h.answer(h, e)
}

func (h *handlers) URL(_ context.Context, key string) (string, error) {
	return "https://bucket/" + key, nil
}

func (h *handlers) Get(_ context.Context, key string) ([]byte, bool, error) {
	if h.then != nil && !h.clk.Now().Before(h.due) {
		h.then()
		h.then = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	body, there := h.responses[key]
	return body, there, nil
}

func (h *handlers) Delete(_ context.Context, key string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.responses, key)
	return nil
}

// respond puts what cfn-response would, changed by with.
func (h *handlers) respond(e event, with object) {
	r := object{
		"Status": "SUCCESS", "RequestId": e.RequestID, "StackId": e.StackID, "LogicalResourceId": e.LogicalResourceID,
		"PhysicalResourceId": "thing-1",
	}
	maps.Copy(r, with)
	body, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	h.putRaw(e, string(body))
}

func (h *handlers) putRaw(e event, body string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.responses[strings.TrimPrefix(e.ResponseURL, "https://bucket/")] = []byte(body)
}

func request(token string, props object) provider.Request {
	if props == nil {
		props = object{}
	}
	if _, ok := props["ServiceToken"]; !ok {
		props["ServiceToken"] = function
	}
	return provider.Request{
		Account: account, Region: region, Stack: "App", LogicalID: "Thing", Type: "Custom::Thing", Properties: props, Token: token, Attempt: 1,
	}
}

// settle makes a step and polls it to its end; each handle crosses a process.
func settle(t *testing.T, h *handlers, req provider.Request, do func(*Provider) func(context.Context, provider.Request) (provider.Progress, error)) (provider.Progress, error) {
	t.Helper()
	progress, err := do(h.provider())(t.Context(), req)
	for range 1000 {
		if err != nil || progress.Done {
			return progress, err
		}
		h.clk.Advance(progress.RetryAfter)
		stored, jsonErr := json.Marshal(progress.Handle)
		if jsonErr != nil {
			t.Fatal(jsonErr)
		}
		var handle provider.Handle
		if err := json.Unmarshal(stored, &handle); err != nil {
			t.Fatal(err)
		}
		progress, err = h.provider().Poll(t.Context(), req, handle)
	}
	t.Fatal("the step does not end")
	return progress, err
}

func create(p *Provider) func(context.Context, provider.Request) (provider.Progress, error) {
	return p.Create
}
func update(p *Provider) func(context.Context, provider.Request) (provider.Progress, error) {
	return p.Update
}
func remove(p *Provider) func(context.Context, provider.Request) (provider.Progress, error) {
	return p.Delete
}

// the handlers of the tests, by what they are.
var (
	inline = func(h *handlers, e event) (string, bool) {
		h.respond(e, object{"Data": object{"Arn": "arn:thing", "Size": 3}})
		return "null", false
	}
	returns = func(_ *handlers, e event) (string, bool) {
		return `{"PhysicalResourceId":"thing-1","Data":{"Arn":"arn:thing","Size":3}}`, false
	}
	states = func(_ *handlers, e event) (string, bool) {
		return `{"Status":"SUCCESS","PhysicalResourceId":"thing-1","Data":{"Arn":"arn:thing","Size":3}}`, false
	}
)

func TestEveryKindOfHandlerIsUnderstood(t *testing.T) {
	for _, c := range []struct {
		name   string
		token  string
		answer func(*handlers, event) (string, bool)
	}{
		{"a function that puts its response", function, inline},
		{"a function that returns it", function, returns},
		{"a function that returns it with a status", function, states},
		{"a function that puts it long after it has returned", function, func(h *handlers, e event) (string, bool) {
			h.later(20*time.Minute, func() { h.respond(e, object{"Data": object{"Arn": "arn:thing", "Size": 3}}) })
			return `{"executionArn":"arn:aws:states:eu-west-1:1:execution:waiter:x"}`, false
		}},
		{"a listener of a topic", topic, inline},
		{"a slow listener of a topic", topic, func(h *handlers, e event) (string, bool) {
			h.later(10*time.Minute, func() { h.respond(e, object{"Data": object{"Arn": "arn:thing", "Size": 3}}) })
			return "", false
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHandlers(c.answer)
			req := request("create", object{"ServiceToken": c.token})
			done, err := settle(t, h, req, create)
			if err != nil {
				t.Fatal(err)
			}
			if done.PhysicalID != "thing-1" || done.Attributes["Arn"] != "arn:thing" || fmt.Sprint(done.Attributes["Size"]) != "3" {
				t.Errorf("%+v", done)
			}
			if len(h.events) != 1 {
				t.Errorf("the handler got %d requests", len(h.events))
			}
		})
	}
}

// later runs f as soon as somebody looks for a response after d.
func (h *handlers) later(d time.Duration, f func()) { h.due, h.then = h.clk.Now().Add(d), f }

func TestWhatAHandlerIsSent(t *testing.T) {
	h := newHandlers(inline)
	req := request("update", object{
		"Flag": true, "Count": json.Number("3"), "Nested": object{"On": false, "List": []any{json.Number("1.50"), true, object{"N": json.Number("7")}}}, "Gone": nil,
	})
	req.PhysicalID, req.Previous = "thing-0", object{"ServiceToken": function, "Count": json.Number("2")}
	if _, err := settle(t, h, req, update); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(h.events[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"RequestType":"Update","RequestId":"` + RequestID("update") + `","ResponseURL":"https://bucket/custom-resource-responses/` + RequestID("update") + `.json",` +
		`"ServiceToken":"` + function + `","StackId":"` + stackID(req) + `","ResourceType":"Custom::Thing","LogicalResourceId":"Thing","PhysicalResourceId":"thing-0",` +
		`"ResourceProperties":{"Count":"3","Flag":"true","Nested":{"List":["1.50","true",{"N":"7"}],"On":"false"},"ServiceToken":"` + function + `"},` +
		`"OldResourceProperties":{"Count":"2","ServiceToken":"` + function + `"}}`
	if string(got) != want {
		t.Errorf("sent\n%s\nwant\n%s", got, want)
	}
}

func TestARepeatedStepIsOneRequest(t *testing.T) {
	h := newHandlers(inline)
	for range 3 {
		if done, err := settle(t, h, request("one", nil), create); err != nil || done.PhysicalID != "thing-1" {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	if len(h.events) != 1 {
		t.Errorf("the handler got %d requests", len(h.events))
	}
	if err := h.provider().Clean(t.Context(), request("one", nil)); err != nil || len(h.responses) != 0 {
		t.Errorf("%d responses are left, %v", len(h.responses), err)
	}
}

func TestAnInvocationWhoseAnswerIsLostIsTheSameRequestAgain(t *testing.T) {
	h := newHandlers(func(h *handlers, e event) (string, bool) {
		if len(h.events) > 1 {
			return inline(h, e)
		}
		return lost, false
	})
	_, err := h.provider().Create(t.Context(), request("one", nil))
	var perr *provider.Error
	if !errors.As(err, &perr) || !perr.Undecided || perr.RetryAfter < 10*time.Second {
		t.Fatalf("%v", err)
	}
	if done, err := settle(t, h, request("one", nil), create); err != nil || done.PhysicalID != "thing-1" {
		t.Fatalf("%+v, %v", done, err)
	}
	if len(h.events) != 2 || h.events[0].RequestID != h.events[1].RequestID {
		t.Errorf("the handler got %+v", h.events)
	}
}

func TestAFunctionThatIsBeingUpdatedIsWaitedFor(t *testing.T) {
	h := newHandlers(inline)
	h.busy = 5
	began := h.clk.Now()
	if _, err := settle(t, h, request("one", nil), create); err != nil || h.clk.Now().Sub(began) < 10*time.Second {
		t.Errorf("%v after %s", err, h.clk.Now().Sub(began))
	}
	h.busy = 1000
	if _, err := settle(t, h, request("two", nil), create); provider.KindOf(err) != provider.KindTimeout {
		t.Errorf("a function that never becomes ready: %v", err)
	}
}

func TestAHandlersFailureIsTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(*handlers, event) (string, bool)
		code   string
		says   string
		left   string
	}{
		{"FAILED", func(h *handlers, e event) (string, bool) {
			h.respond(e, object{"Status": "FAILED", "Reason": "no such zone", "PhysicalResourceId": "half"})
			return "null", false
		}, "HandlerFailed", "no such zone", "half"},
		{"FAILED, returned", func(*handlers, event) (string, bool) { return `{"Status":"FAILED","Reason":"no such zone"}`, false }, "HandlerFailed", "no such zone", ""},
		{"a crash", func(*handlers, event) (string, bool) { return `{"errorType":"KeyError","errorMessage":"'zone'"}`, true }, "HandlerCrashed", "KeyError", ""},
		{"a crash after the response", func(h *handlers, e event) (string, bool) {
			h.respond(e, object{"Status": "FAILED", "Reason": "no such zone"})
			return `{"errorType":"KeyError","errorMessage":"'zone'"}`, true
		}, "HandlerFailed", "no such zone", "thing-1"},
		{"silence", func(*handlers, event) (string, bool) { return "null", false }, "NoResponse", "1h0m0s", ""},
		{"another request's id", func(h *handlers, e event) (string, bool) {
			h.respond(e, object{"RequestId": "other"})
			return "null", false
		}, "InvalidResponse", "RequestId", ""},
		{"another stack's id", func(h *handlers, e event) (string, bool) {
			h.respond(e, object{"StackId": "other"})
			return "null", false
		}, "InvalidResponse", "StackId", ""},
		{"another resource's id", func(h *handlers, e event) (string, bool) {
			h.respond(e, object{"LogicalResourceId": "other"})
			return "null", false
		}, "InvalidResponse", "LogicalResourceId", ""},
		{"no physical id", func(h *handlers, e event) (string, bool) {
			h.respond(e, object{"PhysicalResourceId": ""})
			return "null", false
		}, "InvalidResponse", "PhysicalResourceId", ""},
		{"a long physical id", func(h *handlers, e event) (string, bool) {
			h.respond(e, object{"PhysicalResourceId": strings.Repeat("x", 1025)})
			return "null", false
		}, "InvalidResponse", "1024", ""},
		{"another status", func(h *handlers, e event) (string, bool) {
			h.respond(e, object{"Status": "DONE"})
			return "null", false
		}, "InvalidResponse", "Status", ""},
		{"no JSON", func(h *handlers, e event) (string, bool) {
			h.putRaw(e, "<html>secret</html>")
			return "null", false
		}, "InvalidResponse", "JSON", ""},
		{"a list for Data", func(h *handlers, e event) (string, bool) {
			h.respond(e, object{"Data": []any{"secret"}})
			return "null", false
		}, "InvalidResponse", "JSON", ""},
		{"too much", func(h *handlers, e event) (string, bool) {
			h.respond(e, object{"Data": object{"Text": strings.Repeat("x", 5000)}})
			return "null", false
		}, "InvalidResponse", "4096", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHandlers(c.answer)
			_, err := settle(t, h, request("one", nil), create)
			var perr *provider.Error
			if !errors.As(err, &perr) {
				t.Fatalf("%v", err)
			}
			if perr.Code != c.code || !strings.Contains(perr.Message, c.says) || perr.PhysicalID != c.left || provider.Retryable(err) || perr.Undecided {
				t.Errorf("%+v", perr)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("an unusable response is repeated: %v", err)
			}
		})
	}
}

func TestASlowFunctionIsLeftToItself(t *testing.T) {
	h := newHandlers(func(h *handlers, e event) (string, bool) {
		h.respond(e, object{"Data": object{"Arn": "arn:thing"}})
		return "null", false
	})
	slow := &slowFunctions{handlers: h}
	p := h.provider()
	p.Functions, p.Attend = func(string, string) Functions { return slow }, time.Millisecond
	progress, err := p.Create(t.Context(), request("one", nil))
	if err != nil || progress.Done || progress.Handle == nil {
		t.Fatalf("%+v, %v", progress, err)
	}
	slow.end()
	if done, err := p.Poll(t.Context(), request("one", nil), *progress.Handle); err != nil || !done.Done || done.PhysicalID != "thing-1" {
		t.Errorf("%+v, %v", done, err)
	}
}

// slowFunctions run on after the caller has gone, until end.
type slowFunctions struct {
	*handlers
	payload []byte
}

func (s *slowFunctions) Invoke(ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	s.payload = in.Payload
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *slowFunctions) end() { s.receive(s.payload) }

func TestServiceTimeoutBoundsTheWait(t *testing.T) {
	h := newHandlers(func(*handlers, event) (string, bool) { return "null", false })
	began := h.clk.Now()
	_, err := settle(t, h, request("one", object{"ServiceTimeout": "90"}), create)
	if took := h.clk.Now().Sub(began); provider.KindOf(err) != provider.KindTimeout || took < 90*time.Second || took > 2*time.Minute {
		t.Errorf("%v after %s", err, took)
	}
	for _, bad := range []any{"0", json.Number("3601"), "soon", json.Number("1.5")} {
		if _, err := settle(t, h, request("bad", object{"ServiceTimeout": bad}), create); provider.KindOf(err) != provider.KindInvalid {
			t.Errorf("ServiceTimeout %v: %v", bad, err)
		}
	}
}

func TestAHandlerMustBeOneOfTheRegion(t *testing.T) {
	h := newHandlers(inline)
	for _, token := range []any{
		"handler", "arn:aws:s3:::bucket", "arn:aws:lambda:us-east-1:111111111111:function:handler", json.Number("7"), object{"Ref": "X"},
	} {
		if _, err := settle(t, h, request("one", object{"ServiceToken": token}), create); provider.KindOf(err) != provider.KindInvalid {
			t.Errorf("ServiceToken %v: %v", token, err)
		}
	}
	if len(h.events) != 0 {
		t.Error("a handler was asked")
	}
}

func TestADeletionThatIsNotCarriedOutLeavesTheRecord(t *testing.T) {
	removal := func(props object) provider.Request {
		req := request("delete", nil)
		req.Properties, req.Previous, req.PhysicalID = nil, props, "thing-1"
		return req
	}
	known := object{"ServiceToken": function}
	h := newHandlers(inline)
	if done, err := settle(t, h, removal(known), remove); err != nil || done.Skipped != "" || done.PhysicalID != "thing-1" {
		t.Errorf("a handler that deletes: %+v, %v", done, err)
	}
	if e := h.events[0]; e.RequestType != "Delete" || e.PhysicalResourceID != "thing-1" || e.OldResourceProperties != nil {
		t.Errorf("%+v", e)
	}
	h = newHandlers(func(h *handlers, e event) (string, bool) {
		h.respond(e, object{"Status": "FAILED", "Reason": "not empty"})
		return "null", false
	})
	if done, err := settle(t, h, removal(known), remove); err != nil || !strings.Contains(done.Skipped, "not empty") {
		t.Errorf("a handler that refuses: %+v, %v", done, err)
	}
	if done, err := settle(t, h, removal(object{}), remove); err != nil || done.Skipped == "" {
		t.Errorf("no handler in the record: %+v, %v", done, err)
	}
	h = newHandlers(inline)
	h.refuses = &smithy.GenericAPIError{Code: "ResourceNotFoundException", Message: "Function not found"}
	if done, err := settle(t, h, removal(known), remove); err != nil || done.Skipped != "" || !done.Done {
		t.Errorf("a handler that is gone: %+v, %v", done, err)
	}
	h.refuses = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
	if done, err := settle(t, h, removal(known), remove); err != nil || done.Skipped == "" {
		t.Errorf("a handler that may not be asked: %+v, %v", done, err)
	}
	h.refuses = &smithy.GenericAPIError{Code: "TooManyRequestsException", Message: "slow down"}
	if _, err := settle(t, h, removal(known), remove); !provider.IsUndecided(err) {
		t.Errorf("a busy service: %v", err)
	}
}

func TestAnUpdateMayReplace(t *testing.T) {
	h := newHandlers(func(h *handlers, e event) (string, bool) {
		h.respond(e, object{"PhysicalResourceId": "thing-2", "NoEcho": true, "Data": object{"Password": "p"}})
		return "null", false
	})
	req := request("update", nil)
	req.PhysicalID, req.Previous = "thing-1", object{"ServiceToken": function}
	done, err := settle(t, h, req, update)
	if err != nil || done.PhysicalID != "thing-2" || !done.NoEcho {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestAHandleOfAnotherReleaseIsRefused(t *testing.T) {
	h := newHandlers(inline)
	for _, handle := range []provider.Handle{{}, {Version: 99, Provider: "custom", Data: json.RawMessage(`{}`)}, {Version: 1, Provider: "custom", Data: json.RawMessage(`[`)}} {
		if _, err := h.provider().Poll(t.Context(), request("one", nil), handle); err == nil || provider.Retryable(err) {
			t.Errorf("%+v: %v", handle, err)
		}
	}
}
