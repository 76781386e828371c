package sim

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// How much can be drawn, whatever is chosen on the way.

// forever is more draws than any stock allows.
const forever = 1 << 62

// shown returns the weight of an entry for nobody in particular. It is 0 if the entry is out of stock
// or leads to a pool with nothing left.
func (m *model) shown(p *catalog.Pool, e *catalog.Entry) uint64 {
	left, limited := m.left(p, e)
	weight := e.Weight
	if p.Mode == catalog.ModeRaffle {
		weight = left
	}
	to := m.leadsTo(e)
	switch {
	case limited && left == 0:
		return 0
	case weight == 0 || to == nil || m.personal(p, e):
		return weight
	}
	for i := range to.Entries {
		if m.shown(to, &to.Entries[i]) > 0 {
			return weight
		}
	}
	return 0
}

// way is how a pool leads to others: all entries that draw once from one pool, or one entry of
// another kind, or the last reward.
type way struct {
	to    *catalog.Pool // of the first kind only
	stock uint64
	below map[string]bool
	wide  bool // can take from them several times in one draw
}

func (m *model) ways(p *catalog.Pool) (all []*way) {
	for i := range p.Entries {
		e := &p.Entries[i]
		if never(p, e) {
			continue
		}
		stock, limited := m.left(p, e)
		if !limited {
			stock = forever
		}
		to := m.leadsTo(e)
		if m.personal(p, e) {
			to, stock = nil, 0 // it may be missing for this player
		}
		if to != nil {
			if k := slices.IndexFunc(all, func(w *way) bool { return w.to == to }); k >= 0 {
				all[k].stock = min(all[k].stock+stock, forever)
				continue
			}
			all = append(all, &way{to: to, stock: stock, below: m.below(to), wide: m.leaves(to) > 1})
			continue
		}
		all = append(all, &way{stock: stock, below: m.reach(&e.Reward), wide: m.ends(&e.Reward) > 1})
	}
	return append(all, &way{below: m.reach(&p.Last), wide: m.ends(&p.Last) > 0})
}

// stands returns how many draws a pool has stock for, whatever is chosen. Entries that lead to one
// pool count once. Of targets that share a pool further down with another way, only the best counts,
// and none does if the other way can take several at once.
func (m *model) stands(p *catalog.Pool) uint64 {
	if m.endless(p) {
		return forever
	}
	alone, together, endless := uint64(0), uint64(0), uint64(0)
	all := m.ways(p)
	for _, w := range all {
		n, shared, drained := w.stock, false, false
		if w.to != nil {
			n = min(n, m.stands(w.to))
			for _, other := range all {
				if other != w && intersect(w.below, other.below) {
					shared, drained = true, drained || other.wide
				}
			}
		}
		switch {
		case shared && m.endless(w.to):
			endless = min(endless+n, forever)
		case drained:
		case shared:
			together = max(together, n)
		default:
			alone = min(alone+n, forever)
		}
	}
	together = max(together, endless)
	if refill := uint64(p.Refill); alone+together > 0 && refill > m.refills[p.ID] { // an empty box is never emptied
		box := uint64(0)
		for i := range p.Entries {
			box += p.Entries[i].Stock.Count
		}
		alone = min(alone+(refill-m.refills[p.ID])*box, forever)
	}
	return min(alone+together, forever)
}

// stocked reports whether a pool has stock for need draws by a player who holds at least sure.
func (m *model) stocked(p *catalog.Pool, player string, sure map[string]uint64, need uint64) bool {
	if m.collection(p) {
		n := uint64(0)
		for i := range p.Entries {
			e := &p.Entries[i]
			left, limited := m.left(p, e)
			if e.Weight > 0 && (!limited || left >= need) && m.applies(e, p, player, sure) {
				n++
			}
		}
		return n >= need
	}
	if need == 1 {
		return slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool { return !m.personal(p, &e) && m.shown(p, &e) > 0 }) || m.endless(p)
	}
	return m.stands(p) >= need
}
