package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// ReadFile returns the first bytes of a file, at most as many as the limit.
func ReadFile(fsys FS, name string, limit int64) (b []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b = make([]byte, min(size, limit))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("%s: read %d of %d bytes: %w", name, n, len(b), err)
	}
	return b, nil
}

// ReplaceFile replaces the contents of a file by b. It writes them into a file whose name ends in
// suffix, and renames that. After a crash or an error, the file holds b or its old contents. If the
// error is nil, it durably holds b.
func ReplaceFile(fsys FS, name, suffix string, b []byte) error {
	temp := name + suffix
	if err := fsys.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(temp)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(temp, name); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}
