package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Write brings the backup of a realm in a directory up to date, or begins it. It makes the directory if
// needed, and locks it. After an error or a crash, the next call goes on. [verify.Dir] can check the
// directory; it has no key: see [Restore]. Errors: the source's. CodeConflict: the backup is of another
// log. CodeLocked, CodeCorrupt, CodeFailed.
func Write(ctx context.Context, dir, realm string, source Source) (Report, error) {
	return write(ctx, nil, dir, realm, source)
}

func write(ctx context.Context, fsys vfs.FS, dir, realm string, source Source) (rep Report, err error) {
	rep.Realm = realm
	if err := kuji.CheckRealm(realm); err != nil {
		return rep, err
	}
	d, err := openDir(fsys, dir, disk.Options{Sync: disk.None})
	if err != nil {
		return rep, err
	}
	rep, err = receive(ctx, d, realm, source)
	if closed := d.Close(); closed != nil {
		err = errors.Join(err, &kuji.Error{Code: kuji.CodeFailed, Message: "backup of realm " + realm, Err: closed})
	}
	return rep, err
}

// receive brings the copy of a realm up to date. Errors are those of the source, or an *Error.
func receive(ctx context.Context, d driver.Copier, realm string, source Source) (Report, error) {
	in := receiver{d: d, rep: Report{Realm: realm}}
	err := in.receive(ctx, source)
	if in.to != nil {
		if err == nil {
			err = in.to.Close() // notes how far it goes
		} else {
			err = errors.Join(err, in.to.Drop())
		}
	}
	if in.broke == nil {
		err = kuji.ErrorOf("backup of realm "+realm, err)
	}
	return in.rep, err
}

// receiver is a backup that is being brought up to date.
type receiver struct {
	d    driver.Copier
	rep  Report
	next func() (*Part, error) // from the source; nil at its end
	to   driver.Copy           // nil until the log is there
	same []byte                // the backup's last entry: the source must begin with it

	broke error // of the source
}

func (in *receiver) receive(ctx context.Context, source Source) error {
	from, err := in.resume(ctx)
	if err != nil {
		return err
	}
	next, stop := iter.Pull2(source(ctx, uint64(from)))
	defer stop()
	in.next = func() (*Part, error) {
		part, err, ok := next()
		if in.broke = err; !ok || err != nil {
			return nil, err
		}
		return &part, nil
	}
	part, err := in.next()
	switch {
	case err != nil:
		return err
	case part == nil:
		return errors.New("the source sent nothing")
	case part.Begin == nil || part.Begin.First == 0:
		return errors.New("the source does not begin with a beginning")
	}
	begin := part.Begin
	if err := in.takeFiles(ctx, begin); err != nil {
		return err
	}
	for {
		part, err := in.next()
		switch {
		case err != nil:
			return err
		case part == nil && (in.same != nil || in.rep.Through < begin.Through):
			return fmt.Errorf("the source ended at %d, short of %d: %w", in.rep.Through, begin.Through, io.ErrUnexpectedEOF)
		case part == nil:
			return in.to.Sync(ctx)
		case part.Begin != nil:
			return errors.New("the source begins twice")
		case part.File == "":
			err = in.takeEntry(ctx, part.Entry)
		case ledger.IsPayload(part.File):
			err = in.takeFile(ctx, in.to, part)
		default:
			err = fmt.Errorf("file %.80q was not announced", part.File)
		}
		if err != nil {
			return err
		}
	}
}

// resume opens the backup, if it has begun, and returns from where it wants entries.
func (in *receiver) resume(ctx context.Context) (from driver.Cursor, err error) {
	begun, err := in.d.CopyBegun(ctx, in.rep.Realm)
	if err != nil || !begun {
		return 0, err
	}
	if in.to, err = in.d.OpenCopy(ctx, in.rep.Realm, 0); err != nil {
		return 0, err
	}
	first, err := in.to.First(ctx)
	last, failed := in.to.Last(ctx)
	if err := cmp.Or(err, failed); err != nil {
		return 0, err
	}
	in.rep.First, in.rep.Through = uint64(first), uint64(last)
	if last < first {
		return first, nil
	}
	for e, err := range in.to.Read(ctx, last-1, last) {
		if err != nil {
			return 0, err
		}
		in.same = e.Data
	}
	return last, nil
}

// takeFiles replaces the files of an earlier attempt, and makes the log, unless the backup has it.
func (in *receiver) takeFiles(ctx context.Context, begin *Begin) error {
	if in.to != nil {
		return nil
	}
	first := driver.Cursor(begin.First)
	files, err := in.d.CopyFiles(ctx, in.rep.Realm, first)
	if err != nil {
		return err
	}
	there, err := files.List(ctx)
	for _, f := range there {
		if !slices.Contains(begin.Files, f.Name) {
			err = errors.Join(err, files.Remove(ctx, f.Name))
		}
	}
	for _, name := range begin.Files {
		part := new(Part)
		if err == nil {
			part, err = in.next()
		}
		if err == nil && (part == nil || part.File != name) {
			err = fmt.Errorf("file %.80q was announced, but does not come: %w", name, io.ErrUnexpectedEOF)
		}
		if err == nil {
			err = in.takeFile(ctx, files, part)
		}
	}
	if err != nil {
		return err
	}
	in.to, err = in.d.OpenCopy(ctx, in.rep.Realm, first)
	in.rep.First, in.rep.Through = begin.First, begin.First-1
	return err
}

// takeFile takes a file to its end, from its first part on.
func (in *receiver) takeFile(ctx context.Context, files driver.Files, part *Part) error {
	name, sum := part.File, sha256.New()
	file, err := files.Create(ctx)
	if err != nil {
		return err
	}
	defer file.Abort()
	for err == nil && len(part.Data) > 0 {
		in.rep.Bytes += uint64(len(part.Data))
		sum.Write(part.Data)
		if _, err = file.Write(part.Data); err == nil {
			part, err = in.next()
		}
		if err == nil && (part == nil || part.File != name) {
			err = fmt.Errorf("file %s does not come to its end: %w", name, io.ErrUnexpectedEOF)
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && !strings.Contains(name, got) {
		err = refuse(kuji.CodeCorrupt, "", "file %s: its bytes have the hash %s", name, got)
	}
	if err != nil {
		return err
	}
	return file.Commit(ctx, name)
}

// takeEntry appends an entry, or compares it with the backup's last one.
func (in *receiver) takeEntry(ctx context.Context, entry []byte) error {
	last := driver.Cursor(in.rep.Through)
	if in.same != nil {
		if !bytes.Equal(in.same, entry) {
			return refuse(kuji.CodeConflict, "", "realm %q: the log has another entry at %d than the backup: it is a backup of another log", in.rep.Realm, last)
		}
		in.same = nil
		return nil
	}
	if most := in.to.MaxEntry(); len(entry) > most {
		return refuse(kuji.CodeConflict, "", "realm %q: entry %d has %d bytes; there, one has at most %d", in.rep.Realm, last+1, len(entry), most)
	}
	at, err := in.to.Append(ctx, last, entry)
	for errors.Is(err, driver.ErrUnknown) && ctx.Err() == nil { // until somebody knows what became of it
		at, err = in.to.Append(ctx, last, entry)
	}
	if err == nil && at != last+1 {
		err = fmt.Errorf("entry %d of the log came to stand at %d", last+1, at)
	}
	if err != nil {
		return err
	}
	in.rep.Entries, in.rep.Through = in.rep.Entries+1, uint64(at)
	in.rep.Bytes += uint64(len(entry))
	return nil
}
