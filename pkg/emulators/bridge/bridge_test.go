package bridge

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

// trial is a bridge on a clock that stands still, and a function whose bootstrap is this binary.
type trial struct {
	*testing.T
	bridge   *Bridge
	clock    *clock.Fake
	function Function
	// arrived tells what a process waits for at the gate; it goes on when opened is closed.
	arrived chan string
	opened  chan struct{}
}

func newTrial(t *testing.T, opts Options, environment ...string) *trial {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{T: t, clock: clock.NewFake(time.Now()), arrived: make(chan string, 100), opened: make(chan struct{})}
	gate := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tr.arrived <- strings.TrimPrefix(r.URL.Path, "/")
		select {
		case <-tr.opened:
		case <-r.Context().Done():
		}
	}))
	opts.Dir, opts.Clock = t.TempDir(), tr.clock
	tr.bridge = New(opts)
	t.Cleanup(func() {
		if err := tr.bridge.Close(); err != nil {
			t.Error(err)
		}
		gate.Close()
	})
	code, err := tr.bridge.AddCode(archive(t, map[string]string{"bootstrap": "#!/bin/sh\nexec \"$" + binaryVariable + "\"\n"}))
	if err != nil {
		t.Fatal(err)
	}
	tr.function = Function{
		Name: "planner", ARN: "arn:aws:lambda:eu-west-1:111122223333:function:planner", Handler: "bootstrap", TimeoutSeconds: 30, Code: code,
		Environment: map[string]string{binaryVariable: self, gateVariable: gate.URL},
	}
	for i := 0; i < len(environment); i += 2 {
		tr.function.Environment[environment[i]] = environment[i+1]
	}
	return tr
}

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range files {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o755)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (tr *trial) invoke(payload string) Result {
	tr.Helper()
	r, err := tr.bridge.Invoke(context.Background(), tr.function, Event{Payload: []byte(payload)})
	if err != nil {
		tr.Fatal(err)
	}
	return r
}

// begin invokes and does not wait.
func (tr *trial) begin(payload string) <-chan Result {
	out := make(chan Result, 1)
	go func() {
		r, err := tr.bridge.Invoke(context.Background(), tr.function, Event{Payload: []byte(payload)})
		if err != nil {
			tr.Error(err)
		}
		out <- r
	}()
	return out
}

func TestAProcessIsUsedAgain(t *testing.T) {
	tr := newTrial(t, Options{})
	first := tr.invoke(`{"do":"echo","word":"a"}`)
	second := tr.invoke(`{"do":"echo","word":"b"}`)
	if first.FunctionError != "" || !first.Cold || second.Cold {
		t.Fatalf("%+v, %+v", first, second)
	}
	a, b := decoded(t, first.Payload), decoded(t, second.Payload)
	if a["word"] != "a" || b["word"] != "b" || a["pid"] != b["pid"] {
		t.Errorf("%v, %v", a, b)
	}
	if !strings.Contains(string(second.Log), "echoes b") || strings.Contains(string(second.Log), "echoes a") {
		t.Errorf("the log of the second is %q", second.Log)
	}
}

func TestInvocationsAtOnceHaveAProcessEach(t *testing.T) {
	tr := newTrial(t, Options{})
	var running []<-chan Result
	for range 5 {
		running = append(running, tr.begin(`{"do":"wait","word":"here"}`))
	}
	for range running {
		<-tr.arrived
	}
	close(tr.opened)
	pids := map[any]bool{}
	for _, c := range running {
		r := <-c
		pids[decoded(t, r.Payload)["pid"]] = true
	}
	if len(pids) != 5 {
		t.Errorf("five invocations had %d processes", len(pids))
	}
	if r := tr.invoke(`{"do":"echo"}`); r.Cold || !pids[decoded(t, r.Payload)["pid"]] {
		t.Errorf("none of them was used again: %+v", r)
	}
}

