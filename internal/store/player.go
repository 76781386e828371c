package store

import (
	"sync"
	"unsafe"
)

// players holds every player: the blocks of memory with what players hold, an index from ids to
// blocks, and the place of each number's block. Only the tables of chunks contain pointers, so the
// garbage collector's work does not grow with the number of players.
//
// One goroutine writes. Others read players at the same time: see [players.enter]. Each player has
// a guard, a lock chosen by the hash of the id and shared with other players. The writer holds it
// from an event's first change to the player until the event is applied, a reader from before it
// looks into the index until it has its copy. So no block changes or moves while it is read.
//
// This package uses unsafe only here and in arena.go. A block is a head, an id and a varying number
// of slots, in memory without pointers, which no Go type can express. Every use computes an address
// inside a chunk from a unit number and lengths that the block itself holds.
type players struct {
	key   hashKey
	index index // from the hash of an id to the address of the player's block
	addrs paged // by player number: the address of the player's block
	mem   arena
	dirty bitmap // players changed since the last capture

	guards
	most, mostChunks int // the most players, and chunks of memory for them; less in tests

	// The places of the players looked at last, by the lowest bits of their numbers: the writer
	// asks for the same one several times in a command.
	recent [8]struct {
		num   uint32
		addr  uint32
		block *block
	}

	capture *Capture // the snapshot being taken, if any
	warmed  uint64   // has no meaning: see Warm
}

const playerGuards = 1 << 10

type guards struct {
	all   [playerGuards]sync.Mutex
	mine  [playerGuards]bool // guards that the writer holds
	held  []uint16           // their numbers
	alone bool               // there are no readers
}

// block is the head of a player's memory, 24 bytes. The id follows, padded to a multiple of 4, then
// the slots.
type block struct {
	last  uint64 // position of the last change
	num   uint32 // the player's number; deadBlock: the block was freed
	units uint32 // size of the block
	slots uint32 // in use
	idLen uint8
	is    uint8  // 0, isBlocked or isName: see identity.go
	guard uint16 // number of the player's guard
}

const (
	blockHead = uint32(unsafe.Sizeof(block{}))
	slotBytes = uint32(unsafe.Sizeof(slot{}))
	deadBlock = 1<<32 - 1
)

// slot is one holding: an item's balance or a counter.
type slot struct {
	key uint32 // item number, heldSlot|item number, or counterSlot|counter number; ascending within a player
	hi  uint32 // the value's upper half, so that a slot takes 12 bytes
	lo  uint32
}

// counterSlot marks the key of a counter, heldSlot that of what is held of an item.
const (
	counterSlot = 1 << 31
	heldSlot    = 1 << 30
)

func (s slot) value() uint64          { return uint64(s.hi)<<32 | uint64(s.lo) }
func (s *slot) set(v uint64)          { s.hi, s.lo = uint32(v>>32), uint32(v) }
func newSlot(k uint32, v uint64) slot { return slot{key: k, hi: uint32(v >> 32), lo: uint32(v)} }

func slotsAt(idLen int) uint32 { return blockHead + (uint32(idLen)+3)&^3 }

func unitsFor(idLen int, slots uint32) uint32 {
	return (slotsAt(idLen) + slots*slotBytes + unitBytes - 1) / unitBytes
}

func (b *block) id() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(b), blockHead)), b.idLen)
}

// room returns how many slots the block has room for.
func (b *block) room() uint32 { return (b.units*unitBytes - slotsAt(int(b.idLen))) / slotBytes }

// holdings returns the slots in use, ascending by key.
func (b *block) holdings() []slot {
	if b.slots == 0 {
		return nil // a pointer may be outside the block
	}
	return unsafe.Slice((*slot)(unsafe.Add(unsafe.Pointer(b), slotsAt(int(b.idLen)))), b.slots)
}

func (p *players) init() {
	p.key, p.most, p.mostChunks = newHashKey(), MaxPlayers, maxChunks
	p.index.init()
	for i := range p.recent {
		p.recent[i].num = deadBlock
	}
}

func (p *players) count() int { return p.addrs.n }

// lookup returns the block of the player with this id and hash, or nil. For the writer; the block
// is valid as long as that of at.
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

// text returns bytes as a string that shares their memory: it is valid as long as they do not
// change.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Texts keeps copies of texts, without memory of its own for each.
type Texts struct{ buf []byte }

