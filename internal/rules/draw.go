package rules

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

type drawKind struct{ plain }

func (drawKind) form(c *Command) *CommandError {
	if err := checkPool(c.Pool); err != nil {
		return err
	}
	switch {
	case c.Count < 1 || c.Count > MaxDrawCount:
		return malformed("count", "%d; 1 to %d are allowed", c.Count, MaxDrawCount)
	case len(c.Pay) > catalog.MaxID:
		return malformed("pay", "%d bytes long; want the id of an item, at most %d bytes", len(c.Pay), catalog.MaxID)
	}
	return nil
}

func (drawKind) resolve(f *Finder, c *Command) *CommandError {
	switch c.pool = f.pool(c.Pool); {
	case c.pool == nil:
		return f.unknown("pool", "pool", c.Pool)
	case c.pool.Config.Internal:
		return malformed("pool", "%q is internal: only other pools draw from it", c.Pool)
	case c.Pay == "":
		return nil
	}
	num, ok := named(f.Tables, c.Pay)
	if c.pay = num; !ok {
		return f.unknown("pay", "item or family", c.Pay)
	}
	return nil
}

func (drawKind) ask(r *effects, c *Command, _ Status) {
	r.w.Uint(uint64(c.pool.Num))
	if c.Pay == "" {
		r.w.Uint(uint64(c.Count) << 1)
		return
	}
	r.w.Uint(uint64(c.Count)<<1 | 1)
	r.w.Uint(uint64(c.pay))
}

func (drawKind) asked(a *asked, c *Command) {
	c.Pool = a.name("the pool", a.state.PoolID)
	count := a.Uint("the count", MaxDrawCount<<1|1)
	if c.Count = int(count >> 1); count&1 == 1 {
		c.Pay = a.name("the item to pay with", a.state.ItemID)
	}
}

// check reports whether a Draw will fail. Nothing here depends on what is chosen.
func (drawKind) check(r *checks, cmd *Command) failure {
	player, f := r.mayAsk(cmd)
	if f.status == OK && !r.alone {
		r.drawn(cmd.pool.moves, player, uint64(cmd.Count))
	}
	return f
}

// mayAsk is check without the fact that the draws are: counters stand where they do before the first one.
func (r *checks) mayAsk(cmd *Command) (uint32, failure) {
	player, f := r.mayBuy(cmd)
	if f.status == OK && !r.alone {
		cost := &r.draws[len(r.draws)-1].cost
		r.each(r.t.spends, player, cost.price, cost.times)
	}
	return player, f
}

// mayBuy is mayAsk without the fact that the price is spent.
func (r *checks) mayBuy(cmd *Command) (uint32, failure) {
	pt, count := cmd.pool, uint64(cmd.Count)
	player, f := r.come(cmd)
	if f.status != OK {
		return player, f
	}
	if f := r.mayDraw(pt, player, count); f.status != OK {
		return player, f
	}
	if len(pt.Config.Redeem) > 0 && len(pt.price) == 0 {
		return player, failure{CodeRequired, pt.Num}
	}
	cost := r.nextCost()
	if f := r.pay(cmd, player, count, cost); f.status != OK {
		return player, f
	}
	return player, r.addDraw(pt, player, count)
}

// mayDraw reports why a pool refuses draws to a player, however they are paid.
func (r *checks) mayDraw(pt *Pool, player uint32, count uint64) failure {
	c, pool := pt.Config, pt.Num
	switch {
	case c.StartsAt != 0 && r.now < c.StartsAt:
		return failure{NotStarted, pool}
	case c.EndsAt != 0 && r.now >= c.EndsAt:
		return failure{Ended, pool}
	case count > uint64(c.MaxCount), r.picks+count*pt.Picks > catalog.MaxRequestPicks:
		return failure{CountTooLarge, pool}
	case !pt.when.empty() && !pt.when.Met(&r.Sight):
		return failure{NotEligible, pool}
	case !r.withinLimits(pt, player, count):
		return failure{LimitReached, pool}
	}
	return failure{}
}

