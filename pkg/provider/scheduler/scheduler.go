// Package scheduler provisions the resource types of Amazon EventBridge Scheduler through its own API.
package scheduler

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*scheduler.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*scheduler.Client]{
		Name:   "scheduler",
		New:    func(cfg aws.Config) *scheduler.Client { return scheduler.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*scheduler.Client]{schedule()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/scheduler/latest/APIReference/API_UpdateSchedule.html#API_UpdateSchedule_Errors
var errorKinds = direct.Errors{
	"ConflictException": provider.KindConflict,
}
