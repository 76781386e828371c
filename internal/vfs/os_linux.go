package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Sync is fdatasync: the bytes, and the size if it grew, but not the times.
func (f *osFile) Sync() error {
	err := f.control(func(fd int) error {
		for {
			if err := unix.Fdatasync(fd); err != unix.EINTR {
				return err
			}
		}
	})
	if err != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

// Allocate reserves blocks and leaves the size alone.
func (f *osFile) Allocate(size int64) error {
	err := f.control(func(fd int) error {
		for {
			if err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, size); err != unix.EINTR {
				return err
			}
		}
	})
	if err != nil {
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
	return nil
}

// StartWrite is sync_file_range without waiting: waiting there would take an
// error of the disk away from the next Sync.
func (f *osFile) StartWrite(pos, length int64) error {
	err := f.control(func(fd int) error {
		for {
			if err := unix.SyncFileRange(fd, pos, length, unix.SYNC_FILE_RANGE_WRITE); err != unix.EINTR {
				return err
			}
		}
	})
	if err != nil {
		return &os.PathError{Op: "sync_file_range", Path: f.Name(), Err: err}
	}
	return nil
}

// freeStep is how many bytes of a removed file are freed at a time: what a disk is told
// to discard in about a third of a millisecond.
const freeStep = 1 << 20

// Unlink holds the file until its space is freed. After a crash the file system
// finds that nobody does, and frees it.
func (osFS) Unlink(name string) (free func(stop func() bool), err error) {
	name = filepath.FromSlash(name)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil { // such as one that is read-only
		return nil, os.Remove(name)
	}
	if err := os.Remove(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func(stop func() bool) { freeInSteps(f, stop) }, nil
}

// freeInSteps shortens a file that has no name any more step by step, and closes it.
// Nothing here can go wrong that closing it would not make good.
func freeInSteps(f *os.File, stop func() bool) {
	defer f.Close()
	size, ok := alone(f)
	if !ok {
		return
	}
	for size -= freeStep; size > 0 && !stop(); size -= freeStep {
		start := time.Now()
		if f.Truncate(size) != nil {
			return
		}
		time.Sleep(2 * time.Since(start))
	}
}

// alone returns a file's size and reports whether nobody can see its bytes but through
// f: no other name leads to it, and nobody else has it open or mapped. For then, and
// only then, the system grants a write lease; and who comes to open it later, by way of
// /proc, waits for its end.
func alone(f *os.File) (size int64, ok bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = conn.Control(func(fd uintptr) {
		var stat unix.Stat_t
		if unix.Fstat(int(fd), &stat) != nil || stat.Nlink != 0 {
			return
		}
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK)
		size, ok = stat.Size, err == nil
	})
	return size, ok && err == nil
}
