//go:build (!unix && !windows) || solaris || aix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// lockDir makes a file that must not exist, because a directory cannot be
// locked here. The file outlives a killed process: then somebody has to remove
// it by hand.
func lockDir(dir string) (Dir, error) {
	name := filepath.Join(dir, "lock.held")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, &os.PathError{Op: "lock", Path: dir, Err: ErrLocked}
	}
	if err != nil {
		return nil, err
	}
	return heldDir{f, dir}, nil
}

type heldDir struct {
	file *os.File
	dir  string
}

func (h heldDir) Sync() error { return syncDir(h.dir) }

func (h heldDir) Close() error { return errors.Join(h.file.Close(), os.Remove(h.file.Name())) }
