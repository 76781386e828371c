package wal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// TestDurableUpto: a log that was closed and then lost its end passes for sound, unless the opener
// knows how far it went. Then it is damage, and nothing is changed.
func TestDurableUpto(t *testing.T) {
	m := vfs.NewMem()
	_, next := small(t, m, true)
	files := segments(t, m)
	for lost := range len(files) + 1 {
		c := m.CrashClone(vfs.Crash{})
		for _, name := range files[len(files)-lost:] {
			if err := c.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.SyncDir(memDir); err != nil {
			t.Fatal(err)
		}
		for _, o := range []wal.Options{{}, {ReadOnly: true}} {
			o = on(c, o)
			o.DurableUpto = next
			l, err := wal.Open(memDir, o)
			damage, ok := errors.AsType[*wal.CorruptionError](err)
			switch {
			case lost == 0 && (err != nil || l.Next() != next):
				t.Errorf("nothing is lost: %v", err)
			case lost == len(files) && o.ReadOnly && !errors.Is(err, fs.ErrNotExist):
				t.Errorf("all is lost, read-only: %v", err)
			case lost > 0 && !(lost == len(files) && o.ReadOnly) && (!ok || damage.Offset >= next || damage.Want != next):
				t.Errorf("%d segments are lost: %v", lost, err)
			}
			if l != nil {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if got := len(segments(t, c)); got != len(files)-lost {
			t.Errorf("%d of %d segments are lost, and then there are %d", lost, len(files), got)
		}
		o := small4KOn(c)
		o.DurableUpto = next + 1
		if _, err := wal.Open(memDir, o); !errors.Is(err, wal.ErrCorrupt) {
			t.Errorf("%d segments are lost, and one record more: %v", lost, err)
		}
	}
}

// TestMustExist: no log is made where there is none, and a log that was only being made is none.
func TestMustExist(t *testing.T) {
	m := vfs.NewMem()
	o := small4KOn(m)
	o.MustExist = true
	if _, err := wal.Open(memDir, o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := m.Stat(memDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	if err := m.MkdirAll(memDir); err != nil {
		t.Fatal(err)
	}
	for _, unborn := range []bool{false, true} {
		if unborn {
			f, err := m.Create(fmt.Sprintf("%s/%020d.wal", memDir, 0))
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := wal.Open(memDir, o); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no log, unborn %v: %v", unborn, err)
		}
	}
	l, err := wal.Open(memDir, small4KOn(m))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = wal.Open(memDir, o); err != nil {
		t.Fatalf("an empty log: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
