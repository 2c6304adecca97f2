package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
)

// maxAsset is the most that one PutObject takes, in bytes
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html).
const maxAsset = 5 << 30

// assetBuckets stores assets in S3, in buckets of the control plane's own account, whatever their region. A
// bucket of that name in another account is refused: the names of CDK's asset buckets can be guessed.
type assetBuckets struct {
	aws *accounts

	mu      sync.Mutex
	clients map[string]*sdk.Client // by bucket
}

var _ asset.Bucket = (*assetBuckets)(nil)

// Exists implements asset.Bucket.
func (b *assetBuckets) Exists(ctx context.Context, bucket, key string) (bool, error) {
	client, err := b.client(ctx, bucket)
	if err != nil {
		return false, err
	}
	_, err = client.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: &bucket, Key: &key, ExpectedBucketOwner: &b.aws.own})
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() == http.StatusNotFound {
		return false, nil // the bucket itself was there a moment ago
	}
	if err != nil {
		return false, fmt.Errorf("looking for an object in bucket %s: %w", bucket, err)
	}
	return true, nil
}

// Put implements asset.Bucket. The key holds the content's hash: a second put of the same writes the same.
func (b *assetBuckets) Put(ctx context.Context, bucket, key string, body io.ReadSeeker, size int64) error {
	if size > maxAsset {
		return fmt.Errorf("an asset of %d bytes is larger than the %d that one upload takes", size, int64(maxAsset))
	}
	client, err := b.client(ctx, bucket)
	if err != nil {
		return err
	}
	_, err = client.PutObject(ctx, &sdk.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: body, ContentLength: aws.Int64(size), ExpectedBucketOwner: &b.aws.own,
	})
	if err != nil {
		return fmt.Errorf("writing an object to bucket %s: %w", bucket, err)
	}
	return nil
}

// client returns the client for a bucket's region. That the bucket exists and whose it is has then been seen.
func (b *assetBuckets) client(ctx context.Context, bucket string) (*sdk.Client, error) {
	b.mu.Lock()
	client, ok := b.clients[bucket]
	b.mu.Unlock()
	if ok {
		return client, nil
	}
	region, err := s3.BucketRegion(ctx, s3.NewClient(b.aws.base, ""), bucket, b.aws.own)
	if err != nil {
		return nil, err
	}
	client = s3.NewClient(b.aws.base, region)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clients == nil {
		b.clients = map[string]*sdk.Client{}
	}
	b.clients[bucket] = client
	return client, nil
}