// nextCost returns what the draws cost that addDraw adds next: nothing yet.
func (r *checks) nextCost() *payment {
	r.draws = append(r.draws, pendingDraw{})
	p := &r.draws[len(r.draws)-1]
	r.draws = r.draws[:len(r.draws)-1]
	return &p.cost
}

// addDraw adds draws to the command, paid as nextCost says, unless what they could give is not there or does
// not fit.
func (r *checks) addDraw(pt *Pool, player uint32, count uint64) failure {
	if f := r.mayGet(pt, player, count); f.status != OK {
		return f
	}
	r.count(pt, player, count)
	r.pend(pt, player, count)
	return failure{}
}

// mayGet checks that what draws could give is there, and fits.
func (r *checks) mayGet(pt *Pool, player uint32, count uint64) failure {
	if !r.inStock(pt, player, count) {
		return failure{SoldOut, pt.Num}
	}
	if item, ok := r.fitsAll(pt, player, count); !ok {
		return failure{BalanceOverflow, item}
	}
	for _, g := range pt.capped {
		if f := r.fill(r.t.CapOf(g.Item), player, g.Quantity*count, false); f.status != OK {
			return f
		}
	}
	if len(pt.lasting) > 0 {
		if item, ok := r.placeDrawn(pt, player, count); !ok {
			return failure{TooManyLots, item}
		}
	}
	return failure{}
}

// pend adds draws that have passed their checks.
func (r *checks) pend(pt *Pool, player uint32, count uint64) {
	r.draws = r.draws[:len(r.draws)+1]
	d := &r.draws[len(r.draws)-1]
	d.player, d.pool, d.count, d.sets = player, pt, count, len(r.sets)
	r.given(pt.maxGain * count)
	r.picks += count * pt.Picks
}

// inStock reports whether a pool has stock for count draws after the command's earlier ones, whatever
// is chosen in them.
func (r *checks) inStock(pt *Pool, player uint32, count uint64) bool {
	if pt.Endless {
		return true
	}
	need := count * uint64(pt.Config.Rolls.Max)
	for i := range r.draws[r.next:] {
		if dr := &r.draws[r.next+i]; dr.pool.reach.meets(pt.reach) {
			need += dr.count * dr.pool.leaves
		}
	}
	for _, held := range r.kept.draws {
		if other := poolOf(r.t, held.Item); other != nil && other.reach.meets(pt.reach) {
			need += (held.Quantity - keptOf(r.freed, held.Item)) * other.leaves
		}
	}
	if pt.Collect {
		return r.collected(pt, player, need) >= need
	}
	if need == 1 {
		return r.pools[pt.Num].live > 0
	}
	return r.sure(pt, need) == need
}

// fitsAll reports whether the player's balances have room for the most that count draws can give.
// If not, it returns the first item that does not fit.
func (r *accounts) fitsAll(pt *Pool, player uint32, count uint64) (item uint32, ok bool) {
	if r.state.Peak()+r.extra+pt.maxGain*count <= MaxQuantity {
		return 0, true
	}
	for _, g := range pt.Gains {
		if !r.t.Capped.Has(g.Item) && !r.fits(player, g.Item, g.Quantity*count) { // see fill
			return g.Item, false
		}
	}
	return 0, true
}

// drawing is what the draws of a command have done so far.
type drawing struct {
	effects
	tracked []uint32  // counters of tracks that the current draw has changed, in the order of the first change
	spentOf []*Budget // budgets that it has spent from, in the same order
	touches overlay   // 1 for the counters of both
	picked  []uint64  // what draws without repetition have taken so far; by entryKey
	open    []*Budget // what is given now comes from these
	aside   aside     // where what is drawn goes; nil: the player gets it
}

// aside is where outcomes go that the player does not get at once.
type aside interface {
	took(r *drawing, pt *Pool, entry uint32)
	lay(r *drawing, item uint32, q uint64)
	codes(r *drawing, lists []uint32)
	spent(b *Budget, q uint64)
	moment(m *Moments)
}

