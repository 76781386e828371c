package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// backupBytes is how many bytes of a log a message of a backup has at most.
const backupBytes = 256 << 10

var errBackupDraining = &kuji.Error{Code: kuji.CodeClosed, Message: "the server is shutting down: go on with the backup later"}

// backupStream is one Backup call. While the client takes nothing, the stream waits, and ends after the
// time to write: a backup keeps the realm from trimming its log.
type backupStream struct {
	send func(*kujiv1.BackupResponse) error
	ends streamEnds
	late watch
	log  []byte // entries that are to be sent
}

func (h adminService) Backup(ctx context.Context, req *kujiv1.BackupRequest, out *connect.ServerStream[kujiv1.BackupResponse]) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok || c.w == nil {
		return errors.New("the stream did not come through ServeHTTP")
	}
	if err := h.s.hold(ctx, req); err != nil {
		return err
	}
	if err := c.access.permit(req); err != nil {
		return err
	}
	r, err := h.s.realms.get(h.s.engine, req.GetRealm())
	if err != nil {
		return err
	}
	st := &backupStream{send: out.Send}
	if err := st.ends.open(c.w); err != nil {
		return fmt.Errorf("setting the timeouts of a stream: %w", err)
	}
	defer st.ends.close()
	st.late.start(h.s.o.Limits.WriteTimeout, st.ends.stopWriting)
	defer st.late.stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(h.s.stopping, func() { end(errBackupDraining) })()
	err = st.run(ctx, r, req.GetFromCursor())
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
	st.late.arm()
	defer st.late.disarm()
	return st.send(m)
}
