package rules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/sampler"
)

// Pools can lead to other pools. An entry whose reward is a pool with nothing left is itself out
// of stock, and so on upwards. The draws of a command must find stock whatever is chosen on the
// way, so that no choice can make it fail.
//
// A pool's entries form groups: one for each pool that they lead to, and one for those that lead
// to none. An entry is out of stock when its own stock is used up or the pool it leads to has
// nothing left. So apart from own stock, a group lives or dies as a whole, and a pool has
// something left while one of its groups lives.
//
// This is how many draws a pool is sure to have stock for, wherever they enter the pools below it:
//
//	sure(pool)   = the sum of sure(group) over its groups, but of those that share a
//	               pool further down only the largest
//	sure(group)  = the smaller of the sum of its entries' stock and sure(target)
//
// A pool dies only when each of its groups is dead. A group dies only when as many draws went
// through its entries as they have stock, or when its target is dead. A draw passes through one
// group of each pool on its way, and groups that share nothing below do not touch each other's
// stock. If no two groups share a pool, the number is exact.

// nesting is the part of a poolTable about the pools below and above it.
type nesting struct {
	groups  []group
	gains   []stack  // the most one draw can give of each item, through all pools below; ascending by item number
	maxGain uint64   // the largest quantity in gains
	endless bool     // can never run out
	reach   bitset   // the numbers of this pool and those below; nil: there are none below
	parents []parent // the groups that lead here
}

// group is the entries of a pool, with odds above 0, that lead to the same pool or to none.
type group struct {
	target  *poolTable // nil: the rewards are not pools
	entries []uint32   // entry numbers; only if there is a target
	endless bool       // an entry has unlimited stock
	shared  bool       // another group of this pool leads to a pool that this one leads to
}

type parent struct {
	pool  *poolTable
	group int32
}

const noGroup = -1

// odds is what can be drawn now from a pool of the catalog in force.
type odds struct {
	sampler *sampler.Sampler // the current weight of every entry, by entry number
	left    []uint64         // by group: the sum of what is left of its limited entries, at most maxCounted each
	live    int              // groups from which something can be drawn; 0: sold out
}

// maxCounted is the most that one entry adds to odds.left, so that 2^20 of them fit 64 bits. No
// command asks for as much.
const maxCounted = 1 << 40

// bitset is a set of small numbers.
type bitset []uint64

func (b bitset) has(n uint32) bool { return int(n/64) < len(b) && b[n/64]>>(n%64)&1 == 1 }

