package kuji

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/disk"
	"github.com/kuji-dev/kuji/internal/ledger"
	"github.com/kuji-dev/kuji/internal/step"
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

// BackupPart is a part of a realm's backup.
type BackupPart struct {
	Begin *BackupBegin // in the first part only
	File  string       // the name of a file; Data has its next bytes, and is empty behind its last ones
	Data  []byte
	Entry []byte // the next entry of the log
}

// BackupBegin says what a backup will have.
type BackupBegin struct {
	First   uint64   // where the log begins
	Through uint64   // where this backup ends; 0: the log is empty
	Files   []string // that a new backup has; those of payloads come later
}

// BackupSource yields the parts of a realm's backup from an entry of the log on; 0: everything, for a
// new backup.
type BackupSource func(ctx context.Context, from uint64) iter.Seq2[BackupPart, error]

// BackupReport says what a backup copied.
type BackupReport struct {
	Realm   string
	First   uint64 // where its log begins
	Through uint64 // where it ends
	Entries uint64 // copied this time
	Bytes   uint64 // copied this time, files included
}

// backupPiece is how many bytes of a file a part has at most.
const backupPiece = 256 << 10

// Backup is a [BackupSource]: it yields what a backup of the realm lacks, while requests go on. All
// that was acknowledged before the call is in it. Until it ends, nothing of the log and no snapshot is
// removed.
//
// Errors: CodeConflict if from is not a place of this log: the backup is one of another log, or so
// old that the log was trimmed since; also for realms in memory. CodeNotLeader: another node leads the
// realm, and knows what was acknowledged. CodeCanceled, CodeClosed, CodeFailed, CodeCorrupt.
func (r *Realm) Backup(ctx context.Context, from uint64) iter.Seq2[BackupPart, error] {
	return func(yield func(BackupPart, error) bool) {
		if err := r.backup(ctx, from, yield); err != nil {
			yield(BackupPart{}, err)
		}
	}
}

func (r *Realm) backup(ctx context.Context, from uint64, yield func(BackupPart, error) bool) error {
	if err := r.w.gate.readable(); err != nil {
		return err
	}
	if !r.w.keepsLog() {
		return errf(CodeConflict, "", "realm %q is in memory: it has no log that could be backed up", r.w.name)
	}
	if !r.w.gate.leads.Load() {
		return r.w.gate.onlyFollows()
	}
	if err := r.Err(); CodeOf(err) == CodeNotLeader {
		return err
	}
	if err := r.snaps.hold(ctx); err != nil {
		return err
	}
	defer r.snaps.release()
	if err := r.Err(); err == nil { // of a realm that has stopped, what is durable can still be read
		if err := r.feed.log.Sync(ctx); err != nil {
			return r.w.failed("making the log durable for a backup", err)
		}
	}
	through := func(context.Context) (driver.Cursor, error) { return r.feed.log.Durable(), nil }
	err := backupParts(ctx, r.w.name, r.feed.log, driver.Cursor(from), through, yield)
	if err != nil && ctx.Err() != nil {
		return &Error{Code: CodeCanceled, Message: "during a backup", Err: ctx.Err()}
	}
	return r.w.failed("backup", err)
}

// hold keeps what the realm has from being removed. It waits for a removal under way.
func (s *snapshots) hold(ctx context.Context) error {
	for {
		s.w.mu.Lock()
		job := s.job
		if job == nil {
			s.holds++
		}
		s.w.mu.Unlock()
		if job == nil {
			return nil
		}
		if err := step.Wait(ctx, s.w.world.steps, job.done); err != nil {
			return &Error{Code: CodeCanceled, Message: "while waiting for a snapshot", Err: err}
		}
	}
}

func (s *snapshots) release() {
	s.w.mu.Lock()
	s.holds--
	s.w.mu.Unlock()
}

// backupParts yields the parts of a backup. through is asked once the files are known: no snapshot is
// ahead of what is durable.
func backupParts(ctx context.Context, name string, kept driver.Realm, from driver.Cursor, through func(context.Context) (driver.Cursor, error), yield func(BackupPart, error) bool) error {
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
		return errf(CodeConflict, "from", "realm %q: its log was trimmed and begins at %d, the backup ends at %d: begin a new backup in another directory", name, first, from)
	case from > last+1:
		return errf(CodeConflict, "from", "realm %q: its log ends at %d, the backup at %d: it is a backup of another log", name, last, from)
	}
	begin := BackupBegin{First: uint64(first), Through: uint64(last)}
	if from == 0 && first > 1 {
		for i := range snapshots {
			begin.Files = append(begin.Files, snapshots[i].Name())
		}
	}
	if !yield(BackupPart{Begin: &begin}, nil) {
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
			return errf(CodeConflict, "from", "realm %q: its log was trimmed meanwhile and begins at %d, the backup ends at %d: run it again, or begin a new one in another directory", name, t.First, after)
		}
		if err != nil {
			return err
		}
		if e.Cursor != after+1 { // a backup has the same entries at the same places, one behind the other
			return errf(CodeFailed, "", "realm %q: the log goes on at %d behind %d: logs with gaps cannot be backed up", name, e.Cursor, after)
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
		if !yield(BackupPart{Entry: e.Data}, nil) {
			return nil
		}
	}
	return nil
}

