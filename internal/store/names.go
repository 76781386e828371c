package store

import (
	"iter"
	"maps"
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

	// Readers share the maps of items and pools. The first new name in an event copies them.
	ownItems, ownPools bool
}

// item is what the realm knows about an item.
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

// shared notes that readers share the maps from now on.
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
func (s *State) ItemNum(id string) (num uint32, ok bool) {
	num, ok = s.names.itemNum[id]
	return num, ok
}

// Items returns how many items there are.
func (s *State) Items() int { return len(s.names.items) }

// ItemID returns the id of an item, or "" if there is no such item. It may be called concurrently
// with the writer.
func (s *State) ItemID(num uint32) string {
	if items := s.shown.Load().items; int(num) < len(items) {
		return items[num].id
	}
	return ""
}

// ItemKind returns the kind of an item, which never changes.
func (s *State) ItemKind(num uint32) uint8 { return s.names.items[num].kind }

// Supply returns how many of an item all players hold together, in decimal. any is true if that is
// more than none.
func (s *State) Supply(num uint32) (text string, any bool) {
	supply := s.names.items[num].supply
	return supply.String(), supply.hi|supply.lo != 0
}

// PoolNum returns the number of a pool.
func (s *State) PoolNum(id string) (num uint32, ok bool) {
	num, ok = s.names.poolNum[id]
	return num, ok
}

// Pools returns how many pools there are.
func (s *State) Pools() int { return len(s.names.pools) }

// PoolID returns the id of a pool, or "" if there is no such pool. It may be called concurrently
// with the writer.
func (s *State) PoolID(num uint32) string {
	if pools := s.shown.Load().pools; int(num) < len(pools) {
		return pools[num].id
	}
	return ""
}

// CounterNum returns the number of the first counter with a name.
func (s *State) CounterNum(name string) (first uint32, ok bool) {
	first, ok = s.names.counterNum[name]
	return first, ok
}

// NextCounter returns the number that the next counter gets.
func (s *State) NextCounter() uint32 { return s.names.next }

// CounterNames yields the name of every range of counters, and how many counters it has.
func (s *State) CounterNames() iter.Seq2[string, uint32] {
	return func(yield func(string, uint32) bool) {
		for _, c := range s.names.counters {
			if !yield(c.name, c.width) {
				return
			}
		}
	}
}
