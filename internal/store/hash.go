package store

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Hash returns the SHA-256 of the whole state. Two states that applied the same events have the
// same hash, on every run, build and architecture. Hash takes time in proportion to the state.
func (s *State) Hash() [32]byte {
	w := hasher{h: sha256.New()}
	n := &s.names
	w.text("kuji state v4")
	w.nums(s.applied, uint64(s.now), uint64(s.back), uint64(s.ids.window.count), uint64(s.ids.window.age), uint64(s.ids.floor))
	w.nums(s.catalog.Version, s.catalog.Position, uint64(s.catalog.Index), uint64(s.catalog.Time))
	w.bytes(s.catalog.Bytes)
	w.nums(uint64(len(n.items)))
	for i := range n.items {
		it := &n.items[i]
		w.text(it.id)
		w.nums(uint64(it.kind), it.supply.hi, it.supply.lo)
	}
	w.nums(uint64(len(n.counters)))
	for _, c := range n.counters {
		w.text(c.name)
		w.nums(uint64(c.first), uint64(c.width))
	}
	w.nums(uint64(len(n.pools)))
	for _, p := range n.pools {
		w.text(p.id)
		w.nums(p.last, uint64(len(p.entryIDs)))
		for i, id := range p.entryIDs {
			w.text(id)
			w.nums(p.stock[i], p.drawn[i])
		}
	}
	w.nums(uint64(len(s.tallies)))
	for _, t := range s.tallies {
		w.nums(uint64(t.Counter), t.Value)
	}
	w.nums(uint64(len(s.codes.lists)))
	for _, l := range s.codes.lists {
		w.codes(l)
	}
	w.nums(uint64(s.players.count()))
	for n := range uint32(s.players.count()) {
		b := s.players.at(n)
		w.bytes(b.id())
		w.nums(b.last, uint64(b.slots))
		for _, sl := range b.holdings() {
			w.nums(uint64(sl.key), sl.value())
		}
	}
	w.nums(uint64(s.ids.count()))
	for _, r := range s.ids.from(s.ids.head) {
		w.nums(r.position, uint64(r.time), uint64(r.back), r.version, uint64(r.index))
		w.bytes(r.answer)
	}
	if s.level > 0 { // what is empty adds nothing: old logs keep their hash
		w.text("level")
		w.nums(uint64(s.level))
	}
	if len(s.orders.list) > 0 {
		w.text("orders")
		w.nums(uint64(len(s.orders.list)))
		for counter, by := range s.orders.Ordered() {
			w.nums(uint64(counter), uint64(by))
		}
	}
	if s.records.n > 0 {
		w.text("records")
		w.nums(uint64(s.records.n))
		for key, value := range s.records.Records(nil, nil) {
			w.bytes(key)
			w.bytes(value)
		}
	}
	w.flush()
	return [32]byte(w.h.Sum(nil))
}

func (w *hasher) codes(l *codeList) {
	w.text(l.name)
	w.nums(l.last.Load(), l.codes.Count(), l.codes.Given(), l.codes.Uses())
	for n := range l.codes.Count() {
		w.bytes(l.codes.Code(n))
	}
	for n := range l.codes.Given() {
		g := l.codes.GivenTo(n)
		w.nums(uint64(g.Player), g.Position, uint64(g.Time))
	}
	for n := range l.codes.Uses() {
		u := l.codes.Use(n)
		w.nums(uint64(u.Code), uint64(u.Player), u.Position, uint64(u.Time))
	}
}

// hasher feeds a hash with length-prefixed fields.
type hasher struct {
	h   hash.Hash
	buf []byte
}

func (w *hasher) nums(vs ...uint64) {
	for _, v := range vs {
		w.buf = binary.LittleEndian.AppendUint64(w.buf, v)
	}
	if len(w.buf) > 1<<15 {
		w.flush()
	}
}

func (w *hasher) bytes(b []byte) { w.text(text(b)) }

func (w *hasher) text(s string) {
	w.nums(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *hasher) flush() {
	w.h.Write(w.buf) // never fails: hash.Hash
	w.buf = w.buf[:0]
}
