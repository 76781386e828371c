package rules

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// checkDraw reports whether a Draw will fail. Nothing here depends on what is chosen.
func (r *Rules) checkDraw(cmd *Command) failure {
	pt := r.findPool(cmd.Pool)
	count := uint64(cmd.Count)
	player, f := r.come(cmd.Player)
	if f.status != OK {
		return f
	}
	if f := r.mayDraw(pt, player, count); f.status != OK {
		return f
	}
	if len(pt.Config.Redeem) > 0 && len(pt.price) == 0 {
		return failure{CodeRequired, pt.Num}
	}
	var cost payment
	if f := r.pay(pt, player, count, cmd.Pay, &cost); f.status != OK {
		return f
	}
	return r.addDraw(pt, player, count, &cost)
}

// mayDraw reports whether a pool will refuse draws of a player, however they are paid.
func (r *Rules) mayDraw(pt *Pool, player uint32, count uint64) failure {
	c, pool := pt.Config, pt.Num
	switch {
	case c.StartsAt != 0 && r.d.now < c.StartsAt:
		return failure{NotStarted, pool}
	case c.EndsAt != 0 && r.d.now >= c.EndsAt:
		return failure{Ended, pool}
	case count > uint64(c.MaxCount), r.d.picks+count*pt.Picks > catalog.MaxRequestPicks:
		return failure{CountTooLarge, pool}
	case !pt.when.empty() && !pt.when.Met(r.person(player)):
		return failure{NotEligible, pool}
	case !r.withinLimits(pt, player, count):
		return failure{LimitReached, pool}
	}
	return failure{}
}

// addDraw adds draws that are paid to the command, unless what they could give is not there or does
// not fit.
func (r *Rules) addDraw(pt *Pool, player uint32, count uint64, cost *payment) failure {
	if !r.inStock(pt, player, count) {
		return failure{SoldOut, pt.Num}
	}
	if item, ok := r.fitsAll(pt, player, count); !ok {
		return failure{BalanceOverflow, item}
	}
	r.count(pt, player, count)
	r.d.draws = append(r.d.draws, drawn{player, pt, count, *cost, len(r.d.sets)})
	r.d.given(pt.maxGain * count)
	r.d.picks += count * pt.Picks
	return failure{}
}

// findPool returns a pool of the catalog in force, nil if it has none with this id. It remembers
// the last one: most draws in a row are from one pool.
func (r *Rules) findPool(id string) *Pool {
	if r.recent == nil || r.recent.Config.ID != id {
		pt := r.t.PoolByID[id]
		if pt == nil {
			return nil
		}
		r.recent = pt
	}
	return r.recent
}

