package economy

import (
	"bytes"
	"math/bits"
	"sync"
	"unsafe"
)

// players holds every player seen: an index from id to number, from there to
// the block of memory that holds the rest, and the blocks. Nothing in it is a
// pointer but the tables of chunks, so that the garbage collector's work does
// not grow with players.
//
// One goroutine writes. Others read players at the same time: see
// [players.look]. A player is guarded by one of some locks, which a reader
// holds while it copies, and the writer from the first change that an event
// makes to the player until the event is applied as a whole.
type players struct {
	key   hashKey
	index index // from the hash of an id to the player's number
	addrs paged // by player number: the address of its block; guarded by the player's lock
	mem   arena
	dirty bitmap // players changed since the last capture

	locks [playerLocks]sync.Mutex // of the players whose number has the same remainder
	mine  [playerLocks]bool       // the writer holds it
	held  []uint32                // those it holds
	alone bool                    // nobody reads: the writer takes none

	joined []uint32 // which events since Settle made those whose index entry is deferred

	// Where the last players looked at stand, by their numbers' lowest bits: the
	// writer asks for the same one several times in a command.
	recent [8]struct {
		num   uint32
		block *block
	}
	hint int // where the next key searched for is likely to stand: behind the last one

	capture *Capture // the snapshot being taken, if any
}

const playerLocks = 1 << 10

// block is the head of a player's memory, 24 bytes. The id follows, filled up
// to a multiple of 4, and then the slots.
type block struct {
	last  uint64 // position of the last change
	num   uint32 // the player's number; deadBlock when the block was freed
	units uint32 // size
	slots uint32 // in use
	idLen uint8
	_     [3]uint8
}

const (
	blockHead = uint32(unsafe.Sizeof(block{}))
	slotBytes = uint32(unsafe.Sizeof(slot{}))
	deadBlock = 1<<32 - 1
)

// slot is one holding: an item's balance or a limit's counter.
type slot struct {
	key uint32 // item number, or limitSlot|limit number; ascending within a player
	hi  uint32 // the value's upper half, so that a slot takes 12 bytes
	lo  uint32
}

// limitSlot marks the key of a limit's counter.
const limitSlot = 1 << 31

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

// is reports whether the block is that of the player with this id.
func (b *block) is(id string) bool { return int(b.idLen) == len(id) && string(b.id()) == id }

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
	return p.findHashed(unsafe.Slice(unsafe.StringData(id), len(id)), p.key.hash(id))
}

// findHashed is find of an id in bytes whose hash is known.
func (p *players) findHashed(id []byte, h uint32) (uint32, bool) {
	slots := p.index.slots(h)
	for i := first(h); ; i = (i + 1) % shardSlots {
		slot := slots[i]
		if slot == 0 {
			return 0, false
		}
		if uint32(slot>>32) != h {
			continue
		}
		if n := uint32(slot) - 1; bytes.Equal(p.at(n).id(), id) {
			return n, true
		}
	}
}

// at returns a player's block for the writer, valid until it is moved: by the
// next insert or release.
func (p *players) at(n uint32) *block {
	r := &p.recent[n%uint32(len(p.recent))]
	if r.num == n {
		return r.block
	}
	r.num, r.block = n, (*block)(p.mem.pointer(p.addrs.get(n)))
	return r.block
}

// look calls f with the block of the player with this id, and reports whether
// there is one. It may be called beside the writer; f must copy what it needs
// and must not call anything that locks.
func (p *players) look(id string, f func(*block)) bool {
	h := p.key.hash(id)
	s := p.index.peek(h)
	for i := first(h); ; i = (i + 1) % shardSlots {
		slot := s.load(i)
		if slot == 0 {
			return false
		}
		if uint32(slot>>32) == h && p.lookAt(uint32(slot)-1, id, f) {
			return true
		}
	}
}

func (p *players) lookAt(n uint32, id string, f func(*block)) bool {
	l := &p.locks[n%playerLocks]
	l.Lock()
	defer l.Unlock()
	b := p.peek(n)
	if !b.is(id) {
		return false
	}
	f(b)
	return true
}

// peek returns a player's block for a reader that holds the player's lock.
func (p *players) peek(n uint32) *block { return (*block)(p.mem.peek(p.addrs.peek(n))) }

// lock takes a player's lock for the writer, until release.
func (p *players) lock(n uint32) {
	l := n % playerLocks
	if p.alone || p.mine[l] {
		return
	}
	p.locks[l].Lock()
	p.mine[l] = true
	p.held = append(p.held, l)
}

// release lets readers at the players that an event has changed, and does a
// little of the arena's cleaning.
func (p *players) release() {
	if p.mem.dirty() {
		p.mem.clean(p.sizeAt, p.moveFrom)
	}
	p.letGo()
}

// letGo gives the locks back that the writer holds.
func (p *players) letGo() {
	for _, l := range p.held {
		p.mine[l] = false
		p.locks[l].Unlock()
	}
	p.held = p.held[:0]
}

func (p *players) sizeAt(addr uint32) uint32 { return (*block)(p.mem.pointer(addr)).units }

// moveFrom moves the block at an address elsewhere if it is live.
func (p *players) moveFrom(addr uint32) {
	b := (*block)(p.mem.pointer(addr))
	if b.num != deadBlock {
		p.lock(b.num)
		p.move(b, b.units)
	}
}

// change prepares a player for changes by an event at a position: it is locked,
// what a snapshot still needs of it is put aside, and it is marked. It returns the
// player's block, valid as that of at is.
func (p *players) change(n uint32, pos uint64) *block {
	p.lock(n)
	b := p.at(n)
	if p.capture != nil {
		p.capture.keepPlayer(b)
	}
	b.last = pos
	p.dirty.set(n)
	return b
}

