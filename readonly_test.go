package kuji_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// readOnlyFS is the operating system's where nothing can be written.
type readOnlyFS struct{ vfs.FS }

func (readOnlyFS) Lock(name string) (io.Closer, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS}
}

func (f readOnlyFS) LockReadOnly(name string) (io.Closer, error) {
	return f.FS.(vfs.ReadLocker).LockReadOnly(name)
}

// TestVerifyReadOnly: a copy on a medium that cannot be written to is verified as
// any other, and one that an engine has open is not.
func TestVerifyReadOnly(t *testing.T) {
	if _, ok := vfs.OS().(vfs.ReadLocker); !ok {
		t.Skip("locks need a file to be made here")
	}
	dir := t.TempDir()
	e, err := openWorld(dir, worldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Realm("a"); err != nil {
		t.Fatal(err)
	}
	verify := func() error {
		_, err := verifyIn(readOnlyFS{vfs.OS()}, dir, "a", nil)
		return err
	}
	if err := verify(); kuji.CodeOf(err) != kuji.CodeLocked {
		t.Errorf("beside an engine: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := verify(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	if err := verify(); err != nil {
		t.Errorf("without the lock's file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "lock")); err == nil {
		t.Error("the lock's file was made")
	}
}
