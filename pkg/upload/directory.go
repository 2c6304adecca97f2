package upload

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// The structures of a zip archive that are read here (APPNOTE.TXT of PKWARE, sections 4.3.12 to 4.3.16 and 4.5.3).
const (
	endSize          = 22
	endSignature     = 0x06054b50
	locatorSize      = 20
	locatorSignature = 0x07064b50
	end64Size        = 56
	end64Signature   = 0x06064b50
	headerSize       = 46
	headerSignature  = 0x02014b50
	localSize        = 30
	maxComment       = 1<<16 - 1
	extraZip64       = 1
)

// span is where an entry begins, and how many bytes it takes at least.
type span struct {
	name       string
	begin, end uint64
}

// checkStructure looks at the directory of an archive before archive/zip does: that package builds the list of all
// entries whatever their number, takes a directory that is longer than it says, and lets entries overlap. Nothing here
// is unpacked.
func checkStructure(r io.ReaderAt, size int64, limits Limits) (records int, err error) {
	offset, length, count, err := findDirectory(r, size)
	if err != nil {
		return 0, err
	}
	switch {
	case count > uint64(limits.Entries):
		return 0, refuse("", "it has %d entries, and %d is the most", count, limits.Entries)
	case length > uint64(limits.Directory):
		return 0, refuse("", "its list of entries has %d bytes, and %d is the most", length, limits.Directory)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(r, int64(offset), int64(length)), 1<<16)
	spans := make([]span, 0, count)
	for range count {
		s, err := readHeader(in)
		if err != nil {
			return 0, err
		}
		spans = append(spans, s)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return 0, refuse("", "its list of entries is longer than it says")
	}
	slices.SortFunc(spans, func(a, b span) int {
		switch {
		case a.begin < b.begin:
			return -1
		case a.begin > b.begin:
			return 1
		}
		return 0
	})
	for i, s := range spans {
		next := offset
		if i+1 < len(spans) {
			next = spans[i+1].begin
		}
		if s.end < s.begin || s.end > next {
			return 0, refuse(s.name, "overlaps with what comes after it")
		}
	}
	return int(count), nil
}

// findDirectory finds the directory of an archive, which must end where the end record begins.
func findDirectory(r io.ReaderAt, size int64) (offset, length, count uint64, err error) {
	malformed := refuse("", "it is not a zip archive")
	if size < endSize {
		return 0, 0, 0, malformed
	}
	tail := make([]byte, min(size, endSize+maxComment))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, 0, err
	}
	at := len(tail) - endSize
	for ; at >= 0; at-- {
		// The last record whose comment fits is the one that archive/zip takes.
		if binary.LittleEndian.Uint32(tail[at:]) == endSignature && int(binary.LittleEndian.Uint16(tail[at+20:]))+at+endSize <= len(tail) {
			break
		}
	}
	if at < 0 {
		return 0, 0, 0, malformed
	}
	end := tail[at:]
	if int(binary.LittleEndian.Uint16(end[20:]))+endSize != len(end) {
		return 0, 0, 0, refuse("", "something follows its end")
	}
	if binary.LittleEndian.Uint32(end[4:]) != 0 {
		return 0, 0, 0, refuse("", "it is a part of a divided archive")
	}
	ends := uint64(size) - uint64(len(end))
	count, length, offset = uint64(binary.LittleEndian.Uint16(end[10:])), uint64(binary.LittleEndian.Uint32(end[12:])), uint64(binary.LittleEndian.Uint32(end[16:]))
	if count == 0xffff || length == 0xffff || length == 0xffffffff || offset == 0xffffffff {
		if ends, length, count, offset, err = zip64End(r, ends, length, count, offset); err != nil {
			return 0, 0, 0, err
		}
	}
	if length > ends || offset != ends-length {
		return 0, 0, 0, refuse("", "its list of entries is not where it says")
	}
	return offset, length, count, nil
}

// zip64End reads the end record of a large archive, if there is one before the usual end record.
func zip64End(r io.ReaderAt, ends, length, count, offset uint64) (newEnds, newLength, newCount, newOffset uint64, err error) {
	if ends < locatorSize+end64Size {
		return ends, length, count, offset, nil
	}
	var locator [locatorSize]byte
	if _, err := r.ReadAt(locator[:], int64(ends-locatorSize)); err != nil {
		return 0, 0, 0, 0, err
	}
	if binary.LittleEndian.Uint32(locator[:]) != locatorSignature {
		return ends, length, count, offset, nil
	}
	at := binary.LittleEndian.Uint64(locator[8:])
	if at > ends-locatorSize-end64Size {
		return 0, 0, 0, 0, refuse("", "its end record is not where it says")
	}
	var record [end64Size]byte
	if _, err := r.ReadAt(record[:], int64(at)); err != nil {
		return 0, 0, 0, 0, err
	}
	if binary.LittleEndian.Uint32(record[:]) != end64Signature {
		return 0, 0, 0, 0, refuse("", "its end record is not where it says")
	}
	return at, binary.LittleEndian.Uint64(record[40:]), binary.LittleEndian.Uint64(record[32:]), binary.LittleEndian.Uint64(record[48:]), nil
}

// readHeader reads the directory's header of one entry.
func readHeader(in *bufio.Reader) (span, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(in, h[:]); err != nil {
		return span{}, shortDirectory(err)
	}
	if binary.LittleEndian.Uint32(h[:]) != headerSignature {
		return span{}, refuse("", "its list of entries has fewer than it says")
	}
	packed, unpacked := uint64(binary.LittleEndian.Uint32(h[20:])), uint64(binary.LittleEndian.Uint32(h[24:]))
	begin := uint64(binary.LittleEndian.Uint32(h[42:]))
	text := make([]byte, int(binary.LittleEndian.Uint16(h[28:]))+int(binary.LittleEndian.Uint16(h[30:]))+int(binary.LittleEndian.Uint16(h[32:])))
	if _, err := io.ReadFull(in, text); err != nil {
		return span{}, shortDirectory(err)
	}
	nameLength := int(binary.LittleEndian.Uint16(h[28:]))
	name, extra := string(text[:nameLength]), text[nameLength:nameLength+int(binary.LittleEndian.Uint16(h[30:]))]
	for len(extra) >= 4 {
		tag, n := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if extra = extra[4:]; len(extra) < n {
			break
		}
		if field := extra[:n]; tag == extraZip64 {
			for _, v := range []*uint64{&unpacked, &packed, &begin} {
				if *v != 0xffffffff {
					continue
				}
				if len(field) < 8 {
					return span{}, refuse(name, "has a header that is too short")
				}
				*v, field = binary.LittleEndian.Uint64(field), field[8:]
			}
		}
		extra = extra[n:]
	}
	return span{name: name, begin: begin, end: begin + localSize + uint64(nameLength) + packed}, nil
}

func shortDirectory(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse("", "its list of entries has fewer than it says")
	}
	return err
}
