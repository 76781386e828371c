package disk

import (
	"context"
	"errors"
	"io/fs"

	"github.com/kuji-dev/kuji/driver"
)

// The file closed says how far a copy goes. Without it the copy has not begun: its log is empty and is
// made again. The file is made when the log is, and replaced when a copy is complete.

var _ driver.Copier = (*Driver)(nil)

// CopyBegun implements driver.Copier.
func (d *Driver) CopyBegun(_ context.Context, realm string) (bool, error) {
	begun, _, err := d.Copied(realm)
	return begun, err
}

// Copied says how far the copy of a realm goes. begun: it has a log. next is the cursor after
// the last entry when a copy was last completed; 0: none was.
func (d *Driver) Copied(realm string) (begun bool, next driver.Cursor, err error) {
	last, begun, err := readLastClose(d.o.fs, d.realmDir(realm))
	return begun, driver.Cursor(last.next), classify(err)
}

// CopyFiles implements driver.Copier.
func (d *Driver) CopyFiles(_ context.Context, realm string, _ driver.Cursor) (driver.Files, error) {
	r := d.realm(realm, false)
	return &r.Files, classify(d.o.fs.MkdirAll(r.dir))
}

// OpenCopy implements driver.Copier.
func (d *Driver) OpenCopy(_ context.Context, realm string, first driver.Cursor) (driver.Copy, error) {
	begun, _, err := d.Copied(realm)
	if err != nil {
		return nil, err
	}
	if begun {
		first = 0
	} else if err := d.removeLog(realm); err != nil {
		return nil, classify(err)
	}
	r := d.realm(realm, false)
	if err := d.o.fs.MkdirAll(r.dir); err != nil {
		return nil, classify(err)
	}
	if err := r.openLog(d.o, driver.Options{}, first); err != nil {
		return nil, classify(err)
	}
	return r, nil
}

// removeLog removes an empty log that a crash left.
func (d *Driver) removeLog(realm string) error {
	dir := d.realmDir(realm) + "/log"
	names, err := d.o.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return nil
	}
	for _, name := range names {
		err = errors.Join(err, d.o.fs.Remove(dir+"/"+name))
	}
	return errors.Join(err, d.o.fs.SyncDir(dir))
}

// Drop implements driver.Copy: it does not note where the log was closed, so that a copy which was not
// completed stays one.
func (r *Realm) Drop() error { return r.close(false) }
