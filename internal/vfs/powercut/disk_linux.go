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

// kind is a kind of file system whose power can be cut.
type kind struct {
	name  string
	mkfs  []string // the command that makes one, the image's path to follow
	least int64    // bytes that it needs
	bed   *kind    // the kernel cannot shut it down: it lies on one of these, which is shut down
}

var (
	ext4 = kind{name: "ext4", mkfs: []string{"mkfs.ext4", "-q", "-F"}, least: 8 << 20}
	// mkfs.xfs refuses less than 300 MB.
	xfs = kind{name: "xfs", mkfs: []string{"mkfs.xfs", "-q", "-f"}, least: 320 << 20}
	// btrfs knows the ioctl since Linux 6.19, and then only as an experiment.
	btrfs = kind{name: "btrfs", mkfs: []string{"mkfs.btrfs", "-q", "-f"}, least: 128 << 20, bed: &ext4}

	kinds = []kind{ext4, xfs, btrfs}
)

// Disk is a mounted file system.
type Disk struct {
	kind       kind
	image, dir string
	bed        *Disk // holds the image, and is shut down in its place; nil: the disk itself is
}

// Each runs test for every kind of file system, on one of at least the given
// size, with the number of power cuts that it is to make. It skips what is not
// asked for, or cannot be done here, and says why.
func Each(t *testing.T, bytes int64, test func(t *testing.T, disk *Disk, cuts int)) {
	t.Helper()
	cuts := wanted(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			test(t, mountNew(t, k, bytes), cuts)
		})
	}
}

// wanted returns how many power cuts each test is to make.
func wanted(t *testing.T) int {
	t.Helper()
	value := os.Getenv(Env)
	if value == "" {
		t.Skipf("cuts the power of a real ext4, XFS and btrfs: set %s to the number of cuts, and run as root", Env)
	}
	cuts, err := strconv.Atoi(value)
	if err != nil || cuts < 1 {
		t.Fatalf("%s=%s: want a number of power cuts, at least 1", Env, value)
	}
	if os.Geteuid() != 0 {
		t.Skipf("%s is set, but mounting needs root", Env)
	}
	return cuts
}

// mountNew makes a file system and mounts it until the test ends.
func mountNew(t *testing.T, k kind, bytes int64) *Disk {
	t.Helper()
	if _, err := exec.LookPath(k.mkfs[0]); err != nil {
		t.Skipf("%s is set, but there is nothing that makes a file system of the kind %s: %v", Env, k.name, err)
	}
	bytes = max(bytes, k.least)
	base := t.TempDir()
	d := &Disk{kind: k, dir: filepath.Join(base, "disk")}
	if k.bed != nil {
		d.bed = mountNew(t, *k.bed, bytes+64<<20) // more: what its own tables take
		base = d.bed.dir
	}
	d.image = filepath.Join(base, "image")
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(bytes), os.Mkdir(d.dir, 0o755))
	}
	if err == nil {
		err = command(k.mkfs[0], append(k.mkfs[1:len(k.mkfs):len(k.mkfs)], d.image)...)
	}
	// Synced, or a bed whose power is cut loses what mkfs wrote.
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := command("mount", "-t", k.name, "-o", "loop", d.image, d.dir); err != nil {
		t.Skipf("%s is set, but a file system of the kind %s on a loop device cannot be mounted: %v", Env, k.name, err)
	}
	t.Cleanup(func() {
		if err := command("umount", d.dir); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *Disk) mount() error {
	if d.bed != nil {
		if err := d.bed.mount(); err != nil {
			return err
		}
	}
	return command("mount", "-t", d.kind.name, "-o", "loop", d.image, d.dir)
}

func (d *Disk) unmount() error {
	if err := command("umount", d.dir); err != nil || d.bed == nil {
		return err
	}
	return d.bed.unmount()
}

func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, out)
	}
	return nil
}

// Dir returns where the disk is mounted.
func (d *Disk) Dir() string { return d.dir }

// Of the ioctl EXT4_IOC_SHUTDOWN, which is XFS_IOC_GOINGDOWN with the same number
// and flags: _IOR('X', 125, __u32).
const (
	shutdown           = 0x8004587d
	shutdownLogFlush   = 1
	shutdownNoLogFlush = 2
)

// Cut cuts the power. With journal, the changes of metadata so far reach the
// disk before: files then have names and sizes for data that is lost. A disk on
// a bed loses instead what it wrote and did not flush, as from the cache of a
// device; journal is then that of the bed. Every later operation on the disk
// fails until Restart.
func (d *Disk) Cut(journal bool) error {
	if d.bed != nil {
		return d.bed.Cut(journal)
	}
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
	if err := d.unmount(); err != nil {
		return err
	}
	return d.mount()
}
