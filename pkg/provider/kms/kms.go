// Package kms provisions the resource types of AWS Key Management Service through its own API.
package kms

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*kms.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*kms.Client]{
		Name:   "kms",
		New:    func(cfg aws.Config) *kms.Client { return kms.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*kms.Client]{key(), alias()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html#API_CreateKey_Errors
var errorKinds = direct.Errors{
	"ConflictException":                provider.KindConflict,
	"DependencyTimeoutException":       provider.KindUnavailable,
	"KMSInternalException":             provider.KindUnavailable,
	"KeyUnavailableException":          provider.KindUnavailable,
	"InvalidAliasNameException":        provider.KindInvalid,
	"InvalidArnException":              provider.KindInvalid,
	"MalformedPolicyDocumentException": provider.KindInvalid,
	"TagException":                     provider.KindInvalid,
}

// code is the service's code of a failure, "" when it has none.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func tag(k, v *string) types.Tag      { return types.Tag{TagKey: k, TagValue: v} }
func pair(t types.Tag) (k, v *string) { return t.TagKey, t.TagValue }
