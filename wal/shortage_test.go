package wal_test

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// short makes every operation that needs a descriptor fail, and tells of each new segment that
// cannot be made or mapped.
func short(m *vfs.Mem, err error, segment func()) {
	m.SetHook(func(op vfs.Op) vfs.Fault {
		if !op.Opens() {
			return vfs.Fault{}
		}
		if strings.HasSuffix(op.Path, ".wal") || op.Kind == vfs.OpMap { // a spare that became one is mapped by its old name
			segment()
		}
		return vfs.Fault{Err: err}
	})
}

// TestShortage: while the process has no descriptor or no memory left, the log waits, and then goes
// on as if nothing had been.
func TestShortage(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		t.Run(err.Error(), func(t *testing.T) {
			m, l := openMem(t, small4K)
			appendTo(t, l, 10)
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
			var n atomic.Int64
			short(m, err, func() {
				if n.Add(1) == 3 {
					m.SetHook(nil) // from the next operation on
				}
			})
			appendTo(t, l, 500)
			if err := l.Sync(); err != nil {
				t.Fatalf("after a shortage: %v", err)
			}
			if n.Load() < 3 {
				t.Errorf("%d segments could not be made at first, want 3", n.Load())
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if l, err = wal.Open(memDir, small4KOn(m)); err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			checkRange(t, l, 0, 500)
		})
	}
}

// TestShortageNeedsNothing: in one segment, a log that is open needs no further descriptor.
func TestShortageNeedsNothing(t *testing.T) {
	m, l := openMem(t, wal.Options{LogID: 42})
	appendTo(t, l, 1)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	short(m, syscall.EMFILE, func() { t.Error("a segment was opened") })
	for next := uint64(2); next < 100; next++ {
		appendTo(t, l, next)
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestShortageEndsWithClose: a log that waits can be closed. What it could not write is lost, and
// it says so.
func TestShortageEndsWithClose(t *testing.T) {
	m, l := openMem(t, small4K)
	appendTo(t, l, 10)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{}, 1000)
	short(m, syscall.EMFILE, func() {
		select {
		case waits <- struct{}{}:
		default:
		}
	})
	failed := make(chan error)
	go func() {
		for {
			if _, err := l.AppendSync(context.Background(), record(l.Next())); err != nil {
				failed <- err
				return
			}
		}
	}()
	<-waits
	wantIs(t, "Close", l.Close(), wal.ErrFailed)
	wantIs(t, "AppendSync", <-failed, wal.ErrFailed)
	m.SetHook(nil)
	l, err := wal.Open(memDir, small4KOn(m))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Next() < 10 {
		t.Errorf("the log ends at %d, 10 were durable", l.Next())
	}
	checkRange(t, l, 0, l.Next())
}
