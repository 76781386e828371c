// Package backup copies realms of a live engine, a directory or a driver to a directory that grows with
// each backup, and restores them: the same entries at the same places. What events say may not enter it.
package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// A backup, in short:
//
//	the realm:     keep all files and the log until the backup ends; make the log durable
//	               say where the log begins and how far this backup goes
//	               if the backup is new and the log was trimmed: send the snapshots
//	               send the entries from where the backup ends, each after its payload's file, if any
//	the receiver:  compare the first entry with its own last one, append the others
//
// A backup is a data directory without a key. It lacks what the log has grown by. The chain of hashes binds
// each entry to the one before it: comparing one entry compares all.

// Part is a part of a realm's backup.
type Part struct {
	Begin *Begin // in the first part only
	File  string // the name of a file; Data has its next bytes, and is empty after the last ones
	Data  []byte
	Entry []byte // the next entry of the log
}

// Begin says what a backup will have.
type Begin struct {
	First   uint64   // where the log begins
	Through uint64   // where this backup ends; 0: the log is empty
	Files   []string // that a new backup has; those of payloads come later
}

// Source yields the parts of a realm's backup from an entry of the log on; 0: all, for a new backup.
type Source func(ctx context.Context, from uint64) iter.Seq2[Part, error]

// Report says what a backup copied.
type Report struct {
	Realm   string
	First   uint64 // where its log begins
	Through uint64 // where it ends
	Entries uint64 // copied this time
	Bytes   uint64 // copied this time, files included
}

const piece = 256 << 10 // bytes of a file that a part has at most

// source returns the source of what read sends of a realm.
func source(realm string, read func(ctx context.Context, from driver.Cursor, send sender) error) Source {
	return func(ctx context.Context, from uint64) iter.Seq2[Part, error] {
		return func(yield func(Part, error) bool) {
			err := read(ctx, driver.Cursor(from), func(p Part) error {
				if !yield(p, nil) {
					return errEnough
				}
				return nil
			})
			switch {
			case err == nil || errors.Is(err, errEnough):
			case ctx.Err() != nil:
				yield(Part{}, &kuji.Error{Code: kuji.CodeCanceled, Message: "during a backup", Err: ctx.Err()})
			default:
				yield(Part{}, kuji.ErrorOf("backup of realm "+realm, err))
			}
		}
	}
}

// sender takes the next part of a backup.
type sender func(Part) error

var errEnough = errors.New("the receiver wants no more")

// Of returns the source of a realm that an engine has open: what a backup lacks, with all that was
// acknowledged before, while requests go on. Until it ends, nothing of the log and no snapshot is removed.
// CodeConflict: from is not a place of this log: the backup is of another log, or so old that the log was
// trimmed since. Other errors are those of [kuji.Realm.Hold].
func Of(r *kuji.Realm) Source {
	return source(r.Name(), func(ctx context.Context, from driver.Cursor, send sender) error {
		kept, release, err := r.Hold(ctx)
		if err != nil {
			return err
		}
		defer release()
		through := func(context.Context) (driver.Cursor, error) { return kept.Durable(), nil }
		return parts(ctx, r.Name(), kept, from, through, send)
	})
}

// Dir returns the source of a realm in a data directory, and what ends it. CodeLocked, CodeNotFound.
func Dir(dir, realm string) (source Source, done func() error, err error) {
	d, err := openDir(nil, dir, disk.Options{MustExist: true})
	if err != nil {
		return nil, nil, err
	}
	source, closeRealm, err := Driver(d, realm)
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return source, func() error { return errors.Join(closeRealm(), d.Close()) }, nil
}

