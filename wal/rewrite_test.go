package wal_test

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// TestReopenAfterLostSync: an fsync fails, and the system keeps showing bytes
// that it will never write again. What the next Open finds, and says is
// durable, must survive a power cut all the same.
func TestReopenAfterLostSync(t *testing.T) {
	for failing := int64(1); failing <= 150; failing += 1 + failing/8 {
		m := vfs.NewMem()
		o := small4K
		o.FS = m
		l, err := wal.Open(memDir, o)
		if err != nil {
			t.Fatal(err)
		}
		var syncs atomic.Int64 // a segment that is full is fsynced in the background
		m.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind != vfs.OpSync || syncs.Add(1) != failing {
				return vfs.Fault{}
			}
			return vfs.Fault{Err: syscall.EIO, Drop: true}
		})
		for range 200 { // through more than one segment
			if _, err := l.AppendSync(t.Context(), record(l.Next())); err != nil {
				break
			}
		}
		if err := l.Close(); !errors.Is(err, wal.ErrFailed) {
			t.Fatalf("fsync %d did not fail: %v", failing, err)
		}
		m = m.KillClone() // the process is restarted, the machine is not
		o.FS = m
		if l, err = wal.Open(memDir, o); err != nil {
			t.Fatal(err)
		}
		durable := l.Durable()
		if err := survives(m.CrashClone(vfs.Crash{}), 0, durable); err != nil {
			t.Errorf("fsync %d was lost: of %d records that were durable after reopening: %v", failing, durable, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