// fileParts yields a file. on is false if yield stops it.
func fileParts(ctx context.Context, kept driver.Files, name string, yield func(BackupPart, error) bool) (on bool, err error) {
	file, err := kept.OpenFile(ctx, name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buf := make([]byte, min(backupPiece, file.Size()))
	for at := int64(0); at < file.Size(); {
		n, err := file.ReadAt(buf[:min(int64(len(buf)), file.Size()-at)], at)
		if n == 0 { // not ErrNotExist: the file was there
			return false, fmt.Errorf("%s: byte %d of %d: %v", name, at, file.Size(), err)
		}
		if !yield(BackupPart{File: name, Data: buf[:n]}, nil) {
			return false, nil
		}
		at += int64(n)
	}
	return yield(BackupPart{File: name}, nil), nil
}

// ReceiveBackup brings the backup of a realm in a directory up to date, or begins it. The directory is
// made if it is not there, and locked meanwhile. If it ends early, by an error or by a crash, the next
// call goes on.
//
// The directory is one that [Verify] can check. It has no key: see [Restore]. Errors: those of the
// source; CodeConflict if the backup is one of another log; CodeLocked, CodeCorrupt, CodeFailed.
func ReceiveBackup(ctx context.Context, dir, realm string, source BackupSource) (BackupReport, error) {
	return receiveBackup(ctx, nil, dir, realm, source)
}

func receiveBackup(ctx context.Context, fsys vfs.FS, dir, realm string, source BackupSource) (rep BackupReport, err error) {
	rep.Realm = realm
	if err := checkRealmName(realm); err != nil {
		return rep, err
	}
	d, err := openDir(fsys, nil, dir, disk.Options{Sync: disk.None})
	if err != nil {
		return rep, err
	}
	rep, err = receive(ctx, d, realm, source)
	if closed := d.Close(); closed != nil {
		err = errors.Join(err, &Error{Code: CodeFailed, Message: "backup of realm " + realm, Err: closed})
	}
	return rep, err
}

// receive brings the copy of a realm up to date. Errors are those of the source, or an *Error.
func receive(ctx context.Context, d driver.Copier, realm string, source BackupSource) (BackupReport, error) {
	in := receiver{d: d, realm: realm, rep: BackupReport{Realm: realm}}
	err := in.receive(ctx, source)
	if in.to != nil {
		if err == nil {
			err = in.to.Close() // notes how far it goes
		} else {
			err = errors.Join(err, in.to.Drop())
		}
	}
	if _, ok := errors.AsType[*Error](err); err != nil && !ok && in.broke == nil {
		err = &Error{Code: codeOfLedger(err), Message: "backup of realm " + realm, Err: err}
	}
	return in.rep, err
}

// receiver is a backup that is being brought up to date.
type receiver struct {
	d     driver.Copier
	realm string
	rep   BackupReport
	to    driver.Copy // nil until the log is there
	same  []byte      // the backup's last entry: what comes must begin with it
	last  driver.Cursor

	broke error // of the source

	begin *BackupBegin
	files driver.Files      // before the log is there; nil: no file has come
	file  driver.FileWriter // under way
	name  string            // of it
	sum   hash.Hash
}

func (in *receiver) receive(ctx context.Context, source BackupSource) error {
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

func (in *receiver) take(ctx context.Context, part *BackupPart) error {
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

func (in *receiver) takeFile(ctx context.Context, part *BackupPart) (err error) {
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
		return errf(CodeCorrupt, "", "file %s: its bytes have the hash %s", part.File, sum)
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
			return errf(CodeConflict, "", "realm %q: the log has another entry at %d than the backup: it is a backup of another log", in.realm, in.last)
		}
		in.same = nil
		return nil
	}
	if most := in.to.MaxEntry(); len(entry) > most {
		return errf(CodeConflict, "", "realm %q: entry %d has %d bytes; there, one has at most %d", in.realm, in.last+1, len(entry), most)
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

// BackupDir returns the source of a realm in a data directory that no engine has open, and what to
// call when done. Errors: CodeLocked if one has, CodeNotFound.
func BackupDir(dir, realm string) (source BackupSource, done func() error, err error) {
	return backupDir(nil, dir, realm)
}

func backupDir(fsys vfs.FS, dir, realm string) (BackupSource, func() error, error) {
	if err := checkRealmName(realm); err != nil {
		return nil, nil, err
	}
	d, err := openDir(fsys, nil, dir, disk.Options{MustExist: true})
	if err != nil {
		return nil, nil, err
	}
	source, done, err := BackupDriver(d, realm)
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return source, func() error { return errors.Join(done(), d.Close()) }, nil
}

// BackupDriver is BackupDir for a realm that a driver keeps, and that nobody writes meanwhile.
func BackupDriver(d driver.Driver, realm string) (source BackupSource, done func() error, err error) {
	if err := checkRealmName(realm); err != nil {
		return nil, nil, err
	}
	r, err := d.Open(context.Background(), realm, driver.Options{ReadOnly: true})
	if err != nil {
		code := codeOfLedger(err)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, driver.ErrNotExist) {
			code = CodeNotFound
		}
		return nil, nil, &Error{Code: code, Field: "realm", Message: "realm " + realm, Err: err}
	}
	source = func(ctx context.Context, from uint64) iter.Seq2[BackupPart, error] {
		return func(yield func(BackupPart, error) bool) {
			if err := backupParts(ctx, realm, r, driver.Cursor(from), r.Last, yield); err != nil {
				yield(BackupPart{}, &Error{Code: codeOfLedger(err), Message: "realm " + realm, Err: err})
			}
		}
	}
	return source, r.Close, nil
}
