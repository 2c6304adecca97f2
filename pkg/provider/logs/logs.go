// Package logs provisions the resource types of Amazon CloudWatch Logs through its own API.
package logs

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*cloudwatchlogs.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*cloudwatchlogs.Client]{
		Name:   "logs",
		New:    func(cfg aws.Config) *cloudwatchlogs.Client { return cloudwatchlogs.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*cloudwatchlogs.Client]{logGroup()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html#API_CreateLogGroup_Errors
var errorKinds = direct.Errors{
	"OperationAbortedException": provider.KindConflict,
	"InvalidOperationException": provider.KindInvalid,
}
