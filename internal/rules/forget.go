package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/internal/store"
)

// A Forget takes all that a player has, by effects, and then the names: two events. The first is the request's. What is
// staked comes back, and goes with the rest; the entrants who joined a round later move up. It leaves a record, which is
// due at once, with the numbers of the names. The second event erases them: see internal/store/erase.go. Nobody comes
// between: what lapses is settled before any command.
//
// The event says who it was, so that whoever has read the feed can forget the player too.

// forgetKind is a Forget.
type forgetKind struct{ noted }

func (forgetKind) alone() string { return "an atomic group cannot forget a player" }
func (forgetKind) barred() bool  { return false }

// ask writes how many names the player has, which of them was given, and all of them, the player's own first. The
// numbers will have none.
func (forgetKind) ask(r *effects, c *Command, status Status) {
	var all []uint32
	if status == OK {
		player, _ := r.state.Player(c.Player)
		all = namesOf(r.state, player)
	}
	given, _ := r.state.NumberOf(c.Player)
	r.w.Uint(max(uint64(len(all)), 1))
	r.w.Uint(uint64(max(slices.Index(all, given), 0)))
	for _, n := range all {
		writeText(r.w, r.state.PlayerID(n))
	}
	if len(all) == 0 {
		writeText(r.w, c.Player)
	}
}

func (forgetKind) asked(a *asked, c *Command) {
	names, given := a.names()
	if len(names) > 0 {
		c.Player = names[given]
	}
}

// names reads what ask wrote.
func (a *asked) names() (all []string, given uint64) {
	n := a.Uint("the number of names", MaxAliases+1)
	if given = a.Uint("which was given", MaxAliases); given >= n {
		a.Fail("name %d of %d", given, n)
		return nil, 0
	}
	for range n {
		all = append(all, a.text("a name", MaxID))
	}
	return all, given
}

// ForgottenBy returns all names of the player whom an event has forgotten, the player's own first.
func ForgottenBy(ev *store.Event) ([]string, error) {
	a := asked{Reader: store.NewReader(ev.Asked)}
	all, _ := a.names()
	return all, a.Err()
}

// namesOf returns the numbers of all names of a player, its own first.
func namesOf(s State, player uint32) []uint32 {
	return append([]uint32{player}, aliasesOf(s, player)...)
}

func (forgetKind) check(r *checks, c *Command) failure {
	if _, ok := r.state.Player(c.Player); !ok {
		return failure{UnknownPlayer, 0}
	}
	return failure{}
}

func (forgetKind) write(d *drawing, c *Command) {
	r := naming{d}
	player, _ := r.state.Player(c.Player)
	names := namesOf(r.state, player)
	r.leaveRounds(names)
	r.leaveHolds(names)
	r.turn(player)
	r.dropAll(player)
	r.dropCodeOf(player)
	if r.state.Blocked(player) {
		r.w.Drop(r.notes.newKey(recordBlock).short(player))
		r.identity(player, identityNone)
	}
	for _, n := range names[1:] {
		r.w.Drop(r.notes.newKey(recordAlias).short(player).short(n))
		r.identity(n, identityNone)
	}
	n := numbers{nil}
	for _, name := range names {
		n.add(uint64(name))
	}
	k := key{recordErase}.short(player)
	r.w.Put(k, n.b)
	r.lapses(uint64(r.steady), k)
	r.turn(player)
	r.unreached(player)
}

// dropAll writes that the player has no items, no mail and no counters any more.
func (r naming) dropAll(player uint32) {
	_, counters := r.state.Slots(player, nil, nil)
	for _, it := range holdingsOf(r.state, player) {
		if held := r.balance(player, store.HeldOf(it.item)); held > 0 {
			hosting(r).keep(store.Release, it.item, held)
		}
		if q := r.balance(player, it.item); q > 0 {
			r.change(store.Spend, it.item, q)
		}
	}
	b := r.mailbox(player)
	for i := range b.all {
		l := b.all[i]
		r.beyond(l.Item, l.Quantity, store.Gone)
		l.Quantity = 0
		r.writeLetter(&l)
		r.gone(player, l.Until)
	}
	b.all = b.all[:0]
	r.writeDeadlines()
	m := merging{naming: r, from: player}
	m.clear(counters)
}

// leaveRounds writes that a player has nothing to do with rounds any more, by no name. All that have somebody's stake
// are open.
func (r naming) leaveRounds(names []uint32) {
	var rounds []uint64
	for _, name := range names {
		from := key{recordPlays}.short(name)
		for k := range r.state.Records(from, from.after()) {
			if n := key(k).last(); !slices.Contains(rounds, n) {
				rounds = append(rounds, n)
			}
		}
	}
	for _, number := range rounds {
		r.leaveRound(number, names)
	}
}

// leaveHolds cancels what is held of a player, by all names, and forgets it.
func (r naming) leaveHolds(names []uint32) {
	for _, name := range names {
		var ids []string
		from := key{recordHeld}.short(name)
		for k := range r.state.Records(from, from.after()) {
			ids = append(ids, string(k[5:]))
		}
		for _, id := range ids {
			h, _ := r.notes.holdOf(id)
			if slices.ContainsFunc(names[:slices.Index(names, name)], h.names) {
				continue // it is cancelled already
			}
			holding{hosting(r)}.cancel(&h, holdCancelled, "")
			holding{hosting(r)}.forgetHold(&h)
		}
	}
}

// leaveRound gives back what a player has staked in a round, and lets those who joined later move up.
func (r naming) leaveRound(number uint64, names []uint32) {
	h, left, tickets := hosting(r), uint64(0), uint64(0)
	o, _ := r.notes.roundOf(number)
	for place := range o.entrants {
		e := r.notes.entrantOf(number, place)
		if !slices.Contains(names, e.joined) {
			if left > 0 {
				e.upto -= tickets
				h.seat(&o, place-left, &e)
			}
			continue
		}
		r.turn(e.player)
		for _, st := range e.held {
			h.keep(store.Release, st.Item, st.Quantity)
			o.held[indexOf(o.held, st.Item)].Quantity -= st.Quantity
		}
		r.w.Drop(r.notes.newKey(recordPlays).short(e.joined).num(number))
		left, tickets = left+1, tickets+e.tickets
	}
	for range left {
		o.entrants--
		r.w.Drop(r.notes.newKey(recordEntrant).num(number).short(uint32(o.entrants)))
	}
	o.tickets -= tickets
	o.held = slices.DeleteFunc(o.held, func(st Stack) bool { return st.Quantity == 0 })
	h.keepRound(&o)
}

// eraseNames writes that the names in a record of a Forget are erased.
func (r naming) eraseNames(value []byte) {
	for n := (numbers{value}); len(n.b) > 0; {
		name := uint32(n.next())
		r.w.Effect(store.Player, name)
		r.w.More(store.Erase)
		r.w.Text(r.state.PlayerID(name))
	}
}

// Erases finds the names that are to be erased, after a Forget.
func Erases(r *Rules, now int64, d *Due) bool {
	*d = Due{Players: d.Players[:0]}
	of, ok := r.notes.due(r.steadyAt(now))
	d.Round = of.round
	return ok && d.Lapses()
}
