package enginetest

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const keyFile = "data/key"

// killed returns the disk of an engine that was killed after a draw, in epoch 1.
func killed(t *testing.T) *vfs.Mem {
	t.Helper()
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk})
	do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
	left := disk.KillClone()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return left
}

// reopen opens the realm, draws, closes it, and returns what it said of the seeds, and the epochs
// whose seeds the log lacks then.
func reopen(t *testing.T, disk *vfs.Mem) (said string, unproven []uint64) {
	t.Helper()
	e, r := open(t, "data", worldOptions{FS: disk})
	do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
	if err := r.Stats().SeedsErr; err != nil {
		said = err.Error()
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := verifyIn(disk, "data", "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rep.Epochs {
		if !e.Revealed {
			unproven = append(unproven, e.Epoch)
		}
	}
	return said, unproven
}

// replaceKey gives the key file other contents, durably.
func replaceKey(t *testing.T, disk *vfs.Mem, b []byte) {
	t.Helper()
	if err := disk.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, 0)
	if err := errors.Join(err, f.Sync(), f.Close(), disk.SyncDir("data")); err != nil {
		t.Fatal(err)
	}
}

// TestKeyIsDamaged: without the key that sealed the seed of an epoch which ended in a crash, the
// realm goes on with another key, says so, and keeps what is left of the old one. Verify names the
// epoch. With the old key in its place again, the next start reveals the seed.
func TestKeyIsDamaged(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"no digit":    func(b []byte) []byte { b[10] ^= 0x80; return b },
		"other digit": func(b []byte) []byte { b[10] = '0' + b[10]%2 ^ 1; return b },
		"cut":         func(b []byte) []byte { return b[:len(b)/2] },
		"empty":       func([]byte) []byte { return nil },
		"zeros":       func(b []byte) []byte { clear(b); return b },
		"long":        func(b []byte) []byte { return bytes.Repeat([]byte("no key\n"), 1<<18) },
	} {
		t.Run(name, func(t *testing.T) {
			disk := killed(t)
			sound := contents(t, disk, keyFile)
			damaged := damage(bytes.Clone(sound))
			replaceKey(t, disk, damaged)
			said, unproven := reopen(t, disk)
			if !strings.Contains(said, "epoch 1 cannot be proven") || !strings.Contains(said, "key") || len(said) > 300 {
				t.Errorf("said: %.400s", said)
			}
			if !slices.Equal(unproven, []uint64{1}) {
				t.Errorf("epochs %d are not proven, want 1", unproven)
			}
			if name != "other digit" { // which is a key like any
				if kept := contents(t, disk, keyFile+".1"); !bytes.Equal(kept, damaged) {
					t.Errorf("%.100q was kept", kept)
				}
			}
			if said, _ := reopen(t, disk); !strings.Contains(said, "epoch 1 cannot be proven") {
				t.Errorf("at the next start: %q", said)
			}
			if _, err := disk.Stat(keyFile + ".2"); err == nil {
				t.Error("a sound file was kept, too")
			}
			replaceKey(t, disk, sound)
			if said, unproven := reopen(t, disk); said != "" || unproven != nil {
				t.Errorf("with the old key, epochs %d are not proven, said: %q", unproven, said)
			}
		})
	}
}

// TestKeyIsLost: the same without the file.
func TestKeyIsLost(t *testing.T) {
	disk := killed(t)
	if err := disk.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	said, unproven := reopen(t, disk)
	if !strings.Contains(said, "epoch 1 cannot be proven") || !strings.Contains(said, "there was no key") || !slices.Equal(unproven, []uint64{1}) {
		t.Errorf("epochs %d are not proven, said: %q", unproven, said)
	}
}

// TestKeyIsNotNeeded: after a clean end all seeds are in the log, and the key does not matter.
func TestKeyIsNotNeeded(t *testing.T) {
	disk := killed(t)
	for range 3 {
		if said, unproven := reopen(t, disk); said != "" || unproven != nil {
			t.Errorf("epochs %d are not proven, said: %q", unproven, said)
		}
		replaceKey(t, disk, bytes.Repeat([]byte("1"), 64))
	}
}

// TestKeyIsMadeOnce: it is a secret, stays the same, and sealed seeds open for their own epoch only.
func TestKeyIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	var first []byte
	for range 3 {
		e, _ := open(t, dir, worldOptions{})
		b, err := os.ReadFile(dir + "/key")
		if err != nil || first != nil && !bytes.Equal(b, first) {
			t.Fatalf("%q, then %q, %v", first, b, err)
		}
		if info, err := os.Stat(dir + "/key"); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		first = b
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeyCannotBeRead: an error of the disk is one, and no damage. The key stays.
func TestKeyCannotBeRead(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpOpen, vfs.OpSize, vfs.OpRead} {
		t.Run(kind.String(), func(t *testing.T) {
			disk := killed(t)
			disk.SetHook(func(op vfs.Op) vfs.Fault {
				if op.Kind == kind && op.Path == "/"+keyFile {
					return vfs.Fault{Err: syscall.EIO}
				}
				return vfs.Fault{}
			})
			_, err := openWorld("data", worldOptions{FS: disk})
			wantCode(t, err, kuji.CodeFailed)
			disk.SetHook(nil)
			if said, unproven := reopen(t, disk); said != "" || unproven != nil {
				t.Errorf("epochs %d are not proven, said: %q", unproven, said)
			}
		})
	}
}
