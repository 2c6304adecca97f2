// Package stepfunctions provisions the resource types of AWS Step Functions through its own API.
package stepfunctions

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// clients are the service's own and, for definitions that are assets, that of S3.
type clients struct {
	*sfn.Client
	objects *s3.Client
}

type call = direct.Call[clients]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[clients]{
		Name:   "states",
		New:    func(cfg aws.Config) clients { return clients{sfn.NewFromConfig(cfg), s3.NewFromConfig(cfg)} },
		Errors: errorKinds,
		Kinds:  []direct.Kind[clients]{stateMachine()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/step-functions/latest/apireference/API_CreateStateMachine.html#API_CreateStateMachine_Errors
var errorKinds = direct.Errors{
	"StateMachineDoesNotExist":       provider.KindNotFound,
	"StateMachineAlreadyExists":      provider.KindAlreadyExists,
	"StateMachineDeleting":           provider.KindRecentlyDeleted,
	"ConflictException":              provider.KindConflict,
	"InvalidArn":                     provider.KindInvalid,
	"InvalidDefinition":              provider.KindInvalid,
	"InvalidEncryptionConfiguration": provider.KindInvalid,
	"InvalidLoggingConfiguration":    provider.KindInvalid,
	"InvalidName":                    provider.KindInvalid,
	"InvalidTracingConfiguration":    provider.KindInvalid,
	"MissingRequiredParameter":       provider.KindInvalid,
	"StateMachineTypeNotSupported":   provider.KindInvalid,
	"TooManyTags":                    provider.KindInvalid,
	"KmsAccessDeniedException":       provider.KindAccessDenied,
	"KmsThrottlingException":         provider.KindThrottled,
}
