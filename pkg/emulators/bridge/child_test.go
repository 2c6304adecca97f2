package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
)

// The variables of a function whose bootstrap is this test's own binary.
const (
	binaryVariable = "BRIDGE_TEST_BINARY"
	gateVariable   = "BRIDGE_TEST_GATE"
	startVariable  = "BRIDGE_TEST_START"
)

// TestMain lets the test's own binary be a bootstrap.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		child()
		return
	}
	os.Exit(m.Run())
}

func child() {
	switch os.Getenv(startVariable) {
	case "exit":
		os.Exit(2)
	case "error":
		status := post("init/error", `{"errorType":"Own.Init","errorMessage":"no configuration"}`)
		fmt.Println("init error:", status)
		os.Exit(1)
	case "hang":
		pass("starting")
		return
	case "protocol":
		protocol()
		return
	}
	lambda.Start(handler)
}

// pass waits until the test lets it go on.
func pass(what string) {
	response, err := http.Get(os.Getenv(gateVariable) + "/" + what)
	if err == nil {
		_ = response.Body.Close()
	}
}

func handler(ctx context.Context, in struct{ Do, Word string }) (any, error) {
	switch in.Do {
	case "echo":
		fmt.Println("echoes", in.Word)
		return map[string]any{"word": in.Word, "pid": os.Getpid()}, nil
	case "fail":
		return nil, messages.InvokeResponse_Error{Type: "Own.Kind", Message: "as asked"}
	case "panic":
		panic("as asked")
	case "exit":
		os.Exit(3)
	case "wait":
		pass(in.Word)
		return map[string]any{"pid": os.Getpid()}, nil
	case "large":
		return strings.Repeat("x", maxPayload), nil
	case "environment":
		return os.Environ(), nil
	case "deadline":
		deadline, _ := ctx.Deadline()
		return deadline.UnixMilli(), nil
	}
	return nil, fmt.Errorf("nobody knows how to %q", in.Do)
}

// protocol breaks the rules of the Runtime API and answers with what it was told.
func protocol() {
	_, id := get()
	second, _ := get()
	wrong := post("invocation/another/response", `{}`)
	late := post("init/error", `{}`)
	right := post("invocation/"+id+"/response", fmt.Sprintf(`{"second":%d,"wrong":%d,"late":%d}`, second, wrong, late))
	again := post("invocation/"+id+"/response", `{}`)
	_, id = get()
	post("invocation/"+id+"/response", fmt.Sprintf(`{"right":%d,"again":%d}`, right, again))
	get()
}

func api(path string) string {
	return "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/" + path
}

func get() (status int, id string) {
	response, err := http.Get(api("invocation/next"))
	if err != nil {
		os.Exit(9)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode, response.Header.Get("Lambda-Runtime-Aws-Request-Id")
}

func post(path, body string) int {
	response, err := http.Post(api(path), "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		os.Exit(9)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func decoded(t *testing.T, b []byte) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return out
}
