package rules

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/sampler"
)

// Pools can lead to other pools. An entry whose reward is a pool with nothing left is itself out
// of stock, and so on upwards. The draws of a command must find stock whatever is chosen on the
// way, so that no choice can make it fail.
//
// A pool's entries form branches: one for each pool that they lead to, and one for those that lead
// to none. An entry is out of stock when its own stock is used up or the pool it leads to has
// nothing left. So apart from own stock, a branch lives or dies as a whole, and a pool has
// something left while one of its branches lives.
//
// This is how many draws a pool is sure to have stock for, wherever they enter the pools below it:
//
//	sure(pool)   = the sum of sure(branch) over its branches, but of those that share a
//	               pool further down only the largest; those whose target cannot run
//	               out are one branch in this
//	sure(branch)  = the smaller of the sum of its entries' stock and sure(target)
//
// A pool dies only when each of its branches is dead. A branch dies only when as many draws went
// through its entries as they have stock, or when its target is dead. A draw passes through one
// branch of each pool on its way, and branches that share nothing below do not touch each other's
// stock. If no two branches share a pool, the number is exact.

// A draw can also take several entries: from a pool with several rolls, or through a reward of
// several draws. Pools that are drawn from like this cannot run out: the catalog sees to it. But
// below them there can be stock that another branch counts on. A branch whose stock can be taken
// several times by one draw is counted as nothing, where more than one draw is needed. Entries
// with conditions form no branch: nobody may count on them.

// nesting is the part of a poolTable about the pools below and above it.
type nesting struct {
	branches []branch
	gains    []stack  // no less than one draw can give of each item, through all pools below; ascending by item number
	maxGain  uint64   // the largest quantity in gains
	endless  bool     // can never run out
	leaves   uint64   // how often one draw can at most reach a pool below
	picks    uint64   // how many entries one draw can at most take, here and below; one with several items counts as often
	reach    bitset   // the numbers of this pool and those below, of all that can run out
	parents  []parent // the branches that lead here
}

// branch is the entries of a pool, with odds above 0, that lead to the same pool or to none.
type branch struct {
	target  *poolTable // nil: the rewards are not a single draw from a pool
	entries []uint32   // entry numbers; only if there is a target
	endless bool       // an entry has unlimited stock
	shared  bool       // another branch of this pool leads to a pool that this one leads to
	drained bool       // one draw through other entries can take several times from such a pool
}

type parent struct {
	pool   *poolTable
	branch int32
}

const noBranch = -1

// odds is what can be drawn now from a pool of the catalog in force.
type odds struct {
	samplers []*sampler.Sampler // by class: the current weight of every member without a condition
	left     []uint64           // by branch: the sum of what is left of its limited entries, at most maxCounted each
	live     int                // branches from which something can be drawn; 0: sold out
}

// maxCounted is the most that one entry adds to odds.left, so that 2^20 of them fit 64 bits. No
// command asks for as much.
const maxCounted = 1 << 40

// bitset is a set of small numbers.
type bitset []uint64

func (b bitset) has(n uint32) bool { return int(n/64) < len(b) && b[n/64]>>(n%64)&1 == 1 }

