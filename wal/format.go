package wal

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// The format, which docs/internals/formats/wal.md describes for readers in any language. All
// integers are little-endian. A log is a directory of segments:
//
//	NNNNNNNNNNNNNNNNNNNN.wal     20 decimal digits: the offset of its first record
//
//	segment:  segmentHeader, groups, [index, segmentTrailer]      the last two once it is full
//	group:    groupHeader, records, zeros to a multiple of 8
//	record:   CRC32C of the data, bound to its place (recordSum); length, 4 bytes; data
//	index:    see index.go
const (
	headerSize  = 64
	groupSize   = 48
	recordSize  = 8
	trailerSize = 64
	alignment   = 8

	groupMagic   = uint32('K') | 'J'<<8 | 'G'<<16 | 1<<24
	segmentExt   = ".wal"
	segmentDigit = 20
)

var (
	segmentMagic = binary.LittleEndian.Uint64([]byte("KUJIWAL\x01"))
	trailerMagic = binary.LittleEndian.Uint64([]byte("KUJIEND\x01"))
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

func align(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// recordSum is the checksum of a record whose data has the CRC32C dataSum. It binds the data to its
// log (base is its logSum), offset and length, so that a record in the wrong place does not pass:
// an odd factor maps offsets that differ in their low 32 bits to different sums. A CRC of all of
// them would cost more than that of a short record, and could not be computed before the offset is
// known.
func recordSum(base uint32, offset uint64, length int, dataSum uint32) uint32 {
	return base ^ dataSum ^ uint32(offset)*0x9E3779B1 ^ uint32(offset>>32)*0x85EBCA77 ^ uint32(length)*0xC2B2AE3D
}

func putRecordHead(b []byte, sum uint32, length int) {
	binary.LittleEndian.PutUint64(b, uint64(sum)|uint64(length)<<32)
}

// logSum is the CRC32C of the log id, which recordSum mixes in.
func logSum(logID uint64) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], logID)
	return crc32.Checksum(b[:], castagnoli)
}

type segmentHeader struct {
	Magic   uint64
	LogID   uint64
	First   uint64
	Durable uint64 // every offset below was durable when it was written
	Created int64  // Unix nanoseconds
	_       [20]byte
	Sum     uint32 // CRC32C of the bytes before it
}

// encode returns the header or the trailer of a segment with its checksum.
func encode(h any) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, h) // fails only for types without a fixed size
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
	return b
}

// decode decodes what encode returned.
func decode(b []byte, into any, what string, magic uint64) *fault {
	size := binary.Size(into)
	if len(b) < size {
		return &fault{What: what + " is cut short", Got: uint64(len(b)), Want: uint64(size)}
	}
	_, _ = binary.Decode(b, binary.LittleEndian, into) // it is long enough
	end := size - 4
	got, want := binary.LittleEndian.Uint32(b[end:]), crc32.Checksum(b[:end], castagnoli)
	return cmp.Or(
		bitsDiffer(0, what+"'s magic", binary.LittleEndian.Uint64(b), magic),
		bitsDiffer(int64(end), what+"'s checksum", uint64(got), uint64(want)),
	)
}

// fault is a CorruptionError before the file that it is in is known.
type fault = CorruptionError

func (e *CorruptionError) in(file string) *CorruptionError {
	e.File = file
	return e
}

func differs(pos int64, what string, got, want uint64) *fault {
	if got == want {
		return nil
	}
	return &fault{Pos: pos, What: what, Got: got, Want: want}
}

// bitsDiffer is differs for patterns of bits.
func bitsDiffer(pos int64, what string, got, want uint64) *fault {
	f := differs(pos, what, got, want)
	if f != nil {
		f.Bits = true
	}
	return f
}

// decodeSegmentHeader decodes the header of the segment that an offset names.
func decodeSegmentHeader(b []byte, first uint64) (h segmentHeader, f *fault) {
	f = decode(b, &h, "segment header", segmentMagic)
	switch {
	case f != nil:
	case h.Durable > h.First:
		f = &fault{Pos: 24, What: "segment's durable_upto is above its first offset", Got: h.Durable, Want: h.First}
	case h.First != first:
		f = differs(16, "segment's first offset", h.First, first)
	case h.LogID == 0:
		f = &fault{Pos: 8, What: "segment's log id is zero", Want: 1, Bits: true}
	}
	if f != nil {
		f.Offset = first
	}
	return h, f
}

