package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// A player whose name is erased keeps the number, which events of others have. Nothing else is left: no name in
// memory, in the hash or in the next whole snapshot, and no answer to a request that the player asked for or joined
// by. Of the id of such a request, half its SHA-256 is left, as long as it would have been remembered. It stands
// in an event of its own kind in place of the answer:
//
//	kind  KindErased
//	id    16 bytes: the first half of the SHA-256 of the request id
//	asked varint: 1 + the time that the id carried, 0: it carried none
//
// It takes time in proportion to the idempotency window.

// KindErased is the kind of the events that stand in place of erased answers. No log has one.
const KindErased = 255

const sumBytes = 16

// rewrites is how many whole snapshots must follow an Erase: two series are kept.
const rewrites = 2

// Rewrites reports whether the next snapshot must be a whole one, and follow soon: an earlier one has a name that is
// erased.
func (s *identities) Rewrites() bool { return s.rewrites > 0 }

// rewritten notes that a capture of the whole state was written.
func (s *identities) rewritten(c *Capture) {
	if !c.partial && c.erasures == s.erasures && s.rewrites > 0 {
		s.rewrites--
	}
}

// erase takes a player's name away.
func (s *identities) erase(n uint32, name []byte, pos uint64) error {
	p := s.of
	if int(n) >= p.count() {
		return inconsistent("player number %d of %d", n, p.count())
	}
	if b := p.at(n); !bytes.Equal(b.id(), name) || b.slots > 0 {
		return inconsistent("player number %d has another name than the one that is erased, or still has something", n)
	}
	b := p.change(n, pos)
	for g := range playerGuards {
		p.lock(uint16(g)) // nobody may look into the index
	}
	p.index.remove(p.key.hashBytes(name), p.addr(n))
	clear(b.id())
	b.idLen = 0
	s.erasures++
	s.rewrites = rewrites
	return nil
}

// eraseAnswers replaces the answers that a player has got.
func eraseAnswers(r *ids, player uint32, name []byte) {
	old := r.frozen()
	r.restart(r.head)
	r.stored, r.index = 0, index{alone: true}
	r.index.init()
	var ev Event
	for _, rec := range old.from(old.head) {
		if _, err := Decode(rec.answer, &ev); err == nil && ev.Kind != KindErased && concerns(&ev, player, name) {
			rec.answer = erased(ev.ID)
		}
		r.add(r.key.hashBytes(answerID(rec.answer)), rec)
	}
}

// concerns reports whether an event is a player's, or has the player's name.
func concerns(ev *Event, player uint32, name []byte) bool {
	if ev.Named && (ev.Player.ID == string(name) || ev.Player.ID == "" && ev.Player.Num == player) {
		return true
	}
	ref := append(binary.AppendUvarint(nil, uint64(len(name))<<1|1), name...)
	if ev.Status != 0 && bytes.Contains(ev.Asked, ref) {
		return true
	}
	effects := ev.Changes()
	for e := (Effect{}); effects.Next(&e); {
		if e.Verb == Join && bytes.Equal(e.Bytes, name) {
			return true
		}
	}
	return false
}

// erased returns what stands in place of the answer to a request id.
func erased(id []byte) []byte {
	sum, carried := sha256.Sum256(id), uint64(0)
	if made, ok := IDTime(id); ok {
		carried = uint64(made) + 1
	}
	var w Writer
	w.Begin(KindErased, string(sum[:sumBytes]))
	w.BeginAsked()
	w.Uint(carried)
	w.EndAsked()
	return w.End()
}

// isErased reports whether an answer is one that erased returns.
func isErased(answer []byte) bool {
	at := 0
	for answer[at] >= 0x80 { // the size
		at++
	}
	return answer[at+1]>>3 == 0 && answer[at+2] == KindErased
}

// madeAt returns the time that the request id of an answer carried.
func madeAt(answer []byte) (made int64, ok bool) {
	if !isErased(answer) {
		return IDTime(answerID(answer))
	}
	var ev Event
	if _, err := Decode(answer, &ev); err != nil {
		return 0, false
	}
	asked := NewReader(ev.Asked)
	carried := asked.Uint("the time of an id", 1<<62)
	return int64(carried) - 1, carried > 0
}

// findErased is find for an id whose answer is erased.
func findErased(r *ids, id []byte) (idRecord, bool) {
	sum := sha256.Sum256(id)
	return findAs(r, sum[:sumBytes], r.key.hashBytes(sum[:sumBytes]), true)
}

// addNameless adds a player whose name is erased.
func addNameless(p *players) {
	n, units := uint32(p.addrs.n), unitsFor(0, 0)
	addr := p.mem.alloc(units)
	*(*block)(p.mem.pointer(addr)) = block{num: n, units: units}
	p.addrs.push(addr, 0)
	p.dirty.grow(n)
}
