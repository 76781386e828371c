package store

import (
	"math"
	"sync"
)

// pool is the stock of a pool. One goroutine writes; others read what mu guards. The writer holds
// mu from an event's first change of the pool until the whole event is applied.
type pool struct {
	num      uint32
	id       string
	entryNum map[string]uint32 // for the writer, and while a catalog is prepared or planned

	mine bool // the writer holds mu

	mu       sync.Mutex
	entryIDs []string // by entry number
	stock    []uint64 // by entry number: the total, or unlimited
	drawn    []uint64 // by entry number: over all catalogs
	changed  []uint64 // by entry number / entryChunk: position of the last change of the chunk
	last     uint64   // position of the last change
}

// unlimited is the stock of an entry without a limit.
const unlimited = math.MaxUint64

// entryChunk is how many entries a snapshot copies at a time.
const entryChunk = 512

// left returns how many are left of an entry, or unlimited.
func (p *pool) left(entry uint32) uint64 {
	stock, drawn := p.stock[entry], p.drawn[entry]
	switch {
	case stock == unlimited:
		return unlimited
	case stock <= drawn: // the catalog lowered it
		return 0
	}
	return stock - drawn
}

// stock changes pools, for the writer.
type stock struct {
	held    []*pool  // pools that the current event has locked
	alone   bool     // nobody else reads pools
	capture *Capture // the snapshot being taken, if any
}

// lockPool locks a pool for the writer, until release.
func (s *stock) lockPool(p *pool) {
	if !s.alone && !p.mine {
		s.hold(p)
	}
}

func (s *stock) hold(p *pool) {
	p.mu.Lock()
	p.mine = true
	s.held = append(s.held, p)
}

func (s *stock) unlockPools() {
	for _, p := range s.held {
		p.mine = false
		p.mu.Unlock()
	}
	s.held = s.held[:0]
}

// touch prepares a chunk of a pool for changes by an event at a position. The writer must hold the
// pool's lock.
func (s *stock) touch(p *pool, c uint32, pos uint64) {
	if s.capture != nil {
		s.capture.keepEntries(p, c)
	}
	p.changed[c] = pos
}

// alter applies an effect on an entry of a pool: Take, Return, Entry or Stock.
func (s *stock) alter(p *pool, e *Effect, pos uint64) error {
	s.lockPool(p)
	entry := e.N
	if e.Verb == Entry {
		entry = uint32(len(p.entryIDs))
		if err := p.grow(string(e.Bytes)); err != nil {
			return err
		}
	}
	if int(entry) >= len(p.entryIDs) {
		return inconsistent("pool %q has no entry number %d", p.id, entry)
	}
	if c := entry / entryChunk; p.changed[c] != pos {
		s.touch(p, c, pos)
	}
	p.last = pos
	switch e.Verb {
	case Take:
		if p.left(entry) == 0 {
			return inconsistent("pool %q, entry %q: one taken, but none is left", p.id, p.entryIDs[entry])
		}
		p.drawn[entry]++
	case Return: // they were drawn, and now they were not
		if e.Value == 0 || e.Value > p.drawn[entry] {
			return inconsistent("pool %q, entry %q: %d returned of %d drawn", p.id, p.entryIDs[entry], e.Value, p.drawn[entry])
		}
		p.drawn[entry] -= e.Value
	case Stock:
		p.stock[entry] = e.Value - 1 // 0 is unlimited
	}
	return nil
}

// grow adds an entry. The writer must hold the pool's lock. After an error the pool cannot be used.
func (p *pool) grow(id string) error {
	num := uint32(len(p.entryIDs))
	if num >= MaxEntries {
		return inconsistent("pool %q: more than %d entries", p.id, MaxEntries)
	}
	if p.entryNum[id] = num; len(p.entryNum) == int(num) { // one step for a lookup and an insertion
		return inconsistent("pool %q: entry %q is not new", p.id, id)
	}
	p.entryIDs = append(p.entryIDs, id)
	p.stock, p.drawn = append(p.stock, 0), append(p.drawn, 0)
	if num%entryChunk == 0 {
		p.changed = append(p.changed, 0)
	}
	return nil
}

// entries returns the stocks and the numbers of draws of a chunk of entries.
func (p *pool) entries(chunk uint32) (stock, drawn []uint64) {
	from, to := int(chunk*entryChunk), min(len(p.drawn), int(chunk+1)*entryChunk)
	return p.stock[from:to], p.drawn[from:to]
}

// EntryNum returns the number of a pool's entry.
func (n *names) EntryNum(pool uint32, id string) (num uint32, ok bool) {
	num, ok = n.pools[pool].entryNum[id]
	return num, ok
}

// Entries returns how many entries a pool has had, over all catalogs.
func (n *names) Entries(pool uint32) int { return len(n.pools[pool].entryIDs) }

// EntryID returns the id of an entry, or "" if there is no such entry. For the writer.
func (n *names) EntryID(pool, entry uint32) string {
	if int(pool) < len(n.pools) {
		if p := n.pools[pool]; int(entry) < len(p.entryIDs) {
			return p.entryIDs[entry]
		}
	}
	return ""
}

// Stock returns an entry's total stock. Only a catalog changes it.
func (n *names) Stock(pool, entry uint32) (stock uint64, limited bool) {
	if stock = n.pools[pool].stock[entry]; stock == unlimited {
		return 0, false
	}
	return stock, true
}

// DrawnOf returns how many of an entry were drawn, less what was put back.
func (n *names) DrawnOf(pool, entry uint32) uint64 { return n.pools[pool].drawn[entry] }

// Left returns how many are left of an entry. If its stock is unlimited, that is more than there
// can be draws.
func (n *names) Left(pool, entry uint32) uint64 { return n.pools[pool].left(entry) }
