package economy

import (
	"math"
	"unsafe"
)

// players holds every player seen: an index from id to the block of memory that
// holds the rest, the blocks, and where the block of each number is. Nothing in
// it is a pointer but the tables of chunks, so that the garbage collector's work
// does not grow with players.
//
// One goroutine writes. Others read players at the same time: see
// [players.enter]. A player has one of some guards, which the writer opens
// with the first change that an event makes to the player and closes when the
// event is applied as a whole. Which one follows from the id, so that a reader
// looks at it before it looks for the player, and learns from it that a block
// moved between its look into the index and the end of its copying.
type players struct {
	key   hashKey
	index index // from the hash of an id to the address of the player's block
	addrs paged // by player number: the same
	mem   arena
	dirty bitmap // players changed since the last capture

	guards [playerGuards]guard // of the players whose ids' hashes have the same remainder
	mine   [playerGuards]bool  // the writer has opened it
	held   []uint16            // those it has opened
	alone  bool                // nobody reads: the writer opens none

	joined pieces[uint32] // which events since Settle made those whose index entry is deferred
	again  *clash         // the first of them who was there already

	// Where the last players looked at stand, by their numbers' lowest bits: the
	// writer asks for the same one several times in a command.
	recent [8]struct {
		num   uint32
		addr  uint32
		block *block
	}
	looked uint64 // of no meaning: see clean
	hint   int    // where the next key searched for is likely to stand: behind the last one

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
	if b := p.lookup(id); b != nil {
		return b.num, true
	}
	return 0, false
}

// findHashed is find of an id in bytes whose hash is known.
func (p *players) findHashed(id []byte, h uint32) (uint32, bool) {
	if b := p.lookupHashed(unsafe.String(unsafe.SliceData(id), len(id)), h); b != nil {
		return b.num, true
	}
	return 0, false
}

// lookup returns the block of the player with this id for the writer, valid as that of
// at is, or nil.
func (p *players) lookup(id string) *block { return p.lookupHashed(id, p.key.hash(id)) }

// lookupHashed is lookup of an id whose hash is known.
func (p *players) lookupHashed(id string, h uint32) *block {
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

// sight is a player as a reader beside the writer sees it.
type sight struct {
	guard *guard
	reading
	head block          // a copy
	at   unsafe.Pointer // of the block
}

// enter finds the player with this id for a reader beside the writer and reports
// whether there is one. The reader copies what it needs and then calls leave,
// in any case; if that is false, what it has is of no meaning, and it begins anew with
// enter, or calls quit: until one of the two the writer may be waiting for it.
func (p *players) enter(id string, v *sight) bool { return p.enterHashed(id, p.key.hash(id), v) }

// enterHashed is enter of an id whose hash is known.
func (p *players) enterHashed(id string, h uint32, v *sight) bool {
	v.begin(&p.guards[h%playerGuards])
next:
	s := p.index.peek(h)
	for i := first(h); ; i++ {
		slot := s.load(i)
		if slot == 0 {
			return false
		}
		if uint32(slot>>32) != h {
			continue
		}
		if !v.see(p.mem.peek(uint32(slot) - 1)) {
			goto next
		}
		if string(v.id()) == id {
			return true
		}
	}
}

// enterNumber is enter for a number that there is.
func (p *players) enterNumber(n uint32, v *sight) {
	page := p.addrs.pages.at(n / pageLen)
	v.begin(&p.guards[page.guards[n%pageLen]])
	for !v.see(p.mem.peek(*page.at(n))) {
	}
}

// begin makes the reader ready to look, the first time or another.
func (v *sight) begin(g *guard) {
	if v.guard == nil {
		v.guard = g
		g.look(&v.reading)
	}
}

// see looks at a block, whose memory may have been given back, and reports whether
// it is what its guard says.
func (v *sight) see(at unsafe.Pointer) bool {
	v.at = at
	if at != nil {
		v.head = *(*block)(at)
	}
	return v.guard.unchanged(&v.reading)
}

// leave ends the copying and reports whether what was seen was of one moment.
func (v *sight) leave() bool { return v.guard.done(&v.reading) }

// quit ends the copying of a reader who does not mind what was seen, in the place of leave.
func (v *sight) quit() { v.guard.quit(&v.reading) }

// id returns the player's id, which is not to be kept.
func (v *sight) id() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(v.at, blockHead)), v.head.idLen)
}

// holdings returns the slots, which are not to be kept.
func (v *sight) holdings() []slot {
	if v.head.slots == 0 {
		return nil // and no pointer behind the block
	}
	return unsafe.Slice((*slot)(unsafe.Add(v.at, slotsAt(int(v.head.idLen)))), v.head.slots)
}

// open begins a change of a player for the writer, until release.
func (p *players) open(g uint16) {
	if p.alone || p.mine[g] {
		return
	}
	p.guards[g].open()
	p.mine[g] = true
	p.held = append(p.held, g)
}

