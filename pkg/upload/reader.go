package upload

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
)

// bombFrom is the size, in bytes, from which an entry's ratio counts: small ones do no harm.
const bombFrom = 16 << 20

// Reader reads an archive. What it returns of a file is what the index says, or an error.
type Reader struct {
	limits Limits
	files  map[string]*zip.File
	dirs   map[string]bool
	order  []string // paths, sorted
	// index is by path; nil until the index is read or computed.
	index map[string]Entry
	// digest is that of the index; "" while there is none.
	digest string
	// documents counts the bytes that were read as documents.
	documents atomic.Int64
}

// Open looks at the structure of an archive of size bytes and at its index, if it has one. Nothing but the index is
// unpacked. Errors are *Refusal, or what r has failed with.
func Open(r io.ReaderAt, size int64, limits Limits) (*Reader, error) {
	records, err := checkStructure(r, size, limits)
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(r, size)
	if errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrInsecurePath) {
		return nil, refuse("", "it is not a zip archive that can be read")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the upload: %w", err)
	}
	if len(archive.File) != records {
		return nil, refuse("", "its list of entries does not have as many as it says")
	}
	out := &Reader{limits: limits, files: map[string]*zip.File{}, dirs: map[string]bool{".": true}}
	if err := out.take(archive.File); err != nil {
		return nil, err
	}
	if _, ok := out.files[IndexFile]; ok {
		return out, out.readIndex()
	}
	return out, nil
}

// take checks every entry by what the directory says of it.
func (r *Reader) take(files []*zip.File) error {
	known := newNames()
	var total uint64
	for _, f := range files {
		if why := checkName(f.Name, r.limits.Name); why != "" {
			return refuse(f.Name, "%s", why)
		}
		if why := r.checkEntry(f); why != "" {
			return refuse(f.Name, "%s", why)
		}
		if strings.HasSuffix(f.Name, "/") {
			r.dirs[strings.TrimSuffix(f.Name, "/")] = true
			continue
		}
		if why := known.add(f.Name); why != "" {
			return refuse(f.Name, "%s", why)
		}
		if total += f.UncompressedSize64; total > uint64(r.limits.Total) {
			return refuse(f.Name, "is one too many: unpacked, the archive has more than %d bytes", r.limits.Total)
		}
		r.files[f.Name] = f
		r.order = append(r.order, f.Name)
	}
	for dir := range r.dirs {
		if other, ok := known.files[fold(dir)]; ok {
			return refuse(other, "is a file and a directory")
		}
	}
	for _, dir := range known.dirs {
		r.dirs[dir] = true
	}
	slices.Sort(r.order)
	return nil
}

// checkEntry says what is wrong with an entry, apart from its name.
func (r *Reader) checkEntry(f *zip.File) string {
	isDir := strings.HasSuffix(f.Name, "/")
	switch mode := f.Mode(); {
	case f.Flags&1 != 0:
		return "is encrypted"
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return fmt.Sprintf("is packed with method %d, and only stored and deflated ones are read", f.Method)
	case mode&fs.ModeSymlink != 0:
		return "is a symbolic link"
	case isDir && (f.UncompressedSize64 != 0 || f.CompressedSize64 != 0 && f.Method == zip.Store):
		return "is a directory with content"
	case !isDir && !mode.IsRegular():
		return "is neither a file nor a directory"
	case f.UncompressedSize64 > uint64(r.limits.File):
		return fmt.Sprintf("has %d bytes, and %d is the most", f.UncompressedSize64, r.limits.File)
	case f.UncompressedSize64 > bombFrom && f.UncompressedSize64/uint64(r.limits.Ratio) > f.CompressedSize64:
		return fmt.Sprintf("has %d bytes that unpack to %d: it is a compression bomb", f.CompressedSize64, f.UncompressedSize64)
	case f.Method == zip.Store && f.CompressedSize64 != f.UncompressedSize64:
		return "is stored, and says that it has two sizes"
	}
	return ""
}

// readIndex reads the index and holds the entries against it.
func (r *Reader) readIndex() error {
	body, err := unpacked(r.files[IndexFile], r.limits.Document)
	if err != nil {
		return err
	}
	return r.Adopt(body)
}

