package wal_test

import (
	"errors"
	"fmt"
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
	for failing := int64(1); failing <= 150; failing++ {
		m, l := openMem(t, small4K)
		var syncs atomic.Int64 // a segment that is full is fsynced in the background
		m.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind != vfs.OpSync || syncs.Add(1) != failing {
				return vfs.Fault{}
			}
			return vfs.Fault{Err: syscall.EIO, Drop: true, Reached: some(failing)}
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
		l, err := wal.Open(memDir, small4KOn(m))
		if err != nil {
			t.Fatal(err)
		}
		durable := l.Durable()
		if err := survives(m.CrashClone(vfs.Crash{}), 0, durable); err != nil {
			t.Errorf("fsync %d was lost: of %d records that were durable after reopening: %v", failing, durable, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		// A footer may have been what was lost, of a segment with others behind it.
		for disk := range m.CrashSamples(3, uint64(failing), true) {
			if err := checkRecovered(disk, promise{durable: durable, next: durable}); err != nil {
				t.Errorf("fsync %d was lost, and the power after the log was reopened and closed: %v", failing, err)
			}
		}
	}
}

// startFS is a file system whose files can start a write.
type startFS struct {
	vfs.FS
	fail    error
	started int64 // bytes, from the start of the one file
}

type startFile struct {
	vfs.File
	fs      *startFS
	written int64
}

func (s *startFS) OpenWrite(name string) (vfs.File, error) {
	f, err := s.FS.OpenWrite(name)
	return &startFile{File: f, fs: s}, err
}

func (f *startFile) WriteAt(p []byte, pos int64) (int, error) {
	n, err := f.File.WriteAt(p, pos)
	if pos == f.written {
		f.written += int64(n)
	}
	return n, err
}

func (f *startFile) StartWrite(pos, length int64) error {
	if f.fs.fail != nil {
		return f.fs.fail
	}
	if pos != f.fs.started || pos+length > f.written {
		return fmt.Errorf("started to write %d bytes at byte %d, of %d that are written and %d that are started", length, pos, f.written, f.fs.started)
	}
	f.fs.started = pos + length
	return nil
}

// TestRewriteStarts: while recovery writes a long log once more, the disk is at
// work. An error of it counts; that it cannot be asked does not.
func TestRewriteStarts(t *testing.T) {
	const size = 20 << 20
	m, l := openMem(t, wal.Options{})
	data := make([]byte, 1<<20)
	for range size / len(data) {
		if _, err := l.Append(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	killed := m.KillClone()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fail, want error
	}{
		{nil, nil},
		{syscall.EIO, syscall.EIO},
		{syscall.ENOSYS, nil},
		{syscall.EPERM, nil},
	} {
		s := &startFS{FS: killed.KillClone(), fail: c.fail}
		l, err := wal.Open(memDir, on(s, wal.Options{}))
		if !errors.Is(err, c.want) || err == nil && c.want != nil {
			t.Errorf("starting to write fails with %v: got %v, want %v", c.fail, err, c.want)
		}
		if err != nil {
			continue
		}
		if l.Durable() != size/uint64(len(data)) {
			t.Errorf("starting to write fails with %v: %d records are durable, want %d", c.fail, l.Durable(), size/len(data))
		}
		if c.fail == nil && s.started < size/2 {
			t.Errorf("%d bytes of %d were started", s.started, size)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
