package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/internal/store"
)

// Decide has two halves. The first checks everything that can fail, and uses no randomness. The
// second writes the effects and chooses the outcomes of draws, and cannot fail. So success never
// depends on what is drawn, and nobody can draw again for free by making unwanted outcomes fail:
//
//   - a pool must have enough stock whatever is chosen: see [Rules.sure];
//   - the most that draws can give must fit the player's balances;
//   - what a group's draws give cannot be spent in the same group.

// decision is the scratch memory of one Decide: what later parts of the command must know about
// earlier ones.
type decision struct {
	now    int64 // the time stamp
	steady int64 // the steady time: see store.State.Back
	src    Source
	w      *store.Writer
	player uint32 // the player of the effects being written
	pool   uint32 // the pool of the effects being written; noPool for none

	// values are balances and counters, by player number<<32 | item or counter. In the first half they
	// are those at the point of the command that is checked, without the draws' gains. In the second
	// half they are those that the effects so far have left; of items, only those that conditions ask
	// for. So what a draw of a group gives depends on the members before it, not on those behind it.
	values overlay
	extra  uint64  // no less than what the command has given of any one item; at most maxPeak
	taken  overlay // how many were taken; by pool number<<32 | entry number
	coded  overlay // how many codes were given; by number of the list

	people
	checked
	picking
	spending
	paying
	why
	sureMemos
}

// people are the players of a command.
type people struct {
	base   uint32   // how many players there are before the command
	fresh  []string // players that the command adds; their numbers start at base
	joined int      // how many of fresh have a Join effect
	known  string   // the player looked up last in this command; number is theirs
	number uint32
}

// checked is what the first half found out for the second one.
type checked struct {
	draws  []drawn              // draws that have passed their checks
	picks  uint64               // the most entries that they can take
	used   []uint64             // of each limit of the current draw
	sets   []set                // counters that draws will set
	window []store.CounterValue // scratch memory of windowCounters
}

// drawn is a draw that has passed its checks.
type drawn struct {
	player uint32
	pool   *Pool
	count  uint64
	cost   payment
	sets   int // the length of decision.sets after it
}

// set is a counter that a draw sets.
type set struct {
	counter uint32
	value   uint64
}

// failure is why a command fails and what that is about. The zero value is success.
type failure struct {
	status  Status
	subject uint32 // number of the pool, or of the item
}

const noPool = 1<<32 - 1

func (d *decision) init() {
	d.values.init()
	d.taken.init()
	d.apart.init()
	d.coded.init()
	d.touches.init()
}

// Decide checks a command against the state, chooses its outcomes and writes the event to w. The
// command must have passed Check and [Rules.Unknown]. now is in Unix milliseconds. Decide takes
// values from src only for draws, and none if the command fails. The event must be applied before
// the next call.
func (r *Rules) Decide(cmd *Command, now int64, src Source, w *store.Writer) Status {
	r.begin(now, src, w)
	d := &r.d
	w.Begin(uint8(cmd.Kind), cmd.ID)
	defer d.end()
	if cmd.Kind == KindAtomic {
		return r.decideAtomic(cmd)
	}
	f := r.check(cmd)
	w.Player(r.playerRef(cmd.Player, f.status))
	r.fail(f)
	w.BeginAsked()
	r.ask(cmd, f.status)
	cmd.Note.write(w)
	w.EndAsked()
	d.player, d.pool = r.see(cmd.Player), noPool
	switch f.status {
	case OK:
		d.values.reset()
		r.write(cmd, 0)
	case UnknownCode:
		r.writeGuess(cmd)
	}
	w.End()
	return f.status
}

// begin clears what is left of the command before.
func (r *Rules) begin(now int64, src Source, w *store.Writer) {
	d := &r.d
	d.now, d.src, d.w, d.extra = max(now, r.state.Now()), src, w, 0
	d.base, d.joined, d.picks, d.draws, d.sets = r.state.Players(), 0, 0, d.draws[:0], d.sets[:0]
	d.values.reset()
	d.taken.reset()
	d.apart.reset()
	d.coded.reset()
	d.steady = d.now + r.state.Back()
}