func (b *bitset) add(n uint32) {
	for int(n/64) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

// addAll adds another set and notes in twice what was there before.
func (b *bitset) addAll(other bitset, twice *bitset) {
	for i, w := range other {
		if w == 0 {
			continue
		}
		for i >= len(*b) {
			*b = append(*b, 0)
		}
		for i >= len(*twice) {
			*twice = append(*twice, 0)
		}
		(*twice)[i] |= (*b)[i] & w
		(*b)[i] |= w
	}
}

func (b bitset) meets(other bitset) bool {
	for i := range min(len(b), len(other)) {
		if b[i]&other[i] != 0 {
			return true
		}
	}
	return false
}

// nest fills in the nesting of every pool. The catalog was checked and has no cycles.
func (t *Tables) nest(budgets [][]*budget) {
	done := make([]bool, len(t.pools))
	var visit func(pt *poolTable)
	visit = func(pt *poolTable) { // at most catalog.MaxPoolDepth deep
		done[pt.num] = true
		for target := range pt.targets() {
			if !done[target.num] {
				visit(target)
			}
		}
		pt.budgets = budgets[pt.num]
		pt.setCosts()
		pt.classify()
		pt.branch()
		pt.summarize()
		pt.fix()
		pt.sumGains()
		t.bottomUp = append(t.bottomUp, pt)
	}
	for _, pt := range t.pools {
		if pt != nil && !done[pt.num] {
			visit(pt)
		}
	}
}

// target returns the pool that an entry leads to with a single draw of a single entry, nil if it
// does not.
func (e *entryTable) target() *poolTable {
	if len(e.inner) == 1 && e.inner[0].max == 1 && e.inner[0].pool.single {
		return e.inner[0].pool
	}
	return nil
}

// branch divides the entries into branches.
func (pt *poolTable) branch() {
	byTarget := map[*poolTable]int32{}
	for _, num := range pt.order {
		e := &pt.entries[num]
		if e.branch = noBranch; e.weight == 0 || e.conditional {
			continue
		}
		target := e.target()
		g, ok := byTarget[target]
		if !ok {
			g = int32(len(pt.branches))
			byTarget[target] = g
			pt.branches = append(pt.branches, branch{target: target})
		}
		e.branch = g
		b := &pt.branches[g]
		b.endless = b.endless || !e.limited
		if target != nil {
			b.entries = append(b.entries, num)
		}
	}
}

// summarize derives the rest of nesting, but gains, from the branches and entries.
func (pt *poolTable) summarize() {
	pt.endless = pt.config.Mode == catalog.ModeEach
	var once, twice bitset         // pools that entries lead to
	var wideOnce, wideTwice bitset // pools that one draw can reach several times
	var most, picks, sum, all uint64
	for i := range pt.branches {
		b := &pt.branches[i]
		if b.target == nil {
			pt.endless = pt.endless || b.endless
			continue
		}
		b.target.parents = append(b.target.parents, parent{pt, int32(i)})
		pt.endless = pt.endless || b.endless && b.target.endless
		once.addAll(b.target.reach, &twice)
		if b.target.leaves > 1 {
			wideOnce.addAll(b.target.reach, &wideTwice)
		}
	}
	for _, num := range pt.order {
		e := &pt.entries[num]
		if e.most == 0 {
			continue
		}
		leaves, taken, below := e.reach()
		taken += uint64(max(1, len(e.items)))
		if e.branch == noBranch || e.target() == nil {
			once.addAll(below, &twice)
			if leaves > 1 {
				wideOnce.addAll(below, &wideTwice)
			}
		}
		leaves = max(leaves, 1)
		most, picks, sum, all = max(most, leaves), max(picks, taken), sum+leaves, all+taken
	}
	if pt.config.Mode == catalog.ModeEach {
		most, picks = sum, all
	}
	leaves, taken, below := pt.last.reach()
	if once.addAll(below, &twice); leaves > 0 {
		wideOnce.addAll(below, &wideTwice) // added to what the last ticket itself gives
	}
	most, picks = most+leaves, picks+taken+uint64(len(pt.last.items))
	pt.leaves, pt.picks = most*uint64(pt.config.Rolls.Max), picks*uint64(pt.config.Rolls.Max)
	for i := range pt.branches {
		b := &pt.branches[i]
		if b.target == nil {
			continue
		}
		b.shared = twice.meets(b.target.reach)
		switch {
		case b.target.endless: // only draws through its own entries use it up
		case b.target.leaves > 1:
			b.drained = wideTwice.meets(b.target.reach)
		default:
			b.drained = wideOnce.meets(b.target.reach)
		}
	}
	if pt.reach = once; !pt.endless {
		pt.reach.add(pt.num)
	}
}

// targets yields the pools that a pool leads to, some of them several times.
func (pt *poolTable) targets() iter.Seq[*poolTable] {
	return func(yield func(*poolTable) bool) {
		for _, num := range pt.order {
			for i := range pt.entries[num].inner {
				if !yield(pt.entries[num].inner[i].pool) {
					return
				}
			}
		}
		for i := range pt.last.inner {
			if !yield(pt.last.inner[i].pool) {
				return
			}
		}
	}
}

// reach returns how often a reward can at most reach a pool below, how many entries that takes, and
// which pools that can run out are below.
func (w *reward) reach() (leaves, taken uint64, below bitset) {
	var same bitset
	for i := range w.inner {
		in := &w.inner[i]
		leaves += in.max * in.pool.leaves
		taken += in.max * in.pool.picks
		below.addAll(in.pool.reach, &same)
	}
	return leaves, taken, below
}

// overlaps reports whether draws from two pools can take from the same stock that can run out.
func (pt *poolTable) overlaps(other *poolTable) bool { return pt.reach.meets(other.reach) }

// sumGains fills in gains: for each item the most that entries with odds can give in one draw,
// here or below, in stock or not.
func (pt *poolTable) sumGains() {
	at := map[uint32]int{} // index in gains, by item
	var one []stack        // what an entry can give
	for _, num := range pt.order {
		e := &pt.entries[num]
		if e.most == 0 {
			continue
		}
		one = e.gains(one[:0])
		for _, st := range one {
			i, ok := at[st.item]
			if !ok {
				i = len(pt.gains)
				at[st.item] = i
				pt.gains = append(pt.gains, stack{item: st.item})
			}
			if pt.config.Mode == catalog.ModeEach {
				pt.gains[i].quantity += st.quantity
			} else {
				pt.gains[i].quantity = max(pt.gains[i].quantity, st.quantity)
			}
		}
	}
	pt.gains = pt.last.gains(pt.gains)
	for i := range pt.gains {
		pt.gains[i].quantity *= uint64(pt.config.Rolls.Max)
		pt.maxGain = max(pt.maxGain, pt.gains[i].quantity)
	}
	slices.SortFunc(pt.gains, func(a, b stack) int { return cmp.Compare(a.item, b.item) })
}

// gains adds the most that a reward can give to a list.
func (w *reward) gains(all []stack) []stack {
	for _, q := range w.items {
		all = addTo(all, q.item, q.max)
	}
	for i := range w.inner {
		in := &w.inner[i]
		for _, st := range in.pool.gains {
			all = addTo(all, st.item, st.quantity*in.max) // at most MaxQuantity in all: see catalog
		}
	}
	return all
}

// addTo adds a quantity of an item to a list.
func addTo(all []stack, item uint32, quantity uint64) []stack {
	for i := range all {
		if all[i].item == item {
			all[i].quantity += quantity
			return all
		}
	}
	return append(all, stack{item, quantity})
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
		o.left = make([]uint64, len(pt.branches))
		for _, num := range pt.order {
			if e := &pt.entries[num]; e.branch != noBranch && e.limited {
				o.left[e.branch] += min(r.state.Left(pt.num, num), maxCounted)
			}
		}
		for i := range pt.branches {
			if r.liveBranch(pt, int32(i)) {
				o.live++
			}
		}
		for i := range pt.classes {
			c := &pt.classes[i]
			weights := make([]uint64, len(c.members))
			for slot, num := range c.members {
				weights[slot] = r.weight(pt, num, r.state.Left(pt.num, num))
			}
			s, err := sampler.New(weights)
			if err != nil {
				panic(fmt.Sprintf("rules: pool %q: %v", pt.config.ID, err)) // cannot happen: catalogs are checked
			}
			o.samplers = append(o.samplers, s)
		}
	}
}

