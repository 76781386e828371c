//go:build unix

package wal_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// mapFS is a file system that tells of mappings.
type mapFS struct {
	vfs.FS
	mapped func(name string)
}

type mapFile struct {
	vfs.File
	name string
	fs   *mapFS
}

func (m *mapFS) Open(name string) (vfs.File, error) {
	f, err := m.FS.Open(name)
	return &mapFile{f, name, m}, err
}

func (f *mapFile) Map(length int64) (vfs.Mapping, error) {
	m, err := f.File.Map(length)
	f.fs.mapped(f.name)
	return m, err
}

// TestCutToSizeMeanwhile: a writer finishes a segment, whose file was longer ahead of
// writing, just when others have mapped it. They find no damage, and are not ended by it.
func TestCutToSizeMeanwhile(t *testing.T) {
	for _, ahead := range []int64{4 << 10, 256 << 10} { // in the page of the last group, and far from it
		dir := t.TempDir()
		l := open(t, dir, wal.Options{SegmentSize: 64 << 10, LogID: 42})
		appendTo(t, l, 3000)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "00000000000000000000.wal")
		finished, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		groups := 0
		for g, err := range wal.Groups(dir, wal.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			if g.File == name {
				groups = int(g.Pos + g.Bytes)
			}
		}
		begin := func() {
			if err := os.WriteFile(name, append(finished[:groups:groups], make([]byte, ahead+int64(len(finished)-groups))...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		times := 0
		finish := func(mapped string) {
			if mapped != name {
				return
			}
			times++
			f, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(finished, 0); err != nil {
				t.Fatal(err)
			}
			if err := f.Truncate(int64(len(finished))); err != nil {
				t.Fatal(err)
			}
		}
		o := on(&mapFS{vfs.OS(), finish}, wal.Options{ReadOnly: true})
		begin()
		reader, err := wal.Open(dir, o)
		if err != nil {
			t.Fatalf("%d bytes ahead: %v", ahead, err)
		}
		if err := holds(reader, 3000); err != nil {
			t.Errorf("%d bytes ahead: %v", ahead, err)
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
		begin()
		report, err := wal.Verify(t.Context(), dir, o)
		if err != nil || len(report.Damage) > 0 || report.Next != 3000 {
			t.Errorf("%d bytes ahead: verified up to %d: %v, %v", ahead, report.Next, report.Damage, err)
		}
		begin()
		for _, err := range wal.Groups(dir, o) {
			if err != nil {
				t.Errorf("%d bytes ahead: groups: %v", ahead, err)
			}
		}
		if times < 3 {
			t.Errorf("the segment was mapped %d times", times)
		}
	}
}

// openFS is a file system that tells of openings before they are.
type openFS struct {
	vfs.FS
	opening func(name string)
}

func (o *openFS) Open(name string) (vfs.File, error) {
	o.opening(name)
	return o.FS.Open(name)
}

// TestReadWhileRemoved: a record is trimmed just when its segment is to be opened, and its
// file is gone already.
func TestReadWhileRemoved(t *testing.T) {
	m, l := openMem(t, small4K)
	appendTo(t, l, 300)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	first := segments(t, m)[0]
	trimmed := make(chan error, 1)
	var armed atomic.Bool
	files := &openFS{m, func(name string) {
		if name != first || !armed.CompareAndSwap(true, false) {
			return
		}
		go func() { trimmed <- l.TrimBefore(200) }()
		for {
			if _, err := m.Stat(first); errors.Is(err, fs.ErrNotExist) {
				return
			}
			runtime.Gosched()
		}
	}}
	l, err := wal.Open(memDir, on(files, small4K))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	armed.Store(true)
	if _, err := l.Read(0, nil); !errors.Is(err, wal.ErrTrimmed) {
		t.Errorf("a record whose segment is being removed: got %v, want ErrTrimmed", err)
	}
	if err := <-trimmed; err != nil {
		t.Error(err)
	}
}

// holeFS is a file system that has no room to show the pages of a file that nobody wrote, such as a
// full tmpfs: to touch them in a mapping is a fault. They can be read as zeros.
type holeFS struct {
	vfs.FS
	t       *testing.T
	touched atomic.Int64 // mappings with such pages
}

type holeFile struct {
	vfs.File
	fs *holeFS
}

func (h *holeFS) Open(name string) (vfs.File, error) {
	f, err := h.FS.Open(name)
	return &holeFile{f, h}, err
}

// Map maps a copy of the file that ends where its last zeros begin.
func (f *holeFile) Map(length int64) (vfs.Mapping, error) {
	b := make([]byte, length)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	name := filepath.Join(f.fs.t.TempDir(), "copy")
	if err := os.WriteFile(name, bytes.TrimRight(b[:n], "\x00"), 0o600); err != nil {
		return nil, err
	}
	copied, err := vfs.OS().Open(name)
	if err != nil {
		return nil, err
	}
	defer copied.Close()
	f.fs.touched.Add(1)
	return copied.Map(length)
}

// TestHoleWithoutPage: a page of a mapping that cannot be shown is no damage if the file can be
// read there.
func TestHoleWithoutPage(t *testing.T) {
	disk, l := openMem(t, wal.Options{LogID: 42})
	appendTo(t, l, 100)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	disk = disk.KillClone() // the file was longer ahead of writing
	h := &holeFS{FS: disk, t: t}
	for g, err := range wal.Groups(memDir, on(h, wal.Options{})) {
		if err != nil {
			t.Errorf("groups: %+v, %v", g, err)
		}
	}
	if _, err := wal.Verify(t.Context(), memDir, on(h, wal.Options{})); err != nil {
		t.Errorf("verify: %v", err)
	}
	l, err := wal.Open(memDir, on(h, wal.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	checkRange(t, l, 0, 100)
	if h.touched.Load() < 3 {
		t.Errorf("%d mappings, want one for each reader at least", h.touched.Load())
	}
}
