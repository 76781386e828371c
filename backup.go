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
	"path"
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
//	               if the backup is new and the log was trimmed: send the files, which are snapshots
//	               send the entries of the log, from where the backup ends up to there
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
	Files   []string // that a new backup has
}

// BackupSource yields the parts of a realm's backup from an entry of the log on; 0: everything, for a
// new backup.
type BackupSource func(ctx context.Context, from uint64) iter.Seq2[BackupPart, error]

// BackupReport is what came of a backup.
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
// old that the log was trimmed since; also for realms that are not in a data directory. CodeCanceled,
// CodeClosed, CodeFailed, CodeCorrupt.
func (r *Realm) Backup(ctx context.Context, from uint64) iter.Seq2[BackupPart, error] {
	return func(yield func(BackupPart, error) bool) {
		if err := r.backup(ctx, from, yield); err != nil {
			yield(BackupPart{}, err)
		}
	}
}

func (r *Realm) backup(ctx context.Context, from uint64, yield func(BackupPart, error) bool) error {
	if err := r.readable(); err != nil {
		return err
	}
	if _, ok := r.world.driver.(*disk.Driver); !ok {
		return errf(CodeConflict, "", "realm %q is not in a data directory: backups of a cluster are not supported yet", r.name)
	}
	if err := r.hold(ctx); err != nil {
		return err
	}
	defer r.letGo()
	if err := r.Err(); err == nil { // of a realm that has stopped, what is durable can still be read
		if err := r.feeds.log.Sync(ctx); err != nil {
			return r.failed("making the log durable for a backup", err)
		}
	}
	through := func(context.Context) (driver.Cursor, error) { return r.feeds.log.Durable(), nil }
	err := backupParts(ctx, r.name, r.feeds.log, driver.Cursor(from), through, yield)
	if err != nil && ctx.Err() != nil {
		return &Error{Code: CodeCanceled, Message: "during a backup", Err: ctx.Err()}
	}
	return r.failed("backup", err)
}

// hold keeps what the realm has from being removed. It waits for a removal under way.
func (r *Realm) hold(ctx context.Context) error {
	for {
		r.mu.Lock()
		job := r.snap.job
		if job == nil {
			r.snap.holds++
		}
		r.mu.Unlock()
		if job == nil {
			return nil
		}
		if err := step.Wait(ctx, r.world.steps, job.done); err != nil {
			return &Error{Code: CodeCanceled, Message: "while waiting for a snapshot", Err: err}
		}
	}
}

