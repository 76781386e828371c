package kuji

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/internal/format"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/vfs"
)

func verify(fsys vfs.FS, dir, realm string, anchor *Anchor, seen func(Record)) (rep Report, err error) {
	rep.Realm = realm
	if err := checkRealmName(realm); err != nil {
		return rep, err
	}
	d, err := openDir(fsys, nil, dir, disk.Options{MustExist: true})
	if err != nil {
		return rep, err
	}
	defer d.Close() // read-only: nothing to lose
	// A key that is gone or damaged opens nothing.
	key, _, err := d.Key(true)
	if err != nil {
		return rep, &Error{Code: CodeFailed, Message: "data directory", Err: err}
	}
	names, err := d.Realms(context.Background())
	if err != nil {
		return rep, &Error{Code: CodeFailed, Message: "data directory", Err: err}
	}
	if !slices.Contains(names, realm) {
		return rep, &Error{Code: CodeNotFound, Field: "realm", Message: fmt.Sprintf("there is no realm %q in %s", realm, dir), Err: fs.ErrNotExist}
	}
	return verifyRealm(d, [][32]byte{key}, realm, anchor, seen)
}

func verifyRealm(d driver.Driver, keys [][32]byte, realm string, anchor *Anchor, seen func(Record)) (Report, error) {
	v := newVerifier(realm, anchor, seen)
	err := v.verify(d)
	v.lost(keys...)
	if newer, ok := errors.AsType[*format.NewerError](err); ok { // no damage
		err = &Error{Code: CodeFormat, Message: "realm " + realm, Err: newer}
	}
	return v.report, err
}

// VerifyDriver is VerifyThrough for a realm that a driver keeps. anchor may be nil. key is that of
// Options.Key, and old are Options.OldKeys.
func VerifyDriver(d driver.Driver, key [32]byte, realm string, anchor *Anchor, seen func(Record), old ...[32]byte) (Report, error) {
	if err := checkRealmName(realm); err != nil {
		return Report{Realm: realm}, err
	}
	return verifyRealm(d, slices.Concat(old, [][32]byte{key}), realm, anchor, seen)
}

func newVerifier(realm string, anchor *Anchor, seen func(Record)) *verifier {
	v := &verifier{realm: realm, anchor: anchor, seen: seen, state: store.New(), seeds: map[uint64]ledger.Seed{}}
	v.report.Realm = realm
	return v
}

// verify opens the realm and checks it.
func (v *verifier) verify(d driver.Driver) (err error) {
	ctx := context.Background()
	v.log, err = d.Open(ctx, v.realm, driver.Options{Check: true})
	if _, damaged := errors.AsType[*driver.CorruptError](err); errors.Is(err, driver.ErrNotExist) || damaged {
		return &VerifyError{Realm: v.realm, Err: err}
	}
	if err != nil {
		return &Error{Code: codeOfLedger(err), Message: "realm " + v.realm, Err: err}
	}
	defer v.log.Close() // read-only: nothing to lose
	last, err := v.log.Last(ctx)
	if err != nil {
		return &VerifyError{Realm: v.realm, Err: err}
	}
	v.end = last
	from, err := v.start(ctx)
	if err != nil {
		return &VerifyError{Realm: v.realm, Err: err}
	}
	// Seeds are revealed after the draws that used them: collect them first.
	for e, err := range ledger.Walk(v.log, v.realm, from).Entries(ctx, last) {
		if errors.Is(err, driver.ErrUnavailable) {
			return &Error{Code: CodeFailed, Message: "realm " + v.realm, Err: err}
		}
		if err != nil {
			break // the second pass reports it, after what comes before it
		}
		if e.Kind() == ledger.KindEpochEnd || e.Kind() == ledger.KindReveal {
			epoch, seed := e.Revealed()
			v.seeds[epoch] = seed
		}
	}
	return v.run(ctx, from, last)
}

// trimmed returns how far a log was trimmed, or nil.
func trimmed(ctx context.Context, log driver.Realm) (*driver.TrimmedError, error) {
	first, err := log.First(ctx)
	if err != nil || first <= 1 {
		return nil, err
	}
	for _, err := range log.Read(ctx, 0, first) {
		if t, ok := errors.AsType[*driver.TrimmedError](err); ok {
			return t, nil
		}
		break // other errors come again
	}
	return nil, nil
}
