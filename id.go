package kuji

import (
	"time"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/internal/ulid"
)

// NewID returns a new request id that carries a time: a ULID, 26 characters of 48 bits of Unix
// milliseconds and 80 random bits. A realm whose catalog says "ids: time-ordered" takes such ids,
// or UUIDv7, and no others. Make an id once for each thing that shall happen, and keep it until
// there is an answer: a retry must carry the same id. now should be the current time; it must lie
// between the years 1970 and 10889.
func NewID(now time.Time) string { return ulid.New(now) }

// refused returns why the catalog in force refuses a command whose id is not remembered, or nil. The
// caller holds mu.
func (r *Realm) refused(cmd *rules.Command, now int64) error {
	if err := r.rules.Unknown(cmd); err != nil {
		return &Error{Code: CodeNotFound, Field: err.Field, Message: err.Message}
	}
	if err := r.rules.CheckNew(cmd); err != nil {
		return invalid(err)
	}
	fault := r.rules.CheckID(cmd.ID, now)
	if fault == rules.IDTaken {
		return nil
	}
	made, _ := store.IDTime(cmd.ID)
	switch fault {
	case rules.IDTooOld:
		return errf(CodeTooOld, "id", "%q: %v: it was made at %s, and ids from before %s may have been", cmd.ID, fault, stampText(made), stampText(r.state.IDFloor()))
	case rules.IDTooFarAhead:
		return errf(CodeInvalid, "id", "%q: %v: it was made at %s, and here it is %s", cmd.ID, fault, stampText(made), stampText(now))
	default:
		return errf(CodeInvalid, "id", "%q: %v", cmd.ID, fault)
	}
}

func stampText(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
