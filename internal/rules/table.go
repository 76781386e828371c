package rules

import (
	"cmp"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// Tables is a catalog compiled to numbers. It is immutable: anybody may read it without a lock.
type Tables struct {
	Version uint64 // 0: no catalog yet
	Catalog *catalog.Catalog
	Hash    [32]byte

	item     map[string]uint32 // items of this catalog
	itemAt   []uint32          // by number: where those stand in it
	pool     map[string]*poolTable
	pools    []*poolTable // by pool number; nil for pools of other catalogs
	track    map[string]*namedTrack
	counted  map[uint32]*namedTrack // by counter number
	limits   []namedLimit           // and free draws, of all pools, by counter number
	start    []stack
	waiting  uint32 // number of the counter of players who wait for the starting grants; noCounter: none waits
	zone     zone
	bottomUp []*poolTable      // every pool, each after the pools it leads to
	watched  bitset            // the items that entries' conditions ask for
	list     map[string]uint32 // lists of codes of this catalog
	redeem   []redeemTable     // in the order of pools
	guesses  limitTable
}

// NoTables returns the tables of a realm without a catalog.
func NoTables() *Tables { return &Tables{waiting: noCounter} }

// stack is a quantity of an item, by the item's number.
type stack struct {
	item     uint32
	quantity uint64
}

// poolTable is a pool of one catalog.
type poolTable struct {
	num     uint32
	config  *catalog.Pool
	price   [][]stack // alternatives; none: free
	bundles []bundleTable
	free    *limitTable // how many draws cost nothing; nil: none
	limits  []limitTable
	when    condition
	entries []entryTable // by entry number; those of other catalogs are not present
	order   []uint32     // entry numbers in catalog order
	classes []class
	single  bool // each draw takes one entry: mode each does not, nor do several rolls
	raffle  bool
	// plain: nothing in the pool depends on the player. conditional: an entry has a condition.
	// collect: every entry with odds has.
	plain, conditional, collect bool
	moments                     []*moments
	budgets                     []*budget // item by item, in the order of the catalog
	pity
	box
	nesting
}

// bundleTable is the price of several draws.
type bundleTable struct {
	draws uint64
	price []stack
}

type limitTable struct {
	counter uint32 // number of its first counter
	per     catalog.Per
	window  int64
	draws   uint64
}

// entryTable is an entry of one catalog.
type entryTable struct {
	id      string
	config  *catalog.Entry
	present bool
	limited bool
	weight  uint64
	most    uint64 // the highest weight that it can have; more than weight only by luck
	reward
	when condition
	luck luckTable
	// costs is the most that it gives of each item that a budget of the pool is of.
	costs []cost
	// conditional entries weigh what they weigh for the player: see weigh.
	conditional bool
	class       uint32 // index in poolTable.classes
	slot        uint32 // index in the class's members
	branch      int32  // index in nesting.branches; noBranch: the pool does not count on it
}

// reward is what is given at once.
type reward struct {
	items []quantity
	codes []uint32     // numbers of lists
	inner []innerTable // draws from other pools
}

// innerTable is a number of draws from another pool.
type innerTable struct {
	pool     *poolTable
	min, max uint64
}

// quantity is a fixed or uniformly random quantity of an item, by the item's number.
type quantity struct {
	item     uint32
	min, max uint64
}

// weight returns an entry's weight if left are left of it, without regard to nested pools: see
// [Rules.weight].
func (pt *poolTable) weight(entry uint32, left uint64) uint64 {
	e := &pt.entries[entry]
	switch {
	case !e.present || e.limited && left == 0:
		return 0
	case pt.raffle:
		return left
	}
	return e.weight
}

// compile turns a checked catalog and its numbers into tables.
func compile(c *catalog.Catalog, hash [32]byte, version uint64, n *numbers) *Tables {
	t := &Tables{
		Version: version, Catalog: c, Hash: hash,
		item:  make(map[string]uint32, len(c.Items)),
		pool:  make(map[string]*poolTable, len(c.Pools)),
		pools: make([]*poolTable, n.pools),
		track: map[string]*namedTrack{}, counted: map[uint32]*namedTrack{},
	}
	for i := range c.Items {
		num := n.item[i]
		if short := int(num) + 1 - len(t.itemAt); short > 0 {
			t.itemAt = append(t.itemAt, make([]uint32, short)...)
		}
		t.item[c.Items[i].ID], t.itemAt[num] = num, uint32(i)
	}
	t.waiting = n.waiting
	t.start, t.zone, t.list = t.stacks(c.Start), compileZone(&c.Zone), n.list
	for i := range c.Pools {
		p, pn := &c.Pools[i], &n.pool[i]
		pt := &poolTable{num: pn.num, config: p, order: pn.entry, entries: make([]entryTable, pn.entries)}
		t.pool[p.ID], t.pools[pt.num] = pt, pt
	}
	for i := range c.Pools {
		p, pn := &c.Pools[i], &n.pool[i]
		pt := t.pools[pn.num]
		for _, one := range p.Price {
			pt.price = append(pt.price, t.stacks(one))
		}
		for j := range p.Bundles {
			pt.bundles = append(pt.bundles, bundleTable{uint64(p.Bundles[j].Draws), t.stacks(p.Bundles[j].Price)})
		}
		if p.Free.Per != 0 {
			pt.free = &limitTable{counter: pn.free, per: p.Free.Per, draws: p.Free.Draws}
		}
		for j, l := range p.Limits {
			pt.limits = append(pt.limits, limitTable{counter: pn.limit[j], per: l.Per, window: l.Window, draws: l.Draws})
		}
		for j := range pt.limits {
			t.limits = append(t.limits, namedLimit{&pt.limits[j], p.ID, false})
		}
		if pt.free != nil {
			t.limits = append(t.limits, namedLimit{pt.free, p.ID, true})
		}
		pt.single = p.Mode != catalog.ModeEach && p.Rolls.Max == 1
		pt.raffle = p.Mode == catalog.ModeRaffle
		pt.setTracks(pn.track)
		t.nameTracks(pt, pn.track)
		pt.last, pt.refills = t.reward(&p.Last), pn.refills
		pt.when = t.condition(pt, &p.When)
		for j := range p.Entries {
			pt.entries[pn.entry[j]] = t.entry(pt, &p.Entries[j])
		}
		for j := range p.Entries {
			if e := &p.Entries[j]; e.Moments.Count > 0 {
				pt.moments = append(pt.moments, newMoments(p, e, pn.entry[j], pn.moments[len(pt.moments)], t.zone))
			}
			pt.boxful += p.Entries[j].Stock.Count
		}
	}
	slices.SortFunc(t.limits, func(a, b namedLimit) int { return cmp.Compare(a.counter, b.counter) })
	t.nest(t.budgets(c, n))
	t.setRedeem(n)
	return t
}

func (t *Tables) stacks(in []catalog.Stack) []stack {
	out := make([]stack, len(in))
	for i, st := range in {
		out[i] = stack{item: t.item[st.Item], quantity: st.Quantity}
	}
	return out
}

func (t *Tables) entry(pt *poolTable, e *catalog.Entry) entryTable {
	et := entryTable{id: e.ID, config: e, present: true, limited: !e.Stock.Unlimited, weight: e.Weight, when: t.condition(pt, &e.When)}
	if pt.raffle {
		et.weight = 1
	}
	et.reward = t.reward(&e.Reward)
	if e.Unique {
		for _, q := range et.items {
			et.when.lacks = append(et.when.lacks, q.item)
		}
	}
	et.most, et.luck = et.weight, t.luck(pt, &e.Luck)
	if e.Moments.Count > 0 {
		et.most = 1
	}
	for _, s := range et.luck.steps {
		et.most = max(et.most, s.Weight)
	}
	et.conditional = !et.when.empty() || len(et.luck.steps) > 0 || len(et.codes) > 0
	t.watch(&et)
	return et
}

func (t *Tables) reward(w *catalog.Reward) (out reward) {
	out.items = make([]quantity, 0, len(w.Items))
	for _, q := range w.Items {
		out.items = append(out.items, quantity{item: t.item[q.Item], min: q.Min, max: q.Max})
	}
	for _, list := range w.Codes {
		out.codes = append(out.codes, t.list[list])
	}
	for _, in := range w.Draws {
		out.inner = append(out.inner, innerTable{t.pool[in.Pool], uint64(in.Min), uint64(in.Max)})
	}
	return out
}
