package feeds

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server/internal/admission"
)

// backupBytes is how many bytes of a log a message of a backup has at most.
const backupBytes = 256 << 10

var errBackupDraining = &kuji.Error{Code: kuji.CodeClosed, Message: "the server is shutting down: go on with the backup later"}

// backupStream is one Backup call. A client that takes nothing ends it after the time to write: a
// backup keeps the realm from trimming its log.
type backupStream struct {
	send func(*kujiv1.BackupResponse) error
	ends admission.Ends
	log  []byte // entries that are to be sent
}

// Backup sends a copy of a realm from a cursor on.
func (f *Feeds) Backup(ctx context.Context, r *kuji.Realm, w http.ResponseWriter, from uint64, send func(*kujiv1.BackupResponse) error) error {
	st := &backupStream{send: send}
	if err := st.ends.Open(w, f.WriteTimeout); err != nil {
		return err
	}
	defer st.ends.Close()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(f.Stopping, func() { end(errBackupDraining) })()
	err := st.run(ctx, r, from)
	if cause := context.Cause(ctx); errors.Is(cause, errBackupDraining) {
		return errBackupDraining
	}
	return err
}

func (st *backupStream) run(ctx context.Context, r *kuji.Realm, from uint64) error {
	for part, err := range backup.Of(r)(ctx, from) {
		if err == nil {
			err = st.part(&part)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return st.flush(1)
}

func (st *backupStream) part(part *backup.Part) error {
	switch b := part.Begin; {
	case b != nil:
		return st.say(&kujiv1.BackupResponse{Begin: &kujiv1.BackupBegin{First: b.First, Through: b.Through, Files: b.Files}})
	case part.File != "":
		if err := st.flush(1); err != nil { // the entries before it
			return err
		}
		return st.say(&kujiv1.BackupResponse{File: part.File, Data: part.Data})
	}
	st.log = binary.AppendUvarint(st.log, uint64(len(part.Entry)))
	st.log = append(st.log, part.Entry...)
	return st.flush(backupBytes)
}

// flush sends what waits, if it is at least some bytes.
func (st *backupStream) flush(least int) error {
	rest := st.log
	for len(rest) >= least {
		n := min(len(rest), backupBytes)
		if err := st.say(&kujiv1.BackupResponse{Data: rest[:n]}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	st.log = append(st.log[:0], rest...)
	return nil
}

func (st *backupStream) say(m *kujiv1.BackupResponse) error {
	return st.ends.Send(func() error { return st.send(m) })
}
