package asset

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// zipTime is the modification time of every entry, so that equal content gives equal bytes. The CDK CLI uses
// the same, the earliest that the format can hold.
var zipTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// zipped archives source into a temporary file. cleanup removes it.
func zipped(ctx context.Context, source, tempDir string) (body io.ReadSeeker, size int64, cleanup func(), err error) {
	f, err := os.CreateTemp(tempDir, "slipway-asset-*.zip")
	if err != nil {
		// %v: a temporary directory that does not exist must not pass for a source that does not.
		return nil, 0, nil, fmt.Errorf("zipping it: %v", err) //nolint:errorlint // see above
	}
	cleanup = func() {
		f.Close()
		os.Remove(f.Name())
	}
	if err = writeZip(ctx, f, source); err == nil {
		size, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		cleanup()
		// A file that vanishes while it is archived is not an asset without a source.
		if errors.Is(err, fs.ErrNotExist) {
			return nil, 0, nil, fmt.Errorf("zipping it: %v", err) //nolint:errorlint // see above
		}
		return nil, 0, nil, fmt.Errorf("zipping it: %w", err)
	}
	return f, size, cleanup, nil
}

// writeZip writes source as a zip archive: the content of a directory at the root of the archive, or a file
// under its own name. Entries are sorted by path; symbolic links are followed and stored as what they point
// to; permission bits are kept; empty directories are left out. All of this is what the CDK CLI does
// (@aws-cdk/cdk-assets-lib, zipDirectory). The same content always gives the same bytes.
func writeZip(ctx context.Context, w io.Writer, source string) error {
	files, err := list(source)
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := addFile(z, f); err != nil {
			return err
		}
	}
	return z.Close()
}

type file struct {
	name string // in the archive, with slashes
	path string // on the disk
	mode fs.FileMode
}

// list returns the files below source, sorted by name.
func list(source string) ([]file, error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []file{{name: filepath.Base(source), path: source, mode: info.Mode()}}, nil
	}
	var files []file
	if err := walk(source, "", nil, &files); err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// walk collects the files of one directory and of those below it, links followed. above holds the real
// paths of the directories that lead here: meeting one again is a circle of links.
func walk(dir, prefix string, above []string, files *[]file) error {
	realPath, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if slices.Contains(above, realPath) {
		return fmt.Errorf("the symbolic link %s leads back to a directory above it", dir)
	}
	above = append(above[:len(above):len(above)], realPath)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch {
		case err != nil && e.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("the symbolic link %s leads nowhere", path)
		case err != nil:
			return err
		case info.IsDir():
			if err := walk(path, prefix+e.Name()+"/", above, files); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			*files = append(*files, file{name: prefix + e.Name(), path: path, mode: info.Mode()})
		default:
			return fmt.Errorf("%s is neither a file nor a directory", path)
		}
	}
	return nil
}

func addFile(z *zip.Writer, f file) error {
	h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: zipTime}
	h.SetMode(f.mode.Perm())
	w, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	r, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	return err
}
