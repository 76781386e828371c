package rules

import "github.com/kuji-dev/kuji/internal/store"

// A player comes, and gets the starting grants, with the first draw, code or grant, or by registering.
// A player can be in the realm before that: after a transfer, a track that was set, or a guess at a
// code. Then they wait, and a counter says so. So nobody gets starting grants twice, and an account
// that only passes items on gets none.

// startName is the name of the counter: 1 while a player waits.
const startName = "/start"

type starting struct {
	Start   []Stack
	waiting uint32 // number of the counter startName; noCounter: nobody waits
}

// noCounter is no counter's number.
const noCounter = 1<<32 - 1

func (r *checks) waits(player uint32) bool {
	return r.t.waiting != noCounter && r.counter(player, r.t.waiting) != 0
}

// come returns the number of a player who comes, and adds the starting grants to what they hold. It
// fails if the grants do not fit: a player who waits may hold much already.
func (r *checks) come(c *Command) (player uint32, f failure) {
	player = c.who(&r.Sight)
	r.player = player
	if !r.waits(player) {
		return player, f
	}
	r.comers++
	r.values.put(valueKey(player, counterKey|r.t.waiting), 0)
	alone := r.alone
	r.alone = false // the command may ask for these balances
	for _, st := range r.t.Start {
		if f := r.gets(player, st); f.status != OK {
			return player, f
		}
	}
	r.alone = alone
	r.each(r.t.gains, player, r.t.Start, 1)
	return player, f
}

// arrive is turn for a player who comes.
func (r *effects) arrive(player uint32) {
	switch {
	case r.comers == 0: // nobody does
		r.turn(player)
		return
	case r.isNew(player):
		r.join(player)
	case r.waits(player):
		r.turn(player)
		r.wait(player, 0)
	default:
		r.turn(player)
		return
	}
	for _, st := range r.t.Start {
		r.change(store.Gain, st.Item, st.Quantity)
	}
	r.each(r.t.gains, player, r.t.Start, 1)
}

// wait writes that a player waits, 1, or does not wait any more, 0.
func (r *effects) wait(player uint32, v uint64) {
	if r.t.waiting == noCounter {
		return
	}
	r.w.Change(store.Set, r.t.waiting, v)
	r.values.put(valueKey(player, counterKey|r.t.waiting), v)
}

type registerKind struct{ noted }

func (registerKind) resolve(f *Finder, c *Command) *CommandError {
	if f.Version == 0 { // it would come too early for the starting grants
		return malformed("player", "%q cannot register: the realm has no catalog yet", c.Player)
	}
	return nil
}

func (registerKind) check(r *checks, c *Command) failure {
	_, f := r.come(c)
	return f
}

func (registerKind) write(r *drawing, c *Command) { r.arrive(c.who(&r.Sight)) }
