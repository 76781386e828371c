package disk

import (
	"context"
	"errors"

	"github.com/kuji-dev/kuji/driver"
)

// The file "closed" says how far a copy goes. Without it the copy has not begun: its log is empty,
// and is created again. The file is created with the log, and replaced when a copy is complete.

var _ driver.Copier = (*Driver)(nil)

// CopyBegun implements driver.Copier.
func (d *Driver) CopyBegun(_ context.Context, realm string) (bool, error) {
	begun, _, err := d.Copied(realm)
	return begun, err
}

// Copied returns how far the copy of a realm goes. begun: it has a log. next is the cursor of the
// last entry when a copy was last completed; 0: none was.
func (d *Driver) Copied(realm string) (begun bool, next driver.Cursor, err error) {
	last, begun, err := readLastClose(d.o.fs, d.realmDir(realm))
	return begun, driver.Cursor(last.next), classify(err)
}

// CopyFiles implements driver.Copier.
func (d *Driver) CopyFiles(_ context.Context, realm string, _ driver.Cursor) (driver.Files, error) {
	r := d.realm(realm, false)
	return &r.files, classify(d.o.fs.MkdirAll(r.dir))
}

// OpenCopy implements driver.Copier.
func (d *Driver) OpenCopy(_ context.Context, realm string, first driver.Cursor) (driver.Copy, error) {
	r := d.realm(realm, false)
	begun, _, err := d.Copied(realm)
	some := false
	if begun {
		first = 0
	} else if err == nil { // a crash may have left an empty log
		some, err = removeAll(r.fs, r.dir+"/log", "")
	}
	if some {
		err = errors.Join(err, r.fs.SyncDir(r.dir+"/log"))
	}
	if err == nil {
		err = d.o.fs.MkdirAll(r.dir)
	}
	if err == nil {
		err = r.openLog(d.o, driver.Options{}, first)
	}
	if err != nil {
		return nil, classify(err)
	}
	return r, nil
}

// Drop implements driver.Copy. It does not note where the log was closed, so the copy stays incomplete.
func (r *realm) Drop() error { return r.close(false) }
