package rules

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/sampler"
)

// Pools can lead to other pools. An entry that leads to an empty pool is out of stock, and so on
// upwards. A draw must find stock whatever is chosen on the way, or a choice could make it fail.
//
// A pool's entries form branches: one for each pool that they lead to, and one for those that lead to
// none. A branch is dead when the stock of its own entries is used up, or when its target is dead. A
// pool is dead when all its branches are. A pool is sure to have stock for this many draws, whatever
// they choose below it:
//
//	sure(branch) = the smaller of the sum of its entries' stock and sure(target)
//	sure(pool)   = the sum of sure(branch); of branches that share a pool below, only the largest
//	               counts. All whose target cannot run out count as one branch here
//
// Branches that share no pool never take each other's stock: without sharing, the number is exact.
//
// A draw can also take several entries: from a pool with several rolls, or by a reward of several
// draws. The check of catalogs makes sure that such pools cannot run out. But another branch may
// count on stock below them. If one draw can take a branch's stock several times, the branch counts
// as nothing where more than one draw is needed. Entries with conditions form no branch.

// nesting is the part of a Pool about the pools below and above it.
type nesting struct {
	Branches []Branch
	Gains    []Stack  // the most that one draw can give of each item, here and below; ascending by item
	maxGain  uint64   // the largest quantity in gains
	lasting  []Stack  // those of gains that last
	capped   []Stack  // those of which a player can hold only so many
	Endless  bool     // can never run out
	leaves   uint64   // how often one draw can at most reach a pool below
	Picks    uint64   // the most entries that one draw can take, here and below; each of an entry's items counts as one
	reach    NumSet   // the numbers of those of this pool and those below that can run out
	codes    NumSet   // the lists whose codes one draw can give, here and below
	parents  []parent // the branches that lead here
}

// Branch is the entries of a pool, with odds above 0, that lead to the same pool or to none.
type Branch struct {
	Target  *Pool    // nil: the rewards are not a single draw from a pool
	entries []uint32 // entry numbers; only if there is a target
	endless bool     // an entry has unlimited stock
	shared  bool     // another branch of this pool leads to one of the same pools
	drained bool     // one draw through other entries can take several times from one of these
}

type parent struct {
	pool   *Pool
	branch int32
}

const NoBranch = -1

// supply is what can be drawn now from a pool of the catalog in force.
type supply struct {
	samplers []*sampler.Sampler // by class: the current weight of every member without a condition
	left     []uint64           // by branch: the sum of what is left of its limited entries, at most maxCounted each
	live     int                // branches from which something can be drawn; 0: sold out
}

// maxCounted is the most that one entry adds to supply.left. 2^20 of them fit into 64 bits, and no
// command asks for as much.
const maxCounted = 1 << 40

type NumSet []uint64

func (b NumSet) Has(n uint32) bool { return int(n/64) < len(b) && b[n/64]>>(n%64)&1 == 1 }

func (b *NumSet) Add(n uint32) {
	for int(n/64) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

// addAll adds another set. What was there before is added to twice.
func (b *NumSet) addAll(other NumSet, twice *NumSet) {
	for _, set := range [...]*NumSet{b, twice} {
		*set = append(*set, make(NumSet, max(0, len(other)-len(*set)))...)
	}
	for i, w := range other {
		(*twice)[i] |= (*b)[i] & w
		(*b)[i] |= w
	}
}

func (b NumSet) meets(other NumSet) bool {
	for i := range min(len(b), len(other)) {
		if b[i]&other[i] != 0 {
			return true
		}
	}
	return false
}

// nest fills in the nesting of every pool. The catalog was checked and has no cycles.
func (t *Tables) nest() {
	done := make([]bool, len(t.PoolByNum)+len(t.tierPools))
	var visit func(pt *Pool)
	visit = func(pt *Pool) { // at most catalog.MaxPoolDepth deep
		done[pt.Num] = true
		for target := range pt.Targets() {
			if !done[target.Num] {
				visit(target)
			}
		}
		pt.setCosts()
		pt.classify()
		pt.branch()
		pt.summarize()
		pt.fix()
		pt.sumGains()
		pt.listCodes()
		if int(pt.Num) < len(t.PoolByNum) {
			t.BottomUp = append(t.BottomUp, pt)
		}
	}
	for _, pt := range t.PoolByNum {
		if pt != nil && !done[pt.Num] {
			visit(pt)
		}
	}
	for _, pt := range t.tierPools { // nothing leads to them
		visit(pt)
	}
}

// Target returns the pool that an entry leads to with a single draw of a single entry, or nil.
func (e *Entry) Target() *Pool {
	if len(e.Inner) == 1 && e.Inner[0].Max == 1 && e.Inner[0].Pool.single {
		return e.Inner[0].Pool
	}
	return nil
}

// branch divides the entries into branches.
func (pt *Pool) branch() {
	byTarget := map[*Pool]int32{}
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		if e.Branch = NoBranch; e.Weight == 0 || e.Conditional {
			continue
		}
		target := e.Target()
		g, ok := byTarget[target]
		if !ok {
			g = int32(len(pt.Branches))
			byTarget[target] = g
			pt.Branches = append(pt.Branches, Branch{Target: target})
		}
		e.Branch = g
		b := &pt.Branches[g]
		b.endless = b.endless || !e.Limited
		if target != nil {
			b.entries = append(b.entries, num)
		}
	}
}

