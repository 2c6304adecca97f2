package upload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/slipway-cdk/slipway/pkg/upload/uploadtest"
)

const owner = "111122223333"

func client(t *testing.T, b *uploadtest.Bucket) *Client {
	t.Helper()
	b.Owner = owner
	return &Client{API: b, Bucket: "uploads", Owner: owner, Notes: filepath.Join(t.TempDir(), "notes"), TempDir: t.TempDir(), PartSize: 1 << 10, Parallel: 1}
}

// large is a package of several parts that do not compress.
func large(t *testing.T) *Package {
	t.Helper()
	asm := app(t)
	body := make([]byte, 5<<10)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range body {
		body[i] = byte(random.Uint32())
	}
	if err := os.WriteFile(filepath.Join(asm.Dir, "asset.2.txt"), body, 0o644); err != nil {
		t.Fatal(err)
	}
	p, _ := pack(t, asm)
	return p
}

func count(calls []string, name string) int {
	return len(slices.DeleteFunc(calls, func(c string) bool { return c != name }))
}

func TestUploadSkipsWhatIsThere(t *testing.T) {
	b := &uploadtest.Bucket{}
	c := client(t, b)
	c.PartSize = 0
	p, archive := pack(t, app(t))
	out, err := c.Upload(context.Background(), "uploads/me/"+p.Digest+".zip", p, nil)
	if err != nil || out.Present || out.Sent != int64(len(archive)) {
		t.Fatalf("%+v, %v", out, err)
	}
	if body, _ := b.Body("uploads/me/" + p.Digest + ".zip"); !bytes.Equal(body, archive) {
		t.Error("another archive was stored")
	}
	if out, err := c.Upload(context.Background(), "uploads/me/"+p.Digest+".zip", p, nil); err != nil || !out.Present || count(b.Calls(), "PutObject") != 1 {
		t.Errorf("%+v, %v: %v", out, err, b.Calls())
	}
	if left, _ := os.ReadDir(c.TempDir); len(left) != 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

// unlisted is a bucket as a caller sees it who may not list it.
type unlisted struct{ *uploadtest.Bucket }

func (u unlisted) HeadObject(ctx context.Context, in *sdk.HeadObjectInput, opts ...func(*sdk.Options)) (*sdk.HeadObjectOutput, error) {
	out, err := u.Bucket.HeadObject(ctx, in, opts...)
	if err != nil {
		return nil, &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusForbidden}}, Err: errors.New("Forbidden")}
	}
	return out, nil
}

func TestUploadNeedsNoPermissionToList(t *testing.T) {
	b := &uploadtest.Bucket{}
	c := client(t, b)
	c.API, c.PartSize = unlisted{b}, 0
	p, _ := pack(t, app(t))
	for _, present := range []bool{false, true} {
		if out, err := c.Upload(context.Background(), "uploads/me/"+p.Digest+".zip", p, nil); err != nil || out.Present != present {
			t.Errorf("%+v, %v", out, err)
		}
	}
}

func TestUploadGoesOnWhereAnEarlierProcessHasStopped(t *testing.T) {
	b := &uploadtest.Bucket{}
	c := client(t, b)
	p := large(t)
	sent := 0
	b.Fail = func(call, _ string) error {
		if call == "UploadPart" {
			if sent++; sent > 3 {
				return uploadtest.Status(http.StatusServiceUnavailable)
			}
		}
		return nil
	}
	if _, err := c.Upload(context.Background(), "k", p, nil); err == nil {
		t.Fatal("it has not failed")
	}
	b.Fail = nil
	var mu sync.Mutex
	first, last := int64(-1), int64(0)
	out, err := c.Upload(context.Background(), "k", p, func(done, _ int64) {
		mu.Lock()
		defer mu.Unlock()
		if first < 0 {
			first = done
		}
		last = max(last, done)
	})
	if err != nil || out.Sent != out.Bytes-3<<10 || first != 0 || last != out.Bytes {
		t.Fatalf("%+v, %v, told of %d, at last of %d", out, err, first, last)
	}
	body, _ := b.Body("k")
	r, err := open(body)
	if err != nil || r.Digest() != p.Digest {
		t.Errorf("the archive is not what was packed: %v", err)
	}
	if n := count(b.Calls(), "CreateMultipartUpload"); n != 1 {
		t.Errorf("%d uploads were begun", n)
	}
	if left, _ := os.ReadDir(c.Notes); len(left) != 0 {
		t.Errorf("notes are left: %v", left)
	}
}

