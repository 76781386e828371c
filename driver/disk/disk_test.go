package disk_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/driver/drivertest"
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
		p.d, err = disk.Open("data", disk.Options{FS: p.fs, SegmentSize: 1 << 20})
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
