package vfs

import (
	"os"

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
