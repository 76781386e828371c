package economy

import (
	"hash/maphash"
	"math/bits"
)

// players holds every player seen: an index from id to number, the ids, and
// what each holds. Nothing in it is a pointer but the tables of chunks, so that
// the garbage collector's work does not grow with players.
type players struct {
	seed  maphash.Seed
	index index         // from the hash of an id to the player's number
	recs  pages[player] // by player number
	ids   byteArena
	held  slotArena
	hint  int // where the next key searched for is likely to stand: behind the last one
}

// player is one player's record: 32 bytes.
type player struct {
	id    uint64 // in ids
	block uint64 // in held
	last  uint64 // position of the last change
	idLen uint8
	class uint8  // of block, an index of slotClasses; meaningless when cap is 0
	slots uint32 // slots in use
}

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

func (p *players) init(seed maphash.Seed) {
	p.seed = seed
	p.index.init()
}

func (p *players) hash(id string) uint32 { return uint32(maphash.String(p.seed, id) >> 32) }

func (p *players) count() int { return p.recs.n }

// find returns the number of the player with this id.
func (p *players) find(id string) (uint32, bool) {
	h := p.hash(id)
	slots := p.index.slots(h)
	for i := h % shardSlots; ; i = (i + 1) % shardSlots {
		slot := slots[i]
		if slot == 0 {
			return 0, false
		}
		if uint32(slot>>32) != h {
			continue
		}
		n := uint32(slot) - 1
		if r := p.recs.at(n); int(r.idLen) == len(id) && string(p.ids.get(r.id, int(r.idLen))) == id {
			return n, true
		}
	}
}

// add makes a new player with this id, which must not be known, and returns its number.
func (p *players) add(id string) uint32 {
	n := uint32(p.recs.n)
	p.recs.push(player{id: p.ids.add(id), idLen: uint8(len(id))})
	p.index.add(p.hash(id), n)
	return n
}

// id returns a player's external id.
func (p *players) id(n uint32) string {
	r := p.recs.at(n)
	return string(p.ids.get(r.id, int(r.idLen)))
}

// holdings returns a player's slots, ascending by key; valid until the next change.
func (p *players) holdings(n uint32) []slot {
	r := p.recs.at(n)
	if r.slots == 0 {
		return nil
	}
	return p.held.block(r.block, r.class)[:r.slots]
}

// search returns where key stands in slots, or would stand: the first slot
// whose key is not below it.
func search(slots []slot, key uint32) int {
	if len(slots) <= 16 {
		i := 0
		for i < len(slots) && slots[i].key < key {
			i++
		}
		return i
	}
	lo, hi := 0, len(slots)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if slots[mid].key < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
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

// set gives key a value; 0 removes it.
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

// insert puts a slot at index i of a player's holdings, moving the block to a
// larger class when it is full.
func (p *players) insert(n uint32, i int, s slot) {
	r := p.recs.at(n)
	if r.slots == 0 {
		r.block, r.class = p.held.alloc(0)
	}
	b := p.held.block(r.block, r.class)
	if int(r.slots) == len(b) {
		block, class := p.held.alloc(r.class + 1)
		nb := p.held.block(block, class)
		copy(nb, b)
		p.held.free(r.block, r.class)
		r.block, r.class, b = block, class, nb
	}
	copy(b[i+1:r.slots+1], b[i:r.slots])
	b[i] = s
	r.slots++
}

// remove takes the slot at index i away.
func (p *players) remove(n uint32, i int) {
	r := p.recs.at(n)
	b := p.held.block(r.block, r.class)
	copy(b[i:r.slots-1], b[i+1:r.slots])
	r.slots--
	if r.slots == 0 {
		p.held.free(r.block, r.class)
	}
}

// pages is a growing array in chunks that never move.
type pages[T any] struct {
	chunks [][]T
	n      int
}

const pageLen = 1 << 12

func (p *pages[T]) at(i uint32) *T { return &p.chunks[i/pageLen][i%pageLen] }

func (p *pages[T]) push(v T) {
	if p.n == len(p.chunks)*pageLen {
		p.chunks = append(p.chunks, make([]T, pageLen))
	}
	p.n++
	*p.at(uint32(p.n - 1)) = v
}

// byteArena keeps strings for ever, without a pointer to each.
type byteArena struct {
	chunks [][]byte
	next   uint64 // chunk index << chunkBits | offset
}

const chunkBits = 18

// add stores s, at most 1<<chunkBits bytes, and returns where.
func (a *byteArena) add(s string) uint64 {
	const size = 1 << chunkBits
	off := a.next & (size - 1)
	if len(a.chunks) == 0 || off+uint64(len(s)) > size || (off == 0 && a.next>>chunkBits == uint64(len(a.chunks))) {
		a.chunks = append(a.chunks, make([]byte, size))
		a.next = uint64(len(a.chunks)-1) << chunkBits
	}
	at := a.next
	copy(a.chunks[at>>chunkBits][at&(size-1):], s)
	a.next += uint64(len(s))
	return at
}

func (a *byteArena) get(at uint64, n int) []byte {
	c := a.chunks[at>>chunkBits]
	off := at & (1<<chunkBits - 1)
	return c[off : off+uint64(n)]
}

// slotArena allocates blocks of slots in size classes and reuses freed ones.
type slotArena struct {
	chunks [][]slot
	used   int        // slots used in the last chunk of standard size
	freed  [][]uint64 // by class
}

const slotChunk = 1 << 13 // slots in a chunk; larger blocks have a chunk of their own

// classLen returns how many slots a block of a class has: 2, 3, 4, 6, 8, 12, 16, 24 …
func classLen(class uint8) int {
	base := 2 << (class / 2)
	if class%2 == 1 {
		base += base / 2
	}
	return base
}

func (a *slotArena) alloc(class uint8) (uint64, uint8) {
	for len(a.freed) <= int(class) {
		a.freed = append(a.freed, nil)
	}
	if f := a.freed[class]; len(f) > 0 {
		a.freed[class] = f[:len(f)-1]
		return f[len(f)-1], class
	}
	n := classLen(class)
	if n > slotChunk {
		a.chunks = append(a.chunks, make([]slot, n))
		i := len(a.chunks) - 1
		a.used = slotChunk // the next small block opens a new chunk
		return uint64(i) << 32, class
	}
	if len(a.chunks) == 0 || a.used+n > slotChunk {
		a.chunks = append(a.chunks, make([]slot, slotChunk))
		a.used = 0
	}
	at := uint64(len(a.chunks)-1)<<32 | uint64(a.used)
	a.used += n
	return at, class
}

func (a *slotArena) free(block uint64, class uint8) {
	a.freed[class] = append(a.freed[class], block)
}

func (a *slotArena) block(at uint64, class uint8) []slot {
	off := int(at & (1<<32 - 1))
	return a.chunks[at>>32][off : off+classLen(class)]
}

func (s *itemState) addSupply(q uint64) {
	lo, carry := bits.Add64(s.supplyLo, q, 0)
	s.supplyLo, s.supplyHi = lo, s.supplyHi+carry
}

func (s *itemState) subSupply(q uint64) {
	lo, borrow := bits.Sub64(s.supplyLo, q, 0)
	s.supplyLo, s.supplyHi = lo, s.supplyHi-borrow
}
