package disk_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestDriver: the disk keeps the contract.
func TestDriver(t *testing.T) {
	drivertest.Run(t, func(testing.TB) *drivertest.World {
		disk := vfs.NewMem()
		return &drivertest.World{
			Open:      func(testing.TB, int) driver.Driver { return &process{fs: disk} },
			Exclusive: true,
			SetFull: func(_ testing.TB, full bool) {
				disk.SetHook(func(op vfs.Op) vfs.Fault {
					if full && (op.Kind == vfs.OpWrite || op.Kind == vfs.OpCreate) {
						return vfs.Fault{Err: syscall.ENOSPC}
					}
					return vfs.Fault{}
				})
			},
		}
	})
}

// on puts a driver on a file system.
func on(fs vfs.FS, o disk.Options) disk.Options {
	hook.Disk(&o, fs, nil)
	return o
}

// process takes the lock of the directory with the first realm that it opens, and gives it back when
// that is closed.
type process struct {
	fs   vfs.FS
	d    *disk.Driver
	over bool
}

func (p *process) open() (err error) {
	if p.over {
		return driver.ErrClosed
	}
	if p.d == nil {
		p.d, err = disk.Open("data", on(p.fs, disk.Options{SegmentSize: 1 << 20}))
	}
	return err
}

func (p *process) Realms(ctx context.Context) ([]string, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	return p.d.Realms(ctx)
}

func (p *process) Open(ctx context.Context, realm string, o driver.Options) (driver.Realm, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	r, err := p.d.Open(ctx, realm, o)
	if err != nil {
		return nil, err
	}
	return &opened{r, p}, nil
}

func (p *process) Close() error {
	p.over = true
	if p.d == nil {
		return nil
	}
	return p.d.Close()
}

type opened struct {
	driver.Realm
	p *process
}

func (o *opened) Close() error {
	err := o.Realm.Close()
	if errors.Is(err, driver.ErrFull) { // it says again that the log has failed
		err = nil
	}
	if o.p.d != nil {
		err = errors.Join(err, o.p.d.Close())
		o.p.d = nil
	}
	return err
}

// TestKeyOfOneWhoDied: whoever made the key may die before its name is durable. The next one sees
// it, seals with it, and must not lose it.
func TestKeyOfOneWhoDied(t *testing.T) {
	fs := vfs.NewMem()
	open := func(fs *vfs.Mem) *disk.Driver {
		d, err := disk.Open("data", on(fs, disk.Options{SegmentSize: 1 << 20}))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := open(fs)
	var killed *vfs.Mem
	fs.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSyncDir && killed == nil {
			killed = fs.KillClone()
		}
		return vfs.Fault{}
	})
	want, _, err := d.Key(false)
	if err != nil || killed == nil {
		t.Fatal(err, "the name of the key was never synced")
	}
	if got, damaged, err := open(killed).Key(false); got != want || damaged != nil || err != nil {
		t.Fatalf("the next one has key %x (%v, %v), want %x", got, damaged, err, want)
	}
	for after := range killed.CrashStates(100, 1, true) {
		if got, damaged, err := open(after).Key(false); got != want || damaged != nil || err != nil {
			t.Errorf("after a power cut the key is %x (%v, %v), want %x", got, damaged, err, want)
		}
	}
}

// TestCommitFails: a file that cannot be made durable leaves nothing behind that takes up room.
func TestCommitFails(t *testing.T) {
	fs := vfs.NewMem()
	d, err := disk.Open("data", on(fs, disk.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Open(t.Context(), "r", driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, fails := range []vfs.OpKind{vfs.OpSync, vfs.OpRename} {
		w, err := r.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		fs.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind == fails {
				return vfs.Fault{Err: syscall.ENOSPC}
			}
			return vfs.Fault{}
		})
		if err := w.Commit(t.Context(), "file"); !errors.Is(err, driver.ErrFull) {
			t.Errorf("commit on a full disk: error %v, want %v", err, driver.ErrFull)
		}
		w.Abort()
		fs.SetHook(nil)
		names, err := fs.List("data/realms/r/snapshots")
		if err != nil || len(names) > 0 {
			t.Errorf("after a commit whose %v failed: files %q, error %v", fails, names, err)
		}
	}
	if err := errors.Join(r.Close(), d.Close()); err != nil {
		t.Error(err)
	}
}
