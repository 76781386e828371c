package kuji

import (
	"time"

	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
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
	// SyncOff has no log: nothing is written anywhere, requests are answered at
	// once, and what an engine held is gone when it is closed. For simulations,
	// tests and measuring. Nothing can be verified afterwards; time stamps may
	// be a millisecond old.
	SyncOff
)

// String returns "always", "interval", "none" or "off".
func (p SyncPolicy) String() string {
	switch p {
	case SyncAlways:
		return "always"
	case SyncInterval:
		return "interval"
	case SyncNone:
		return "none"
	case SyncOff:
		return "off"
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

	// FS is the file system; nil: the real one. For tests of this module.
	FS vfs.FS
	// Steps runs what otherwise goes on in the background; nil: goroutines,
	// and entropy of the operating system. For tests of this module.
	Steps step.Runner

	coarse bool // time stamps may be reused for a millisecond
}
