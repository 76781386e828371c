package wal_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
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
	o := wal.Options{FS: m, LogID: 42}
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
	o.FS = m
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
	m := vfs.NewMem()
	o := small4K
	o.FS = m
	spare := path.Join(memDir, "spare")
	l, err := wal.Open(memDir, o)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // spares come when they come, but in the end there are some
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
	if l, err = wal.Open(memDir, o); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Stat(spare); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Open the spare file of a crash is there: %v", err)
	}
	appendTo(t, l, 1200)
	if err := l.Close(); err != nil {
		t.Errorf("without spare files: %v", err)
	}
}
