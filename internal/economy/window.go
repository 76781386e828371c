package economy

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
)

// The idempotency window. An id is remembered for at least the age that the
// catalog declares, by the time stamps of the log, and in any case while it is
// among the newest keptAnyway; so a quiet realm remembers for longer, and a busy
// one never for less. The declared count bounds memory: when that many ids are
// younger than the age, commands with new ids are refused. Nothing is forgotten early.
const (
	// keptAnyway is how many ids are remembered whatever their age, if the
	// catalog's count allows as many.
	keptAnyway = 1 << 20
	// Of many ids, every forgetEvery-th one that is added drops up to twice as many:
	// several at a time cost less, and yet no command pays for all that have aged
	// meanwhile. Of few, each drops up to four.
	forgetEvery = forgetAtOnce / 2
	manyIDs     = 1 << 12
)

// FullError says what a state has no room for. It depends on the state alone;
// nothing is logged.
type FullError struct {
	IDs     bool // request ids: there will be room when the oldest have aged; otherwise players
	Message string
}

func (e *FullError) Error() string { return e.Message }

// Admit reports why a command, whose request id is not remembered, cannot be
// decided: no room for another request id, for another player, or for what
// players hold. It returns nil when it can be.
func (s *State) Admit(cmd *Command, now int64) *FullError {
	if cmd.ID != "" && !s.roomForID(now) {
		w := &s.current.idempotency
		return &FullError{IDs: true, Message: fmt.Sprintf("%d request ids of the last %v are remembered, which is what the catalog has room for (%d); none is forgotten early: "+
			"send it again later, or raise idempotency.count in the catalog", s.ids.count(), w.Age, w.Count)}
	}
	if s.players.count()+2*max(1, len(cmd.Members)) > s.most && s.players.count()+s.unknown(cmd) > s.most {
		return &FullError{Message: fmt.Sprintf("the realm has %d players already, which is the most; a new one has no place", s.players.count())}
	}
	if s.players.mem.full(s.chunks) {
		return &FullError{Message: fmt.Sprintf("the realm's %d players take as much memory as they can, %d chunks of 1 MiB or of one large player each", s.players.count(), s.chunks)}
	}
	return nil
}

// roomForID reports whether there is room for another request id.
func (s *State) roomForID(now int64) bool {
	if s.ids.count() < int(s.current.idempotency.Count) && !s.ids.full() {
		return true
	}
	if s.ids.atMost(spareIDChunks) {
		return false
	}
	oldest, ok := s.ids.oldest()
	return !ok || oldest.aged(&s.current.idempotency, max(now, s.now))
}

// unknown returns how many players a command would make, some perhaps counted twice.
func (s *State) unknown(cmd *Command) (n int) {
	if cmd.Kind == KindAtomic {
		for i := range cmd.Members {
			n += s.unknown(&cmd.Members[i])
		}
		return n
	}
	if _, ok := s.players.find(cmd.Player); !ok {
		n++
	}
	if cmd.Kind == KindTransfer {
		if _, ok := s.players.find(cmd.To); !ok {
			n++
		}
	}
	return n
}

// aged reports whether an id's time is over.
func (r *idRecord) aged(w *catalog.Idempotency, now int64) bool {
	return now-r.time > w.Age.Milliseconds()
}

// forgetAged drops what the window does not cover any more, after an id was added
// or a catalog was put in force.
func (r *requestIDs) forgetAged(w *catalog.Idempotency, now int64) {
	keep := min(int(w.Count), r.keep)
	most := 4
	if keep >= manyIDs {
		if r.tail%forgetEvery != 0 {
			return
		}
		most = 2 * forgetEvery
	}
	over := r.count() - keep
	if r.full() {
		over = most
	}
	if over <= 0 {
		return
	}
	if oldest, ok := r.oldest(); ok && oldest.aged(w, now) {
		r.settle() // what is forgotten must be in the index
		if r.again != nil {
			return // what was there already is not, and the state will be of no use
		}
		r.forgetBelow(now-w.Age.Milliseconds(), min(most, over))
	}
}

// Window says what the idempotency window holds.
type Window struct {
	Remembered uint64
	Limit      uint64 // how many within the age there can be
	Bytes      uint64 // of memory, about
	Oldest     int64  // time stamp of the oldest, Unix milliseconds; 0: none
}

// Window returns what the idempotency window holds.
func (s *State) Window() Window {
	w := Window{Remembered: uint64(s.ids.count()), Limit: uint64(s.current.idempotency.Count), Bytes: s.ids.memory()}
	if oldest, ok := s.ids.oldest(); ok {
		w.Oldest = oldest.time
	}
	return w
}
