package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// TestFooterHoldsNothingUp: records of the next segment become durable while the
// footer of a full one is being written.
func TestFooterHoldsNothingUp(t *testing.T) {
	synctest.Test(t, footerHoldsNothingUp)
}

func footerHoldsNothingUp(t *testing.T) {
	m, l := openMem(t, small4K)
	ctx := context.Background()
	if _, err := l.AppendSync(ctx, record(0)); err != nil {
		t.Fatal(err)
	}
	full := segments(t, m)[0]
	release := make(chan struct{})
	m.SetHook(func(op vfs.Op) vfs.Fault {
		// What is written to the first segment once there is another is its footer.
		if op.Kind == vfs.OpWrite && op.Path == full && len(segments(t, m)) > 1 {
			select {
			case <-release:
			case <-time.After(10 * time.Second): // the bubble's clock: all is at a stand
				t.Error("no append has become durable while the footer was written")
			}
		}
		return vfs.Fault{}
	})
	for l.Stat().Segments < 2 {
		if _, err := l.AppendSync(ctx, record(l.Next())); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		if offset, err := l.AppendSync(ctx, record(l.Next())); err != nil || l.Durable() <= offset {
			t.Fatalf("record %d: %v, durable up to %d", offset, err, l.Durable())
		}
	}
	// A crash meanwhile loses none of it.
	next := l.Next()
	if err := checkRecovered(m.CrashClone(vfs.Crash{}), promise{durable: next, next: next}); err != nil {
		t.Error(err)
	}
	close(release)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	m.SetHook(nil)
	if r, err := wal.Verify(ctx, memDir, small4KOn(m)); err != nil || len(r.Damage) > 0 || r.Next != next || r.Segments[0].Sealed.IsZero() {
		t.Errorf("after Close: %+v, %v", r, err)
	}
}

// tiny returns the record at an offset of logs whose indexes take several
// sectors.
func tiny(offset uint64) []byte { return []byte{byte(offset), byte(offset >> 8)} }

// growTiny appends tiny records until there are so many, and fsyncs some.
func growTiny(l *wal.Log, until uint64) error {
	for l.Next() < until {
		if _, err := l.Append(tiny(l.Next())); err != nil {
			return err
		}
		if l.Next()%16 == 0 {
			if err := l.Sync(); err != nil {
				return err
			}
		}
	}
	return l.Sync()
}

// holdsTiny checks that a directory has a log with all records up to an offset.
func holdsTiny(m *vfs.Mem, durable uint64) error {
	l, err := wal.Open(memDir, small4KOn(m))
	if err != nil {
		return err
	}
	want := uint64(0)
	for r, err := range l.Records(0) {
		if err != nil {
			return errors.Join(fmt.Errorf("record %d: %w", want, err), l.Close())
		}
		if r.Offset != want || !bytes.Equal(r.Data, tiny(want)) {
			return errors.Join(fmt.Errorf("record %d: got %d, %x", want, r.Offset, r.Data), l.Close())
		}
		want++
	}
	if want < durable {
		err = fmt.Errorf("%d records, %d were durable", want, durable)
	}
	return errors.Join(err, l.Close())
}

// TestFooterOfAKilledProcess kills the process before every operation, among them
// those between the writing of a footer and its fsync, goes on with the log, and
// cuts the power: the footer that was only in the page cache counts for nothing.
func TestFooterOfAKilledProcess(t *testing.T) {
	const before, after = 500, 1100 // records: two segments and more, four and more
	for cut := int64(0); ; cut++ {
		m := vfs.NewMem()
		m.CutPowerAfter(cut)
		if l, err := wal.Open(memDir, small4KOn(m)); err == nil {
			_ = growTiny(l, before) // as far as it gets
			_ = l.Close()
		}
		_, changes := m.Ops()
		killed := m.KillClone()
		l, err := wal.Open(memDir, small4KOn(killed))
		if err != nil {
			t.Fatalf("killed after %d changes: %v", cut, err)
		}
		if err := growTiny(l, after); err != nil {
			t.Fatal(err)
		}
		for disk := range killed.CrashStates(12, uint64(cut), true) {
			if err := holdsTiny(disk, after); err != nil {
				t.Fatalf("killed after %d changes, then a power cut: %v", cut, err)
			}
		}
		if err := l.Close(); err != nil { // footers that were late are on disk now
			t.Fatal(err)
		}
		if err := holdsTiny(killed.CrashClone(vfs.Crash{}), after); err != nil {
			t.Fatalf("killed after %d changes, closed, then a power cut: %v", cut, err)
		}
		if changes <= cut {
			return
		}
	}
}