// Driver is Dir for a realm that a driver keeps, and that nobody writes meanwhile.
func Driver(d driver.Driver, realm string) (Source, func() error, error) {
	if err := kuji.CheckRealm(realm); err != nil {
		return nil, nil, err
	}
	r, err := d.Open(context.Background(), realm, driver.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, driver.ErrNotExist) {
		return nil, nil, &kuji.Error{Code: kuji.CodeNotFound, Field: "realm", Message: "realm " + realm, Err: err}
	}
	if err != nil {
		return nil, nil, kuji.ErrorOf("realm "+realm, err)
	}
	return source(realm, func(ctx context.Context, from driver.Cursor, send sender) error {
		return parts(ctx, realm, r, from, r.Last, send)
	}), r.Close, nil
}

// openDir opens the driver of a directory. A nil fsys is the operating system's.
func openDir(fsys vfs.FS, dir string, o disk.Options) (*disk.Driver, error) {
	hook.Disk(&o, fsys, nil)
	return kuji.OpenDir(dir, o)
}

func refuse(code kuji.Code, field, format string, args ...any) error {
	return &kuji.Error{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// parts sends a backup's parts. The files come before through: no snapshot is ahead of what is durable.
func parts(ctx context.Context, name string, kept driver.Realm, from driver.Cursor,
	through func(context.Context) (driver.Cursor, error), send sender) error {
	first, err1 := kept.First(ctx)
	snapshots, _, err2 := ledger.SnapshotsOf(kept, name).List(ctx)
	last, err3 := through(ctx)
	switch err := cmp.Or(err1, err2, err3); {
	case err != nil:
		return err
	case from > 0 && from < first:
		return refuse(kuji.CodeConflict, "from", "realm %q: its log was trimmed and begins at %d, the backup ends at %d: begin a new backup in another directory", name, first, from)
	case from > last+1:
		return refuse(kuji.CodeConflict, "from", "realm %q: its log ends at %d, the backup at %d: it is a backup of another log", name, last, from)
	}
	begin := Begin{First: uint64(first), Through: uint64(last)}
	if from == 0 && first > 1 {
		for i := range snapshots {
			begin.Files = append(begin.Files, snapshots[i].Name())
		}
	}
	if err := send(Part{Begin: &begin}); err != nil {
		return err
	}
	for _, file := range begin.Files {
		if err := fileParts(ctx, kept, file, send); err != nil {
			return err
		}
	}
	after := max(from, first) - 1
	if after >= last {
		return nil
	}
	payload := "" // the last one
	for e, err := range kept.Read(ctx, after, last) {
		if t, ok := errors.AsType[*driver.TrimmedError](err); ok { // by another node
			return refuse(kuji.CodeConflict, "from", "realm %q: its log was trimmed meanwhile and begins at %d, the backup ends at %d: run it again, or begin a new one in another directory", name, t.First, after)
		}
		if err != nil {
			return err
		}
		if e.Cursor != after+1 { // a backup has the same entries at the same places, without gaps
			return refuse(kuji.CodeFailed, "", "realm %q: the log goes on at %d after %d: logs with gaps cannot be backed up", name, e.Cursor, after)
		}
		after = e.Cursor
		// A missing payload's entry does not count or is before every snapshot: a check finds others.
		if file, ok := ledger.PayloadOf(e.Data); ok && file != payload {
			payload = file
			if e.Cursor != from {
				if err := fileParts(ctx, kept, file, send); err != nil && !errors.Is(err, driver.ErrNotExist) {
					return err
				}
			}
		}
		if err := send(Part{Entry: e.Data}); err != nil {
			return err
		}
	}
	return nil
}

func fileParts(ctx context.Context, kept driver.Files, name string, send sender) (err error) {
	file, err := kept.OpenFile(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buf := make([]byte, min(piece, file.Size()))
	for at := int64(0); at < file.Size(); {
		n, err := file.ReadAt(buf[:min(int64(len(buf)), file.Size()-at)], at)
		if n == 0 { // not ErrNotExist: the file was there
			return fmt.Errorf("%s: byte %d of %d: %v", name, at, file.Size(), err)
		}
		if err := send(Part{File: name, Data: buf[:n]}); err != nil {
			return err
		}
		at += int64(n)
	}
	return send(Part{File: name})
}