func (drawKind) write(r *drawing, _ *Command) { r.writeDraw() }

// writeDraw writes the effects of the command's next draw: price, outcomes and counters.
func (r *drawing) writeDraw() {
	dr, sets := r.nextDraw()
	r.arrive(dr.player)
	r.writePrice(&dr.cost)
	r.each(r.t.spends, dr.player, dr.cost.price, dr.cost.times)
	r.drawEvery(dr)
	for _, s := range sets {
		r.w.Change(store.Set, s.counter, s.value)
	}
	r.endDraw()
}

// drawEvery makes the draws of a player from a pool.
func (r *drawing) drawEvery(dr *pendingDraw) {
	if len(dr.pool.Must) > 0 {
		drawAll(r, dr)
		return
	}
	for range dr.count {
		if !dr.pool.single {
			r.w.More(store.Draw)
		}
		r.draw(dr.pool, 0)
		r.fact(dr.pool.moves, dr.player, 1)
	}
}

// drawAll is drawEvery for a pool with guarantees. It has single rolls.
func drawAll(r *drawing, dr *pendingDraw) {
	var hits [catalog.MaxTracks]uint64 // by guarantee
	for i := range dr.count {
		due := dr.pool.Due(i, dr.count, &hits, func() []uint64 {
			return r.Sums(dr.pool, true)
		}, &r.Sight)
		dr.pool.Hit(r.draw(dr.pool, due), &hits)
		r.fact(dr.pool.moves, dr.player, 1)
	}
}

// nextDraw returns the next draw that has passed its checks, and the counters that it sets.
func (r *drawing) nextDraw() (dr *pendingDraw, sets []set) {
	first := 0
	if r.next > 0 {
		first = r.draws[r.next-1].sets
	}
	dr = &r.draws[r.next]
	r.next++
	return dr, r.sets[first:dr.sets]
}

// endDraw writes the tracks and budgets that a draw has changed.
func (r *drawing) endDraw() {
	for _, c := range r.tracked {
		r.w.Change(store.Set, c, r.counter(r.player, c))
	}
	r.tracked = r.tracked[:0]
	if len(r.spentOf) > 0 {
		r.writeBudgets()
	}
	r.touches.reset()
}

// draw makes one draw from a pool: it picks entries, takes them and gives their rewards. due is the
// group of a guarantee that must be hit, or 0. A pool with guarantees has single rolls: draw returns
// the groups that such a roll hit.
func (r *drawing) draw(pt *Pool, due uint32) (groups uint32) {
	if pt.single {
		entry := r.pick(pt, due)
		r.take(pt, entry)
		return pt.Classes[pt.Entries[entry].Class].Groups
	}
	n := r.between(uint64(pt.Config.Rolls.Min), uint64(pt.Config.Rolls.Max))
	switch {
	case pt.Config.Mode == catalog.ModeEach:
		r.drawEach(pt, n)
	case pt.Config.Rolls.Distinct:
		r.drawDistinct(pt, n)
	default:
		for range n {
			r.take(pt, r.pick(pt, 0))
		}
	}
	return 0
}

// between chooses a number from a range, each as likely as any other.
func (r *dice) between(low, high uint64) uint64 {
	if low == high {
		return low
	}
	return low + r.below(high-low+1)
}

func (r *dice) below(n uint64) uint64 { return uniform(r.src, n) }

// drawEach rolls n times for every entry of a drop table.
func (r *drawing) drawEach(pt *Pool, n uint64) {
	certain := 100 * pt.Config.WeightScale
	for range n {
		for _, num := range pt.Order {
			if w := pt.Weigh(&r.Sight, num, true); w > 0 && uniform(r.src, certain) < w {
				r.take(pt, num)
			}
		}
	}
}

