package asset

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
)

// memory is a source of files in memory; broken ones fail in the middle.
type memory struct {
	files  []File
	broken string
}

func (m memory) Files(_ context.Context, path string) ([]File, Copy, error) {
	var out []File
	for _, f := range m.files {
		if f.Path == path || strings.HasPrefix(f.Path, path+"/") {
			f.Name = strings.TrimPrefix(f.Path, path+"/")
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return out, func(_ context.Context, w io.Writer, path string) error {
		if _, err := io.WriteString(w, "content of "+path); err != nil {
			return err
		}
		if path == m.broken {
			return errors.New("it is damaged")
		}
		return nil
	}, nil
}

func TestPublishFromASource(t *testing.T) {
	source := memory{files: []File{{Path: "code/a.js", Mode: 0o644}, {Path: "code/bin/run", Mode: 0o755}, {Path: "page.html", Mode: 0o644}}}
	publish := func(source Source, path, packaging string) (Outcome, string, error) {
		dir := t.TempDir()
		p := Publisher{Bucket: LocalBucket{Dir: dir}, Source: source, TempDir: t.TempDir()}
		out, err := p.Publish(context.Background(), assembly.Asset{
			ID: "x", Kind: assembly.AssetFile, Path: path, Packaging: packaging, Destinations: []assembly.Destination{{ID: "d", Bucket: "b", Key: "k"}},
		}, env)
		if left, _ := os.ReadDir(p.TempDir); len(left) != 0 {
			t.Errorf("temporary files are left: %v", left)
		}
		return out, filepath.Join(dir, "b", "k"), err
	}
	out, file, err := publish(source, "page.html", "file")
	if body, _ := os.ReadFile(file); err != nil || out.Status != Published || string(body) != "content of page.html" {
		t.Errorf("%+v, %q, %v", out, body, err)
	}
	if _, file, err = publish(source, "code", "zip"); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil || len(z.File) != 2 || z.File[0].Name != "a.js" || z.File[1].Name != "bin/run" || z.File[1].Mode() != 0o755 {
		t.Errorf("%v, %v", z, err)
	}
	for name, tt := range map[string]struct {
		source          Source
		path, packaging string
		want            string
	}{
		"a directory as a file": {source, "code", "file", "is not a file"},
		"nothing":               {source, "none", "zip", "does not exist"},
		"a damaged file":        {memory{source.files, "page.html"}, "page.html", "file", "damaged"},
		"a damaged entry":       {memory{source.files, "code/bin/run"}, "code", "zip", "damaged"},
	} {
		_, file, err := publish(tt.source, tt.path, tt.packaging)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: something was published: %v", name, err)
		}
	}
}
