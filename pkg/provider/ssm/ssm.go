// Package ssm provisions the resource types of AWS Systems Manager through its own API.
package ssm

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*ssm.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*ssm.Client]{
		Name:   "ssm",
		New:    func(cfg aws.Config) *ssm.Client { return ssm.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*ssm.Client]{parameter()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_PutParameter.html#API_PutParameter_Errors
var errorKinds = direct.Errors{
	"ParameterNotFound":                 provider.KindNotFound,
	"InvalidResourceId":                 provider.KindNotFound, // of the calls on tags
	"ParameterAlreadyExists":            provider.KindAlreadyExists,
	"TooManyUpdates":                    provider.KindConflict,
	"HierarchyLevelLimitExceeded":       provider.KindInvalid,
	"HierarchyTypeMismatch":             provider.KindInvalid,
	"IncompatiblePolicyException":       provider.KindInvalid,
	"InvalidAllowedPatternException":    provider.KindInvalid,
	"InvalidPolicyAttributeException":   provider.KindInvalid,
	"InvalidPolicyTypeException":        provider.KindInvalid,
	"ParameterPatternMismatchException": provider.KindInvalid,
	"UnsupportedParameterType":          provider.KindInvalid,
}
