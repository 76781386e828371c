package economy

import "github.com/kuji-dev/kuji/catalog"

// Holdings is what a player holds.
type Holdings struct {
	Items []catalog.Stack // by item number, that is in the order in which catalogs named them
	Last  uint64          // position of the player's last change
}

// Player returns what a player holds, and false when the player was never seen.
// It may be called beside the writer, and sees each event wholly or not at all.
func (s *State) Player(id string) (Holdings, bool) {
	var h Holdings
	var buf [64]slot
	slots := buf[:0]
	var v sight
	for {
		found := s.players.enter(id, &v)
		if found {
			h.Last = v.head.last
			slots = append(slots[:0], v.holdings()...)
		}
		if v.leave() {
			if !found {
				return Holdings{}, false
			}
			break
		}
	}
	names := s.shown.Load().items // after the slots, so that it has all their items
	h.Items = make([]catalog.Stack, 0, len(slots))
	for _, sl := range slots {
		if sl.key&limitSlot != 0 {
			break
		}
		h.Items = append(h.Items, catalog.Stack{Item: names[sl.key].id, Quantity: sl.value()})
	}
	return h, true
}

// Balance is how many of one item a player holds.
type Balance struct {
	Named    bool // the catalog in force has the item
	Seen     bool // the player was seen
	Quantity uint64
	Last     uint64 // position of the last change of the player, or of the catalog
}

// Balance returns how many of an item a player holds. It may be called beside
// the writer.
func (s *State) Balance(id, item string) (b Balance) {
	t := s.shown.Load().tables
	num, named := t.item.find(item)
	b.Named = named
	for v := (sight{}); ; {
		b.Last, b.Quantity = 0, 0
		if b.Seen = s.players.enter(id, &v); b.Seen {
			b.Last = v.head.last
			h := v.holdings()
			if i := search(h, num); named && i < len(h) && h[i].key == num {
				b.Quantity = h[i].value()
			}
		}
		if v.leave() {
			break
		}
	}
	b.Last = max(b.Last, t.position) // that there is such an item, or none, rests on it
	return b
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
	Version uint64 // of the catalog in force
	Config  *catalog.Pool
	Entries []EntryStock // in catalog order
	Total   uint64       // of the weights
	Last    uint64       // position of the pool's last change
}

// partEntries is how many entries a view of a pool copies at a time, so that
// draws from a large one do not wait for a reader.
const partEntries = 4096

// Pool returns a pool of the catalog in force, and false, with the catalog's
// version and position, when it has none of this id. It may be called beside the writer. A pool of more than 4096 entries
// is copied in parts, between which draws may happen: Last is then the last of
// them.
func (s *State) Pool(id string) (PoolStock, bool) { return s.PoolPage(id, 0, maxEntriesEver) }

// PoolPage is Pool with at most n entries, from an index in the catalog's order
// on. Last and Total are the whole pool's; of a page that is copied in parts,
// Total is that of its last part. In a state that is [State.Ready] it takes time in proportion to n.
func (s *State) PoolPage(id string, from, n int) (PoolStock, bool) {
	for {
		sh := s.shown.Load()
		pt := sh.tables.pool[id]
		if pt == nil {
			return PoolStock{Version: sh.tables.version, Last: sh.tables.position}, false
		}
		if v, ok := s.viewPool(sh, pt, from, n); ok {
			return v, true
		} // another catalog came into force meanwhile
	}
}

func (s *State) viewPool(sh *shown, pt *poolTable, from, n int) (PoolStock, bool) {
	p := sh.pools[pt.num]
	from = min(from, len(pt.order))
	rest := pt.order[from:][:min(n, len(pt.order)-from)]
	whole := len(rest) == len(pt.order)
	v := PoolStock{Version: sh.tables.version, Config: pt.config, Entries: make([]EntryStock, 0, len(rest))}
	for more := true; more; more = len(rest) > 0 { // of an empty page the rest is seen, too
		part := rest[:min(partEntries, len(rest))]
		rest = rest[len(part):]
		p.mu.Lock()
		if s.shown.Load() != sh {
			p.mu.Unlock()
			return v, false
		}
		start, total, r := len(v.Entries), uint64(0), hasty()
		p.guard.look(&r)
		for {
			v.Last, total = p.last, p.total
			for _, num := range part {
				e := &pt.entries[num]
				at := EntryStock{ID: e.id, Unlimited: !e.limited, Left: p.left[num], Drawn: p.drawn[num], Weight: pt.weight(num, p.left[num])}
				if e.kind == catalog.RewardPool && sh.pools[e.pool].spent.Load() { // which changes under this lock, too
					at.Weight = 0
				}
				v.Entries = append(v.Entries, at)
			}
			if p.guard.done(&r) {
				break
			}
			v.Entries = v.Entries[:start]
		}
		for _, at := range v.Entries[start:] {
			if whole { // so that it is the sum of what is returned
				v.Total += at.Weight
			}
		}
		summed := p.summed
		if !whole {
			v.Total = total
		}
		p.mu.Unlock()
		if !whole && !summed {
			return s.slowPage(sh, pt, from, n)
		}
	}
	return v, true
}

// copyCounters copies a pool's counters, a part at a time, beside commands.
func (p *poolState) copyCounters(drawn, left []uint64) {
	for from := 0; from < len(p.drawn); from += partEntries {
		to := min(len(p.drawn), from+partEntries)
		p.mu.Lock()
		r := hasty()
		p.guard.look(&r)
		for {
			copy(drawn[from:], p.drawn[from:to])
			if left != nil {
				copy(left[from:], p.left[from:to])
			}
			if p.guard.done(&r) {
				break
			}
		}
		p.mu.Unlock()
	}
}

// slowPage is a page of a pool whose total nobody keeps.
func (s *State) slowPage(sh *shown, pt *poolTable, from, n int) (PoolStock, bool) {
	v, ok := s.viewPool(sh, pt, 0, len(pt.order))
	if ok {
		v.Entries = v.Entries[from:][:min(n, len(v.Entries)-from)]
	}
	return v, ok
}
