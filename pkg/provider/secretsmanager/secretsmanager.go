// Package secretsmanager provisions the resource types of AWS Secrets Manager through its own API. What a secret holds
// is sent and never read: no attribute, live property or error has it.
package secretsmanager

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*secretsmanager.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*secretsmanager.Client]{
		Name:   "secretsmanager",
		New:    func(cfg aws.Config) *secretsmanager.Client { return secretsmanager.NewFromConfig(cfg) },
		Errors: errorKinds,
		Kinds:  []direct.Kind[*secretsmanager.Client]{secret()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_CreateSecret.html#API_CreateSecret_Errors
var errorKinds = direct.Errors{
	"EncryptionFailure":                provider.KindPropagation, // the key can't be used, or not yet
	"DecryptionFailure":                provider.KindPropagation,
	"MalformedPolicyDocumentException": provider.KindInvalid,
	"PreconditionNotMetException":      provider.KindConflict,
}
