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
	files, err := Files(source)
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

// File is one file of an asset.
type File struct {
	Name string // below the source, with slashes; that of the source when it is a file itself
	Path string // on the disk
	Mode fs.FileMode
}

// Files returns the files that an asset's source holds, sorted by name. Symbolic links are followed.
func Files(source string) ([]File, error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []File{{Name: filepath.Base(source), Path: source, Mode: info.Mode()}}, nil
	}
	var files []File
	if err := walk(source, "", nil, &files); err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// walk collects the files of one directory and of those below it, links followed. above holds the real
// paths of the directories that lead here: meeting one again is a circle of links.
func walk(dir, prefix string, above []string, files *[]File) error {
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
			*files = append(*files, File{Name: prefix + e.Name(), Path: path, Mode: info.Mode()})
		default:
			return fmt.Errorf("%s is neither a file nor a directory", path)
		}
	}
	return nil
}

func addFile(z *zip.Writer, f File) error {
	w, err := entry(z, f.Name, f.Mode)
	if err != nil {
		return err
	}
	r, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	return err
}

// entry begins one entry of an asset's archive.
func entry(z *zip.Writer, name string, mode fs.FileMode) (io.Writer, error) {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: zipTime}
	h.SetMode(mode.Perm())
	return z.CreateHeader(h)
}
