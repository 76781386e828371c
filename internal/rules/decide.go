package rules

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// Decide has two halves. The first checks everything that can fail, and uses no randomness. The
// second writes the effects and chooses the outcomes of draws, and cannot fail. So success never
// depends on what is drawn, and nobody can draw again for free by making unwanted outcomes fail:
//
//   - a pool must have enough stock for every choice: see sure;
//   - the most that draws can give must fit the player's balances;
//   - what a group's draws give cannot be spent in the same group.

// checks is the first half of a command: what it may do.
type checks struct {
	registry
	old    bool // decide as version 5 did
	failed int  // the member of a group that fails
	enters seat // the round that the command is about, and who joins it
	ending hold // the hold that it confirms or cancels
	undoing
}

// registry knows what records say.
type registry struct {
	accounts
	purchases string // how request ids begin that are never forgotten; empty: none are
	notes     noting
	turns     turns
}

// effects is the second half of a command: what it writes.
type effects struct {
	timing
	dice
	pool uint32 // the pool of the effects being written; noPool for none
	reaching
}

// timing is what the second half does to deadlines and mailboxes.
type timing struct {
	checks
	w *store.Writer
	deadlines
	over int // how often the event says what became of what was beyond a cap
}

// dice chooses.
type dice struct{ src Source }

// pendingDraw is a draw that has passed its checks.
type pendingDraw struct {
	player uint32
	pool   *Pool
	count  uint64
	cost   payment
	sets   int // the length of sets after it
}

// set is a counter that a draw sets.
type set struct {
	counter uint32
	value   uint64
}

// failure is why a command fails. The zero value is success.
type failure struct {
	status  Status
	subject uint32 // number of the pool or the item that it is about
}

const noPool = 1<<32 - 1

// Decide checks a command against the state, chooses its outcomes and writes the event to w. The
// command must have passed Check and [Finder.Resolve]. now is in Unix milliseconds. Decide takes
// values from src only for draws, and none if the command fails. The event must be applied before
// the next call.
func (r *Rules) Decide(cmd *Command, now int64, src Source, w *store.Writer) Status {
	r.begin(now, src, w)
	w.Begin(uint8(cmd.Kind), cmd.ID)
	r.finder.Resolve(r.t, cmd) // again, if another catalog came in between
	r.alone = cmd.Kind != KindAtomic && cmd.Kind != KindHold && cmd.Kind != KindConfirm
	k := cmd.Kind.of()
	f := r.barred(cmd)
	if f.status == OK {
		f = k.check(&r.checks, cmd)
	}
	if cmd.one() {
		w.Player(r.ref(cmd.who(&r.Sight), cmd.Player, f.status))
	}
	if f.status != OK {
		w.Fail(uint8(f.status), f.subject)
		r.writeWhy(f.status)
		w.EndWhy()
	}
	w.BeginAsked()
	k.ask(&r.effects, cmd, f.status)
	cmd.Note.write(w)
	w.EndAsked()
	r.player, r.pool = noPlayer, noPool
	if cmd.one() {
		r.player = cmd.who(&r.Sight)
	}
	switch f.status {
	case OK:
		r.values.reset()
		r.beginRuns()
		r.resetLots()
		r.resetMail()
		k.write(&r.drawing, cmd)
		if len(r.moving)+len(r.firings)+len(r.deadlines.touched) > 0 {
			r.writeMoves()
			r.fire()
			r.writeDeadlines()
		}
		if r.buys(cmd.ID) {
			w.Put(r.notes.newKey(recordPurchase).id(cmd.ID), nil)
		}
	case UnknownCode:
		writeGuess(&r.effects, cmd)
	case UnknownLinkCode:
		naming{&r.drawing}.writeGuess(cmd)
	}
	w.End()
	r.end()
	return f.status
}

// begin clears what is left of the command before.
func (r *Rules) begin(now int64, src Source, w *store.Writer) {
	r.Sight.begin(now)
	r.src, r.w, r.extra = src, w, 0
	if len(r.t.Growths) > 0 {
		r.extra = catalog.MaxGrown
	}
	r.comers, r.picks, r.draws, r.sets, r.taking = 0, 0, r.draws[:0], r.sets[:0], r.taking[:0]
	r.bills = r.bills[:0]
	r.next, r.firings, r.looked, r.fired, r.over = 0, r.firings[:0], 0, 0, 0
	r.heads.reset()
	r.collects = r.collects[:0]
	r.resetLots()
	r.resetMail()
}

