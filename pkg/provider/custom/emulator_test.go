//go:build emulators

package custom

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/provider"
)

// emulated is the provider over an emulator's S3, Lambda and SNS.
type emulated struct {
	cfg       aws.Config
	functions *lambda.Client
	topics    *sns.Client
	bucket    *Bucket
	clk       clock.Clock
}

func newEmulated(t *testing.T) *emulated {
	t.Helper()
	e := &emulated{cfg: emulators.Config(t), clk: &hasty{}}
	// A presigned URL is checked against its credentials, also by an emulator that takes any others.
	e.cfg.Credentials = credentials.NewStaticCredentialsProvider("test", "test", "")
	client := s3.NewFromConfig(e.cfg, func(o *s3.Options) { o.UsePathStyle = true })
	e.functions, e.topics = lambda.NewFromConfig(e.cfg), sns.NewFromConfig(e.cfg)
	e.bucket = &Bucket{Client: client, Name: fmt.Sprintf("responses-%d", time.Now().UnixNano())}
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &e.bucket.Name}); err != nil {
		t.Fatal(err)
	}
	return e
}

// hasty is real time, of which every wait of a step takes a tenth: what a handler really does still takes its time.
type hasty struct {
	mu   sync.Mutex
	skip time.Duration
}

func (h *hasty) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.skip)
}

func (h *hasty) Sleep(ctx context.Context, d time.Duration) error {
	h.mu.Lock()
	h.skip += d - d/10
	h.mu.Unlock()
	return clock.Real{}.Sleep(ctx, d/10)
}

func (e *emulated) provider() *Provider {
	return &Provider{
		Functions: func(string, string) Functions { return e.functions }, Topics: func(string, string) Topics { return e.topics },
		Responses: e.bucket, Clock: e.clk, Attend: 5 * time.Second,
	}
}

func (e *emulated) request(token string, props object) provider.Request {
	return provider.Request{
		Account: "000000000000", Region: e.cfg.Region, Stack: "App", LogicalID: "Thing", Type: "Custom::Thing", Properties: props, Token: token, Attempt: 1,
	}
}

func (e *emulated) settle(t *testing.T, req provider.Request, do func(*Provider) func(context.Context, provider.Request) (provider.Progress, error)) (provider.Progress, error) {
	t.Helper()
	progress, err := do(e.provider())(t.Context(), req)
	for err == nil && !progress.Done {
		if err := e.clk.Sleep(t.Context(), progress.RetryAfter); err != nil {
			t.Fatal(err)
		}
		progress, err = e.provider().Poll(t.Context(), req, *progress.Handle)
	}
	return progress, err
}

// putter answers requests as cfn-response does: it puts the response with an empty content type.
type putter struct {
	*handlers
	t *testing.T
}

func (p *putter) Invoke(ctx context.Context, in *lambda.InvokeInput, opts ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	out, err := p.handlers.Invoke(ctx, in, opts...)
	e := p.events[len(p.events)-1]
	body := fmt.Sprintf(`{"Status":"SUCCESS","RequestId":%q,"StackId":%q,"LogicalResourceId":%q,"PhysicalResourceId":"thing-1","Data":{"Arn":"arn:thing"}}`, e.RequestID, e.StackID, e.LogicalResourceID)
	req, reqErr := http.NewRequestWithContext(ctx, http.MethodPut, e.ResponseURL, strings.NewReader(body))
	if reqErr != nil {
		p.t.Fatal(reqErr)
	}
	req.Header["Content-Type"] = []string{""}
	response, putErr := http.DefaultClient.Do(req)
	if putErr != nil {
		p.t.Fatal(putErr)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		p.t.Errorf("putting the response answers %s", response.Status)
	}
	return out, err
}

