// Package upload is how a cloud assembly travels to a control plane: one zip archive with the files that a deploy
// needs and an index of their SHA-256 digests. The archive is named by the digest of its index, so that whoever reads
// any part of it can tell that this is what was packed, without reading the rest.
//
// Packing is deterministic: equal files give equal archives. Reading trusts nothing: names, counts, sizes, and the
// archive's own structure are bounded before anything is unpacked, and every refusal names the entry. An archive that
// another tool has made of a cdk.out has no index; one is computed.
//
// Who may upload and deploy what is decided in package admission.
package upload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
)

const (
	// IndexFile is the entry that holds the index: the first of an archive that Pack has made.
	IndexFile = "slipway-index.json"
	// OptionsFile is the entry with which an archive that comes without a submission says what is to be done.
	OptionsFile = "slipway.json"
	// indexVersion is the version of the index that is written and read.
	indexVersion = 1
)

// Entry is one file of an archive.
type Entry struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"` // bytes, unpacked
	SHA256 string `json:"sha256"`
	// Mode is its permission bits: assets keep them.
	Mode fs.FileMode `json:"mode"`
}

// Index lists the files of an archive in the order of their paths.
type Index struct {
	Version int     `json:"version"`
	Files   []Entry `json:"files"`
}

// encode renders the index: the same bytes for the same files.
func (x Index) encode() ([]byte, error) {
	b, err := json.Marshal(x)
	if err != nil {
		return nil, fmt.Errorf("encoding the index: %w", err)
	}
	return b, nil
}

// digestOf is what an archive with this encoded index is named by.
func digestOf(index []byte) string {
	sum := sha256.Sum256(index)
	return hex.EncodeToString(sum[:])
}

// Limits bound what is read from an archive.
type Limits struct {
	// Entries is how many entries it may have, and Directory how large the list of them, in bytes.
	Entries   int
	Directory int64
	// File and Total bound the unpacked sizes, in bytes; Document what is read into memory as a whole, and Documents all
	// that is read so by one reader.
	File      int64
	Total     int64
	Document  int64
	Documents int64
	// Ratio is how many times larger than its packed form an entry of more than 16 MiB may be.
	Ratio int64
	// Name is the length of the longest path, in bytes.
	Name int
}

// DefaultLimits are what a control plane accepts. They leave room for the largest apps: Lambda takes 250 MB of code,
// CloudFormation 2,500 resources in nested stacks.
func DefaultLimits() Limits {
	return Limits{
		Entries: 100_000, Directory: 32 << 20, File: 2 << 30, Total: 8 << 30, Document: 64 << 20, Documents: 256 << 20, Ratio: 200, Name: 1024,
	}
}

// Refusal is why an archive is not accepted.
type Refusal struct {
	// Entry is the entry that is refused; "" when it is the archive itself.
	Entry  string
	Reason string
}

// Error implements error. The entry's name is quoted: it may hold anything.
func (r *Refusal) Error() string {
	if r.Entry == "" {
		return "the upload is refused: " + r.Reason
	}
	name := r.Entry
	if len(name) > 200 {
		name = name[:200] + "…"
	}
	return fmt.Sprintf("the upload is refused: entry %q %s", name, r.Reason)
}

func refuse(entry, format string, args ...any) error {
	return &Refusal{Entry: entry, Reason: fmt.Sprintf(format, args...)}
}
