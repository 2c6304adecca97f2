package controlplane

import (
	"cmp"
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
	"github.com/slipway-cdk/slipway/pkg/run"
)

// maxAsset is the most that one PutObject takes, in bytes
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html).
const maxAsset = 5 << 30

// assetBuckets stores assets in S3, in buckets of the account that run.Acting names, or the process's own, whatever
// their region. A bucket of that name in another account is refused: the names of CDK's asset buckets can be guessed.
type assetBuckets struct {
	aws *Accounts

	mu      sync.Mutex
	clients map[ownedBucket]*sdk.Client
}

type ownedBucket struct{ bucket, owner string }

// owner is the account whose buckets are meant.
func (b *assetBuckets) owner(ctx context.Context) string {
	return cmp.Or(run.ActingOf(ctx).Stack.Account, b.aws.Own)
}

var _ asset.Bucket = (*assetBuckets)(nil)

// Exists implements asset.Bucket.
func (b *assetBuckets) Exists(ctx context.Context, bucket, key string) (bool, error) {
	owner := b.owner(ctx)
	client, err := b.client(ctx, ownedBucket{bucket, owner})
	if err != nil {
		return false, err
	}
	_, err = client.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: &bucket, Key: &key, ExpectedBucketOwner: &owner})
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
	owner := b.owner(ctx)
	client, err := b.client(ctx, ownedBucket{bucket, owner})
	if err != nil {
		return err
	}
	_, err = client.PutObject(ctx, &sdk.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: body, ContentLength: aws.Int64(size), ExpectedBucketOwner: &owner,
	})
	if err != nil {
		return fmt.Errorf("writing an object to bucket %s: %w", bucket, err)
	}
	return nil
}

// client returns the client for a bucket's region. That the bucket exists and whose it is has then been seen.
func (b *assetBuckets) client(ctx context.Context, at ownedBucket) (*sdk.Client, error) {
	b.mu.Lock()
	client, ok := b.clients[at]
	b.mu.Unlock()
	if ok {
		return client, nil
	}
	region, err := s3.BucketRegion(ctx, s3.NewClient(b.aws.Config(at.owner, b.aws.Base.Region), ""), at.bucket, at.owner)
	if err != nil {
		return nil, err
	}
	client = s3.NewClient(b.aws.Config(at.owner, region), region)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clients == nil {
		b.clients = map[ownedBucket]*sdk.Client{}
	}
	b.clients[at] = client
	return client, nil
}
