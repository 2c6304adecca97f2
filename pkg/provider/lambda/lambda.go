// Package lambda provisions the resource types of AWS Lambda through its own API.
package lambda

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*client]

// client calls Lambda, and S3 for the archives that Lambda is given.
type client struct {
	*lambda.Client
	s3 *s3.Client
}

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*client]{
		Name: "lambda",
		New: func(cfg aws.Config) *client {
			return &client{Client: lambda.NewFromConfig(cfg), s3: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = cfg.BaseEndpoint != nil })}
		},
		Errors: errorKinds,
		Kinds:  []direct.Kind[*client]{function(), layerVersion(), permission(), version(), alias(), eventSourceMapping(), url()},
	}
}

// errorKinds are the service's own codes. A ResourceConflictException says that a name is taken as well as that
// another operation is under way: see taken.
// https://docs.aws.amazon.com/lambda/latest/api/API_CreateFunction.html#API_CreateFunction_Errors
var errorKinds = direct.Errors{
	"ResourceConflictException":                     provider.KindConflict,
	"ResourceInUseException":                        provider.KindConflict,
	"ResourceNotReadyException":                     provider.KindConflict,
	"PreconditionFailedException":                   provider.KindConflict,
	"CodeStorageExceededException":                  provider.KindFailed,
	"CodeVerificationFailedException":               provider.KindInvalid,
	"InvalidCodeSignatureException":                 provider.KindInvalid,
	"CodeSigningConfigNotFoundException":            provider.KindInvalid,
	"PolicyLengthExceededException":                 provider.KindInvalid,
	"RequestTooLargeException":                      provider.KindInvalid,
	"InvalidRequestContentException":                provider.KindInvalid,
	"InvalidRuntimeException":                       provider.KindInvalid,
	"UnsupportedMediaTypeException":                 provider.KindInvalid,
	"ProvisionedConcurrencyConfigNotFound":          provider.KindNotFound,
	"ProvisionedConcurrencyConfigNotFoundException": provider.KindNotFound,
	"EC2AccessDeniedException":                      provider.KindPropagation,
	"KMSAccessDeniedException":                      provider.KindPropagation,
}

// taken is the failure of a create. A conflict is one of names when there is such a resource.
func taken(ctx context.Context, c *call, err error, find func(context.Context, *call) (direct.Found, error)) error {
	if !errorKinds.IsKind(err, provider.KindConflict) {
		return err
	}
	if found, findErr := find(ctx, c); findErr != nil || found.ID == "" {
		return err
	}
	return &provider.Error{Kind: provider.KindAlreadyExists, Code: "ResourceConflictException", Message: "there is such a resource already", Err: err}
}

// functionOf splits what names a function, an ARN, a part of one or a name: the function's name, and the version or
// alias after it.
func functionOf(ref string) (name, qualifier string) {
	if _, rest, ok := strings.Cut(ref, ":function:"); ok {
		ref = rest
	} else if account, rest, ok := strings.Cut(ref, "function:"); ok && account == "" {
		ref = rest
	}
	name, qualifier, _ = strings.Cut(ref, ":")
	return name, qualifier
}

// functionName is the live function as the record writes it, when that means the same one, or else its name.
func functionName(c *call, property, arn string) string {
	name, qualifier := functionOf(arn)
	known := direct.Text(c.Known(property))
	if n, q := functionOf(known); n == name && (q == qualifier || q == "") {
		return known
	}
	if qualifier != "" {
		return name + ":" + qualifier
	}
	return name
}