func TestAResponseComesThroughItsURL(t *testing.T) {
	e := newEmulated(t)
	h := newHandlers(func(*handlers, event) (string, bool) { return "null", false })
	p := e.provider()
	p.Functions = func(string, string) Functions { return &putter{h, t} }
	req := e.request("one", object{"ServiceToken": "arn:aws:lambda:us-east-1:000000000000:function:f"})
	for range 2 {
		done, err := p.Create(t.Context(), req)
		if err != nil || !done.Done || done.PhysicalID != "thing-1" || done.Attributes["Arn"] != "arn:thing" {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	if len(h.events) != 1 || strings.Contains(strings.ToLower(h.events[0].ResponseURL), "checksum") {
		t.Errorf("%d requests, the response goes to a URL with a checksum: %v", len(h.events), strings.Contains(h.events[0].ResponseURL, "checksum"))
	}
	if err := p.Clean(t.Context(), req); err != nil {
		t.Error(err)
	}
	if _, there, err := e.bucket.Get(t.Context(), responseKey(req)); there || err != nil {
		t.Errorf("the response is still there: %v, %v", there, err)
	}
	if err := p.Clean(t.Context(), req); err != nil {
		t.Errorf("cleaning twice: %v", err)
	}
}

// handlerCode is a handler that does what its resource's property Do says.
const handlerCode = `
import json, time, urllib.request

def respond(event, **members):
    body = {"Status": "SUCCESS", "RequestId": event["RequestId"], "StackId": event["StackId"],
            "LogicalResourceId": event["LogicalResourceId"], "PhysicalResourceId": "thing-" + event["ResourceProperties"].get("Name", "1"),
            "Data": {"Name": event["ResourceProperties"].get("Name", "1"), "Request": event["RequestType"]}}
    body.update(members)
    data = json.dumps(body).encode()
    urllib.request.urlopen(urllib.request.Request(event["ResponseURL"], data=data, method="PUT", headers={"content-type": "", "content-length": str(len(data))}))

def handler(event, context):
    if "Records" in event:
        event = json.loads(event["Records"][0]["Sns"]["Message"])
    do = event["ResourceProperties"].get("Do", "respond")
    if do == "respond":
        respond(event)
    elif do == "slow":
        time.sleep(7)
        respond(event)
    elif do == "fail":
        respond(event, Status="FAILED", Reason="there is no such zone")
    elif do == "fail to delete":
        respond(event, Status="FAILED" if event["RequestType"] == "Delete" else "SUCCESS", Reason="it is not empty")
    elif do == "crash":
        raise KeyError("zone")
    elif do == "lie":
        respond(event, RequestId="another")
    elif do == "conceal":
        respond(event, NoEcho=True)
    elif do == "return":
        return {"PhysicalResourceId": "thing-1", "Data": {"Name": "1", "Request": event["RequestType"]}}
`

// handler makes the function, and a topic that it listens to.
func (e *emulated) handler(t *testing.T) (function, topic string) {
	t.Helper()
	var code bytes.Buffer
	z := zip.NewWriter(&code)
	w, err := z.Create("index.py")
	if err == nil {
		_, err = w.Write([]byte(handlerCode))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	role, err := iam.NewFromConfig(e.cfg).CreateRole(t.Context(), &iam.CreateRoleInput{
		RoleName:                 aws.String(e.bucket.Name),
		AssumeRolePolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	made, err := e.functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: aws.String(e.bucket.Name), Role: role.Role.Arn, Runtime: lambdatypes.RuntimePython312, Handler: aws.String("index.handler"),
		Timeout: aws.Int32(60), Code: &lambdatypes.FunctionCode{ZipFile: code.Bytes()},
	})
	if err != nil {
		t.Fatal(err)
	}
	listeners, err := e.topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String(e.bucket.Name)})
	if err == nil {
		_, err = e.topics.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: listeners.TopicArn, Protocol: aws.String("lambda"), Endpoint: made.FunctionArn})
	}
	if err != nil {
		t.Fatal(err)
	}
	return *made.FunctionArn, *listeners.TopicArn
}

