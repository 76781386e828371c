package disk

import (
	"errors"
	"io/fs"

	"github.com/kuji-dev/kuji/driver"
)

// A realm is copied in this order, so that what is there after a crash can be gone on with:
//
//	the files
//	the log, empty, that begins where the other one does; then the file closed, which says so
//	the entries
//	the file closed again, which says how far the copy goes
//
// Until the file closed is there, the log is empty and is made anew.

// Copied says how far the copy of a realm has come. begun: it has a log. next is the cursor behind
// the last entry when a copy was last completed; 0: none was.
func (d *Driver) Copied(realm string) (begun bool, next driver.Cursor, err error) {
	last, err := readLastClose(d.o.fs, d.realmDir(realm))
	if err != nil || last == nil {
		return false, 0, classify(err)
	}
	return true, driver.Cursor(last.next), nil
}

// OpenFiles opens the files of a realm whose copy has not begun.
func (d *Driver) OpenFiles(realm string) (*Files, error) {
	dir := d.realmDir(realm)
	if err := d.o.fs.MkdirAll(dir); err != nil {
		return nil, classify(err)
	}
	return &Files{gate: &gate{}, fs: d.o.fs, dir: dir + "/" + filesDir}, nil
}

// OpenCopy opens a realm to copy entries of another one to it. If the copy has not begun, its log
// begins at a cursor.
func (d *Driver) OpenCopy(realm string, first driver.Cursor) (*Realm, error) {
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

// Drop closes the realm without noting where. A copy that was not completed stays one.
func (r *Realm) Drop() error {
	if r.closed.Swap(true) || r.log == nil {
		return nil
	}
	return classify(r.log.Close())
}
