package enginetest

import (
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
	"github.com/kuji-dev/kuji/wal"
)

// on puts a log on a file system.
func on(fs vfs.FS, o wal.Options) wal.Options {
	hook.WAL(&o, fs, nil)
	return o
}

// worldOptions is kuji.Options with a world that a test controls.
type worldOptions struct {
	FS    vfs.FS
	Steps step.Runner

	Sync          kuji.SyncPolicy
	SyncEvery     time.Duration
	SegmentSize   int64
	MaxPending    int
	SnapshotEvery int64
	TrimLog       bool
	MustExist     bool
	Now           func() time.Time
	Confirmed     time.Time // ClockConfirmed
}

// openWorld opens an engine in a world, by default the real one.
func openWorld(dir string, o worldOptions) (*kuji.Engine, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	e, err := hook.Open(o.FS, o.Steps, dir, kuji.Options{
		Sync: o.Sync, SyncEvery: o.SyncEvery, SegmentSize: o.SegmentSize, MaxPending: o.MaxPending,
		SnapshotEvery: o.SnapshotEvery, TrimLog: o.TrimLog, MustExist: o.MustExist, Now: o.Now, ClockConfirmed: o.Confirmed,
	})
	if err != nil {
		return nil, err
	}
	return e.(*kuji.Engine), nil
}

// verifyIn is verify.Dir on a file system.
func verifyIn(fs vfs.FS, dir, realm string, seen func(kuji.Record)) (verify.Report, error) {
	rep, err := hook.Verify(fs, dir, realm, seen)
	return rep.(verify.Report), err
}
