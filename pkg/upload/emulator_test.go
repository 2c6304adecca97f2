//go:build emulators

package upload

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
)

// TestUploadingAndReadingOnAnEmulator sends an archive as a whole and one in parts, the latter in two goes, and reads
// both by range.
func TestUploadingAndReadingOnAnEmulator(t *testing.T) {
	cfg := emulators.Config(t)
	api := s3.NewClient(cfg, "")
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	bucket, owner := "slipway-test-"+hex.EncodeToString(b[:]), aws.ToString(who.Account)
	if _, err := api.CreateBucket(t.Context(), &sdk.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.PutBucketVersioning(t.Context(), &sdk.PutBucketVersioningInput{Bucket: &bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}}); err != nil {
		t.Fatal(err)
	}
	small, _ := pack(t, app(t))
	big := app(t)
	body := make([]byte, 12<<20)
	_, _ = rand.Read(body) // never fails
	if err := os.WriteFile(filepath.Join(big.Dir, "asset.2.txt"), body, 0o644); err != nil {
		t.Fatal(err)
	}
	large, _ := pack(t, big)
	c := &Client{API: api, Bucket: bucket, Owner: owner, Notes: t.TempDir(), TempDir: t.TempDir(), PartSize: 5 << 20}
	for name, p := range map[string]*Package{"small": small, "large": large} {
		t.Run(name, func(t *testing.T) {
			key := "uploads/AIDAX:me/" + p.Digest + ".zip"
			if name == "large" {
				// The first part is there from an earlier try.
				n, err := c.begun(t.Context(), key, sumOf(t, p))
				if err != nil {
					t.Fatal(err)
				}
				var archive bytes.Buffer
				if _, err := p.WriteTo(&archive); err != nil {
					t.Fatal(err)
				}
				if _, err := api.UploadPart(t.Context(), &sdk.UploadPartInput{
					Bucket: &bucket, Key: &key, UploadId: &n.UploadID, PartNumber: aws.Int32(1), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
					Body: bytes.NewReader(archive.Bytes()[:c.PartSize]),
				}); err != nil {
					t.Fatal(err)
				}
			}
			out, err := c.Upload(t.Context(), key, p, nil)
			if err != nil || out.Present || name == "large" && out.Sent != out.Bytes-c.PartSize {
				t.Fatalf("%+v, %v", out, err)
			}
			if out, err := c.Upload(t.Context(), key, p, nil); err != nil || !out.Present {
				t.Errorf("the second time: %+v, %v", out, err)
			}
			object, err := OpenObject(t.Context(), api, bucket, owner, Ref{Key: key})
			if err != nil || object.Ref.Version == "" {
				t.Fatalf("%+v, %v", object, err)
			}
			r, err := Open(object, object.Size, DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Verify(p.Digest); err != nil {
				t.Error(err)
			}
			if asm, err := assembly.ReadFS(r.FS()); err != nil || len(asm.Stacks) != 2 {
				t.Errorf("%v, %v", asm, err)
			}
			var asset bytes.Buffer
			if _, err := r.Copy(&asset, "asset.2.txt"); err != nil || name == "large" && !bytes.Equal(asset.Bytes(), body) {
				t.Errorf("the asset: %v", err)
			}
		})
	}
	if _, err := OpenObject(t.Context(), api, bucket, owner, Ref{Key: "none"}); !isNoUpload(err) {
		t.Errorf("%v", err)
	}
}

func isNoUpload(err error) bool { return errors.Is(err, ErrNoUpload) }

// sumOf is the digest of the archive as a whole.
func sumOf(t *testing.T, p *Package) string {
	t.Helper()
	sum := sha256.New()
	if _, err := p.WriteTo(sum); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