// summarize derives the rest of nesting from the branches and entries, all but the gains.
func (pt *Pool) summarize() {
	pt.Endless = pt.Config.Mode == catalog.ModeEach
	var once, twice NumSet         // pools that entries lead to
	var wideOnce, wideTwice NumSet // pools that one draw can reach several times
	var most, picks, sum, all uint64
	for i := range pt.Branches {
		b := &pt.Branches[i]
		if b.Target == nil {
			pt.Endless = pt.Endless || b.endless
			continue
		}
		b.Target.parents = append(b.Target.parents, parent{pt, int32(i)})
		pt.Endless = pt.Endless || b.endless && b.Target.Endless
		once.addAll(b.Target.reach, &twice)
		if b.Target.leaves > 1 {
			wideOnce.addAll(b.Target.reach, &wideTwice)
		}
	}
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		if e.Most == 0 {
			continue
		}
		leaves, taken, below := e.reach()
		taken += uint64(max(1, len(e.Items)))
		if e.Branch == NoBranch || e.Target() == nil {
			once.addAll(below, &twice)
			if leaves > 1 {
				wideOnce.addAll(below, &wideTwice)
			}
		}
		leaves = max(leaves, 1)
		most, picks, sum, all = max(most, leaves), max(picks, taken), sum+leaves, all+taken
	}
	if pt.Config.Mode == catalog.ModeEach {
		most, picks = sum, all
	}
	leaves, taken, below := pt.Last.reach()
	if once.addAll(below, &twice); leaves > 0 {
		wideOnce.addAll(below, &wideTwice) // in addition to what the ticket itself gives
	}
	most, picks = most+leaves, picks+taken+uint64(len(pt.Last.Items))
	pt.leaves, pt.Picks = most*uint64(pt.Config.Rolls.Max), picks*uint64(pt.Config.Rolls.Max)
	for i := range pt.Branches {
		b := &pt.Branches[i]
		if b.Target == nil {
			continue
		}
		b.shared = twice.meets(b.Target.reach)
		switch {
		case b.Target.Endless: // only draws through its own entries use it up
		case b.Target.leaves > 1:
			b.drained = wideTwice.meets(b.Target.reach)
		default:
			b.drained = wideOnce.meets(b.Target.reach)
		}
	}
	if pt.reach = once; !pt.Endless {
		pt.reach.Add(pt.Num)
	}
}

// Targets yields the pools that a pool leads to, some of them several times.
func (pt *Pool) Targets() iter.Seq[*Pool] {
	return func(yield func(*Pool) bool) {
		for _, num := range pt.Order {
			for i := range pt.Entries[num].Inner {
				if !yield(pt.Entries[num].Inner[i].Pool) {
					return
				}
			}
		}
		for i := range pt.Last.Inner {
			if !yield(pt.Last.Inner[i].Pool) {
				return
			}
		}
	}
}

// reach returns how often a reward can at most reach a pool below, the most entries that this takes,
// and the pools below that can run out.
func (w *Reward) reach() (leaves, taken uint64, below NumSet) {
	var same NumSet
	for i := range w.Inner {
		in := &w.Inner[i]
		leaves += in.Max * in.Pool.leaves
		taken += in.Max * in.Pool.Picks
		below.addAll(in.Pool.reach, &same)
	}
	return leaves, taken, below
}

// listCodes fills in the lists of codes.
func (pt *Pool) listCodes() {
	var same NumSet
	for _, num := range pt.Order {
		for _, list := range pt.Entries[num].Codes {
			pt.codes.Add(list)
		}
	}
	for target := range pt.Targets() {
		pt.codes.addAll(target.codes, &same)
	}
}

