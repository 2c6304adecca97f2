// Package uploadtest is a bucket in memory that answers as S3 does, for tests of what uploads and of what reads
// uploads: versions, ranges, conditional puts, multipart uploads, an owner.
package uploadtest

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // S3's ETags are MD5
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Bucket is a versioned bucket. The zero value is empty and answers for every owner.
type Bucket struct {
	// Owner is the account that owns it; a call that expects another one is refused.
	Owner string
	// Fail, when set, is asked before every call and may refuse it.
	Fail func(call, key string) error

	mu       sync.Mutex
	objects  map[string][]version
	uploads  map[string]*multipart
	sequence int
	calls    []string
}

type version struct {
	id, etag string
	body     []byte
}

type multipart struct {
	key   string
	parts map[int32][]byte
}

// Status is an answer of S3 with a status and nothing else.
func Status(code int) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: code}}, Err: errors.New(http.StatusText(code)),
	}
}

// Store puts an object and returns its version.
func (b *Bucket) Store(key string, body []byte) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.store(key, body).id
}

func (b *Bucket) store(key string, body []byte) version {
	b.sequence++
	sum := md5.Sum(body) //nolint:gosec // as above
	v := version{id: "v" + strconv.Itoa(b.sequence), etag: `"` + hex.EncodeToString(sum[:]) + `"`, body: slices.Clone(body)}
	if b.objects == nil {
		b.objects = map[string][]version{}
	}
	b.objects[key] = append(b.objects[key], v)
	return v
}

// Body returns the current version of an object.
func (b *Bucket) Body(key string) ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.find(key, nil)
	return v.body, ok
}

