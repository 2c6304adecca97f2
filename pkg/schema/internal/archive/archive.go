// Package archive stores many small named documents in one compact byte string and reads any of them without
// touching the others. Documents are packed, in name order, into chunks of a few tens of kilobytes that are
// compressed one by one, so neighbours (types of one AWS service) share their vocabulary.
//
// Layout: 8 bytes of magic, the length of the compressed header as a big-endian uint32, the header, the chunks.
// The header is text: one line of metadata (opaque to this package), one line with the compressed size of each
// chunk, then one line per document: name, chunk, offset and length within the decompressed chunk, by tabs.
package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const magic = "SLPYARC1"

// chunkSize is when a chunk is closed: large enough to compress well, small enough to open in well under a
// millisecond.
const chunkSize = 40 << 10

// ErrCorrupt is returned for bytes that Pack did not write.
var ErrCorrupt = errors.New("corrupt schema archive")

// Pack writes the archive of docs with one line of metadata.
func Pack(metadata string, docs map[string][]byte) ([]byte, error) {
	if strings.ContainsAny(metadata, "\n") {
		return nil, errors.New("archive metadata must be one line")
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("starting the archive's compressor: %w", err)
	}
	defer func() { _ = encoder.Close() }() // it writes to nothing: EncodeAll returns what it makes
	names := make([]string, 0, len(docs))
	for name := range docs {
		if strings.ContainsAny(name, "\t\n") {
			return nil, fmt.Errorf("document name %q holds a tab or a line break", name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	var chunks [][]byte
	var open, lines bytes.Buffer
	flush := func() {
		if open.Len() > 0 {
			chunks = append(chunks, encoder.EncodeAll(open.Bytes(), nil))
			open.Reset()
		}
	}
	for _, name := range names {
		if open.Len() > 0 && open.Len()+len(docs[name]) > chunkSize {
			flush()
		}
		fmt.Fprintf(&lines, "%s\t%d\t%d\t%d\n", name, len(chunks), open.Len(), len(docs[name]))
		open.Write(docs[name])
	}
	flush()
	var header bytes.Buffer
	header.WriteString(metadata + "\n")
	for i, chunk := range chunks {
		if i > 0 {
			header.WriteByte(' ')
		}
		header.WriteString(strconv.Itoa(len(chunk)))
	}
	header.WriteByte('\n')
	header.Write(lines.Bytes())
	packed := encoder.EncodeAll(header.Bytes(), nil)
	out := append([]byte(magic), binary.BigEndian.AppendUint32(nil, uint32(len(packed)))...)
	out = append(out, packed...)
	for _, chunk := range chunks {
		out = append(out, chunk...)
	}
	return out, nil
}

// Reader reads an archive. It is safe for concurrent use.
type Reader struct {
	Metadata string
	decoder  *zstd.Decoder
	body     []byte
	starts   []int // where each chunk begins in body, plus the end
	names    []string
	places   []place
}

type place struct{ chunk, offset, length int }

// Open reads the header of an archive and keeps data, which must not be modified afterwards.
func Open(data []byte) (*Reader, error) {
	if len(data) < len(magic)+4 || string(data[:len(magic)]) != magic {
		return nil, ErrCorrupt
	}
	size := int(binary.BigEndian.Uint32(data[len(magic):]))
	rest := data[len(magic)+4:]
	if size > len(rest) {
		return nil, ErrCorrupt
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("starting the archive's decompressor: %w", err)
	}
	raw, err := decoder.DecodeAll(rest[:size], nil)
	if err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrCorrupt, err)
	}
	metadata, header, found := strings.Cut(string(raw), "\n")
	sizes, header, found2 := strings.Cut(header, "\n")
	if !found || !found2 {
		return nil, ErrCorrupt
	}
	r := &Reader{Metadata: metadata, decoder: decoder, body: rest[size:], starts: []int{0}}
	for _, field := range strings.Fields(sizes) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 0 {
			return nil, ErrCorrupt
		}
		r.starts = append(r.starts, r.starts[len(r.starts)-1]+n)
	}
	if r.starts[len(r.starts)-1] != len(r.body) {
		return nil, fmt.Errorf("%w: %d bytes of chunks, %d announced", ErrCorrupt, len(r.body), r.starts[len(r.starts)-1])
	}
	for line := range strings.Lines(header) {
		name, p, err := parseLine(strings.TrimSuffix(line, "\n"), len(r.starts)-1)
		if err != nil {
			return nil, err
		}
		r.names = append(r.names, name)
		r.places = append(r.places, p)
	}
	if !slices.IsSorted(r.names) {
		return nil, ErrCorrupt
	}
	return r, nil
}

func parseLine(line string, chunks int) (string, place, error) {
	name, rest, _ := strings.Cut(line, "\t")
	chunk, rest, _ := strings.Cut(rest, "\t")
	offset, length, _ := strings.Cut(rest, "\t")
	var p place
	for _, number := range []struct {
		text string
		into *int
	}{{chunk, &p.chunk}, {offset, &p.offset}, {length, &p.length}} {
		n, err := strconv.Atoi(number.text)
		if err != nil || n < 0 {
			return "", p, ErrCorrupt
		}
		*number.into = n
	}
	if p.chunk >= chunks {
		return "", p, ErrCorrupt
	}
	return name, p, nil
}

// Names lists the documents, sorted. The caller must not modify it.
func (r *Reader) Names() []string { return r.names }

// Read decompresses the chunk that holds the named document and returns the document; false when there is no
// such name. O(log n) plus one chunk.
func (r *Reader) Read(name string) ([]byte, bool, error) {
	i := sort.SearchStrings(r.names, name)
	if i == len(r.names) || r.names[i] != name {
		return nil, false, nil
	}
	p := r.places[i]
	chunk, err := r.decoder.DecodeAll(r.body[r.starts[p.chunk]:r.starts[p.chunk+1]], nil)
	if err != nil {
		return nil, false, fmt.Errorf("%w: chunk of %s: %w", ErrCorrupt, name, err)
	}
	if p.offset+p.length > len(chunk) {
		return nil, false, fmt.Errorf("%w: %s ends outside its chunk", ErrCorrupt, name)
	}
	return chunk[p.offset : p.offset+p.length], true, nil
}
