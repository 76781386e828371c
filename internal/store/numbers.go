package store

import "math"

// Numbers returns the ids of what events name by number, concurrently with the writer. Numbers are
// never reused and names never change, so it knows those of every event that was ever applied.
type Numbers struct{ *readers }

// Numbers returns the numbers that the state knows.
func (s *State) Numbers() Numbers { return Numbers{&s.readers} }

// Players returns a number above that of every player.
func (n Numbers) Players() uint32 {
	pages := n.players.addrs.pages.list.Load()
	if pages == nil {
		return 0
	}
	return uint32(len(*pages)) * pageLen
}

// PlayerID returns the id of a player with a number below Players, or "" if there is none.
func (n Numbers) PlayerID(num uint32) string {
	b, guard := n.players.enterNumber(num)
	defer guard.Unlock()
	if b == nil || b.num != num {
		return ""
	}
	return string(b.id())
}

// PlayerNum returns the number of the player of whom an id is a name, and the number that it has itself, once
// an event that adds it was applied.
func (n Numbers) PlayerNum(id string) (num, own uint32, ok bool) {
	b, guard := n.players.enter(id)
	if b == nil {
		guard.Unlock()
		return 0, 0, false
	}
	own = b.num
	guard.Unlock()
	b, guard, _ = follow(n.players, id)
	defer guard.Unlock()
	if b == nil { // it was erased meanwhile
		return 0, 0, false
	}
	return b.num, own, true
}

// PoolNum returns the number of a pool, once an event that names the pool was applied.
func (n Numbers) PoolNum(id string) (num uint32, ok bool) {
	num, ok = n.shown.Load().poolNum[id]
	return num, ok
}

// EntryID returns the id of a pool's entry, or "" if there is no such entry.
func (n Numbers) EntryID(pool, entry uint32) string {
	pools := n.shown.Load().pools
	if int(pool) >= len(pools) {
		return ""
	}
	p := pools[pool]
	p.mu.Lock()
	defer p.mu.Unlock()
	if int(entry) >= len(p.entryIDs) {
		return ""
	}
	return p.entryIDs[entry]
}

// CatalogIn returns the catalog in force that a block of a snapshot has, and none if the block is
// about something else. Its bytes are the block's.
func CatalogIn(kind BlockKind, data []byte) (InForce, error) {
	if kind != BlockCatalog {
		return InForce{}, nil
	}
	r := NewReader(data)
	c := r.catalog(math.MaxUint64, math.MaxUint64, math.MaxInt64)
	return c, r.Err()
}
