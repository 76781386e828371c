package backup

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

// restoring ends the name of a directory until all of it is restored.
const restoring = ".restoring"

// Restore makes a data directory from a backup, and verifies it: see [verify.Dir]. to must not exist: the
// directory gets its name when all of it is there and right. If Restore ends early, the next call goes on.
//
// A restored realm goes on in an epoch of its own, with a new seed. key is that of the realm's data
// directory: with it, the first start reveals the seed of the epoch that the backup ended in, which proves
// its draws. Give it only if the realm that was backed up is gone for good. nil: those draws cannot be
// proven.
func Restore(ctx context.Context, from, to string, key *[32]byte) ([]verify.Report, error) {
	return restore(ctx, nil, from, to, key)
}

func restore(ctx context.Context, fsys vfs.FS, from, to string, key *[32]byte) (reports []verify.Report, err error) {
	disks := fsys
	if disks == nil {
		disks = vfs.OS()
	}
	to = strings.TrimRight(to, "/")
	if _, err := disks.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(kuji.CodeConflict, "data", "%s is there already: restore to a directory that is not", to)
	}
	b, err := open(fsys, from)
	if err != nil {
		return nil, err
	}
	defer b.Close() // only read: nothing to lose
	d, err := openDir(fsys, to+restoring, disk.Options{Sync: disk.None})
	if err != nil {
		return nil, err
	}
	var keys [][32]byte
	if key != nil {
		keys = append(keys, *key)
		err = kuji.ErrorOf("the key", d.PutKey(*key))
	}
	for i := 0; i < len(b.realms) && err == nil; i++ {
		var rep verify.Report
		if err = b.copyTo(ctx, d, b.realms[i]); err == nil {
			rep, err = verify.Driver(d, b.realms[i], verify.Options{Keys: keys})
		}
		reports = append(reports, rep)
	}
	if err == nil && key == nil { // a data directory has a key, which tells it from a backup
		_, _, err = d.Key(false)
	}
	if err = errors.Join(err, d.Close()); err == nil {
		err = disks.Rename(to+restoring, to)
	}
	if err == nil {
		err = disks.SyncDir(path.Dir(to))
	}
	if err != nil {
		return nil, kuji.ErrorOf("restoring "+to, err)
	}
	return reports, nil
}

func init() {
	hook.Backup = func(fs vfs.FS, dir, realm string, source any) error {
		_, err := write(context.Background(), fs, dir, realm, source.(Source))
		return err
	}
	hook.Restore = func(fs vfs.FS, from, to string) error {
		_, err := restore(context.Background(), fs, from, to, nil)
		return err
	}
}

// Target is a driver to restore realms to. Only an open with driver.Options.Check finds unfinished ones.
type Target interface {
	driver.Driver
	driver.Copier
	// FinishCopy gives a realm its name.
	FinishCopy(ctx context.Context, realm string) error
}

// RestoreTo is Restore to a driver. The realms must not be there; all appear when the last one is there and
// right. key and old are [kuji.Options.Key] and OldKeys: if the backed-up realm's key is one of them, the
// draws of the epoch that the backup ended in can be proven.
func RestoreTo(ctx context.Context, from string, to Target, key [32]byte, old ...[32]byte) (reports []verify.Report, err error) {
	b, err := open(nil, from)
	if err != nil {
		return nil, err
	}
	defer b.Close() // only read: nothing to lose
	for _, realm := range b.realms {
		want, err := verify.Driver(b, realm, verify.Options{})
		if err == nil {
			err = b.copyTo(ctx, to, realm)
		}
		if err != nil {
			return nil, err
		}
		got, err := verify.Driver(to, realm, verify.Options{Keys: append(slices.Clone(old), key)})
		if err == nil && (got.Position != want.Position || got.ChainHash != want.ChainHash || got.StateHash != want.StateHash) {
			err = refuse(kuji.CodeFailed, "", "realm %s: what was restored shows position %d, the backup has %d: run it again", realm, got.Position, want.Position)
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, got)
	}
	for _, realm := range b.realms {
		if err := to.FinishCopy(ctx, realm); err != nil {
			return nil, kuji.ErrorOf("naming realm "+realm, err)
		}
	}
	return reports, nil
}

type kept struct {
	*disk.Driver
	realms []string
}

// open opens a backup, of which each realm must have been backed up wholly once.
func open(fsys vfs.FS, dir string) (*kept, error) {
	d, err := openDir(fsys, dir, disk.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	b := &kept{Driver: d}
	b.realms, err = d.Realms(context.Background())
	if err == nil && len(b.realms) == 0 {
		err = refuse(kuji.CodeNotFound, "from", "%s has no realm", dir)
	}
	for _, realm := range b.realms {
		_, next, failed := d.Copied(realm)
		if err = errors.Join(err, failed); err == nil && next == 0 {
			err = refuse(kuji.CodeConflict, "realm", "the backup of realm %q was never completed: run it again", realm)
		}
	}
	if err != nil {
		return nil, errors.Join(kuji.ErrorOf("backup "+dir, err), d.Close())
	}
	return b, nil
}

// copyTo copies a realm of the backup, or what a copy lacks of it.
func (b *kept) copyTo(ctx context.Context, to driver.Copier, realm string) error {
	source, done, err := Driver(b, realm)
	if err != nil {
		return err
	}
	_, err = receive(ctx, to, realm, source)
	return errors.Join(err, done())
}
