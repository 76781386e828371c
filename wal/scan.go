package wal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"sync"
	"sync/atomic"
)

// place is what a group must say of itself to count as part of a segment.
type place struct {
	logID   uint64
	segment uint64
}

// scan is what was found in the groups of a segment.
type scan struct {
	next    uint64      // offset after the last sound record
	end     int64       // position after the last sound group
	groups  []groupSpan // the sound ones, in order
	index   []uint32    // the position of every sound record
	durable uint64      // the highest durable_upto of any group header, sound records or not, beyond a gap or not
	stop    *fault      // why the scan ended where it did; nil when only zeros are left
}

type groupSpan struct {
	pos int64
	groupHeader
}

// scanSegment checks every group and record of data, the bytes of a segment from its start: first
// all headers, one after the other, then the records of all groups on all processors. The data may
// be a mapping that is read within guarded. If a page of it cannot be read, ignore the scan.
func scanSegment(data []byte, at place) (s scan, unreadable *fault) {
	s = follow(data, at)
	durable := durableBeyond(data, s.end, at)
	for durable > s.next {
		// This is damage, or a writer has written more groups meanwhile.
		again := follow(data, at)
		if again.next == s.next {
			break
		}
		s = again
		durable = durableBeyond(data, s.end, at)
	}
	s.durable = max(s.durable, durable)
	return s, s.checkRecords(data, at)
}

// scanner is scanSegment or headers.
type scanner func(data []byte, at place) (scan, *fault)

// headers is scanSegment for headers alone.
func headers(data []byte, at place) (scan, *fault) { return follow(data, at), nil }

// headerless reports whether a segment that begins like this was never fsynced. The header is part
// of one sector, so it is there as a whole or not at all.
func headerless(head []byte) bool {
	return len(head) < headerSize || leadingZeros(head[:headerSize]) == headerSize
}

// scanUnborn is scanSegment for a segment without a header. Such a segment holds nothing, but may
// prove that it once did.
func scanUnborn(data []byte, at place) (scan, *fault) {
	missing := &fault{What: "header of a segment is missing", Offset: at.segment, Want: segmentMagic, Bits: true}
	return scan{next: at.segment, stop: missing, durable: durableBeyond(data, headerSize, at)}, nil
}

// follow goes from group header to group header, from the start of the segment, as long as each is
// where the one before says it must be.
func follow(data []byte, at place) scan {
	s := scan{next: at.segment, end: headerSize}
	for {
		pos := s.end + leadingZeros(data[s.end:])
		if pos >= int64(len(data)) {
			return s
		}
		h, f := decodeGroupHeader(data[pos:])
		if f == nil {
			f = h.misplaced(at, s.next, int64(len(data))-pos)
		}
		if f != nil {
			f.Pos += pos
			f.Offset = s.next
			s.stop = f
			return s
		}
		s.groups = append(s.groups, groupSpan{pos, h})
		s.durable = max(s.durable, h.durable)
		s.next += uint64(h.count)
		s.end = pos + h.size()
	}
}

// leadingZeros is how many bytes at the start of b are zero, down to a multiple of the alignment.
// Zeros stand before the next group, and after the last one if the file was made longer ahead of
// writing.
func leadingZeros(b []byte) int64 {
	n := 0
	for len(b)-n >= alignment && binary.LittleEndian.Uint64(b[n:]) == 0 {
		n += alignment
	}
	if rest := b[n:]; len(rest) < alignment && len(bytes.TrimLeft(rest, "\x00")) == 0 {
		return int64(len(b))
	}
	return int64(n)
}

// misplaced says why a header cannot stand where it was found.
func (h groupHeader) misplaced(at place, next uint64, room int64) *fault {
	if f := cmp.Or(
		bitsDiffer(8, "group's log id", h.logID, at.logID),
		differs(16, "group's segment", h.segment, at.segment),
		differs(24, "group's first offset", h.first, next),
	); f != nil {
		return f
	}
	switch {
	case h.durable > h.first:
		return &fault{Pos: 32, What: "group's durable_upto is above its first offset", Got: h.durable, Want: h.first}
	case h.size() > room:
		return &fault{Pos: 4, What: "group is cut short", Got: uint64(room), Want: uint64(h.size())}
	case uint64(h.count)*recordSize > uint64(h.bytes):
		return &fault{Pos: 40, What: "group's number of records", Got: uint64(h.count), Want: uint64(h.bytes / recordSize)}
	}
	return nil
}

