package kuji

import (
	"fmt"
	"iter"

	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// entryLog is everything that a realm needs of the log under it. Correctness is in the entries
// (see chain), so a driver needs no more than this.
type entryLog interface {
	// Append adds an entry at an offset, which must be the next one of the log. A deposed writer
	// finds it taken and is refused. Append returns when the entry is as durable as the driver's
	// policy says.
	Append(at uint64, entry []byte) error
	// Entries iterates from an offset to the end or to the first error, which names the place. The
	// memory of an entry is never reused: what Verify reports may point into it.
	Entries(from uint64) iter.Seq2[logEntry, error]
	// Next is the offset that the next append gets.
	Next() uint64
	// Durable is the offset below which everything is fsynced.
	Durable() uint64
	// Sync makes every appended entry durable.
	Sync() error
	// First is the offset of the oldest entry that is kept.
	First() uint64
	// TrimBefore drops entries before an offset. It may keep some of them.
	TrimBefore(offset uint64) error
	Close() error
}

type logEntry struct {
	offset uint64
	data   []byte
}

// walLog is the embedded driver: package wal in a directory.
type walLog struct {
	w      *wal.Log
	policy SyncPolicy
}

// knownLog is what is known of a log before it is opened.
type knownLog struct {
	exists  bool   // it must not be created
	durable uint64 // every entry below this offset was durable
}

func openWAL(fs vfs.FS, steps step.Runner, dir string, known knownLog, o *Options) (entryLog, error) {
	wo := wal.Options{
		SegmentSize: o.SegmentSize, FS: fs, Steps: steps, CheckTail: true,
		MustExist: known.exists, DurableUpto: known.durable,
	}
	if o.Sync == SyncInterval {
		wo.SyncInterval = o.SyncEvery
	}
	w, err := wal.Open(dir, wo)
	if err != nil {
		return nil, err
	}
	return &walLog{w: w, policy: o.Sync}, nil
}

// openWALReadOnly opens a log that must exist. It changes nothing.
func openWALReadOnly(fsys vfs.FS, dir string, known knownLog) (entryLog, error) {
	w, err := wal.Open(dir, wal.Options{ReadOnly: true, FS: fsys, SegmentSize: wal.MinSegmentSize, DurableUpto: known.durable})
	if err != nil {
		return nil, err
	}
	return &walLog{w: w}, nil
}

func (l *walLog) Append(at uint64, entry []byte) error {
	if next := l.w.Next(); next != at {
		return fmt.Errorf("append at offset %d refused: the next offset is %d, another writer was here", at, next)
	}
	if _, err := l.w.Append(entry); err != nil {
		return err
	}
	if l.policy == SyncAlways {
		return l.w.Sync()
	}
	return l.w.Flush()
}

func (l *walLog) Entries(from uint64) iter.Seq2[logEntry, error] {
	return entriesFrom(l.w.Records(from), from)
}

func (l *walLog) Next() uint64    { return l.w.Next() }
func (l *walLog) Durable() uint64 { return l.w.Durable() }
func (l *walLog) First() uint64   { return l.w.First() }
func (l *walLog) Sync() error     { return l.w.Sync() }
func (l *walLog) Close() error    { return l.w.Close() }

func (l *walLog) TrimBefore(offset uint64) error { return l.w.TrimBefore(offset) }

// memoryLog is the driver of an engine in memory. It counts the entries and keeps none.
type memoryLog struct{ next uint64 }

func (l *memoryLog) Append(at uint64, _ []byte) error {
	if at != l.next {
		return fmt.Errorf("append at offset %d refused: the next offset is %d", at, l.next)
	}
	l.next++
	return nil
}

func (l *memoryLog) Entries(uint64) iter.Seq2[logEntry, error] {
	return func(func(logEntry, error) bool) {}
}

func (l *memoryLog) Next() uint64            { return l.next }
func (l *memoryLog) Durable() uint64         { return l.next }
func (l *memoryLog) Sync() error             { return nil }
func (l *memoryLog) First() uint64           { return 0 }
func (l *memoryLog) TrimBefore(uint64) error { return nil }
func (l *memoryLog) Close() error            { return nil }