// Keep returns a copy, valid until Clear.
func (t *Texts) Keep(s string) string {
	const room = 8 << 10
	if len(t.buf)+len(s) > cap(t.buf) {
		t.buf = make([]byte, 0, max(room, len(s))) // the copies so far keep the memory before
	}
	from := len(t.buf)
	t.buf = append(t.buf, s...)
	return text(t.buf[from:])
}

// Clear forgets all copies.
func (t *Texts) Clear() { t.buf = t.buf[:0] }

// block returns the block that a slot of the index points to. For the writer.
func (p *players) block(slot uint64) *block { return (*block)(p.mem.pointer(uint32(slot) - 1)) }

// at returns a player's block. For the writer; it is valid until it is moved, by the next insert,
// resize or clean.
func (p *players) at(n uint32) *block {
	r := &p.recent[n%uint32(len(p.recent))]
	if r.num != n {
		addr := p.addrs.get(n)
		r.num, r.addr, r.block = n, addr, (*block)(p.mem.pointer(addr))
	}
	return r.block
}

func (p *players) addr(n uint32) uint32 {
	p.at(n)
	return p.recent[n%uint32(len(p.recent))].addr
}

// enter locks the guard of the player with this id, for a reader. It returns the player's block, or
// nil if there is no such player. The reader copies what it wants, then unlocks the guard, also if
// there is no block.
func (p *players) enter(id string) (b *block, guard *sync.Mutex) {
	h := p.key.hash(id)
	guard = &p.guards.all[h%playerGuards]
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
		// Players with the same hash share this guard, so the block does not move.
		if b := (*block)(p.mem.peek(uint32(slot) - 1)); string(b.id()) == id {
			return b, guard
		}
	}
}

// enterNumber is enter for a number, which must exist.
func (p *players) enterNumber(n uint32) (b *block, guard *sync.Mutex) {
	page := p.addrs.pages.at(n / pageLen)
	guard = &p.guards.all[page.guards[n%pageLen]]
	guard.Lock()
	return (*block)(p.mem.peek(*page.at(n))), guard
}

// lock locks a guard for the writer, until unlock.
func (a *guards) lock(g uint16) {
	if !a.alone && !a.mine[g] {
		a.hold(g)
	}
}

func (a *guards) hold(g uint16) {
	a.all[g].Lock()
	a.mine[g] = true
	a.held = append(a.held, g)
}

func (a *guards) unlock() {
	for _, g := range a.held {
		a.mine[g] = false
		a.all[g].Unlock()
	}
	a.held = a.held[:0]
}

// clean moves a few blocks elsewhere.
func (p *players) clean() {
	size := func(addr uint32) uint32 { return (*block)(p.mem.pointer(addr)).units }
	for _, addr := range p.mem.clean(size) {
		if b := (*block)(p.mem.pointer(addr)); b.num != deadBlock {
			p.lock(b.guard)
			p.move(b, addr, b.units)
		}
	}
}

// change prepares a player for changes by an event at a position. It locks the guard, saves what a
// snapshot still needs of the player, and marks the player as dirty. It returns the player's block,
// valid as long as that of at.
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

// add adds a player with a new id, which has this hash, and returns the number. The guard is then
// locked.
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