// hasStock reports whether a branch has stock of its own.
func (r *Rules) hasStock(pt *poolTable, g int32) bool {
	return pt.branches[g].endless || r.pools[pt.num].left[g] > 0
}

func (r *Rules) liveBranch(pt *poolTable, g int32) bool {
	target := pt.branches[g].target
	return r.hasStock(pt, g) && (target == nil || r.pools[target.num].live > 0)
}

// weight returns the current weight of an entry of which left are left.
func (r *Rules) weight(pt *poolTable, entry uint32, left uint64) uint64 {
	w := pt.weight(entry, left)
	if w == 0 || pt.entries[entry].branch == noBranch {
		return 0
	}
	if target := pt.branches[pt.entries[entry].branch].target; target != nil && r.pools[target.num].live == 0 {
		return 0
	}
	return w
}

// lower updates the odds after a draw of a limited entry, of which left are left now.
func (r *Rules) lower(pt *poolTable, entry uint32, left uint64) {
	o, g := &r.pools[pt.num], pt.entries[entry].branch
	if g == noBranch {
		return
	}
	if left == 0 || pt.raffle {
		r.setWeight(pt, entry, pt.weight(entry, left))
	}
	if left < maxCounted {
		o.left[g]--
	}
	if o.left[g] == 0 && !pt.branches[g].endless {
		r.branchDied(pt)
	}
}

