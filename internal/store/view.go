package store

import "sync/atomic"

// readers are the reads that run concurrently with the writer. Each sees an event as a whole or not
// at all.
type readers struct {
	players *players
	shown   atomic.Pointer[shown] // what readers need apart from players and pools
}

// shown is what readers need of names. It is replaced as a whole. Its slices only ever grow past
// what is shown.
type shown struct {
	items   []item // readers use only their ids
	itemNum map[string]uint32
	pools   []*pool
	poolNum map[string]uint32
	codes   []*codeList // readers use only left and last
	named   []counters
	orders  []*order
	catalog InForce
}

// Catalog returns the catalog in force.
func (s *readers) Catalog() InForce { return s.shown.Load().catalog }

// ItemID returns the id of an item, or "" if there is no such item.
func (s *readers) ItemID(num uint32) string {
	if items := s.shown.Load().items; int(num) < len(items) {
		return items[num].id
	}
	return ""
}

// Knows reports whether there is a player with this id.
func (s *readers) Knows(player string) bool {
	b, guard := s.players.enter(player)
	defer guard.Unlock()
	return b != nil
}

// PoolID returns the id of a pool, or "" if there is no such pool.
func (s *readers) PoolID(num uint32) string {
	if pools := s.shown.Load().pools; int(num) < len(pools) {
		return pools[num].id
	}
	return ""
}

// CounterName returns the name of counters by the number of the first, "" if no counters begin with it.
func (s *readers) CounterName(first uint32) string { return nameAt(s.shown.Load().named, first) }

// CodeListName returns the name of a list of codes, or "" if there is no such list.
func (s *readers) CodeListName(num uint32) string {
	if lists := s.shown.Load().codes; int(num) < len(lists) {
		return lists[num].name
	}
	return ""
}

// CodesLeft returns how many codes of a list are left, and a position that covers this. The list
// must be named by the catalog in force.
func (s *readers) CodesLeft(list uint32) (left, last uint64) {
	l := s.shown.Load().codes[list]
	left = l.left.Load()
	return left, l.last.Load()
}

// Balance is how many of an item a player has.
type Balance struct {
	Item     string
	Quantity uint64 // that can be spent
	Held     uint64 // that cannot be spent now
}

// Holdings returns what a player holds, by item number (the order in which catalogs named the
// items), the player's counters that are not 0, ascending, and the position of the player's last
// change. ok is false if there is no such player.
func (s *readers) Holdings(id string) (items []Balance, counters []CounterValue, last uint64, ok bool) {
	var buf [64]slot
	b, guard, last := follow(s.players, id)
	if b == nil {
		guard.Unlock()
		return nil, nil, 0, false
	}
	h := append(buf[:0], b.holdings()...)
	guard.Unlock()
	names := s.shown.Load().items // loaded after the slots, so that it has all their items
	n := search(h, counterSlot)
	if n < len(h) {
		counters = make([]CounterValue, 0, len(h)-n)
		for _, sl := range h[n:] {
			if sl.key == identityKey {
				break
			}
			counters = append(counters, CounterValue{Counter: sl.key &^ counterSlot, Value: sl.value()})
		}
	}
	return balances(h[:n], names), counters, last, true
}

// balances returns what slots of items say, by item number.
func balances(h []slot, names []item) []Balance {
	n := search(h, heldSlot)
	held, h := h[n:], h[:n]
	all := make([]Balance, 0, len(h)+len(held))
	for len(h)+len(held) > 0 {
		switch {
		case len(held) == 0 || len(h) > 0 && h[0].key < held[0].key&^heldSlot:
			all = append(all, Balance{Item: names[h[0].key].id, Quantity: h[0].value()})
			h = h[1:]
		case len(h) > 0 && h[0].key == held[0].key&^heldSlot:
			all = append(all, Balance{names[h[0].key].id, h[0].value(), held[0].value()})
			h, held = h[1:], held[1:]
		default:
			all = append(all, Balance{Item: names[held[0].key&^heldSlot].id, Held: held[0].value()})
			held = held[1:]
		}
	}
	return all
}

// HoldingOf returns how many of one item a player holds, and the position of the player's last
// change. ok is false if there is no such player.
func (s *readers) HoldingOf(id, item string) (quantity, last uint64, ok bool) {
	b, guard, last := follow(s.players, id)
	defer guard.Unlock()
	if b == nil {
		return 0, 0, false
	}
	num, named := s.shown.Load().itemNum[item] // after the player, so that it has all their items
	h := b.holdings()
	if i := search(h, num); named && i < len(h) && h[i].key == num {
		quantity = h[i].value()
	}
	return quantity, last, true
}

// CounterValue is the value of a player's counter, by the counter's number.
type CounterValue struct {
	Counter uint32
	Value   uint64
}

// partEntries is how many entries a reader of a pool copies at a time: draws wait for no more.
const partEntries = 4096

// ReadStock calls f for some entries of a pool, by number, in order, with how many are left, how
// many were drawn, and whether the stock is limited. Draws may happen between parts of 4096
// entries. It returns the position of the pool's last change, or false once another catalog version
// is in force.
func (s *readers) ReadStock(pool uint32, entries []uint32, version uint64, f func(i int, left, drawn uint64, limited bool)) (last uint64, ok bool) {
	pools := s.shown.Load().pools
	if int(pool) >= len(pools) {
		return 0, false
	}
	p := pools[pool]
	for from := 0; ; from += partEntries {
		to := min(from+partEntries, len(entries))
		p.mu.Lock()
		if s.shown.Load().catalog.Version != version {
			p.mu.Unlock()
			return 0, false
		}
		for i, num := range entries[from:to] {
			if left := p.left(num); left == unlimited {
				f(from+i, 0, p.drawn[num], false)
			} else {
				f(from+i, left, p.drawn[num], true)
			}
		}
		last = p.last
		p.mu.Unlock()
		if to == len(entries) {
			return last, true
		}
	}
}
