package store

import (
	"sync"
	"unsafe"
)

// players holds every player: an index from id to the block of memory that holds the
// rest, the blocks, and where the block of each number is. Nothing in it is a pointer
// but the tables of chunks, so that the garbage collector's work does not grow with
// players.
//
// One goroutine writes. Others read players at the same time: see [players.enter].
// Each player is guarded by one of some locks, which follows from the hash of the id.
// The writer takes it with the first change that an event makes to the player and lets
// it go when the event is applied as a whole. A reader holds it from before its look
// into the index until it has copied what it wants. So a block is neither changed nor
// moved under a reader.
//
// unsafe is used here and in arena.go, and nowhere else in the room: a
// block is a head, an id and slots of varying number in memory that has no pointers,
// which no Go type can say. Every use computes an address inside a chunk from a unit
// number, a length of an id or a number of slots that the block itself holds.
type players struct {
	key   hashKey
	index index // from the hash of an id to the address of the player's block
	addrs paged // by player number: the same
	mem   arena
	dirty bitmap // players changed since the last capture

	guards [playerGuards]sync.Mutex
	mine   [playerGuards]bool // the writer has locked it
	held   []uint16           // those it has locked

	// Where the last players looked at stand, by their numbers' lowest bits: the
	// writer asks for the same one several times in a command.
	recent [8]struct {
		num   uint32
		addr  uint32
		block *block
	}

	capture *Capture // the snapshot being taken, if any
}

const playerGuards = 1 << 10

// block is the head of a player's memory, 24 bytes. The id follows, filled up
// to a multiple of 4, and then the slots.
type block struct {
	last  uint64 // position of the last change
	num   uint32 // the player's number; deadBlock when the block was freed
	units uint32 // size
	slots uint32 // in use
	idLen uint8
	_     uint8
	guard uint16 // number of the player's guard
}

const (
	blockHead = uint32(unsafe.Sizeof(block{}))
	slotBytes = uint32(unsafe.Sizeof(slot{}))
	deadBlock = 1<<32 - 1
)

// slot is one holding: an item's balance or a counter.
type slot struct {
	key uint32 // item number, or counterSlot|counter number; ascending within a player
	hi  uint32 // the value's upper half, so that a slot takes 12 bytes
	lo  uint32
}

// counterSlot marks the key of a counter.
const counterSlot = 1 << 31

func (s slot) value() uint64          { return uint64(s.hi)<<32 | uint64(s.lo) }
func (s *slot) set(v uint64)          { s.hi, s.lo = uint32(v>>32), uint32(v) }
func newSlot(k uint32, v uint64) slot { return slot{key: k, hi: uint32(v >> 32), lo: uint32(v)} }

// slotsAt returns where a block's slots begin.
func slotsAt(idLen int) uint32 { return blockHead + (uint32(idLen)+3)&^3 }

// unitsFor returns the size of a block for so many slots.
func unitsFor(idLen int, slots uint32) uint32 {
	return (slotsAt(idLen) + slots*slotBytes + unitBytes - 1) / unitBytes
}

func (b *block) id() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(b), blockHead)), b.idLen)
}

// room returns all slots, in use or not.
func (b *block) room() []slot {
	at := slotsAt(int(b.idLen))
	if at+slotBytes > b.units*unitBytes {
		return nil // and no pointer behind the block
	}
	return unsafe.Slice((*slot)(unsafe.Add(unsafe.Pointer(b), at)), (b.units*unitBytes-at)/slotBytes)
}

// holdings returns the slots in use, ascending by key.
func (b *block) holdings() []slot { return b.room()[:b.slots] }

func (p *players) init() {
	p.key = newHashKey()
	p.index.init()
	for i := range p.recent {
		p.recent[i].num = deadBlock
	}
}

func (p *players) count() int { return p.addrs.n }

// find returns the number of the player with this id, for the writer.
func (p *players) find(id string) (uint32, bool) {
	if b := p.lookup(id, p.key.hash(id)); b != nil {
		return b.num, true
	}
	return 0, false
}