// branchDied counts the death of a branch that had something to draw, and the deaths that follow
// from it in the pools above.
func (r *Rules) branchDied(pt *poolTable) {
	o := &r.pools[pt.num]
	if o.live--; o.live > 0 {
		return
	}
	for _, up := range pt.parents {
		if !r.hasStock(up.pool, up.branch) {
			continue // it was dead before
		}
		for _, entry := range up.pool.branches[up.branch].entries {
			r.setWeight(up.pool, entry, 0)
		}
		r.branchDied(up.pool)
	}
}

// setWeight lowers a weight. The sampler has accepted a larger total, so it cannot fail.
func (r *Rules) setWeight(pt *poolTable, entry uint32, weight uint64) {
	e := &pt.entries[entry]
	if e.branch == noBranch {
		return // it has no weight of its own in the sampler
	}
	if err := r.pools[pt.num].samplers[e.class].Set(int(e.slot), weight); err != nil {
		panic(fmt.Sprintf("rules: pool %q, entry %d, weight %d: %v", pt.config.ID, entry, weight, err))
	}
}

// CheckOdds compares odds and samplers with the stock that is left. It takes time in proportion to
// the catalog.
func (r *Rules) CheckOdds() error {
	for _, pt := range r.t.bottomUp {
		for _, num := range pt.order {
			want := r.weight(pt, num, r.state.Left(pt.num, num))
			e := &pt.entries[num]
			if got := r.pools[pt.num].samplers[e.class].Weight(int(e.slot)); got != want {
				return fmt.Errorf("pool %q, entry %q: the sampler has weight %d instead of %d", pt.config.ID, pt.entries[num].id, got, want)
			}
		}
	}
	again := Rules{state: r.state, t: r.t}
	again.countOdds()
	for _, pt := range r.t.bottomUp {
		if have, want := &r.pools[pt.num], &again.pools[pt.num]; have.live != want.live || !slices.Equal(have.left, want.left) {
			return fmt.Errorf("pool %q: %d branches live with %d left, instead of %d with %d", pt.config.ID, have.live, have.left, want.live, want.left)
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

// sureMemos are the results that hold for now.
type sureMemos struct {
	sure    []sureMemo // by pool number
	sureGen uint32
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
	if o.live == 0 {
		return 0 // not even of refills: only the draw of a last ticket fills a box
	}
	var sum, shared, endless uint64
	for i := 0; i < len(pt.branches) && sum+max(shared, endless) < need; i++ {
		g := &pt.branches[i]
		if g.drained {
			continue
		}
		n := need
		if !g.endless {
			n = min(n, o.left[i])
		}
		if n > 0 && g.target != nil {
			n = min(n, r.sureBelow(g.target, need))
		}
		switch {
		case !g.shared:
			sum += n
		case g.target.endless:
			endless += n
		default:
			shared = max(shared, n)
		}
	}
	if sum += max(shared, endless); sum > 0 && sum < need { // an empty box stays empty: nobody takes its last ticket
		sum += r.moreBoxes(pt)
	}
	*m = sureMemo{gen: r.d.sureGen, value: min(sum, need)}
	return m.value
}
