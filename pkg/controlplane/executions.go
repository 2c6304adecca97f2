package controlplane

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/slipway-cdk/slipway/pkg/run"
)

// executions asks Step Functions.
type executions struct {
	client *sfn.Client
	env    Environment
}

var _ run.Executions = executions{}

// Running implements run.Executions.
func (e executions) Running(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	out, err := e.client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{
		ExecutionArn: aws.String(e.env.executionARN(name)), IncludedData: types.IncludedDataMetadataOnly,
	})
	var absent *types.ExecutionDoesNotExist
	switch {
	case errors.As(err, &absent):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("describing execution %s: %w", name, err)
	}
	return out.Status == types.ExecutionStatusRunning || out.Status == types.ExecutionStatusPendingRedrive, nil
}

// HolderAlive implements run.Executions: Lambda does not tell whether an execution environment still works,
// so the lease is waited for.
func (executions) HolderAlive(context.Context, string) bool { return true }
