package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/internal/store"
)

// Deciding has two halves. The first checks everything that can fail, and takes no
// randomness. The second writes the effects and chooses what the draws give, and cannot
// fail. So whether a command succeeds never depends on what is drawn, and nobody can draw
// again for free by making outcomes fail that they do not want:
//
//   - a draw must have stock whatever is chosen: see [Rules.sure];
//   - the most that its draws can give must fit the player's balances;
//   - what a group's draws give cannot be spent in the same group.

// decision is the scratch of one Decide: what a later part of the command must know of an
// earlier one.
type decision struct {
	now    int64
	src    Source
	w      *store.Writer
	base   uint32   // how many players there were
	fresh  []string // players that this command sees first; numbers follow base
	joined int      // of them: how many have their effects
	known  string   // the player of this command looked up last, and the number
	number uint32
	player uint32 // whom the effects at hand are of
	pool   uint32 // likewise, noPool for none

	values overlay  // by player number<<32 | item or counter: balances without what draws gave, and counters
	draws  []drawn  // found possible so far
	used   []uint64 // of each limit of the draw at hand
	sets   []set    // counters that they will set
	extra  uint64   // at least what the command has given of any one item so far, or maxPeak
	taken  overlay  // by pool number<<32 | entry number: how many were taken

	sure    []sureMemo // by pool number
	sureGen uint32
	window  []store.CounterValue // scratch of windows
}

// drawn is a draw that was found possible.
type drawn struct {
	player uint32
	pool   *poolTable
	count  uint64
	sets   int // how many of decision.sets are there after it
}

// set is a counter that a draw sets.
type set struct {
	counter uint32
	value   uint64
}

// failure is how a command ends that does not succeed, and what that is about.
type failure struct {
	status  Status
	subject store.Ref
}

const noPool = 1<<32 - 1

func (d *decision) init() {
	d.values.init()
	d.taken.init()
}

// Decide checks a command against the state, chooses its outcome, and writes the event.
// The command must have passed Check. It takes values from src only for draws, and none for
// a command that fails. The event must be applied before the next call.
func (r *Rules) Decide(cmd *Command, now int64, src Source, w *store.Writer) Status {
	d := &r.d
	d.now, d.src, d.w, d.extra = max(now, r.state.Now()), src, w, 0
	d.base, d.joined, d.fresh, d.draws, d.sets = r.state.Players(), 0, d.fresh[:0], d.draws[:0], d.sets[:0]
	d.known = "" // of another command
	d.values.reset()
	d.taken.reset()
	w.Begin(uint8(cmd.Kind), cmd.ID)
	if cmd.Kind == KindAtomic {
		return r.decideAtomic(cmd)
	}
	f := r.check(cmd)
	w.Player(r.playerRef(cmd.Player, f.status))
	r.fail(f)
	w.BeginAsked()
	r.ask(cmd, f.status)
	w.EndAsked()
	if f.status == OK {
		d.player, d.pool = r.see(cmd.Player), noPool
		r.write(cmd, 0)
	}
	w.End()
	return f.status
}

// check reports why a command, or a member of a group after those before it, will not
// succeed.
func (r *Rules) check(cmd *Command) failure {
	switch cmd.Kind {
	case KindDraw:
		return r.checkDraw(cmd)
	case KindGrant:
		return r.checkGrant(cmd)
	case KindConsume:
		return r.checkConsume(cmd)
	case KindTransfer:
		return r.checkTransfer(cmd)
	}
	panic("rules: Decide of a command that did not pass Check: " + cmd.Kind.String())
}

// write writes the effects of a command that was found possible; n of the command's draws
// are written already.
func (r *Rules) write(cmd *Command, n int) {
	switch cmd.Kind {
	case KindDraw:
		r.writeDraw(cmd, n)
	case KindGrant:
		r.writeGrant(cmd)
	case KindConsume:
		r.writeConsume(cmd)
	case KindTransfer:
		r.writeTransfer(cmd)
	}
}

func (r *Rules) fail(f failure) {
	if f.status != OK {
		r.d.w.Fail(uint8(f.status), f.subject)
	}
}

// see returns the number of a player in a command that will succeed or change nothing. One
// who is new gets a number and holds the starting grants from here on.
func (r *Rules) see(id string) uint32 {
	d := &r.d
	if id == d.known {
		return d.number
	}
	if n, ok := r.state.Player(id); ok {
		d.known, d.number = id, n
		return n
	}
	if i := slices.Index(d.fresh, id); i >= 0 {
		return d.base + uint32(i)
	}
	d.fresh = append(d.fresh, id)
	n := d.base + uint32(len(d.fresh)-1)
	for _, st := range r.t.start {
		d.values.put(valueKey(n, st.item), st.quantity)
		d.given(st.quantity)
	}
	return n
}

// playerRef names a player: by number, but for one who does not join after all.
func (r *Rules) playerRef(id string, status Status) store.Ref {
	if n := r.see(id); n < r.d.base || status == OK {
		return store.Ref{Num: n}
	}
	return store.Ref{ID: id}
}

// turn makes the effects that follow those of a player, who joins if need be.
func (r *Rules) turn(player uint32) {
	d := &r.d
	switch {
	case player >= d.base+uint32(d.joined):
		d.w.Join(d.fresh[d.joined])
		d.joined++
		for _, st := range r.t.start {
			d.w.Change(store.Gain, st.item, st.quantity)
		}
	case player != d.player:
		d.w.Effect(store.Player, player)
	}
	d.player = player
}

// counterKey marks the key of a counter among values.
const counterKey = 1 << 31

func valueKey(player, key uint32) uint64 { return uint64(player)<<32 | uint64(key) }

// balance returns what a player holds of an item at this point of the command, without
// what its draws give.
func (r *Rules) balance(player, item uint32) uint64 {
	if v, ok := r.d.values.get(valueKey(player, item)); ok {
		return v
	}
	return r.state.Balance(player, item)
}

// counter returns a player's counter at this point of the command.
func (r *Rules) counter(player, counter uint32) uint64 {
	if v, ok := r.d.values.get(valueKey(player, counterKey|counter)); ok {
		return v
	}
	return r.state.Counter(player, counter)
}

// maxPeak bounds sums that only tell whether a balance could come near MaxQuantity.
const maxPeak = 1 << 60

// given notes that the command gives up to q of some item.
func (d *decision) given(q uint64) { d.extra = min(d.extra+min(q, maxPeak), maxPeak) }

// fits reports whether q more of an item fit a player's balance, whatever the command's
// draws give. The balance matters only when some balance may come near the bound.
func (r *Rules) fits(player, item uint32, q uint64) bool {
	d := &r.d
	if r.state.Peak()+d.extra+q <= MaxQuantity {
		return true
	}
	have := r.balance(player, item)
	for i := range d.draws {
		if dr := &d.draws[i]; dr.player == player {
			have = min(have+dr.count*dr.pool.gainOf(item), maxPeak) // below 2^53 × 1000 each
		}
	}
	return have+q <= MaxQuantity
}

// give adds q to a balance and reports whether it fits.
func (r *Rules) give(player, item uint32, q uint64) bool {
	if !r.fits(player, item, q) {
		return false
	}
	r.d.values.put(valueKey(player, item), r.balance(player, item)+q)
	r.d.given(q)
	return true
}

// take subtracts q from a balance and reports whether there is enough.
func (r *Rules) take(player, item uint32, q uint64) bool {
	have := r.balance(player, item)
	if have < q {
		return false
	}
	r.d.values.put(valueKey(player, item), have-q)
	return true
}
