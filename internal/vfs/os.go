package vfs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// OS returns the operating system's file system.
//
// It trusts fsync. A disk or a file system that acknowledges writes without
// making them durable breaks every promise built on this. On platforms without
// mmap, mappings are copies in memory. Writes through the same [File] keep them
// up to date; writes of other processes do not show.
//
// Files and directories that it creates are for their owner alone (modes 0600
// and 0700): a log holds what players own, and a seed file foretells draws.
func OS() FS { return osFS{} }

type osFS struct{}

// Allocator is an optional ability of a [File]: to make the file system reserve
// the space of bytes [0, size), so that later writes there do not run out of
// disk. The size of the file does not change.
type Allocator interface {
	Allocate(size int64) error
}

// CacheDropper is an optional ability of a [File]: to make the system forget
// what it has of a durable file in memory, so that the next read comes from the
// disk. Where the system keeps something all the same, reads are only faster. An
// error may say that the system lacks this ability.
type CacheDropper interface {
	DropCache() error
}

// WriteStarter is an optional ability of a [File]: to make the system begin to
// bring bytes [pos, pos+length) to the disk, without waiting for it. Nothing is
// durable before Sync, which then has less to wait for. After an error nothing
// may be assumed, as after an error of Sync, unless it says that the system
// lacks this ability.
type WriteStarter interface {
	StartWrite(pos, length int64) error
}

// AccessChecker is an optional ability of an [FS]: to say, without trying, why
// names cannot be added to a directory or removed from it. The errors are those
// of trying.
type AccessChecker interface {
	CheckWritable(dir string) error
}

// Unlinker is an optional ability of an [FS]: Remove in two parts. A file
// system that gives back the space of a large file at once, and tells the disk
// of it, makes the fsyncs of others wait.
//
// Unlink removes the name. If it returns a function, that function frees the
// space bit by bit, with pauses, and lets others run before each bit. When stop
// reports true, it frees all the rest at once. Call it once, when this process
// no longer has the file open or mapped. If somebody else still has the file,
// it stays whole until the last of them lets it go.
//
// If stop reports true from the start, nothing is cut. It must do so unless
// SyncDir has made the removal of the name durable.
type Unlinker interface {
	Unlink(name string) (free func(stop func() bool), err error)
}

// Unlink is Unlink of an [FS] that has it, and Remove otherwise.
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
// first, so that a crash leaves a prefix of the path and no more. It also
// fsyncs the parent of one that exists, because its maker may have been killed
// before doing so.
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

func (osFS) Lock(dir string) (Dir, error) { return lockDir(filepath.FromSlash(dir)) }

// Size, Truncate and the rest are the same on all platforms.

func (f *osFile) Truncate(size int64) error { return f.File.Truncate(size) }

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
