package asset

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/assembly"
)

var env = Env{Account: "111122223333", Region: "cn-north-1"}

func put(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// code is a directory asset with one of everything that matters for a zip.
func code(t *testing.T) assembly.Asset {
	t.Helper()
	dir := t.TempDir()
	src := filepath.Join(dir, "code")
	put(t, filepath.Join(src, "index.js"), "exports.handler = 1", 0o644)
	put(t, filepath.Join(src, "bin/run.sh"), "#!/bin/sh", 0o755)
	put(t, filepath.Join(src, ".hidden"), "h", 0o600)
	put(t, filepath.Join(src, "bin.txt"), "sorts between bin and bin/", 0o644)
	put(t, filepath.Join(dir, "outside/lib.js"), "lib", 0o644)
	link(t, "index.js", filepath.Join(src, "alias.js"))
	link(t, filepath.Join("..", "outside"), filepath.Join(src, "vendor"))
	if err := os.Mkdir(filepath.Join(src, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	return assembly.Asset{
		ID: "h1", Kind: assembly.AssetFile, DisplayName: "Web/Code", Path: src, Packaging: "zip",
		Destinations: []assembly.Destination{{ID: "d", Bucket: "assets-${AWS::AccountId}-${AWS::Region}-${AWS::Partition}", Key: "code/h1.zip"}},
	}
}

const codeBucket = "assets-111122223333-cn-north-1-aws-cn"

func TestPublishZipsADirectory(t *testing.T) {
	store := LocalBucket{Dir: t.TempDir()}
	p := Publisher{Bucket: store, TempDir: t.TempDir()}
	a := code(t)
	out, err := p.Publish(context.Background(), a, env)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(store.Dir, codeBucket, "code", "h1.zip")
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Outcome{Status: Published, Bytes: int64(len(first)), Destinations: []Location{{Bucket: codeBucket, Key: "code/h1.zip", Region: "cn-north-1"}}}
	if d := cmp.Diff(want, out); d != "" {
		t.Error(d)
	}
	z, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range z.File {
		if !f.Modified.Equal(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s was modified at %v", f.Name, f.Modified)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Mode().String()+" "+f.Name+" "+string(body))
	}
	if d := cmp.Diff([]string{
		"-rw------- .hidden h",
		"-rw-r--r-- alias.js exports.handler = 1",
		"-rw-r--r-- bin.txt sorts between bin and bin/",
		"-rwxr-xr-x bin/run.sh #!/bin/sh",
		"-rw-r--r-- index.js exports.handler = 1",
		"-rw-r--r-- vendor/lib.js lib",
	}, got); d != "" {
		t.Error(d)
	}
	if left, _ := os.ReadDir(p.TempDir); len(left) != 0 {
		t.Errorf("temporary files are left: %v", left)
	}

	// The same content at another time and place gives the same bytes.
	other := LocalBucket{Dir: t.TempDir()}
	if _, err := (&Publisher{Bucket: other}).Publish(context.Background(), code(t), env); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(filepath.Join(other.Dir, codeBucket, "code", "h1.zip"))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the archive is not reproducible: %d and %d bytes, %v", len(first), len(second), err)
	}
}

func TestPublishLeavesWhatIsThere(t *testing.T) {
	store := LocalBucket{Dir: t.TempDir()}
	put(t, filepath.Join(store.Dir, codeBucket, "code", "h1.zip"), "already", 0o644)
	a := code(t)
	a.Path = "/nowhere" // must not be looked at
	out, err := (&Publisher{Bucket: store}).Publish(context.Background(), a, env)
	if err != nil || out.Status != Present || out.Bytes != 0 {
		t.Errorf("outcome %+v, error %v", out, err)
	}
	if b, _ := os.ReadFile(filepath.Join(store.Dir, codeBucket, "code", "h1.zip")); string(b) != "already" {
		t.Error("the object was overwritten")
	}
}

func TestPublishWritesEveryDestinationThatIsMissing(t *testing.T) {
	store := LocalBucket{Dir: t.TempDir()}
	put(t, filepath.Join(store.Dir, "one", "k"), "old", 0o644)
	src := filepath.Join(t.TempDir(), "data.json")
	put(t, src, "new", 0o644)
	a := assembly.Asset{ID: "x", Kind: assembly.AssetFile, Path: src, Packaging: "file", Destinations: []assembly.Destination{
		{ID: "1", Bucket: "one", Key: "k"}, {ID: "2", Bucket: "two", Key: "k", Region: "us-east-1"}, {ID: "3", Bucket: "three", Key: "k"},
	}}
	out, err := (&Publisher{Bucket: store}).Publish(context.Background(), a, env)
	if err != nil || out.Status != Published || out.Bytes != 3 || out.Destinations[1].Region != "us-east-1" {
		t.Fatalf("outcome %+v, error %v", out, err)
	}
	for bucket, want := range map[string]string{"one": "old", "two": "new", "three": "new"} {
		if b, err := os.ReadFile(filepath.Join(store.Dir, bucket, "k")); err != nil || string(b) != want {
			t.Errorf("bucket %s has %q, want %q (%v)", bucket, b, want, err)
		}
	}
}

func TestPublishAZippedFileHoldsTheFile(t *testing.T) {
	src := filepath.Join(t.TempDir(), "one.txt")
	put(t, src, "1", 0o644)
	files, err := Files(src)
	if err != nil || len(files) != 1 || files[0].Name != "one.txt" {
		t.Errorf("files %v, error %v", files, err)
	}
}

func TestPublishMissingSource(t *testing.T) {
	for _, packaging := range []string{"zip", "file"} {
		a := code(t)
		a.Packaging = packaging
		a.Path = filepath.Join(t.TempDir(), "gone")
		p := Publisher{Bucket: LocalBucket{Dir: t.TempDir()}}
		if _, err := p.Publish(context.Background(), a, env); err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("%s: error %v", packaging, err)
		}
		p.Missing = SkipMissing
		out, err := p.Publish(context.Background(), a, env)
		if err != nil || out.Status != Skipped || !strings.Contains(out.Reason, "gone") || len(out.Destinations) != 1 {
			t.Errorf("%s: outcome %+v, error %v", packaging, out, err)
		}
	}
}

func TestPublishRefuses(t *testing.T) {
	base := code(t)
	with := func(change func(*assembly.Asset)) assembly.Asset {
		a := base
		a.Destinations = append([]assembly.Destination(nil), base.Destinations...)
		change(&a)
		return a
	}
	circle := t.TempDir()
	link(t, circle, filepath.Join(circle, "again"))
	dangling := t.TempDir()
	link(t, "nowhere", filepath.Join(dangling, "x"))
	tests := []struct {
		name  string
		asset assembly.Asset
		env   Env
		temp  string
		want  string
	}{
		{"an image", with(func(a *assembly.Asset) { a.Kind = assembly.AssetImage }), env, "", "container image"},
		{"an executable", with(func(a *assembly.Asset) { a.Executable = []string{"make"} }), env, "", "made by a command"},
		{"an unknown placeholder", with(func(a *assembly.Asset) { a.Destinations[0].Key = "${AWS::StackName}" }), env, "", "unknown placeholder"},
		{"a placeholder without value", base, Env{Region: "eu-west-1"}, "", "${AWS::AccountId} has no value"},
		{"a destination without bucket", with(func(a *assembly.Asset) { a.Destinations[0].Bucket = "" }), env, "", "no bucket"},
		{"a directory that is to be stored as a file", with(func(a *assembly.Asset) { a.Packaging = "file" }), env, "", "is not a file"},
		{"a circle of links", with(func(a *assembly.Asset) { a.Path = circle }), env, "", "leads back"},
		{"a link to nothing", with(func(a *assembly.Asset) { a.Path = dangling }), env, "", "leads nowhere"},
		{"a key that leads out of the bucket", with(func(a *assembly.Asset) { a.Destinations[0].Key = "../x" }), env, "", "cannot be stored"},
		{"a bucket that leads out of the store", with(func(a *assembly.Asset) { a.Destinations[0].Bucket = ".." }), env, "", "not a bucket name"},
		{"a temporary directory that is missing", base, env, "/no/such/dir", "zipping it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Publisher{Bucket: LocalBucket{Dir: t.TempDir()}, TempDir: tt.temp, Missing: SkipMissing}
			out, err := p.Publish(context.Background(), tt.asset, tt.env)
			if err == nil {
				t.Fatalf("was accepted: %+v", out)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not say %q", err, tt.want)
			}
		})
	}
}

func TestPublishTwiceAtOnce(t *testing.T) {
	store := LocalBucket{Dir: t.TempDir()}
	p := Publisher{Bucket: store}
	a := code(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = p.Publish(context.Background(), a, env) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(store.Dir, codeBucket, "code"))
	if err != nil || len(left) != 1 {
		t.Errorf("files %v, error %v", left, err)
	}
}

// brokenBody fails in the middle, as a disk or a crash would.
type brokenBody struct{ io.ReadSeeker }

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.ReadSeeker.Read(p[:min(len(p), 2)])
	if errors.Is(err, io.EOF) {
		return n, errors.New("broken")
	}
	return n, err
}

