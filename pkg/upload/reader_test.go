package upload

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
)

type file struct {
	name, text string
	mode       fs.FileMode
	header     func(*zip.FileHeader)
}

// archive writes a zip archive as any tool might.
func archive(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		if f.mode == 0 {
			f.mode = 0o644
		}
		h.SetMode(f.mode)
		if f.header != nil {
			f.header(h)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.name, "/") {
			continue
		}
		if _, err := io.WriteString(w, f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// indexed adds the index of the files, after change has seen it.
func indexed(t testing.TB, change func(*Index), files ...file) []byte {
	t.Helper()
	r, err := Open(bytes.NewReader(archive(t, files...)), int64(len(archive(t, files...))), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Compute(context.Background()); err != nil {
		t.Fatal(err)
	}
	x := Index{Version: indexVersion, Files: r.Files(".")}
	if change != nil {
		change(&x)
	}
	body, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return archive(t, append([]file{{name: IndexFile, text: string(body)}}, files...)...)
}

func open(b []byte) (*Reader, error) { return Open(bytes.NewReader(b), int64(len(b)), DefaultLimits()) }

func TestOpenRefuses(t *testing.T) {
	good := archive(t, file{name: "manifest.json", text: "{}"}, file{name: "a/b.txt", text: "hello"})
	patched := func(change func(b []byte)) []byte {
		b := bytes.Clone(good)
		change(b)
		return b
	}
	end := len(good) - endSize
	directory := int(binary.LittleEndian.Uint32(good[end+16:]))
	many := func() []byte { // one entry, said to be 10^6 by a zip64 end record
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := range 70_000 {
			if _, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("f%07d", i), Method: zip.Store}); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		out := b.Bytes()
		at := bytes.LastIndex(out, binary.LittleEndian.AppendUint32(nil, end64Signature))
		binary.LittleEndian.PutUint64(out[at+32:], 1_000_000)
		return out
	}
	for _, tt := range []struct {
		name string
		body []byte
		want string
	}{
		{"nothing", nil, "not a zip archive"},
		{"no archive", []byte(strings.Repeat("x", 100)), "not a zip archive"},
		{"something behind", append(bytes.Clone(good), 'x'), "something follows its end"},
		{"climbing out", archive(t, file{name: "../evil"}), `"../evil" leads out`},
		{"climbing out from within", archive(t, file{name: "a/../../evil"}), "leads out"},
		{"an absolute path", archive(t, file{name: "/etc/passwd"}), "absolute path"},
		{"a drive", archive(t, file{name: "C:/evil"}), "absolute path (of a drive)"},
		{"a backslash", archive(t, file{name: `a\..\b`}), "backslash"},
		{"a control character", archive(t, file{name: "a\nb"}), "control character"},
		{"bad UTF-8", archive(t, file{name: "a\xff"}), "not UTF-8"},
		{"a long way to the same", archive(t, file{name: "a//b"}), "can be written shorter"},
		{"a dot", archive(t, file{name: "./a"}), "can be written shorter"},
		{"a long name", archive(t, file{name: strings.Repeat("a", 2000)}), "too long"},
		{"one name twice", archive(t, file{name: "a"}, file{name: "a"}), `"a" is there twice`},
		{"two names for one file", archive(t, file{name: "A/b"}, file{name: "A/B"}), "in case only"},
		{"two names with a sign that folds", archive(t, file{name: "K"}, file{name: "\u212a"}), "in case only"},
		{"two names for one directory", archive(t, file{name: "A/b"}, file{name: "a/c"}), "in case only"},
		{"a file in a file", archive(t, file{name: "a"}, file{name: "a/b"}), "in what is a file"},
		{"a file that is a directory", archive(t, file{name: "a/b"}, file{name: "a"}), "a file and a directory"},
		{"a file that is an empty directory", archive(t, file{name: "a/"}, file{name: "a"}), "a file and a directory"},
		{"a symbolic link", archive(t, file{name: "a", text: "/etc/passwd", mode: fs.ModeSymlink | 0o777}), "symbolic link"},
		{"a device", archive(t, file{name: "a", mode: fs.ModeDevice | 0o666}), "neither a file nor a directory"},
		{"a bomb", archive(t, file{name: "zeros", text: strings.Repeat("\x00", 64<<20)}), "compression bomb"},
		{"another entry count", patched(func(b []byte) { binary.LittleEndian.PutUint16(b[end+10:], 1) }), "longer than it says"},
		{"more entries than there are", patched(func(b []byte) { binary.LittleEndian.PutUint16(b[end+10:], 3) }), "fewer than it says"},
		{"10^6 entries", many(), "it has 1000000 entries"},
		{"another place of the directory", patched(func(b []byte) { b[end+16]++ }), "not where it says"},
		{"overlapping entries", patched(func(b []byte) { b[directory+headerSize+len("manifest.json")+42] = 0 }), "overlaps"},
		{"an encrypted entry", patched(func(b []byte) { b[directory+8] |= 1 }), "is encrypted"},
		{"an unknown method", patched(func(b []byte) { b[directory+10] = 99 }), "method 99"},
		{"a larger file than is allowed", patched(func(b []byte) { binary.LittleEndian.PutUint32(b[directory+24:], 3<<30) }), "is the most"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := open(tt.body)
			var refusal *Refusal
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestOpenHoldsTheEntriesAgainstTheIndex(t *testing.T) {
	files := []file{{name: "a", text: "one"}, {name: "b", text: "two"}}
	for _, tt := range []struct {
		name   string
		change func(*Index)
		want   string
	}{
		{"a file that is not in it", func(x *Index) { x.Files = x.Files[:1] }, `"b" is not in the index`},
		{"a file that is not there", func(x *Index) { x.Files = append(x.Files, Entry{Path: "c"}) }, `"c" is in the index and not in the archive`},
		{"another size", func(x *Index) { x.Files[0].Size++ }, "another size"},
		{"another mode", func(x *Index) { x.Files[0].Mode = 0o755 }, "another mode"},
		{"another order", func(x *Index) { x.Files[0], x.Files[1] = x.Files[1], x.Files[0] }, "order of the index"},
		{"itself", func(x *Index) { x.Files = append(x.Files, Entry{Path: IndexFile}) }, "is the index and in the index"},
		{"a newer version", func(x *Index) { x.Version = 2 }, "version 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := open(indexed(t, tt.change, files...)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	r, err := open(indexed(t, func(x *Index) { x.Files[0].SHA256 = strings.Repeat("0", 64) }, files...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(r.FS(), "a"); err == nil || !strings.Contains(err.Error(), `"a" has another digest`) {
		t.Errorf("%v", err)
	}
	if b, err := fs.ReadFile(r.FS(), "b"); err != nil || string(b) != "two" {
		t.Errorf("%q, %v", b, err)
	}
	if err := r.Verify(strings.Repeat("1", 64)); err == nil || !strings.Contains(err.Error(), "its name says 111") {
		t.Errorf("%v", err)
	}
	if _, err := fs.ReadFile(r.FS(), "c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestComputeMakesTheIndexOfAPlainArchive(t *testing.T) {
	r, err := open(archive(t, file{name: "dir/"}, file{name: "dir/a", text: "one"}, file{name: "b", text: "two", mode: 0o755}))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Verify("x"); err == nil || !strings.Contains(err.Error(), "no index") {
		t.Errorf("%v", err)
	}
	if _, err := fs.ReadFile(r.FS(), "b"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file without a digest was read: %v", err)
	}
	if err := r.Compute(context.Background()); err != nil {
		t.Fatal(err)
	}
	again, err := open(indexed(t, nil, file{name: "dir/a", text: "one"}, file{name: "b", text: "two", mode: 0o755}))
	if err != nil || again.Digest() != r.Digest() {
		t.Errorf("its digest is %s, and %s with an index; %v", r.Digest(), again.Digest(), err)
	}
	if b, err := fs.ReadFile(r.FS(), "dir/a"); err != nil || string(b) != "one" {
		t.Errorf("%q, %v", b, err)
	}
	if i, err := fs.Stat(r.FS(), "dir"); err != nil || !i.IsDir() {
		t.Errorf("%v, %v", i, err)
	}
}

func TestDocumentsAreBoundedAltogether(t *testing.T) {
	b := indexed(t, nil, file{name: "a", text: strings.Repeat("a", 100)}, file{name: "b", text: strings.Repeat("b", 100)}, file{name: "c", text: strings.Repeat("c", 200)})
	limits := DefaultLimits()
	limits.Documents, limits.Document = 250, 1000
	r, err := Open(bytes.NewReader(b), int64(len(b)), limits)
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"a": true, "b": true} {
		if _, err := fs.ReadFile(r.FS(), name); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := fs.ReadFile(r.FS(), "c"); err == nil || !strings.Contains(err.Error(), `"c" is one too many`) {
		t.Errorf("%v", err)
	}
	if _, err := r.Copy(io.Discard, "c"); err != nil {
		t.Errorf("what is not kept in memory is not bounded by it: %v", err)
	}
}

func TestDamagedContentIsRefused(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "a", Method: zip.Deflate, CompressedSize64: 4, UncompressedSize64: 100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte{0xff, 0xff, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	// An entry that unpacks to more than it says.
	var packed bytes.Buffer
	d, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if w, err = z.CreateRaw(&zip.FileHeader{Name: "b", Method: zip.Deflate, CompressedSize64: uint64(packed.Len()), UncompressedSize64: 10}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(packed.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := open(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		var refusal *Refusal
		if _, err := unpack(io.Discard, r.files[name]); !errors.As(err, &refusal) || refusal.Entry != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.Compute(context.Background()); err == nil {
		t.Error("a damaged archive has an index")
	}
}

// FuzzOpen: whatever the bytes are, reading them neither fails in another way than by refusing nor reads past what the
// archive says that it holds.
func FuzzOpen(f *testing.F) {
	f.Add(archive(f, file{name: "manifest.json", text: "{}"}, file{name: "a/b", text: strings.Repeat("x", 100)}))
	f.Add(indexed(f, nil, file{name: "manifest.json", text: "{}"}))
	_, packed := pack(f, app(f))
	f.Add(packed)
	limits := Limits{Entries: 100, Directory: 1 << 16, File: 1 << 16, Total: 1 << 18, Document: 1 << 16, Documents: 1 << 17, Ratio: 200, Name: 100}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Open(bytes.NewReader(b), int64(len(b)), limits)
		if err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if err := r.Compute(context.Background()); err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		var total int64
		for _, e := range r.Files(".") {
			if !fs.ValidPath(e.Path) {
				t.Errorf("the path %q is not valid", e.Path)
			}
			n, err := r.Copy(io.Discard, e.Path)
			if err == nil && n != e.Size && e.SHA256 != "" {
				t.Errorf("%q has %d bytes of %d", e.Path, n, e.Size)
			}
			total += n
		}
		if total > limits.Total {
			t.Errorf("%d bytes were read", total)
		}
	})
}
