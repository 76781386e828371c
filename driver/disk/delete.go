package disk

import (
	"context"
	"errors"
	"io/fs"

	"github.com/kuji-dev/kuji/driver"
)

// A realm is deleted once its directory has a file with this name. What is left then is removed, the file last. A crash
// in between changes nothing about that: the next opening of the realm goes on.
const deletedName = "deleted"

// Delete implements driver.Deleter. The realm must be closed.
func (d *Driver) Delete(_ context.Context, realm string) error {
	if err := driver.CheckRealm(realm); err != nil {
		return err
	}
	if d.closed.Load() {
		return driver.ErrClosed
	}
	dir := d.realmDir(realm)
	if there, err := d.exists(dir); err != nil || !there {
		return errors.Join(err, classify(fs.ErrNotExist))
	}
	f, err := d.o.fs.Create(dir + "/" + deletedName)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close(), d.o.fs.SyncDir(dir))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return classify(err)
	}
	return d.remove(dir)
}

// exists reports whether a directory is that of a realm, and not of one that is deleted, or only was begun.
func (d *Driver) exists(dir string) (bool, error) {
	names, err := d.o.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, classify(err)
	}
	for _, name := range names {
		if name == deletedName {
			return false, nil
		}
	}
	return len(names) > 0, nil
}

// finish removes what is left of a realm that was deleted, if it was.
func (d *Driver) finish(dir string) error {
	if _, err := d.o.fs.Stat(dir + "/" + deletedName); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return classify(err)
	}
	return d.remove(dir)
}

// remove removes a realm's directory, and the file that says so last.
func (d *Driver) remove(dir string) error {
	names, err := d.o.fs.List(dir)
	if err != nil {
		return classify(err)
	}
	for _, name := range names {
		if name == deletedName {
			continue
		}
		if err := d.removeTree(dir + "/" + name); err != nil {
			return classify(err)
		}
	}
	err = d.o.fs.SyncDir(dir)
	if err == nil {
		err = d.o.fs.Remove(dir + "/" + deletedName)
	}
	if err == nil {
		err = d.o.fs.SyncDir(dir)
	}
	if err == nil {
		err = d.o.fs.Remove(dir)
	}
	if err == nil {
		err = d.o.fs.SyncDir(d.dir + "/realms")
	}
	return classify(err)
}

// removeTree removes a file, or a directory with all that is in it.
func (d *Driver) removeTree(name string) error {
	info, err := d.o.fs.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		names, err := d.o.fs.List(name)
		if err != nil {
			return err
		}
		for _, one := range names {
			if err := d.removeTree(name + "/" + one); err != nil {
				return err
			}
		}
		if err := d.o.fs.SyncDir(name); err != nil {
			return err
		}
	}
	return d.o.fs.Remove(name)
}
