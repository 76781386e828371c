package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// Tables is a catalog compiled to numbers. It is immutable: anybody may read it without a lock.
type Tables struct {
	Version uint64 // 0: no catalog yet
	Catalog *catalog.Catalog
	Hash    [32]byte

	item     map[string]uint32 // items of this catalog
	pool     map[string]*poolTable
	pools    []*poolTable // by pool number; nil for pools of other catalogs
	start    []stack
	bottomUp []*poolTable // every pool, each after the pools it leads to
}

// NoTables returns the tables of a realm without a catalog.
func NoTables() *Tables { return &Tables{} }

// stack is a quantity of an item, by the item's number.
type stack struct {
	item     uint32
	quantity uint64
}

// poolTable is a pool of one catalog.
type poolTable struct {
	num     uint32
	config  *catalog.Pool
	price   []stack
	limits  []limitTable
	entries []entryTable // by entry number; those of other catalogs are not present
	order   []uint32     // entry numbers in catalog order
	nesting
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
	kind    catalog.RewardKind
	weight  uint64
	items   []quantity
	pool    uint32 // RewardPool: the pool's number
	group   int32  // index in nesting.groups; noGroup: its odds are 0 whatever the stock
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
	case pt.config.Mode == catalog.ModeRaffle:
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
	}
	for i := range c.Items {
		t.item[c.Items[i].ID] = n.item[i]
	}
	t.start = t.stacks(c.Start)
	poolNum := make(map[string]uint32, len(c.Pools))
	for i := range c.Pools {
		poolNum[c.Pools[i].ID] = n.pool[i].num
	}
	for i := range c.Pools {
		p, pn := &c.Pools[i], &n.pool[i]
		pt := &poolTable{num: pn.num, config: p, price: t.stacks(p.Price), order: pn.entry, entries: make([]entryTable, pn.entries)}
		for j, l := range p.Limits {
			pt.limits = append(pt.limits, limitTable{counter: pn.limit[j], per: l.Per, window: l.Window, draws: l.Draws})
		}
		for j := range p.Entries {
			pt.entries[pn.entry[j]] = t.entry(p.Mode, &p.Entries[j], poolNum)
		}
		t.pool[p.ID], t.pools[pt.num] = pt, pt
	}
	t.nest()
	return t
}

func (t *Tables) stacks(in []catalog.Stack) []stack {
	out := make([]stack, len(in))
	for i, st := range in {
		out[i] = stack{item: t.item[st.Item], quantity: st.Quantity}
	}
	return out
}

func (t *Tables) entry(mode catalog.Mode, e *catalog.Entry, pools map[string]uint32) entryTable {
	et := entryTable{id: e.ID, config: e, present: true, limited: !e.Stock.Unlimited, kind: e.Reward.Kind, weight: e.Weight}
	if mode == catalog.ModeRaffle {
		et.weight = 1
	}
	if e.Reward.Kind == catalog.RewardPool {
		et.pool = pools[e.Reward.Pool]
		return et
	}
	et.items = slices.Grow(et.items, len(e.Reward.Items))
	for _, q := range e.Reward.Items {
		et.items = append(et.items, quantity{item: t.item[q.Item], min: q.Min, max: q.Max})
	}
	return et
}
