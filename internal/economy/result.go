package economy

import (
	"strings"

	"github.com/kuji-dev/kuji/catalog"
)

// Answer is what answered a remembered request id, and where it stands.
type Answer struct {
	raw      []byte
	Position uint64
	Index    uint32
	Time     int64
	Version  uint64 // of the catalog in force when it was decided
}

// Decode reads the event that answered, in so far as an answer needs it: what it
// gave, what it was about, and, for [State.Same], which command it answered. It
// must be called before the next Apply, and ev aliases memory that is kept for
// as long as ev is in use.
func (a Answer) Decode(ev *Event) error { return decodeAnswer(a.raw, ev) }

// Remembered returns the answer that a request id had, if the idempotency
// window still covers it.
func (s *State) Remembered(id string) (Answer, bool) {
	if id == "" {
		return Answer{}, false
	}
	r, ok := s.ids.find(id)
	if !ok {
		return Answer{}, false
	}
	return Answer{raw: r.answer, Position: r.position, Index: r.index, Time: r.time, Version: r.version}, true
}

// Outcomes returns what a Draw event gave under a catalog version: nil unless
// it ended OK. The result is read-only and shares memory with others.
func (s *State) Outcomes(ev *Event, version uint64) []Outcome {
	if ev.Kind != KindDraw || ev.Status != OK {
		return nil
	}
	if version == s.current.version && len(ev.Choices) == 1 {
		if single := s.single(ev.Pool.Num, ev.Choices[0]); single != nil {
			return single
		}
	}
	return s.AppendOutcomes(make([]Outcome, 0, ev.Count), ev, version)
}

// AppendOutcomes appends to out what a Draw event that ended OK gave, as Outcomes
// returns it, and returns nil where Outcomes does.
func (s *State) AppendOutcomes(out []Outcome, ev *Event, version uint64) []Outcome {
	asNow := version == s.current.version // nothing of it is superseded
	quantities, pool := ev.Quantities, ev.Pool.Num
	var o Outcome
	plain := 0 // choices at the start that are outcomes by themselves: mostly all
	if asNow && int(pool) < len(s.current.pools) && s.current.pools[pool] != nil && s.current.pools[pool].fixed {
		entries := s.current.pools[pool].entries
		for _, c := range ev.Choices {
			if c.Nested || int(c.Entry) >= len(entries) || entries[c.Entry].single == nil {
				break
			}
			out = append(out, entries[c.Entry].single[0])
			plain++
		}
	}
	for i := plain; i < len(ev.Choices); i++ {
		c := ev.Choices[i]
		first := i == 0 || !ev.Choices[i-1].Nested
		if asNow && first {
			if single := s.single(pool, c); single != nil {
				out = append(out, single[0])
				continue
			}
		}
		r, ok := s.rewardAt(version, pool, c.Entry)
		if !ok || int(pool) >= len(s.pools) || c.Nested != (r.kind == catalog.RewardPool) {
			return nil // an answer that a damaged snapshot has: no event that was applied is like that
		}
		p := s.pools[pool]
		if first {
			o.Entry = p.entryIDs[c.Entry]
		} else {
			o.Via = append(o.Via, p.id+"/"+p.entryIDs[c.Entry])
		}
		if c.Nested {
			pool = r.pool
			continue
		}
		if asNow && s.current.pools[pool].entries[c.Entry].single != nil {
			o.Items = s.current.pools[pool].entries[c.Entry].single[0].Items
		} else {
			o.Items, quantities = s.stacks(&r, quantities)
		}
		out = append(out, o)
		o, pool = Outcome{}, ev.Pool.Num
	}
	return out
}

// single returns what a choice gave under the catalog in force, nil when that
// takes more than the choice to know.
func (s *State) single(pool uint32, c Choice) []Outcome {
	if c.Nested || int(pool) >= len(s.current.pools) {
		return nil
	}
	pt := s.current.pools[pool]
	if pt == nil || int(c.Entry) >= len(pt.entries) {
		return nil
	}
	return pt.entries[c.Entry].single
}

// stacks returns what a reward gave, and the quantities that belong to later ones.
func (s *State) stacks(r *reward, quantities []uint64) ([]catalog.Stack, []uint64) {
	if len(r.items) == 0 {
		return nil, quantities
	}
	items := make([]catalog.Stack, len(r.items))
	for i, q := range r.items {
		n := q.min
		if q.min != q.max && len(quantities) > 0 {
			n, quantities = quantities[0], quantities[1:]
		}
		items[i] = catalog.Stack{Item: s.items[q.item].id, Quantity: n}
	}
	return items, quantities
}