// sumGains fills in the gains: for each item the most that entries with odds, in stock or not, can
// give in one draw, here or below.
func (pt *Pool) sumGains() {
	at := map[uint32]int{} // index in Gains, by item
	var one []Stack        // what an entry can give
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		if e.Most == 0 {
			continue
		}
		one = e.gains(one[:0])
		for _, st := range one {
			i, ok := at[st.Item]
			if !ok {
				i = len(pt.Gains)
				at[st.Item] = i
				pt.Gains = append(pt.Gains, Stack{Item: st.Item})
			}
			if pt.Config.Mode == catalog.ModeEach {
				pt.Gains[i].Quantity += st.Quantity
			} else {
				pt.Gains[i].Quantity = max(pt.Gains[i].Quantity, st.Quantity)
			}
		}
	}
	pt.Gains = pt.Last.gains(pt.Gains)
	for i := range pt.Gains {
		pt.Gains[i].Quantity *= uint64(pt.Config.Rolls.Max)
		pt.maxGain = max(pt.maxGain, pt.Gains[i].Quantity)
	}
	slices.SortFunc(pt.Gains, func(a, b Stack) int { return cmp.Compare(a.Item, b.Item) })
}

// gains adds the most that a reward can give to a list.
func (w *Reward) gains(all []Stack) []Stack {
	for _, q := range w.Items {
		all = addTo(all, q.Item, q.Max)
	}
	for i := range w.Inner {
		in := &w.Inner[i]
		for _, st := range in.Pool.Gains {
			all = addTo(all, st.Item, st.Quantity*in.Max) // at most MaxQuantity in all: see catalog
		}
	}
	return all
}

// addTo adds a quantity of an item to a list.
func addTo(all []Stack, item uint32, quantity uint64) []Stack {
	if i := indexOf(all, item); i >= 0 {
		all[i].Quantity += quantity
		return all
	}
	return append(all, Stack{item, quantity})
}

// gainOf returns the most of an item that one draw can give.
func (pt *nesting) gainOf(item uint32) uint64 {
	i, ok := slices.BinarySearchFunc(pt.Gains, item, func(st Stack, item uint32) int { return cmp.Compare(st.Item, item) })
	if !ok {
		return 0
	}
	return pt.Gains[i].Quantity
}

// countSamplers makes supplies and samplers from the tables and the stock that is left.
func (r *stocks) countSamplers() {
	r.pools = make([]supply, len(r.t.PoolByNum)+len(r.t.tierPools))
	for _, pt := range slices.Concat(r.t.BottomUp, r.t.tierPools) {
		o := &r.pools[pt.Num]
		o.left = make([]uint64, len(pt.Branches))
		r.countLeft(pt)
		for i := range pt.Classes {
			c := &pt.Classes[i]
			weights := make([]uint64, len(c.members))
			for slot, num := range c.members {
				weights[slot] = r.fixedWeight(pt, num)
			}
			s, err := sampler.New(weights)
			if err != nil {
				panic(fmt.Sprintf("rules: pool %q: %v", pt.Config.ID, err)) // cannot happen: catalogs are checked
			}
			o.samplers = append(o.samplers, s)
		}
	}
}

// countLeft counts what is left in a pool's branches, and how many of them live.
func (r *stocks) countLeft(pt *Pool) {
	o := &r.pools[pt.Num]
	clear(o.left)
	for _, num := range pt.Order {
		if e := &pt.Entries[num]; e.Branch != NoBranch && e.Limited {
			o.left[e.Branch] += min(r.Left(pt, num), maxCounted)
		}
	}
	o.live = 0
	for i := range pt.Branches {
		target := pt.Branches[i].Target
		if r.hasStock(pt, int32(i)) && (target == nil || r.pools[target.Num].live > 0) {
			o.live++
		}
	}
}

// fixedWeight returns an entry's weight in its sampler. Entries with conditions have none there.
func (r *stocks) fixedWeight(pt *Pool, entry uint32) uint64 {
	if pt.Entries[entry].Conditional {
		return 0
	}
	return pt.Weigh(&r.Sight, entry, true)
}

// hasStock reports whether a branch has stock of its own.
func (r *stocks) hasStock(pt *Pool, g int32) bool {
	return pt.Branches[g].endless || r.pools[pt.Num].left[g] > 0
}