// Keys are the keys of all objects, sorted.
func (b *Bucket) Keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for key := range b.objects {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// Calls returns the names of the calls so far, in order.
func (b *Bucket) Calls() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

func (b *Bucket) find(key string, id *string) (version, bool) {
	list := b.objects[key]
	if len(list) == 0 {
		return version{}, false
	}
	if id == nil {
		return list[len(list)-1], true
	}
	i := slices.IndexFunc(list, func(v version) bool { return v.id == *id })
	if i < 0 {
		return version{}, false
	}
	return list[i], true
}

func (b *Bucket) enter(call string, key, owner *string) error {
	b.mu.Lock()
	b.calls = append(b.calls, call)
	b.mu.Unlock()
	if aws.ToString(owner) == "" || b.Owner != "" && *owner != b.Owner {
		return Status(http.StatusForbidden)
	}
	if b.Fail != nil {
		return b.Fail(call, aws.ToString(key))
	}
	return nil
}

// HeadObject implements upload.ObjectAPI and upload.PutAPI.
func (b *Bucket) HeadObject(_ context.Context, in *sdk.HeadObjectInput, _ ...func(*sdk.Options)) (*sdk.HeadObjectOutput, error) {
	if err := b.enter("HeadObject", in.Key, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.find(*in.Key, in.VersionId)
	if !ok {
		return nil, Status(http.StatusNotFound)
	}
	return &sdk.HeadObjectOutput{ContentLength: aws.Int64(int64(len(v.body))), ETag: &v.etag, VersionId: &v.id}, nil
}

// GetObject implements upload.ObjectAPI.
func (b *Bucket) GetObject(_ context.Context, in *sdk.GetObjectInput, _ ...func(*sdk.Options)) (*sdk.GetObjectOutput, error) {
	if err := b.enter("GetObject", in.Key, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.find(*in.Key, in.VersionId)
	switch {
	case !ok:
		return nil, Status(http.StatusNotFound)
	case in.IfMatch != nil && *in.IfMatch != v.etag:
		return nil, Status(http.StatusPreconditionFailed)
	}
	body := v.body
	if r := aws.ToString(in.Range); r != "" {
		var first, last int
		if _, err := fmt.Sscanf(r, "bytes=%d-%d", &first, &last); err != nil || first >= len(body) {
			return nil, Status(http.StatusRequestedRangeNotSatisfiable)
		}
		body = body[first:min(last+1, len(body))]
	}
	out := &sdk.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(body)), ETag: &v.etag, VersionId: &v.id, ContentLength: aws.Int64(int64(len(body)))}
	if in.Range != nil {
		out.ContentRange = aws.String(fmt.Sprintf("%s/%d", strings.Replace(*in.Range, "=", " ", 1), len(v.body)))
	}
	return out, nil
}

// PutObject implements upload.PutAPI.
func (b *Bucket) PutObject(_ context.Context, in *sdk.PutObjectInput, _ ...func(*sdk.Options)) (*sdk.PutObjectOutput, error) {
	if err := b.enter("PutObject", in.Key, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.find(*in.Key, nil); there && in.IfNoneMatch != nil {
		return nil, Status(http.StatusPreconditionFailed)
	}
	v := b.store(*in.Key, body)
	return &sdk.PutObjectOutput{ETag: &v.etag, VersionId: &v.id}, nil
}

// CreateMultipartUpload implements upload.PutAPI.
func (b *Bucket) CreateMultipartUpload(_ context.Context, in *sdk.CreateMultipartUploadInput, _ ...func(*sdk.Options)) (*sdk.CreateMultipartUploadOutput, error) {
	if err := b.enter("CreateMultipartUpload", in.Key, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sequence++
	id := "u" + strconv.Itoa(b.sequence)
	if b.uploads == nil {
		b.uploads = map[string]*multipart{}
	}
	b.uploads[id] = &multipart{key: *in.Key, parts: map[int32][]byte{}}
	return &sdk.CreateMultipartUploadOutput{UploadId: &id}, nil
}

func (b *Bucket) upload(id, key *string) (*multipart, error) {
	u := b.uploads[aws.ToString(id)]
	if u == nil || u.key != aws.ToString(key) {
		return nil, Status(http.StatusNotFound)
	}
	return u, nil
}

// UploadPart implements upload.PutAPI.
func (b *Bucket) UploadPart(_ context.Context, in *sdk.UploadPartInput, _ ...func(*sdk.Options)) (*sdk.UploadPartOutput, error) {
	if err := b.enter("UploadPart", in.Key, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	u, err := b.upload(in.UploadId, in.Key)
	if err != nil {
		return nil, err
	}
	u.parts[*in.PartNumber] = body
	return &sdk.UploadPartOutput{ETag: aws.String(fmt.Sprintf("%q", fmt.Sprint(*in.PartNumber, len(body))))}, nil
}

// ListParts implements upload.PutAPI. A page has two parts.
func (b *Bucket) ListParts(_ context.Context, in *sdk.ListPartsInput, _ ...func(*sdk.Options)) (*sdk.ListPartsOutput, error) {
	if err := b.enter("ListParts", in.Key, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	u, err := b.upload(in.UploadId, in.Key)
	if err != nil {
		return nil, err
	}
	after, _ := strconv.Atoi(aws.ToString(in.PartNumberMarker))
	var numbers []int32
	for n := range u.parts {
		if int(n) > after {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	out := &sdk.ListPartsOutput{IsTruncated: aws.Bool(len(numbers) > 2)}
	for _, n := range numbers[:min(2, len(numbers))] {
		out.Parts = append(out.Parts, types.Part{PartNumber: aws.Int32(n), ETag: aws.String(fmt.Sprintf("%q", fmt.Sprint(n, len(u.parts[n]))))})
		out.NextPartNumberMarker = aws.String(strconv.Itoa(int(n)))
	}
	return out, nil
}

// CompleteMultipartUpload implements upload.PutAPI.
func (b *Bucket) CompleteMultipartUpload(_ context.Context, in *sdk.CompleteMultipartUploadInput, _ ...func(*sdk.Options)) (*sdk.CompleteMultipartUploadOutput, error) {
	if err := b.enter("CompleteMultipartUpload", in.Key, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	u, err := b.upload(in.UploadId, in.Key)
	if err != nil {
		return nil, err
	}
	if _, there := b.find(*in.Key, nil); there && in.IfNoneMatch != nil {
		return nil, Status(http.StatusPreconditionFailed)
	}
	var body []byte
	for i, p := range in.MultipartUpload.Parts {
		part, ok := u.parts[*p.PartNumber]
		if !ok || int(*p.PartNumber) != i+1 || !strings.HasPrefix(strings.Trim(*p.ETag, `"`), strconv.Itoa(i+1)) {
			return nil, Status(http.StatusBadRequest)
		}
		body = append(body, part...)
	}
	delete(b.uploads, *in.UploadId)
	v := b.store(*in.Key, body)
	return &sdk.CompleteMultipartUploadOutput{ETag: &v.etag}, nil
}

// AbortMultipartUpload implements upload.PutAPI.
func (b *Bucket) AbortMultipartUpload(_ context.Context, in *sdk.AbortMultipartUploadInput, _ ...func(*sdk.Options)) (*sdk.AbortMultipartUploadOutput, error) {
	if err := b.enter("AbortMultipartUpload", in.Key, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.upload(in.UploadId, in.Key); err != nil {
		return nil, err
	}
	delete(b.uploads, *in.UploadId)
	return &sdk.AbortMultipartUploadOutput{}, nil
}