// nest fills in the nesting of every pool. The catalog was checked and has no cycles.
func (t *Tables) nest() {
	done := make([]bool, len(t.pools))
	var visit func(pt *poolTable)
	visit = func(pt *poolTable) { // at most catalog.MaxPoolDepth deep
		done[pt.num] = true
		byTarget := map[uint32]int32{}
		for _, num := range pt.order {
			e := &pt.entries[num]
			key := uint32(noPool)
			if e.kind == catalog.RewardPool {
				key = e.pool
				if !done[e.pool] {
					visit(t.pools[e.pool])
				}
			}
			if e.weight == 0 {
				e.group = noGroup
				continue
			}
			g, ok := byTarget[key]
			if !ok {
				g = int32(len(pt.groups))
				byTarget[key] = g
				pt.groups = append(pt.groups, group{})
			}
			e.group = g
			pt.groups[g].add(t, e, num)
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

func (g *group) add(t *Tables, e *entryTable, num uint32) {
	g.endless = g.endless || !e.limited
	if e.kind == catalog.RewardPool {
		g.target = t.pools[e.pool]
		g.entries = append(g.entries, num)
	}
}

// summarize derives the rest of nesting from the groups, once all pools below are done.
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
	pt.sumGains()
}

// eachBelow calls f with each word of the set of pools that a draw from pt can touch.
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

// sumGains fills in gains: for each item the largest quantity in a single reward with odds, here
// or below, in stock or not.
func (pt *poolTable) sumGains() {
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

// countOdds builds odds and samplers from the tables and the stock that is left.
func (r *Rules) countOdds() {
	r.pools = make([]odds, len(r.t.pools))
	for _, pt := range r.t.bottomUp {
		o := &r.pools[pt.num]
		o.left = make([]uint64, len(pt.groups))
		for _, num := range pt.order {
			if e := &pt.entries[num]; e.group != noGroup && e.limited {
				o.left[e.group] += min(r.state.Left(pt.num, num), maxCounted)
			}
		}
		for i := range pt.groups {
			if r.liveGroup(pt, int32(i)) {
				o.live++
			}
		}
		weights := make([]uint64, len(pt.entries))
		for _, num := range pt.order {
			weights[num] = r.weight(pt, num, r.state.Left(pt.num, num))
		}
		var err error
		if o.sampler, err = sampler.New(weights); err != nil {
			panic(fmt.Sprintf("rules: pool %q: %v", pt.config.ID, err)) // cannot happen: catalogs are checked
		}
	}
}

// hasStock reports whether a group has stock of its own.
func (r *Rules) hasStock(pt *poolTable, g int32) bool {
	return pt.groups[g].endless || r.pools[pt.num].left[g] > 0
}

func (r *Rules) liveGroup(pt *poolTable, g int32) bool {
	target := pt.groups[g].target
	return r.hasStock(pt, g) && (target == nil || r.pools[target.num].live > 0)
}

// weight returns the current weight of an entry of which left are left.
func (r *Rules) weight(pt *poolTable, entry uint32, left uint64) uint64 {
	w := pt.weight(entry, left)
	if w == 0 {
		return 0
	}
	if target := pt.groups[pt.entries[entry].group].target; target != nil && r.pools[target.num].live == 0 {
		return 0
	}
	return w
}

// lower updates the odds after a draw of a limited entry, of which left are left now.
func (r *Rules) lower(pt *poolTable, entry uint32, left uint64) {
	o, g := &r.pools[pt.num], pt.entries[entry].group
	if left == 0 || pt.config.Mode == catalog.ModeRaffle {
		r.setWeight(pt, entry, pt.weight(entry, left))
	}
	if left < maxCounted {
		o.left[g]--
	}
	if o.left[g] == 0 && !pt.groups[g].endless {
		r.groupDied(pt)
	}
}

// groupDied counts the death of a group that had something to draw, and the deaths that follow
// from it in the pools above.
func (r *Rules) groupDied(pt *poolTable) {
	o := &r.pools[pt.num]
	if o.live--; o.live > 0 {
		return
	}
	for _, up := range pt.parents {
		if !r.hasStock(up.pool, up.group) {
			continue // it was dead before
		}
		for _, entry := range up.pool.groups[up.group].entries {
			r.setWeight(up.pool, entry, 0)
		}
		r.groupDied(up.pool)
	}
}

// setWeight lowers a weight. The sampler has accepted a larger total, so it cannot fail.
func (r *Rules) setWeight(pt *poolTable, entry uint32, weight uint64) {
	if err := r.pools[pt.num].sampler.Set(int(entry), weight); err != nil {
		panic(fmt.Sprintf("rules: pool %q, entry %d, weight %d: %v", pt.config.ID, entry, weight, err))
	}
}

// CheckOdds compares odds and samplers with the stock that is left. It takes time in proportion to
// the catalog.
func (r *Rules) CheckOdds() error {
	for _, pt := range r.t.bottomUp {
		for _, num := range pt.order {
			want := r.weight(pt, num, r.state.Left(pt.num, num))
			if got := r.pools[pt.num].sampler.Weight(int(num)); got != want {
				return fmt.Errorf("pool %q, entry %q: the sampler has weight %d instead of %d", pt.config.ID, pt.entries[num].id, got, want)
			}
		}
	}
	again := Rules{state: r.state, t: r.t}
	again.countOdds()
	for _, pt := range r.t.bottomUp {
		if have, want := &r.pools[pt.num], &again.pools[pt.num]; have.live != want.live || !slices.Equal(have.left, want.left) {
			return fmt.Errorf("pool %q: %d groups live with %d left, instead of %d with %d", pt.config.ID, have.live, have.left, want.live, want.left)
		}
	}
	return nil
}

// sure returns how many draws a pool is sure to have stock for, at most need.
func (r *Rules) sure(pt *poolTable, need uint64) uint64 {
	d := &r.d
	if d.sureGen++; d.sureGen == 0 {
		clear(d.sure)
		d.sureGen = 1
	}
	for len(d.sure) < len(r.pools) {
		d.sure = append(d.sure, sureMemo{})
	}
	return r.sureBelow(pt, need)
}

// sureMemo is the result of one computation of sure for one pool.
type sureMemo struct {
	gen   uint32
	value uint64
}

func (r *Rules) sureBelow(pt *poolTable, need uint64) uint64 {
	m := &r.d.sure[pt.num]
	switch {
	case pt.endless:
		return need
	case m.gen == r.d.sureGen:
		return m.value
	}
	o := &r.pools[pt.num]
	var sum, shared uint64
	for i := 0; i < len(pt.groups) && sum+shared < need; i++ {
		g := &pt.groups[i]
		n := need
		if !g.endless {
			n = min(n, o.left[i])
		}
		if n > 0 && g.target != nil {
			n = min(n, r.sureBelow(g.target, need))
		}
		if g.shared {
			shared = max(shared, n)
		} else {
			sum += n
		}
	}
	*m = sureMemo{gen: r.d.sureGen, value: min(sum+shared, need)}
	return m.value
}
