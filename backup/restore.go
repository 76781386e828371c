package backup

import (
	"context"
	"errors"
	"fmt"
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

// restoring is behind the name of a directory until all of it is restored.
const restoring = ".restoring"

// Restore makes a data directory from a backup, and verifies it: see [verify.Dir]. It appears under its
// name when all of it is there and right. If Restore ends early, the next one goes on. to must not
// exist.
//
// A realm that was restored goes on in an epoch of its own, with a new seed. key is that of the
// realm's data directory, if it is to prove the draws of the epoch that the backup ended in: its seed
// is revealed by the first start. Give it only if the realm that was backed up is gone for good.
// Without it, nil, those draws cannot be proven.
func Restore(ctx context.Context, from, to string, key *[32]byte) ([]verify.Report, error) {
	return restore(ctx, nil, from, to, key)
}

func restore(ctx context.Context, fsys vfs.FS, from, to string, key *[32]byte) ([]verify.Report, error) {
	disks := fsys
	if disks == nil {
		disks = vfs.OS()
	}
	to = strings.TrimRight(to, "/")
	if _, err := disks.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(kuji.CodeConflict, "data", "%s is there already: restore to a directory that is not", to)
	}
	realms, err := completeRealms(fsys, from)
	if err != nil {
		return nil, err
	}
	var reports []verify.Report
	for _, realm := range realms {
		source, done, err := inDir(fsys, from, realm)
		if err != nil {
			return nil, err
		}
		_, err = write(ctx, fsys, to+restoring, realm, source)
		if err = errors.Join(err, done()); err != nil {
			return nil, err
		}
		if key != nil { // before the check, which opens sealed seeds with it
			if err := setKey(fsys, to+restoring, key); err != nil {
				return nil, err
			}
		}
		rep, err := hook.Verify(fsys, to+restoring, realm, nil)
		if err != nil {
			return nil, err
		}
		reports = append(reports, rep.(verify.Report))
	}
	if key == nil { // a data directory has a key, which tells it from a backup
		if err := setKey(fsys, to+restoring, nil); err != nil {
			return nil, err
		}
	}
	if err = disks.Rename(to+restoring, to); err == nil {
		err = disks.SyncDir(path.Dir(to))
	}
	if err != nil {
		return nil, &kuji.Error{Code: kuji.CodeFailed, Message: "naming the restored directory", Err: err}
	}
	return reports, nil
}

// setKey gives a directory the key that seals its seeds, or makes one: nil.
func setKey(fsys vfs.FS, dir string, key *[32]byte) error {
	d, err := openDir(fsys, dir, disk.Options{MustExist: true})
	if err != nil {
		return err
	}
	if key != nil {
		err = d.PutKey(*key)
	} else {
		_, _, err = d.Key(false)
	}
	if err = errors.Join(err, d.Close()); err != nil {
		return &kuji.Error{Code: kuji.CodeFailed, Message: "the key", Err: err}
	}
	return nil
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

// Target is a driver that realms can be restored to. Until they are finished, only an open
// with driver.Options.Check finds them.
type Target interface {
	driver.Driver
	driver.Copier
	// FinishCopy gives a realm its name.
	FinishCopy(ctx context.Context, realm string) error
}

// RestoreTo is Restore to a driver. The realms of the backup must not be there. All of them appear when
// the last one is there and right. key is that of [kuji.Options.Key], and old are OldKeys: the epoch that the
// backup ended in can be proven if one of them is also the key of the realm that was backed up.
func RestoreTo(ctx context.Context, from string, to Target, key [32]byte, old ...[32]byte) ([]verify.Report, error) {
	realms, err := completeRealms(nil, from)
	if err != nil {
		return nil, err
	}
	var reports []verify.Report
	for _, realm := range realms {
		want, err := verify.Dir(from, realm, verify.Options{})
		if err != nil {
			return nil, err
		}
		source, done, err := inDir(nil, from, realm)
		if err != nil {
			return nil, err
		}
		_, err = receive(ctx, to, realm, source)
		if err = errors.Join(err, done()); err != nil {
			return nil, err
		}
		got, err := verify.Driver(to, realm, verify.Options{Keys: append(slices.Clone(old), key)})
		if err == nil && (got.Position != want.Position || got.ChainHash != want.ChainHash || got.StateHash != want.StateHash) {
			err = &kuji.Error{Code: kuji.CodeFailed, Message: fmt.Sprintf("realm %s: what was restored shows position %d, the backup has %d: run it again", realm, got.Position, want.Position)}
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, got)
	}
	for _, realm := range realms {
		if err := to.FinishCopy(ctx, realm); err != nil {
			return nil, kuji.ErrorOf("naming realm "+realm, err)
		}
	}
	return reports, nil
}

// completeRealms returns the realms of a backup. Each must have been backed up wholly once.
func completeRealms(fsys vfs.FS, dir string) (_ []string, err error) {
	d, err := openDir(fsys, dir, disk.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	realms, err := d.Realms(context.Background())
	if err != nil {
		return nil, &kuji.Error{Code: kuji.CodeFailed, Message: "backup", Err: err}
	}
	for _, realm := range realms {
		_, next, err := d.Copied(realm)
		if err != nil {
			return nil, kuji.ErrorOf("realm "+realm, err)
		}
		if next == 0 {
			return nil, refuse(kuji.CodeConflict, "realm", "the backup of realm %q was never completed: run it again", realm)
		}
	}
	if len(realms) == 0 {
		return nil, refuse(kuji.CodeNotFound, "from", "%s has no realm", dir)
	}
	return realms, nil
}
