package asset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// LocalBucket keeps objects as files, {Dir}/{bucket}/{key}. Buckets come into being with their first object.
type LocalBucket struct {
	Dir string
}

var _ Bucket = LocalBucket{}

// Exists implements Bucket.
func (b LocalBucket) Exists(_ context.Context, bucket, key string) (bool, error) {
	path, err := b.path(bucket, key)
	if err != nil {
		return false, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return info.Mode().IsRegular(), nil
}

// Put implements Bucket: the object is written beside its place, made durable and then renamed into it.
func (b LocalBucket) Put(ctx context.Context, bucket, key string, body io.ReadSeeker, size int64) (err error) {
	path, err := b.path(bucket, key)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".put-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	n, err := io.Copy(tmp, body)
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("the body has %d bytes instead of %d", n, size)
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// path is the file of an object. Neither part may lead out of the directory.
func (b LocalBucket) path(bucket, key string) (string, error) {
	if bucket == "" || strings.ContainsAny(bucket, `/\`) || !filepath.IsLocal(bucket) {
		return "", fmt.Errorf("%q is not a bucket name", bucket)
	}
	// A key is any string for S3; as a file it must name one below the bucket.
	rel := filepath.FromSlash(key)
	if key == "" || strings.HasSuffix(key, "/") || !filepath.IsLocal(rel) || filepath.Clean(rel) != rel {
		return "", fmt.Errorf("%q cannot be stored as a file", key)
	}
	return filepath.Join(b.Dir, bucket, rel), nil
}