// turn makes the next effects be about a player, and adds the player first if they are new. For one
// who comes, call arrive instead.
func (r *effects) turn(player uint32) {
	switch {
	case r.isNew(player):
		r.join(player)
		r.wait(player, 1)
	case player != r.player:
		r.w.Effect(store.Player, player)
		r.player = player
	}
}

// join adds a new player. New players must join in the order of their numbers.
func (r *effects) join(player uint32) {
	r.w.Join(r.fresh[r.joined])
	r.joined++
	r.player = player
	r.begins()
}

// change writes that the current player gets or gives up some of an item.
func (r *effects) change(v store.Verb, item uint32, q uint64) {
	if !r.t.ruled.Has(item) {
		r.w.Change(v, item, q)
		return
	}
	r.changeRuled(v, item, q)
}

// changeRuled is change for an item that has rules of its own, or that conditions ask for.
func (r *effects) changeRuled(v store.Verb, item uint32, q uint64) {
	g := r.t.GrowthOf(item)
	if g != nil {
		r.settleGrowth(g)
	}
	c := r.t.CapOf(item)
	if c != nil && v == store.Gain {
		if q = r.within(c, q); q == 0 {
			return
		}
	}
	r.changeBy(v, item, q, g, c != nil)
}

// changeBy is changeRuled once the cap is looked at. g is how the item grows, which is settled, or nil.
func (r *effects) changeBy(v store.Verb, item uint32, q uint64, g *Growth, capped bool) {
	r.w.Change(v, item, q)
	if r.t.Lasting.Has(item) {
		r.changeLots(v, item, q)
	}
	if g == nil && !capped && !r.t.Watched.Has(item) {
		return
	}
	have := r.balance(r.player, item)
	if g != nil {
		defer r.goesOn(g, have)
	}
	if v == store.Gain {
		have += q
	} else {
		have -= q
	}
	r.values.put(valueKey(r.player, item), have)
	for _, q := range r.t.asking[item] {
		r.reached(q)
	}
}

// maxPeak bounds sums that only tell whether a balance comes near MaxQuantity.
const maxPeak = 1 << 60

// given records that the command gives at most q of some item.
func (r *accounts) given(q uint64) { r.extra = min(r.extra+min(q, maxPeak), maxPeak) }

// fits reports whether a player's balance has room for q more of an item, in addition to the most
// that the command's draws can give, and to what is held: that may come back. It looks the balance up only if one may come near the limit.
func (r *accounts) fits(player, item uint32, q uint64) bool {
	if r.state.Peak()+r.extra+q <= MaxQuantity {
		return true
	}
	have := r.has(player, item)
	for i := range r.draws {
		if dr := &r.draws[i]; dr.player == player {
			have = min(have+dr.count*dr.pool.gainOf(item), maxPeak) // below 2^53 × 1000 each
		}
	}
	return have+q <= MaxQuantity
}

// fitTogether reports whether all of some items fit any balance. If not, they may still fit.
func (r *accounts) fitTogether(items []Stack) bool {
	sum := r.state.Peak() + r.extra // below 2^61, and the items below 2^59
	for _, st := range items {
		sum += st.Quantity
	}
	return sum <= MaxQuantity
}

// gain adds q to a balance and reports whether it fits. If the command is the only one in its event, nothing
// later asks for that balance: it names each item once.
func (r *accounts) gain(player, item uint32, q uint64) bool {
	if !r.fits(player, item, q) {
		return false
	}
	if !r.alone {
		r.values.put(valueKey(player, item), r.balance(player, item)+q)
	}
	r.given(q)
	return true
}

// spend subtracts q from a balance and reports whether there was enough.
func (r *accounts) spend(player, item uint32, q uint64) bool {
	have := r.balance(player, item)
	if have < q {
		return false
	}
	if !r.alone {
		r.values.put(valueKey(player, item), have-q)
	}
	return true
}
