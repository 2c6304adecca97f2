package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

// The variables of the function's environment: those of the other functions that it needs.
const (
	UploadsBucketVariable   = "UPLOADS_BUCKET"
	RunStateMachineVariable = "RUN_STATE_MACHINE_ARN"
)

// Serve returns the handler of the function. get is os.Getenv. What it needs is made by the first invocation; a failure
// is not kept.
func Serve(logger *slog.Logger, get func(string) string) func(context.Context, json.RawMessage) (Started, error) {
	var mu sync.Mutex
	var t *Trigger
	return func(ctx context.Context, payload json.RawMessage) (Started, error) {
		mu.Lock()
		if t == nil {
			cfg, err := config.LoadDefaultConfig(ctx)
			if err == nil {
				t, err = New(cfg, get, logger)
			}
			if err != nil {
				mu.Unlock()
				return Started{}, fmt.Errorf("setting up the function: %w", err)
			}
		}
		ready := t
		mu.Unlock()
		started, err := ready.Handle(ctx, payload)
		if err != nil {
			logger.ErrorContext(ctx, "no deployment could be started", "error", err)
		}
		return started, err
	}
}

// New reads the environment of the function and connects it.
func New(cfg aws.Config, get func(string) string, logger *slog.Logger) (*Trigger, error) {
	machine, err := arn.Parse(get(RunStateMachineVariable))
	if err != nil || machine.Service != "states" || machine.AccountID == "" || !strings.HasPrefix(machine.Resource, "stateMachine:") {
		return nil, errors.New("the environment variable " + RunStateMachineVariable + " is not the ARN of a state machine")
	}
	bucket := get(UploadsBucketVariable)
	if bucket == "" {
		return nil, errors.New("the environment variable " + UploadsBucketVariable + " is not set")
	}
	return &Trigger{
		Objects: s3.NewFromConfig(cfg, func(o *s3.Options) {
			o.UsePathStyle = o.BaseEndpoint != nil || cfg.BaseEndpoint != nil // an emulator's host names no buckets
		}),
		Executions: sfn.NewFromConfig(cfg), Bucket: bucket, Account: machine.AccountID, Machine: machine.String(),
		Clock: clock.Real{}, Logger: logger,
	}, nil
}