// groupHeader is the header of records that were written together.
type groupHeader struct {
	logID   uint64
	segment uint64 // first offset of the segment
	first   uint64 // offset of the first record
	durable uint64 // every offset below was durable when it was written
	bytes   uint32 // of the records, without the zeros after them
	count   uint32 // of the records
}

func (h groupHeader) encode(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], groupMagic)
	le.PutUint32(b[4:], h.bytes)
	le.PutUint64(b[8:], h.logID)
	le.PutUint64(b[16:], h.segment)
	le.PutUint64(b[24:], h.first)
	le.PutUint64(b[32:], h.durable)
	le.PutUint32(b[40:], h.count)
	le.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
}

// size is the number of bytes from the group's start to the next one's.
func (h groupHeader) size() int64 { return groupSize + align(int64(h.bytes)) }

// decodeGroupHeader decodes the header at the start of b, and checks what it can check without
// knowing the place of the header.
func decodeGroupHeader(b []byte) (groupHeader, *fault) {
	if len(b) < groupSize {
		return groupHeader{}, &fault{What: "group header is cut short", Got: uint64(len(b)), Want: groupSize}
	}
	le := binary.LittleEndian
	if f := bitsDiffer(0, "group's magic", uint64(le.Uint32(b)), uint64(groupMagic)); f != nil {
		return groupHeader{}, f
	}
	if f := bitsDiffer(44, "group header's checksum", uint64(le.Uint32(b[44:])), uint64(crc32.Checksum(b[:44], castagnoli))); f != nil {
		return groupHeader{}, f
	}
	return groupHeader{
		bytes: le.Uint32(b[4:]), logID: le.Uint64(b[8:]), segment: le.Uint64(b[16:]),
		first: le.Uint64(b[24:]), durable: le.Uint64(b[32:]), count: le.Uint32(b[40:]),
	}, nil
}

// segmentTrailer ends a segment that is full.
type segmentTrailer struct {
	Magic    uint64
	LogID    uint64
	First    uint64
	End      uint64 // offset after the last record
	Durable  uint64 // every offset below was durable when it was written
	Sealed   int64  // when it was full, Unix nanoseconds
	Index    uint32 // position of the index: where the groups end
	IndexSum uint32 // CRC32C of the index
	_        uint32
	Sum      uint32 // CRC32C of the bytes before it
}

// footerSize is the size of index and trailer of a segment of n records.
func footerSize(n int64) int64 { return indexSize(n) + trailerSize }

// decodeSegmentTrailer decodes the last bytes of a file of the given size.
func decodeSegmentTrailer(b []byte, size int64) (t segmentTrailer, f *fault) {
	if f = decode(b, &t, "segment trailer", trailerMagic); f != nil {
		return t, f
	}
	switch {
	case t.End < t.First || t.End-t.First > maxSegment/recordSize:
		return t, &fault{Pos: 24, What: "segment trailer's end offset", Got: t.End, Want: t.First}
	case t.Durable > t.End:
		return t, &fault{Pos: 32, What: "segment trailer's durable_upto is above its end", Got: t.Durable, Want: t.End}
	case t.Index < headerSize:
		return t, &fault{Pos: 48, What: "segment trailer's index position is within the header", Got: uint64(t.Index), Want: headerSize}
	}
	return t, differs(48, "segment trailer's index position", uint64(t.Index), uint64(size-footerSize(int64(t.End-t.First))))
}

func segmentName(first uint64) string { return fmt.Sprintf("%0*d%s", segmentDigit, first, segmentExt) }

func parseSegmentName(name string) (first uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentExt)
	if !ok || len(digits) != segmentDigit {
		return 0, false
	}
	first, err := strconv.ParseUint(digits, 10, 64)
	return first, err == nil && segmentName(first) == name
}
