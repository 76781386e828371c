package rules

import (
	"crypto/sha256"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// IDFault is why a request id is refused. One that carries its time is refused once it may have been
// forgotten. So a late repeat is never carried out again, although memory is bounded: see
// docs/internals/decisions/0008-ids-that-carry-their-time.md.
type IDFault uint8

const (
	IDAccepted    IDFault = iota // nothing is wrong with it
	IDWithoutTime                // it carries no time, and must
	IDTooOld                     // it may have been answered and forgotten
	IDTooFarAhead                // the clock that made it is too far ahead
	IDUsed                       // it is that of a purchase or a hold that was carried out; its answer is forgotten
)

func (f IDFault) String() string {
	switch f {
	case IDWithoutTime:
		return "the request id carries no time; the catalog wants a UUIDv7 or a ULID"
	case IDTooOld:
		return "the request id is so old that it may have been answered and forgotten"
	case IDTooFarAhead:
		return "the request id was made by a clock that is too far ahead"
	}
	if f == IDUsed {
		return "the purchase or hold with this request id was carried out, and its answer is forgotten"
	}
	return "nothing is wrong with the request id"
}

// CheckID returns why a request id that is not remembered is refused at the time stamp now.
func (r *Rules) CheckID(cmd *Command, now int64) IDFault {
	id := cmd.ID
	if cmd.Kind == KindHold {
		if _, used := r.notes.holdOf(id); used {
			return IDUsed
		}
	}
	if r.buys(id) {
		if _, used := r.state.Record(r.notes.newKey(recordPurchase).id(id)); used {
			return IDUsed
		}
		return IDAccepted
	}
	if id == "" || !r.timeOrdered() {
		return IDAccepted
	}
	made, ok := store.IDTime(id)
	switch {
	case !ok:
		return IDWithoutTime
	case made < r.state.IDFloor():
		return IDTooOld
	case made > now+r.t.Catalog.Idempotency.Ahead.Milliseconds():
		return IDTooFarAhead
	}
	return IDAccepted
}

// buys reports whether a request id is one of a purchase, which is never forgotten.
func (r *checks) buys(id string) bool {
	return r.purchases != "" && strings.HasPrefix(id, r.purchases)
}

// id adds the first half of the SHA-256 of a request id to a key.
func (k key) id(id string) key {
	sum := sha256.Sum256([]byte(id))
	return append(k, sum[:16]...)
}

// IDTime returns the time that a request id carries, if the catalog in force wants such ids.
func (r *Rules) IDTime(id string) (made int64, ok bool) {
	if !r.timeOrdered() {
		return 0, false
	}
	return store.IDTime(id)
}

// IDFloor returns the time before which new request ids are too old, in Unix milliseconds; 0 if the
// catalog in force takes ids without a time.
func (r *Rules) IDFloor() int64 {
	if !r.timeOrdered() {
		return 0
	}
	return r.state.IDFloor()
}

func (r *Rules) timeOrdered() bool {
	return r.t.Version != 0 && r.t.Catalog.Idempotency.IDs == catalog.IDsTimeOrdered
}

// CheckNew returns what is wrong with the ids that are new in a command, or nil: its request id,
// which is not remembered, and players who are not known. The command keeps the numbers of those who are. Programs that show ids obey control
// characters in them, and JSON cannot hold what is not UTF-8. Older builds let both in, so ids that
// are known may have them.
func (r *Rules) CheckNew(cmd *Command) *CommandError {
	if cmd.ID != "" {
		if err := checkText("id", cmd.ID); err != nil {
			return err
		}
	}
	for i := range cmd.Members {
		if err := r.CheckNew(&cmd.Members[i]); err != nil {
			if err = err.in(i); cmd.Hold != nil {
				err = err.alone(cmd)
			}
			return err
		}
	}
	cmd.meet(r.state)
	if cmd.knowsTo && cmd.Kind == KindTransfer && cmd.knowsPlayer && cmd.player == cmd.to && cmd.Player != cmd.To {
		return malformed("to", "giver and receiver, %q and %q, are the same player; they must differ", cmd.Player, cmd.To)
	}
	if !cmd.knowsPlayer {
		if err := checkText(cmd.playerField(), cmd.Player); err != nil {
			return err
		}
	}
	if !cmd.knowsTo {
		return checkText("to", cmd.To)
	}
	return nil
}

func checkText(field, id string) *CommandError {
	if printable(id) {
		return nil
	}
	for i, c := range id {
		switch {
		case c == '\ufffd' && id[i:min(len(id), i+3)] != "\ufffd":
			return malformed(field, "%q has byte 0x%02x at %d, which is not UTF-8; want UTF-8 without control characters", id, id[i], i)
		case c < ' ' || 0x7f <= c && c < 0xa0: // U+0085 is a new line, U+009B begins a command
			return malformed(field, "%q has the control character %U at byte %d; want none", id, c, i)
		}
	}
	return nil
}

// printable reports whether a text has only printable ASCII characters, as nearly all ids do. It
// looks at eight bytes at a time.
func printable(s string) bool {
	const ones = 0x0101010101010101
	odd := uint64(0) // the highest bit of each byte that is not printable
	for ; len(s) >= 8; s = s[8:] {
		v := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		odd |= v | (v - ones*' ') | (v + ones) // beyond ASCII; below a space; DEL
	}
	for i := range len(s) {
		v := uint64(s[i])
		odd |= v | (v - ' ') | (v + 1)
	}
	return odd&(ones*0x80) == 0
}