// add makes a new player with this id, which must not be known, and returns
// its number. It is in the index at once, and locked.
func (p *players) add(id string, slots uint32) uint32 {
	return p.addHashed(id, p.key.hash(id), slots)
}

// addHashed is add of an id whose hash is known.
func (p *players) addHashed(id string, h, slots uint32) uint32 {
	n := p.place(id, slots)
	p.index.add(h, n)
	return n
}

// place is add but for the index.
func (p *players) place(id string, slots uint32) uint32 {
	n := uint32(p.addrs.n)
	p.lock(n)
	units := unitsFor(len(id), slots)
	addr := p.mem.alloc(units)
	b := (*block)(p.mem.pointer(addr))
	*b = block{num: n, units: units, idLen: uint8(len(id))}
	copy(b.id(), id)
	p.addrs.push(addr)
	p.dirty.grow(n)
	return n
}

// move gives a player, who is locked, a block of another size.
func (p *players) move(b *block, units uint32) *block {
	old := p.addrs.get(b.num)
	addr := p.mem.alloc(units)
	nb := (*block)(p.mem.pointer(addr))
	size := slotsAt(int(b.idLen)) + b.slots*slotBytes
	copy(unsafe.Slice((*byte)(unsafe.Pointer(nb)), size), unsafe.Slice((*byte)(unsafe.Pointer(b)), size))
	nb.units = units
	p.addrs.set(b.num, addr)
	if r := &p.recent[b.num%uint32(len(p.recent))]; r.num == b.num {
		r.block = nb
	}
	units = b.units
	b.num = deadBlock
	p.mem.free(old, units)
	return nb
}

// resize gives a player, who is locked, so many slots, whose content the caller
// must fill in.
func (p *players) resize(n, slots uint32) *block {
	b := p.at(n)
	if int(slots) > len(b.room()) {
		b = p.move(b, unitsFor(int(b.idLen), slots))
	}
	b.slots = slots
	return b
}

// id returns a player's external id.
func (p *players) id(n uint32) string { return string(p.at(n).id()) }

// holdings returns a player's slots, ascending by key; valid until the next change.
func (p *players) holdings(n uint32) []slot { return p.at(n).holdings() }

// search returns where key stands in slots, or would stand: the first slot
// whose key is not below it.
func search(slots []slot, key uint32) int {
	if len(slots) <= 8 {
		i := 0
		for i < len(slots) && slots[i].key < key {
			i++
		}
		return i
	}
	// Without a branch that depends on what is found: base is the place among the
	// n slots that are left.
	base, n := 0, len(slots)
	for n > 1 {
		half := n / 2
		next := base
		if slots[base+half-1].key < key {
			next = base + half
		}
		base, n = next, n-half
	}
	if slots[base].key < key {
		base++
	}
	return base
}

// slot returns the slot of key, nil when the player has none; valid until the
// next change.
func (p *players) slot(n uint32, key uint32) *slot {
	h := p.holdings(n)
	i := p.hint
	if i >= len(h) || h[i].key != key {
		if i = search(h, key); i >= len(h) || h[i].key != key {
			return nil
		}
	}
	p.hint = i + 1
	return &h[i]
}

// get returns the value of key, 0 when the player has none.
func (p *players) get(n uint32, key uint32) uint64 {
	if s := p.slot(n, key); s != nil {
		return s.value()
	}
	return 0
}

// set gives key a value; 0 removes it. The player must have been prepared by
// change, as for everything below.
func (p *players) set(n uint32, key uint32, v uint64) {
	h := p.holdings(n)
	i := search(h, key)
	switch found := i < len(h) && h[i].key == key; {
	case found && v != 0:
		h[i].set(v)
	case found:
		p.remove(n, i)
	case v != 0:
		p.insert(n, i, newSlot(key, v))
	}
}

// insert puts a slot at index i of a player's holdings, moving the player to a
// larger block when this one is full.
func (p *players) insert(n uint32, i int, s slot) {
	b := p.at(n)
	if int(b.slots) == len(b.room()) {
		b = p.move(b, unitsFor(int(b.idLen), b.slots+1+b.slots/4))
	}
	b.slots++
	h := b.holdings()
	copy(h[i+1:], h[i:])
	h[i] = s
}

// remove takes the slot at index i away.
func (p *players) remove(n uint32, i int) {
	b := p.at(n)
	h := b.holdings()
	copy(h[i:], h[i+1:])
	b.slots--
}

// paged is a growing array of addresses in pages that never move. One goroutine
// grows it; others may look at elements that they know to be there.
type paged struct {
	pages shared[*[pageLen]uint32]
	n     int
}

const pageLen = 1 << 12

func (p *paged) get(i uint32) uint32    { return p.pages.own[i/pageLen][i%pageLen] }
func (p *paged) set(i uint32, v uint32) { p.pages.own[i/pageLen][i%pageLen] = v }

// peek is get for readers.
func (p *paged) peek(i uint32) uint32 { return p.pages.at(i / pageLen)[i%pageLen] }

func (p *paged) push(v uint32) {
	if p.n%pageLen == 0 {
		p.pages.push(new([pageLen]uint32))
	}
	p.n++
	p.set(uint32(p.n-1), v)
}

func (s *itemState) addSupply(q uint64) {
	lo, carry := bits.Add64(s.supplyLo, q, 0)
	s.supplyLo, s.supplyHi = lo, s.supplyHi+carry
}

func (s *itemState) subSupply(q uint64) {
	lo, borrow := bits.Sub64(s.supplyLo, q, 0)
	s.supplyLo, s.supplyHi = lo, s.supplyHi-borrow
}
