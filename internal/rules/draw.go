package rules

import (
	"fmt"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// checkDraw reports whether a Draw will fail. Nothing here depends on what is chosen.
func (r *Rules) checkDraw(cmd *Command) failure {
	pt := r.findPool(cmd.Pool)
	if pt == nil {
		return failure{UnknownPool, r.poolRef(cmd.Pool)}
	}
	player, count, pool := r.see(cmd.Player), uint64(cmd.Count), store.Ref{Num: pt.num}
	c := pt.config
	switch {
	case c.StartsAt != 0 && r.d.now < c.StartsAt:
		return failure{NotStarted, pool}
	case c.EndsAt != 0 && r.d.now >= c.EndsAt:
		return failure{Ended, pool}
	case count > uint64(c.MaxCount):
		return failure{CountTooLarge, pool}
	case !r.withinLimits(pt, player, count):
		return failure{LimitReached, pool}
	}
	if item, ok := r.pay(pt, player, count); !ok {
		return failure{InsufficientItems, store.Ref{Num: item}}
	}
	if !r.inStock(pt, count) {
		return failure{SoldOut, pool}
	}
	if item, ok := r.fitsAll(pt, player, count); !ok {
		return failure{BalanceOverflow, store.Ref{Num: item}}
	}
	r.count(pt, player, count)
	r.d.draws = append(r.d.draws, drawn{player, pt, count, len(r.d.sets)})
	r.d.given(pt.maxGain * count)
	return failure{}
}

// findPool returns a pool of the catalog in force, nil if it has none with this id. It remembers
// the last one: most draws in a row are from one pool.
func (r *Rules) findPool(id string) *poolTable {
	if r.recent == nil || r.recent.config.ID != id {
		pt := r.t.pool[id]
		if pt == nil {
			return nil
		}
		r.recent = pt
	}
	return r.recent
}

func (r *Rules) poolRef(id string) store.Ref {
	if n, ok := r.state.PoolNum(id); ok { // of an earlier catalog
		return store.Ref{Num: n}
	}
	return store.Ref{ID: id}
}

// inStock reports whether a pool has enough stock for count draws after the command's earlier
// ones, whatever is chosen.
func (r *Rules) inStock(pt *poolTable, count uint64) bool {
	if pt.endless {
		return true
	}
	need := count
	for i := range r.d.draws {
		if dr := &r.d.draws[i]; dr.pool.overlaps(pt) {
			need += dr.count
		}
	}
	if need == 1 {
		return r.pools[pt.num].live > 0
	}
	return r.sure(pt, need) == need
}

// fitsAll reports whether the player's balances have room for the most that count draws can give.
// If not, it returns the first item that does not fit.
func (r *Rules) fitsAll(pt *poolTable, player uint32, count uint64) (item uint32, ok bool) {
	if r.state.Peak()+r.d.extra+pt.maxGain*count <= MaxQuantity {
		return 0, true
	}
	for _, g := range pt.gains {
		if !r.fits(player, g.item, g.quantity*count) {
			return g.item, false
		}
	}
	return 0, true
}

// writeDraw writes the effects of the command's draw number n: the price, the outcomes and the
// counters of limits.
func (r *Rules) writeDraw(cmd *Command, n int) {
	d := &r.d
	dr := &d.draws[n]
	r.turn(dr.player)
	r.writePrice(dr.pool, dr.count)
	for range dr.count {
		r.choose(dr.pool)
	}
	first := 0
	if n > 0 {
		first = d.draws[n-1].sets
	}
	for _, s := range d.sets[first:dr.sets] {
		d.w.Change(store.Set, s.counter, s.value)
	}
}

// choose makes one draw. It chooses an entry, through nested pools, and writes what it takes from
// stock and gives.
func (r *Rules) choose(pt *poolTable) {
	d := &r.d
	for {
		entry := r.chooseEntry(pt)
		e := &pt.entries[entry]
		if d.pool != pt.num {
			d.w.Effect(store.Pool, pt.num)
			d.pool = pt.num
		}
		d.w.Effect(store.Take, entry)
		if e.kind == catalog.RewardPool {
			pt = r.t.pools[e.pool]
			continue
		}
		for i := range e.items {
			it := &e.items[i]
			q := it.min
			if it.min != it.max {
				q += uniform(d.src, it.max-it.min+1)
			}
			d.w.Change(store.Gain, it.item, q)
		}
		return
	}
}

// chooseEntry chooses an entry of one pool, and lowers the odds if its stock is limited.
func (r *Rules) chooseEntry(pt *poolTable) uint32 {
	n, ok := r.pools[pt.num].sampler.Draw(r.d.src)
	if !ok {
		panic(fmt.Sprintf("rules: pool %q ran out in a draw that had passed its checks", pt.config.ID))
	}
	entry := uint32(n)
	if e := &pt.entries[entry]; e.limited {
		key := uint64(pt.num)<<32 | uint64(entry)
		taken, _ := r.d.taken.get(key)
		r.d.taken.put(key, taken+1)
		r.lower(pt, entry, r.state.Left(pt.num, entry)-taken-1)
	}
	return entry
}
