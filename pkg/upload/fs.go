package upload

import (
	"bytes"
	"io/fs"
	"path"
	"time"
)

// FS is the archive as a file system of documents: each is read as a whole, and only if it is what the index says.
// Files larger than Limits.Document can't be read from it, nor more than Limits.Documents altogether.
func (r *Reader) FS() fs.FS { return documents{r} }

type documents struct{ r *Reader }

var (
	_ fs.ReadFileFS = documents{}
	_ fs.StatFS     = documents{}
)

// ReadFile implements fs.ReadFileFS.
func (d documents) ReadFile(name string) ([]byte, error) {
	f, e, err := d.r.find("open", name)
	if err != nil {
		return nil, err
	}
	if e.Size > d.r.limits.Document {
		return nil, refuse(name, "has %d bytes, and of a document %d is the most", e.Size, d.r.limits.Document)
	}
	if d.r.documents.Add(e.Size) > d.r.limits.Documents {
		return nil, refuse(name, "is one too many: the documents have more than %d bytes", d.r.limits.Documents)
	}
	var b bytes.Buffer
	b.Grow(int(min(e.Size, 1<<20)))
	if _, err := d.r.Copy(&b, f.Name); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Stat implements fs.StatFS.
func (d documents) Stat(name string) (fs.FileInfo, error) {
	if d.r.dirs[name] {
		return info{name: path.Base(name), mode: fs.ModeDir | 0o755}, nil
	}
	_, e, err := d.r.find("stat", name)
	if err != nil {
		return nil, err
	}
	return info{name: path.Base(name), size: e.Size, mode: e.Mode}, nil
}

// Open implements fs.FS.
func (d documents) Open(name string) (fs.File, error) {
	i, err := d.Stat(name)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		return openFile{Reader: bytes.NewReader(nil), info: i}, nil
	}
	body, err := d.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return openFile{Reader: bytes.NewReader(body), info: i}, nil
}

type openFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f openFile) Close() error               { return nil }

type info struct {
	name string
	size int64
	mode fs.FileMode
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
