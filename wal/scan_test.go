package wal

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// FuzzScan gives the scanner groups whose headers are sound and whose records
// are anything: what it takes for a record must be one by the format.
func FuzzScan(f *testing.F) {
	at := place{logID: 9, segment: 100}
	record := func(offset uint64, data string) []byte {
		b := make([]byte, recordSize)
		putRecordHead(b, recordSum(logSum(at.logID), offset, len(data), crc32.Checksum([]byte(data), castagnoli)), len(data))
		return append(b, data...)
	}
	f.Add(bytes.Join([][]byte{record(100, ""), record(101, "abc")}, nil), uint32(2), uint64(90), []byte{})
	f.Add(record(100, "abcdefgh"), uint32(1), uint64(100), record(101, "x"))
	f.Add([]byte{1, 2, 3}, uint32(0), uint64(101), []byte{4})
	f.Fuzz(func(t *testing.T, records []byte, count uint32, durable uint64, behind []byte) {
		if len(records) > 1<<16 || len(behind) > 1<<16 {
			t.Skip()
		}
		data := encode(segmentHeader{Magic: segmentMagic, LogID: at.logID, First: at.segment})
		for i, payload := range [][]byte{records, behind} {
			h := groupHeader{logID: at.logID, segment: at.segment, first: at.segment + uint64(i)*uint64(count), durable: durable, bytes: uint32(len(payload)), count: count}
			group := append(make([]byte, groupSize), payload...)
			group = append(group, make([]byte, align(int64(len(group)))-int64(len(group)))...)
			h.encode(group)
			data = append(data, group...)
		}
		s, unreadable := scanSegment(data, at)
		if unreadable != nil {
			t.Fatalf("%+v", unreadable)
		}
		if uint64(len(s.index)) != s.next-at.segment || s.end > int64(len(data)) || s.stop == nil && leadingZeros(data[s.end:]) < int64(len(data))-s.end {
			t.Fatalf("%d positions, next %d, end %d of %d, stop %+v", len(s.index), s.next, s.end, len(data), s.stop)
		}
		x := indexOf(s.index, int64(len(data)))
		seg := &segment{identity: identity{first: at.segment, base: logSum(at.logID)}, next: s.next}
		in := entered{segment: seg, body: &body{data: data[:s.end], index: x}}
		for offset := at.segment; offset < s.next; offset++ {
			if _, err := in.read(offset, nil, true); err != nil {
				t.Fatalf("record %d was found sound and cannot be read: %v", offset, err)
			}
		}
		if durable <= at.segment && s.durable < durable {
			t.Fatalf("durable_upto %d was overlooked: %d", durable, s.durable)
		}
	})
}

// TestIndex compares both forms of an index with the positions they were made
// of, for equal and for varying distances.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, runLen - 1, runLen, runLen + 1, chunkLen, 3*chunkLen + 5} {
		for _, equal := range []int{0, 5, 1} { // of so many blocks one varies
			positions := make([]uint32, n)
			pos := uint32(headerSize + groupSize)
			for i := range positions {
				positions[i] = pos
				pos += recordSize + 256
				if equal == 0 || i/runLen%(equal+1) == equal {
					pos += r.Uint32N(100)
				}
			}
			memory := indexOf(positions, int64(pos))
			var b []byte
			for piece := range memory.stored(uint64(n)) {
				b = append(b, piece...)
			}
			if got, want := int64(len(b)), indexSize(int64(n)); got != want {
				t.Fatalf("%d records: the index takes %d bytes, want %d", n, got, want)
			}
			stored := storedIndex(b, uint64(n))
			for i, want := range positions {
				if got, _ := memory.position(uint64(i)); got != int64(want) {
					t.Fatalf("%d records: in memory, position %d is %d, want %d", n, i, got, want)
				}
				if got, _ := stored.position(uint64(i)); got != int64(want) {
					t.Fatalf("%d records: stored, position %d is %d, want %d", n, i, got, want)
				}
			}
			if got, _ := stored.position(uint64(n)); got != -1 {
				t.Errorf("position beyond the end: %d", got)
			}
		}
	}
}

// TestRecordSumBindsPlace checks what the format promises of the checksum:
// the same data at another offset, or with another length, has another sum.
func TestRecordSumBindsPlace(t *testing.T) {
	seen := make(map[uint32]uint64)
	for offset := uint64(1 << 33); offset < 1<<33+1<<16; offset++ {
		sum := recordSum(1, offset, 10, 77)
		if other, ok := seen[sum]; ok {
			t.Fatalf("offsets %d and %d have the same sum", offset, other)
		}
		seen[sum] = offset
	}
	if recordSum(1, 5, 10, 77) == recordSum(1, 5, 11, 77) || recordSum(1, 5, 10, 77) == recordSum(2, 5, 10, 77) || recordSum(1, 5, 10, 77) == recordSum(1, 5+1<<32, 10, 77) {
		t.Error("length, log or upper half of the offset do not count")
	}
}