func TestLocalBucketLeavesNothingOfAFailedPut(t *testing.T) {
	b := LocalBucket{Dir: t.TempDir()}
	ctx := context.Background()
	if err := b.Put(ctx, "b", "k", brokenBody{strings.NewReader("1234")}, 4); err == nil {
		t.Error("a broken body was stored")
	}
	if err := b.Put(ctx, "b", "k", strings.NewReader("123"), 4); err == nil {
		t.Error("a short body was stored")
	}
	if ok, err := b.Exists(ctx, "b", "k"); ok || err != nil {
		t.Errorf("exists %v, error %v", ok, err)
	}
	if left, _ := os.ReadDir(filepath.Join(b.Dir, "b")); len(left) != 0 {
		t.Errorf("files are left: %v", left)
	}
}

func TestPublishStopsWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := (&Publisher{Bucket: LocalBucket{Dir: t.TempDir()}}).Publish(ctx, code(t), env)
	if !errors.Is(err, context.Canceled) && (err == nil || !strings.Contains(err.Error(), "canceled")) {
		t.Errorf("error %v", err)
	}
}

func TestPartitionOf(t *testing.T) {
	for region, want := range map[string]string{
		"eu-west-1": "aws", "": "aws", "cn-northwest-1": "aws-cn", "us-gov-west-1": "aws-us-gov", "us-iso-east-1": "aws-iso",
		"us-isob-east-1": "aws-iso-b", "eusc-de-east-1": "aws-eusc",
	} {
		if got := PartitionOf(region); got != want {
			t.Errorf("PartitionOf(%q) = %q, want %q", region, got, want)
		}
	}
}
