package macro

import (
	"context"
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// Bucket uploads templates to the bucket that an object store stands for.
type Bucket struct {
	Store objectstore.Store
	// Name and Region are the bucket's; URLSuffix is the partition's, "amazonaws.com".
	Name, Region, URLSuffix string
	// Prefix is what the store puts before every key, "" for none.
	Prefix string
}

var _ Uploads = Bucket{}

// Put implements Uploads.
func (b Bucket) Put(ctx context.Context, key string, body []byte) (string, error) {
	if _, err := b.Store.Put(ctx, key, body, objectstore.Condition{}); err != nil {
		return "", fmt.Errorf("storing %s: %w", key, err)
	}
	return fmt.Sprintf("https://s3.%s.%s/%s/%s%s", b.Region, b.URLSuffix, b.Name, b.Prefix, key), nil
}

// Delete implements Uploads.
func (b Bucket) Delete(ctx context.Context, key string) error {
	if err := b.Store.Delete(ctx, key, objectstore.Condition{}); err != nil {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return nil
}
