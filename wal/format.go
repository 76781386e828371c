package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// The format, which docs/internals/formats/wal.md describes for readers in any language.
// All integers are little-endian. A log is a directory of segments:
//
//	NNNNNNNNNNNNNNNNNNNN.wal     20 decimal digits: the offset of its first record
//
//	segment:  header, groups, [index, trailer]      the last two once it is sealed
//
//	header:   0 magic "KUJIWAL\x01"      32 created, Unix nanoseconds
//	          8 log id                   40 zero
//	         16 first offset             60 CRC32C of bytes 0–59
//	         24 durable_upto
//
//	group:    0 magic "KJG\x01"          32 durable_upto
//	          4 bytes of records         40 number of records
//	          8 log id                   44 CRC32C of bytes 0–43
//	         16 segment's first offset   48 records, then zeros to a multiple of 8
//	         24 first offset
//
//	record:   0 CRC32C of the data, bound to its place (recordSum)
//	          4 length
//	          8 data
//
//	index:    see index.go
//
//	trailer:  0 magic "KUJIEND\x01"      40 sealed, Unix nanoseconds
//	          8 log id                   48 position of the index
//	         16 first offset             52 CRC32C of the index
//	         24 end offset               56 zero
//	         32 durable_upto             60 CRC32C of bytes 0–59
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

// recordSum is the checksum of a record whose data has the CRC32C dataSum. It
// binds the data to its log, its offset and its length, so that a record in the
// wrong place does not pass: an odd factor maps offsets that differ in their
// low 32 bits to different sums. A CRC of the three would do the same, but
// costs more than the CRC of a short record. The CRC of the data is separate,
// so that it can be computed before the offset is known. Base is logSum of the
// log.
func recordSum(base uint32, offset uint64, length int, dataSum uint32) uint32 {
	return base ^ dataSum ^ uint32(offset)*0x9E3779B1 ^ uint32(offset>>32)*0x85EBCA77 ^ uint32(length)*0xC2B2AE3D
}

// putRecordHead encodes the head of a record.
func putRecordHead(b []byte, sum uint32, length int) {
	binary.LittleEndian.PutUint64(b, uint64(sum)|uint64(length)<<32)
}

// logSum is the CRC32C of the log id, which recordSum mixes in.
func logSum(logID uint64) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], logID)
	return crc32.Checksum(b[:], castagnoli)
}

// segmentHeader opens a segment.
type segmentHeader struct {
	logID   uint64
	first   uint64
	durable uint64 // every offset below was durable when it was written
	created int64  // Unix nanoseconds
}

