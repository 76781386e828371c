package wal

import (
	"context"
	"fmt"
	"hash/crc32"
)

// Append adds a record of 0 to MaxRecord bytes and returns its offset. The
// record is copied into a buffer: see [Options] for what a crash leaves of it.
// It blocks only to write the buffer when that is full, and to fsync under
// Options.SyncEvery.
//
// Errors: ErrTooLarge, ErrClosed, ErrReadOnly, ErrFailed. After ErrFailed the
// record may or may not be found by the next Open.
func (l *Log) Append(record []byte) (offset uint64, err error) {
	if offset, err = l.add(record); err != nil {
		return 0, err
	}
	full := l.backlog >= flushBytes
	ask := l.opts.SyncEvery != 0 && l.unasked >= l.opts.SyncEvery
	if !full && !ask {
		l.mu.Unlock()
		return offset, nil
	}
	return offset, l.afterAppend(ask)
}

// AppendBatch adds records with consecutive offsets and returns the first
// one's; for no records, Next. A batch is written as one group: after a crash
// all of it is there, or none. Limits: MaxRecord for each, MaxBatch for all.
// Otherwise as Append.
func (l *Log) AppendBatch(records [][]byte) (first uint64, err error) {
	var few [16]uint32
	return l.appendBatch(records, few[:0])
}

// AppendSync appends a record and returns when it is durable. Calls that wait
// at the same time share an fsync: while one is running, the records of the
// next gather.
//
// When ctx ends first, AppendSync returns the offset and the context's error:
// the record is in the log, and may or may not become durable. Other errors
// as Append.
func (l *Log) AppendSync(ctx context.Context, record []byte) (offset uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if offset, err = l.add(record); err != nil {
		return 0, err
	}
	full := l.backlog >= pendingBytes
	w := l.join(ctx.Done() == nil)
	l.mu.Unlock()
	if full && !w.lead {
		// Who comes last helps to write, so that the backlog is bounded. If
		// that fails, so does the round, which knows what became of the record.
		_ = l.Flush()
	}
	return offset, l.await(ctx, w)
}

// add puts a record into the open group. When it succeeds, the caller holds mu.
func (l *Log) add(record []byte) (offset uint64, err error) {
	if len(record) > MaxRecord {
		return 0, tooLarge("record", len(record), MaxRecord)
	}
	sum := crc32.Update(0, castagnoli, record)
	l.mu.Lock()
	if l.err != nil {
		err = l.err
		l.mu.Unlock()
		return 0, err
	}
	offset = l.next
	l.reserve(recordSize+int64(len(record)), 1)
	l.put(record, sum)
	if l.moved != nil {
		l.wake()
	}
	return offset, nil
}

// appendBatch is AppendBatch with room for the checksums.
func (l *Log) appendBatch(records [][]byte, sums []uint32) (first uint64, err error) {
	size := int64(0)
	for i, r := range records {
		if len(r) > MaxRecord {
			return 0, fmt.Errorf("record %d of the batch: %w", i, tooLarge("record", len(r), MaxRecord))
		}
		if size += recordSize + int64(len(r)); size > MaxBatch {
			return 0, tooLarge("batch", int(size), MaxBatch)
		}
		sums = append(sums, crc32.Update(0, castagnoli, r))
	}
	l.mu.Lock()
	if l.err != nil {
		err = l.err
		l.mu.Unlock()
		return 0, err
	}
	first = l.next
	if len(records) == 0 {
		l.mu.Unlock()
		return first, nil
	}
	l.reserve(size, int64(len(records)))
	for i, r := range records {
		l.put(r, sums[i])
	}
	l.wake()
	full := l.backlog >= flushBytes
	ask := l.opts.SyncEvery != 0 && l.unasked >= l.opts.SyncEvery
	if !full && !ask {
		l.mu.Unlock()
		return first, nil
	}
	return first, l.afterAppend(ask)
}

func tooLarge(what string, got, limit int) error {
	return fmt.Errorf("%w: %s of %d bytes, want at most %d", ErrTooLarge, what, got, limit)
}

// reserve makes the open group one that takes size bytes in count records.
// The caller holds mu.
func (l *Log) reserve(size, count int64) {
	need := size + 5*count // 4 bytes in the index, and a share of the runs
	if l.open && need > l.room || !l.open && need+groupCost > l.room {
		l.roll(need)
	}
	if !l.open {
		l.openGroup()
	}
	l.room -= need
	l.pending[len(l.pending)-1].bytes += int(size)
	l.backlog += int(size)
	l.unasked += uint64(count)
}

// put adds a record for which there is room. The caller holds mu.
func (l *Log) put(record []byte, sum uint32) {
	g := l.pending[len(l.pending)-1]
	pos := g.pos + int64(len(g.buf))
	var head [recordSize]byte
	putRecordHead(head[:], recordSum(l.base, l.next, len(record), sum), len(record))
	g.buf = append(g.buf, head[:]...)
	g.buf = append(g.buf, record...)

	g.seg.body.Load().index.set(l.next-g.seg.first, uint32(pos))
	g.count++
	l.next++
}

const (
	// groupCost is what a group takes of a segment beyond its records: the
	// header and the zeros behind.
	groupCost = groupSize + alignment - 1
	// segmentCost is what a segment takes beyond groups and index.
	segmentCost = headerSize + trailerSize + alignment
)

// roll closes the open group and begins a segment, in memory; the file is made
// by whoever writes its first group. A segment without records is made larger
// instead. The caller holds mu.
func (l *Log) roll(need int64) {
	l.closeGroup()
	if l.filling.first != l.next {
		l.filling = newSegment(l.fs, l.dir, l.logID, l.next)
		l.fill = headerSize
	}
	l.capacity = max(l.opts.SegmentSize, need+groupCost+segmentCost)
	l.room = l.capacity - segmentCost
	was := l.filling.body.Load()
	l.filling.body.Store(&body{mapping: was.mapping, data: was.data, index: newIndex(l.capacity)})
}

// openGroup begins a group at the fill position. The caller holds mu.
func (l *Log) openGroup() {
	var g *group
	if n := len(l.free); n > 0 {
		g, l.free = l.free[n-1], l.free[:n-1]
	} else {
		g = &group{buf: make([]byte, 0, groupSize+flushBytes+flushBytes/4)}
	}
	g.seg, g.pos, g.first, g.count, g.capacity = l.filling, l.fill, l.next, 0, l.capacity
	g.buf = g.buf[:groupSize]
	l.pending = append(l.pending, g)
	l.open = true
	l.room -= groupCost
}

// closeGroup ends the group that takes records. The caller holds mu.
func (l *Log) closeGroup() {
	if !l.open {
		return
	}
	g := l.pending[len(l.pending)-1]
	for len(g.buf)%alignment != 0 {
		g.buf = append(g.buf, 0)
	}
	l.fill += int64(len(g.buf))
	l.open = false
}

// afterAppend writes a full buffer, or fsyncs when SyncEvery asks for it. The
// caller holds mu, which is released.
func (l *Log) afterAppend(ask bool) error {
	if ask {
		w := l.join(true)
		l.mu.Unlock()
		return l.await(context.Background(), w)
	}
	wait := l.backlog >= pendingBytes
	l.mu.Unlock()
	if wait {
		l.io.Lock()
	} else if !l.io.TryLock() {
		return nil // a write is under way, and there is room to go on
	}
	defer l.io.Unlock()
	return l.writePending(nil)
}
