package kuji

import (
	"fmt"
	"iter"
	"time"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// entryLog is all that a realm asks of the log under it. Correctness travels
// in the entries (see chain), so a driver needs no more than this.
type entryLog interface {
	// Append adds an entry at an offset, which must be the log's next: a
	// writer that was deposed finds it taken and is refused. It returns when
	// the entry is as durable as the driver's policy says.
	Append(at uint64, entry []byte) error
	// Entries iterates from an offset to the end, or to the first error,
	// which names the place. An entry's memory is not used again: what Verify tells
	// of it aliases it.
	Entries(from uint64) iter.Seq2[logEntry, error]
	// Next is the offset of the next append.
	Next() uint64
	// Durable is the offset below which everything is fsynced.
	Durable() uint64
	// Sync makes everything appended durable.
	Sync() error
	// First is the offset of the oldest entry kept.
	First() uint64
	// TrimBefore drops entries before an offset, as far as that is cheap.
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

func openWAL(dir string, o *Options) (*walLog, error) {
	wo := wal.Options{SegmentSize: o.SegmentSize, FS: o.FS, Steps: o.Steps, CheckTail: true}
	if o.Sync == SyncInterval {
		wo.SyncInterval = o.SyncEvery
	}
	w, err := wal.Open(dir, wo)
	if err != nil {
		return nil, err
	}
	return &walLog{w: w, policy: o.Sync}, nil
}

// openWALReadOnly opens a log that exists, and changes nothing.
func openWALReadOnly(fsys vfs.FS, dir string) (*walLog, error) {
	w, err := wal.Open(dir, wal.Options{ReadOnly: true, FS: fsys, SegmentSize: wal.MinSegmentSize})
	if err != nil {
		return nil, err
	}
	return &walLog{w: w}, nil
}

func (l *walLog) Append(at uint64, entry []byte) error {
	if next := l.w.Next(); next != at {
		return fmt.Errorf("append at offset %d refused: the log stands at %d, another writer was here", at, next)
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

// noLog is the driver of SyncOff: it counts what it is given.
type noLog struct{ next uint64 }

func (l *noLog) Append(at uint64, _ []byte) error {
	if at != l.next {
		return fmt.Errorf("append at offset %d refused: the log stands at %d", at, l.next)
	}
	l.next++
	return nil
}

func (l *noLog) Entries(uint64) iter.Seq2[logEntry, error] {
	return func(func(logEntry, error) bool) {}
}

func (l *noLog) Next() uint64            { return l.next }
func (l *noLog) Durable() uint64         { return l.next }
func (l *noLog) Sync() error             { return nil }
func (l *noLog) First() uint64           { return 0 }
func (l *noLog) TrimBefore(uint64) error { return nil }
func (l *noLog) Close() error            { return nil }

// checked returns o with defaults filled in, or what is wrong with it.
func (o Options) checked() (Options, error) {
	if o.Sync > SyncOff {
		return o, errf(CodeInvalid, "Sync", "unknown policy %d; SyncAlways, SyncInterval, SyncNone or SyncOff", o.Sync)
	}
	if o.Sync == SyncOff {
		if o.FS != nil {
			return o, errf(CodeInvalid, "FS", "a file system, with SyncOff, which writes nothing")
		}
		o.FS, o.SnapshotEvery = vfs.NewMem(), -1
	}
	if o.SyncEvery == 0 {
		o.SyncEvery = 100 * time.Millisecond
	}
	if o.SyncEvery < time.Millisecond || o.SyncEvery > time.Hour {
		return o, errf(CodeInvalid, "SyncEvery", "%v; 1ms to 1h are allowed", o.SyncEvery)
	}
	if o.SegmentSize != 0 && (o.SegmentSize < wal.MinSegmentSize || o.SegmentSize > wal.MaxSegmentSize) {
		return o, errf(CodeInvalid, "SegmentSize", "%d bytes; %d to %d are allowed", o.SegmentSize, wal.MinSegmentSize, int64(wal.MaxSegmentSize))
	}
	if o.MaxPending == 0 {
		o.MaxPending = 8 << 20
	}
	if o.MaxPending < 1<<20 || o.MaxPending > 16<<20 {
		return o, errf(CodeInvalid, "MaxPending", "%d bytes; %d to %d are allowed", o.MaxPending, 1<<20, 16<<20)
	}
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = 64 << 20
	}
	if o.TrimLog && o.SnapshotEvery < 0 {
		return o, errf(CodeInvalid, "TrimLog", "set, with snapshots off; only what a snapshot covers can be trimmed")
	}
	if o.Now == nil {
		o.Now, o.coarse = time.Now, o.Sync == SyncOff
	}
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	return o, nil
}
