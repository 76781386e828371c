package economy

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/kuji-dev/kuji/catalog"
)

// An answer is what is kept of an event to answer its request id again: what
// the result says, and what tells the same request from another with its id.
// A short event is its own answer. Of a long one, such as a grant of many items
// or a large group, the arguments give way to a digest:
//
//	head     1 byte    kind << 3 | answerVersion << 1 | 1
//	status   1 byte
//	id       length (1 byte), bytes
//	digest   16 bytes  the start of the SHA-256 of the command: see digester
//	status not 0:
//	  subject  varint
//	  name     length (1 byte), bytes: the id of an unknown pool or item
//	  atomic:  failed, varint; number of members, varint
//	status 0:
//	  draw:    pool ref, count varint, choices: as in an event
//	  atomic:  number of members varint; each: kind << 3, and for a draw as above
const answerVersion = 3

// digestFrom is the length in bytes from which on an event is worth a digest.
const digestFrom = 96

type digest [16]byte

// answerID returns the id in an answer, which an event has in the same place.
func answerID(answer []byte) []byte { return answer[3 : 3+answer[2]] }

// answer returns what is kept of an applied event with an id, whose encoded form is raw.
func (s *State) answer(ev *Event, raw []byte) []byte {
	if len(raw) < digestFrom || ev.Kind == KindCatalog {
		return raw
	}
	b := append(s.scratch[:0], byte(ev.Kind)<<3|answerVersion<<1|1, byte(ev.Status))
	b = appendString(b, ev.ID)
	sum := s.digestEvent(ev)
	b = append(b, sum[:]...)
	if ev.Status != OK {
		b = binary.AppendUvarint(b, uint64(ev.Subject))
		name := ""
		if ev.Status == UnknownPool || ev.Status == UnknownItem {
			name = s.Subject(ev)
		}
		b = appendString(b, name)
		if ev.Kind == KindAtomic {
			b = binary.AppendUvarint(b, uint64(ev.Failed))
			b = binary.AppendUvarint(b, uint64(len(ev.Members)))
		}
	} else {
		b = appendGiven(b, ev)
	}
	s.scratch = b
	if len(b) < len(raw) {
		return b
	}
	return raw
}

// appendGiven appends what an event that ended OK gave.
func appendGiven(b []byte, ev *Event) []byte {
	switch ev.Kind {
	case KindDraw:
		b = appendRef(b, ev.Pool)
		b = binary.AppendUvarint(b, uint64(ev.Count))
		b = appendChoices(b, ev)
	case KindAtomic:
		b = binary.AppendUvarint(b, uint64(len(ev.Members)))
		for i := range ev.Members {
			m := &ev.Members[i]
			b = append(b, byte(m.Kind)<<3)
			b = appendGiven(b, m)
		}
	}
	return b
}

// decodeAnswer reads what is kept of an event. An answer with a digest gives
// an event without players and items.
func decodeAnswer(b []byte, ev *Event) error {
	if len(b) == 0 || b[0]>>1&3 != answerVersion {
		n, err := Decode(b, ev)
		if err == nil && (n != len(b) || ev.ID == "") {
			err = &FormatError{Offset: n, Message: "an answer with more than an event, or without an id"}
		}
		return err
	}
	ev.reset()
	d := decoder{b: b, off: 1}
	if ev.Kind = Kind(b[0] >> 3); ev.Kind < KindDraw || ev.Kind >= kindEnd || b[0]&1 == 0 {
		d.fail("an answer to kind %d", ev.Kind)
	}
	ev.Status = d.status()
	ev.ID = d.str("the request id", uint64(d.byte("the request id")), MaxID)
	ev.digested = copy(ev.digest[:], d.bytes("the digest", uint64(len(ev.digest)))) > 0
	if ev.Status == OK {
		d.given(ev, true)
	} else {
		ev.Subject = uint32(d.uvarint("the subject", 1<<32-1))
		if n := d.byte("the name"); n > 0 {
			ev.name = d.str("the name", uint64(n), maxUnknownID)
		}
		if ev.Kind == KindAtomic {
			ev.Failed = uint32(d.uvarint("the failed member", MaxAtomic-1))
			for range d.members(ev) {
				ev.member()
			}
		}
	}
	if d.err == nil && d.off != len(b) {
		d.fail("%d bytes after an answer", len(b)-d.off)
	}
	if d.err != nil {
		return d.err
	}
	return nil
}

// given is the inverse of appendGiven.
func (d *decoder) given(ev *Event, whole bool) {
	switch {
	case ev.Kind == KindDraw:
		ev.Pool = d.ref("the pool", maxPoolsEver, catalog.MaxID)
		if ev.Count = uint32(d.uvarint("the count", MaxDrawCount)); ev.Count == 0 {
			d.fail("a draw of nothing")
		}
		d.choices(ev)
	case ev.Kind == KindAtomic && whole:
		for range d.members(ev) {
			m := ev.member()
			m.Kind = Kind(d.byte("a member's head") >> 3)
			if d.err == nil && (m.Kind < KindDraw || m.Kind > KindTransfer) {
				d.fail("unknown member of kind %d", m.Kind)
			}
			d.given(m, false)
		}
	}
}

// digester computes the digest of a command: the start of the SHA-256 of its
// kind and arguments, each text with its length before it.
type digester struct{ b []byte }

func (h *digester) body(kind Kind, player, to, pool string, count uint32, items int) {
	h.b = append(h.b, byte(kind))
	for _, s := range [...]string{player, to, pool} {
		h.b = appendString(h.b, s)
	}
	h.b = binary.AppendUvarint(h.b, uint64(count))
	h.b = binary.AppendUvarint(h.b, uint64(items))
}

func (h *digester) item(id string, quantity uint64) {
	h.b = appendString(h.b, id)
	h.b = binary.AppendUvarint(h.b, quantity)
}

func (h *digester) sum() (d digest) {
	sum := sha256.Sum256(h.b)
	copy(d[:], sum[:])
	return d
}

// digestEvent returns the digest of the command that an applied event answered.
func (s *State) digestEvent(ev *Event) digest {
	h := digester{b: s.hashed[:0]}
	one := func(ev *Event) {
		to := ""
		if ev.Kind == KindTransfer {
			to = s.playerID(ev.To)
		}
		pool := ""
		if ev.Kind == KindDraw {
			pool = s.poolID(ev.Pool)
		}
		h.body(ev.Kind, s.playerID(ev.Player), to, pool, ev.Count, len(ev.Items))
		for i := range ev.Items {
			h.item(s.itemID(ev.Items[i].Ref), ev.Items[i].Quantity)
		}
	}
	if ev.Kind == KindAtomic {
		for i := range ev.Members {
			one(&ev.Members[i])
		}
	} else {
		one(ev)
	}
	s.hashed = h.b
	return h.sum()
}

// digest returns the digest of a command.
func (c *Command) digest() digest {
	var h digester
	one := func(c *Command) {
		to, pool := "", ""
		switch c.Kind {
		case KindTransfer:
			to = c.To
		case KindDraw:
			pool = c.Pool
		}
		h.body(c.Kind, c.Player, to, pool, uint32(c.Count), len(c.Items))
		for i := range c.Items {
			h.item(c.Items[i].Item, c.Items[i].Quantity)
		}
	}
	if c.Kind == KindAtomic {
		for i := range c.Members {
			one(&c.Members[i])
		}
	} else {
		one(c)
	}
	return h.sum()
}
