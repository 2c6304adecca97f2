package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// NewClient returns a client for buckets in region; "" is the configuration's own.
//
// Checksums stay at the SDK's default, which sends a CRC and checks the one that comes back. A configuration
// with an endpoint of its own (an emulator) gets path-style addresses: its host names no buckets.
func NewClient(cfg aws.Config, region string) *sdk.Client {
	return sdk.NewFromConfig(cfg, func(o *sdk.Options) {
		if region != "" {
			o.Region = region
		}
		o.UsePathStyle = o.BaseEndpoint != nil || cfg.BaseEndpoint != nil
		// Objects that other tools wrote may have no checksum; that is no news.
		o.DisableLogOutputChecksumValidationSkipped = true
	})
}

// BucketRegion returns the region of a bucket, whichever region client works in: S3 names it even in a
// refusal (https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html). owner may be empty.
func BucketRegion(ctx context.Context, client API, bucket, owner string) (string, error) {
	in := &sdk.HeadBucketInput{Bucket: &bucket}
	if owner != "" {
		in.ExpectedBucketOwner = &owner
	}
	out, err := client.HeadBucket(ctx, in)
	if err == nil {
		if region := aws.ToString(out.BucketRegion); region != "" {
			return region, nil
		}
		return "", fmt.Errorf("finding the region of bucket %s: the answer does not name it", bucket)
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() == http.StatusMovedPermanently {
		if region := response.Response.Header.Get("X-Amz-Bucket-Region"); region != "" {
			return region, nil
		}
	}
	return "", fmt.Errorf("finding the region of bucket %s: %w", bucket, err)
}