func TestAnInvocationIsKilledWhenItsTimeIsUp(t *testing.T) {
	tr := newTrial(t, Options{})
	before := decoded(t, tr.invoke(`{"do":"echo"}`).Payload)["pid"]
	running := tr.begin(`{"do":"wait","word":"here"}`)
	<-tr.arrived
	tr.clock.Advance(30 * time.Second)
	r := <-running
	said := decoded(t, r.Payload)
	if r.FunctionError != "Unhandled" || said["errorType"] != ErrorTimeout || !strings.HasSuffix(said["errorMessage"].(string), "Task timed out after 30.00 seconds") {
		t.Errorf("it said %+v %s", r, r.Payload)
	}
	after := tr.invoke(`{"do":"echo"}`)
	if !after.Cold || decoded(t, after.Payload)["pid"] == before {
		t.Errorf("the process was used again: %+v", after)
	}
}

func TestFailuresOfAFunction(t *testing.T) {
	for _, c := range []struct {
		do, kind string
		lives    bool
	}{
		{"fail", "Own.Kind", true},
		{"panic", "string", false}, // the runtime for Go reports a panic by its type and ends
		{"exit", ErrorExit, false},
		{"large", ErrorTooLarge, false}, // the runtime for Go ends when its answer is refused
	} {
		t.Run(c.do, func(t *testing.T) {
			tr := newTrial(t, Options{})
			before := decoded(t, tr.invoke(`{"do":"echo"}`).Payload)["pid"]
			r := tr.invoke(`{"do":"` + c.do + `"}`)
			if r.FunctionError != "Unhandled" || r.ErrorType != c.kind || decoded(t, r.Payload)["errorType"] != c.kind {
				t.Errorf("it said %+v %s", r, r.Payload)
			}
			next := tr.invoke(`{"do":"echo"}`)
			if next.FunctionError != "" || (decoded(t, next.Payload)["pid"] == before) != c.lives {
				t.Errorf("the next one said %+v %s", next, next.Payload)
			}
		})
	}
}

func TestAProcessThatDoesNotStart(t *testing.T) {
	t.Run("because it ends", func(t *testing.T) {
		tr := newTrial(t, Options{}, startVariable, "exit")
		if r := tr.invoke(`{}`); r.ErrorType != ErrorExit || !strings.Contains(string(r.Payload), "exit status 2") {
			t.Errorf("it said %s", r.Payload)
		}
	})
	t.Run("and says why", func(t *testing.T) {
		tr := newTrial(t, Options{}, startVariable, "error")
		if r := tr.invoke(`{}`); r.ErrorType != "Own.Init" || !strings.Contains(string(r.Payload), "no configuration") {
			t.Errorf("it said %s", r.Payload)
		}
	})
	t.Run("because there is no bootstrap", func(t *testing.T) {
		tr := newTrial(t, Options{})
		var err error
		if tr.function.Code, err = tr.bridge.AddCode(archive(t, map[string]string{"readme": ""})); err != nil {
			t.Fatal(err)
		}
		if r := tr.invoke(`{}`); r.ErrorType != ErrorEntrypoint {
			t.Errorf("it said %s", r.Payload)
		}
	})
	t.Run("in time, twice", func(t *testing.T) {
		tr := newTrial(t, Options{}, startVariable, "hang")
		running := tr.begin(`{}`)
		<-tr.arrived
		tr.clock.Advance(initLimit)
		<-tr.arrived // it was started again, and has the function's own timeout now
		tr.clock.Advance(30 * time.Second)
		if r := <-running; r.ErrorType != ErrorTimeout {
			t.Errorf("it said %s", r.Payload)
		}
	})
}

func TestTheRuntimeAPIRefusesWhatBreaksItsRules(t *testing.T) {
	tr := newTrial(t, Options{}, startVariable, "protocol")
	got := decoded(t, tr.invoke(`{}`).Payload)
	if got["second"] != 403.0 || got["wrong"] != 400.0 || got["late"] != 403.0 {
		t.Errorf("the answers were %v", got)
	}
	got = decoded(t, tr.invoke(`{}`).Payload)
	if got["right"] != 202.0 || got["again"] != 400.0 {
		t.Errorf("the answers were %v", got)
	}
}

