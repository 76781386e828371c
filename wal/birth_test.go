package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// TestGroupsFillBlocks appends short records without a pause: all groups but
// the first begin with a block of the file. Long ones are not padded. Nothing of
// that can be seen by reading, and damage of the zeros between is noticed.
func TestGroupsFillBlocks(t *testing.T) {
	m := vfs.NewMem()
	o := on(m, wal.Options{LogID: 42})
	l, err := wal.Open(memDir, o)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, l, 3000)
	padded := l.Next()
	for range 30 {
		if _, err := l.Append(bytes.Repeat([]byte{1}, 50_000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	end := int64(64)
	gap, unaligned := int64(0), 0
	for g, err := range wal.Groups(memDir, o) {
		if err != nil {
			t.Fatal(err)
		}
		if g.First < padded && g.Pos%(64<<10) != 0 && g.Pos != 64 {
			t.Errorf("group of records %d to %d begins at %d", g.First, g.First+uint64(g.Count), g.Pos)
		}
		if g.Pos%(64<<10) != 0 {
			unaligned++
		}
		if g.Pos-end > 8<<10 {
			t.Errorf("%d bytes of zeros before the group at %d", g.Pos-end, g.Pos)
		}
		if g.Pos > end {
			gap = end
		}
		end = g.Pos + g.Bytes
	}
	if gap == 0 || unaligned < 3 {
		t.Errorf("a gap at %d, %d groups that begin within a block: want some", gap, unaligned)
	}
	if _, err := l.AppendSync(context.Background(), nil); err != nil { // says that the rest was durable
		t.Fatal(err)
	}
	next := l.Next()
	file := segments(t, m)[0]
	m = m.CrashClone(vfs.Crash{})
	o = on(m, o)
	flip(t, m, file, gap+8, 1)
	if _, err := wal.Open(memDir, o); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("open with a byte that is not zero between groups: %v", err)
	}
	flip(t, m, file, gap+8, 1)
	again, err := wal.Open(memDir, o)
	if err != nil || again.Next() != next {
		t.Fatalf("recovered %d records of %d, %v", again.Next(), next, err)
	}
	for i := range padded {
		if got, err := again.Read(i, nil); err != nil || !bytes.Equal(got, record(i)) {
			t.Fatalf("record %d: %d bytes, %v", i, len(got), err)
		}
	}
	if err := errors.Join(again.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestSpare: the file that is made ahead is used, is gone after Close, is
// removed when a crash left it, and is not missed when it cannot be made.
func TestSpare(t *testing.T) {
	m, l := openMem(t, small4K)
	spare := path.Join(memDir, "spare")
	for m.Count(vfs.OpRename) == 0 && l.Next() < 100_000 { // spares come when they come
		appendTo(t, l, l.Next()+300)
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if m.Count(vfs.OpRename) == 0 {
		t.Error("no segment was made from a spare file")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Stat(spare); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close the spare file is there: %v", err)
	}
	f, err := m.Create(spare)
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	m.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpCreate && path.Base(op.Path) == "spare" || op.Kind == vfs.OpAllocate {
			return vfs.Fault{Err: syscall.ENOSPC}
		}
		return vfs.Fault{}
	})
	if l, err = wal.Open(memDir, small4KOn(m)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Stat(spare); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Open the spare file of a crash is there: %v", err)
	}
	appendTo(t, l, l.Next()+300)
	if err := l.Close(); err != nil {
		t.Errorf("without spare files: %v", err)
	}
}

// writes notes what is written to the segments of a log.
type writes struct {
	mu      sync.Mutex
	written map[string]int64 // where the highest write to a file ends
	bytes   int64            // of all writes
	fresh   int              // writes that begin or end where nothing was written before
	all     int
	full    bool // a write that ends above the limit has no room
	limit   int64
}

func (w *writes) hook(op vfs.Op) vfs.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if op.Kind != vfs.OpWrite {
		return vfs.Fault{}
	}
	end := op.Offset + op.Length
	if w.full && end > w.limit {
		return vfs.Fault{Err: syscall.ENOSPC, Short: op.Length / 2}
	}
	w.all++
	w.bytes += op.Length
	if end > w.written[op.Path] {
		w.fresh++
		w.written[op.Path] = end
	}
	return vfs.Fault{}
}

// TestZerosAhead: where little is written between fsyncs, they go to blocks that
// zeros were written to, not many bytes ahead. Where much is, or nobody fsyncs,
// next to nothing is written twice.
func TestZerosAhead(t *testing.T) {
	const records = 2000
	data := bytes.Repeat([]byte{1}, 256)
	for _, c := range []struct {
		every          int // records between fsyncs; 0: none
		fresh          int // share of writes that may meet new blocks, in percent
		amplify, ahead float64
	}{
		{every: 1, fresh: 2, amplify: 2.5, ahead: 64 << 10},
		{every: 10, fresh: 10, amplify: 2.5, ahead: 128 << 10},
		{every: 100, fresh: 30, amplify: 2.5, ahead: 256 << 10},
		{every: 1000, fresh: 100, amplify: 1.05, ahead: 1 << 20},
		{every: 0, fresh: 100, amplify: 1.05, ahead: 1 << 20},
	} {
		t.Run(fmt.Sprintf("every=%d", c.every), func(t *testing.T) {
			m := vfs.NewMem()
			w := writes{written: make(map[string]int64)}
			m.SetHook(w.hook)
			l, err := wal.Open(memDir, on(m, wal.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			for i := range records {
				if _, err := l.Append(data); err != nil {
					t.Fatal(err)
				}
				if c.every > 0 && (i+1)%c.every == 0 {
					if err := l.Sync(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
			if w.fresh*100 > w.all*c.fresh {
				t.Errorf("%d of %d writes met new blocks, want at most %d %%", w.fresh, w.all, c.fresh)
			}
			size := l.Stat().Bytes
			if got := float64(w.bytes) / float64(size); got > c.amplify {
				t.Errorf("%d bytes were written for %d: %.2f times as many, want at most %.2f", w.bytes, size, got, c.amplify)
			}
			for name, end := range w.written {
				if info, err := m.Stat(name); err != nil || float64(info.Size()-size) > c.ahead || info.Size() < end {
					t.Errorf("a file of %d bytes, %d used: want at most %v more, %v", info.Size(), size, c.ahead, err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestNoRoomForZeros: a disk that has no room for zeros ahead still takes
// records.
func TestNoRoomForZeros(t *testing.T) {
	m, l := openMem(t, wal.Options{LogID: 42})
	for l.Next() < 100 {
		if _, err := l.AppendSync(t.Context(), record(l.Next())); err != nil {
			t.Fatal(err)
		}
	}
	w := writes{written: make(map[string]int64), full: true, limit: l.Stat().Bytes + 100<<10}
	m.SetHook(w.hook)
	for l.Stat().Bytes < w.limit-1000 {
		if _, err := l.AppendSync(t.Context(), record(l.Next())); err != nil {
			t.Fatalf("record %d, %d bytes before the disk is full: %v", l.Next(), w.limit-l.Stat().Bytes, err)
		}
	}
	next := l.Next()
	m.SetHook(nil)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := wal.Open(memDir, on(m, wal.Options{}))
	if err != nil || l.Next() != next {
		t.Fatalf("%d records of %d, %v", l.Next(), next, err)
	}
	if err := errors.Join(holds(l, next), l.Close()); err != nil {
		t.Fatal(err)
	}
}
