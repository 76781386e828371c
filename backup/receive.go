package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Write brings the backup of a realm in a directory up to date, or begins it. The directory is
// made if it is not there, and locked meanwhile. If it ends early, by an error or by a crash, the next
// call goes on.
//
// The directory is one that [verify.Dir] can check. It has no key: see [Restore]. Errors: those of the
// source; CodeConflict if the backup is one of another log; CodeLocked, CodeCorrupt, CodeFailed.
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
	in := receiver{d: d, realm: realm, rep: Report{Realm: realm}}
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
	d     driver.Copier
	realm string
	rep   Report
	to    driver.Copy // nil until the log is there
	same  []byte      // the backup's last entry: what comes must begin with it
	last  driver.Cursor

	broke error // of the source

	begin *Begin
	files driver.Files      // before the log is there; nil: no file has come
	file  driver.FileWriter // under way
	name  string            // of it
	sum   hash.Hash
}

func (in *receiver) receive(ctx context.Context, source Source) error {
	from, err := in.resume(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if in.file != nil {
			in.file.Abort()
		}
	}()
	for part, err := range source(ctx, uint64(from)) {
		if err != nil {
			in.broke = err
			return err
		}
		if err := in.take(ctx, &part); err != nil {
			return err
		}
	}
	switch {
	case in.begin == nil:
		return errors.New("the source sent nothing")
	case in.to == nil: // an empty log
		if err := in.start(ctx); err != nil {
			return err
		}
	}
	if in.same != nil || in.file != nil || uint64(in.last) < in.begin.Through {
		return fmt.Errorf("the source ended at %d, short of %d: %w", in.last, in.begin.Through, io.ErrUnexpectedEOF)
	}
	return in.to.Sync(ctx)
}

// resume opens the backup, if it has begun, and returns from where it wants entries.
func (in *receiver) resume(ctx context.Context) (from driver.Cursor, err error) {
	begun, err := in.d.CopyBegun(ctx, in.realm)
	if err != nil || !begun {
		return 0, err
	}
	if in.to, err = in.d.OpenCopy(ctx, in.realm, 0); err != nil {
		return 0, err
	}
	first, err := in.to.First(ctx)
	if err != nil {
		return 0, err
	}
	if in.last, err = in.to.Last(ctx); err != nil {
		return 0, err
	}
	in.rep.First, in.rep.Through = uint64(first), uint64(in.last)
	if in.last < first {
		return first, nil
	}
	for e, err := range in.to.Read(ctx, in.last-1, in.last) {
		if err != nil {
			return 0, err
		}
		in.same = e.Data
	}
	return in.last, nil
}

// start makes the log, once the files are there.
func (in *receiver) start(ctx context.Context) (err error) {
	in.to, err = in.d.OpenCopy(ctx, in.realm, driver.Cursor(in.begin.First))
	in.last = driver.Cursor(in.begin.First - 1)
	in.rep.First, in.rep.Through = in.begin.First, uint64(in.last)
	return err
}

func (in *receiver) take(ctx context.Context, part *Part) error {
	switch {
	case (in.begin == nil) != (part.Begin != nil), part.Begin != nil && part.Begin.First == 0:
		return errors.New("the source does not begin with a beginning")
	case part.Begin != nil:
		in.begin = part.Begin
		if in.to == nil {
			return in.tidy(ctx)
		}
		return nil
	case part.File != "":
		return in.takeFile(ctx, part)
	}
	return in.takeEntry(ctx, part.Entry)
}

// tidy removes files of an earlier attempt that the backup will not have.
func (in *receiver) tidy(ctx context.Context) (err error) {
	if in.files, err = in.d.CopyFiles(ctx, in.realm, driver.Cursor(in.begin.First)); err != nil {
		return err
	}
	there, err := in.files.List(ctx)
	for _, f := range there {
		if !slices.Contains(in.begin.Files, f.Name) {
			err = errors.Join(err, in.files.Remove(ctx, f.Name))
		}
	}
	return err
}

func (in *receiver) takeFile(ctx context.Context, part *Part) (err error) {
	payload := ledger.IsPayload(part.File)
	if !payload && (in.to != nil || !slices.Contains(in.begin.Files, part.File)) {
		return fmt.Errorf("file %.80q was not announced", part.File)
	}
	if in.to == nil && payload { // it stands among the entries
		if err := in.start(ctx); err != nil {
			return err
		}
	}
	if in.file == nil {
		files := in.files
		if in.to != nil {
			files = in.to
		}
		if in.file, err = files.Create(ctx); err != nil {
			return err
		}
		in.name, in.sum = part.File, sha256.New()
	}
	if in.name != part.File {
		return fmt.Errorf("file %s goes on as %.80q", in.name, part.File)
	}
	if len(part.Data) > 0 {
		in.rep.Bytes += uint64(len(part.Data))
		in.sum.Write(part.Data)
		_, err := in.file.Write(part.Data)
		return err
	}
	if sum := hex.EncodeToString(in.sum.Sum(nil)); !strings.Contains(part.File, sum) {
		return refuse(kuji.CodeCorrupt, "", "file %s: its bytes have the hash %s", part.File, sum)
	}
	err = in.file.Commit(ctx, part.File)
	in.file = nil
	return err
}

func (in *receiver) takeEntry(ctx context.Context, entry []byte) (err error) {
	if in.file != nil {
		return fmt.Errorf("an entry in the middle of file %s", in.name)
	}
	if in.to == nil {
		if err := in.start(ctx); err != nil {
			return err
		}
	}
	if in.same != nil {
		if !bytes.Equal(in.same, entry) {
			return refuse(kuji.CodeConflict, "", "realm %q: the log has another entry at %d than the backup: it is a backup of another log", in.realm, in.last)
		}
		in.same = nil
		return nil
	}
	if most := in.to.MaxEntry(); len(entry) > most {
		return refuse(kuji.CodeConflict, "", "realm %q: entry %d has %d bytes; there, one has at most %d", in.realm, in.last+1, len(entry), most)
	}
	at, err := in.append(ctx, entry)
	if err == nil && at != in.last+1 {
		err = fmt.Errorf("entry %d of the log came to stand at %d", in.last+1, at)
	}
	if err != nil {
		return err
	}
	in.last = at
	in.rep.Entries, in.rep.Through = in.rep.Entries+1, uint64(at)
	in.rep.Bytes += uint64(len(entry))
	return nil
}

// append sends an entry until somebody knows what became of it, or ctx ends.
func (in *receiver) append(ctx context.Context, entry []byte) (driver.Cursor, error) {
	for {
		at, err := in.to.Append(ctx, in.last, entry)
		if !errors.Is(err, driver.ErrUnknown) || ctx.Err() != nil {
			return at, err
		}
	}
}
