package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/slipway-cdk/slipway/pkg/run"
)

// Handler is what a function does with a payload.
type Handler func(p *Plane, ctx context.Context, payload []byte) ([]byte, error)

// The names of failures that are not the engine's. The state machines repeat neither.
const (
	errorMisconfigured = "Slipway.Misconfigured"
	errorPanic         = "Slipway.Panic"
)

// maxMessage is how much of an error's text leaves the function, in bytes. Step Functions keeps a cause of up
// to 32,768 characters in the execution's history.
const maxMessage = 4096

// Function serves the invocations of one Lambda function.
type Function struct {
	Handle Handler
	// Open builds the plane; it is called by the first invocation.
	Open   func(ctx context.Context) (*Plane, error)
	Logger *slog.Logger
	// metrics takes what is counted; nil for nobody.
	metrics *metrics

	mu    sync.Mutex
	plane *Plane
}

var _ lambda.Handler = (*Function)(nil)

// Serve is the main of a function: it serves invocations until Lambda ends the process.
func Serve(handle Handler) {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("function", lambdacontext.FunctionName)
	lambda.Start(&Function{
		Handle: handle, Logger: logger,
		metrics: &metrics{out: os.Stdout, plane: os.Getenv(PlaneNameVariable), now: time.Now},
		Open: func(ctx context.Context) (*Plane, error) {
			env, err := ReadEnvironment(os.Getenv)
			if err != nil {
				return nil, err
			}
			cfg, err := config.LoadDefaultConfig(ctx)
			if err != nil {
				return nil, fmt.Errorf("loading the AWS configuration: %w", err)
			}
			return New(cfg, env, logger), nil
		},
	})
}

// Invoke implements lambda.Handler: bytes in, bytes out. A failure reaches the state machine by its name. What
// is logged is ids, names and times, never the payload.
func (f *Function) Invoke(ctx context.Context, payload []byte) (out []byte, err error) {
	logger := f.logger(ctx, payload)
	began := time.Now()
	defer func() {
		failure := messages.InvokeResponse_Error{}
		if r := recover(); r != nil {
			// The value may hold anything, and the stack tells where it was.
			logger.Error("panic", "kind", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
			failure.Type, failure.Message, failure.ShouldExit = errorPanic, "the function panicked: its log says where", true
			out, err = nil, failure
		} else if err != nil {
			failure.Type, failure.Message = nameOf(err), clip(err.Error())
			out, err = nil, failure
		}
		took := slog.Int64("durationMs", time.Since(began).Milliseconds())
		if err != nil {
			logger.Error("invocation failed", "errorType", failure.Type, "error", failure.Message, took)
			return
		}
		logger.Info("invocation done", took)
		if f.metrics != nil {
			f.metrics.write(measured(payload, out, f.metrics.now()), aboutOf(payload).texts())
		}
	}()
	plane, err := f.open(ctx)
	if err != nil {
		return nil, &run.HandlerError{Name: errorMisconfigured, Err: err}
	}
	return f.Handle(plane, ctx, payload)
}

// open builds the plane once. A failure is not kept: the next invocation tries again.
func (f *Function) open(ctx context.Context) (*Plane, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plane == nil {
		plane, err := f.Open(ctx)
		if err != nil {
			return nil, err
		}
		f.plane = plane
	}
	return f.plane, nil
}

// logger adds to every line what the invocation is about, as far as the payload can be read.
func (f *Function) logger(ctx context.Context, payload []byte) *slog.Logger {
	asked := aboutOf(payload)
	var with []any
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		with = append(with, "requestId", lc.AwsRequestID)
	}
	for _, a := range []struct{ name, value string }{{"runId", asked.RunID}, {"action", asked.Action}, {"op", asked.Op}} {
		if a.value != "" {
			with = append(with, a.name, clip(a.value))
		}
	}
	if asked.Wave != 0 {
		with = append(with, "wave", asked.Wave)
	}
	logger := f.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return logger.With(with...)
}

// about is what an invocation is about.
type about struct {
	RunID  string `json:"runId"`
	Action string `json:"action"`
	Op     string `json:"op"`
	Wave   int    `json:"wave"`
}

// aboutOf reads it, as far as the payload can be read: the handler refuses what can't be.
func aboutOf(payload []byte) about {
	var a about
	_ = json.Unmarshal(payload, &a)
	return a
}

func (a about) texts() map[string]string {
	return map[string]string{"runId": clip(a.RunID), "op": clip(a.Op)}
}

// nameOf is the name under which the state machine sees a failure.
func nameOf(err error) string {
	var failed *run.HandlerError
	if errors.As(err, &failed) {
		return failed.Name
	}
	return run.ErrorUnavailable
}

func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "…"
}