// end lets go of the command, whose memory its caller may use again.
func (d *decision) end() {
	d.known = ""
	clear(d.fresh)
	d.fresh = d.fresh[:0]
}

// check reports whether a command, or the next member of a group, will fail.
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
	case KindSetTrack:
		return failure{} // nothing can stand in its way
	case KindRedeem:
		return r.checkRedeem(cmd)
	case KindRegister:
		return r.checkRegister(cmd)
	}
	panic("rules: Decide of a command that did not pass Check: " + cmd.Kind.String())
}

// write writes the effects of a command that has passed its checks. n draws of the command are
// already written.
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
	case KindSetTrack:
		r.writeSetTrack(cmd)
	case KindRedeem:
		r.writeRedeem(cmd)
	case KindRegister:
		r.writeRegister(cmd)
	}
}

func (r *Rules) fail(f failure) {
	if f.status != OK {
		r.d.w.Fail(uint8(f.status), f.subject)
		r.writeWhy(f.status)
		r.d.w.EndWhy()
	}
}

// see returns the number of a player. A new player gets a number and waits for the starting grants:
// see come. The command must either succeed, or leave the player out of its event, or count what
// failed.
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
	if r.t.waiting != noCounter {
		d.values.put(valueKey(n, counterKey|r.t.waiting), 1)
	}
	return n
}

// playerRef refers to a player by number, or by id if the player is new and the command fails.
func (r *Rules) playerRef(id string, status Status) store.Ref {
	if n := r.see(id); n < r.d.base || status == OK {
		return store.Ref{Num: n}
	}
	return store.Ref{ID: id}
}

// turn makes a player the one that the next effects are about. It adds the player first if they
// are new. For those who come, call arrive instead.
func (r *Rules) turn(player uint32) {
	switch d := &r.d; {
	case r.isNew(player):
		r.join(player)
		r.wait(player, 1)
	case player != d.player:
		d.w.Effect(store.Player, player)
		d.player = player
	}
}

// isNew reports whether the effects so far have not added a player yet.
func (r *Rules) isNew(player uint32) bool { return player >= r.d.base+uint32(r.d.joined) }

// join adds a new player, in the order of their numbers.
func (r *Rules) join(player uint32) {
	d := &r.d
	d.w.Join(d.fresh[d.joined])
	d.joined++
	d.player = player
}

// change writes that the player whose turn it is gets or gives up some of an item.
func (r *Rules) change(v store.Verb, item uint32, q uint64) {
	d := &r.d
	d.w.Change(v, item, q)
	if !r.t.Watched.Has(item) {
		return
	}
	have := r.balance(d.player, item)
	if v == store.Gain {
		have += q
	} else {
		have -= q
	}
	d.values.put(valueKey(d.player, item), have)
}

// counterKey marks the keys of counters among values.
const counterKey = 1 << 31

func valueKey(player, key uint32) uint64 { return uint64(player)<<32 | uint64(key) }

// balance returns how many of an item a player holds at this point of the command: see
// decision.values.
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

// given records that the command gives at most q of some item.
func (d *decision) given(q uint64) { d.extra = min(d.extra+min(q, maxPeak), maxPeak) }

// fits reports whether a player's balance has room for q more of an item, whatever the command's
// draws give. It looks up the balance only if some balance may come near the limit.
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

// gain adds q to a balance and reports whether it fits.
func (r *Rules) gain(player, item uint32, q uint64) bool {
	if !r.fits(player, item, q) {
		return false
	}
	r.d.values.put(valueKey(player, item), r.balance(player, item)+q)
	r.d.given(q)
	return true
}

// spend subtracts q from a balance and reports whether there was enough.
func (r *Rules) spend(player, item uint32, q uint64) bool {
	have := r.balance(player, item)
	if have < q {
		return false
	}
	r.d.values.put(valueKey(player, item), have-q)
	return true
}
