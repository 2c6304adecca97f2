package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/slipway-cdk/slipway/pkg/run"
)

// invoke calls a function whose handler answers, fails or panics, and returns its log too.
func invoke(t *testing.T, payload string, handle Handler) (out []byte, log string, err error) {
	t.Helper()
	var b bytes.Buffer
	f := &Function{
		Handle: handle, Open: func(context.Context) (*Plane, error) { return nil, nil },
		Logger: slog.New(slog.NewJSONHandler(&b, nil)),
	}
	out, err = f.Invoke(t.Context(), []byte(payload))
	return out, b.String(), err
}

func failing(err error) Handler {
	return func(*Plane, context.Context, []byte) ([]byte, error) { return nil, err }
}

func TestAFailureReachesTheStateMachineByItsName(t *testing.T) {
	for _, c := range []struct {
		err  error
		name string
	}{
		{&run.HandlerError{Name: run.ErrorFenced, Err: errors.New("fenced")}, run.ErrorFenced},
		{fmt.Errorf("around: %w", &run.HandlerError{Name: run.ErrorLockLost, Err: errors.New("gone")}), run.ErrorLockLost},
		{errors.New("anything else"), run.ErrorUnavailable},
	} {
		_, _, err := invoke(t, `{}`, failing(c.err))
		failure, ok := err.(messages.InvokeResponse_Error) //nolint:errorlint // Lambda's own check
		if !ok || failure.Type != c.name || failure.Message != c.err.Error() {
			t.Errorf("%v became %#v", c.err, err)
		}
	}
	_, _, err := invoke(t, `{}`, failing(errors.New(strings.Repeat("é", 10_000))))
	if n := len(err.Error()); n > maxMessage+200 {
		t.Errorf("an error of %d bytes leaves the function", n)
	}
}

func TestAPanicDoesNotTellWhatItHeld(t *testing.T) {
	_, log, err := invoke(t, `{}`, func(*Plane, context.Context, []byte) ([]byte, error) { panic("hunter2") })
	failure, ok := err.(messages.InvokeResponse_Error) //nolint:errorlint // Lambda's own check
	if !ok || failure.Type != errorPanic || !failure.ShouldExit {
		t.Fatalf("error is %#v", err)
	}
	if strings.Contains(failure.Message+log, "hunter2") || !strings.Contains(log, "function_test.go") {
		t.Errorf("the log is %s", log)
	}
}

func TestTheLogNamesTheInvocationAndNothingElseOfThePayload(t *testing.T) {
	payload := `{"runId":"r1","action":"next","op":"Queue","wave":3,"logicalId":"L","secret":"hunter2"}`
	out, log, err := invoke(t, payload, func(_ *Plane, _ context.Context, p []byte) ([]byte, error) { return p, nil })
	if err != nil || string(out) != payload {
		t.Fatalf("Invoke = %s, %v", out, err)
	}
	line := map[string]any{}
	if err := json.Unmarshal([]byte(log), &line); err != nil {
		t.Fatalf("the log is not one line of JSON: %v\n%s", err, log)
	}
	if line["runId"] != "r1" || line["action"] != "next" || line["op"] != "Queue" || line["wave"] != 3.0 {
		t.Errorf("the line is %s", log)
	}
	if strings.Contains(log, "hunter2") {
		t.Errorf("the payload is in the log: %s", log)
	}
}

func TestAPlaneIsOpenedOnceAndAFailureIsNotKept(t *testing.T) {
	opened := 0
	f := &Function{
		Handle: func(*Plane, context.Context, []byte) ([]byte, error) { return []byte(`{}`), nil },
		Open: func(context.Context) (*Plane, error) {
			if opened++; opened == 1 {
				return nil, errors.New("not yet")
			}
			return &Plane{}, nil
		},
	}
	_, err := f.Invoke(t.Context(), []byte(`{}`))
	if failure, ok := err.(messages.InvokeResponse_Error); !ok || failure.Type != errorMisconfigured { //nolint:errorlint // Lambda's own check
		t.Fatalf("error is %#v", err)
	}
	for range 3 {
		if _, err := f.Invoke(t.Context(), []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if opened != 2 {
		t.Errorf("it was opened %d times", opened)
	}
}

func TestTheJournalExpiresOnlyAfterAnAnswerThatEndsTheRun(t *testing.T) {
	for _, c := range []struct {
		payload, answer string
		ended           string
	}{
		{`{"action":"open","runId":"r"}`, `{"kind":"NEXT"}`, ""},
		{`{"action":"open","runId":"r"}`, `{"kind":"REFUSED"}`, "r"},
		{`{"action":"next","runId":"r"}`, `{"kind":"DONE"}`, ""},
		{`{"action":"close","runId":"r"}`, `{"result":"FAILED"}`, "r"},
		{`{"action":"settle","runId":"r"}`, `{"settled":false,"seconds":5}`, ""},
		{`{"action":"settle","runId":"r"}`, `{"settled":true}`, "r"},
		{`{"action":"sweep"}`, `{}`, ""},
		{`{"action":"sweep"}`, `{"ended":["a","b"],"waiting":["c"]}`, "a b"},
		{`nonsense`, `{}`, ""},
	} {
		if ended := strings.Join(endedRuns([]byte(c.payload), []byte(c.answer)), " "); ended != c.ended {
			t.Errorf("%s → %s: %q", c.payload, c.answer, ended)
		}
	}
}

// serving makes the test binary a function instead.
const serving = "SLIPWAY_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serving) != "" {
		Serve((*Plane).Planner)
		return
	}
	os.Exit(m.Run())
}

// runtimeAPI is the part of Lambda that a function talks to
// (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html): one invocation, then silence.
type runtimeAPI struct {
	payload string
	asked   bool
	outcome chan outcome
}

type outcome struct{ path, errorType, body string }

func (r *runtimeAPI) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if strings.HasSuffix(q.URL.Path, "/invocation/next") {
		if r.asked {
			<-q.Context().Done()
			return
		}
		r.asked = true
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "request-1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
		_, _ = io.WriteString(w, r.payload)
		return
	}
	body, _ := io.ReadAll(q.Body)
	var failure struct {
		ErrorType string `json:"errorType"`
	}
	_ = json.Unmarshal(body, &failure) // an answer has none
	w.WriteHeader(http.StatusAccepted)
	r.outcome <- outcome{path: q.URL.Path, errorType: failure.ErrorType, body: string(body)}
}

func TestAServedFunctionReportsFailuresToLambdaByName(t *testing.T) {
	for _, c := range []struct {
		name, payload string
		env           []string
		errorType     string
	}{
		{"an unknown action", `{"action":"no"}`,
			[]string{StateBucketVariable + "=state", TableNameVariable + "=t", RunStateMachineVariable + "=" + machineARN}, run.ErrorBadRequest},
		{"a function that is not configured", `{"action":"open"}`, nil, errorMisconfigured},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := &runtimeAPI{payload: c.payload, outcome: make(chan outcome, 1)}
			server := httptest.NewServer(api)
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(c.env, serving+"=1", "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(server.URL, "http://"), "AWS_REGION=eu-west-1", "HOME="+t.TempDir())
			var log bytes.Buffer
			cmd.Stderr = &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var got outcome
			select {
			case got = <-api.outcome:
			case <-ctx.Done():
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if got.errorType != c.errorType || !strings.HasSuffix(got.path, "/invocation/request-1/error") {
				t.Fatalf("Lambda was told %+v; log:\n%s", got, log.String())
			}
			if !strings.Contains(log.String(), `"requestId":"request-1"`) {
				t.Errorf("the log does not name the request:\n%s", log.String())
			}
		})
	}
}
