package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/vfs"
)

func init() {
	hook.Verify = func(fs vfs.FS, dir, realm string, seen any) (any, error) {
		f, _ := seen.(func(kuji.Record)) // nil: nobody wants to see the events
		return inDir(fs, dir, realm, Options{Seen: f})
	}
}

// inDir is Dir on a file system; a nil one is the operating system's.
func inDir(fsys vfs.FS, dir, realm string, o Options) (Report, error) {
	rep := Report{Realm: realm}
	if err := kuji.CheckRealm(realm); err != nil {
		return rep, err
	}
	do := disk.Options{MustExist: true}
	hook.Disk(&do, fsys, nil)
	d, err := kuji.OpenDir(dir, do)
	if err != nil {
		return rep, err
	}
	defer d.Close() // only read: nothing to lose
	// A key that is gone or damaged opens nothing.
	key, _, err := d.Key(true)
	names, failed := d.Realms(context.Background())
	if err = cmp.Or(err, failed); err != nil {
		return rep, &kuji.Error{Code: kuji.CodeFailed, Message: "data directory", Err: err}
	}
	if !slices.Contains(names, realm) {
		return rep, &kuji.Error{Code: kuji.CodeNotFound, Field: "realm", Message: fmt.Sprintf("there is no realm %q in %s", realm, dir), Err: fs.ErrNotExist}
	}
	o.Keys = [][32]byte{key}
	return Driver(d, realm, o)
}

func (v *verifier) verify(d driver.Driver) (err error) {
	ctx := context.Background()
	v.log, err = d.Open(ctx, v.realm, driver.Options{Check: true})
	if _, damaged := errors.AsType[*driver.CorruptError](err); errors.Is(err, driver.ErrNotExist) || damaged {
		return v.wrong(0, err)
	}
	if err != nil {
		return kuji.ErrorOf("realm "+v.realm, err)
	}
	defer v.log.Close() // read-only: nothing to lose
	var from *ledger.Footer
	if v.end, err = v.log.Last(ctx); err == nil {
		from, err = v.start(ctx)
	}
	if err != nil {
		return v.wrong(0, err)
	}
	v.judge.seeds = map[uint64]ledger.Seed{}
	// Seeds are revealed after the draws that used them: collect them first.
	for e, err := range ledger.Walk(v.log, v.realm, from).Entries(ctx, v.end) {
		if errors.Is(err, driver.ErrUnavailable) {
			return &kuji.Error{Code: kuji.CodeFailed, Message: "realm " + v.realm, Err: err}
		}
		if err != nil {
			break // the second pass reports it, after what comes before it
		}
		if e.Kind() == ledger.KindEpochEnd || e.Kind() == ledger.KindReveal {
			epoch, seed := e.Revealed()
			v.judge.seeds[epoch] = seed
		}
	}
	return v.run(ctx, from)
}
