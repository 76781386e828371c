// Package disk is the driver that keeps realms in a directory: each realm's log is one of package
// wal, and its files are in a directory next to it. One process at a time has the directory open.
//
//	DIR/key                      the key that seals seeds: see Driver.Key
//	DIR/realms/NAME/log/         the log
//	DIR/realms/NAME/snapshots/   the files
//	DIR/realms/NAME/closed       where the log stood when it was last closed
//
// An entry's cursor is its offset in the log plus one.
package disk

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// Sync says when an entry counts as appended.
type Sync uint8

const (
	// Always: when it is fsynced.
	Always Sync = iota
	// Interval: when it is handed to the operating system. An fsync follows every SyncEvery.
	Interval
	// None: when it is handed to the operating system.
	None
)

// Options configure a Driver. The zero value fsyncs every entry.
type Options struct {
	// Sync is the policy of every realm. Default: Always.
	Sync Sync
	// SyncEvery is the time between fsyncs under Interval.
	SyncEvery time.Duration
	// SegmentSize is that of wal.Options.
	SegmentSize int64
	// MustExist refuses a directory that is not a data directory, instead of creating it.
	MustExist bool

	fs    vfs.FS      // nil: the operating system's
	steps step.Runner // nil: goroutines, the clock and entropy of the operating system
}

func init() {
	hook.Disk = func(options any, fs vfs.FS, steps step.Runner) {
		o := options.(*Options)
		o.fs, o.steps = fs, steps
	}
}

// Driver keeps realms in a directory, which it has locked.
type Driver struct {
	dir  string
	o    Options
	lock io.Closer

	closed atomic.Bool
}

var _ driver.Driver = (*Driver)(nil)

// Open opens a data directory, and creates it if needed. Errors: driver.ErrLocked if another
// process has it open, driver.ErrNotExist with MustExist, and those of the file system.
func Open(dir string, o Options) (*Driver, error) {
	o.fs = cmp.Or(o.fs, vfs.OS())
	if o.MustExist {
		_, err := o.fs.Stat(dir + "/realms")
		if errors.Is(err, syscall.ENOTDIR) {
			err = &classed{err, driver.ErrNotExist}
		}
		if err != nil {
			return nil, classify(err)
		}
	} else if err := o.fs.MkdirAll(dir + "/realms"); err != nil {
		return nil, classify(err)
	}
	lock, err := o.fs.Lock(dir)
	if err != nil {
		return nil, classify(err)
	}
	return &Driver{dir: dir, o: o, lock: lock}, nil
}

// Realms implements driver.Driver. It skips files, and directories whose names no realm can have.
func (d *Driver) Realms(context.Context) ([]string, error) {
	if d.closed.Load() {
		return nil, driver.ErrClosed
	}
	names, err := d.o.fs.List(d.dir + "/realms")
	if err != nil {
		return nil, classify(err)
	}
	realms := names[:0]
	for _, name := range names {
		if driver.CheckRealm(name) != nil {
			continue
		}
		info, err := d.o.fs.Stat(d.realmDir(name))
		if err != nil {
			return nil, classify(err)
		}
		if !info.IsDir() {
			continue
		}
		there, err := d.exists(d.realmDir(name))
		if err != nil {
			return nil, err
		}
		if there {
			realms = append(realms, name)
		}
	}
	return realms, nil
}

func (d *Driver) realmDir(name string) string { return d.dir + "/realms/" + name }

// Open implements driver.Driver.
func (d *Driver) Open(_ context.Context, realm string, o driver.Options) (driver.Realm, error) {
	if err := driver.CheckRealm(realm); err != nil {
		return nil, err
	}
	if d.closed.Load() {
		return nil, driver.ErrClosed
	}
	r := d.realm(realm, o.ReadOnly || o.Check)
	var err error
	if o.MustExist || r.readOnly {
		if _, gone := d.o.fs.Stat(r.dir + "/" + deletedName); gone == nil {
			return nil, classify(fs.ErrNotExist)
		}
		_, err = d.o.fs.Stat(r.dir)
	} else if err = d.finish(r.dir); err != nil {
		return nil, err
	} else {
		err = d.o.fs.MkdirAll(r.dir)
	}
	if err == nil && o.Check {
		err = r.openChecked()
	} else if err == nil {
		err = r.openLog(d.o, o, 0)
	}
	if err != nil {
		return nil, classify(err)
	}
	return r, nil
}

func (d *Driver) realm(name string, readOnly bool) *realm {
	dir := d.realmDir(name)
	return &realm{files: files{gate: &gate{readOnly: readOnly}, fs: d.o.fs, dir: dir + "/" + filesDir}, dir: dir, steps: d.o.steps, policy: d.o.Sync}
}

// Close implements driver.Driver. It lets other processes in.
func (d *Driver) Close() error {
	if d.closed.Swap(true) {
		return driver.ErrClosed
	}
	return classify(d.lock.Close())
}

// gate says what may be done with a realm.
type gate struct {
	closed   atomic.Bool
	readOnly bool
}

var errReadOnly = errors.New("opened for reading only")

func (g *gate) mayRead() error {
	if g.closed.Load() {
		return driver.ErrClosed
	}
	return nil
}

func (g *gate) mayWrite() error {
	if err := g.mayRead(); err != nil || !g.readOnly {
		return err
	}
	return errReadOnly
}

// classify adds package driver's error to one of the log or the file system.
func classify(err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case err == nil:
		return nil
	case is(vfs.ErrLocked), is(wal.ErrLocked):
		return &classed{err, driver.ErrLocked}
	case is(fs.ErrNotExist):
		return &classed{err, driver.ErrNotExist}
	case is(wal.ErrClosed):
		return &classed{err, driver.ErrClosed}
	case vfs.Full(err):
		return &classed{err, driver.ErrFull}
	case vfs.Short(err):
		return &classed{err, driver.ErrUnavailable}
	}
	if d, ok := errors.AsType[*wal.CorruptionError](err); ok {
		if _, ok := errors.AsType[*driver.CorruptError](err); !ok {
			return corrupt(d)
		}
	}
	return err
}

// classed is an error that also is one of package driver's, with the text of the first.
type classed struct{ err, class error }

func (e *classed) Error() string   { return e.err.Error() }
func (e *classed) Unwrap() []error { return []error{e.err, e.class} }
