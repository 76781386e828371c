package rules

import (
	"github.com/kuji-dev/kuji/internal/store"
)

// A reverse undoes a grant or a draw, as long as the idempotency window remembers its request id. It takes back what
// the player has got, as far as the player still has it, and says what is missing. If nothing is, the price comes back
// too, and what was drawn goes back to the pool. Codes cannot be taken back, so they are missing. Limits, tracks and
// counters stay as they are. Nothing is reversed twice.
type reverseKind struct{ noted }

func (reverseKind) alone() string { return "an atomic group cannot reverse anything" }

func (reverseKind) form(c *Command) *CommandError {
	switch {
	case c.Hold.Of == "":
		return malformed("request", "empty; want the request id of a grant or a draw")
	case c.Note == nil || c.Note.Reason == "":
		return malformed("reason", "empty; want a reason of 1 to %d bytes", MaxReason)
	}
	return checkLength("request", c.Hold.Of, MaxID)
}

// ask writes the request id of what is reversed, after its length.
func (reverseKind) ask(r *effects, c *Command, _ Status) { writeText(r.w, c.Hold.Of) }
func (reverseKind) asked(a *asked, c *Command)           { c.Hold = &HoldOf{Of: a.text("a request id", MaxID)} }
func (reverseKind) same(c, o *Command) bool              { return *c.Hold == *o.Hold }

// reversal is what a reverse undoes.
type reversal struct {
	player uint32
	got    []Stack // by the player
	paid   []Stack
	taken  []taking
	codes  uint64
	whole  bool // nothing is missing

	position uint64 // an id that was forgotten can be that of another request later
}

// reversalOf reads what a grant or a draw did. ok is false of anything else, and of what did nothing.
func (r *noting) reversalOf(event []byte) (v reversal, ok bool) {
	var ev store.Event
	if _, err := store.Decode(event, &ev); err != nil {
		return v, false
	}
	if k := Kind(ev.Kind); k != KindGrant && k != KindDraw || ev.Status != 0 {
		return v, false
	}
	v.player, ok = r.state.Player(r.state.PlayerID(ev.Player.Num))
	if !ok {
		return v, false
	}
	pool := uint32(noPool)
	effects := ev.Changes()
	for e := (store.Effect{}); effects.Next(&e); {
		switch e.Verb {
		case store.Pool:
			pool = e.N
		case store.Take:
			v.taken = append(v.taken, taking{pool, e.N, 1})
		case store.Gain:
			v.got = addTo(v.got, e.N, e.Value)
		case store.Spend:
			v.paid = addTo(v.paid, e.N, e.Value)
		case store.GiveCode:
			v.codes++
		case store.Claim, store.Member:
			return v, true // what quests gave stays
		}
	}
	return v, true
}

// undoing is what a reverse at hand undoes, and what is missing.
type undoing struct {
	undoes  reversal
	missing []Stack
}

func (reverseKind) check(r *checks, c *Command) failure {
	event, position, ok := r.state.Answered(c.Hold.Of)
	if !ok {
		return failure{UnknownRequest, 0}
	}
	if was, done := r.state.Record(r.notes.newKey(recordReversed).id(c.Hold.Of)); done && key(was).number(0) == position {
		return failure{AlreadyReversed, 0}
	}
	v, ok := r.notes.reversalOf(event)
	if !ok {
		return failure{NotReversible, 0}
	}
	v.whole = v.codes == 0
	for i, st := range v.got {
		have := min(st.Quantity, r.balance(v.player, st.Item))
		v.whole = v.whole && have == st.Quantity
		if have > 0 {
			r.spend(v.player, st.Item, have)
			r.takeUnits(v.player, st.Item, have)
		}
		v.got[i].Quantity = have
	}
	if v.whole {
		for _, st := range v.paid {
			if f := r.gets(v.player, st); f.status != OK {
				return f
			}
		}
	}
	v.position = position
	r.undoes, r.missing = v, nil
	all, _ := r.notes.reversalOf(event)
	for i, st := range all.got {
		if n := st.Quantity - v.got[i].Quantity; n > 0 {
			r.missing = append(r.missing, Stack{st.Item, n})
		}
	}
	return failure{}
}

func (reverseKind) write(r *drawing, c *Command) {
	v := &r.undoes
	r.turn(v.player)
	for _, st := range v.got {
		if st.Quantity > 0 {
			r.change(store.Spend, st.Item, st.Quantity)
		}
	}
	for _, st := range r.missing {
		r.beyond(st.Item, st.Quantity, store.Missing)
	}
	if v.whole {
		for _, st := range v.paid {
			r.change(store.Gain, st.Item, st.Quantity)
		}
		for _, t := range v.taken {
			if t.pool < uint32(r.state.Pools()) {
				holding{hosting{r}}.putBack(t)
			}
		}
	}
	hosting{r}.record(r.notes.newKey(recordReversed).id(c.Hold.Of), key(nil).num(v.position))
}

// drawnOf returns how many of an entry were drawn, less what was put back.
func drawnOf(s *Sight, t taking) uint64 {
	put, _ := s.taken.get(uint64(t.pool)<<32 | uint64(t.entry))
	return s.state.DrawnOf(t.pool, t.entry) + put
}
