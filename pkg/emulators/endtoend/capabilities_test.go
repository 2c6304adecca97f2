//go:build emulators

package endtoend

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/emulators"
)

// executing has moto execute state machines, which it does not without being told.
func executing(t *testing.T, cfg aws.Config) {
	t.Helper()
	if os.Getenv(emulatorVariable) != "moto" {
		return
	}
	status, body := send(t, http.MethodPost, aws.ToString(cfg.BaseEndpoint)+"/moto-api/config", []byte(`{"stepfunctions":{"execute_state_machine":true}}`))
	if status/100 != 2 {
		t.Fatalf("moto does not take the setting that has it execute state machines: %d %s", status, body)
	}
}

// TestWhatTheStepFunctionsOfTheEmulatorCannotDo only reports: what the suite does without is said where it does.
func TestWhatTheStepFunctionsOfTheEmulatorCannotDo(t *testing.T) {
	cfg := emulators.Config(t)
	executing(t, cfg)
	client := sfn.NewFromConfig(cfg)
	machine := func(ctx context.Context, definition string) (arn string, err error) {
		name := "probe-" + randomHex(4)
		out, err := client.CreateStateMachine(ctx, &sfn.CreateStateMachineInput{
			Name: &name, Definition: &definition, RoleArn: aws.String("arn:aws:iam::123456789012:role/" + name),
		})
		if err != nil {
			return "", err
		}
		return aws.ToString(out.StateMachineArn), nil
	}
	const waits = `{"StartAt":"Wait","States":{"Wait":{"Type":"Wait","Seconds":600,"End":true}}}`
	emulators.LeaveOut(t, []emulators.Capability{
		{
			Name: "Step Functions: a start that is repeated by name and input is the same start",
			Probe: func(ctx context.Context) (string, error) {
				arn, err := machine(ctx, waits)
				if err != nil {
					return "", err
				}
				in := &sfn.StartExecutionInput{StateMachineArn: &arn, Name: aws.String("one"), Input: aws.String("{}")}
				first, err := client.StartExecution(ctx, in)
				if err != nil {
					return "", err
				}
				defer func() {
					_, _ = client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: first.ExecutionArn})
				}()
				_, err = client.StartExecution(ctx, in)
				var there *types.ExecutionAlreadyExists
				return emulators.Unless(!errors.As(err, &there), "ExecutionAlreadyExists"), nil
			},
		},
		{
			Name: "Step Functions: the history tells of the states within a Map",
			Probe: func(ctx context.Context) (string, error) {
				arn, err := machine(ctx, `{"StartAt":"Each","States":{"Each":{"Type":"Map","ItemsPath":"$.items","End":true,
					"ItemProcessor":{"StartAt":"Inner","States":{"Inner":{"Type":"Pass","End":true}}}}}}`)
				if err != nil {
					return "", err
				}
				x, err := client.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &arn, Input: aws.String(`{"items":[1]}`)})
				if err != nil {
					return "", err
				}
				for {
					d, err := client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: x.ExecutionArn})
					if err != nil {
						return "", err
					}
					if d.Status != types.ExecutionStatusRunning {
						break
					}
					if err := (clock.Real{}).Sleep(ctx, 50*time.Millisecond); err != nil {
						return "", err
					}
				}
				told, err := client.GetExecutionHistory(ctx, &sfn.GetExecutionHistoryInput{ExecutionArn: x.ExecutionArn})
				if err != nil {
					return "", err
				}
				for _, e := range told.Events {
					if e.StateEnteredEventDetails != nil && aws.ToString(e.StateEnteredEventDetails.Name) == "Inner" {
						return "", nil
					}
				}
				return "they are left out", nil
			},
		},
		{
			Name: "Step Functions: an input of more than 256 KiB is refused",
			Probe: func(ctx context.Context) (string, error) {
				arn, err := machine(ctx, waits)
				if err != nil {
					return "", err
				}
				x, err := client.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &arn, Input: aws.String(`"` + strings.Repeat("x", 256<<10) + `"`)})
				if err != nil {
					return "", nil
				}
				_, _ = client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: x.ExecutionArn})
				return "it is taken", nil
			},
		},
		{
			Name: "Step Functions: a definition that is none is refused",
			Probe: func(ctx context.Context) (string, error) {
				_, err := machine(ctx, `{"StartAt":"Absent","States":{"Odd":{"Type":"Odd"}}}`)
				return emulators.Unless(err != nil, "it is taken"), nil
			},
		},
	})
}
