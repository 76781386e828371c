package wal

import (
	"context"
	"fmt"
	"hash/crc32"
	"runtime"
)

// Append adds a record of 0 to MaxRecord bytes and returns its offset. It copies the record into a
// buffer, which is written while appends go on: see [Options] for what a crash leaves of it. Append
// waits only when it is more than 1 MiB ahead of the writing or eight segments ahead of the disk,
// and to fsync under Options.SyncEvery.
//
// Errors: ErrTooLarge, ErrClosed, ErrReadOnly, ErrFailed. After ErrFailed the next Open may or may
// not find the record.
func (l *Log) Append(record []byte) (offset uint64, err error) {
	if offset, err = l.add(record); err != nil {
		return 0, err
	}
	return offset, l.appended()
}

// AppendBatch adds records with consecutive offsets and returns the first offset, or Next if there
// are no records. A batch is one group: after a crash all of it is there, or none. Limits:
// MaxRecord for each record, MaxBatch for all. Otherwise it is like Append.
func (l *Log) AppendBatch(records [][]byte) (first uint64, err error) {
	size := int64(0)
	var few [16]uint32
	sums := few[:0]
	for i, r := range records {
		if len(r) > MaxRecord {
			return 0, fmt.Errorf("record %d of the batch: %w", i, tooLarge("record", len(r), MaxRecord))
		}
		if size += recordSize + int64(len(r)); size > MaxBatch {
			return 0, tooLarge("batch", int(size), MaxBatch)
		}
		sums = append(sums, crc32.Checksum(r, castagnoli))
	}
	if err := l.enterAppend(); err != nil {
		return 0, err
	}
	first = l.next
	if len(records) == 0 {
		l.mu.Unlock()
		return first, nil
	}
	g := l.reserve(size, int64(len(records)))
	for i, r := range records {
		l.put(g, r, sums[i])
	}
	l.wake()
	return first, l.appended()
}

// AppendSync appends a record and returns when it is durable. Calls that wait at the same time
// share an fsync. If ctx ends first, AppendSync returns the offset and the context's error: the
// record is in the log, and may or may not become durable. Other errors are those of Append.
func (l *Log) AppendSync(ctx context.Context, record []byte) (offset uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if offset, err = l.add(record); err != nil {
		return 0, err
	}
	full := l.backlog >= l.pendingBytes
	w := l.join(ctx.Done() == nil)
	l.mu.Unlock()
	if full && !w.lead {
		// This caller helps to write, which bounds the backlog. If that fails, the round fails too.
		_ = l.Flush()
	}
	return offset, l.await(ctx, w)
}

// add puts a record into the open group. If it succeeds, the caller holds mu.
func (l *Log) add(record []byte) (offset uint64, err error) {
	if len(record) > MaxRecord {
		return 0, tooLarge("record", len(record), MaxRecord)
	}
	sum := crc32.Checksum(record, castagnoli)
	if err := l.enterAppend(); err != nil {
		return 0, err
	}
	offset = l.next
	l.put(l.reserve(recordSize+int64(len(record)), 1), record, sum)
	if l.moved != nil {
		l.wake()
	}
	return offset, nil
}

// lockTries is how often an append that finds mu taken lets others run and tries again.
const lockTries = 8

// lockBriefly takes mu. Most appends hold it for some 30 ns. To wake a goroutine that sleeps in
// Mutex.Lock takes far longer, so appends first let each other run.
func (l *status) lockBriefly() {
	for range lockTries {
		if l.mu.TryLock() {
			return
		}
		runtime.Gosched()
	}
	l.mu.Lock()
}

// enterAppend takes mu once the log may take more records, or returns why it may not. Each full
// segment without a footer is an open file. Rounds do not wait for footers, so appends do.
func (l *Log) enterAppend() error {
	l.lockBriefly()
	for len(l.stale) >= maxStale && l.err == nil {
		l.wait(&l.space)
	}
	err := l.err
	if err != nil {
		l.mu.Unlock()
	}
	return err
}

func tooLarge(what string, got, limit int) error {
	return fmt.Errorf("%w: %s of %d bytes, want at most %d", ErrTooLarge, what, got, limit)
}

// appended releases mu. It first waits while the backlog is too long, or fsyncs for SyncEvery.
func (l *Log) appended() error {
	ask := l.opts.SyncEvery != 0 && l.unasked >= l.opts.SyncEvery
	if l.backlog < l.pendingBytes && !ask {
		l.mu.Unlock()
		return nil
	}
	return l.slowDown(ask)
}

func (l *Log) slowDown(ask bool) error {
	if ask {
		w := l.join(true)
		l.mu.Unlock()
		return l.await(context.Background(), w)
	}
	if l.top != nil && len(l.top.buf) >= groupBlocks*l.block { // by a long record
		l.closeGroup(0)
		l.writeSoon()
	}
	for l.backlog >= l.pendingBytes && l.behind && l.broken == nil {
		l.wait(&l.space)
	}
	l.mu.Unlock()
	return nil
}