// inStock reports whether a pool has enough stock for count draws after the command's earlier
// ones, whatever is chosen.
func (r *Rules) inStock(pt *Pool, player uint32, count uint64) bool {
	if pt.Endless {
		return true
	}
	need := count * uint64(pt.Config.Rolls.Max)
	for i := range r.d.draws {
		if dr := &r.d.draws[i]; dr.pool.overlaps(pt) {
			need += dr.count * dr.pool.leaves
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
func (r *Rules) fitsAll(pt *Pool, player uint32, count uint64) (item uint32, ok bool) {
	if r.state.Peak()+r.d.extra+pt.maxGain*count <= MaxQuantity {
		return 0, true
	}
	for _, g := range pt.Gains {
		if !r.fits(player, g.Item, g.Quantity*count) {
			return g.Item, false
		}
	}
	return 0, true
}

// writeDraw writes the effects of the command's draw number n: the price, the outcomes and the
// counters of limits and tracks.
func (r *Rules) writeDraw(cmd *Command, n int) {
	d := &r.d
	dr := &d.draws[n]
	r.arrive(dr.player)
	r.writePrice(&dr.cost)
	var hits [catalog.MaxTracks]uint64 // by guarantee
	for i := range dr.count {
		if !dr.pool.single {
			d.w.More(store.Draw)
		}
		if len(dr.pool.Must) == 0 {
			r.draw(dr.pool, 0)
			continue
		}
		due := dr.pool.Due(i, dr.count, &hits, func() []uint64 {
			r.weigh(dr.pool, true)
			return d.sums
		}, func(t *Track) uint64 { return r.next(t) })
		dr.pool.Hit(r.draw(dr.pool, due), &hits)
	}
	first := 0
	if n > 0 {
		first = d.draws[n-1].sets
	}
	for _, s := range d.sets[first:dr.sets] {
		d.w.Change(store.Set, s.counter, s.value)
	}
	r.writeTracks()
	r.writeBudgets()
	d.touches.reset()
}

// draw makes one draw from a pool: it picks entries, takes them and gives their rewards. due is the
// group of a guarantee that must be hit, or 0; a pool with guarantees has single rolls. draw returns
// the groups that a single roll hit.
func (r *Rules) draw(pt *Pool, due uint32) (groups uint32) {
	switch {
	case pt.single:
		entry := r.pick(pt, due)
		r.take(pt, entry)
		return pt.Classes[pt.Entries[entry].Class].Groups
	case pt.Config.Mode == catalog.ModeEach:
		r.drawEach(pt)
		return 0
	}
	rolls := pt.Config.Rolls
	n := uint64(rolls.Min)
	if rolls.Min != rolls.Max {
		n += uniform(r.d.src, uint64(rolls.Max-rolls.Min)+1)
	}
	if rolls.Distinct {
		r.drawDistinct(pt, n)
		return 0
	}
	for range n {
		r.take(pt, r.pick(pt, 0))
	}
	return 0
}

// drawEach rolls every entry of a drop table by itself.
func (r *Rules) drawEach(pt *Pool) {
	rolls := pt.Config.Rolls
	n := uint64(rolls.Min)
	if rolls.Min != rolls.Max {
		n += uniform(r.d.src, uint64(rolls.Max-rolls.Min)+1)
	}
	certain, p := 100*pt.Config.WeightScale, r.person(r.d.player)
	for range n {
		for _, num := range pt.Order {
			e := &pt.Entries[num]
			if e.Weight == 0 || e.Limited && r.left(pt, num) == 0 || !e.When.Met(p) || !r.affords(e) || !r.codesLeft(&e.Reward) {
				continue
			}
			if uniform(r.d.src, certain) < e.Weight {
				r.take(pt, num)
			}
		}
	}
}

// drawDistinct picks n entries, none of them twice, or fewer if there are no more.
func (r *Rules) drawDistinct(pt *Pool, n uint64) {
	d := &r.d
	first := len(d.picked)
	for range n {
		if r.weigh(pt, true); pt.Among(r.d.sums, 0, 0) == 0 {
			break
		}
		entry := r.pick(pt, 0)
		r.take(pt, entry)
		d.picked = append(d.picked, EntryKey(pt, entry))
		d.apart.put(EntryKey(pt, entry), 1)
		r.setWeight(pt, entry, 0)
	}
	for _, key := range d.picked[first:] {
		entry := uint32(key)
		d.apart.put(key, 0)
		r.setWeight(pt, entry, r.weight(pt, entry, r.left(pt, entry)))
	}
	d.picked = d.picked[:first]
}

// isPicked reports whether a draw without repetition has taken an entry and is not over.
func (r *Rules) isPicked(pt *Pool, entry uint32) bool {
	picked, _ := r.d.apart.get(EntryKey(pt, entry))
	return picked == 1
}

func EntryKey(pt *Pool, entry uint32) uint64 { return uint64(pt.Num)<<32 | uint64(entry) }

// left returns what is left of an entry's stock at this point of the command.
func (r *Rules) left(pt *Pool, entry uint32) uint64 {
	if !pt.Entries[entry].Limited {
		return r.state.Left(pt.Num, entry)
	}
	taken, _ := r.d.taken.get(EntryKey(pt, entry))
	return r.leftOf(pt, entry, taken)
}

// leftOf returns what is left of a limited entry of which the command has taken some. That is
// negative, in a ring of 64 bits, after the command has put back what others took.
func (r *Rules) leftOf(pt *Pool, entry uint32, taken uint64) uint64 {
	stock := pt.Entries[entry].Config.Stock.Count
	return stock - min(stock, r.state.DrawnOf(pt.Num, entry)+taken) // a catalog may have lowered the stock
}

// take takes one of an entry from its stock and gives the reward.
func (r *Rules) take(pt *Pool, entry uint32) {
	d, e := &r.d, &pt.Entries[entry]
	if e.Limited {
		key := EntryKey(pt, entry)
		taken, _ := d.taken.get(key)
		d.taken.put(key, taken+1)
		r.lower(pt, entry, r.leftOf(pt, entry, taken+1))
	}
	if d.pool != pt.Num {
		d.w.Effect(store.Pool, pt.Num)
		d.pool = pt.Num
	}
	d.w.Effect(store.Take, entry)
	open := len(d.open)
	d.openBudgets(e)
	r.give(&e.Reward)
	d.open = d.open[:open]
	if pt.raffle {
		r.boxEmptied(pt)
	}
}

// give gives a reward to the player.
func (r *Rules) give(w *Reward) {
	d := &r.d
	for i := range w.Items {
		it := &w.Items[i]
		q := it.Min
		if it.Min != it.Max {
			q += uniform(d.src, it.Max-it.Min+1)
		}
		r.change(store.Gain, it.Item, q)
		if len(d.open) > 0 {
			r.spendBudgets(it.Item, q)
		}
	}
	r.giveCodes(w)
	for i := range w.Inner {
		in := &w.Inner[i]
		n := in.Min
		if in.Min != in.Max {
			n += uniform(d.src, in.Max-in.Min+1)
		}
		for range n {
			r.draw(in.Pool, 0)
		}
	}
}