// lookup returns the block of the player with this id, which has this hash, for the
// writer, valid as that of at is, or nil.
func (p *players) lookup(id string, h uint32) *block {
	s := p.index.shard(h)
	for i := first(h); ; i++ {
		slot := *s.at(i)
		if slot == 0 {
			return nil
		}
		if uint32(slot>>32) != h {
			continue
		}
		if b := p.block(slot); string(b.id()) == id {
			r := &p.recent[b.num%uint32(len(p.recent))]
			r.num, r.addr, r.block = b.num, uint32(slot)-1, b
			return b
		}
	}
}

// text returns bytes as a string that shares their memory, for as long as they stay.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// block returns the block that a slot of the index leads to, for the writer.
func (p *players) block(slot uint64) *block { return (*block)(p.mem.pointer(uint32(slot) - 1)) }

// at returns a player's block for the writer, valid until it is moved: by the
// next insert or release.
func (p *players) at(n uint32) *block {
	r := &p.recent[n%uint32(len(p.recent))]
	if r.num != n {
		addr := p.addrs.get(n)
		r.num, r.addr, r.block = n, addr, (*block)(p.mem.pointer(addr))
	}
	return r.block
}

// addr returns the address of what at returns.
func (p *players) addr(n uint32) uint32 {
	p.at(n)
	return p.recent[n%uint32(len(p.recent))].addr
}

// enter locks the guard of the player with this id for a reader, and returns the
// player's block, nil when there is none. The reader copies what it wants and then
// unlocks the guard, in any case.
func (p *players) enter(id string) (b *block, guard *sync.Mutex) {
	h := p.key.hash(id)
	guard = &p.guards[h%playerGuards]
	guard.Lock()
	s := p.index.peek(h)
	for i := first(h); ; i++ {
		slot := s.load(i)
		if slot == 0 {
			return nil, guard
		}
		if uint32(slot>>32) != h {
			continue
		}
		// Whoever has this hash has this guard, so that the block stays where it is.
		if b := (*block)(p.mem.peek(uint32(slot) - 1)); string(b.id()) == id {
			return b, guard
		}
	}
}

// enterNumber is enter for a number that there is.
func (p *players) enterNumber(n uint32) (b *block, guard *sync.Mutex) {
	page := p.addrs.pages.at(n / pageLen)
	guard = &p.guards[page.guards[n%pageLen]]
	guard.Lock()
	return (*block)(p.mem.peek(*page.at(n))), guard
}

// lock takes a guard for the writer, until release.
func (p *players) lock(g uint16) {
	if p.mine[g] {
		return
	}
	p.guards[g].Lock()
	p.mine[g] = true
	p.held = append(p.held, g)
}

// unlock lets go of the guards that the writer holds.
func (p *players) unlock() {
	for _, g := range p.held {
		p.mine[g] = false
		p.guards[g].Unlock()
	}
	p.held = p.held[:0]
}

func (p *players) sizeAt(addr uint32) uint32 { return (*block)(p.mem.pointer(addr)).units }

// clean moves a few blocks elsewhere.
func (p *players) clean() {
	for _, addr := range p.mem.clean(p.sizeAt) {
		if b := (*block)(p.mem.pointer(addr)); b.num != deadBlock {
			p.lock(b.guard)
			p.move(b, addr, b.units)
		}
	}
}

// change prepares a player for changes by an event at a position: its guard is taken,
// what a snapshot still needs of it is put aside, and it is marked. It returns the
// player's block, valid as that of at is.
func (p *players) change(n uint32, pos uint64) *block {
	b := p.at(n)
	p.lock(b.guard)
	if p.capture != nil {
		p.capture.keepPlayer(b)
	}
	b.last = pos
	p.dirty.set(n)
	return b
}

// add makes a new player of an id that has this hash and is not known, and returns
// the player's number. The guard is taken.
func (p *players) add(id string, h, slots uint32) uint32 {
	n, g := uint32(p.addrs.n), uint16(h%playerGuards)
	p.lock(g)
	units := unitsFor(len(id), slots)
	addr := p.mem.alloc(units)
	b := (*block)(p.mem.pointer(addr))
	*b = block{num: n, units: units, idLen: uint8(len(id)), guard: g}
	copy(b.id(), id)
	p.addrs.push(addr, g)
	p.dirty.grow(n)
	p.index.add(h, addr)
	return n
}