// lower updates the supply after a limited entry was drawn, of which left are left now.
func (r *stocks) lower(pt *Pool, entry uint32, left uint64) {
	o, g := &r.pools[pt.Num], pt.Entries[entry].Branch
	if g == NoBranch {
		return
	}
	if left == 0 || pt.raffle {
		r.setWeight(pt, entry, left)
	}
	if left < maxCounted {
		o.left[g]--
	}
	if o.left[g] == 0 && !pt.Branches[g].endless {
		r.branchDied(pt)
	}
}

// branchDied counts the death of a living branch, and the deaths that follow in the pools above.
func (r *stocks) branchDied(pt *Pool) {
	o := &r.pools[pt.Num]
	if o.live--; o.live > 0 {
		return
	}
	for _, up := range pt.parents {
		if !r.hasStock(up.pool, up.branch) {
			continue // it was dead before
		}
		for _, entry := range up.pool.Branches[up.branch].entries {
			r.setWeight(up.pool, entry, 0)
		}
		r.branchDied(up.pool)
	}
}

// setWeight changes a weight. It cannot fail: the sampler has accepted a larger total.
func (r *stocks) setWeight(pt *Pool, entry uint32, weight uint64) {
	e := &pt.Entries[entry]
	if e.Branch == NoBranch {
		return // it has no weight of its own in the sampler
	}
	if err := r.pools[pt.Num].samplers[e.Class].Set(int(e.slot), weight); err != nil {
		panic(fmt.Sprintf("rules: pool %q, entry %d, weight %d: %v", pt.Config.ID, entry, weight, err))
	}
}

// CheckSamplers compares supplies, samplers and what holds keep with the state.
func (r *stocks) CheckSamplers() error {
	r.Sight.begin(0)
	again := stocks{Sight: Sight{tallying: tallying{scene: scene{state: r.state, t: r.t}}}}
	again.countSamplers()
	again.loadKept()
	if have, want := &r.kept, &again.kept; !have.same(want) {
		return fmt.Errorf("holds keep %+v, instead of %+v", *have, *want)
	}
	for _, pt := range r.t.BottomUp {
		have, want := &r.pools[pt.Num], &again.pools[pt.Num]
		if have.live != want.live || !slices.Equal(have.left, want.left) {
			return fmt.Errorf("pool %q: %d branches live with %d left, instead of %d with %d", pt.Config.ID, have.live, have.left, want.live, want.left)
		}
		for _, num := range pt.Order {
			e := &pt.Entries[num]
			if got, want := have.samplers[e.Class].Weight(int(e.slot)), want.samplers[e.Class].Weight(int(e.slot)); got != want {
				return fmt.Errorf("pool %q, entry %q: the sampler has weight %d instead of %d", pt.Config.ID, e.ID, got, want)
			}
		}
	}
	return nil
}

// sure returns how many draws a pool is sure to have stock for, at most need.
func (r *stocks) sure(pt *Pool, need uint64) uint64 {
	if r.sureGen++; r.sureGen == 0 || len(r.memos) < len(r.pools) {
		r.memos, r.sureGen = make([]sureMemo, len(r.pools)), 1
	}
	return r.sureBelow(pt, need)
}

// stocks is what can be drawn now, and what is sure to be there.
type stocks struct {
	Sight
	memos   []sureMemo // by pool number; those of generation sureGen hold for now
	sureGen uint32
}

// sureMemo is the result of one computation of sure for one pool.
type sureMemo struct {
	gen   uint32
	value uint64
}

func (r *stocks) sureBelow(pt *Pool, need uint64) uint64 {
	m := &r.memos[pt.Num]
	switch {
	case pt.Endless:
		return need
	case m.gen == r.sureGen:
		return m.value
	}
	o := &r.pools[pt.Num]
	if o.live == 0 {
		return 0 // refills do not help: only the draw of a last ticket fills a box
	}
	var sum, shared, endless uint64
	for i := 0; i < len(pt.Branches) && sum+max(shared, endless) < need; i++ {
		g := &pt.Branches[i]
		if g.drained {
			continue
		}
		n := need
		if !g.endless {
			n = min(n, o.left[i])
		}
		if n > 0 && g.Target != nil {
			n = min(n, r.sureBelow(g.Target, need))
		}
		switch {
		case !g.shared:
			sum += n
		case g.Target.Endless:
			endless += n
		default:
			shared = max(shared, n)
		}
	}
	if sum += max(shared, endless); sum > 0 && sum < need { // an empty box stays empty
		sum += pt.RefillsLeft(&r.Sight) * pt.boxful // below 2^53: see catalog
	}
	*m = sureMemo{gen: r.sureGen, value: min(sum, need)}
	return m.value
}
