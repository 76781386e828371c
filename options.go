package kuji

import (
	"time"

	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// SyncPolicy says what "acknowledged" means.
type SyncPolicy uint8

const (
	// SyncAlways acknowledges a request when its batch is fsynced. Nothing
	// acknowledged is lost in a crash of the process, the kernel or the power.
	SyncAlways SyncPolicy = iota
	// SyncInterval acknowledges when the batch has been handed to the
	// operating system, which is fsynced every Options.SyncEvery. A crash of
	// the process loses nothing acknowledged; a crash of the machine loses at
	// most what was acknowledged in the last SyncEvery plus one fsync.
	SyncInterval
	// SyncNone acknowledges when the batch has been handed to the operating
	// system and never fsyncs but at Close. A crash of the process loses
	// nothing acknowledged; a crash of the machine may lose anything since
	// the last Close.
	SyncNone
)

// String returns "always", "interval" or "none".
func (p SyncPolicy) String() string {
	switch p {
	case SyncAlways:
		return "always"
	case SyncInterval:
		return "interval"
	case SyncNone:
		return "none"
	}
	return "invalid"
}

// Options configures an [Engine]. The zero value is a durable, embedded engine.
type Options struct {
	// Sync is the durability policy of every realm. Default: SyncAlways.
	Sync SyncPolicy
	// SyncEvery is the time between fsyncs under SyncInterval, at least 1 ms.
	// Default: 100 ms. Ignored otherwise.
	SyncEvery time.Duration
	// SegmentSize is the maximum size of a log segment, in bytes, from
	// wal.MinSegmentSize to wal.MaxSegmentSize. Default: 64 MiB.
	SegmentSize int64
	// MaxPending bounds the bytes of events that wait for the log in one
	// realm, from 1 MiB to 16 MiB, besides those that are being written, which may
	// be as many; beyond it Do and DoAll wait and Submit answers CodeOverloaded.
	// Default: 8 MiB.
	MaxPending int
	// SnapshotEvery is how many bytes of log a realm gathers before it takes a
	// snapshot by itself, so that opening it again need not replay the whole
	// log. Default: 64 MiB; negative: only Realm.Snapshot takes any.
	SnapshotEvery int64
	// TrimLog removes segments of the log that the newest two snapshots cover.
	// The default keeps the whole log: only with it can every draw be verified
	// from the first one on.
	TrimLog bool
	// Now is the wall clock that batches are stamped with; a clock that steps
	// back never makes a stamp decrease, and one beyond the year 4199 is taken to
	// stand still there. Default: time.Now.
	Now func() time.Time
}

// world is what an engine stands on.
type world struct {
	fs      vfs.FS
	steps   step.Runner                        // what goes on in the background; nil: goroutines
	log     func(dir string) (entryLog, error) // opens a realm's log
	entropy func(realm string, p []byte)       // for seeds and writer ids
}

// realWorld is the disk, goroutines and the entropy of the operating system, unless a test
// brings its own.
func realWorld(fs vfs.FS, steps step.Runner, o *Options) world {
	return world{
		fs: fs, steps: steps,
		log:     func(dir string) (entryLog, error) { return openWAL(fs, steps, dir, o) },
		entropy: func(_ string, p []byte) { step.Entropy(steps, p) },
	}
}

// checked returns o with defaults filled in, or what is wrong with it.
func (o Options) checked() (Options, error) {
	if o.Sync > SyncNone {
		return o, errf(CodeInvalid, "Sync", "unknown policy %d; SyncAlways, SyncInterval or SyncNone", o.Sync)
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
		o.Now = time.Now
	}
	return o, nil
}
