package wal

import (
	"encoding/binary"
	"iter"
	"sync/atomic"
)

// The index of a segment says where each record starts. Looking there costs a cache miss, as much
// as reading the record. So a small table says of each block of runLen records where the first is
// and, if all have the same length and are in one group, the distance between them. Logs of equal
// records are read by that table alone. On disk, after the groups of a full segment:
//
//	position of each record      4 bytes each, then zeros to a multiple of 8
//	for each full block:         4 position of its first record
//	                             4 distance from one record to the next; 0: it varies
const (
	runLen   = 32
	chunkLen = 4096 // records in a chunk of an index in memory: a multiple of runLen
)

// chunk is a part of an index in memory.
type chunk struct {
	positions [chunkLen]uint32
	runs      [chunkLen / runLen]atomic.Uint64 // as on disk, the distance in the upper half
}

// index is the index of one segment: stored, in its mapping, or in memory. An index in memory grows
// under Log.mu. It is read without a lock, for records that are known to be written.
type index struct {
	positions []byte // stored
	runs      []byte // stored
	chunks    []atomic.Pointer[chunk]
}

func indexSize(n int64) int64 { return align(4*n) + n/runLen*8 }

// storedIndex is the index of n records at the start of b.
func storedIndex(b []byte, n uint64) index {
	return index{positions: b[:4*n], runs: b[align(4*int64(n)):indexSize(int64(n))]}
}

// newIndex returns an empty index in memory, with room for the records that fit into capacity
// bytes.
func newIndex(capacity int64) index {
	return index{chunks: make([]atomic.Pointer[chunk], capacity/recordSize/chunkLen+1)}
}

// position returns where record number i starts, and the length that its data has if the next
// record follows at once, or -1. A stored index may be damaged: then the result may be anything.
func (x *index) position(i uint64) (pos, length int64) {
	if x.chunks == nil {
		if r := i / runLen * 8; r < uint64(len(x.runs)) {
			if run := binary.LittleEndian.Uint64(x.runs[r:]); run>>32 != 0 {
				return inRun(run, i)
			}
		}
		if 4*i >= uint64(len(x.positions)) {
			return -1, -1
		}
		return int64(binary.LittleEndian.Uint32(x.positions[4*i:])), -1
	}
	if i/chunkLen >= uint64(len(x.chunks)) {
		return -1, -1
	}
	c := x.chunks[i/chunkLen].Load()
	if c == nil {
		return -1, -1
	}
	if run := c.runs[i%chunkLen/runLen].Load(); run>>32 != 0 {
		return inRun(run, i)
	}
	return int64(c.positions[i%chunkLen]), -1
}

// inRun is position for a record within a run.
func inRun(run, i uint64) (pos, length int64) {
	return int64(uint32(run)) + int64(run>>32)*int64(i%runLen), int64(run>>32) - recordSize
}

// chunk returns the part of an index in memory that holds record number i.
func (x *index) chunk(i uint64) *chunk {
	at := &x.chunks[i/chunkLen]
	c := at.Load()
	if c == nil {
		c = new(chunk)
		at.Store(c)
	}
	return c
}

func (c *chunk) set(k uint64, pos uint32) {
	c.positions[k] = pos
	if k%runLen == runLen-1 {
		c.runs[k/runLen].Store(runOf(c.positions[k+1-runLen : k+1]))
	}
}

// runOf describes a block as it is stored.
func runOf(block []uint32) uint64 {
	distance := block[1] - block[0]
	for k := 2; k < len(block); k++ {
		if block[k]-block[k-1] != distance {
			distance = 0
			break
		}
	}
	return uint64(block[0]) | uint64(distance)<<32
}

// stored returns the index of n records as it is stored, in pieces, each valid until the next.
func (x *index) stored(n uint64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		piece := make([]byte, 0, 4*chunkLen)
		for first := uint64(0); first < n; first += chunkLen {
			piece = piece[:0]
			for _, pos := range x.chunks[first/chunkLen].Load().positions[:min(n-first, chunkLen)] {
				piece = binary.LittleEndian.AppendUint32(piece, pos)
			}
			if !yield(piece) {
				return
			}
		}
		if n%2 != 0 && !yield([]byte{0, 0, 0, 0}) {
			return
		}
		for first := uint64(0); first < n; first += chunkLen {
			piece = piece[:0]
			c := x.chunks[first/chunkLen].Load()
			for k := range min(n-first, chunkLen) / runLen {
				piece = binary.LittleEndian.AppendUint64(piece, c.runs[k].Load())
			}
			if !yield(piece) {
				return
			}
		}
	}
}

func indexOf(positions []uint32, capacity int64) index {
	x := newIndex(capacity)
	for i, pos := range positions {
		x.chunk(uint64(i)).set(uint64(i)%chunkLen, pos)
	}
	return x
}
