package store

import (
	"sync/atomic"
	"unsafe"
)

// arena is memory for blocks of different sizes, in chunks without pointers, which the garbage
// collector does not scan. Blocks stand one after another and are freed in any order. When a
// quarter of the memory is dead, the live blocks of the emptiest chunk are moved, a few at a time,
// and the chunk is reused (Rumble et al., "Log-structured Memory for DRAM-based Storage", FAST
// 2014).
//
// An address is chunk<<16 | unit in the chunk, in units of 16 bytes. That makes 64 GiB in all, less
// the unused rest of large blocks, which have a chunk of their own.
//
// One goroutine allocates. Others may read blocks that they know to be live.
type arena struct {
	chunks shared[*byte] // the first byte of each chunk
	about  []chunk       // what the writer knows about each chunk
	open   uint32        // index of the chunk for new blocks, if opened
	opened bool
	empty  []uint32 // numbers of full-grown chunks that were cleaned
	unused []uint32 // numbers of chunks whose memory was released
	size   uint64   // units in all
	total  uint64   // units of full-grown chunks in use: only these are cleaned
	dead   uint64   // units of them that were freed

	cleaning bool
	victim   uint32 // the chunk being cleaned
	cursor   uint32 // the next unit of victim to look at
	moving   [cleanStep]uint32
}

// chunk is what the writer knows about one chunk.
type chunk struct {
	units uint32 // in all
	used  uint32 // by blocks so far, live or dead
	dead  uint32 // freed
	large bool   // holds a single block
}

const (
	unitBytes  = 16
	lineUnits  = 64 / unitBytes // in a cache line
	chunkUnits = 1 << 16        // of a full-grown chunk: 1 MiB
	firstUnits = 1 << 9         // of the smallest chunk: there are many small realms
	largeUnits = chunkUnits / 8 // a block of this size or more has its own chunk
	maxChunks  = 1 << 16
	// spareChunks is more than one command can use: a large block for each player in a group's
	// transfers, and cleaning.
	spareChunks = 1 << 9
	cleanStep   = 8 // blocks looked at in one step
)

// pointer returns the memory at an address, for the writer.
func (a *arena) pointer(addr uint32) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(a.chunks.own[addr>>16]), uintptr(addr&0xffff)*unitBytes)
}

// lines returns places in the cache line of an address and in the next one. A small block lies
// within these two.
func (a *arena) lines(addr uint32) (first, second *uint64) {
	at := a.pointer(addr)
	first, second = (*uint64)(at), (*uint64)(at)
	if addr&0xffff+lineUnits < a.about[addr>>16].units {
		second = (*uint64)(unsafe.Add(at, lineUnits*unitBytes))
	}
	return first, second
}

// peek is pointer for readers. It returns nil if the memory was released. It must check that before
// it adds: the compiler assumes that no sum is nil.
func (a *arena) peek(addr uint32) unsafe.Pointer {
	chunk := a.chunks.at(addr >> 16)
	if chunk == nil {
		return nil
	}
	return unsafe.Add(unsafe.Pointer(chunk), uintptr(addr&0xffff)*unitBytes)
}

// alloc returns the address of a new block. Its memory may not be zero.
func (a *arena) alloc(units uint32) uint32 {
	if units >= largeUnits {
		return a.grow(units, true) << 16
	}
	c := a.current()
	if c == nil || c.used+units > c.units {
		a.next(units)
		c = a.current()
	}
	addr := a.open<<16 | c.used
	c.used += units
	return addr
}

func (a *arena) current() *chunk {
	if !a.opened {
		return nil
	}
	return &a.about[a.open]
}

// next opens a chunk with room for units. The rest of the last one counts as dead.
func (a *arena) next(units uint32) {
	if c := a.current(); c != nil {
		a.bury(c, c.units-c.used)
	}
	if n := len(a.empty); n > 0 {
		a.open, a.opened = a.empty[n-1], true
		a.empty = a.empty[:n-1]
		a.total += chunkUnits
		return
	}
	size := uint32(firstUnits)
	for size < chunkUnits && (uint64(size) < a.size || size < 2*units) {
		size *= 2
	}
	a.open, a.opened = a.grow(size, false), true
}

func (a *arena) bury(c *chunk, units uint32) {
	c.dead += units
	if c.units == chunkUnits {
		a.dead += uint64(units)
	}
}

func (a *arena) grow(units uint32, large bool) uint32 {
	mem := make([]uint64, int(units)*(unitBytes/8)) // for alignment
	base, about := (*byte)(unsafe.Pointer(unsafe.SliceData(mem))), chunk{units: units, large: large}
	a.size += uint64(units)
	if units == chunkUnits && !large {
		a.total += chunkUnits
	}
	if n := len(a.unused); n > 0 {
		i := a.unused[n-1]
		a.unused = a.unused[:n-1]
		a.chunks.set(i, base)
		a.about[i] = about
		return i
	}
	if len(a.about) >= maxChunks {
		panic("store: more than 64 GiB of players") // cannot happen: MemoryFull refuses earlier, and spareChunks covers what loading adds
	}
	a.chunks.push(base)
	a.about = append(a.about, about)
	return uint32(len(a.about) - 1)
}

// full reports whether memory for the next command may be lacking, if most chunks are allowed.
func (a *arena) full(most int) bool {
	return len(a.about)-len(a.unused)-len(a.empty) > most-spareChunks
}

func (a *arena) free(addr, units uint32) {
	i := addr >> 16
	c := &a.about[i]
	if !c.large {
		a.bury(c, units)
		return
	}
	a.size -= uint64(c.units)
	a.chunks.set(i, nil)
	*c = chunk{large: true}
	a.unused = append(a.unused, i)
}

func (a *arena) dirty() bool { return a.cleaning || a.dead*4 > a.total && a.dead > chunkUnits }

// clean returns the addresses of the next few blocks of the chunk being cleaned, which it chooses
// if there is none. The caller must move the live ones. size returns the units of a block.
func (a *arena) clean(size func(addr uint32) uint32) []uint32 {
	if !a.cleaning {
		if a.cleaning = a.choose(); !a.cleaning {
			return nil
		}
		a.cursor = 0
	}
	c := &a.about[a.victim]
	n := 0
	for ; n < cleanStep && a.cursor < c.used; n++ {
		addr := a.victim<<16 | a.cursor
		a.cursor += size(addr)
		a.moving[n] = addr
	}
	if n == 0 { // the chunk is empty
		a.total -= chunkUnits
		a.dead -= uint64(c.dead)
		c.used, c.dead = 0, 0
		a.empty = append(a.empty, a.victim)
		a.cleaning = false
	}
	return a.moving[:n]
}

func (a *arena) choose() bool {
	best := uint32(0)
	for i := range a.about {
		c := &a.about[i]
		if !c.large && c.units == chunkUnits && uint32(i) != a.open && c.dead > best {
			a.victim, best = uint32(i), c.dead
		}
	}
	return best >= chunkUnits/8
}

// shared is a growing list that one goroutine writes and others read.
type shared[T any] struct {
	own  []T // the writer's
	list atomic.Pointer[[]T]
}

// at returns an element for a reader, who must otherwise know that it was pushed or set.
func (s *shared[T]) at(i uint32) T { return (*s.list.Load())[i] }

func (s *shared[T]) push(v T) {
	s.own = append(s.own, v)
	list := s.own
	s.list.Store(&list)
}

// set replaces an element that no reader uses.
func (s *shared[T]) set(i uint32, v T) { s.own[i] = v }
