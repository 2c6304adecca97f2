// Package s3 is the object store of the control plane and of --direct: one Amazon S3 bucket, guarded by S3's
// own conditional writes.
//
// What S3 answers is translated to the contract of package objectstore
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html and conditional-deletes.html):
// 412 is ErrPrecondition; 404 is ErrNotFound when it speaks of the key, and a failure when it speaks of the
// bucket; 409, with which S3 refuses a conditional request that met another one in flight, is repeated.
package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

// maxKey is S3's limit for a key, in bytes of UTF-8
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html).
const maxKey = 1024

// API is the part of the S3 client that is used.
type API interface {
	GetObject(context.Context, *sdk.GetObjectInput, ...func(*sdk.Options)) (*sdk.GetObjectOutput, error)
	HeadObject(context.Context, *sdk.HeadObjectInput, ...func(*sdk.Options)) (*sdk.HeadObjectOutput, error)
	PutObject(context.Context, *sdk.PutObjectInput, ...func(*sdk.Options)) (*sdk.PutObjectOutput, error)
	DeleteObject(context.Context, *sdk.DeleteObjectInput, ...func(*sdk.Options)) (*sdk.DeleteObjectOutput, error)
	ListObjectsV2(context.Context, *sdk.ListObjectsV2Input, ...func(*sdk.Options)) (*sdk.ListObjectsV2Output, error)
	HeadBucket(context.Context, *sdk.HeadBucketInput, ...func(*sdk.Options)) (*sdk.HeadBucketOutput, error)
}

var _ API = (*sdk.Client)(nil)

// Store is an objectstore.Store in one bucket. It is safe for concurrent use.
//
// The client's own retries stay on: a conditional write whose answer was lost is sent again and is then
// refused with ErrPrecondition, as the contract says.
type Store struct {
	// Client must work in the bucket's region.
	Client API
	Bucket string
	// Owner is the account that must own the bucket; S3 refuses every call when another one does. It keeps
	// state out of a bucket that somebody else has made under the expected name. Empty: not checked.
	Owner string
	// Clock is what repeats wait on. Nil is real time.
	Clock clock.Clock
}

var _ objectstore.Store = (*Store)(nil)

// Get implements objectstore.Store.
func (s *Store) Get(ctx context.Context, key string) (objectstore.Object, error) {
	if err := checkKey(key); err != nil {
		return objectstore.Object{}, err
	}
	var o objectstore.Object
	// A connection may break while the body is read, which is after the client's own retries.
	err := s.repeat(ctx, brokenBody, func() error {
		out, err := s.Client.GetObject(ctx, &sdk.GetObjectInput{
			Bucket: &s.Bucket, Key: &key, ExpectedBucketOwner: s.owner(),
		})
		if err != nil {
			return err
		}
		defer out.Body.Close()
		body, err := io.ReadAll(out.Body)
		if err != nil {
			return &bodyError{err}
		}
		o = objectstore.Object{Body: body, Info: objectstore.Info{
			Key: key, ETag: aws.ToString(out.ETag), Size: int64(len(body)), LastModified: utc(out.LastModified),
		}}
		return nil
	})
	if err != nil {
		return objectstore.Object{}, fmt.Errorf("reading object %q: %w", key, translate(err))
	}
	return o, nil
}

// Head implements objectstore.Store.
func (s *Store) Head(ctx context.Context, key string) (objectstore.Info, error) {
	if err := checkKey(key); err != nil {
		return objectstore.Info{}, err
	}
	out, err := s.Client.HeadObject(ctx, &sdk.HeadObjectInput{
		Bucket: &s.Bucket, Key: &key, ExpectedBucketOwner: s.owner(),
	})
	if err != nil {
		if err = translate(err); errors.Is(err, objectstore.ErrNotFound) {
			// The answer to a HEAD has no body that could tell a missing key from a missing bucket.
			if _, bucketErr := s.Client.HeadBucket(ctx, &sdk.HeadBucketInput{Bucket: &s.Bucket, ExpectedBucketOwner: s.owner()}); bucketErr != nil {
				err = fmt.Errorf("looking at bucket %s: %w", s.Bucket, bucketErr)
			}
		}
		return objectstore.Info{}, fmt.Errorf("reading object %q: %w", key, err)
	}
	return objectstore.Info{
		Key: key, ETag: aws.ToString(out.ETag), Size: aws.ToInt64(out.ContentLength), LastModified: utc(out.LastModified),
	}, nil
}