func TestAProcessSeesItsFunctionAndNothingElse(t *testing.T) {
	t.Setenv("BRIDGE_TEST_SECRET", "hunter2")
	tr := newTrial(t, Options{Endpoint: func(name string) (string, error) { return "http://aws-of-" + name, nil }},
		"OWN", "1", "AWS_ACCESS_KEY_ID", "AKID", "AWS_ENDPOINT_URL", "http://elsewhere")
	var list []string
	if err := json.Unmarshal(tr.invoke(`{"do":"environment"}`).Payload, &list); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		got[name] = value
	}
	for name, want := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_LAMBDA_FUNCTION_NAME": "planner", "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST", "_HANDLER": "bootstrap",
		"OWN": "1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_ENDPOINT_URL": "http://aws-of-planner", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if got["BRIDGE_TEST_SECRET"] != "" {
		t.Error("it sees the environment of the bridge")
	}
	var deadline int64
	if err := json.Unmarshal(tr.invoke(`{"do":"deadline"}`).Payload, &deadline); err != nil {
		t.Fatal(err)
	}
	if want := tr.clock.Now().Add(30 * time.Second).UnixMilli(); deadline != want {
		t.Errorf("the deadline is %d, want %d", deadline, want)
	}
}

func TestAChangedFunctionHasNewProcesses(t *testing.T) {
	tr := newTrial(t, Options{})
	before := decoded(t, tr.invoke(`{"do":"echo"}`).Payload)["pid"]
	tr.function.Environment = map[string]string{
		binaryVariable: tr.function.Environment[binaryVariable], gateVariable: tr.function.Environment[gateVariable], "OWN": "2",
	}
	if after := tr.invoke(`{"do":"echo"}`); !after.Cold || decoded(t, after.Payload)["pid"] == before {
		t.Errorf("the old process was used: %+v", after)
	}
}

func TestWhatCannotBeInvoked(t *testing.T) {
	tr := newTrial(t, Options{Concurrency: 1})
	unknown := tr.function
	unknown.Code = "no such"
	if _, err := tr.bridge.Invoke(t.Context(), unknown, Event{}); !errors.Is(err, ErrNoCode) {
		t.Errorf("without code: %v", err)
	}
	running := tr.begin(`{"do":"wait","word":"here"}`)
	<-tr.arrived
	if _, err := tr.bridge.Invoke(t.Context(), tr.function, Event{Payload: []byte(`{}`)}); !errors.Is(err, ErrThrottled) {
		t.Errorf("one too many: %v", err)
	}
	close(tr.opened)
	<-running
	if _, err := tr.bridge.AddCode(archive(t, map[string]string{"../out": "x"})); err == nil || !strings.Contains(err.Error(), "leaves the archive") {
		t.Errorf("an archive that leaves its directory: %v", err)
	}
}

func TestACallerThatLeavesDoesNotStopTheFunction(t *testing.T) {
	tr := newTrial(t, Options{})
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := tr.bridge.Invoke(ctx, tr.function, Event{RequestID: "left", Payload: []byte(`{"do":"wait","word":"here"}`)})
		done <- err
	}()
	<-tr.arrived
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(tr.opened)
	// The only process is busy or has ended well: in neither case was it killed.
	r := tr.invoke(`{"do":"echo"}`)
	for len(tr.bridge.Book().Invocations) < 2 {
		r = tr.invoke(`{"do":"echo"}`)
	}
	if r.FunctionError != "" {
		t.Errorf("%+v", r)
	}
	for _, i := range tr.bridge.Book().Invocations {
		if i.ErrorType != "" {
			t.Errorf("%+v", i)
		}
	}
}

func TestClosingEndsWhatRuns(t *testing.T) {
	tr := newTrial(t, Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := tr.bridge.Invoke(context.Background(), tr.function, Event{Payload: []byte(`{"do":"wait","word":"here"}`)}); !errors.Is(err, ErrClosed) {
			t.Errorf("it ended with %v", err)
		}
	})
	<-tr.arrived
	if err := tr.bridge.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if _, err := tr.bridge.Invoke(t.Context(), tr.function, Event{}); !errors.Is(err, ErrClosed) {
		t.Errorf("after it: %v", err)
	}
}
