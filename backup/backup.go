// Package backup copies realms: of a live engine, of a directory or of a driver, to a directory that grows
// with each backup, and back. A backup is a log of its own with the same entries at the same places. What
// events say may not enter it.
package backup

import (
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
//	the realm:     keep all files and the log for as long as it takes; make the log durable
//	               say where the log begins and how far this backup goes
//	               if the backup is new and the log was trimmed: send the snapshots
//	               send the entries of the log, from where the backup ends up to there, each behind
//	               the file with its payload, if it has one
//	the receiver:  compare the first entry with its own last one, append the others
//
// The log is the truth, so a backup is a log of its own with the same entries at the same places: a
// data directory without a key. What it lacks is what the log has grown by. The chain of hashes binds
// each entry to the one before it, so comparing one entry compares all.

// Part is a part of a realm's backup.
type Part struct {
	Begin *Begin // in the first part only
	File  string // the name of a file; Data has its next bytes, and is empty behind its last ones
	Data  []byte
	Entry []byte // the next entry of the log
}

// Begin says what a backup will have.
type Begin struct {
	First   uint64   // where the log begins
	Through uint64   // where this backup ends; 0: the log is empty
	Files   []string // that a new backup has; those of payloads come later
}

// Source yields the parts of a realm's backup from an entry of the log on; 0: everything, for a
// new backup.
type Source func(ctx context.Context, from uint64) iter.Seq2[Part, error]

// Report says what a backup copied.
type Report struct {
	Realm   string
	First   uint64 // where its log begins
	Through uint64 // where it ends
	Entries uint64 // copied this time
	Bytes   uint64 // copied this time, files included
}

// piece is how many bytes of a file a part has at most.
const piece = 256 << 10

// Of returns the source of a realm that an engine has open: it yields what a backup lacks, while requests go
// on. All that was acknowledged before it is called is in it. Until it ends, nothing of the log and no
// snapshot is removed.
//
// Errors: CodeConflict if from is not a place of this log: the backup is one of another log, or so
// old that the log was trimmed since; otherwise those of [kuji.Realm.Hold].
func Of(r *kuji.Realm) Source {
	return func(ctx context.Context, from uint64) iter.Seq2[Part, error] {
		return func(yield func(Part, error) bool) {
			kept, release, err := r.Hold(ctx)
			if err == nil {
				defer release()
				through := func(context.Context) (driver.Cursor, error) { return kept.Durable(), nil }
				err = yieldParts(ctx, r.Name(), kept, driver.Cursor(from), through, yield)
			}
			switch {
			case err != nil && ctx.Err() != nil:
				yield(Part{}, &kuji.Error{Code: kuji.CodeCanceled, Message: "during a backup", Err: ctx.Err()})
			case err != nil:
				yield(Part{}, kuji.ErrorOf("backup of realm "+r.Name(), err))
			}
		}
	}
}

// Dir returns the source of a realm in a data directory that no engine has open, and what to
// call when done. Errors: CodeLocked if one has, CodeNotFound.
func Dir(dir, realm string) (source Source, done func() error, err error) {
	return inDir(nil, dir, realm)
}

func inDir(fsys vfs.FS, dir, realm string) (Source, func() error, error) {
	d, err := openDir(fsys, dir, disk.Options{MustExist: true})
	if err != nil {
		return nil, nil, err
	}
	source, done, err := Driver(d, realm)
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return source, func() error { return errors.Join(done(), d.Close()) }, nil
}

// Driver is Dir for a realm that a driver keeps, and that nobody writes meanwhile.
func Driver(d driver.Driver, realm string) (source Source, done func() error, err error) {
	if err := kuji.CheckRealm(realm); err != nil {
		return nil, nil, err
	}
	r, err := d.Open(context.Background(), realm, driver.Options{ReadOnly: true})
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, driver.ErrNotExist) {
			return nil, nil, &kuji.Error{Code: kuji.CodeNotFound, Field: "realm", Message: "realm " + realm, Err: err}
		}
		return nil, nil, kuji.ErrorOf("realm "+realm, err)
	}
	source = func(ctx context.Context, from uint64) iter.Seq2[Part, error] {
		return func(yield func(Part, error) bool) {
			if err := yieldParts(ctx, realm, r, driver.Cursor(from), r.Last, yield); err != nil {
				yield(Part{}, kuji.ErrorOf("realm "+realm, err))
			}
		}
	}
	return source, r.Close, nil
}

// openDir opens the driver of a directory. A nil fsys is the operating system's.
func openDir(fsys vfs.FS, dir string, o disk.Options) (*disk.Driver, error) {
	hook.Disk(&o, fsys, nil)
	return kuji.OpenDir(dir, o)
}

func refuse(code kuji.Code, field, format string, args ...any) error {
	return &kuji.Error{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// yieldParts yields the parts of a backup. through is asked once the files are known: no snapshot is
// ahead of what is durable.
func yieldParts(ctx context.Context, name string, kept driver.Realm, from driver.Cursor, through func(context.Context) (driver.Cursor, error), yield func(Part, error) bool) error {
	first, err := kept.First(ctx)
	if err != nil {
		return err
	}
	snapshots, _, err := ledger.SnapshotsOf(kept, name).List(ctx)
	if err != nil {
		return err
	}
	last, err := through(ctx)
	if err != nil {
		return err
	}
	switch {
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
	if !yield(Part{Begin: &begin}, nil) {
		return nil
	}
	for _, file := range begin.Files {
		if on, err := fileParts(ctx, kept, file, yield); !on || err != nil {
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
		if e.Cursor != after+1 { // a backup has the same entries at the same places, one behind the other
			return refuse(kuji.CodeFailed, "", "realm %q: the log goes on at %d behind %d: logs with gaps cannot be backed up", name, e.Cursor, after)
		}
		after = e.Cursor
		// Of a payload that is gone the entry is before every snapshot, or does not count. Who checks the
		// backup finds any other. Copies of an entry have one payload.
		if file, ok := ledger.PayloadOf(e.Data); ok && file != payload {
			payload = file
			if e.Cursor != from {
				on, err := fileParts(ctx, kept, file, yield)
				if !errors.Is(err, driver.ErrNotExist) && (!on || err != nil) {
					return err
				}
			}
		}
		if !yield(Part{Entry: e.Data}, nil) {
			return nil
		}
	}
	return nil
}

// fileParts yields a file. on is false if yield stops it.
func fileParts(ctx context.Context, kept driver.Files, name string, yield func(Part, error) bool) (on bool, err error) {
	file, err := kept.OpenFile(ctx, name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buf := make([]byte, min(piece, file.Size()))
	for at := int64(0); at < file.Size(); {
		n, err := file.ReadAt(buf[:min(int64(len(buf)), file.Size()-at)], at)
		if n == 0 { // not ErrNotExist: the file was there
			return false, fmt.Errorf("%s: byte %d of %d: %v", name, at, file.Size(), err)
		}
		if !yield(Part{File: name, Data: buf[:n]}, nil) {
			return false, nil
		}
		at += int64(n)
	}
	return yield(Part{File: name}, nil), nil
}
