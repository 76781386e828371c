package store

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Capture is a state as of a position, to be written to a snapshot while the state goes on: all of
// it, or what changed since an earlier capture. Before an event changes something for the first
// time since the capture began, its old value is saved.
//
// [State.Capture] begins a capture and [State.Release] ends it, both under the realm's lock.
// [Capture.Blocks] runs concurrently with the writer.
type Capture struct {
	asOf
	reach
	players  *players
	dirty    bitmap // players changed since base
	catalog  InForce
	items    []item // only ids and kinds
	counters []counters
	pools    []capturedPool
	ids      ids    // frozen; records never change, and the copied list of chunks keeps them alive
	idsFrom  uint64 // the first id that base lacks
	codes    []capturedCodes
	whole

	blockSize int
	next      atomic.Uint32 // players with lower numbers have been copied

	aside
}

// reach is what a capture holds: what changed from base to extent, or, if it is not partial, all.
type reach struct {
	partial      bool
	base, extent Extent
}

// whole is what every capture has all of, changed or not: there is little.
type whole struct {
	tallies tallies
	orders  []*order // only their counters, and what they go by
	records []leaf   // frozen

	noted     int // how many records there are
	notedSize uint64
	erasures  uint64 // of the state
}

// aside is what events have changed since the capture, as it was before.
type aside struct {
	mu    sync.Mutex
	kept  map[uint32][]byte   // by player number: encoded as of the capture
	stock map[uint64][]uint64 // by pool number and chunk: stocks, then counts, as of the capture
	arena []byte              // what kept points into
}

// Extent says what a snapshot covers of a state, so that the next one can build on it.
type Extent struct {
	Position uint64
	Version  uint64 // of the catalog
	Items    uint32
	Counters uint32 // names, not numbers
	Pools    uint32
	Players  uint32
	IDs      uint64        // number of the next request id
	Entries  []uint32      // by pool number
	Codes    []CodesExtent // by list number
}

// CodesExtent says what a snapshot covers of a list of codes.
type CodesExtent struct{ Codes, Given, Uses uint64 }

type capturedCodes struct {
	Codes
	name string
	last uint64
}

// capturedPool is a pool as of the capture. Its stock is copied later.
type capturedPool struct {
	state   *pool
	entries []string
	last    uint64
}

func (p *capturedPool) live() int { return (len(p.entries) + entryChunk - 1) / entryChunk }

// Capture begins a capture of the whole state, or, if base is not nil, of what changed since the
// newest capture, which must have succeeded and has this extent. Only one capture at a time. It
// takes time in proportion to the numbers of pools and of chunks of memory, not of players or
// entries.
func (s *State) Capture(base *Extent) *Capture {
	p := &s.players
	n := &s.names
	c := &Capture{
		asOf: s.asOf, reach: reach{partial: base != nil, extent: s.extent()}, players: p,
		dirty: p.dirty.reset(), catalog: s.catalog, items: n.items, counters: n.counters,
		ids: s.ids.frozen(), whole: whole{slices.Clone(s.tallies), s.orders.list, s.records.freeze(), s.records.n, s.records.size, s.erasures},
		blockSize: defaultBlockSize,
		aside:     aside{kept: map[uint32][]byte{}, stock: map[uint64][]uint64{}},
	}
	for _, l := range s.codes.lists {
		c.codes = append(c.codes, capturedCodes{l.codes, l.name, l.last.Load()})
	}
	for _, p := range n.pools {
		c.pools = append(c.pools, capturedPool{state: p, entries: p.entryIDs, last: p.last})
	}
	if base != nil {
		c.base = *base
	}
	c.idsFrom = max(c.ids.head, c.base.IDs)
	p.capture, s.stock.capture = c, c
	return c
}

// Extent returns what the capture covers.
func (c *Capture) Extent() Extent { return c.extent }

// Release ends a capture. If it was not written, what it held counts as changed for the next one.
func (s *State) Release(c *Capture, written bool) {
	s.players.capture, s.stock.capture = nil, nil
	if !written {
		s.players.dirty.join(&c.dirty)
	} else {
		s.rewritten(c)
	}
}

func (c *Capture) wants(n uint32) bool {
	return n < c.extent.Players && (!c.partial || c.dirty.has(n))
}

// keepPlayer saves a player before the first change since the capture.
func (c *Capture) keepPlayer(b *block) {
	if b.last > c.applied || !c.wants(b.num) || b.num < c.next.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	start := len(c.arena)
	if cap(c.arena)-start < 1<<16 {
		c.arena, start = make([]byte, 0, 1<<20), 0
	}
	c.arena = c.appendPlayer(c.arena, b.num, b.last, b.id(), b.holdings())
	c.kept[b.num] = c.arena[start:len(c.arena):len(c.arena)]
}

// keepEntries saves a chunk of a pool's entries before the first change since the capture.
func (c *Capture) keepEntries(p *pool, chunk uint32) {
	if p.changed[chunk] > c.applied || p.num >= c.extent.Pools || int(chunk) >= c.pools[p.num].live() {
		return
	}
	if c.partial && p.changed[chunk] <= c.base.Position {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stock[uint64(p.num)<<32|uint64(chunk)] = slices.Concat(p.entries(chunk))
}

// player appends a player as of the capture.
func (c *Capture) player(buf []byte, n uint32) []byte {
	b, guard := c.players.enterNumber(n)
	if b.last <= c.applied {
		buf = c.appendPlayer(buf, n, b.last, b.id(), b.holdings())
		guard.Unlock()
		return buf
	}
	guard.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return append(buf, c.kept[n]...)
}

// entries returns the stocks and numbers of draws of a chunk of entries as of the capture, nil if
// base has them.
func (c *Capture) entries(num, chunk uint32) (stock, drawn []uint64) {
	cp := &c.pools[num]
	p := cp.state
	n := min(entryChunk, len(cp.entries)-int(chunk*entryChunk)) // entries may have been added since
	p.mu.Lock()
	at := p.changed[chunk]
	if at <= c.applied && !(c.partial && at <= c.base.Position) {
		stock, drawn = p.entries(chunk)
		stock, drawn = slices.Clone(stock[:n]), slices.Clone(drawn[:n])
	}
	p.mu.Unlock()
	if at <= c.applied {
		return stock, drawn
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if both := c.stock[uint64(num)<<32|uint64(chunk)]; both != nil {
		return both[:n], both[len(both)/2:][:n]
	}
	return nil, nil
}
