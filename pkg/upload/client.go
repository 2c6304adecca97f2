package upload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
)

// PutAPI is the part of the S3 client that uploading takes.
type PutAPI interface {
	HeadObject(context.Context, *sdk.HeadObjectInput, ...func(*sdk.Options)) (*sdk.HeadObjectOutput, error)
	PutObject(context.Context, *sdk.PutObjectInput, ...func(*sdk.Options)) (*sdk.PutObjectOutput, error)
	CreateMultipartUpload(context.Context, *sdk.CreateMultipartUploadInput, ...func(*sdk.Options)) (*sdk.CreateMultipartUploadOutput, error)
	UploadPart(context.Context, *sdk.UploadPartInput, ...func(*sdk.Options)) (*sdk.UploadPartOutput, error)
	ListParts(context.Context, *sdk.ListPartsInput, ...func(*sdk.Options)) (*sdk.ListPartsOutput, error)
	CompleteMultipartUpload(context.Context, *sdk.CompleteMultipartUploadInput, ...func(*sdk.Options)) (*sdk.CompleteMultipartUploadOutput, error)
	AbortMultipartUpload(context.Context, *sdk.AbortMultipartUploadInput, ...func(*sdk.Options)) (*sdk.AbortMultipartUploadOutput, error)
}

var _ PutAPI = (*sdk.Client)(nil)

// Client uploads archives. The SDK's own transfer manager begins anew when a process has died; this one goes on with
// the parts that are there.
type Client struct {
	API    PutAPI
	Bucket string
	// Owner is the account that must own the bucket.
	Owner string
	// Notes is the directory where the client remembers uploads that are not complete; "" forgets them when the process
	// ends, and they begin anew.
	Notes string
	// PartSize is the size of a part, in bytes, and of the largest archive that is put as a whole. 0 is 16 MiB; S3 takes
	// no less than 5 MiB for all but the last part.
	PartSize int64
	// Parallel is how many parts are on their way at once. 0 is 4.
	Parallel int
	// TempDir is where archives are made; "" is the system's.
	TempDir string
}

// Outcome is what Upload has done.
type Outcome struct {
	// Present: the archive was there already, and nothing was packed or sent.
	Present bool
	// Bytes is the size of the archive, and Sent what of it had to be sent. Both are 0 for one that was there.
	Bytes, Sent int64
}

// Upload brings a package to a key that holds its digest. It may be repeated, by this process or another one: what is
// there is not sent again. sent, if not nil, is told how far it has come, the first time before anything is sent; it may
// be called concurrently.
func (c *Client) Upload(ctx context.Context, key string, p *Package, sent func(done, total int64)) (Outcome, error) {
	there, err := c.present(ctx, key)
	if err != nil || there {
		return Outcome{Present: there}, err
	}
	file, err := os.CreateTemp(c.TempDir, "slipway-upload-*.zip")
	if err != nil {
		return Outcome{}, fmt.Errorf("making room for the upload: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	sum := sha256.New()
	size, err := p.WriteTo(io.MultiWriter(file, sum))
	if err != nil {
		return Outcome{}, err
	}
	if sent == nil {
		sent = func(int64, int64) {}
	}
	sent(0, size)
	if size > c.partSize() {
		return c.parts(ctx, key, file, size, hex.EncodeToString(sum.Sum(nil)), sent)
	}
	if err := c.put(ctx, key, io.NewSectionReader(file, 0, size), size); err != nil {
		return Outcome{}, err
	}
	sent(size, size)
	return Outcome{Bytes: size, Sent: size}, nil
}

// Put stores a small document under a key, for good: one that is there stays.
func (c *Client) Put(ctx context.Context, key string, body io.ReadSeeker, size int64) error {
	return c.put(ctx, key, body, size)
}

// present looks for an object. Under a key with a digest in the caller's own part of the bucket only the caller can
// have put anything, and nobody takes its word for it: the archive is verified when it is read.
func (c *Client) present(ctx context.Context, key string) (bool, error) {
	_, err := c.API.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: &c.Bucket, Key: &key, ExpectedBucketOwner: &c.Owner})
	switch {
	case err == nil:
		return true, nil
	case statusOf(err) == http.StatusNotFound, statusOf(err) == http.StatusForbidden:
		// S3 says 403 of an absent object to whoever may not list the bucket, as callers may not
		// (https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html). Who may do nothing learns it from the put.
		return false, nil
	}
	return false, fmt.Errorf("looking for %s in bucket %s: %w", key, c.Bucket, err)
}

func (c *Client) put(ctx context.Context, key string, body io.ReadSeeker, size int64) error {
	_, err := c.API.PutObject(ctx, &sdk.PutObjectInput{
		Bucket: &c.Bucket, Key: &key, ExpectedBucketOwner: &c.Owner,
		Body: body, ContentLength: aws.Int64(size), IfNoneMatch: aws.String("*"),
	})
	if err != nil && !standsAlready(err) {
		return fmt.Errorf("uploading %s to bucket %s: %w", key, c.Bucket, err)
	}
	return nil
}

// standsAlready: the object is there, from an earlier try whose answer was lost or from another process.
func standsAlready(err error) bool { return statusOf(err) == http.StatusPreconditionFailed }

func (c *Client) partSize() int64 {
	if c.PartSize > 0 {
		return c.PartSize
	}
	return 16 << 20
}

func (c *Client) parallel() int {
	if c.Parallel > 0 {
		return c.Parallel
	}
	return 4
}

var errGone = errors.New("the upload that was begun is gone")
