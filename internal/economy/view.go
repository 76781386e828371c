package economy

import "github.com/kuji-dev/kuji/catalog"

// Holdings is what a player holds.
type Holdings struct {
	Items []catalog.Stack // by item number, that is in the order in which catalogs named them
	Last  uint64          // position of the player's last change
}

// Player returns what a player holds, and false when the player was never seen.
func (s *State) Player(id string) (Holdings, bool) {
	n, ok := s.players.find(id)
	if !ok {
		return Holdings{}, false
	}
	h := Holdings{Last: s.players.recs.at(n).last}
	for _, sl := range s.players.holdings(n) {
		if sl.key&limitSlot != 0 {
			break
		}
		h.Items = append(h.Items, catalog.Stack{Item: s.items[sl.key].id, Quantity: sl.value()})
	}
	return h, true
}

// EntryStock is an entry's stock and odds.
type EntryStock struct {
	ID        string
	Unlimited bool
	Left      uint64 // 0 when Unlimited
	Drawn     uint64
	Weight    uint64 // current; 0 when out of stock
}

// PoolStock is a pool of the catalog in force with its stock.
type PoolStock struct {
	Config  *catalog.Pool
	Entries []EntryStock // in catalog order
	Total   uint64       // of the weights
	Last    uint64       // position of the pool's last change
}

// Pool returns a pool of the catalog in force, and false when it has none of
// this id.
func (s *State) Pool(id string) (PoolStock, bool) {
	pt := s.current.pool[id]
	if pt == nil {
		return PoolStock{}, false
	}
	p := s.pools[pt.num]
	v := PoolStock{Config: pt.config, Last: p.last, Entries: make([]EntryStock, len(pt.order))}
	for i, num := range pt.order {
		w := s.weight(pt, num, p.left[num])
		v.Entries[i] = EntryStock{
			ID: pt.entries[num].id, Unlimited: !pt.entries[num].limited,
			Left: p.left[num], Drawn: p.drawn[num], Weight: w,
		}
		v.Total += w
	}
	return v, true
}
