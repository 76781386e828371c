package sim

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// How much can be drawn, whatever is chosen on the way, and how much that can give at most.

// forever is more draws than any stock.
const forever = 1 << 62

// supply is what a model says of that.
type supply struct{ *model }

func supplyOf(m *model) supply { return supply{m} }

// leadsTo returns the pool of an entry whose reward is one draw of one entry from it, else nil.
// Such an entry is out of stock when that pool is.
func (m supply) leadsTo(e *catalog.Entry) *catalog.Pool {
	if d := e.Reward.Draws; len(d) == 1 && d[0].Max == 1 {
		if p := m.pool(d[0].Pool); p.Mode != catalog.ModeEach && p.Rolls.Max == 1 {
			return p
		}
	}
	return nil
}

// personal reports whether an entry is not there for everybody at any time, whatever its stock.
func (m supply) personal(p *catalog.Pool, e *catalog.Entry) bool {
	return e.Moments.Count > 0 || len(e.Reward.Codes) > 0 || m.costly(p, e) || !e.When.Empty() || e.Unique || !e.Luck.Empty()
}

// never reports that an entry has no odds, whatever the stock and the player.
func never(p *catalog.Pool, e *catalog.Entry) bool {
	lucky := slices.ContainsFunc(e.Luck.Steps, func(s catalog.LuckStep) bool { return s.Weight > 0 })
	return p.Mode != catalog.ModeRaffle && e.Weight == 0 && !lucky && e.Moments.Count == 0
}

// shown returns the weight of an entry without regard to a player, 0 if it is out of stock or leads
// to a pool with nothing left.
func (m supply) shown(p *catalog.Pool, e *catalog.Entry) uint64 {
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

// rewards returns everything that a pool can give at once: its entries' rewards, and the last.
func rewards(p *catalog.Pool) (all []*catalog.Reward) {
	for i := range p.Entries {
		if e := &p.Entries[i]; !never(p, e) {
			all = append(all, &e.Reward)
		}
	}
	return append(all, &p.Last)
}

// below returns the pools that a draw from p can take from, including p.
func (m supply) below(p *catalog.Pool) map[string]bool {
	all := map[string]bool{}
	if !m.endless(p) { // only what can run out is shared
		all[p.ID] = true
	}
	for _, w := range rewards(p) {
		for id := range m.reach(w) {
			all[id] = true
		}
	}
	return all
}

// reach returns the pools that a reward can take from.
func (m supply) reach(w *catalog.Reward) map[string]bool {
	all := map[string]bool{}
	for _, d := range w.Draws {
		for id := range m.below(m.pool(d.Pool)) {
			all[id] = true
		}
	}
	return all
}

func intersect(a, b map[string]bool) bool {
	for id := range a {
		if b[id] {
			return true
		}
	}
	return false
}

// leaves returns how often one draw from p can end in pools that lead no further.
func (m supply) leaves(p *catalog.Pool) uint64 {
	most, sum := uint64(0), uint64(0)
	for i := range p.Entries {
		if e := &p.Entries[i]; !never(p, e) {
			n := max(1, m.ends(&e.Reward))
			most, sum = max(most, n), sum+n
		}
	}
	if p.Mode == catalog.ModeEach {
		most = sum
	}
	return (most + m.ends(&p.Last)) * uint64(p.Rolls.Max)
}

// ends does the same for a reward, of which 0 are draws.
func (m supply) ends(w *catalog.Reward) (n uint64) {
	for _, d := range w.Draws {
		n += uint64(d.Max) * m.leaves(m.pool(d.Pool))
	}
	return n
}

// way is how a pool leads to others: all entries that draw once from one pool, or one entry of
// another kind, or the last reward.
type way struct {
	to    *catalog.Pool // of the first kind only
	stock uint64
	below map[string]bool
	wide  bool // can take from them several times in one draw
}

func (m supply) ways(p *catalog.Pool) (all []*way) {
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
			to, stock = nil, 0 // nobody may count on it
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

// endless reports whether a pool can never run out.
func (m supply) endless(p *catalog.Pool) bool {
	return p.Mode == catalog.ModeEach || slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool {
		to := m.leadsTo(&e)
		return e.Stock.Unlimited && e.Weight > 0 && !m.personal(p, &e) && (to == nil || m.endless(to))
	})
}

// stands returns how many draws a pool has stock for, whatever is chosen. What entries lead to
// counts once for each target pool. Targets that share a pool further down with another way count
// together as the best of them. If the other way can take several at once, they count nothing.
func (m supply) stands(p *catalog.Pool) uint64 {
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
	if refill := uint64(p.Refill); alone+together > 0 && refill > m.refills[p.ID] { // nobody empties an empty box
		box := uint64(0)
		for i := range p.Entries {
			box += p.Entries[i].Stock.Count
		}
		alone = min(alone+(refill-m.refills[p.ID])*box, forever)
	}
	return min(alone+together, forever)
}

// stocked reports whether a pool has stock for so many draws by a player, who surely holds so much.
func (m supply) stocked(p *catalog.Pool, player string, sure map[string]uint64, need uint64) bool {
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

// collection reports whether all entries of a pool are other ones for each player.
func (m supply) collection(p *catalog.Pool) bool {
	return p.Mode == catalog.ModeWeighted &&
		!slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool { return !m.personal(p, &e) && e.Weight > 0 })
}

// best returns the most of an item that one draw from p can give.
func (m supply) best(p *catalog.Pool, item string) (most uint64) {
	sum := uint64(0)
	for i := range p.Entries {
		if e := &p.Entries[i]; !never(p, e) {
			n := m.gives(&e.Reward, item)
			most, sum = max(most, n), sum+n
		}
	}
	if p.Mode == catalog.ModeEach {
		most = sum
	}
	return (most + m.gives(&p.Last, item)) * uint64(p.Rolls.Max)
}

func (m supply) gives(w *catalog.Reward, item string) (n uint64) {
	for _, q := range w.Items {
		if q.Item == item {
			n += q.Max
		}
	}
	for _, d := range w.Draws {
		n += m.best(m.pool(d.Pool), item) * uint64(d.Max)
	}
	return n
}
