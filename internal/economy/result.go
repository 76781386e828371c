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

// tablesAt returns the tables of a catalog version that is still kept.
func (s *State) tablesAt(version uint64) *tables {
	if version == s.current.version {
		return s.current
	}
	for _, t := range s.past {
		if t.version == version {
			return t
		}
	}
	return nil
}

// Outcomes returns what a Draw event gave under a catalog version: nil unless
// it ended OK. The result is read-only and shares memory with others.
func (s *State) Outcomes(ev *Event, version uint64) []Outcome {
	t := s.tablesAt(version)
	if t == nil || ev.Kind != KindDraw || ev.Status != OK {
		return nil
	}
	pt := t.pools[ev.Pool.Num]
	if len(ev.Choices) == 1 {
		if single := pt.entries[ev.Choices[0].Entry].single; single != nil {
			return single
		}
	}
	out := make([]Outcome, 0, ev.Count)
	quantities := ev.Quantities
	for i := 0; i < len(ev.Choices); {
		var o Outcome
		o.Entry = pt.entries[ev.Choices[i].Entry].id
		at := pt
		for ev.Choices[i].Nested {
			at = t.pools[at.entries[ev.Choices[i].Entry].pool]
			i++
			o.Via = append(o.Via, at.config.ID+"/"+at.entries[ev.Choices[i].Entry].id)
		}
		e := &at.entries[ev.Choices[i].Entry]
		i++
		if e.single != nil {
			o.Items = e.single[0].Items
		} else {
			o.Items, quantities = e.stacks(t, quantities)
		}
		out = append(out, o)
	}
	return out
}

// stacks returns what an entry with ranged quantities gave, and the quantities
// that belong to later entries.
func (e *entryTable) stacks(t *tables, quantities []uint64) ([]catalog.Stack, []uint64) {
	items := make([]catalog.Stack, len(e.items))
	for i, q := range e.items {
		n := q.min
		if q.min != q.max {
			n, quantities = quantities[0], quantities[1:]
		}
		items[i] = catalog.Stack{Item: e.config.Reward.Items[i].Item, Quantity: n}
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
