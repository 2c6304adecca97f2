package assembly

import (
	"io/fs"
	"os"
	"path/filepath"
)

// files reads the files of an assembly by their absolute paths. The zero value reads the disk.
type files struct {
	// fsys holds the assembly instead, where it is set; root stands for its top.
	fsys fs.FS
	root string
}

// fsRoot is the directory that an assembly without one seems to be in.
const fsRoot = string(filepath.Separator) + "assembly"

// ReadFS reads a cloud assembly from a file system, as Read does from a directory. The paths in it begin with the Dir
// of the assembly, which is no directory of the disk: Rel makes them names in fsys.
func ReadFS(fsys fs.FS) (*Assembly, error) {
	return read(fsRoot, files{fsys: fsys, root: fsRoot})
}

// Rel is the name of a file of the assembly below its Dir, with slashes.
func (a *Assembly) Rel(path string) (string, error) {
	rel, err := filepath.Rel(a.Dir, path)
	return filepath.ToSlash(rel), err
}

// ReadFile reads a file of the assembly by its absolute path, from wherever the assembly was read.
func (a *Assembly) ReadFile(path string) ([]byte, error) { return a.files.read(path) }

func (f files) read(path string) ([]byte, error) {
	if f.fsys == nil {
		return os.ReadFile(path)
	}
	name, err := f.name(path)
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(f.fsys, name)
}

// there returns why a file or directory can't be had, nil when it can.
func (f files) there(path string) error {
	if f.fsys == nil {
		_, err := os.Stat(path)
		return err
	}
	name, err := f.name(path)
	if err != nil {
		return err
	}
	_, err = fs.Stat(f.fsys, name)
	return err
}

func (f files) name(path string) (string, error) {
	rel, err := filepath.Rel(f.root, path)
	if err != nil {
		return "", err
	}
	return filepath.ToSlash(rel), nil
}

// Documents are the absolute paths of the manifests, templates and metadata that were read, without the templates of
// nested stacks and the sources of assets. They are in the order in which they were read.
func (a *Assembly) Documents() []string { return append([]string(nil), a.documents...) }
