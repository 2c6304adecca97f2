package upload

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/diag"
)

// entryTime is the time of every entry, so that equal files give equal bytes: the earliest that a zip archive can hold.
var entryTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Package is an assembly that is about to be packed: its files are known, and so is what the archive will be named by.
type Package struct {
	// Digest names the archive.
	Digest string
	// Files and Size count what goes in, unpacked.
	Files int
	Size  int64

	index   []byte
	entries []Entry
	paths   map[string]string // on the disk, by path in the archive
}

// Gather finds the files that a deploy of the given stacks needs and digests them: the documents of the whole
// assembly, which refer to each other, and the assets of these stacks. What else is in the directory stays there: CDK
// leaves the assets of earlier runs in a cdk.out.
//
// It refuses, as diag.Diagnostics, assets that a control plane can't publish, files that are missing, and paths that
// would be refused at the other end.
func Gather(ctx context.Context, asm *assembly.Assembly, stacks []*assembly.Stack) (*Package, error) {
	g := gathering{asm: asm, paths: map[string]string{}}
	for _, path := range asm.Documents() {
		if err := g.file(path); err != nil {
			return nil, err
		}
	}
	for _, s := range asm.Stacks {
		if err := g.nested(s, s.NestedTemplates); err != nil {
			return nil, err
		}
	}
	for _, s := range stacks {
		for _, a := range s.Assets {
			if err := g.asset(a); err != nil {
				return nil, diag.From(err).InStack(s.Name)
			}
		}
	}
	return g.digest(ctx)
}

type gathering struct {
	asm   *assembly.Assembly
	paths map[string]string
}

// file adds one file by its path on the disk.
func (g *gathering) file(path string) error {
	name, err := g.asm.Rel(path)
	if err != nil {
		return fmt.Errorf("packing %s: %w", path, err)
	}
	g.paths[name] = path
	return nil
}

// nested adds the templates of nested stacks in all depths. Each is added once, which ends circles too.
func (g *gathering) nested(s *assembly.Stack, templates map[string]string) error {
	for _, path := range templates {
		if name, err := g.asm.Rel(path); err != nil || g.paths[name] != "" {
			continue
		}
		if err := g.file(path); err != nil {
			return err
		}
		body, err := g.asm.ReadFile(path)
		if err != nil {
			return fmt.Errorf("packing the template of a nested stack of %s: %w", s.Name, err)
		}
		inner, err := g.asm.Nested(s, path, body)
		if err != nil {
			return err
		}
		if err := g.nested(s, inner); err != nil {
			return err
		}
	}
	return nil
}

func (g *gathering) asset(a assembly.Asset) error {
	if err := asset.Check(a); err != nil {
		return err
	}
	files, err := asset.Files(a.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return diag.Diagnostics{{
			Severity: diag.Error, Summary: "the source of an asset is missing",
			Detail: a.Path + " does not exist", Next: "Synthesize the app again, or copy the whole cloud assembly.",
		}}
	}
	if err != nil {
		return fmt.Errorf("packing the asset %s: %w", a.ID, err)
	}
	base, err := g.asm.Rel(a.Path)
	if err != nil {
		return fmt.Errorf("packing the asset %s: %w", a.ID, err)
	}
	if info, err := os.Stat(a.Path); err == nil && info.IsDir() {
		for _, f := range files {
			g.paths[base+"/"+f.Name] = f.Path
		}
		return nil
	}
	g.paths[base] = a.Path
	return nil
}

// digest reads every file and makes the index.
func (g *gathering) digest(ctx context.Context) (*Package, error) {
	limits := DefaultLimits()
	p := &Package{paths: g.paths, Files: len(g.paths)}
	names := make([]string, 0, len(g.paths))
	for name := range g.paths {
		names = append(names, name)
	}
	slices.Sort(names)
	known := newNames()
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		why := checkName(name, limits.Name)
		switch {
		case name == IndexFile || name == OptionsFile:
			why = "has a name that uploads use themselves"
		case why == "":
			why = known.add(name)
		}
		if why != "" {
			return nil, notPackable(name, why)
		}
		e, err := entryOf(name, g.paths[name])
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		if e.Size > limits.File {
			return nil, notPackable(name, fmt.Sprintf("has %d bytes, and %d is the most", e.Size, limits.File))
		}
		p.Size += e.Size
		p.entries = append(p.entries, e)
	}
	if p.Size > limits.Total || p.Files > limits.Entries-1 {
		return nil, notPackable(g.asm.Dir, fmt.Sprintf("has %d files with %d bytes, and %d with %d is the most", p.Files, p.Size, limits.Entries-1, limits.Total))
	}
	var err error
	if p.index, err = (Index{Version: indexVersion, Files: p.entries}).encode(); err != nil {
		return nil, err
	}
	p.Digest = digestOf(p.index)
	return p, nil
}

func notPackable(name, why string) error {
	return diag.Diagnostics{{
		Severity: diag.Error, Summary: "the cloud assembly can't be uploaded", Detail: quoted(name) + " " + why,
		Next: "Change the app so that its assembly has no such file.",
	}}
}

// entryOf reads a file for the index.
func entryOf(name, path string) (Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Entry{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Path: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil)), Mode: portableMode(info.Mode())}, nil
}

// portableMode keeps of a file's mode what is the same on every machine: whether it can be executed. The rest is the
// umask of whoever has checked the app out.
func portableMode(mode fs.FileMode) fs.FileMode {
	if mode&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// WriteTo writes the archive. A file that has changed since it was digested is an error.
func (p *Package) WriteTo(w io.Writer) (int64, error) {
	count := &counter{w: w}
	z := zip.NewWriter(count)
	to, err := begin(z, Entry{Path: IndexFile, Mode: 0o644})
	if err == nil {
		_, err = to.Write(p.index)
	}
	for _, e := range p.entries {
		if err == nil {
			err = p.add(z, e)
		}
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return count.n, fmt.Errorf("packing the cloud assembly: %w", err)
	}
	return count.n, nil
}

func (p *Package) add(z *zip.Writer, e Entry) error {
	to, err := begin(z, e)
	if err != nil {
		return err
	}
	f, err := os.Open(p.paths[e.Path])
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(to, io.TeeReader(f, sum)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != e.SHA256 {
		return fmt.Errorf("%s has changed while it was packed", filepath.FromSlash(e.Path))
	}
	return nil
}

// begin begins an entry. What is packed already is stored as it is.
func begin(z *zip.Writer, e Entry) (io.Writer, error) {
	h := &zip.FileHeader{Name: e.Path, Method: zip.Deflate, Modified: entryTime}
	for _, ext := range []string{".zip", ".jar", ".gz", ".png", ".jpg", ".woff2"} {
		if strings.HasSuffix(e.Path, ext) {
			h.Method = zip.Store
		}
	}
	h.SetMode(e.Mode)
	return z.CreateHeader(h)
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
