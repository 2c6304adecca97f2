package upload

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
)

// app writes a cloud assembly with one of everything, and reads it.
func app(t testing.TB) *assembly.Assembly {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"manifest.json": `{"version": "48.0.0", "artifacts": {
			"Stage": {"type": "cdk:cloud-assembly", "properties": {"directoryName": "assembly-Stage"}},
			"A.assets": {"type": "cdk:asset-manifest", "properties": {"file": "A.assets.json"}},
			"A": {"type": "aws:cloudformation:stack", "displayName": "A", "dependencies": ["A.assets"], "additionalMetadataFile": "A.metadata.json",
				"properties": {"templateFile": "A.template.json"}}}}`,
		"A.metadata.json": `{}`,
		"A.template.json": `{"Resources": {"Child": {"Type": "AWS::CloudFormation::Stack", "Metadata": {"aws:asset:path": "Child.nested.template.json"}}}}`,
		"Child.nested.template.json": `{"Resources": {"Grand": {"Type": "AWS::CloudFormation::Stack", "Metadata": {"aws:asset:path": "Grand.nested.template.json"}},
			"Again": {"Type": "AWS::CloudFormation::Stack", "Metadata": {"aws:asset:path": "Child.nested.template.json"}}}}`,
		"Grand.nested.template.json": `{"Resources": {}}`,
		"A.assets.json": `{"version": "48.0.0", "files": {
			"1": {"source": {"path": "asset.1", "packaging": "zip"}, "destinations": {"d": {"bucketName": "b", "objectKey": "1.zip"}}},
			"2": {"source": {"path": "asset.2.txt", "packaging": "file"}, "destinations": {"d": {"bucketName": "b", "objectKey": "2.txt"}}}}}`,
		"asset.1/index.js":   "exports.handler = 1",
		"asset.1/bin/run.sh": "#!/bin/sh",
		"asset.2.txt":        "two",
		"asset.old/left.js":  "of an earlier synthesis",
		"tree.json":          "{}",
		"assembly-Stage/manifest.json": `{"version": "48.0.0", "artifacts": {
			"B": {"type": "aws:cloudformation:stack", "displayName": "Stage/B", "properties": {"templateFile": "B.template.json", "stackName": "Stage-B"}}}}`,
		"assembly-Stage/B.template.json": `{"Resources": {}}`,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o640)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o750
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	asm, err := assembly.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return asm
}

// pack gathers and packs an assembly with all its stacks.
func pack(t testing.TB, asm *assembly.Assembly) (*Package, []byte) {
	t.Helper()
	p, err := Gather(context.Background(), asm, asm.Stacks)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := p.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("%d of %d bytes, %v", n, b.Len(), err)
	}
	return p, b.Bytes()
}

func TestPackHoldsWhatADeployNeedsAndNothingElse(t *testing.T) {
	_, archive := pack(t, app(t))
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range z.File {
		got = append(got, f.Name+" "+f.Mode().String())
	}
	want := []string{
		"slipway-index.json -rw-r--r--", "A.assets.json -rw-r--r--", "A.metadata.json -rw-r--r--", "A.template.json -rw-r--r--",
		"Child.nested.template.json -rw-r--r--", "Grand.nested.template.json -rw-r--r--", "assembly-Stage/B.template.json -rw-r--r--",
		"assembly-Stage/manifest.json -rw-r--r--", "asset.1/bin/run.sh -rwxr-xr-x", "asset.1/index.js -rw-r--r--",
		"asset.2.txt -rw-r--r--", "manifest.json -rw-r--r--",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the archive has %q", got)
	}
}

func TestPackIsDeterministic(t *testing.T) {
	one, first := pack(t, app(t))
	two, second := pack(t, app(t))
	if one.Digest != two.Digest || !bytes.Equal(first, second) {
		t.Error("equal assemblies give different archives")
	}
	changed := app(t)
	if err := os.WriteFile(filepath.Join(changed.Dir, "asset.2.txt"), []byte("three"), 0o644); err != nil {
		t.Fatal(err)
	}
	if three, _ := pack(t, changed); three.Digest == one.Digest {
		t.Error("another asset has the same digest")
	}
}

func TestPackAndReadAgain(t *testing.T) {
	asm := app(t)
	p, archive := pack(t, asm)
	r, err := Open(bytes.NewReader(archive), int64(len(archive)), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Verify(p.Digest); err != nil {
		t.Fatal(err)
	}
	again, err := assembly.ReadFS(r.FS())
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range asm.Stacks {
		if got := again.Stacks[i]; got.Name != s.Name || !bytes.Equal(got.Template, s.Template) || len(got.Assets) != len(s.Assets) {
			t.Errorf("stack %s came back as %+v", s.Name, got)
		}
	}
	files := r.Files("asset.1")
	if len(files) != 2 || files[0].Path != "asset.1/bin/run.sh" || files[0].Mode != 0o755 {
		t.Errorf("the asset has %+v", files)
	}
	var b bytes.Buffer
	if n, err := r.Copy(&b, "asset.1/index.js"); err != nil || b.String() != "exports.handler = 1" || n != int64(b.Len()) {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestGatherRefuses(t *testing.T) {
	ctx := context.Background()
	t.Run("an image", func(t *testing.T) {
		asm := app(t)
		for _, s := range asm.Stacks {
			if s.Name == "A" {
				s.Assets[0].Kind = assembly.AssetImage
			}
		}
		if _, err := Gather(ctx, asm, asm.Stacks); err == nil || !strings.Contains(err.Error(), "container image") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a missing source", func(t *testing.T) {
		asm := app(t)
		if err := os.RemoveAll(filepath.Join(asm.Dir, "asset.1")); err != nil {
			t.Fatal(err)
		}
		if _, err := Gather(ctx, asm, asm.Stacks); err == nil || !strings.Contains(err.Error(), "asset.1 does not exist") {
			t.Errorf("%v", err)
		}
		// The assets of stacks that are not meant may be missing.
		for _, s := range asm.Stacks {
			if s.Name == "Stage-B" {
				if _, err := Gather(ctx, asm, []*assembly.Stack{s}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	t.Run("a name that means another file elsewhere", func(t *testing.T) {
		asm := app(t)
		if err := os.WriteFile(filepath.Join(asm.Dir, "asset.1", "INDEX.js"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Gather(ctx, asm, asm.Stacks); err == nil || !strings.Contains(err.Error(), "in case only") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a file that changes", func(t *testing.T) {
		asm := app(t)
		p, err := Gather(ctx, asm, asm.Stacks)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(asm.Dir, "asset.2.txt"), []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := p.WriteTo(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "asset.2.txt has changed") {
			t.Errorf("%v", err)
		}
	})
}
