package rules_test

import (
	"maps"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// How often a pool can be drawn from whatever is chosen, and what that can give at most.

const plenty = 1 << 62

// target returns the pool that an entry's reward takes one entry from, nil if it gives anything else.
func (m *model) target(e *catalog.Entry) *catalog.Pool {
	d := e.Reward.Draws
	if len(d) != 1 || d[0].Max > 1 {
		return nil
	}
	if p := m.pool(d[0].Pool); p.Mode != catalog.ModeEach && p.Rolls.Max == 1 {
		return p
	}
	return nil
}

// conditional reports whether nobody may count on an entry, whatever its stock.
func (m *model) conditional(p *catalog.Pool, e *catalog.Entry) bool {
	return !e.When.Empty() || e.Unique || !e.Luck.Empty() || len(e.Reward.Codes) > 0 || m.costly(p, e)
}

// drawable reports whether an entry can have a weight.
func drawable(p *catalog.Pool, e *catalog.Entry) bool {
	return p.Mode == catalog.ModeRaffle || e.Weight > 0 || e.Moments.Count > 0 || slices.ContainsFunc(e.Luck.Steps, func(s catalog.LuckStep) bool { return s.Weight > 0 })
}

// shown returns an entry's weight by its own stock and that of what it leads to, whoever draws.
func (m *model) shown(p *catalog.Pool, e *catalog.Entry) uint64 {
	left, unlimited := m.left(p, e)
	to := m.target(e)
	switch {
	case left == 0 && !unlimited, to != nil && !m.conditional(p, e) && m.total(to) == 0:
		return 0
	case p.Mode == catalog.ModeRaffle:
		return left
	}
	return e.Weight
}

// view returns the weight of an entry that everybody can see.
func (m *model) view(p *catalog.Pool, e *catalog.Entry) uint64 {
	if !m.hasCodes(e) {
		return 0
	}
	return m.shown(p, e)
}

func (m *model) total(p *catalog.Pool) (sum uint64) {
	for i := range p.Entries {
		sum += m.shown(p, &p.Entries[i])
	}
	return sum
}

// below returns the pools that a draw from p can touch, p included.
func (m *model) below(p *catalog.Pool) map[string]bool {
	all := m.under(&p.Last)
	if !m.endless(p) { // only what can run out is shared
		all[p.ID] = true
	}
	for i := range p.Entries {
		if e := &p.Entries[i]; drawable(p, e) {
			maps.Copy(all, m.under(&e.Reward))
		}
	}
	return all
}

// under returns the pools that a reward can touch.
func (m *model) under(w *catalog.Reward) map[string]bool {
	all := map[string]bool{}
	for _, d := range w.Draws {
		maps.Copy(all, m.below(m.pool(d.Pool)))
	}
	return all
}

func meet(a, b map[string]bool) bool {
	for id := range a {
		if b[id] {
			return true
		}
	}
	return false
}

// times adds up what a reward's draws do, by what one draw from a pool does.
func (m *model) times(w *catalog.Reward, one func(*catalog.Pool) uint64) (sum uint64) {
	for _, d := range w.Draws {
		sum += uint64(d.Max) * one(m.pool(d.Pool))
	}
	return sum
}

// worst returns the most that one draw from p does, by what its rewards do.
func worst(p *catalog.Pool, does func(w *catalog.Reward, last bool) uint64) (most uint64) {
	for i := range p.Entries {
		e := &p.Entries[i]
		switch {
		case !drawable(p, e):
		case p.Mode == catalog.ModeEach:
			most += does(&e.Reward, false)
		default:
			most = max(most, does(&e.Reward, false))
		}
	}
	return (most + does(&p.Last, true)) * uint64(p.Rolls.Max)
}

// leaves returns how often one draw from p can reach the bottom.
func (m *model) leaves(p *catalog.Pool) uint64 {
	return worst(p, func(w *catalog.Reward, last bool) uint64 {
		if n := m.times(w, m.leaves); n > 0 || last {
			return n
		}
		return 1
	})
}

// most returns the largest quantity of an item that one draw from p can give.
func (m *model) most(p *catalog.Pool, item string) uint64 {
	return worst(p, func(w *catalog.Reward, _ bool) uint64 { return m.mostOf(w, item) })
}

// mostOf returns the largest quantity of an item that a reward can give.
func (m *model) mostOf(w *catalog.Reward, item string) uint64 {
	n := m.times(w, func(p *catalog.Pool) uint64 { return m.most(p, item) })
	for _, q := range w.Items {
		if q.Item == item {
			n += q.Max
		}
	}
	return n
}

// endless reports whether a pool has an entry for everybody that never runs out.
func (m *model) endless(p *catalog.Pool) bool {
	if p.Mode == catalog.ModeEach {
		return true
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		if to := m.target(e); e.Stock.Unlimited && e.Weight > 0 && !m.conditional(p, e) && (to == nil || m.endless(to)) {
			return true
		}
	}
	return false
}

// sure returns how many draws p stands whatever is chosen.
func (m *model) sure(p *catalog.Pool) uint64 {
	if m.endless(p) {
		return plenty
	}
	stock := map[string]uint64{} // of entries for everybody, by the pool that they take one entry from; "": none
	type other struct {
		of     string
		below  map[string]bool
		leaves uint64
	}
	others := []other{{"last", m.under(&p.Last), 2 * m.times(&p.Last, m.leaves)}} // added to the entry's own
	for i := range p.Entries {
		e := &p.Entries[i]
		if !drawable(p, e) {
			continue
		}
		to := m.target(e)
		if to == nil || m.conditional(p, e) {
			others = append(others, other{"", m.under(&e.Reward), m.times(&e.Reward, m.leaves)})
		}
		if m.conditional(p, e) {
			continue
		}
		id := ""
		if to != nil {
			if id = to.ID; stock[id] == 0 && !slices.ContainsFunc(others, func(o other) bool { return o.of == id }) {
				others = append(others, other{id, m.below(to), m.leaves(to)})
			}
		}
		left, unlimited := m.left(p, e)
		if unlimited {
			left = plenty
		}
		stock[id] = min(stock[id]+left, plenty)
	}
	var sum, shared, endless uint64 // endless: of entries whose pools cannot run out
	for id, n := range stock {
		alone, counts, forever := true, true, false
		if id != "" {
			n, forever = min(n, m.sure(m.pool(id))), m.endless(m.pool(id))
			for _, o := range others {
				if o.of != id && meet(m.below(m.pool(id)), o.below) {
					alone, counts = false, counts && o.leaves <= 1
				}
			}
		}
		switch {
		case alone:
			sum = min(sum+n, plenty)
		case forever:
			endless = min(endless+n, plenty)
		case counts:
			shared = max(shared, n)
		}
	}
	if sum += max(shared, endless); sum > 0 && p.Refill > 0 { // each time that the box is emptied, a full one follows
		box := uint64(0)
		for i := range p.Entries {
			box += p.Entries[i].Stock.Count
		}
		sum += box * (uint64(p.Refill) - min(uint64(p.Refill), m.refills[p.ID]))
	}
	return min(sum, plenty)
}

// stocked reports whether p has enough for need draws, by a player who surely holds so much.
func (m *model) stocked(p *catalog.Pool, player string, held map[string]uint64, need uint64) bool {
	if !m.collects(p) {
		if need == 1 && !m.endless(p) {
			return slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool { return !m.conditional(p, &e) && m.shown(p, &e) > 0 })
		}
		return m.sure(p) >= need
	}
	n := uint64(0)
	for i := range p.Entries {
		e := &p.Entries[i]
		if left, unlimited := m.left(p, e); e.Weight > 0 && (unlimited || left >= need) && m.applies(p, e, player, held) {
			n++
		}
	}
	return n >= need
}

// collects reports whether every entry of a pool that can be drawn has a condition.
func (m *model) collects(p *catalog.Pool) bool {
	return p.Mode == catalog.ModeWeighted &&
		!slices.ContainsFunc(p.Entries, func(e catalog.Entry) bool { return !m.conditional(p, &e) && e.Weight > 0 })
}