// Adopt takes an encoded index for that of the archive and holds the entries against it. It is for an index that was
// computed and kept, see Index.
func (r *Reader) Adopt(body []byte) error {
	var x Index
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&x); err != nil {
		return refuse(IndexFile, "is not an index: %v", err)
	}
	if x.Version != indexVersion {
		return refuse(IndexFile, "has version %d, and this release reads version %d", x.Version, indexVersion)
	}
	index := make(map[string]Entry, len(x.Files))
	for i, e := range x.Files {
		switch {
		case i > 0 && e.Path <= x.Files[i-1].Path:
			return refuse(e.Path, "is not in the order of the index")
		case e.Path == IndexFile:
			return refuse(e.Path, "is the index and in the index")
		case r.files[e.Path] == nil:
			return refuse(e.Path, "is in the index and not in the archive")
		case e.Size < 0 || uint64(e.Size) != r.files[e.Path].UncompressedSize64:
			return refuse(e.Path, "has another size than the index says")
		case e.Mode != r.files[e.Path].Mode().Perm():
			return refuse(e.Path, "has another mode than the index says")
		}
		index[e.Path] = e
	}
	for _, name := range r.order {
		if _, ok := index[name]; !ok && name != IndexFile {
			return refuse(name, "is not in the index")
		}
	}
	r.index, r.digest = index, digestOf(body)
	return nil
}

// Digest is what the archive should be named by; "" when it has no index.
func (r *Reader) Digest() string { return r.digest }

// Index is the encoded index of the archive.
func (r *Reader) Index() ([]byte, error) {
	return Index{Version: indexVersion, Files: r.Files(".")}.encode()
}

// Verify refuses an archive that is not the one with this digest.
func (r *Reader) Verify(digest string) error {
	switch r.digest {
	case digest:
		return nil
	case "":
		return refuse("", "it has no index: %s is missing", IndexFile)
	}
	return refuse("", "its digest is %s and its name says %s", r.digest, digest)
}

// Compute makes the index of an archive that has none, reading all of it once.
func (r *Reader) Compute(ctx context.Context) error {
	if r.index != nil {
		return nil
	}
	index := map[string]Entry{}
	for _, name := range r.order {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := r.files[name]
		sum := sha256.New()
		n, err := unpack(sum, f)
		if err != nil {
			return err
		}
		index[name] = Entry{Path: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil)), Mode: f.Mode().Perm()}
	}
	r.index = index
	body, err := r.Index()
	if err != nil {
		return err
	}
	r.digest = digestOf(body)
	return nil
}

// Files returns the entries at or below a path, sorted.
func (r *Reader) Files(path string) []Entry {
	var out []Entry
	for _, name := range r.order {
		if e, ok := r.index[name]; ok && (name == path || path == "." || strings.HasPrefix(name, path+"/")) {
			out = append(out, e)
		}
	}
	return out
}

// Copy writes a file's content to w. When it returns without an error the content was what the index says; what was
// written before an error must be thrown away.
func (r *Reader) Copy(w io.Writer, path string) (int64, error) {
	f, e, err := r.find("reading", path)
	if err != nil {
		return 0, err
	}
	sum := sha256.New()
	n, err := unpack(io.MultiWriter(w, sum), f)
	if err != nil {
		return n, err
	}
	return n, verify(e, sum)
}

func verify(e Entry, sum hash.Hash) error {
	if hex.EncodeToString(sum.Sum(nil)) != e.SHA256 {
		return refuse(e.Path, "has another digest than the index says")
	}
	return nil
}

func (r *Reader) find(op, path string) (*zip.File, Entry, error) {
	e, ok := r.index[path]
	if !ok {
		if r.index == nil {
			return nil, e, fmt.Errorf("%s %q of an upload: its index is not known", op, path)
		}
		return nil, e, &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	return r.files[path], e, nil
}

// unpacked reads an entry of at most limit bytes into memory.
func unpacked(f *zip.File, limit int64) ([]byte, error) {
	if f.UncompressedSize64 > uint64(limit) {
		return nil, refuse(f.Name, "has %d bytes, and of a document %d is the most", f.UncompressedSize64, limit)
	}
	var b bytes.Buffer
	_, err := unpack(&b, f)
	return b.Bytes(), err
}

// unpack writes an entry's content to w. archive/zip reads no more than the entry says that it has, and checks its
// checksum.
func unpack(w io.Writer, f *zip.File) (int64, error) {
	in, err := f.Open()
	if err != nil {
		return 0, damaged(f, err)
	}
	defer in.Close()
	n, err := io.Copy(w, io.LimitReader(in, int64(f.UncompressedSize64)+1))
	if err != nil {
		return n, damaged(f, err)
	}
	if uint64(n) != f.UncompressedSize64 {
		return n, refuse(f.Name, "has another size than the archive says")
	}
	return n, nil
}

// damaged tells content that can't be right from a read that has failed.
func damaged(f *zip.File, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrChecksum), errors.Is(err, zip.ErrAlgorithm), errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(f.Name, "is damaged")
	case errors.As(err, &corrupt):
		return refuse(f.Name, "is damaged")
	}
	return fmt.Errorf("reading entry %q of the upload: %w", f.Name, err)
}
