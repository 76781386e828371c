package economy

import (
	"cmp"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// Pools that lead to pools. An entry whose reward is a pool with nothing left
// is out of stock itself, and so on up; and what a command asks for must be
// there whatever is chosen on the way, so that no choice can make it fail.
//
// A pool's entries fall into groups: those that lead to the same pool, and those
// that lead to none. An entry is out of stock when its own stock is used up or
// its group's target has nothing left; so a group is live or dead as a whole
// but for stock, and a pool has something left while a group of it is live.
//
// How many draws a pool is sure to stand, wherever they enter the pools below it:
//
//	sure(pool)   = the sum of sure(group) over its groups, of which those that
//	               share a pool further down count only once, by the largest
//	sure(group)  = the least of its entries' stock and sure(target)
//
// Dying takes each group's death; a group dies by as many draws through its entries as they
// have stock, or by its target's death. A draw runs through one group of each pool that it
// passes, and groups that share nothing below do not touch each other's stock.
// Where no two groups share a pool the number is exact.

// nesting is what a poolTable says of this.
type nesting struct {
	groups  []group
	gains   []stack  // the most that one draw can give, through all pools below; ascending by item number
	maxGain uint64   // the largest quantity in gains
	endless bool     // can never run out
	reach   bitset   // numbers of the pools below and its own; nil when there are none below
	parents []parent // the groups that lead here
}

// group is the entries of a pool, with odds above 0, that lead to the same pool or to none.
type group struct {
	target  *poolTable // nil: the rewards are not pools
	entries []uint32   // numbers; kept for a target only
	endless bool       // an entry has unlimited stock
	shared  bool       // another group of the pool leads to a pool that this one leads to
}

type parent struct {
	pool  *poolTable
	group int32
}

const noGroup = -1

// poolOdds is what is left of a pool of the catalog in force.
type poolOdds struct {
	left []uint64 // by group: the stock left of its limited entries, of each at most maxCounted
	live int      // groups from which something can be drawn; 0: sold out
}

// maxCounted bounds what an entry adds to poolOdds.left, so that 2^20 of them fit
// 64 bits; no command asks for as much.
const maxCounted = 1 << 40

// bitset is a set of small numbers.
type bitset []uint64

func (b bitset) has(n uint32) bool { return int(n/64) < len(b) && b[n/64]>>(n%64)&1 == 1 }

// nest fills in the nesting of every pool. Catalogs are checked: there are no cycles.
func (t *tables) nest() {
	done := make([]bool, len(t.pools))
	var visit func(pt *poolTable)
	visit = func(pt *poolTable) { // at most catalog.MaxPoolDepth deep
		done[pt.num] = true
		byTarget := map[uint32]int32{}
		for _, num := range pt.order {
			e := &pt.entries[num]
			key := uint32(maxPoolsEver)
			if e.kind == catalog.RewardPool {
				key = e.pool
				if !done[e.pool] {
					visit(t.pools[e.pool])
				}
			}
			if e.weight == 0 {
				e.group, e.common = noGroup, false
				continue
			}
			g, ok := byTarget[key]
			if !ok {
				g = int32(len(pt.groups))
				byTarget[key] = g
				pt.groups = append(pt.groups, group{})
			}
			e.group = g
			pt.groups[g].take(t, e, num)
		}
		pt.summarize(len(t.pools))
		t.bottomUp = append(t.bottomUp, pt)
	}
	for _, pt := range t.pools {
		if pt != nil && !done[pt.num] {
			visit(pt)
		}
	}
}

func (g *group) take(t *tables, e *entryTable, num uint32) {
	g.endless = g.endless || !e.limited
	if e.kind == catalog.RewardPool {
		g.target = t.pools[e.pool]
		g.entries = append(g.entries, num)
	}
}

// summarize fills in what follows from the groups, once all pools below are done.
func (pt *poolTable) summarize(pools int) {
	var once, twice bitset
	for i := range pt.groups {
		g := &pt.groups[i]
		if g.target == nil {
			pt.endless = pt.endless || g.endless
			continue
		}
		g.target.parents = append(g.target.parents, parent{pt, int32(i)})
		pt.endless = pt.endless || g.endless && g.target.endless
		if once == nil {
			once, twice = make(bitset, (pools+63)/64), make(bitset, (pools+63)/64)
		}
		g.target.eachBelow(func(word int, set uint64) {
			twice[word] |= once[word] & set
			once[word] |= set
		})
	}
	for i := range pt.groups {
		if g := &pt.groups[i]; g.target != nil {
			g.target.eachBelow(func(word int, set uint64) { g.shared = g.shared || twice[word]&set != 0 })
		}
	}
	if once != nil {
		once[pt.num/64] |= 1 << (pt.num % 64)
		pt.reach = once
	}
	pt.gain()
}

// eachBelow calls f with the words of the set of pools that a draw from pt can touch.
func (pt *poolTable) eachBelow(f func(word int, set uint64)) {
	if pt.reach == nil {
		f(int(pt.num/64), 1<<(pt.num%64))
		return
	}
	for i, w := range pt.reach {
		if w != 0 {
			f(i, w)
		}
	}
}

// overlaps reports whether draws from two pools can take from the same stock.
func (pt *poolTable) overlaps(other *poolTable) bool {
	switch {
	case pt == other:
		return true
	case pt.reach == nil && other.reach == nil:
		return false
	case pt.reach == nil:
		return other.reach.has(pt.num)
	case other.reach == nil:
		return pt.reach.has(other.num)
	}
	for i, w := range pt.reach {
		if w&other.reach[i] != 0 {
			return true
		}
	}
	return false
}

// gain fills in gains: for each item the largest quantity in any reward that
// has odds, in stock or not, here and below.
func (pt *poolTable) gain() {
	most := map[uint32]uint64{}
	for _, num := range pt.order {
		if pt.entries[num].group == noGroup {
			continue
		}
		for _, q := range pt.entries[num].items {
			most[q.item] = max(most[q.item], q.max)
		}
	}
	for i := range pt.groups {
		if target := pt.groups[i].target; target != nil {
			for _, st := range target.gains {
				most[st.item] = max(most[st.item], st.quantity)
			}
		}
	}
	pt.gains = make([]stack, 0, len(most))
	for _, num := range pt.order {
		for _, q := range pt.entries[num].items {
			pt.addGain(most, q.item)
		}
	}
	for i := range pt.groups {
		if target := pt.groups[i].target; target != nil {
			for _, st := range target.gains {
				pt.addGain(most, st.item)
			}
		}
	}
	slices.SortFunc(pt.gains, func(a, b stack) int { return cmp.Compare(a.item, b.item) })
}

// addGain moves an item from most to gains.
func (pt *poolTable) addGain(most map[uint32]uint64, item uint32) {
	if q, ok := most[item]; ok {
		pt.gains = append(pt.gains, stack{item, q})
		pt.maxGain = max(pt.maxGain, q)
		delete(most, item)
	}
}

// gainOf returns the most of an item that one draw can give.
func (pt *poolTable) gainOf(item uint32) uint64 {
	i, ok := slices.BinarySearchFunc(pt.gains, item, func(st stack, item uint32) int { return cmp.Compare(st.item, item) })
	if !ok {
		return 0
	}
	return pt.gains[i].quantity
}

// countOdds computes odds anew from the tables and what is left of each entry, but for
// pools that are the same. It comes before samplers are built.
func (s *State) countOdds(same []bool) {
	was := s.odds
	s.odds = make([]poolOdds, len(s.pools))
	for _, pt := range s.current.bottomUp {
		if same != nil && same[pt.num] {
			s.odds[pt.num] = was[pt.num]
			continue
		}
		s.odds[pt.num] = s.oddsOf(pt)
		s.pools[pt.num].spent.Store(s.odds[pt.num].live == 0)
	}
}

// oddsOf computes the odds of a pool from those of the pools below.
func (s *State) oddsOf(pt *poolTable) poolOdds {
	o := poolOdds{left: make([]uint64, len(pt.groups))}
	left := s.pools[pt.num].left
	for _, num := range pt.order {
		if g := pt.entries[num].group; g != noGroup {
			o.left[g] += min(left[num], maxCounted)
		}
	}
	for i := range pt.groups {
		if s.liveGroup(pt, &o, int32(i)) {
			o.live++
		}
	}
	return o
}

// hasStock reports whether a group has stock of its own.
func (pt *poolTable) hasStock(o *poolOdds, g int32) bool {
	return pt.groups[g].endless || o.left[g] > 0
}

func (s *State) liveGroup(pt *poolTable, o *poolOdds, g int32) bool {
	target := pt.groups[g].target
	return pt.hasStock(o, g) && (target == nil || s.odds[target.num].live > 0)
}

// weight returns the current weight of an entry with this much left.
func (s *State) weight(pt *poolTable, entry uint32, left uint64) uint64 {
	w := pt.weight(entry, left)
	if w == 0 {
		return 0
	}
	if target := pt.groups[pt.entries[entry].group].target; target != nil && s.odds[target.num].live == 0 {
		return 0
	}
	return w
}

// takeOdds counts one draw of a limited entry, whose stock is left now.
func (s *State) takeOdds(pt *poolTable, g int32, left, pos uint64) {
	o := &s.odds[pt.num]
	if left < maxCounted {
		o.left[g]--
	}
	s.mayDie(pt, g, pos)
}

// mayDie counts a group's death if it has just lost the last of its stock.
func (s *State) mayDie(pt *poolTable, g int32, pos uint64) {
	o := &s.odds[pt.num]
	if o.left[g] > 0 || pt.groups[g].endless {
		return
	}
	if target := pt.groups[g].target; target != nil && s.odds[target.num].live == 0 {
		return // it died before
	}
	s.groupDied(pt, pos)
}

// groupDied counts a group's death, and the deaths that follow from it above.
func (s *State) groupDied(pt *poolTable, pos uint64) {
	o := &s.odds[pt.num]
	if o.live--; o.live > 0 {
		return
	}
	for _, up := range pt.parents { // before spent: who reads that holds one of these locks
		s.lockPool(s.pools[up.pool.num])
	}
	s.pools[pt.num].spent.Store(true)
	if s.watch != nil && s.watch.same[pt.num] {
		s.watch.died = append(s.watch.died, pt.num)
	}
	s.diedAbove(pt, pos)
}

// diedAbove takes the odds from the entries that lead to a pool which has nothing left.
func (s *State) diedAbove(pt *poolTable, pos uint64) {
	for _, up := range pt.parents {
		if s.pools[up.pool.num] == nil {
			continue // of a catalog that is made ready, and not changed by it: see staged
		}
		if !up.pool.hasStock(&s.odds[up.pool.num], up.group) {
			continue
		}
		p := s.pools[up.pool.num]
		p.last = pos
		if p.sampler != nil {
			for _, entry := range up.pool.groups[up.group].entries {
				p.setWeight(entry, 0)
			}
		}
		s.groupDied(up.pool, pos)
	}
}

// sure returns how many draws a pool is sure to stand, at most need.
func (s *State) sure(pt *poolTable, need uint64) uint64 {
	d := &s.d
	if d.sureGen++; d.sureGen == 0 {
		clear(d.sure)
		d.sureGen = 1
	}
	for len(d.sure) < len(s.pools) {
		d.sure = append(d.sure, sureMemo{})
	}
	return s.sureBelow(pt, need)
}

// sureMemo is what one computation of sure has found for a pool.
type sureMemo struct {
	gen   uint32
	value uint64
}

func (s *State) sureBelow(pt *poolTable, need uint64) uint64 {
	m := &s.d.sure[pt.num]
	switch {
	case pt.endless:
		return need
	case m.gen == s.d.sureGen:
		return m.value
	}
	o := &s.odds[pt.num]
	var sum, shared uint64
	for i := 0; i < len(pt.groups) && sum+shared < need; i++ {
		g := &pt.groups[i]
		n := need
		if !g.endless {
			n = min(n, o.left[i])
		}
		if n > 0 && g.target != nil {
			n = min(n, s.sureBelow(g.target, need))
		}
		if g.shared {
			shared = max(shared, n)
		} else {
			sum += n
		}
	}
	*m = sureMemo{gen: s.d.sureGen, value: min(sum+shared, need)}
	return m.value
}