// Subject returns the id that a status other than OK is about.
func (s *State) Subject(ev *Event) string {
	if ev.name != "" {
		return ev.name
	}
	at := ev
	if ev.Kind == KindAtomic && ev.Status != OK {
		at = &ev.Members[ev.Failed]
	}
	switch ev.Status {
	case InsufficientItems, BalanceOverflow:
		if int(ev.Subject) < len(s.items) {
			return s.items[ev.Subject].id
		}
	case SoldOut, LimitReached, NotStarted, Ended, CountTooLarge:
		if int(ev.Subject) < len(s.pools) {
			return s.pools[ev.Subject].id
		}
	case UnknownPool:
		return s.poolID(at.Pool)
	case UnknownItem:
		if int(ev.Subject) < len(at.Items) {
			return s.itemID(at.Items[ev.Subject].Ref)
		}
	}
	return ""
}

func (s *State) poolID(r Ref) string {
	if r.Known && int(r.Num) < len(s.pools) {
		return s.pools[r.Num].id
	}
	return r.ID
}

func (s *State) itemID(r Ref) string {
	if r.Known && int(r.Num) < len(s.items) {
		return s.items[r.Num].id
	}
	return r.ID
}

func (s *State) playerID(r Ref) string {
	if r.Known && int(r.Num) < s.players.count() {
		return s.players.id(r.Num)
	}
	return r.ID
}

// Same reports whether an event answered exactly this command.
func (s *State) Same(cmd *Command, ev *Event) bool {
	if ev.digested {
		return cmd.Kind == ev.Kind && cmd.digest() == ev.digest
	}
	if cmd.Kind != ev.Kind || len(cmd.Members) != len(ev.Members) {
		return false
	}
	for i := range cmd.Members {
		if cmd.Members[i].Kind != ev.Members[i].Kind || !s.sameBody(&cmd.Members[i], &ev.Members[i]) {
			return false
		}
	}
	return cmd.Kind == KindAtomic || s.sameBody(cmd, ev)
}

func (s *State) sameBody(cmd *Command, ev *Event) bool {
	if cmd.Player != s.playerID(ev.Player) || len(cmd.Items) != len(ev.Items) {
		return false
	}
	switch cmd.Kind {
	case KindDraw:
		return cmd.Pool == s.poolID(ev.Pool) && cmd.Count == int(ev.Count)
	case KindTransfer:
		if cmd.To != s.playerID(ev.To) {
			return false
		}
	}
	for i := range cmd.Items {
		if cmd.Items[i].Item != s.itemID(ev.Items[i].Ref) || cmd.Items[i].Quantity != ev.Items[i].Quantity {
			return false
		}
	}
	return true
}

// CommandOf returns the command that an event answered. Its strings are its own.
func (s *State) CommandOf(ev *Event) Command {
	c := Command{Kind: ev.Kind, ID: strings.Clone(ev.ID)}
	if ev.Kind == KindAtomic {
		base := s.players.count()
		var fresh []string
		for i := range ev.Members {
			m := s.commandBody(&ev.Members[i], base, &fresh)
			c.Members = append(c.Members, m)
		}
		return c
	}
	var fresh []string
	m := s.commandBody(ev, s.players.count(), &fresh)
	m.ID = c.ID
	return m
}

// commandBody is CommandOf for one member. Players that the group itself
// creates are numbered from base in order of appearance.
func (s *State) commandBody(ev *Event, base int, fresh *[]string) Command {
	player := func(r Ref) string {
		if !r.Known {
			id := strings.Clone(r.ID)
			*fresh = append(*fresh, id)
			return id
		}
		if n := int(r.Num) - base; n >= 0 && n < len(*fresh) {
			return (*fresh)[n]
		}
		return s.playerID(r)
	}
	c := Command{Kind: ev.Kind, Player: player(ev.Player), Count: int(ev.Count)}
	switch ev.Kind {
	case KindDraw:
		c.Pool = strings.Clone(s.poolID(ev.Pool))
	case KindTransfer:
		c.To = player(ev.To)
	}
	for i := range ev.Items {
		c.Items = append(c.Items, catalog.Stack{Item: strings.Clone(s.itemID(ev.Items[i].Ref)), Quantity: ev.Items[i].Quantity})
	}
	return c
}

// OldestAnswer returns the position of the oldest answer remembered, or that of
// the last event when there is none.
func (s *State) OldestAnswer() uint64 {
	if r, ok := s.ids.oldest(); ok {
		return r.position
	}
	return s.applied
}
