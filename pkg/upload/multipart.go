package upload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

// note is what is remembered of an upload that is not complete. It goes on only with the very same bytes: another
// release may pack the same files differently.
type note struct {
	Key      string `json:"key"`
	UploadID string `json:"uploadId"`
	PartSize int64  `json:"partSize"`
	SHA256   string `json:"sha256"`
}

// parts uploads an archive in parts: those that an earlier try has left are kept.
func (c *Client) parts(ctx context.Context, key string, file io.ReaderAt, size int64, sum string, sent func(done, total int64)) (Outcome, error) {
	out := Outcome{Bytes: size}
	for range 2 {
		n, err := c.begun(ctx, key, sum)
		if err != nil {
			return out, err
		}
		have, err := c.listParts(ctx, n)
		if err == nil {
			out.Sent, err = c.sendParts(ctx, n, file, size, have, sent)
		}
		if err == nil {
			err = c.complete(ctx, n, have)
		}
		if errors.Is(err, errGone) {
			// It was completed or aborted since, or has expired. If it is not there it begins anew.
			c.forget(key)
			if there, err := c.present(ctx, key); err != nil || there {
				return out, err
			}
			continue
		}
		if err == nil {
			c.forget(key)
		}
		return out, err
	}
	return out, fmt.Errorf("uploading %s to bucket %s: %w", key, c.Bucket, errGone)
}

// begun returns the upload that an earlier try has begun with the same bytes, or begins one.
func (c *Client) begun(ctx context.Context, key, sum string) (note, error) {
	if n, ok := c.remembered(key); ok {
		if n.Key == key && n.SHA256 == sum && n.PartSize == c.partSize() {
			return n, nil
		}
		// Its parts cost storage. Should that fail the bucket's lifecycle removes them.
		_, _ = c.API.AbortMultipartUpload(ctx, &sdk.AbortMultipartUploadInput{Bucket: &c.Bucket, Key: &n.Key, UploadId: &n.UploadID, ExpectedBucketOwner: &c.Owner})
		c.forget(key)
	}
	out, err := c.API.CreateMultipartUpload(ctx, &sdk.CreateMultipartUploadInput{
		Bucket: &c.Bucket, Key: &key, ExpectedBucketOwner: &c.Owner, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
	})
	if err != nil {
		return note{}, fmt.Errorf("beginning the upload of %s to bucket %s: %w", key, c.Bucket, err)
	}
	n := note{Key: key, UploadID: aws.ToString(out.UploadId), PartSize: c.partSize(), SHA256: sum}
	return n, c.remember(n)
}

// listParts returns the parts that are there, by number.
func (c *Client) listParts(ctx context.Context, n note) (map[int32]types.CompletedPart, error) {
	have := map[int32]types.CompletedPart{}
	in := &sdk.ListPartsInput{Bucket: &c.Bucket, Key: &n.Key, UploadId: &n.UploadID, ExpectedBucketOwner: &c.Owner}
	for {
		out, err := c.API.ListParts(ctx, in)
		if statusOf(err) == http.StatusNotFound {
			return nil, errGone
		}
		if err != nil {
			return nil, fmt.Errorf("listing the parts of %s in bucket %s: %w", n.Key, c.Bucket, err)
		}
		for _, p := range out.Parts {
			have[aws.ToInt32(p.PartNumber)] = types.CompletedPart{PartNumber: p.PartNumber, ETag: p.ETag, ChecksumCRC32: p.ChecksumCRC32}
		}
		if !aws.ToBool(out.IsTruncated) || aws.ToString(out.NextPartNumberMarker) == "" {
			return have, nil
		}
		in.PartNumberMarker = out.NextPartNumberMarker
	}
}

// sendParts sends the parts that are missing and adds them to have.
func (c *Client) sendParts(ctx context.Context, n note, file io.ReaderAt, size int64, have map[int32]types.CompletedPart, sent func(done, total int64)) (bytes int64, err error) {
	var mu sync.Mutex
	done := int64(0)
	tell := func(length int64, isNew bool) {
		mu.Lock()
		done += length
		if isNew {
			bytes += length
		}
		now := done
		mu.Unlock()
		sent(now, size)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.parallel())
	for number, at := int32(1), int64(0); at < size; number, at = number+1, at+n.PartSize {
		length := min(n.PartSize, size-at)
		mu.Lock()
		_, there := have[number]
		mu.Unlock()
		if there {
			tell(length, false)
			continue
		}
		group.Go(func() error {
			out, err := c.API.UploadPart(ctx, &sdk.UploadPartInput{
				Bucket: &c.Bucket, Key: &n.Key, UploadId: &n.UploadID, PartNumber: aws.Int32(number), ExpectedBucketOwner: &c.Owner,
				Body: io.NewSectionReader(file, at, length), ContentLength: aws.Int64(length), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
			})
			if statusOf(err) == http.StatusNotFound {
				return errGone
			}
			if err != nil {
				return fmt.Errorf("uploading part %d of %s to bucket %s: %w", number, n.Key, c.Bucket, err)
			}
			mu.Lock()
			have[number] = types.CompletedPart{PartNumber: aws.Int32(number), ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}
			mu.Unlock()
			tell(length, true)
			return nil
		})
	}
	err = group.Wait()
	return bytes, err
}

// complete puts the parts together, unless the object is there.
func (c *Client) complete(ctx context.Context, n note, have map[int32]types.CompletedPart) error {
	list := make([]types.CompletedPart, len(have))
	for number, p := range have {
		if int(number) > len(list) {
			return fmt.Errorf("uploading %s to bucket %s: it has a part %d of %d", n.Key, c.Bucket, number, len(list))
		}
		list[number-1] = p
	}
	_, err := c.API.CompleteMultipartUpload(ctx, &sdk.CompleteMultipartUploadInput{
		Bucket: &c.Bucket, Key: &n.Key, UploadId: &n.UploadID, ExpectedBucketOwner: &c.Owner, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: list},
	})
	switch {
	case err == nil, standsAlready(err):
		return nil
	case statusOf(err) == http.StatusNotFound:
		return errGone
	}
	return fmt.Errorf("completing the upload of %s to bucket %s: %w", n.Key, c.Bucket, err)
}

// noteFile is where the note of a key is.
func (c *Client) noteFile(key string) string {
	sum := sha256.Sum256([]byte(c.Bucket + "/" + key))
	return filepath.Join(c.Notes, hex.EncodeToString(sum[:16])+".json")
}

func (c *Client) remembered(key string) (note, bool) {
	var n note
	if c.Notes == "" {
		return n, false
	}
	body, err := os.ReadFile(c.noteFile(key))
	if err != nil || json.Unmarshal(body, &n) != nil {
		return note{}, false // without a note it begins anew
	}
	return n, true
}

func (c *Client) remember(n note) error {
	if c.Notes == "" {
		return nil
	}
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("noting an upload: %w", err)
	}
	if err := os.MkdirAll(c.Notes, 0o700); err != nil {
		return fmt.Errorf("noting an upload: %w", err)
	}
	file := c.noteFile(n.Key)
	if err := os.WriteFile(file+".tmp", body, 0o600); err != nil {
		return fmt.Errorf("noting an upload: %w", err)
	}
	if err := os.Rename(file+".tmp", file); err != nil {
		return fmt.Errorf("noting an upload: %w", err)
	}
	return nil
}

func (c *Client) forget(key string) {
	if c.Notes != "" {
		os.Remove(c.noteFile(key))
	}
}
