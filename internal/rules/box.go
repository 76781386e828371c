package rules

import "github.com/kuji-dev/kuji/internal/store"

// box is a pool of mode raffle: a box of tickets. The player who takes the last ticket also gets the
// pool's last reward, in the same outcome. If the pool has a refill left, all tickets are then put
// back: the next draw, even in the same request, is from a full box.
type box struct {
	Last    Reward
	boxful  uint64 // the tickets in a full box
	Refills uint32 // number of the realm's counter of refills, if there can be any
}

// RefillName returns the name of the counter of a pool's refills.
func RefillName(pool string) string { return pool + "/refills" }

// setTally gives a counter of the realm a value, as an effect.
func (r *effects) setTally(counter uint32, v uint64) {
	r.values.put(valueKey(noPlayer, counterKey|counter), v)
	r.w.More(store.Tally, uint64(counter), v)
}

// RefillsLeft returns how often a pool's box can still be filled, 0 if a new limit is lower.
func (pt *Pool) RefillsLeft(f Facts) uint64 {
	n := uint64(pt.Config.Refill)
	if n == 0 {
		return 0
	}
	return n - min(n, f.Refilled(pt))
}

// boxEmptied gives the last reward and fills the box again. Both wait while some of its tickets are held.
func (r *drawing) boxEmptied(pt *Pool) {
	if r.Unfinished(pt) {
		return
	}
	r.give(&pt.Last)
	if pt.RefillsLeft(&r.Sight) == 0 {
		return
	}
	r.w.Effect(store.Pool, pt.Num)
	r.pool = pt.Num
	for _, num := range pt.Order {
		key := entryKey(pt, num)
		taken, _ := r.taken.get(key)
		if n := r.state.DrawnOf(pt.Num, num) + taken; n > 0 {
			r.w.More(store.Return, uint64(num), n)
			r.taken.put(key, -r.state.DrawnOf(pt.Num, num))
		}
	}
	r.setTally(pt.Refills, r.tally(pt.Refills)+1)
	r.revive(pt)
}

// revive brings back the odds of a pool whose box was filled, and of those above it.
func (r *stocks) revive(pt *Pool) {
	o := &r.pools[pt.Num]
	was := o.live
	r.countLeft(pt)
	for _, num := range pt.Order {
		r.setWeight(pt, num, r.fixedWeight(pt, num))
	}
	if was == 0 && o.live > 0 {
		r.reviveAbove(pt)
	}
}

// reviveAbove brings back the entries that lead to a pool which has something left again.
func (r *stocks) reviveAbove(pt *Pool) {
	for _, up := range pt.parents {
		if !r.hasStock(up.pool, up.branch) {
			continue
		}
		for _, num := range up.pool.Branches[up.branch].entries {
			r.setWeight(up.pool, num, up.pool.Weigh(&r.Sight, num, true))
		}
		o := &r.pools[up.pool.Num]
		if o.live++; o.live == 1 {
			r.reviveAbove(up.pool)
		}
	}
}
