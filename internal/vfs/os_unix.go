//go:build unix && !solaris && !aix

package vfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

type osFile struct{ *os.File }

func newOSFile(f *os.File) *osFile { return &osFile{f} }

// Map maps the file shared, so that pages written with pwrite show in it.
//
// It does not use unix.Mmap and unix.Munmap, because they share a lock.
// Unmapping the last of a removed file frees its pages and its space. That
// takes milliseconds, during which a log could map nothing and so write
// nothing.
func (f *osFile) Map(length int64) (Mapping, error) {
	if length <= 0 || int64(int(length)) != length {
		return nil, fmt.Errorf("vfs: map %s: length %d, want 1 to the address space", f.Name(), length)
	}
	var start unsafe.Pointer
	err := f.control(func(fd int) (err error) {
		start, err = unix.MmapPtr(fd, 0, nil, uintptr(length), unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return &osMapping{unsafe.Slice((*byte)(start), int(length))}, nil
}

// control runs fn on the descriptor, which stays open meanwhile.
func (f *osFile) control(fn func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = fn(int(fd)) }); err != nil {
		return err
	}
	return inner
}

type osMapping struct{ data []byte }

func (m *osMapping) Bytes() []byte { return m.data }

func (m *osMapping) Unmap() error {
	if m.data == nil {
		return nil
	}
	data := m.data
	m.data = nil
	return os.NewSyscallError("munmap", unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(data)), uintptr(len(data))))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// CheckWritable asks access(2) about the rights that files are opened with.
func (osFS) CheckWritable(dir string) error {
	dir = filepath.FromSlash(dir)
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "access", Path: dir, Err: err}
	}
	return nil
}

// lockDir takes the lock on the directory's own inode. Closing the descriptor
// releases it.
func lockDir(dir string) (Dir, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && !info.IsDir() {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: dir, Err: unix.ENOTDIR}, f.Close())
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(&os.PathError{Op: "flock", Path: dir, Err: err}, f.Close())
	}
	return f, nil
}