// Put implements objectstore.Store.
func (s *Store) Put(ctx context.Context, key string, body []byte, cond objectstore.Condition) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	in := &sdk.PutObjectInput{Bucket: &s.Bucket, Key: &key, ExpectedBucketOwner: s.owner(), ContentType: contentType(key)}
	switch {
	case cond.IfNoneMatch && cond.IfMatch != "":
		return "", fmt.Errorf("putting object %q: IfNoneMatch and IfMatch exclude each other", key)
	case cond.IfNoneMatch:
		in.IfNoneMatch = aws.String("*")
	case cond.IfMatch != "":
		in.IfMatch = aws.String(cond.IfMatch)
	}
	var etag string
	err := s.repeat(ctx, inFlight, func() error {
		in.Body = bytes.NewReader(body)
		out, err := s.Client.PutObject(ctx, in)
		if err == nil {
			etag = aws.ToString(out.ETag)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("putting object %q: %w", key, s.refused(ctx, key, cond, translate(err)))
	}
	return etag, nil
}

// Delete implements objectstore.Store.
func (s *Store) Delete(ctx context.Context, key string, cond objectstore.Condition) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if cond.IfNoneMatch {
		return fmt.Errorf("deleting object %q: IfNoneMatch has no meaning for a delete", key)
	}
	in := &sdk.DeleteObjectInput{Bucket: &s.Bucket, Key: &key, ExpectedBucketOwner: s.owner()}
	if cond.IfMatch != "" {
		in.IfMatch = aws.String(cond.IfMatch)
	}
	err := s.repeat(ctx, inFlight, func() error {
		_, err := s.Client.DeleteObject(ctx, in)
		return err
	})
	if err == nil {
		return nil
	}
	if err = translate(err); cond.IfMatch == "" && errors.Is(err, objectstore.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("deleting object %q: %w", key, s.refused(ctx, key, cond, err))
}

// List implements objectstore.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]objectstore.Info, error) {
	// Keys cross as URL-encoded text: XML cannot hold every character of a key.
	in := &sdk.ListObjectsV2Input{Bucket: &s.Bucket, ExpectedBucketOwner: s.owner(), EncodingType: "url"}
	if prefix != "" {
		in.Prefix = &prefix
	}
	var out []objectstore.Info
	for {
		page, err := s.Client.ListObjectsV2(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("listing objects below %q: %w", prefix, err)
		}
		for _, o := range page.Contents {
			key, err := decodeKey(aws.ToString(o.Key), page.EncodingType)
			if err != nil {
				return nil, fmt.Errorf("listing objects below %q: %w", prefix, err)
			}
			out = append(out, objectstore.Info{
				Key: key, ETag: aws.ToString(o.ETag), Size: aws.ToInt64(o.Size), LastModified: utc(o.LastModified),
			})
		}
		if !aws.ToBool(page.IsTruncated) {
			break
		}
		if aws.ToString(page.NextContinuationToken) == "" {
			return nil, fmt.Errorf("listing objects below %q: a page is said to be followed by another and does not say by which", prefix)
		}
		in.ContinuationToken = page.NextContinuationToken
	}
	// S3 lists a general purpose bucket in this order already.
	slices.SortFunc(out, func(a, b objectstore.Info) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// refused tells the two refusals of IfMatch apart: S3 answers 412 also where a delete marker stands, and the
// contract wants that reported as an absent object.
func (s *Store) refused(ctx context.Context, key string, cond objectstore.Condition, err error) error {
	if cond.IfMatch == "" || !errors.Is(err, objectstore.ErrPrecondition) {
		return err
	}
	if _, headErr := s.Head(ctx, key); errors.Is(headErr, objectstore.ErrNotFound) {
		return objectstore.ErrNotFound
	}
	return err
}

func (s *Store) owner() *string {
	if s.Owner == "" {
		return nil
	}
	return &s.Owner
}

// contentType lets the S3 console show what it is; cdkd sets the same.
func contentType(key string) *string {
	if strings.HasSuffix(key, ".json") {
		return aws.String("application/json")
	}
	return nil
}

func checkKey(key string) error {
	if key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		return fmt.Errorf("object key %q: a key is 1 to %d bytes of UTF-8", key, maxKey)
	}
	return nil
}

func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
