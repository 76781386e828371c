package rules

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"

	"github.com/kuji-dev/kuji/internal/store"
)

// What readers see of holds.

// HoldNow is a hold for readers.
type HoldNow struct {
	ID           string
	State        string // open, confirmed, cancelled or expired
	Refund, One  bool
	Asked        uint64 // steady times
	Until, Ended uint64 // its deadline, if it is open; else when it was confirmed or cancelled
	By           string // the request id that confirmed or cancelled it
	Parts        []HeldPart
}

// HeldPart is what is held of a member of a hold.
type HeldPart struct {
	Kind   Kind
	Player uint32
	To     uint32 // of a transfer
	Pool   uint32 // of Draws
	Draws  uint64 // that are made when it is confirmed
	Takes  []Stack
	Gives  []Stack
	Codes  []Stack // by number of the list
}

var holdStates = [...]string{holdOpen: "open", holdConfirmed: "confirmed", holdCancelled: "cancelled", holdExpired: "expired"}

func (h *hold) now() HoldNow {
	v := HoldNow{ID: h.id, State: holdStates[h.is], Refund: h.refund, One: h.one, Asked: h.asked, Until: h.until, By: h.by}
	if h.is != holdOpen {
		v.Until, v.Ended = 0, h.until-keepHolds
	}
	for i := range h.parts {
		p := &h.parts[i]
		part := HeldPart{Kind: p.kind, Player: p.player, To: p.to, Pool: p.pool, Draws: p.draws, Takes: p.takes, Codes: p.promised}
		for _, all := range [...][]Stack{p.gains, p.more} {
			for _, st := range all {
				part.Gives = addTo(part.Gives, st.Item, st.Quantity)
			}
		}
		v.Parts = append(v.Parts, part)
	}
	return v
}

// HoldAt returns a hold by its request id. ok is false if there is none.
func HoldAt(s State, id string) (v HoldNow, ok bool) {
	value, ok := s.Record(key{recordHold}.bytes(id))
	if !ok {
		return v, false
	}
	h := hold{id: id}
	h.read(value)
	h.meet(s)
	return h.now(), true
}

func holdIn(id string, value []byte) HoldNow {
	h := hold{id: id}
	h.read(value)
	for i := range h.parts {
		h.parts[i].player = h.parts[i].by
	}
	return h.now()
}

// HoldIn returns the hold that an effect writes. ok is false if it writes none.
func HoldIn(e *store.Effect) (v HoldNow, ok bool) {
	if e.Verb != store.Put || e.N < 2 || e.Bytes[0] != recordHold {
		return v, false
	}
	return holdIn(string(e.Bytes[1:e.N]), e.Bytes[e.N:]), true
}

// FreedIn returns the player of whom nothing is held by a hold any more after an effect, and the hold's id. ok is false
// if there is none.
func FreedIn(e *store.Effect) (player uint32, id string, ok bool) {
	if e.Verb != store.Drop || len(e.Bytes) < 5 || e.Bytes[0] != recordHeld {
		return 0, "", false
	}
	return binary.BigEndian.Uint32(e.Bytes[1:]), string(e.Bytes[5:]), true
}

// EndedOf returns what an event of the status hold ended says of the hold, and how long before it that had ended,
// in milliseconds.
func EndedOf(ev *store.Event) (v HoldNow, ago uint64, err error) {
	r := store.NewReader(ev.Why)
	v.State = holdStates[r.Uint("what became of the hold", holdExpired)]
	ago = r.Uint("how long ago", math.MaxInt64)
	v.By = string(r.Bytes("who", r.Uint("a request id", MaxID)))
	asked := store.NewReader(ev.Asked)
	v.ID = string(asked.Bytes("a hold", asked.Uint("a hold", MaxID)))
	return v, ago, cmp.Or(asked.Err(), r.Err())
}

// HoldsOf iterates over the open holds in which something of a player is held, by request id.
func HoldsOf(s State, player uint32) iter.Seq[HoldNow] {
	return func(yield func(HoldNow) bool) {
		seen := map[string]bool{}
		for _, name := range append([]uint32{player}, aliasesOf(s, player)...) {
			from := key{recordHeld}.short(name)
			for k := range s.Records(from, from.after()) {
				id := string(k[5:])
				if v, ok := HoldAt(s, id); !seen[id] && ok && !yield(v) {
					return
				}
				seen[id] = true
			}
		}
	}
}

// Reserved returns how many draws from each pool, by number, are held with a refund, and still to be made.
func Reserved(s State) map[uint32]uint64 {
	all := map[uint32]uint64{}
	from := key{recordKept}.and(keptDraws)
	for k, value := range s.Records(from, from.after()) {
		all[binary.BigEndian.Uint32(k[2:])] = key(value).number(0)
	}
	return all
}

// OpenHolds iterates over the open holds, by deadline and then by request id, that come after one.
func OpenHolds(s State, until uint64, id string) iter.Seq[HoldNow] {
	return func(yield func(HoldNow) bool) {
		from := key{recordDue}.num(until)
		if id != "" {
			from = append(from.and(dueHold).bytes(id), 0)
		}
		for k := range s.Records(from, key{recordDue}.after()) {
			of := key(k).dueOf()
			if of.hold == "" {
				continue
			}
			if v, ok := HoldAt(s, of.hold); ok && v.State == holdStates[holdOpen] && !yield(v) {
				return
			}
		}
	}
}
