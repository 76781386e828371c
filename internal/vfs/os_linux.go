package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
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

// DropCache is posix_fadvise. Pages that are mapped, or not yet written, stay.
func (f *osFile) DropCache() error {
	err := f.control(func(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) })
	if err != nil {
		return &os.PathError{Op: "fadvise", Path: f.Name(), Err: err}
	}
	return nil
}

// StartWrite is sync_file_range without waiting. Waiting there would take an
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

const (
	// freeStep is how many bytes of a removed file are freed at a time: as much
	// as a disk is told to discard in less than a millisecond. Files are cut at
	// multiples of it, so that no large page of the cache is cut. The part cut
	// off a page reads as zeros, even for somebody who has it on its way to a
	// socket (sendfile) and has closed the file.
	freeStep = 2 << 20
	// freePause is the longest pause between two steps, however slow the disk is.
	freePause = 20 * time.Millisecond
	// freeRoom is how many times the size of a removed file must be available
	// on the disk. Otherwise its space is freed at once, because somebody may
	// be about to need it.
	freeRoom = 16
)

// Unlink holds the file open until its space is freed. After a crash nobody
// holds it, and the file system frees it.
func (osFS) Unlink(name string) (free func(stop func() bool), err error) {
	name = filepath.FromSlash(name)
	// Do not wait: neither for the holder of a lease on the file, nor for the
	// writer of a pipe.
	opened, err := os.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil { // such as one that is read-only
		return nil, os.Remove(name)
	}
	f := newOSFile(opened)
	if size, ok := f.cuttable(); !ok || size <= freeStep {
		_ = f.Close() // nothing was written
		return nil, os.Remove(name)
	}
	if err := os.Remove(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.freeInSteps, nil
}

// freeInSteps shortens a file without a name step by step, and closes it. If
// anything goes wrong here, closing the file makes it good.
func (f *osFile) freeInSteps(stop func() bool) {
	defer func() {
		runtime.Gosched()
		_ = f.Close() // which frees the rest, whatever it says
	}()
	if f.lease() != nil {
		return
	}
	for f.leased() {
		size, ok := f.cuttable()
		if !ok || size <= freeStep || stop() {
			return
		}
		runtime.Gosched()
		start := time.Now()
		if f.Truncate((size-1)/freeStep*freeStep) != nil {
			return
		}
		time.Sleep(min(2*time.Since(start), freePause))
	}
}

// cuttable returns the size of a file, and reports whether a leased file may be
// shortened. It must be on a file system whose leases see everybody who has it
// open or mapped, and there must be room on the disk. Leases do not see a
// mapping through a stack of file systems (overlayfs), nor an opener on another
// machine or on the host (FUSE, virtiofs).
func (f *osFile) cuttable() (size int64, ok bool) {
	err := f.control(func(fd int) error {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			return err
		}
		var on unix.Statfs_t
		if err := unix.Fstatfs(fd, &on); err != nil {
			return err
		}
		size = stat.Size
		switch uint32(on.Type) {
		case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
			ok = stat.Mode&unix.S_IFMT == unix.S_IFREG && uint64(on.Bavail) >= freeRoom*uint64(size)/uint64(on.Bsize)
		}
		return nil
	})
	return size, ok && err == nil
}

// lease takes a write lease, which the system grants if nobody else has the
// file open or mapped. No other name may lead to it either. Somebody who opens
// it later, through /proc, waits until it is closed.
func (f *osFile) lease() error {
	return f.control(func(fd int) error {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			return err
		}
		if stat.Nlink != 0 {
			return unix.EMLINK
		}
		// The system sends SIGIO when somebody waits, unless another signal is
		// chosen. SIGIO ends a program whose signals are not handled by Go, or
		// one that takes it for a request to end. SIGURG is ignored.
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGURG)); err != nil {
			return err
		}
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
		return err
	})
}

// leased reports whether the file is still leased and nobody waits for it.
func (f *osFile) leased() bool {
	return nil == f.control(func(fd int) error {
		lease, err := unix.FcntlInt(uintptr(fd), unix.F_GETLEASE, 0)
		if err == nil && lease != unix.F_WRLCK {
			return unix.EAGAIN
		}
		return err
	})
}
