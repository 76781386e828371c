package wal

import (
	"fmt"
	"path"
	"path/filepath"
	"time"

	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Limits of the format. They are not options, so that no setting can make stored data unreadable.
const (
	// MaxRecord is the longest record, in bytes.
	MaxRecord = 64 << 20
	// MaxBatch is the most that one AppendBatch takes: the sum of the records' lengths and of 8
	// bytes for each record.
	MaxBatch = 256 << 20
	// MinSegmentSize and MaxSegmentSize bound Options.SegmentSize, in bytes.
	MinSegmentSize = 4 << 10
	MaxSegmentSize = 3 << 30
	// MaxOffset bounds offsets. A log that takes a million records a second reaches it after
	// 146,000 years.
	MaxOffset = 1 << 62

	maxSegment         = MaxSegmentSize + MaxBatch // of any file
	defaultSegmentSize = 64 << 20
)

// Options configures a log. The zero value is a log of 64 MiB segments that keeps everything, and
// fsyncs when Sync or AppendSync asks for it.
//
// What survives a crash:
//
//   - A crash of the process loses what is not yet written to the files: at most the records since
//     the last Flush, Sync or AppendSync. The log writes them in the background, as soon as a block
//     of 64 KiB is full. So less than that waits when appends pause, up to 256 KiB when they have
//     just outrun the writing, and at most 1 MiB and one record or batch of each goroutine that is
//     appending. In a log that is fsynced more often than every 384 KiB, up to 384 KiB wait for the
//     fsync.
//   - A crash of the machine keeps everything below Durable, and a prefix of the rest. Four policies
//     decide when Durable covers a record: explicit (AppendSync and Sync, on return), SyncEvery,
//     SyncInterval, and none, which is to call Append alone. Under every policy the log fsyncs full
//     segments in the background.
//
// Records are never lost from the middle. After a crash, the log has the records from First up to
// some offset at or above Durable.
type Options struct {
	// SegmentSize is the maximum size of a segment file in bytes, footer included, from
	// MinSegmentSize to MaxSegmentSize. A record or a batch that needs more gets a segment of its
	// own. Default: 64 MiB.
	SegmentSize int64
	// SyncEvery fsyncs after every so many records: the append that completes the number returns
	// when all of them are durable. A crash of the machine loses at most SyncEvery−1 acknowledged
	// records. Default: 0, never.
	SyncEvery uint64
	// SyncInterval fsyncs in the background at this interval, at least 1 ms, if there is anything
	// new. A crash of the machine loses at most what was appended in the last interval, or in
	// an fsync that took longer, and in the fsync after it. Default: 0, never.
	SyncInterval time.Duration
	// RetainBytes: each time a segment becomes full, the log drops the oldest segments while all
	// files together are larger than this. Default: 0, keep all.
	RetainBytes int64
	// RetainAge: each time a segment becomes full, the log drops segments whose newest record is
	// older than this. Default: 0, keep all.
	RetainAge time.Duration
	// ReadOnly opens the log as it is and changes nothing in its directory. It does not cut a torn
	// tail, but leaves it out. It takes no lock: with a writer it sees the records that were in the
	// files when it was opened.
	ReadOnly bool
	// CheckTail makes Open check every byte of the last segment even if the log was closed, which
	// reads up to a segment more. Otherwise Open trusts the footer of a closed log, and damage
	// there is found only after a later crash, when more was appended. Default: false.
	CheckTail bool
	// MustExist makes Open fail with fs.ErrNotExist instead of making a new log. For callers who
	// know that there was one. Default: false.
	MustExist bool
	// DurableUpto is an offset below which every record is known to have been durable, such as Next
	// when the log was last closed. If the log ends before it, that is damage, and Open changes
	// nothing. The log's own files cannot tell that files are missing at the end. Default: 0,
	// nothing is known.
	DurableUpto uint64

	// FirstOffset is the offset of the first record of a new log, at most MaxOffset: for a copy of
	// a log whose beginning was trimmed. Ignored when the log exists. After a crash while such a
	// log is made, Open may take it for a damaged one. Default: 0.
	FirstOffset uint64
	// LogID names a new log; two logs must not have the same. Ignored when the log exists. Default:
	// 0, drawn at random. For reproducible tests.
	LogID uint64

	fs    vfs.FS      // nil: the operating system's
	steps step.Runner // nil: goroutines, the clock and entropy of the operating system
}

func init() {
	hook.WAL = func(options any, fs vfs.FS, steps step.Runner) {
		o := options.(*Options)
		o.fs, o.steps = fs, steps
	}
}

// at returns the options with their defaults, for a log in a directory, whose name it returns as
// the file system wants it.
func (o Options) at(dir string) (Options, string, error) {
	if dir == "" {
		return o, "", fmt.Errorf("%w: the directory is empty, want a path", ErrOptions)
	}
	dir = path.Clean(filepath.ToSlash(dir))
	if o.SegmentSize == 0 {
		o.SegmentSize = defaultSegmentSize
	}
	if o.fs == nil {
		o.fs = vfs.OS()
	}
	switch {
	case o.SegmentSize < MinSegmentSize || o.SegmentSize > MaxSegmentSize:
		return o, dir, fmt.Errorf("%w: SegmentSize is %d, want %d to %d", ErrOptions, o.SegmentSize, MinSegmentSize, int64(MaxSegmentSize))
	case o.SyncInterval != 0 && o.SyncInterval < time.Millisecond:
		return o, dir, fmt.Errorf("%w: SyncInterval is %v, want 0 or at least 1ms", ErrOptions, o.SyncInterval)
	case o.RetainBytes < 0:
		return o, dir, fmt.Errorf("%w: RetainBytes is %d, want 0 or more", ErrOptions, o.RetainBytes)
	case o.FirstOffset > MaxOffset:
		return o, dir, fmt.Errorf("%w: FirstOffset is %d, want at most %d", ErrOptions, o.FirstOffset, uint64(MaxOffset))
	case o.RetainAge < 0:
		return o, dir, fmt.Errorf("%w: RetainAge is %v, want 0 or more", ErrOptions, o.RetainAge)
	}
	return o, dir, nil
}
