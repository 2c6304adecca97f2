package secret

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// SSMAPI is the part of the SSM client that is used.
type SSMAPI interface {
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// SecretsManagerAPI is the part of the Secrets Manager client that is used.
type SecretsManagerAPI interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

var (
	_ SSMAPI            = (*ssm.Client)(nil)
	_ SecretsManagerAPI = (*secretsmanager.Client)(nil)
)

// AWS reads from SSM and Secrets Manager. The clients carry the credentials of the stack's role for an account and
// region; they retry throttling themselves.
type AWS struct {
	SSM            func(ctx context.Context, in Where) (SSMAPI, error)
	SecretsManager func(ctx context.Context, in Where) (SecretsManagerAPI, error)
}

var _ Source = (*AWS)(nil)

// Parameter implements Source.
func (a *AWS) Parameter(ctx context.Context, in Where, name, version string) (Parameter, error) {
	client, err := a.SSM(ctx, in)
	if err != nil {
		return Parameter{}, fmt.Errorf("making the SSM client: %w", err)
	}
	if version != "" {
		name += ":" + version
	}
	out, err := client.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name), WithDecryption: aws.Bool(true)})
	if err != nil {
		return Parameter{}, classified(err)
	}
	if out.Parameter == nil || out.Parameter.Value == nil {
		return Parameter{}, ErrUnsuitable
	}
	// A type that is not known is taken for a secret's (reference §7.6).
	plain := out.Parameter.Type == ssmtypes.ParameterTypeString || out.Parameter.Type == ssmtypes.ParameterTypeStringList
	return Parameter{Value: *out.Parameter.Value, Secure: !plain}, nil
}

// SecretString implements Source.
func (a *AWS) SecretString(ctx context.Context, in Where, id, stage, version string) (string, error) {
	client, err := a.SecretsManager(ctx, in)
	if err != nil {
		return "", fmt.Errorf("making the Secrets Manager client: %w", err)
	}
	input := &secretsmanager.GetSecretValueInput{SecretId: aws.String(id)}
	if stage != "" {
		input.VersionStage = aws.String(stage)
	}
	if version != "" {
		input.VersionId = aws.String(version)
	}
	out, err := client.GetSecretValue(ctx, input)
	if err != nil {
		return "", classified(err)
	}
	if out.SecretString == nil {
		return "", fmt.Errorf("the secret holds bytes, not text: %w", ErrUnsuitable)
	}
	return *out.SecretString, nil
}

// classified gives a service's error its kind. The codes are those of
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html and
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html.
func classified(err error) error {
	var api interface{ ErrorCode() string }
	if !errors.As(err, &api) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	switch code := api.ErrorCode(); code {
	case "ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException":
		return fmt.Errorf("%w (%s)", ErrNotFound, code)
	case "AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "ExpiredTokenException", "InvalidKeyId", "DecryptionFailure":
		return fmt.Errorf("%w (%s)", ErrDenied, code)
	case "ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded", "InternalServerError", "InternalServiceError", "ServiceUnavailable":
		return fmt.Errorf("%w (%s)", ErrUnavailable, code)
	default:
		return fmt.Errorf("reading it failed (%s): %w", code, err)
	}
}