func (h segmentHeader) encode() []byte {
	b := make([]byte, headerSize)
	le := binary.LittleEndian
	le.PutUint64(b[0:], segmentMagic)
	le.PutUint64(b[8:], h.logID)
	le.PutUint64(b[16:], h.first)
	le.PutUint64(b[24:], h.durable)
	le.PutUint64(b[32:], uint64(h.created))
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// fault says what is wrong with bytes, before the file that they are in is
// known.
type fault struct {
	pos       int64 // relative to the bytes looked at
	offset    uint64
	what      string
	got, want uint64
	bits      bool // got and want are patterns of bits: see CorruptionError.Bits
}

func (f *fault) in(file string, base int64) *CorruptionError {
	return &CorruptionError{File: file, Pos: base + f.pos, Offset: f.offset, What: f.what, Got: f.got, Want: f.want, Bits: f.bits}
}

// differs returns a fault if got is not want.
func differs(pos int64, what string, got, want uint64) *fault {
	if got == want {
		return nil
	}
	return &fault{pos: pos, what: what, got: got, want: want}
}

// bitsDiffer is differs for patterns of bits.
func bitsDiffer(pos int64, what string, got, want uint64) *fault {
	f := differs(pos, what, got, want)
	if f != nil {
		f.bits = true
	}
	return f
}

// firstFault returns the first of its arguments that is a fault.
func firstFault(faults ...*fault) *fault {
	for _, f := range faults {
		if f != nil {
			return f
		}
	}
	return nil
}

func decodeSegmentHeader(b []byte) (segmentHeader, *fault) {
	if len(b) < headerSize {
		return segmentHeader{}, &fault{what: "segment header is cut short", got: uint64(len(b)), want: headerSize}
	}
	le := binary.LittleEndian
	h := segmentHeader{logID: le.Uint64(b[8:]), first: le.Uint64(b[16:]), durable: le.Uint64(b[24:]), created: int64(le.Uint64(b[32:]))}
	return h, firstFault(
		bitsDiffer(0, "segment header's magic", le.Uint64(b), segmentMagic),
		bitsDiffer(60, "segment header's checksum", uint64(le.Uint32(b[60:])), uint64(crc32.Checksum(b[:60], castagnoli))),
	)
}

// misplaced says why a header cannot belong to the segment that an offset
// names.
func (h segmentHeader) misplaced(first uint64) *fault {
	if h.durable > h.first {
		return &fault{pos: 24, what: "segment's durable_upto is above its first offset", got: h.durable, want: h.first}
	}
	return firstFault(
		differs(16, "segment's first offset", h.first, first),
		noLogID(8, h.logID),
	)
}

// noLogID returns a fault if a log id is zero.
func noLogID(pos int64, id uint64) *fault {
	if id == 0 {
		return &fault{pos: pos, what: "segment's log id is zero", want: 1, bits: true}
	}
	return nil
}

// groupHeader is the header of records that were written together.
type groupHeader struct {
	logID   uint64
	segment uint64 // first offset of the segment
	first   uint64 // offset of the first record
	durable uint64 // every offset below was durable when it was written
	bytes   uint32 // of the records, without the zeros behind them
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

// decodeGroupHeader decodes the header at the start of b, and checks what it
// can check without knowing the place of the header.
func decodeGroupHeader(b []byte) (groupHeader, *fault) {
	if len(b) < groupSize {
		return groupHeader{}, &fault{what: "group header is cut short", got: uint64(len(b)), want: groupSize}
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

// segmentTrailer ends a sealed segment.
type segmentTrailer struct {
	logID    uint64
	first    uint64
	end      uint64 // offset after the last record
	durable  uint64 // every offset below was durable when it was written
	sealed   int64  // Unix nanoseconds
	index    uint32 // position of the index: where the groups end
	indexSum uint32
}

func (t segmentTrailer) encode() []byte {
	b := make([]byte, trailerSize)
	le := binary.LittleEndian
	le.PutUint64(b[0:], trailerMagic)
	le.PutUint64(b[8:], t.logID)
	le.PutUint64(b[16:], t.first)
	le.PutUint64(b[24:], t.end)
	le.PutUint64(b[32:], t.durable)
	le.PutUint64(b[40:], uint64(t.sealed))
	le.PutUint32(b[48:], t.index)
	le.PutUint32(b[52:], t.indexSum)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// footerSize is the size of index and trailer of a segment of n records.
func footerSize(n int64) int64 { return indexSize(n) + trailerSize }

// decodeSegmentTrailer decodes the last bytes of a file of the given size.
func decodeSegmentTrailer(b []byte, size int64) (segmentTrailer, *fault) {
	if len(b) < trailerSize {
		return segmentTrailer{}, &fault{what: "segment trailer is cut short", got: uint64(len(b)), want: trailerSize}
	}
	le := binary.LittleEndian
	t := segmentTrailer{
		logID: le.Uint64(b[8:]), first: le.Uint64(b[16:]), end: le.Uint64(b[24:]), durable: le.Uint64(b[32:]),
		sealed: int64(le.Uint64(b[40:])), index: le.Uint32(b[48:]), indexSum: le.Uint32(b[52:]),
	}
	if f := firstFault(
		bitsDiffer(0, "segment trailer's magic", le.Uint64(b), trailerMagic),
		bitsDiffer(60, "segment trailer's checksum", uint64(le.Uint32(b[60:])), uint64(crc32.Checksum(b[:60], castagnoli))),
	); f != nil {
		return segmentTrailer{}, f
	}
	if t.end < t.first || t.end-t.first > maxSegment/recordSize {
		return segmentTrailer{}, &fault{pos: 24, what: "segment trailer's end offset", got: t.end, want: t.first}
	}
	if t.durable > t.end {
		return segmentTrailer{}, &fault{pos: 32, what: "segment trailer's durable_upto is above its end", got: t.durable, want: t.end}
	}
	return t, differs(48, "segment trailer's index position",
		uint64(t.index), uint64(size-footerSize(int64(t.end-t.first))))
}

func segmentName(first uint64) string { return fmt.Sprintf("%0*d%s", segmentDigit, first, segmentExt) }

// parseSegmentName returns the first offset in a segment's name.
func parseSegmentName(name string) (first uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentExt)
	if !ok || len(digits) != segmentDigit {
		return 0, false
	}
	first, err := strconv.ParseUint(digits, 10, 64)
	return first, err == nil && segmentName(first) == name
}
