package store

import "time"

// The idempotency window. An id is remembered for at least the age that the catalog declares, in
// steady time (see [State.Back]), and for as long as it is among the newest keptAnyway: in a quiet
// realm for longer, in a busy one never for less. The declared count limits memory: while that many
// ids are younger than the age, commands with new ids are refused. Nothing is forgotten early.
const (
	// keptAnyway is how many ids are remembered whatever their age, if the catalog's count allows
	// that many.
	keptAnyway = 1 << 20
	// Each new id forgets up to forgetAtOnce old ones: no command pays for all that have aged.
	forgetAtOnce = 4
)

// window is the idempotency window: room for count ids, for age milliseconds.
type window struct {
	count uint32
	age   int64
}

// The idempotency window until a catalog sets one.
const (
	defaultWindowCount = 1 << 25
	defaultWindowAge   = 10 * time.Minute
)

// Remember keeps the answer to an event's request id, and follows changes of the window.
func (s *State) Remember(ev *Event, at At) error {
	r := &s.ids
	r.log.now = at.Time + r.log.back
	if len(ev.ID) > 0 {
		hash := s.begun.hash
		if string(ev.ID) != s.begun.id {
			hash = r.key.hashBytes(ev.ID)
			if _, ok := r.find(ev.ID, hash); ok {
				return inconsistent("request id %q a second time", ev.ID)
			}
		}
		r.add(hash, idRecord{position: at.Position, time: r.log.now, back: r.log.back, version: r.log.version, index: at.Index, answer: ev.Raw})
		r.forgetAged()
	} else if !ev.Named && ev.Status == 0 { // perhaps an event of a catalog or the clock
		r.follow(ev.Changes())
	}
	return nil
}

// follow takes over the window and the version of a catalog event, and a clock that is set back.
func (r *ids) follow(effects Reader) {
	player := uint32(0)
	for e := (Effect{}); effects.Next(&e); {
		switch e.Verb {
		case Window:
			r.window = window{count: e.N, age: int64(e.Value)}
			r.forgetAged()
		case Catalog:
			r.log.version++
		case Clock:
			r.log.back += int64(e.Value)
		case Player:
			player = e.N
		case Erase:
			eraseAnswers(r, player, e.Bytes)
		case Member:
			return // a group does none of these
		}
	}
}

// Answer is the remembered answer to a request id, and its place in the log.
type Answer struct {
	Event    []byte // valid until the next Apply
	Position uint64
	Index    uint32
	Time     int64
	Version  uint64 // of the catalog in force when it was decided
}

// Begin begins a command with a request id. It returns the answer to the id if the idempotency window
// still has it. If not, Remember need not look for it again until End.
func (s *State) Begin(id string) (Answer, bool) {
	hash := s.ids.key.hash(id)
	r, ok := s.ids.find([]byte(id), hash)
	if !ok {
		s.begun = begun{id, hash}
		return Answer{}, false
	}
	return Answer{Event: r.answer, Position: r.position, Index: r.index, Time: r.time - r.back, Version: r.version}, true
}

// Answered returns the event that is remembered of a request id, and its position. It is valid until the next Apply.
func (r *ids) Answered(id string) (event []byte, position uint64, ok bool) {
	rec, ok := r.find([]byte(id), r.key.hash(id))
	return rec.answer, rec.position, ok
}

// End ends what Begin began. Nothing of the caller's memory is kept.
func (s *State) End() {
	if s.begun.id != "" {
		s.begun = begun{}
	}
}

// begun is the id of the current command, which is not in the window, and its hash.
type begun struct {
	id   string
	hash uint32
}

// OldestAnswer returns the position of the oldest remembered answer, or of the last event if there
// is none.
func (s *State) OldestAnswer() uint64 {
	if r, ok := s.ids.oldest(); ok {
		return r.position
	}
	return s.applied
}

// IDFloor returns a time after that of every forgotten id which carried its own. So an id that
// carries this time or a later one, and is not remembered, was never answered. Ids that were more
// than [MaxIDAhead] ahead when they were answered do not count. The floor never decreases, and
// follows from the log alone.
func (r *ids) IDFloor() int64 { return r.floor }

// ForgottenBefore returns a time stamp, by today's clock, before which every answered id may have
// been forgotten; 0: none was forgotten yet.
func (r *ids) ForgottenBefore() int64 {
	if r.head == 0 {
		return 0
	}
	if oldest, ok := r.oldest(); ok {
		return oldest.time - r.log.back
	}
	return r.log.now - r.log.back
}

// WindowFull reports whether the window has no room for another request id at this time stamp.
func (r *ids) WindowFull(now int64) bool {
	if r.count() < int(r.window.count) && !r.full() {
		return false
	}
	if atMost(r, spareIDChunks) {
		return true
	}
	oldest, ok := r.oldest()
	return ok && !r.window.aged(oldest.time, max(now+r.log.back, r.log.now))
}

// aged reports whether an id of this time may be forgotten.
func (w *window) aged(time, now int64) bool { return now-time > w.age }

// forgetAged forgets some of the ids that the window no longer covers.
func (r *ids) forgetAged() {
	over := r.count() - min(int(r.window.count), r.keep)
	if r.full() {
		over = forgetAtOnce
	}
	if over > 0 {
		r.forgetBelow(r.log.now-r.window.age, min(forgetAtOnce, over))
	}
}

// WindowSize says how full the idempotency window is.
type WindowSize struct {
	Remembered uint64
	Limit      uint64 // the most that can be younger than the age
	Bytes      uint64 // approximate memory
	Oldest     int64  // time stamp of the oldest id, Unix milliseconds; 0: none
}

// WindowSize returns how full the idempotency window is.
func (r *ids) WindowSize() WindowSize {
	w := WindowSize{Remembered: uint64(r.count()), Limit: uint64(r.window.count), Bytes: r.memory()}
	if oldest, ok := r.oldest(); ok {
		w.Oldest = oldest.time - oldest.back
	}
	return w
}

// Young returns how many remembered ids are within the window's age at a time stamp, so that none
// of them can be forgotten. Once they are as many as the limit, new ids are refused.
func (r *ids) Young(now int64) int {
	return r.YoungerThan(max(now+r.log.back, r.log.now) - r.window.age - 1)
}