// TestFooterThatWasNotFsynced: the fsync of a footer fails in Close, and the log is
// opened again by a process that sees the footer in the page cache, and whose first
// record does not fit into the segment. The footer must not be taken for one that
// is on disk.
func TestFooterThatWasNotFsynced(t *testing.T) {
	const few = 200 // tiny records, then large ones
	data := func(offset uint64) []byte {
		if offset < few {
			return tiny(offset)
		}
		return bytes.Repeat(tiny(offset), 1500)
	}
	m, l := openMem(t, small4K)
	if err := growTiny(l, few); err != nil {
		t.Fatal(err)
	}
	synced := m.Count(vfs.OpSync)
	m.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind != vfs.OpSync {
			return vfs.Fault{}
		}
		size, err := m.Stat(op.Path)
		if err != nil {
			t.Error(err)
		}
		last := (size.Size() - 1) / 512 // the trailer's sector is all that gets to the disk
		return vfs.Fault{Err: syscall.EIO, Drop: true, Reached: func(sector int64) bool { return sector == last }}
	})
	if err := l.Close(); !errors.Is(err, syscall.EIO) || m.Count(vfs.OpSync) != synced+1 {
		t.Fatalf("Close: %v, after %d fsyncs", err, m.Count(vfs.OpSync)-synced)
	}
	m.SetHook(nil)
	l, err := wal.Open(memDir, small4KOn(m))
	if err != nil {
		t.Fatal(err)
	}
	const all = few + 5
	for l.Next() < all {
		if _, err := l.AppendSync(context.Background(), data(l.Next())); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.Stat().Segments; n != 6 {
		t.Fatalf("%d segments, want one for each large record", n)
	}
	if err := l.Close(); err != nil { // all footers are on disk, so each but the last is proven
		t.Fatal(err)
	}
	for disk := range m.CrashStates(40, 1, true) {
		again, err := wal.Open(memDir, small4KOn(disk))
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(all) {
			if got, err := again.Read(i, nil); err != nil || !bytes.Equal(got, data(i)) {
				t.Fatalf("record %d: %d bytes, %v", i, len(got), err)
			}
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTrimOfAFreshSegment trims a segment whose footer is still being written: it
// waits for that, so that a file that could not be removed has one.
func TestTrimOfAFreshSegment(t *testing.T) {
	m, l := openMem(t, small4K)
	full := path.Join(memDir, fmt.Sprintf("%020d.wal", 0))
	reached, release := make(chan struct{}), make(chan struct{})
	m.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Path == full && op.Kind == vfs.OpWrite && len(segments(t, m)) > 1 {
			select {
			case <-reached:
			default:
				close(reached)
			}
			<-release
		}
		if op.Path == full && op.Kind == vfs.OpRemove {
			select {
			case <-release:
			default:
				t.Error("removed before its footer was written")
			}
		}
		return vfs.Fault{}
	})
	for l.Stat().Segments < 2 {
		if _, err := l.AppendSync(context.Background(), record(l.Next())); err != nil {
			t.Fatal(err)
		}
	}
	<-reached
	trimmed := make(chan error, 1)
	go func() { trimmed <- l.TrimBefore(l.Next()) }()
	for range 1000 { // the trim has every chance to go on too early
		runtime.Gosched()
		if _, err := l.AppendSync(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		if l.Stat().Segments > 2 {
			break
		}
	}
	close(release)
	if err := errors.Join(<-trimmed, l.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Stat(full); err == nil {
		t.Error("the segment is still there")
	}
}
