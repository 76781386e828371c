// Package wal is a durable append-only log of records, in segment files.
//
//	l, err := wal.Open(dir, wal.Options{})
//	offset, err := l.AppendSync(ctx, []byte("on disk when this returns"))
//	data, err := l.Read(offset, nil)
//
// Records have consecutive offsets, from 0. The log appends them through a buffer, reads them from
// mapped files, and checks their CRC32C on every read. It reports damage with its file and byte. It
// never serves damage, and never mistakes it for the end of the log. After a crash a prefix of the
// log survives, which holds at least everything below Durable; see [Options].
//
// One process at a time writes a log. Any number of goroutines may use all methods at once.
//
// This package does not know what a record means. It imports nothing of the project but the seams
// for files, goroutines and clocks, and package hook, with which tests replace them.
package wal

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// The way of a record. Append copies it into the last pending group, under mu. When that group is
// full, a goroutine (writeBehind) takes io and writes the pending groups, while appends go on. The
// holder of the sync token (syncing) does the same, and then fsyncs without io, while writes go on.
//
// A group that is complete in its file is published by written, which readers read without locks.
// Once it is fsynced, with everything before it, it is published by durable. A full segment gets
// its footer once its records are durable (finishFull). No round waits for that.
//
// The holder of io writes to the page cache and never waits for the disk. So appends do not wait
// for the disk while it keeps up.
//
// Lock order: io before mu. The sync token is taken under mu.
//
// A log consists of layers, each of which knows only those below it:
//
//	Log      appends, opens and closes
//	trimmer  drops segments
//	syncer   fsyncs in rounds, and finishes full segments
//	writer   writes groups to files
//	buffer   what is not in a file yet; reads
//	status   whether the log is open, and what waits for what
//	site     the directory and the options

// Log is an open log. Close releases its directory.
type Log struct{ trimmer }

// site is where a log is and how it was opened. It does not change after Open.
type site struct {
	fs       vfs.FS
	dir      string
	opts     Options
	logID    uint64
	base     uint32  // logSum of logID
	held     vfs.Dir // the directory, open and locked; nil: read-only
	readOnly bool

	block        int // blockOf the segments
	pendingBytes int // with so much pending during a write, an append waits

	stop chan struct{} // closed by Close
	done sync.WaitGroup
}

// shown is what readers read without a lock. It is on a cache line that appends do not write to.
type shown struct {
	_       cacheLine
	written atomic.Uint64              // records below are complete in their files
	durable atomic.Uint64              // records below are on disk for good
	list    atomic.Pointer[[]*segment] // the readable segments by first offset; replaced, never changed
	_       cacheLine
}

// status says whether a log takes and gives records, and who waits. mu guards it.
type status struct {
	site
	shown

	mu     sync.Mutex
	err    error // why nothing more is accepted: ErrClosed, ErrReadOnly, or broken
	broken error // wraps ErrFailed: why nothing more is written
	closed bool
	token
	space sync.Cond     // on mu: the backlog got shorter, a stale segment got its footer, or the log failed
	idle  sync.Cond     // on mu: the sync token was given back, or finishFull has ended
	moved chan struct{} // closed when written or next grows, or the log ends; nil: nobody waits
}

// token is the sync token, and what its next holder has to do.
type token struct {
	syncing bool       // the sync token is taken
	round   *round     // who waits for the next fsync; nil: nobody
	stale   []*segment // full, their footers not yet on disk, in order
	tidy    bool       // stale segments wait for the sync token's holder
}

// buffer is what was appended and is not in a file yet. mu guards it.
type buffer struct {
	status
	next    uint64   // the offset of the next record
	filler           // where it goes
	pending []*group // not yet written, in order
	top     *group   // the last pending one, while it takes records
	backlog int      // bytes of records that are not written yet
	behind  bool     // writeBehind is running
	free    []*group // to be reused
	kept    int      // the capacity of their buffers
	unasked uint64   // records since the last fsync was asked for, for SyncEvery
	rate
}

type filler struct {
	filling  *segment // where the next group goes
	fill     int64    // where in it
	room     int64    // bytes left in it for groups with their index entries
	capacity int64    // no byte of it will be beyond
	nth      uint64   // the number of the next record in it
	chunk    *chunk   // of its index, where nth stands; nil: to be looked up
}

// rate is how much is written for each fsync: the bytes of records written since the last round was
// closed, and on average between rounds. Changed under io and mu, so either is enough to read it.
type rate struct{ unsynced, perSync int64 }