func (r *Realm) letGo() {
	r.mu.Lock()
	r.snap.holds--
	r.mu.Unlock()
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
	for e, err := range kept.Read(ctx, after, last) {
		if err != nil {
			return err
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
		if n == 0 {
			return false, fmt.Errorf("%s: byte %d of %d: %w", name, at, file.Size(), err)
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
	in := receiver{d: d, realm: realm, rep: &rep}
	err = in.receive(ctx, source)
	if in.to != nil {
		if err == nil {
			err = in.to.Close() // notes how far it goes
		} else {
			err = errors.Join(err, in.to.Drop())
		}
	}
	err = errors.Join(err, d.Close())
	if _, ok := errors.AsType[*Error](err); err != nil && !ok && in.broke == nil {
		err = &Error{Code: codeOfLedger(err), Message: "backup of realm " + realm, Err: err}
	}
	return rep, err
}

// receiver is a backup that is being brought up to date.
type receiver struct {
	d     *disk.Driver
	realm string
	rep   *BackupReport
	to    *disk.Realm // nil until the log is there
	same  []byte      // the backup's last entry: what comes must begin with it
	last  driver.Cursor

	broke error // of the source

	begin *BackupBegin
	files *disk.Files       // nil: no file has come
	file  driver.FileWriter // under way
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
		if err := in.start(); err != nil {
			return err
		}
	}
	if in.same != nil || uint64(in.last) < in.begin.Through {
		return fmt.Errorf("the source ended at %d, short of %d: %w", in.last, in.begin.Through, io.ErrUnexpectedEOF)
	}
	return in.to.Sync(ctx)
}

// resume opens the backup, if it has begun, and returns from where it wants entries.
func (in *receiver) resume(ctx context.Context) (from driver.Cursor, err error) {
	begun, _, err := in.d.Copied(in.realm)
	if err != nil || !begun {
		return 0, err
	}
	if in.to, err = in.d.OpenCopy(in.realm, 0); err != nil {
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
func (in *receiver) start() (err error) {
	in.to, err = in.d.OpenCopy(in.realm, driver.Cursor(in.begin.First))
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
	if in.files, err = in.d.OpenFiles(in.realm); err != nil {
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
	if in.to != nil || in.files == nil || !slices.Contains(in.begin.Files, part.File) {
		return fmt.Errorf("file %.80q was not announced", part.File)
	}
	if in.file == nil {
		if in.file, err = in.files.Create(ctx); err != nil {
			return err
		}
		in.sum = sha256.New()
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
	if in.to == nil {
		if err := in.start(); err != nil {
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
	at, err := in.to.Append(ctx, in.last, entry)
	if err != nil {
		return err
	}
	in.last = at
	in.rep.Entries, in.rep.Through = in.rep.Entries+1, uint64(at)
	in.rep.Bytes += uint64(len(entry))
	return nil
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
	r, err := d.Open(context.Background(), realm, driver.Options{ReadOnly: true})
	if err != nil {
		code := codeOfLedger(err)
		if errors.Is(err, fs.ErrNotExist) {
			code = CodeNotFound
		}
		return nil, nil, errors.Join(&Error{Code: code, Field: "realm", Message: "realm " + realm, Err: err}, d.Close())
	}
	source := func(ctx context.Context, from uint64) iter.Seq2[BackupPart, error] {
		return func(yield func(BackupPart, error) bool) {
			if err := backupParts(ctx, realm, r, driver.Cursor(from), r.Last, yield); err != nil {
				yield(BackupPart{}, err)
			}
		}
	}
	return source, func() error { return errors.Join(r.Close(), d.Close()) }, nil
}

// restoring is behind the name of a directory until all of it is restored.
const restoring = ".restoring"

// Restore makes a data directory from a backup, and verifies it: see [Verify]. It appears under its
// name when all of it is there and right. If Restore ends early, the next one goes on. to must not
// exist.
//
// A realm that was restored goes on in an epoch of its own, with a new seed. key is that of the
// realm's data directory, if it is to prove the draws of the epoch that the backup ended in: its seed
// is revealed by the first start. Give it only if the realm that was backed up is gone for good.
// Without it, nil, those draws cannot be proven.
func Restore(ctx context.Context, from, to string, key *[32]byte) ([]Report, error) {
	return restore(ctx, nil, from, to, key)
}

func restore(ctx context.Context, fsys vfs.FS, from, to string, key *[32]byte) ([]Report, error) {
	disks := fsys
	if disks == nil {
		disks = vfs.OS()
	}
	to = strings.TrimRight(to, "/")
	if _, err := disks.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return nil, errf(CodeConflict, "data", "%s is there already: restore to a directory that is not", to)
	}
	realms, err := completeRealms(fsys, from)
	if err != nil {
		return nil, err
	}
	var reports []Report
	for _, realm := range realms {
		source, done, err := backupDir(fsys, from, realm)
		if err != nil {
			return nil, err
		}
		_, err = receiveBackup(ctx, fsys, to+restoring, realm, source)
		if err = errors.Join(err, done()); err != nil {
			return nil, err
		}
		rep, err := verify(fsys, to+restoring, realm, nil, nil)
		if err != nil {
			return nil, err
		}
		reports = append(reports, rep)
	}
	if key != nil {
		d, err := openDir(fsys, nil, to+restoring, disk.Options{MustExist: true})
		if err != nil {
			return nil, err
		}
		if err := errors.Join(d.PutKey(*key), d.Close()); err != nil {
			return nil, &Error{Code: CodeFailed, Message: "the key", Err: err}
		}
	}
	if err = disks.Rename(to+restoring, to); err == nil {
		err = disks.SyncDir(path.Dir(to))
	}
	if err != nil {
		return nil, &Error{Code: CodeFailed, Message: "naming the restored directory", Err: err}
	}
	return reports, nil
}

// completeRealms returns the realms of a backup. Each must have been backed up wholly once.
func completeRealms(fsys vfs.FS, dir string) (_ []string, err error) {
	d, err := openDir(fsys, nil, dir, disk.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	realms, err := d.Realms(context.Background())
	if err != nil {
		return nil, &Error{Code: CodeFailed, Message: "backup", Err: err}
	}
	for _, realm := range realms {
		_, next, err := d.Copied(realm)
		if err != nil {
			return nil, &Error{Code: codeOfLedger(err), Message: "realm " + realm, Err: err}
		}
		if next == 0 {
			return nil, errf(CodeConflict, "realm", "the backup of realm %q was never completed: run it again", realm)
		}
	}
	if len(realms) == 0 {
		return nil, errf(CodeNotFound, "from", "%s has no realm", dir)
	}
	return realms, nil
}
