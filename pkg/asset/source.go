package asset

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
)

// Source holds the files of assets that are not on the disk. Implementations must be safe for concurrent use.
type Source interface {
	// Files returns the files at or below a path, the Path of an asset, sorted by name, and what reads them. The Name of
	// a file is as for the function Files, the Path for Copy. The error has fs.ErrNotExist where there are none.
	Files(ctx context.Context, path string) ([]File, Copy, error)
}

// Copy writes the content of a file to w. What was written before an error is not its content.
type Copy func(ctx context.Context, w io.Writer, path string) error

// Check refuses, as diag.Diagnostics, the kinds of asset that Publish can't publish: container images, and what a
// command has to make. It looks at the asset alone.
func Check(a assembly.Asset) error { return supported(a) }

// fetch is open for an asset whose files are in a Source: what is to be stored is put together in a temporary file, and
// nothing is stored of what was damaged on the way.
func (p *Publisher) fetch(ctx context.Context, a assembly.Asset) (body io.ReadSeeker, size int64, cleanup func(), err error) {
	files, read, err := p.Source.Files(ctx, a.Path)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("reading its source: %w", err)
	}
	if a.Packaging != "zip" && (len(files) != 1 || files[0].Path != a.Path) {
		return nil, 0, nil, notAFile(a)
	}
	f, err := os.CreateTemp(p.TempDir, "slipway-asset-*")
	if err != nil {
		return nil, 0, nil, fmt.Errorf("making room for it: %v", err) //nolint:errorlint // a missing temporary directory is not a missing source
	}
	cleanup = func() {
		f.Close()
		os.Remove(f.Name())
	}
	if a.Packaging == "zip" {
		err = writeZipOf(ctx, f, files, read)
	} else {
		err = read(ctx, f, files[0].Path)
	}
	if err == nil {
		size, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		cleanup()
		return nil, 0, nil, fmt.Errorf("reading its source: %w", err)
	}
	return f, size, cleanup, nil
}

// writeZipOf is writeZip for the files of a Source.
func writeZipOf(ctx context.Context, w io.Writer, files []File, read Copy) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		to, err := entry(z, f.Name, f.Mode)
		if err != nil {
			return err
		}
		if err := read(ctx, to, f.Path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%v", err) //nolint:errorlint // a file that vanishes is not an asset without a source
			}
			return err
		}
	}
	return z.Close()
}

func notAFile(a assembly.Asset) error {
	return diag.Diagnostics{{
		Severity: diag.Error,
		Summary:  "the asset " + label(a) + " cannot be published",
		Detail:   "its packaging is file, and " + a.Path + " is not a file",
		Next:     "Synthesize the app again.",
	}}
}
