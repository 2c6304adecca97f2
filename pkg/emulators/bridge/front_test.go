package bridge

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// front serves a trial's bridge, with its function, in front of an emulator that answers everything with its path.
func front(tr *trial) (address string, client *lambda.Client) {
	tr.Helper()
	emulator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"emulator": r.Method + " " + r.URL.RequestURI()})
	}))
	tr.Cleanup(emulator.Close)
	gateway, err := NewGateway(emulator.URL, true)
	if err != nil {
		tr.Fatal(err)
	}
	gateway.Record(tr.bridge)
	f := NewFront(tr.bridge, gateway, nil)
	f.Put(tr.function)
	server := httptest.NewServer(f)
	tr.Cleanup(func() { server.Close(); _ = gateway.Close() })
	tr.bridge.opts.Endpoint = gateway.Endpoint
	return server.URL, lambda.New(lambda.Options{
		Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("testing", "testing", ""),
		Retryer: aws.NopRetryer{},
	})
}

func TestInvokeAsTheSDKKnowsIt(t *testing.T) {
	tr := newTrial(t, Options{})
	_, client := front(tr)
	out, err := client.Invoke(t.Context(), &lambda.InvokeInput{
		FunctionName: aws.String(tr.function.ARN + ":$LATEST"), Payload: []byte(`{"do":"echo","word":"hello"}`), LogType: types.LogTypeTail,
	})
	if err != nil {
		t.Fatal(err)
	}
	log, err := base64.StdEncoding.DecodeString(aws.ToString(out.LogResult))
	if err != nil || out.FunctionError != nil || decoded(t, out.Payload)["word"] != "hello" || !strings.Contains(string(log), "echoes hello") {
		t.Errorf("%+v %s %s %v", out, out.Payload, log, err)
	}
	failed, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("planner"), Payload: []byte(`{"do":"fail"}`)})
	if err != nil || failed.StatusCode != 200 || aws.ToString(failed.FunctionError) != "Unhandled" || decoded(t, failed.Payload)["errorType"] != "Own.Kind" {
		t.Errorf("a function that fails: %+v, %v", failed, err)
	}
	dry, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("planner"), InvocationType: types.InvocationTypeDryRun})
	if err != nil || dry.StatusCode != 204 {
		t.Errorf("a dry run: %+v, %v", dry, err)
	}
	for name, in := range map[string]*lambda.InvokeInput{
		"ResourceNotFoundException":      {FunctionName: aws.String("absent")},
		"InvalidRequestContentException": {FunctionName: aws.String("planner"), Payload: []byte(`{`)},
		"RequestTooLargeException":       {FunctionName: aws.String("planner"), Payload: []byte(`"` + strings.Repeat("x", maxPayload) + `"`)},
	} {
		if _, err := client.Invoke(t.Context(), in); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(tr.bridge.Book().Invocations); n != 2 {
		t.Errorf("%d invocations are in the book", n)
	}
}

func TestAnEventIsTriedThreeTimes(t *testing.T) {
	tr := newTrial(t, Options{})
	_, client := front(tr)
	out, err := client.Invoke(t.Context(), &lambda.InvokeInput{
		FunctionName: aws.String("planner"), InvocationType: types.InvocationTypeEvent, Payload: []byte(`{"do":"fail"}`),
	})
	if err != nil || out.StatusCode != http.StatusAccepted {
		t.Fatalf("%+v, %v", out, err)
	}
	// The pauses pass as soon as somebody waits for them.
	for len(tr.bridge.Book().Invocations) < 3 {
		if tr.clock.Sleepers() > 0 {
			tr.clock.Advance(time.Second)
		}
	}
	ids := map[string]bool{}
	for _, i := range tr.bridge.Book().Invocations {
		ids[i.RequestID] = true
	}
	if len(ids) != 1 {
		t.Errorf("the attempts have %d request ids", len(ids))
	}
}

