package store

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// names holds the numbers of everything that events have named: items, pools and counters. Entries
// are in their pools. Numbers are given in the order of naming and never reused.
type names struct {
	items      []item // by number
	itemNum    map[string]uint32
	pools      []*pool // by number
	poolNum    map[string]uint32
	counters   []counters // ascending by first number
	counterNum map[string]uint32
	next       uint32 // the number that the next counter gets
	peak       uint64 // no less than any item's supply; at most maxPeak

	// Readers share the maps of items and pools. The first new name in an event copies them.
	ownItems, ownPools bool
}

type item struct {
	id     string
	kind   uint8
	supply sum // of all balances
}

// counters is a named range of counters with consecutive numbers.
type counters struct {
	name  string
	first uint32
	width uint32
}

func (n *names) init() {
	n.itemNum, n.poolNum, n.counterNum = map[string]uint32{}, map[string]uint32{}, map[string]uint32{}
}

func (n *names) shared() { n.ownItems, n.ownPools = false, false }

func (n *names) addItem(id string, kind uint8) error {
	if _, ok := n.itemNum[id]; ok {
		return inconsistent("item %q is not new", id)
	}
	if len(n.items) >= MaxItems {
		return inconsistent("more than %d items", MaxItems)
	}
	if !n.ownItems {
		n.itemNum, n.ownItems = maps.Clone(n.itemNum), true
	}
	n.itemNum[id] = uint32(len(n.items))
	n.items = append(n.items, item{id: id, kind: kind})
	return nil
}

func (n *names) addPool(id string) (*pool, error) {
	if _, ok := n.poolNum[id]; ok {
		return nil, inconsistent("pool %q is not new", id)
	}
	if len(n.pools) >= MaxPools {
		return nil, inconsistent("more than %d pools", MaxPools)
	}
	if !n.ownPools {
		n.poolNum, n.ownPools = maps.Clone(n.poolNum), true
	}
	p := &pool{num: uint32(len(n.pools)), id: id, entryNum: map[string]uint32{}}
	n.poolNum[id] = p.num
	n.pools = append(n.pools, p)
	return p, nil
}

func (n *names) addCounters(name string, width uint32) error {
	if _, ok := n.counterNum[name]; ok {
		return inconsistent("counters %q are not new", name)
	}
	if width == 0 || width > MaxCounters-n.next {
		return inconsistent("%d more counters after %d", width, n.next)
	}
	n.counterNum[name] = n.next
	n.counters = append(n.counters, counters{name: name, first: n.next, width: width})
	n.next += width
	return nil
}

// ItemNum returns the number of an item.
func (n *names) ItemNum(id string) (num uint32, ok bool) {
	num, ok = n.itemNum[id]
	return num, ok
}

// Items returns how many items there are.
func (n *names) Items() int { return len(n.items) }

// ItemKind returns the kind of an item, which never changes.
func (n *names) ItemKind(num uint32) uint8 { return n.items[num].kind }

// Supply returns how many of an item all players hold together, in decimal. any is true if that is
// more than none.
func (n *names) Supply(num uint32) (text string, any bool) {
	supply := n.items[num].supply
	return supply.String(), supply.hi|supply.lo != 0
}

// PoolNum returns the number of a pool.
func (n *names) PoolNum(id string) (num uint32, ok bool) {
	num, ok = n.poolNum[id]
	return num, ok
}

// Pools returns how many pools there are.
func (n *names) Pools() int { return len(n.pools) }

// CounterNum returns the number of the first counter with a name.
func (n *names) CounterNum(name string) (first uint32, ok bool) {
	first, ok = n.counterNum[name]
	return first, ok
}

func nameAt(all []counters, first uint32) string {
	i, ok := slices.BinarySearchFunc(all, first, func(c counters, first uint32) int { return cmp.Compare(c.first, first) })
	if !ok {
		return ""
	}
	return all[i].name
}

// NextCounter returns the number that the next counter gets.
func (n *names) NextCounter() uint32 { return n.next }

// CounterNames yields the name of every range of counters, and how many counters it has.
func (n *names) CounterNames() iter.Seq2[string, uint32] {
	return func(yield func(string, uint32) bool) {
		for _, c := range n.counters {
			if !yield(c.name, c.width) {
				return
			}
		}
	}
}

// maxPeak bounds sums that only tell whether a balance could come near MaxQuantity.
const maxPeak = 1 << 60

// Peak returns a number that no balance exceeds.
func (n *names) Peak() uint64 { return n.peak }

func (n *names) raisePeak(it *item) {
	if it.supply.lo > n.peak || it.supply.hi != 0 {
		n.peak = maxPeak
		if it.supply.hi == 0 {
			n.peak = min(it.supply.lo, maxPeak)
		}
	}
}