func TestHandlersInLambda(t *testing.T) {
	leaveOut := emulators.LeaveOut(t, []emulators.Capability{{
		Name:  "Lambda: functions run",
		Cases: []string{"a function", "a topic", "a slow function", "a function that returns its response", "secret data", "a failure", "a crash", "a lie", "a deletion that fails", "a handler that is gone"},
		Probe: func(context.Context) (string, error) {
			return emulators.Unless(os.Getenv("SLIPWAY_TEST_EMULATOR") != "moto", "it runs them in Docker only"), nil
		},
	}})
	e := newEmulated(t)
	var function, topic string
	ensure := func(t *testing.T) {
		t.Helper()
		if leaveOut(t); function == "" {
			function, topic = e.handler(t)
		}
	}
	tokens := 0
	token := func() string { tokens++; return fmt.Sprint("token-", tokens) }

	// life takes a resource from its creation over a change and a replacement to its end.
	life := func(t *testing.T, serviceToken, do string) {
		t.Helper()
		props := func(name string) object { return object{"ServiceToken": serviceToken, "Do": do, "Name": name} }
		req := e.request(token(), props("1"))
		done, err := e.settle(t, req, create)
		if err != nil || done.PhysicalID != "thing-1" || done.Attributes["Request"] != "Create" {
			t.Fatalf("create: %+v, %v", done, err)
		}
		if done.NoEcho != (do == "conceal") {
			t.Errorf("NoEcho is %v", done.NoEcho)
		}
		for _, change := range []string{"1", "2"} {
			req = e.request(token(), props(change))
			req.PhysicalID, req.Previous = "thing-1", props("1")
			want := "thing-" + change
			if do == "return" {
				want = "thing-1"
			}
			if done, err = e.settle(t, req, update); err != nil || done.PhysicalID != want || done.Attributes["Request"] != "Update" {
				t.Fatalf("update to %s: %+v, %v", change, done, err)
			}
		}
		req = e.request(token(), nil)
		req.PhysicalID, req.Previous = "thing-1", props("1")
		if done, err = e.settle(t, req, remove); err != nil || !done.Done || done.Skipped != "" {
			t.Fatalf("delete: %+v, %v", done, err)
		}
	}
	t.Run("a function", func(t *testing.T) { ensure(t); life(t, function, "respond") })
	t.Run("a topic", func(t *testing.T) { ensure(t); life(t, topic, "respond") })
	t.Run("a function that returns its response", func(t *testing.T) { ensure(t); life(t, function, "return") })
	t.Run("secret data", func(t *testing.T) { ensure(t); life(t, function, "conceal") })
	t.Run("a slow function", func(t *testing.T) {
		ensure(t)
		done, err := e.settle(t, e.request(token(), object{"ServiceToken": function, "Do": "slow"}), create)
		if err != nil || done.PhysicalID != "thing-1" {
			t.Errorf("%+v, %v", done, err)
		}
	})
	fails := func(t *testing.T, do, code, says string) {
		t.Helper()
		_, err := e.settle(t, e.request(token(), object{"ServiceToken": function, "Do": do}), create)
		var perr *provider.Error
		if !errors.As(err, &perr) || perr.Code != code || !strings.Contains(perr.Message, says) {
			t.Errorf("%v, want %s with %q", err, code, says)
		}
	}
	t.Run("a failure", func(t *testing.T) { ensure(t); fails(t, "fail", "HandlerFailed", "there is no such zone") })
	t.Run("a crash", func(t *testing.T) { ensure(t); fails(t, "crash", "HandlerCrashed", "zone") })
	t.Run("a lie", func(t *testing.T) { ensure(t); fails(t, "lie", "InvalidResponse", "RequestId") })
	t.Run("a deletion that fails", func(t *testing.T) {
		ensure(t)
		req := e.request(token(), nil)
		req.PhysicalID, req.Previous = "thing-1", object{"ServiceToken": function, "Do": "fail to delete"}
		if done, err := e.settle(t, req, remove); err != nil || !strings.Contains(done.Skipped, "it is not empty") {
			t.Errorf("%+v, %v", done, err)
		}
	})
	t.Run("a handler that is gone", func(t *testing.T) {
		ensure(t)
		req := e.request(token(), nil)
		req.PhysicalID, req.Previous = "thing-1", object{"ServiceToken": function + "-gone"}
		if done, err := e.settle(t, req, remove); err != nil || !done.Done || done.Skipped != "" {
			t.Errorf("%+v, %v", done, err)
		}
	})
}