// move gives a player, whose guard is taken and whose block is at an address, a block
// of another size.
func (p *players) move(b *block, old, units uint32) *block {
	addr := p.mem.alloc(units)
	nb := (*block)(p.mem.pointer(addr))
	size := slotsAt(int(b.idLen)) + b.slots*slotBytes
	copy(unsafe.Slice((*byte)(unsafe.Pointer(nb)), size), unsafe.Slice((*byte)(unsafe.Pointer(b)), size))
	nb.units = units
	p.addrs.set(b.num, addr)
	p.index.replace(p.key.hashBytes(b.id()), old, addr)
	if r := &p.recent[b.num%uint32(len(p.recent))]; r.num == b.num {
		r.addr, r.block = addr, nb
	}
	units = b.units
	b.num = deadBlock
	p.mem.free(old, units)
	return nb
}

// resize gives a player, whose guard is taken, so many slots, whose content the caller
// must fill in.
func (p *players) resize(n, slots uint32) *block {
	b := p.at(n)
	if int(slots) > len(b.room()) {
		b = p.move(b, p.addr(n), unitsFor(int(b.idLen), slots))
	}
	b.slots = slots
	return b
}

// id returns a player's external id.
func (p *players) id(n uint32) string { return string(p.at(n).id()) }

// holdings returns a player's slots, ascending by key; valid until the next change.
func (p *players) holdings(n uint32) []slot { return p.at(n).holdings() }

// search returns where key stands in slots, or would stand: the first slot whose key is
// not below it. It first looks where key stands if the player holds every item from the
// first to it, and then halves without branches that could be predicted wrongly. Counters
// are few, and stand at the end.
func search(h []slot, key uint32) int {
	n := len(h)
	if n == 0 {
		return 0
	}
	if key >= counterSlot {
		for n > 0 && h[n-1].key >= key {
			n--
		}
		return n
	}
	if i := key - h[0].key; i < uint32(n) && h[i].key == key {
		return int(i)
	}
	base := 0
	for n > 1 {
		half := n >> 1
		if h[base+half-1].key < key {
			base += half
		}
		n -= half
	}
	if h[base].key < key {
		base++
	}
	return base
}

// get returns the value of key, 0 when the player has none.
func (p *players) get(n uint32, key uint32) uint64 {
	h := p.holdings(n)
	if i := search(h, key); i < len(h) && h[i].key == key {
		return h[i].value()
	}
	return 0
}

// insert puts a slot at index i of the player whose block b is, moving the player to a
// larger block when this one is full. It returns the block. The player must have been
// prepared by change, as for remove.
func (p *players) insert(b *block, i int, s slot) *block {
	if int(b.slots) == len(b.room()) {
		const more = 3 // and a quarter: a player who is new gets new items often
		b = p.move(b, p.addr(b.num), unitsFor(int(b.idLen), b.slots+more+b.slots/4))
	}
	b.slots++
	h := b.holdings()
	copy(h[i+1:], h[i:])
	h[i] = s
	return b
}

// remove takes the slot at index i away from the player whose block b is.
func (p *players) remove(b *block, i int) {
	h := b.holdings()
	copy(h[i:], h[i+1:])
	b.slots--
}

// paged is a growing array of addresses, with the number of what guards
// each, in pages that never move. One goroutine grows it; others may look at
// elements that they know to be there.
type paged struct {
	pages shared[*page]
	n     int
}

const pageLen = 1 << 12

type page struct {
	addrs  [pageLen]uint32
	guards [pageLen]uint16 // they never change
}

// at returns the place of an address, as [shard.at] does.
func (g *page) at(i uint32) *uint32 {
	return (*uint32)(unsafe.Add(unsafe.Pointer(g), uintptr(i%pageLen)*unsafe.Sizeof(g.addrs[0])))
}

// place returns where an address stands, and the next or the one before, to be looked at.
func (p *paged) place(i uint32) *uint64 {
	return (*uint64)(unsafe.Pointer(p.pages.own[i/pageLen].at(i &^ 1)))
}

func (p *paged) get(i uint32) uint32    { return *p.pages.own[i/pageLen].at(i) }
func (p *paged) set(i uint32, v uint32) { *p.pages.own[i/pageLen].at(i) = v }

func (p *paged) push(v uint32, guard uint16) {
	if p.n%pageLen == 0 {
		p.pages.push(new(page))
	}
	at := p.pages.own[p.n/pageLen]
	at.addrs[p.n%pageLen], at.guards[p.n%pageLen] = v, guard
	p.n++
}
