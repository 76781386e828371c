package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// OS returns the operating system's file system.
//
// It takes fsync at its word: a disk or a file system that acknowledges
// writes which it has not made durable breaks every promise built on this.
// On platforms without mmap, mappings are copies in memory that writes through
// the same [File] keep up to date; other processes' writes do not show there.
//
// Files and directories that it creates are for their owner alone (modes 0600
// and 0700): a log holds what players own, and a seed file foretells draws.
func OS() FS { return osFS{} }

type osFS struct{}

// Allocator is an optional ability of a [File]: to have the file system
// reserve the space of bytes [0, size), so that later writes there do not run
// out of disk. The file's size does not change.
type Allocator interface {
	Allocate(size int64) error
}

// WriteStarter is an optional ability of a [File]: to have the system begin to
// bring bytes [pos, pos+length) to the disk, without waiting for it. Nothing is
// durable before Sync, which then has less to wait for. After an error, unless it
// says that this cannot be had, nothing may be assumed, as after one of Sync.
type WriteStarter interface {
	StartWrite(pos, length int64) error
}

// ReadLocker is an optional ability of an [FS]: Lock for who may read a directory
// but not write to it. The file must exist already.
type ReadLocker interface {
	LockReadOnly(name string) (io.Closer, error)
}

// AccessChecker is an optional ability of an [FS]: to say why no names can be added
// to a directory or removed from it, without trying. The errors are those of trying.
type AccessChecker interface {
	CheckWritable(dir string) error
}

// Unlinker is an optional ability of an [FS]: Remove in two parts, so that others'
// fsyncs need not wait until the file system has given back a large file's space at
// once, and told the disk of it. Unlink removes the name. What it returns, unless that
// is nil, frees the space bit by bit, with pauses, all of the rest when stop reports
// true, and should let others run before each bit; it must be called once, when this
// process has the file neither open nor mapped any more. Who else has keeps it whole:
// then it is freed when the last of them lets it go.
// When stop reports true from the start, nothing is cut: so it must, unless SyncDir has
// made it durable that the name is gone.
type Unlinker interface {
	Unlink(name string) (free func(stop func() bool), err error)
}

// Unlink is Unlink of an [FS] that can, and else Remove.
func Unlink(fsys FS, name string) (free func(stop func() bool), err error) {
	if u, ok := fsys.(Unlinker); ok {
		return u.Unlink(name)
	}
	return nil, fsys.Remove(name)
}

func (osFS) Create(name string) (File, error) {
	return openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) Open(name string) (File, error) { return openFile(name, os.O_RDONLY) }

func (osFS) OpenWrite(name string) (File, error) { return openFile(name, os.O_RDWR) }

func openFile(name string, flag int) (File, error) {
	f, err := os.OpenFile(filepath.FromSlash(name), flag, 0o600)
	if err != nil {
		return nil, err
	}
	return newOSFile(f), nil
}

func (osFS) Remove(name string) error { return os.Remove(filepath.FromSlash(name)) }

func (osFS) Rename(oldname, newname string) error {
	return os.Rename(filepath.FromSlash(oldname), filepath.FromSlash(newname))
}

// MkdirAll fsyncs the parent of each directory that it creates, outermost
// first, so that a crash leaves a prefix of the path and no more. It fsyncs the
// parent of one that exists too: whoever made it may have been killed before
// that.
func (o osFS) MkdirAll(dir string) error {
	info, err := os.Stat(filepath.FromSlash(dir))
	if err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: fmt.Errorf("exists and is not a directory: %w", fs.ErrExist)}
		}
		if err := o.SyncDir(path.Dir(filepath.ToSlash(dir))); err != nil && !os.IsPermission(err) {
			return err
		}
		return nil
	}
	if !os.IsNotExist(err) {
		return err
	}
	parent := path.Dir(filepath.ToSlash(dir))
	if parent != dir {
		if err := o.MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.FromSlash(dir), 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	return o.SyncDir(parent)
}

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.FromSlash(dir)) // sorted
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(filepath.FromSlash(name)) }

func (osFS) SyncDir(dir string) error { return syncDir(filepath.FromSlash(dir)) }

func (osFS) Lock(name string) (io.Closer, error) { return lockFile(filepath.FromSlash(name)) }

// Size, Truncate and the rest that no platform does differently.

func (f *osFile) Truncate(size int64) error { return f.File.Truncate(size) }

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
