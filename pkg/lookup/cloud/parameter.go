package cloud

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/slipway-cdk/slipway/pkg/lookup"
)

type parameterQuery struct {
	ParameterName string `json:"parameterName"`
}

// SecureStringError: the parameter is a secret.
type SecureStringError struct{ Name string }

// Error implements error.
func (e *SecureStringError) Error() string {
	return "SSM parameter " + e.Name + " is a SecureString, and a lookup's answer is written into cdk.context.json and the template"
}

// Next says what to do.
func (e *SecureStringError) Next() string {
	return "Use a dynamic reference, SecretValue.ssmSecure or {{resolve:ssm-secure:…}}: the deploy resolves it and writes it down nowhere."
}

// parameter answers ssm (StringParameter.valueFromLookup): the value as text, a StringList with its commas. Of a
// SecureString the CDK CLI writes the ciphertext, which is of no use to an app; it is refused.
func parameter(ctx context.Context, in *place, q lookup.Query) (any, error) {
	var ask parameterQuery
	if err := decode(q, &ask); err != nil {
		return nil, err
	}
	out, err := ssm.NewFromConfig(in.cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: &ask.ParameterName})
	var none *types.ParameterNotFound
	var version *types.ParameterVersionNotFound
	switch {
	case errors.As(err, &none), errors.As(err, &version):
		return nil, &NotFoundError{What: "SSM parameter " + ask.ParameterName}
	case err != nil:
		return nil, called("ssm:GetParameter", err)
	case out.Parameter == nil || out.Parameter.Value == nil:
		return nil, &NotFoundError{What: "value of SSM parameter " + ask.ParameterName}
	case out.Parameter.Type == types.ParameterTypeSecureString:
		return nil, &SecureStringError{Name: ask.ParameterName}
	}
	return *out.Parameter.Value, nil
}
