package enginetest

import (
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestVerifyReadOnly: a copy on a medium that cannot be written to is verified as
// any other, and one that an engine has open is not.
func TestVerifyReadOnly(t *testing.T) {
	disk := vfs.NewMem()
	e, err := openWorld("data", worldOptions{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Realm("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := verifyIn(disk, "data", "a", nil); kuji.CodeOf(err) != kuji.CodeLocked {
		t.Errorf("next to an engine: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind.Changes() || op.Kind == vfs.OpOpenWrite {
			return vfs.Fault{Err: syscall.EROFS}
		}
		return vfs.Fault{}
	})
	if _, err := verifyIn(disk, "data", "a", nil); err != nil {
		t.Error(err)
	}
}