// durableBeyond searches the bytes from pos on for headers of groups of this segment, and returns
// the highest durable_upto. A sound header proves what it says even if its records are lost. If the
// id of the log is not known, any id will do.
func durableBeyond(data []byte, pos int64, at place) (durable uint64) {
	if pos = align(pos); pos >= int64(len(data)) {
		return 0
	}
	for rest := data[pos:]; len(rest) >= groupSize; rest = rest[alignment:] {
		if binary.LittleEndian.Uint32(rest) != groupMagic {
			continue
		}
		h, f := decodeGroupHeader(rest)
		if f == nil && (h.logID == at.logID || at.logID == 0) && h.segment == at.segment && h.durable <= h.first {
			durable = max(durable, h.durable)
		}
	}
	return durable
}

// checkRecords checks the records of all groups and cuts the scan before the first group with a
// fault.
func (s *scan) checkRecords(data []byte, at place) (unreadable *fault) {
	s.index = make([]uint32, s.next-at.segment)
	base := logSum(at.logID)
	var (
		turn atomic.Int64
		bad  atomic.Int64 // the first group with a fault; written under mu, like why
		wg   sync.WaitGroup
		mu   sync.Mutex
		why  *fault
	)
	bad.Store(int64(len(s.groups)))
	work := func() {
		caught := guarded(data, func() *fault {
			for i := turn.Add(1) - 1; i < bad.Load(); i = turn.Add(1) - 1 {
				g := s.groups[i]
				if f := checkGroup(data, g, base, s.index[g.first-at.segment:]); f != nil {
					mu.Lock()
					if i < bad.Load() {
						bad.Store(i)
						why = f
					}
					mu.Unlock()
				}
			}
			return nil
		})
		if caught != nil {
			mu.Lock()
			unreadable = caught
			mu.Unlock()
		}
	}
	for range min(runtime.GOMAXPROCS(0), 1+len(s.groups)/16) {
		wg.Go(work)
	}
	wg.Wait()
	if unreadable == nil && why != nil {
		g := s.groups[bad.Load()]
		s.groups, s.stop = s.groups[:bad.Load()], why
		s.next, s.end = g.first, g.pos
		s.index = s.index[:g.first-at.segment]
	}
	return unreadable
}

func checkGroup(data []byte, g groupSpan, base uint32, index []uint32) *fault {
	pos := g.pos + groupSize
	end := pos + int64(g.bytes)
	for i := range uint64(g.count) {
		offset := g.first + i
		if end-pos < recordSize {
			return &fault{Pos: pos, Offset: offset, What: "record header is cut short", Got: uint64(end - pos), Want: recordSize}
		}
		sum := binary.LittleEndian.Uint32(data[pos:])
		length := int64(binary.LittleEndian.Uint32(data[pos+4:]))
		if length > end-pos-recordSize {
			return &fault{Pos: pos + 4, Offset: offset, What: "record reaches beyond its group", Got: uint64(length), Want: uint64(end - pos - recordSize)}
		}
		body := data[pos+recordSize : pos+recordSize+length]
		if want := recordSum(base, offset, int(length), crc32.Checksum(body, castagnoli)); sum != want {
			return &fault{Pos: pos, Offset: offset, What: "record's checksum", Got: uint64(sum), Want: uint64(want), Bits: true}
		}
		index[i] = uint32(pos)
		pos += recordSize + length
	}
	if pos != end {
		return &fault{Pos: pos, Offset: g.first + uint64(g.count), What: "group has bytes after its last record", Got: uint64(end), Want: uint64(pos)}
	}
	for ; pos < g.pos+g.size(); pos++ {
		if data[pos] != 0 {
			return &fault{Pos: pos, Offset: g.first + uint64(g.count), What: "padding after a group", Got: uint64(data[pos]), Bits: true}
		}
	}
	return nil
}
