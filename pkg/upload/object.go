package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ObjectAPI is the part of the S3 client that reading an upload takes.
type ObjectAPI interface {
	HeadObject(context.Context, *sdk.HeadObjectInput, ...func(*sdk.Options)) (*sdk.HeadObjectOutput, error)
	GetObject(context.Context, *sdk.GetObjectInput, ...func(*sdk.Options)) (*sdk.GetObjectOutput, error)
}

// Ref names one version of an object of the uploads bucket.
type Ref struct {
	Key string `json:"key"`
	// Version is the version of the object; "" is the current one.
	Version string `json:"version,omitempty"`
}

// ErrNoUpload is in the chain of the error where there is no object under the key.
var ErrNoUpload = errors.New("there is no such upload")

const (
	// blockSize is how much of an archive one request reads, in bytes; kept is how many blocks stay in memory. Entries
	// that belong together stand together, so that most reads find their block.
	blockSize = 4 << 20
	kept      = 6
	// readTries is how often a block whose body breaks off is asked for.
	readTries = 4
)

// Object is one version of an object in S3, read by range. It is an io.ReaderAt that may be used concurrently, for as
// long as its context lasts.
type Object struct {
	Ref  Ref // with the version that is read, where the bucket keeps versions
	Size int64
	// Modified is when it was uploaded.
	Modified time.Time

	ctx    context.Context
	api    ObjectAPI
	bucket string
	owner  string
	etag   *string

	mu     sync.Mutex
	blocks []block // most recently used last
	err    error
}

type block struct {
	n    int64
	body []byte
}

// OpenObject looks at an object. Every later read is of the very version that was looked at. owner is the account that
// must own the bucket. ctx is that of all reads.
func OpenObject(ctx context.Context, api ObjectAPI, bucket, owner string, ref Ref) (*Object, error) {
	in := &sdk.HeadObjectInput{Bucket: &bucket, Key: &ref.Key, ExpectedBucketOwner: &owner}
	if ref.Version != "" {
		in.VersionId = &ref.Version
	}
	out, err := api.HeadObject(ctx, in)
	switch {
	case statusOf(err) == http.StatusNotFound, statusOf(err) == http.StatusMethodNotAllowed: // 405: a delete marker
		return nil, fmt.Errorf("looking for %q in the uploads: %w", ref.Key, ErrNoUpload)
	case err != nil:
		return nil, fmt.Errorf("looking for %q in the uploads: %w", ref.Key, err)
	}
	o := &Object{Ref: ref, Size: aws.ToInt64(out.ContentLength), ctx: ctx, api: api, bucket: bucket, owner: owner, etag: out.ETag, Modified: aws.ToTime(out.LastModified)}
	if v := aws.ToString(out.VersionId); v != "" && v != "null" {
		o.Ref.Version = v
	}
	return o, nil
}

// ReadAt implements io.ReaderAt.
func (o *Object) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("reading an upload before its beginning")
	}
	done := 0
	for done < len(p) {
		at := off + int64(done)
		if at >= o.Size {
			return done, io.EOF
		}
		body, err := o.block(at / blockSize)
		if err != nil {
			return done, err
		}
		done += copy(p[done:], body[at%blockSize:])
	}
	return done, nil
}

// Err is why the bucket could not be read, nil when it always could. Where an archive seems not to be as it should,
// that may have been the reason.
func (o *Object) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// block returns block n, from memory if it is there. One request is made at a time: what others wait for is often the
// block that is on its way.
func (o *Object) block(n int64) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.IndexFunc(o.blocks, func(b block) bool { return b.n == n }); i >= 0 {
		b := o.blocks[i]
		o.blocks = append(slices.Delete(o.blocks, i, i+1), b)
		return b.body, nil
	}
	first, last := n*blockSize, min((n+1)*blockSize, o.Size)-1
	body, err := o.fetch(first, last)
	if err != nil {
		o.err = fmt.Errorf("reading %q in the uploads: %w", o.Ref.Key, err)
		return nil, o.err
	}
	if len(o.blocks) == kept {
		o.blocks = slices.Delete(o.blocks, 0, 1)
	}
	o.blocks = append(o.blocks, block{n, body})
	return body, nil
}

// fetch reads a range. The client repeats the request; a body that breaks off is asked for again here.
func (o *Object) fetch(first, last int64) (body []byte, err error) {
	in := &sdk.GetObjectInput{
		Bucket: &o.bucket, Key: &o.Ref.Key, ExpectedBucketOwner: &o.owner, IfMatch: o.etag,
		Range: aws.String(fmt.Sprintf("bytes=%d-%d", first, last)),
	}
	if o.Ref.Version != "" {
		in.VersionId = &o.Ref.Version
	}
	for range readTries {
		var out *sdk.GetObjectOutput
		if out, err = o.api.GetObject(o.ctx, in); err != nil {
			return nil, err
		}
		if aws.ToString(out.ContentRange) == "" && aws.ToInt64(out.ContentLength) == o.Size {
			// Who serves may leave a range out of account and answer with all of it (RFC 9110, section 14.2).
			_, err = io.CopyN(io.Discard, out.Body, first)
		}
		if err == nil {
			body, err = io.ReadAll(io.LimitReader(out.Body, last-first+1))
		}
		out.Body.Close()
		if err == nil && int64(len(body)) == last-first+1 {
			return body, nil
		}
		if o.ctx.Err() != nil {
			return nil, o.ctx.Err()
		}
	}
	// Not io.ErrUnexpectedEOF, which would be said of the archive.
	return nil, fmt.Errorf("the answer has %d bytes of %d: %v", len(body), last-first+1, err) //nolint:errorlint // see above
}

func statusOf(err error) int {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}
