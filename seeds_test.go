package kuji_test

import (
	"bytes"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const seedFile = "data/realms/test/seeds"

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

// TestSeedIsMissed: without the seed of an epoch that ended in a crash, the realm goes on, says so,
// and keeps what is left of the seed. Verify names the epoch.
func TestSeedIsMissed(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"no digit":    func(b []byte) []byte { b[10] ^= 0x80; return b },
		"other digit": func(b []byte) []byte { b[10] = '0' + b[10]%2 ^ 1; return b },
		"cut":         func(b []byte) []byte { return b[:len(b)/2] },
		"empty":       func([]byte) []byte { return nil },
		"zeros":       func(b []byte) []byte { clear(b); return b },
		"long":        func(b []byte) []byte { return bytes.Repeat([]byte("no seed\n"), 1<<18) },
	} {
		t.Run(name, func(t *testing.T) {
			disk := killed(t)
			damaged := damage(contents(t, disk, seedFile))
			replace(t, disk, seedFile, damaged)
			said, unproven := reopen(t, disk)
			if !strings.Contains(said, "epoch 1 cannot be proven") || !strings.Contains(said, "seeds") || len(said) > 300 {
				t.Errorf("said: %.400s", said)
			}
			if !slices.Equal(unproven, []uint64{1}) {
				t.Errorf("epochs %d are not proven, want 1", unproven)
			}
			if kept := contents(t, disk, seedFile+".2"); !bytes.Equal(kept, damaged[:min(len(damaged), 1<<20)]) {
				t.Errorf("%q was kept", kept)
			}
			if said, _ := reopen(t, disk); !strings.Contains(said, "epoch 1 cannot be proven") {
				t.Errorf("at the next start: %q", said)
			}
			if _, err := disk.Stat(seedFile + ".3"); err == nil {
				t.Error("a sound file was kept, too")
			}
		})
	}
}

// TestSeedIsLost: the same without the file.
func TestSeedIsLost(t *testing.T) {
	disk := killed(t)
	if err := disk.Remove(seedFile); err != nil {
		t.Fatal(err)
	}
	said, unproven := reopen(t, disk)
	if said != "epoch 1 cannot be proven: its seed is lost" || !slices.Equal(unproven, []uint64{1}) {
		t.Errorf("epochs %d are not proven, said: %q", unproven, said)
	}
}

// TestSeedIsNotNeeded: after a clean end all seeds are in the log, and what the file holds does not
// matter. Nor does a line that is there twice.
func TestSeedIsNotNeeded(t *testing.T) {
	disk := killed(t)
	line := contents(t, disk, seedFile)
	replace(t, disk, seedFile, append(line, line...))
	for range 3 {
		if said, unproven := reopen(t, disk); said != "" || unproven != nil {
			t.Errorf("epochs %d are not proven, said: %q", unproven, said)
		}
		b := contents(t, disk, seedFile)
		b[5] ^= 0x10
		replace(t, disk, seedFile, b)
	}
}

// TestSeedOfNoEpoch: a seed whose epoch the log does not have is dropped, and said to be.
func TestSeedOfNoEpoch(t *testing.T) {
	disk := killed(t)
	seeds := contents(t, disk, seedFile)
	replace(t, disk, seedFile, append(seeds, "7 "+strings.Repeat("ab", 32)+"\n"...))
	said, unproven := reopen(t, disk)
	if said != "the seed of epoch 7 is dropped: the log ends in epoch 1" || unproven != nil {
		t.Errorf("epochs %d are not proven, said: %q", unproven, said)
	}
}

// TestSeedsCannotBeRead: an error of the disk is one, and no damage. The seeds stay.
func TestSeedsCannotBeRead(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpOpen, vfs.OpSize, vfs.OpRead} {
		t.Run(kind.String(), func(t *testing.T) {
			disk := killed(t)
			disk.SetHook(func(op vfs.Op) vfs.Fault {
				if op.Kind == kind && op.Path == "/"+seedFile {
					return vfs.Fault{Err: syscall.EIO}
				}
				return vfs.Fault{}
			})
			e, err := openWorld("data", worldOptions{FS: disk})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			_, err = e.Realm("test")
			wantCode(t, err, kuji.CodeFailed)
			disk.SetHook(nil)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if said, unproven := reopen(t, disk); said != "" || unproven != nil {
				t.Errorf("epochs %d are not proven, said: %q", unproven, said)
			}
		})
	}
}