// writer writes groups to files. io serialises that. It guards tail, and the fields of segments
// that belong to the writer.
type writer struct {
	buffer
	io      sync.Mutex
	tail    *segment // the segment that is written to
	spare   vfs.File // made ahead for the segment after it; nil: there is none
	sparing bool     // makeSpare is running
	// full is called when a segment is full. lead says that the sync token was taken for it.
	full func(lead bool)
}

// syncer makes what was written durable. Its steps belong to the holder of the sync token.
type syncer struct {
	writer
	finishing bool // finishFull is running; guarded by mu
}

type trimmer struct {
	syncer
	// mu guards these:
	retaining  bool // retainAll is running
	unretained bool // a segment has become full since it last looked
	freeing    bool // freeAll is running
	unfreed    []func(stop func() bool)

	trim  sync.Mutex // one trimmer at a time
	stuck error      // under trim: why a segment could not be removed
}

// cacheLine keeps the fields before it and those after it on different cache lines.
type cacheLine [64]byte

// First returns the oldest offset kept. It equals Next if the log is empty.
func (l *shown) First() uint64 { return (*l.list.Load())[0].first }

// Next returns the offset that the next record gets.
func (l *buffer) Next() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// Durable returns the offset below which every record is durable: those records survive a crash of
// the machine.
func (l *shown) Durable() uint64 { return l.durable.Load() }

// Stat is what a log holds.
type Stat struct {
	LogID    uint64
	First    uint64 // oldest offset kept
	Next     uint64 // offset that the next record gets
	Durable  uint64 // records below are durable
	Segments int    // files
	Bytes    int64  // of all files
}

// Stat describes the log.
func (l *buffer) Stat() Stat {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := *l.list.Load()
	s := Stat{LogID: l.logID, First: list[0].first, Next: l.next, Durable: l.durable.Load(), Segments: len(list)}
	for _, seg := range list {
		s.Bytes += seg.size.Load()
	}
	return s
}

// fail makes the log refuse everything from now on, and returns the error that says why: that of
// the first failure. Records that are not durable can no longer be read: only reopening tells
// whether they exist.
func (l *status) fail(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = fmt.Errorf("%w: %w", ErrFailed, cause)
		if l.err == nil {
			l.err = l.broken
		}
		l.written.Store(l.durable.Load())
		l.wake()
		l.space.Broadcast()
	}
	return l.broken
}

// wake wakes the followers. The caller holds mu.
func (l *status) wake() {
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}

// Close makes everything appended durable, writes a footer so that the next Open is immediate, and
// releases the directory. Readers inside a record finish. Later calls return ErrClosed. If the log
// has failed, or fails now, Close still releases everything, and returns an error that matches
// ErrFailed.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	if l.err == nil || l.readOnly {
		l.err = ErrClosed
	}
	l.wake()
	l.space.Broadcast()
	for l.syncing || l.finishing {
		l.wait(&l.idle)
	}
	l.syncing = true // for good
	l.mu.Unlock()
	close(l.stop)

	l.io.Lock()
	err := l.end()
	l.io.Unlock()
	l.done.Wait()
	if l.spare != nil {
		err = errors.Join(err, l.discard(l.spare))
	}
	l.trim.Lock()
	defer l.trim.Unlock()
	for _, s := range *l.list.Load() {
		s.drop()
	}
	if l.held != nil {
		err = errors.Join(err, l.held.Close())
	}
	return err
}

// ended reports whether Close was called, for late tasks and for those that try again.
func (l *status) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// wait waits until a condition may have come true. The caller holds mu, which wait releases
// meanwhile.
func (l *status) wait(change *sync.Cond) {
	if l.opts.steps == nil {
		change.Wait()
		return
	}
	l.mu.Unlock()
	l.opts.steps.Step()
	l.mu.Lock()
}

// end writes what is pending, fsyncs, writes the last footer and closes the files. The caller holds
// io and the sync token.
func (l *Log) end() error {
	if l.readOnly {
		return nil
	}
	err := l.writePending(nil, true)
	l.mu.Lock()
	stale := l.stale
	l.mu.Unlock()
	if err == nil {
		err = l.fsync(stale, l.tail, l.written.Load())
	}
	for _, s := range stale {
		if err == nil {
			err = l.finish(s)
		}
	}
	if err == nil && !l.tail.footed {
		if err = l.writeFooter(l.tail, l.durable.Load()); err == nil {
			err = l.tail.file.Sync()
		}
	}
	if err != nil {
		err = l.fail(err)
	}
	for _, s := range append(slices.Clone(stale), l.tail) {
		if s.file != nil {
			err = errors.Join(err, s.file.Close())
			s.file = nil
		}
	}
	return err
}
