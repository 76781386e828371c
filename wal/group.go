package wal

import "slices"

// group is records that will be written together.
//
// A pwrite of whole blocks of 64 KiB takes two thirds of the time: the page cache then takes larger
// pages. So a group ends at the end of a block, with zeros at its end if few are needed. It gets
// some more blocks while another write runs, and where everything will soon be fsynced: one write
// costs less than two. Only what somebody waits for is written earlier.
type group struct {
	seg      *segment
	capacity int64 // of seg
	pos      int64 // in the file
	first    uint64
	count    uint32
	bytes    uint32 // of the records, once it takes no more
	limit    int    // len(buf) at the end of the last block that it is to fill
	buf      []byte // room for the header, then the records
}

const (
	maxBlock      = 64 << 10
	groupBlocks   = 4       // a group is closed by then, except for a long record
	syncBlocks    = 6       // the same where an fsync is for no more than this
	backlogBlocks = 16      // an append waits when there are more
	keepBytes     = 2 << 20 // buffers are kept for reuse up to this sum

	// indexCost is what a record takes in the index: 4 bytes, and a share of the runs.
	indexCost = 5
	// groupCost is what a group takes of a segment beyond its records: the header and the zeros
	// after it.
	groupCost = groupSize + alignment - 1
	// segmentCost is what a segment takes beyond groups and index.
	segmentCost = headerSize + trailerSize + alignment
)

// blockOf is the size of the blocks that groups fill. It is smaller in smaller segments.
func blockOf(segmentSize int64) int {
	block := maxBlock
	for int64(block) > segmentSize/16 {
		block /= 2
	}
	return block
}

// reserve returns an open group that takes size bytes in count records, and accounts for them. The
// caller holds mu.
func (l *writer) reserve(size, count int64) *group {
	need := size + indexCost*count
	g := l.top
	if g == nil || need > l.room || len(g.buf)+int(size) > g.limit {
		g = l.makeRoom(need, int(size))
	}
	l.room -= need
	l.backlog += int(size)
	l.unasked += uint64(count)
	return g
}

// makeRoom is reserve if the open group has no room, or if there is no open group.
func (l *writer) makeRoom(need int64, size int) *group {
	g := l.top
	switch {
	case g == nil && need+groupCost > l.room, g != nil && need > l.room:
		l.roll(need)
	case g == nil:
	case len(g.buf) < l.block/2:
		g.limit = l.blockEnd(g, size)
		return g
	case g.limit < l.groupLimit() && size <= l.block:
		g.limit += l.block
		return g
	default:
		if gap := g.limit - len(g.buf); gap <= l.block/8 && int64(gap) <= l.room-need-groupCost {
			l.room -= int64(gap)
			l.closeGroup(g.limit)
		} else {
			l.closeGroup(0)
		}
		l.writeSoon()
	}
	return l.openGroup(size)
}

// groupLimit is how long a group may be and still get another block. The caller holds mu.
func (l *buffer) groupLimit() int {
	if per, known := l.syncBytes(); known && per <= int64(syncBlocks*l.block) {
		return syncBlocks * l.block
	}
	if l.behind || l.round != nil {
		return groupBlocks * l.block
	}
	return 0
}

// blockEnd is what len(g.buf) is at the end of the block that the next size bytes end in. The
// caller holds mu.
func (l *buffer) blockEnd(g *group, size int) int {
	end := g.pos + int64(len(g.buf)+size)
	return int((end+int64(l.block)-1)&^int64(l.block-1) - g.pos)
}

// put adds a record that fits. The caller holds mu.
func (l *buffer) put(g *group, record []byte, sum uint32) {
	n := len(g.buf)
	pos := uint32(g.pos) + uint32(n)
	end := n + recordSize + len(record)
	if end > cap(g.buf) {
		g.grow(end, l.block)
	}
	g.buf = g.buf[:end]
	putRecordHead(g.buf[n:end:end], recordSum(l.base, l.next, len(record), sum), len(record))
	copy(g.buf[n+recordSize:end:end], record)

	if l.nth%chunkLen == 0 || l.chunk == nil {
		l.chunk = l.filling.body.Load().index.chunk(l.nth)
	}
	l.chunk.set(l.nth%chunkLen, pos)
	l.nth++
	g.count++
	l.next++
}

// grow makes room for a length, and for some blocks at once, so that few buffers are outgrown.
func (g *group) grow(length, block int) {
	for _, blocks := range []int{groupBlocks, syncBlocks} {
		if length <= blocks*block {
			g.buf = append(make([]byte, 0, blocks*block), g.buf...)
			return
		}
	}
	g.buf = slices.Grow(g.buf, length-len(g.buf))
}

// roll closes the open group and begins a segment in memory. Writing its first group makes the
// file. If the current segment has no records, roll makes it larger instead. The caller holds mu.
func (l *writer) roll(need int64) {
	if l.top != nil {
		l.closeGroup(0)
		l.writeSoon()
	}
	if l.filling.first != l.next {
		l.filling = newSegment(l.fs, l.dir, l.logID, l.next)
		l.fill = headerSize
	}
	l.capacity = max(l.opts.SegmentSize, need+groupCost+segmentCost)
	l.room = l.capacity - segmentCost
	was := l.filling.body.Load()
	l.filling.body.Store(&body{mapping: was.mapping, data: was.data, index: newIndex(l.capacity)})
	l.nth, l.chunk = 0, nil
}

// openGroup begins a group at the fill position, for size bytes first. The caller holds mu.
func (l *buffer) openGroup(size int) *group {
	var g *group
	if n := len(l.free); n > 0 {
		g, l.free = l.free[n-1], l.free[:n-1]
		l.kept -= cap(g.buf)
	} else {
		g = &group{buf: make([]byte, 0, l.block+l.block/4)}
	}
	g.seg, g.pos, g.first, g.count, g.capacity = l.filling, l.fill, l.next, 0, l.capacity
	g.buf = g.buf[:groupSize]
	// If little is left of a block, the group gets the next one too.
	g.limit = l.blockEnd(g, size+l.block/4)
	l.pending = append(l.pending, g)
	l.top = g
	l.room -= groupCost
	return g
}

// closeGroup ends the group that takes records, with zeros up to at least a length. The caller
// holds mu.
func (l *buffer) closeGroup(length int) {
	g := l.top
	g.bytes = uint32(len(g.buf) - groupSize)
	end := max(length, int(align(int64(len(g.buf)))))
	g.buf = slices.Grow(g.buf, end-len(g.buf))
	clear(g.buf[len(g.buf):end])
	g.buf = g.buf[:end]
	l.fill += int64(end)
	l.top = nil
}

// writeSoon starts writing closed groups while appends go on. The caller holds mu.
func (l *writer) writeSoon() { l.start(&l.behind, l.writeBehind) }
