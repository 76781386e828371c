package powercut

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Disk is a mounted ext4.
type Disk struct {
	image, dir string
}

// Cuts returns how many power cuts a test is to make. It skips the test when
// they are not asked for or cannot be made here.
func Cuts(t testing.TB) int {
	t.Helper()
	value := os.Getenv(Env)
	if value == "" {
		t.Skipf("cuts the power of a real ext4: set %s to the number of cuts, and run as root", Env)
	}
	cuts, err := strconv.Atoi(value)
	if err != nil || cuts < 1 {
		t.Fatalf("%s=%s: want a number of power cuts, at least 1", Env, value)
	}
	if os.Geteuid() != 0 {
		t.Skipf("%s is set, but mounting needs root", Env)
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skipf("%s is set, but %v", Env, err)
	}
	return cuts
}

// Mount makes an ext4 of the given size and mounts it until the test ends. It
// skips the test when loop devices cannot be mounted.
func Mount(t testing.TB, bytes int64) *Disk {
	t.Helper()
	base := t.TempDir()
	d := &Disk{image: filepath.Join(base, "image"), dir: filepath.Join(base, "disk")}
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(bytes), f.Close(), os.Mkdir(d.dir, 0o755))
	}
	if err == nil {
		err = command("mkfs.ext4", "-q", "-F", d.image)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := d.mount(); err != nil {
		t.Skipf("%s is set, but: %v", Env, err)
	}
	t.Cleanup(func() {
		if err := command("umount", d.dir); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *Disk) mount() error { return command("mount", "-o", "loop", d.image, d.dir) }

func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, out)
	}
	return nil
}

// Dir returns where the disk is mounted.
func (d *Disk) Dir() string { return d.dir }

// Of ext4's ioctl EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32).
const (
	shutdown           = 0x8004587d
	shutdownLogFlush   = 1
	shutdownNoLogFlush = 2
)

// Cut cuts the power. With journal, the changes of metadata so far reach the
// disk before: files then have names and sizes for data that is lost. Every
// later operation on the disk fails until Restart.
func (d *Disk) Cut(journal bool) error {
	dir, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	how := shutdownNoLogFlush
	if journal {
		how = shutdownLogFlush
	}
	return errors.Join(unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, how), dir.Close())
}

// Restart mounts the disk again, with what survived. No file on it may be
// open.
func (d *Disk) Restart() error {
	if err := command("umount", d.dir); err != nil {
		return err
	}
	return d.mount()
}
