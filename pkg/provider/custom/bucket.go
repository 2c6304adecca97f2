package custom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// urlValidity is how long a handler may put its response: twice the longest ServiceTimeout (reference §8.9).
const urlValidity = 2 * time.Hour

// Bucket keeps responses in S3. The client must be of the bucket's own region: a URL is signed for one.
type Bucket struct {
	Client *s3.Client
	Name   string
	// Owner is the account that the bucket must belong to.
	Owner string
}

var _ Responses = (*Bucket)(nil)

// URL implements Responses.
func (b *Bucket) URL(ctx context.Context, key string) (string, error) {
	presign := s3.NewPresignClient(b.Client, s3.WithPresignExpires(urlValidity), func(o *s3.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *s3.Options) {
			// Else the URL demands a checksum of a payload that only the handler knows.
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		})
	})
	// Handlers send no Content-Type, or an empty one: none is signed.
	out, err := presign.PresignPutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(b.Name), Key: aws.String(key)})
	if err != nil {
		return "", fmt.Errorf("presigning a response: %w", err)
	}
	return out.URL, nil
}

// Get implements Responses. One byte more than a response may have is read, so that a larger one is seen as such.
func (b *Bucket) Get(ctx context.Context, key string) ([]byte, bool, error) {
	out, err := b.Client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(b.Name), Key: aws.String(key), ExpectedBucketOwner: b.owner(),
	})
	if err != nil {
		var missing *types.NoSuchKey
		var api smithy.APIError
		if errors.As(err, &missing) || errors.As(err, &api) && api.ErrorCode() == "NotFound" {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("reading a response: %w", err)
	}
	defer out.Body.Close()
	body, err := io.ReadAll(io.LimitReader(out.Body, maxResponse+1))
	if err != nil {
		return nil, false, fmt.Errorf("reading a response: %w", err)
	}
	return body, true, nil
}

// Delete implements Responses.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	_, err := b.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(b.Name), Key: aws.String(key), ExpectedBucketOwner: b.owner()})
	if err != nil {
		return fmt.Errorf("deleting a response: %w", err)
	}
	return nil
}

func (b *Bucket) owner() *string {
	if b.Owner == "" {
		return nil
	}
	return aws.String(b.Owner)
}
