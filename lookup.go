package kuji

import (
	"context"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// Seen says what a realm knows of a request id.
type Seen uint8

const (
	// NotSeen: no request with this id was answered. One may still be on its way.
	NotSeen Seen = iota + 1
	// Answered: the first answer is remembered.
	Answered
	// MaybeForgotten: either no request with this id was answered, or the answer was forgotten.
	MaybeForgotten
)

// String returns the word in snake_case.
func (s Seen) String() string {
	switch s {
	case NotSeen:
		return "not_seen"
	case Answered:
		return "answered"
	case MaybeForgotten:
		return "maybe_forgotten"
	}
	return "unknown"
}

// Lookup is what Realm.Result finds out about a request id.
type Lookup struct {
	Seen Seen
	// Result is the first answer, as a repetition of the request would get it.
	Result Result
	// Player is whose request it was: of a Transfer the giver, of an Atomic the player of all its
	// members, "" if they are several. Codes in the Result are theirs.
	Player string
	// Before is set with MaybeForgotten, in Unix milliseconds. If the catalog in force wants ids that
	// carry their time, ids made before it may have been forgotten. Otherwise those answered before it.
	Before int64
}

// Result looks for the answer to a request id. It carries out nothing and logs nothing. It waits
// until what it found is durable, and for nothing else.
func (r *Realm) Result(ctx context.Context, id string) (Lookup, error) {
	if id == "" || len(id) > MaxID {
		return Lookup{}, errf(CodeInvalid, "id", "%d bytes long; want a request id of 1 to %d bytes", len(id), MaxID)
	}
	l, last, err := reader{r.w}.lookup(ctx, id)
	if err == nil {
		err = r.w.settle(ctx, last)
	}
	if err != nil {
		return Lookup{}, err
	}
	return l, nil
}

// lookup is Result without waiting. The position that it returns covers what it found.
func (r reader) lookup(ctx context.Context, id string) (l Lookup, last uint64, err error) {
	r.w.mu.Lock()
	defer r.w.unlock()
	if err := r.w.gate.answers(ctx); err != nil {
		return Lookup{}, 0, err
	}
	a, known := r.w.state.Begin(id, "", r.w.state.Hashes(id, ""))
	defer r.w.state.End()
	if !known {
		l.Seen, l.Before = r.forgotten(id)
		return l, r.w.state.Catalog().Position, nil // which says what ids are like
	}
	l.Seen = Answered
	var ev store.Event
	if _, err = store.Decode(a.Event, &ev); err == nil {
		l.Player, err = playerOf(r.w.state, &ev)
	}
	if err == nil {
		err = r.w.answer(&ev, &l.Result, store.At{Position: a.Position, Index: a.Index, Time: a.Time}, a.Version)
	}
	if err != nil {
		return Lookup{}, 0, rememberedWrong(err)
	}
	l.Result.Replayed = true
	return l, a.Position, nil
}

// forgotten reports whether the answer to an id that is not remembered may have been forgotten, and
// which other ids may have been. The caller holds mu.
func (r reader) forgotten(id string) (Seen, int64) {
	before := r.w.state.ForgottenBefore()
	if made, ok := r.w.rules.IDTime(id); ok {
		if before = r.w.state.IDFloor(); made >= before {
			before = 0
		}
	}
	if before == 0 {
		return NotSeen, 0
	}
	return MaybeForgotten, before
}

// playerOf returns whose request an event answers.
func playerOf(s *store.State, ev *store.Event) (string, error) {
	cmd, _, err := rules.CommandOf(s, ev)
	if err != nil || len(cmd.Members) == 0 {
		return cmd.Player, err
	}
	player := cmd.Members[0].Player
	for i := range cmd.Members {
		if cmd.Members[i].Player != player {
			return "", nil
		}
	}
	return player, nil
}