func TestWhoKeepsFunctionsItselfSendsTheDefinitionWithTheEvent(t *testing.T) {
	tr := newTrial(t, Options{})
	address, _ := front(tr)
	code := archive(t, map[string]string{"bootstrap": "#!/bin/sh\nexec \"$" + binaryVariable + "\"\n", "more": "x"})
	fn := tr.function
	fn.Name, fn.Code = "publisher", digestOf(code)
	order := Order{Function: fn, RequestID: "request-1", Payload: json.RawMessage(`{"do":"echo","word":"own"}`)}
	if status, _ := send(t, http.MethodPost, address+"/bridge/invoke", order); status != http.StatusPreconditionRequired {
		t.Fatalf("code that is not there: %d", status)
	}
	if status, body := send(t, http.MethodPut, address+"/bridge/code", code); status != 200 || decoded(t, body)["code"] != fn.Code {
		t.Fatalf("adding it: %d %s", status, body)
	}
	status, body := send(t, http.MethodPost, address+"/bridge/invoke", order)
	var out Outcome
	if err := json.Unmarshal(body, &out); err != nil || status != 200 || decoded(t, []byte(out.Payload))["word"] != "own" {
		t.Errorf("%d %s", status, body)
	}
}

func TestEverythingElseGoesToTheEmulator(t *testing.T) {
	tr := newTrial(t, Options{})
	address, _ := front(tr)
	for _, path := range []string{"/bucket//key?x=1", "/2015-03-31/functions/planner", "/"} {
		if _, body := send(t, http.MethodGet, address+path, nil); decoded(t, body)["emulator"] != "GET "+path {
			t.Errorf("%s: %s", path, body)
		}
	}
}

func TestTheBookKnowsWhoHasCalledWhat(t *testing.T) {
	tr := newTrial(t, Options{})
	front(tr)
	endpoint, err := tr.bridge.opts.Endpoint("janitor")
	if err != nil {
		t.Fatal(err)
	}
	cfg := aws.Config{
		Region: "eu-west-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("testing", "testing", ""),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	}
	objects := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	// The emulator's answers are none of these services': only the calls matter.
	_, _ = objects.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("state"), Key: aws.String("a/b"), Body: bytes.NewReader([]byte("x"))})
	_, _ = objects.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("state")})
	_, _ = dynamodb.NewFromConfig(cfg).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("log")})
	cfg.Credentials = credentials.NewStaticCredentialsProvider("111122223333", "bridge", "bridge")
	_, _ = dynamodb.NewFromConfig(cfg).GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("log"), Key: map[string]ddb.AttributeValue{"pk": &ddb.AttributeValueMemberS{Value: "run#1"}}})
	_, _ = dynamodb.NewFromConfig(cfg).DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("log")})
	var got []string
	book := tr.bridge.Book().Calls
	for _, c := range book {
		got = append(got, c.Function+" "+c.Service+" "+c.Operation+" "+c.Resource)
		if own := len(got) > 3; c.Assumed == own {
			t.Errorf("%s is under the credentials of a role: %t", c.Operation, c.Assumed)
		}
	}
	want := "janitor s3 PutObject state/a/b|janitor s3 ListObjectsV2 state|janitor dynamodb DescribeTable log|janitor dynamodb GetItem log|janitor dynamodb DeleteTable log"
	if strings.Join(got, "|") != want {
		t.Fatalf("the book says %v", got)
	}
	if needs := book[3].Needs; len(needs) != 1 || needs[0].Action != "dynamodb:GetItem" || needs[0].Resource != "arn:aws:dynamodb:eu-west-1:111122223333:table/log" {
		t.Errorf("reading an item needs %+v", needs)
	}
	if c := book[4]; c.Unread == "" || len(c.Needs) != 0 {
		t.Errorf("a call that nobody can tell the needs of: %+v", c)
	}
	tr.bridge.Forget()
	if len(tr.bridge.Book().Calls) != 0 {
		t.Error("it does not forget")
	}
}

func send(t *testing.T, method, address string, body any) (int, []byte) {
	t.Helper()
	b, ok := body.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	out, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, out
}
