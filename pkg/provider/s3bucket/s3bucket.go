// Package s3bucket provisions buckets and their policies through the API of Amazon S3.
package s3bucket

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

type call = direct.Call[*s3.Client]

// Service returns the types.
func Service() direct.Set {
	return direct.Service[*s3.Client]{
		Name: "s3",
		New: func(cfg aws.Config) *s3.Client {
			// Hosts named after buckets exist at AWS only.
			return s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = o.BaseEndpoint != nil || cfg.BaseEndpoint != nil })
		},
		Errors: errorKinds,
		Kinds:  []direct.Kind[*s3.Client]{bucket(), bucketPolicy()},
	}
}

// errorKinds are the service's own codes.
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
var errorKinds = direct.Errors{
	"NoSuchBucket":                               provider.KindNotFound,
	"BucketAlreadyExists":                        provider.KindAlreadyExists,
	"BucketAlreadyOwnedByYou":                    provider.KindAlreadyExists,
	"BucketNotEmpty":                             provider.KindDependencyViolation,
	"BucketHasAccessPointsAttached":              provider.KindDependencyViolation,
	"InvalidArgument":                            provider.KindInvalid,
	"InvalidBucketName":                          provider.KindInvalid,
	"InvalidBucketState":                         provider.KindInvalid,
	"InvalidBucketAclWithObjectOwnership":        provider.KindInvalid,
	"InvalidBucketAclWithBlockPublicAccessError": provider.KindInvalid,
	"AccessControlListNotSupported":              provider.KindInvalid,
	"MalformedXML":                               provider.KindInvalid,
	"MalformedPolicy":                            provider.KindInvalid,
	"InvalidTag":                                 provider.KindInvalid,
}

// code is the service's code of a failure, "" when it has none.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// absent is err unless it says that a bucket does not have what it was asked for.
func absent(err error, codes ...string) error {
	for _, c := range codes {
		if code(err) == c {
			return nil
		}
	}
	return err
}

// busy tells that another change of the bucket is under way. The service uses the code of a name that can't be taken yet.
func busy(put func(ctx context.Context, c *call) error) func(ctx context.Context, c *call) error {
	return func(ctx context.Context, c *call) error {
		err := put(ctx, c)
		if code(err) == "OperationAborted" {
			return &provider.Error{Kind: provider.KindConflict, Code: "OperationAborted", Message: "another change of the bucket is under way", Err: err}
		}
		return err
	}
}

func tag(k, v *string) types.Tag      { return types.Tag{Key: k, Value: v} }
func pair(t types.Tag) (k, v *string) { return t.Key, t.Value }