// move moves a player from the block at address old to one of another size. The player's guard must
// be locked.
func (p *players) move(b *block, old, units uint32) *block {
	addr := p.mem.alloc(units)
	nb := (*block)(p.mem.pointer(addr))
	size := slotsAt(int(b.idLen)) + b.slots*slotBytes
	copy(unsafe.Slice((*byte)(unsafe.Pointer(nb)), size), unsafe.Slice((*byte)(unsafe.Pointer(b)), size))
	nb.units = units
	p.addrs.set(b.num, addr)
	if b.idLen > 0 { // else the name is erased
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

// resize gives a player this many slots. The caller must fill them in. The player's guard must be
// locked.
func (p *players) resize(n, slots uint32) *block {
	b := p.at(n)
	if slots > b.room() {
		b = p.move(b, p.addr(n), unitsFor(int(b.idLen), slots))
	}
	b.slots = slots
	return b
}

// Players returns the number of players. The next player gets this number.
func (p *players) Players() uint32 { return uint32(p.count()) }

// PlayerID returns the id of a player, who must exist.
func (p *players) PlayerID(num uint32) string { return string(p.at(num).id()) }

// Balance returns how many of an item a player can spend, or has of what [HeldOf] an item says. It is 0 if there
// is no such player.
func (p *players) Balance(player, item uint32) uint64 { return p.get(player, item) }

// HeldOf stands for what is held of an item, as another item.
func HeldOf(item uint32) uint32 { return heldSlot | item }

// Counter returns a player's counter, 0 if there is no such player.
func (p *players) Counter(player, counter uint32) uint64 { return p.get(player, counterSlot|counter) }

// Counters appends to into those of a player's counters first to last that are not 0, ascending.
func (p *players) Counters(player, first, last uint32, into []CounterValue) []CounterValue {
	if int(player) >= p.count() {
		return into
	}
	h := p.at(player).holdings()
	for _, sl := range h[search(h, counterSlot|first):] {
		if sl.key > counterSlot|last {
			break
		}
		into = append(into, CounterValue{Counter: sl.key &^ counterSlot, Value: sl.value()})
	}
	return into
}

// RoomForPlayers reports whether there is room for n more players.
func (p *players) RoomForPlayers(n int) bool { return p.count()+n <= p.most }

// MemoryFull reports whether memory for players may run out in the next command: about 64 GiB are
// in use.
func (p *players) MemoryFull() bool { return p.mem.full(p.mostChunks) }

// likely returns the index that key has if the player holds every item up to it, -1 if it has
// another or none.
func likely(h []slot, key uint32) int {
	if len(h) > 0 {
		if i := key - h[0].key; i < uint32(len(h)) && h[i].key == key {
			return int(i)
		}
	}
	return -1
}

// search returns the index of the first slot whose key is not below key.
func search(h []slot, key uint32) int {
	if i := likely(h, key); i >= 0 {
		return i
	}
	return bisect(h, key)
}

// bisect is search without a guess, and without branches that the processor could mispredict.
// Counters are few and at the end, so it finds them from there.
func bisect(h []slot, key uint32) int {
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

func (p *players) get(n uint32, key uint32) uint64 {
	if int(n) >= p.count() {
		return 0
	}
	return valueOf(p.at(n).holdings(), key)
}

// valueOf returns what a player has under a key.
func valueOf(h []slot, key uint32) uint64 {
	if i := search(h, key); i < len(h) && h[i].key == key {
		return h[i].value()
	}
	return 0
}

// known reports whether a slot has the key of something that was named, and a value that it can have.
func (n *names) known(sl slot) bool {
	if sl.key == identityKey {
		return sl.value() < isName+MaxPlayers
	}
	if sl.key&counterSlot != 0 {
		return sl.key&^counterSlot < n.next
	}
	return int(sl.key&^heldSlot) < len(n.items) && sl.value() <= MaxQuantity
}

// put gives a key of the player with block b a value, 0 for none. i is from search. It returns the
// block: a larger one if that was full. Call change first.
func (p *players) put(b *block, i int, key uint32, v uint64) *block {
	h := b.holdings()
	switch found := i < len(h) && h[i].key == key; {
	case found && v != 0:
		h[i].set(v)
	case found:
		b.remove(i)
	case v != 0:
		return p.insert(b, i, newSlot(key, v))
	}
	return b
}

// insert puts a slot at index i of the player with block b, and returns the block.
func (p *players) insert(b *block, i int, s slot) *block {
	if b.slots == b.room() {
		const more = 3 // and a quarter: new players often get new items
		b = p.move(b, p.addr(b.num), unitsFor(int(b.idLen), b.slots+more+b.slots/4))
	}
	b.slots++
	h := b.holdings()
	copy(h[i+1:], h[i:])
	h[i] = s
	return b
}

func (b *block) remove(i int) {
	h := b.holdings()
	copy(h[i:], h[i+1:])
	b.slots--
}

// paged is a growing array of addresses, each with the number of its guard, in pages that never
// move. One goroutine grows it. Others may read elements that they know to exist.
type paged struct {
	pages shared[*page]
	n     int
}

const pageLen = 1 << 12

type page struct {
	addrs  [pageLen]uint32
	guards [pageLen]uint16 // they never change
}

// at returns the place of an address; see [shard.at].
func (g *page) at(i uint32) *uint32 {
	return (*uint32)(unsafe.Add(unsafe.Pointer(g), uintptr(i%pageLen)*unsafe.Sizeof(g.addrs[0])))
}

// place returns the place of a pair of addresses, one of which is that of i, for reading.
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