// release shows readers the players that an event has changed, and does a
// little of the arena's cleaning.
func (p *players) release() {
	if p.mem.dirty() {
		p.clean()
	}
	p.letGo()
}

// letGo ends the changes of players.
func (p *players) letGo() {
	for _, g := range p.held {
		p.mine[g] = false
		p.guards[g].close()
	}
	p.held = p.held[:0]
}

func (p *players) sizeAt(addr uint32) uint32 { return (*block)(p.mem.pointer(addr)).units }

// clean moves a few blocks elsewhere. What else names them is looked at first, for
// all of them at a time: each would cost a cache miss of its own.
func (p *players) clean() {
	some := p.mem.clean(p.sizeAt)
	for _, addr := range some {
		if b := (*block)(p.mem.pointer(addr)); b.num != deadBlock {
			p.looked += p.lookBehind(b) + p.index.look(p.key.hashBytes(b.id()))
		}
	}
	for _, addr := range some {
		if b := (*block)(p.mem.pointer(addr)); b.num != deadBlock {
			p.open(b.guard)
			p.move(b, addr, b.units)
		}
	}
}

// lookBehind looks at what changes with a block of a player and has a place by number.
func (p *players) lookBehind(b *block) uint64 {
	return uint64(p.addrs.get(b.num)) + p.dirty.word(b.num)
}

// change prepares a player for changes by an event at a position: its guard is open,
// what a snapshot still needs of it is put aside, and it is marked. It returns the
// player's block, valid as that of at is.
func (p *players) change(n uint32, pos uint64) *block {
	b := p.at(n)
	p.open(b.guard)
	if p.capture != nil {
		p.capture.keepPlayer(b)
	}
	b.last = pos
	p.dirty.set(n)
	return b
}

// add makes a new player with this id, which must not be known, and returns
// its number. It is in the index at once, and its guard open.
func (p *players) add(id string, slots uint32) uint32 {
	return p.addHashed(id, p.key.hash(id), slots)
}

// addHashed is add of an id whose hash is known.
func (p *players) addHashed(id string, h, slots uint32) uint32 {
	n := p.place(id, h, slots)
	if p.index.deferred {
		p.index.wait(h, n)
	} else {
		p.index.add(h, p.addrs.get(n))
	}
	return n
}

// place is addHashed but for the index.
func (p *players) place(id string, h, slots uint32) uint32 {
	n, g := uint32(p.addrs.n), uint16(h%playerGuards)
	p.open(g)
	units := unitsFor(len(id), slots)
	addr := p.mem.alloc(units)
	b := (*block)(p.mem.pointer(addr))
	*b = block{num: n, units: units, idLen: uint8(len(id)), guard: g}
	copy(b.id(), id)
	p.addrs.push(addr, g)
	p.dirty.grow(n)
	return n
}

// settle puts the players into the index whose entries were deferred. Of those with
// the same hash it calls clash with the number of the one that was there first and
// of the one that came; clash reports whether they have the same id.
func (p *players) settle(clash func(was, is uint32) (same bool)) {
	for i := range p.index.waiting.count() {
		piece := p.index.waiting.piece(i)
		for j, slot := range piece {
			piece[j] = slot&^math.MaxUint32 | uint64(p.addrs.get(uint32(slot)-1)+1)
		}
	}
	p.index.settle(func(was, is uint32) bool {
		return clash((*block)(p.mem.pointer(was)).num, (*block)(p.mem.pointer(is)).num)
	})
	p.joined = pieces[uint32]{}
}

// move gives a player, whose guard is open, and whose block is at an address, one of
// another size.
func (p *players) move(b *block, old, units uint32) *block {
	addr := p.mem.alloc(units)
	nb := (*block)(p.mem.pointer(addr))
	size := slotsAt(int(b.idLen)) + b.slots*slotBytes
	copy(unsafe.Slice((*byte)(unsafe.Pointer(nb)), size), unsafe.Slice((*byte)(unsafe.Pointer(b)), size))
	nb.units = units
	p.addrs.set(b.num, addr)
	if int(b.num) < p.count()-p.index.waiting.n { // otherwise settle finds it in addrs
		p.index.replace(p.key.hashBytes(b.id()), old, addr)
	}
	if r := &p.recent[b.num%uint32(len(p.recent))]; r.num == b.num {
		r.addr, r.block = addr, nb
	}
	units = b.units
	b.num = deadBlock
	p.mem.free(old, units)
	return nb
}

// resize gives a player, whose guard is open, so many slots, whose content the caller
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
		const more = 3 // and a quarter: a player who is new gets new items often
		b = p.move(b, p.addr(n), unitsFor(int(b.idLen), b.slots+more+b.slots/4))
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
