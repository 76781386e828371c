package vfs

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockDir opens a file in the directory and shares it with nobody: while it is
// open, nobody else can open, remove or rename it, and the end of the process
// closes it. A directory itself cannot be locked here.
func lockDir(dir string) (Dir, error) {
	path := filepath.Join(dir, "lock")
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	const alone = 0 // no sharing
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, alone, nil, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		err = ErrLocked
	}
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return heldDir{os.NewFile(uintptr(h), path)}, nil
}

type heldDir struct{ file *os.File }

func (heldDir) Sync() error { return nil } // see syncDir

func (h heldDir) Close() error { return h.file.Close() }
