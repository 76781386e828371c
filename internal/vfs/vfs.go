// Package vfs is the file-system seam of Kuji: everything that writes goes
// through an [FS], so that tests can put a file system under it that loses
// unsynced bytes, tears writes and fails on demand.
//
// The room holds the interface, the real implementation ([OS]) and the
// in-memory one that can crash ([Mem]). It knows nothing of logs, records or
// rewards, and imports nothing else of the project.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// ErrLocked is returned by [FS.Lock] when another process, or another opener
// in this process, holds the lock.
var ErrLocked = errors.New("vfs: already locked")

// Short reports whether an operation failed because the process or the system
// has no descriptors left, or no memory for another one. An operation that
// opens something has then done nothing, and it can be tried again.
func Short(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// Full reports whether an operation failed because there is no room on the
// disk, or no more of it for this user.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// FS is the set of file-system operations that durable code needs, with the
// durability of each stated. Names are slash-separated paths.
//
// Errors match the sentinels of io/fs and syscall with errors.Is:
// fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, syscall.ENOSPC, syscall.EIO.
type FS interface {
	// Create creates a new file for reading and writing and fails with
	// fs.ErrExist when name exists. The directory entry is durable only
	// after SyncDir of the parent.
	Create(name string) (File, error)
	// Open opens an existing file for reading only.
	Open(name string) (File, error)
	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)
	// Remove removes a file or an empty directory; durable after SyncDir.
	Remove(name string) error
	// Rename replaces newname by oldname atomically; durable after SyncDir
	// of the parent (of both parents when they differ).
	Rename(oldname, newname string) error
	// MkdirAll creates a directory with its parents and makes the entries
	// that it created durable.
	MkdirAll(dir string) error
	// List returns the names (not paths) in dir, sorted.
	List(dir string) ([]string, error)
	// Stat describes a file.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the creates, removes and renames in dir durable.
	SyncDir(dir string) error
	// Lock opens a directory, which must exist, and takes an exclusive advisory
	// lock on it. It returns ErrLocked at once when the lock is taken. The lock
	// is on the directory itself: there is no file that somebody could remove,
	// and so let a second holder in. Closing the result, or the end of the
	// process, releases it.
	Lock(dir string) (Dir, error)
}

// Dir is a directory that is held open and locked.
type Dir interface {
	// Sync is SyncDir of the directory. It opens nothing, so a process that has
	// run out of descriptors can still do it.
	Sync() error
	io.Closer
}

// File is an open file. Reads and writes at offsets may run concurrently.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Sync makes all bytes written so far, and the size needed to read them
	// back, durable (fdatasync). After an error nothing may be assumed about
	// the bytes written since the last successful Sync; never retry it.
	Sync() error
	// Truncate sets the size; bytes added read as zero.
	Truncate(size int64) error
	// Size returns the current size in bytes.
	Size() (int64, error)
	// Map maps bytes [0, length) for reading. Length may exceed the current
	// size; touching bytes beyond the size faults (SIGBUS on a real file).
	// Bytes written later through WriteAt are visible in the mapping.
	Map(length int64) (Mapping, error)
	io.Closer
}

// Mapping is a read-only view of a file. It stays valid after the file is
// closed or removed, until Unmap.
type Mapping interface {
	// Bytes returns the mapped bytes. They must not be written to.
	Bytes() []byte
	// Unmap releases the mapping; the bytes must not be touched afterwards.
	Unmap() error
}