func TestUploadBeginsAnew(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, c *Client, b *uploadtest.Bucket)
	}{
		{"when the parts are gone", func(t *testing.T, c *Client, b *uploadtest.Bucket) {
			n, ok := c.remembered("k")
			if !ok {
				t.Fatal("there is no note")
			}
			if _, err := b.AbortMultipartUpload(context.Background(), &sdk.AbortMultipartUploadInput{Key: aws.String("k"), UploadId: &n.UploadID, ExpectedBucketOwner: aws.String(owner)}); err != nil {
				t.Fatal(err)
			}
		}},
		{"when the parts are of another size", func(_ *testing.T, c *Client, _ *uploadtest.Bucket) { c.PartSize = 2 << 10 }},
		{"when the note is damaged", func(t *testing.T, c *Client, _ *uploadtest.Bucket) {
			if err := os.WriteFile(c.noteFile("k"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &uploadtest.Bucket{}
			c := client(t, b)
			p := large(t)
			b.Fail = func(call, _ string) error {
				if call == "CompleteMultipartUpload" {
					return uploadtest.Status(http.StatusServiceUnavailable)
				}
				return nil
			}
			if _, err := c.Upload(context.Background(), "k", p, nil); err == nil {
				t.Fatal("it has not failed")
			}
			b.Fail = nil
			tt.change(t, c, b)
			out, err := c.Upload(context.Background(), "k", p, nil)
			if err != nil || out.Sent != out.Bytes {
				t.Fatalf("%+v, %v", out, err)
			}
			if _, ok := b.Body("k"); !ok {
				t.Error("nothing was stored")
			}
		})
	}
}

func TestUploadTakesALostAnswerForWhatItIs(t *testing.T) {
	b := &uploadtest.Bucket{}
	c := client(t, b)
	p := large(t)
	// The archive appears between the look and the end: by another process, or by the first try of this request.
	b.Fail = func(call, key string) error {
		if call == "CompleteMultipartUpload" {
			b.Store(key, []byte("the same"))
		}
		return nil
	}
	if _, err := c.Upload(context.Background(), "k", p, nil); err != nil {
		t.Fatal(err)
	}
	if body, _ := b.Body("k"); string(body) != "the same" {
		t.Error("it was overwritten")
	}
}

func TestUploadRefusesABucketOfSomebodyElse(t *testing.T) {
	b := &uploadtest.Bucket{}
	c := client(t, b)
	b.Owner = "999999999999"
	p, _ := pack(t, app(t))
	if _, err := c.Upload(context.Background(), "k", p, nil); err == nil {
		t.Error("it was uploaded")
	}
}

func TestObjectReadsByRange(t *testing.T) {
	b := &uploadtest.Bucket{Owner: owner}
	body := make([]byte, 3*blockSize+100)
	for i := range body {
		body[i] = byte(i * 7 / 3)
	}
	v := b.Store("k", body)
	o, err := OpenObject(context.Background(), b, "uploads", owner, Ref{Key: "k"})
	if err != nil || o.Size != int64(len(body)) || o.Ref.Version != v {
		t.Fatalf("%+v, %v", o, err)
	}
	b.Store("k", []byte("something else")) // a later version is not read
	at := make([]byte, 50)
	if n, err := o.ReadAt(at, blockSize-20); n != 50 || err != nil || !bytes.Equal(at, body[blockSize-20:blockSize+30]) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := o.ReadAt(at, int64(len(body))-10); n != 10 || !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := o.ReadAt(at, 100); err != nil {
		t.Error(err)
	}
	if n := count(b.Calls(), "GetObject"); n != 3 {
		t.Errorf("%d requests for three blocks", n)
	}
	if _, err := OpenObject(context.Background(), b, "uploads", owner, Ref{Key: "none"}); !errors.Is(err, ErrNoUpload) {
		t.Errorf("%v", err)
	}
}

// cut breaks off the bodies of the first answers.
type cut struct {
	*uploadtest.Bucket
	times int
}

func (c *cut) GetObject(ctx context.Context, in *sdk.GetObjectInput, o ...func(*sdk.Options)) (*sdk.GetObjectOutput, error) {
	out, err := c.Bucket.GetObject(ctx, in, o...)
	if err == nil && c.times > 0 {
		c.times--
		out.Body = io.NopCloser(io.LimitReader(out.Body, 5))
	}
	return out, err
}

// whole leaves ranges out of account.
type whole struct{ *uploadtest.Bucket }

func (w whole) GetObject(ctx context.Context, in *sdk.GetObjectInput, o ...func(*sdk.Options)) (*sdk.GetObjectOutput, error) {
	in.Range = nil
	out, err := w.Bucket.GetObject(ctx, in, o...)
	if err == nil {
		out.ContentRange = nil
	}
	return out, err
}

func TestObjectReadsFromWhoeverAnswersWithAllOfIt(t *testing.T) {
	b := whole{&uploadtest.Bucket{Owner: owner}}
	body := bytes.Repeat([]byte("0123456789"), blockSize/5)
	b.Store("k", body)
	o, err := OpenObject(context.Background(), b, "uploads", owner, Ref{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	if _, err := o.ReadAt(got, blockSize+33); err != nil || !bytes.Equal(got, body[blockSize+33:blockSize+133]) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestObjectAsksAgainForABodyThatBreaksOff(t *testing.T) {
	for times, ok := range map[int]bool{3: true, 4: false} {
		b := &cut{Bucket: &uploadtest.Bucket{Owner: owner}, times: times}
		b.Store("k", []byte("hello world"))
		o, err := OpenObject(context.Background(), b, "uploads", owner, Ref{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 11)
		if _, err := o.ReadAt(got, 0); (err == nil) != ok || ok && string(got) != "hello world" {
			t.Errorf("broken %d times: %q, %v", times, got, err)
		} else if !ok && (errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "5 bytes of 11")) {
			t.Errorf("%v", err)
		}
	}
}