// drawDistinct picks n entries, none twice; fewer if there are no more.
func (r *drawing) drawDistinct(pt *Pool, n uint64) {
	first := len(r.picked)
	for range n {
		if r.Sums(pt, true); pt.Among(r.sums, 0, 0) == 0 {
			break
		}
		entry := r.pick(pt, 0)
		r.take(pt, entry)
		r.picked = append(r.picked, entryKey(pt, entry))
		r.apart.put(entryKey(pt, entry), 1)
		r.setWeight(pt, entry, 0)
	}
	for _, key := range r.picked[first:] {
		entry := uint32(key)
		r.apart.put(key, 0)
		r.setWeight(pt, entry, pt.Weigh(&r.Sight, entry, true))
	}
	r.picked = r.picked[:first]
}

// take takes an entry from its stock and gives the reward.
func (r *drawing) take(pt *Pool, entry uint32) {
	e := &pt.Entries[entry]
	if e.Limited {
		key := entryKey(pt, entry)
		taken, _ := r.taken.get(key)
		r.taken.put(key, taken+1)
		r.lower(pt, entry, r.leftOf(pt, entry, taken+1))
	}
	if r.pool != pt.Num {
		r.w.Effect(store.Pool, pt.Num)
		r.pool = pt.Num
	}
	r.w.Effect(store.Take, entry)
	if r.aside == nil {
		r.fact(e.moves, r.player, 1)
	} else {
		r.aside.took(r, pt, entry)
	}
	if len(e.Costs) == 0 {
		r.give(&e.Reward)
	} else {
		r.giveFromBudgets(e)
	}
	if pt.raffle && r.pools[pt.Num].live == 0 {
		r.boxEmptied(pt)
	}
}

func (r *drawing) give(w *Reward) {
	for i := range w.Items {
		it := &w.Items[i]
		q := r.between(it.Min, it.Max)
		if r.aside != nil {
			r.aside.lay(r, it.Item, q)
		} else {
			r.change(store.Gain, it.Item, q)
			if r.t.gains != nil {
				r.fact(r.t.gains[it.Item], r.player, q)
			}
		}
		if len(r.open) > 0 {
			r.spendBudgets(it.Item, q)
		}
	}
	switch {
	case len(w.Codes) > 0 && r.aside != nil:
		r.aside.codes(r, w.Codes)
	case len(w.Codes) > 0:
		r.giveCodes(w)
	}
	for i := range w.Inner {
		in := &w.Inner[i]
		for range r.between(in.Min, in.Max) {
			r.draw(in.Pool, 0)
		}
	}
}

// Look shows f what chance depends on for a player, "" for nobody, at a time stamp.
func (r *Rules) Look(player string, now int64, f func(*Sight)) {
	r.begin(now, nil, nil)
	defer r.end()
	if player != "" {
		r.player = r.see(player)
	}
	f(&r.Sight)
}

// newcomer is the id of a player who was never seen. No player has so long an id.
const newcomer = "a player whose id is longer than the id of any player ever can be"

// Try returns how a player's next request for draws would end, and the id that a failure is about. It
// shows f what chance depends on in that request, with the price already spent. The player "" is one
// who was never seen, and need not pay.
func (r *Rules) Try(pt *Pool, player string, count int, now int64, f func(Facts)) (status Status, subject string) {
	cmd := Command{Kind: KindDraw, Player: player, Pool: pt.Config.ID, Count: count}
	if player == "" {
		cmd.Player = newcomer
	}
	r.finder.Resolve(r.t, &cmd)
	r.Look(cmd.Player, now, func(s *Sight) {
		_, fail := r.mayAsk(&cmd)
		if fail.status == CodeRequired || player == "" && fail.status == InsufficientItems {
			fail = failure{}
			if !r.inStock(pt, s.player, uint64(count)) {
				fail = failure{SoldOut, pt.Num}
			}
		}
		if pt.Config.Internal {
			fail = failure{Refused, pt.Num}
		}
		switch status = fail.status; status {
		case OK:
		case InsufficientItems, BalanceOverflow, TooManyLots, MostReached, MailboxFull:
			subject = r.state.ItemID(fail.subject)
		default:
			subject = r.state.PoolID(fail.subject)
		}
		f(s)
	})
	return status, subject
}
