package kuji

import (
	"cmp"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/logged"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/wal"
)

// SyncPolicy says when a request is acknowledged.
type SyncPolicy uint8

const (
	// SyncAlways: when its batch is fsynced. A crash, of the power too, loses nothing acknowledged.
	SyncAlways SyncPolicy = iota
	// SyncInterval: when its batch is handed to the operating system. Options.SyncEvery says when fsyncs
	// follow. A crash of the process loses nothing, one of the machine at most SyncEvery, or an fsync
	// if that takes longer, and one more fsync.
	SyncInterval
	// SyncNone is SyncInterval with fsyncs only at Close: a crash of the machine may lose all since then.
	SyncNone
)

// String returns "always", "interval" or "none".
func (p SyncPolicy) String() string {
	if p > SyncNone {
		return "invalid"
	}
	return [...]string{"always", "interval", "none"}[p]
}

// Options configures an [Engine]. The zero value is a durable, embedded engine.
type Options struct {
	// Sync is the durability policy of every realm. Default: SyncAlways.
	Sync SyncPolicy
	// SyncEvery is the time between fsyncs under SyncInterval, from 1 ms to 1 h. Default: 100 ms.
	SyncEvery time.Duration
	// SegmentSize limits a log segment, in bytes: wal.MinSegmentSize to MaxSegmentSize. Default: 64 MiB.
	SegmentSize int64
	// MaxPending limits the bytes of a realm's events that wait for the log, from 1 to 16 MiB; as many may
	// be in the batch being written. Beyond, Do and DoAll wait, Submit gets CodeOverloaded. Default: 8 MiB.
	MaxPending int
	// SnapshotEvery is how many bytes of log a realm writes between snapshots, which make opening fast.
	// Default: 64 MiB. Negative: only Realm.Snapshot takes snapshots.
	SnapshotEvery int64
	// TrimLog removes log segments that two independent series of snapshots cover, read back from the
	// disk. Default: the whole log is kept. Only then can every draw be verified.
	TrimLog bool
	// MustExist makes Open and Engine.Realm fail with CodeNotFound, not create: a disk may not be mounted.
	MustExist bool
	// Now is the wall clock for batches' stamps, up to the year 2527. A jump by more than MaxLeap, measured
	// by the monotonic readings if it has any, is not followed: see ClockView. It is called from several
	// goroutines at once. Default: time.Now.
	Now func() time.Time
	// ClockConfirmed is a time that somebody compared with the machine's clock. A realm whose log ends
	// more than MaxDowntime before Now opens only if Now is at most MaxLeap past it. Default: none.
	ClockConfirmed time.Time
	// Driver keeps the realms, not a data directory. Sync, SyncEvery and SegmentSize are then up to it.
	Driver driver.Driver
	// Follow makes realms carry out what others append to a shared Driver, until Replica.Lead.
	Follow bool
	// FormatLevel returns the highest format level that all builds know which may read the realms: new ones
	// begin with it. Default: that of this build.
	FormatLevel func() uint8
	// Key seals the seeds of epochs until they are revealed. All nodes that share a Driver need the same
	// one. It is secret: with it and the log, draws can be predicted. Default: the data directory's own.
	Key [32]byte
	// OldKeys open seeds that they sealed, and seal none: for a change of the Key.
	OldKeys [][32]byte
}

// world is everything outside the engine that it depends on.
type world struct {
	driver  driver.Driver
	key     [32]byte                     // seals seeds
	oldKeys [][32]byte                   // opens those that were sealed before
	keyErr  error                        // what was wrong with it
	steps   step.Runner                  // runs background work; nil: goroutines
	entropy func(realm string, p []byte) // for seeds and writer ids
	levels  *levels
}

// checked returns o with defaults filled in, or an error for the first bad field.
func (o Options) checked() (Options, error) {
	o.SyncEvery = cmp.Or(o.SyncEvery, 100*time.Millisecond)
	o.MaxPending = cmp.Or(o.MaxPending, 8<<20)
	o.SnapshotEvery = cmp.Or(o.SnapshotEvery, 64<<20)
	if o.Now == nil {
		o.Now = time.Now
	}
	switch size := o.SegmentSize; {
	case o.Sync > SyncNone:
		return o, errf(CodeInvalid, "Sync", "unknown policy %d; want SyncAlways, SyncInterval or SyncNone", o.Sync)
	case o.SyncEvery < time.Millisecond || o.SyncEvery > time.Hour:
		return o, errf(CodeInvalid, "SyncEvery", "%v; 1ms to 1h are allowed", o.SyncEvery)
	case size != 0 && (size < wal.MinSegmentSize || size > wal.MaxSegmentSize):
		return o, errf(CodeInvalid, "SegmentSize", "%d bytes; %d to %d are allowed", size, wal.MinSegmentSize, int64(wal.MaxSegmentSize))
	case o.MaxPending < 1<<20 || o.MaxPending > logged.MaxPending:
		return o, errf(CodeInvalid, "MaxPending", "%d bytes; %d to %d are allowed", o.MaxPending, 1<<20, logged.MaxPending)
	case o.TrimLog && o.SnapshotEvery < 0:
		return o, errf(CodeInvalid, "TrimLog", "set while snapshots are off; only log that a snapshot covers can be trimmed")
	}
	return o, nil
}
