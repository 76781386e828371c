package economy

import (
	"github.com/kuji-dev/kuji/catalog"
)

// tables is one catalog version in numbers. It is immutable once in force, so
// that a replayed result reads the same after the catalog has changed, and so
// that anybody may read it without a lock.
type tables struct {
	version     uint64 // 0: no catalog yet
	position    uint64 // of the event that applied it
	index       uint32 // of that event in its batch
	time        int64  // of that event
	hash        [32]byte
	catalog     *catalog.Catalog
	idempotency catalog.Idempotency
	item        nameIndex // items in this version
	pool        map[string]*poolTable
	pools       []*poolTable // by pool number; nil when not in this version
	start       []stack
	bottomUp    []*poolTable // every pool, after all pools that it leads to
}

// findPool returns the pool of this id in the catalog in force, nil when it has none.
func (s *State) findPool(id string) *poolTable {
	if s.recent != nil && s.recent.config.ID == id {
		return s.recent
	}
	pt := s.current.pool[id]
	if pt != nil {
		s.recent = pt
	}
	return pt
}

// stack is a quantity of an item by number.
type stack struct {
	item     uint32
	quantity uint64
}

// poolTable is a pool of one catalog version.
type poolTable struct {
	num     uint32
	config  *catalog.Pool
	price   []stack
	limits  []limitTable
	entries []entryTable // by entry number; not present for those of other versions
	order   []uint32     // entry numbers in catalog order
	fixed   bool         // no reward is a pool or of a range
	plain   bool         // every single draw is plain: see plain.go
	open    bool         // anybody may draw once at any time
	nesting
}

type limitTable struct {
	num    uint32
	per    catalog.Per
	window int64
	draws  uint64
}

// entryTable is an entry of one catalog version.
type entryTable struct {
	id      string
	config  *catalog.Entry
	present bool
	limited bool
	common  bool // every draw of it gives quantity of item, whatever else is the case, and counts nothing but that it happened and what is left
	kind    catalog.RewardKind
	weight  uint64
	stock   uint64 // when limited: in all
	ranged  int    // how many of items have min < max
	items   []quantity
	pool    uint32 // RewardPool: the pool's number
	group   int32  // index in nesting.groups; noGroup when its odds are 0 whatever the stock
	// single is the Outcome of this entry by itself when it needs no choice
	// beyond the entry: no ranges, no nested pool. Shared by every result.
	single []Outcome

	item     uint32 // when common
	quantity uint64 // likewise
}

// quantity is a fixed or uniform quantity of an item by number.
type quantity struct {
	item     uint32
	min, max uint64
}

func (s *State) numberItem(it *catalog.Item) uint32 {
	num, ok := s.itemNum[it.ID]
	if !ok {
		num = uint32(len(s.items))
		s.itemNum[it.ID] = num
		s.items = append(s.items, itemState{id: it.ID, kind: it.Kind})
	}
	return num
}

func (s *State) numberPool(id string) uint32 {
	num, ok := s.poolNum[id]
	if !ok {
		num = uint32(len(s.pools))
		s.poolNum[id] = num
		s.pools = append(s.pools, &poolState{id: id, entryNum: map[string]uint32{}})
	}
	return num
}

// addEntry numbers an entry that was never seen.
func (p *poolState) addEntry(id string) uint32 {
	num := uint32(len(p.entryIDs))
	p.entryNum[id] = num
	p.entryIDs = append(p.entryIDs, id)
	p.drawn = append(p.drawn, 0)
	p.left = append(p.left, 0)
	if num%drawnChunk == 0 {
		p.changed = append(p.changed, 0)
	}
	return num
}

func (s *State) numberLimit(k limitKey) uint32 {
	num, ok := s.limNum[k]
	if !ok {
		num = uint32(len(s.limits))
		s.limNum[k] = num
		s.limits = append(s.limits, k)
	}
	return num
}

// compile turns a checked catalog and its numbers into tables.
func compile(c *catalog.Catalog, hash [32]byte, n *names) *tables {
	t := &tables{
		catalog:     c,
		hash:        hash,
		idempotency: c.Idempotency,
		pool:        make(map[string]*poolTable, len(c.Pools)),
		pools:       make([]*poolTable, n.poolsEver),
	}
	ids := make([]string, len(c.Items))
	for i := range ids {
		ids[i] = c.Items[i].ID
	}
	t.item = newNameIndex(ids, n.items)
	t.start = t.stacks(c.Start)
	for i := range c.Pools {
		p := &c.Pools[i]
		pt := &poolTable{num: n.pools[i], config: p, price: t.stacks(p.Price), order: n.entry[i]}
		for j, l := range p.Limits {
			pt.limits = append(pt.limits, limitTable{num: n.limits[i][j], per: l.Per, window: l.Window, draws: l.Draws})
		}
		pt.entries = make([]entryTable, n.entries[i])
		for j := range p.Entries {
			pt.entries[n.entry[i][j]] = t.compileEntry(p.Mode, &p.Entries[j], n)
		}
		pt.fixed = pt.isFixed()
		pt.plain = pt.fixed && len(pt.price) == 0
		pt.open = pt.isOpen()
		pt.findCommon()
		t.pool[p.ID] = pt
		t.pools[pt.num] = pt
	}
	t.nest()
	return t
}

// itemOf returns the number of an item that the catalog has.
func (t *tables) itemOf(id string) uint32 {
	num, _ := t.item.find(id) // checked: catalogs name nothing else
	return num
}

func (t *tables) stacks(in []catalog.Stack) []stack {
	out := make([]stack, len(in))
	for i, st := range in {
		out[i] = stack{item: t.itemOf(st.Item), quantity: st.Quantity}
	}
	return out
}

func (t *tables) compileEntry(mode catalog.Mode, e *catalog.Entry, n *names) entryTable {
	et := entryTable{id: e.ID, config: e, present: true, limited: !e.Stock.Unlimited, kind: e.Reward.Kind, weight: e.Weight, stock: e.Stock.Count}
	if mode == catalog.ModeRaffle {
		et.weight = 1
	}
	if e.Reward.Kind == catalog.RewardPool {
		et.pool = n.pool[e.Reward.Pool]
		return et
	}
	var fixed []catalog.Stack
	for _, q := range e.Reward.Items {
		et.items = append(et.items, quantity{item: t.itemOf(q.Item), min: q.Min, max: q.Max})
		if q.Min != q.Max {
			et.ranged++
		}
		fixed = append(fixed, catalog.Stack{Item: q.Item, Quantity: q.Min})
	}
	if et.ranged == 0 {
		et.single = []Outcome{{Entry: e.ID, Items: fixed}}
	}
	return et
}
