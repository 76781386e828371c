package economy

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// index maps hashes to numbers below 2^32-1, with a pointer for some hundred
// numbers and none for each, and grows without ever stopping for long:
// extendible hashing (Fagin, Nievergelt, Pippenger and Strong, ACM TODS 4, 1979).
// A directory, by the hash's top bits, names shards of a fixed size; a shard that
// fills up is replaced by two, and only now and then the directory, which is
// small, is doubled. Adding costs at most one split.
//
// A slot is hash<<32 | number+1; 0 is free. The caller tells numbers apart whose
// hashes are the same.
//
// One goroutine writes. Others may read at the same time, through [index.peek], if
// numbers are only ever added or replaced: a shard that was split stays as it was, so
// that a reader that still looks into it sees the index of a moment ago. Whom that
// does not suffice, because a number must not be one that was replaced, needs a guard
// that the writer has opened when it replaces numbers of that hash.
type index struct {
	own   *directory // the writer's
	dir   atomic.Pointer[directory]
	alone bool    // nobody reads but by glance: shards may be used again
	spare []shard // of several made at a time, when alone

	// While it is deferred, what comes waits, and cannot be found: settle puts it
	// in, sorted by shard, so that a shard is fetched once for all that goes into it.
	deferred bool
	waiting  pieces[uint64] // contents of slots, in order of addition
	looked   uint64         // of no meaning: see settle
}

// directory names shards by the top depth bits of a hash.
type directory struct {
	depth  uint8 // len(shards) is 1<<depth
	shards []atomic.Pointer[shard]
}

const (
	shardSlots = 512
	// lineSlots is how many slots a line of the processor's cache has.
	lineSlots = 8
	// maxProbe is how far from its home a slot's content may stand; a shard in
	// which it would stand farther, at about two thirds full, is split. Counting
	// what is in a shard would cost an add, and a removal, a second cache line.
	maxProbe = 48
	// spareShards is how many are made at a time: they fill a size of memory.
	spareShards = 15
	// maxDepth is the depth at which no split tells hashes apart any more.
	maxDepth = 32
)

// shard is open addressing with linear probing, by a hash's low bits.
type shard struct {
	slots [shardSlots]uint64
	depth uint8   // how many top bits the hashes in it have in common
	_     [7]byte // of several behind one another, slots stand at multiples of 8 on 32-bit machines too: atomics need it
}

func (x *index) init() {
	d := &directory{shards: make([]atomic.Pointer[shard], 1)}
	d.shards[0].Store(new(shard))
	x.show(d)
}

func (x *index) show(d *directory) {
	x.own = d
	x.dir.Store(d)
}

// shard returns where the writer looks for a hash: from its home on, round,
// until a slot is free. There is always a free one.
func (x *index) shard(hash uint32) *shard { return x.own.shard(hash) }

func (d *directory) shard(hash uint32) *shard { return d.shards[uint64(hash)<<(d.depth&63)>>32].Load() }

// peek is shard for readers.
func (x *index) peek(hash uint32) *shard { return x.dir.Load().shard(hash) }

// at returns the place of slot i, round. Of s.slots[i] the compiler would make a look at
// the first slot, too, to see that s is not nil: mostly a cache miss for nothing.
func (s *shard) at(i uint32) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(s), uintptr(i%shardSlots)*unsafe.Sizeof(s.slots[0])))
}

// load returns the slot i of a shard for a reader beside the writer.
func (s *shard) load(i uint32) uint64 { return atomic.LoadUint64(s.at(i)) }

// content returns what stands in a number's slot.
func content(hash, number uint32) uint64 { return uint64(hash)<<32 | uint64(number+1) }

// add puts a number in that is not there.
func (x *index) add(hash, number uint32) { x.insert(hash, content(hash, number)) }

// wait puts a number in later: see settle.
func (x *index) wait(hash, number uint32) {
	x.waiting.push(content(hash, number))
}

// replace puts a number in the place of one that is there. Readers see one or the other.
func (x *index) replace(hash, was, is uint32) {
	s := x.shard(hash)
	s.store(s.place(hash, content(hash, was)), content(hash, is), x.alone)
}

// place returns in which slot something stands that is there.
func (s *shard) place(hash uint32, slot uint64) uint32 {
	i := first(hash)
	for *s.at(i) != slot {
		if *s.at(i) == 0 {
			panic("economy: an index has lost a number")
		}
		i++
	}
	return i
}

func (x *index) insert(hash uint32, slot uint64) {
	for most := uint64(maxProbe); !x.shard(hash).put(slot, most, x.alone); {
		if x.shard(hash).depth < maxDepth {
			x.split(hash)
		} else {
			most = shardSlots - 2 // and so many equal hashes do not happen
		}
	}
}

// look looks at where a number with a hash is likely to stand, which fetches it.
func (x *index) look(hash uint32) uint64 { return *x.shard(hash).at(first(hash)) }

// glance is look beside the writer, of any index, as what it returns is of no meaning.
//
//go:noinline
func (x *index) glance(hash uint32) uint64 { return x.peek(hash).load(first(hash)) }

// first returns the home of a hash: the slot where its number would best stand.
func first(hash uint32) uint32 { return hash % shardSlots }

// home is first for the content of a slot.
func home(slot uint64) uint32 { return first(uint32(slot >> 32)) }

// put puts a slot's content in and reports whether there was a place for it, at
// most so far from its home.
func (s *shard) put(slot, most uint64, alone bool) bool {
	i := home(slot)
	for n := uint64(0); *s.at(i) != 0; n++ {
		if n == most {
			return false
		}
		i++
	}
	s.store(i, slot, alone)
	return true
}

// store sets the slot i of a shard beside readers.
func (s *shard) store(i uint32, slot uint64, alone bool) {
	if alone {
		*s.at(i) = slot
	} else {
		publish((*atomic.Uint64)(unsafe.Pointer(s.at(i))), slot)
	}
}

// remove takes out a number that is there. There must be no readers.
func (x *index) remove(hash, number uint32) {
	s := x.shard(hash)
	i := s.place(hash, content(hash, number))
	// Close the gap: move back every later slot of the run that may stand in it.
	for j := i + 1; *s.at(j) != 0; j++ {
		if (j-home(*s.at(j)))%shardSlots >= (j-i)%shardSlots {
			*s.at(i) = *s.at(j)
			i = j
		}
	}
	*s.at(i) = 0
}

// split replaces the shard of a hash by two halves.
func (x *index) split(hash uint32) {
	old := x.shard(hash)
	if old.depth == x.own.depth {
		x.double()
	}
	d := x.own
	from, depth := &old.slots, old.depth
	halves := [2]*shard{old, x.fresh()}
	if x.alone {
		from = new([shardSlots]uint64)
		*from = old.slots
		*old = shard{}
	} else {
		halves[0] = new(shard)
	}
	for _, slot := range from {
		if slot == 0 {
			continue
		}
		into := &halves[slot>>(63-depth)&1].slots // which nobody reads yet
		i := home(slot)
		for into[i] != 0 {
			i = (i + 1) % shardSlots
		}
		into[i] = slot
	}
	halves[0].depth, halves[1].depth = depth+1, depth+1
	// The directory's entries of the old shard: the second half of them has the bit set.
	span := uint64(1) << (d.depth - depth)
	first := uint64(hash) << d.depth >> 32 &^ (span - 1)
	for i := range span {
		d.shards[first+i].Store(halves[i/(span/2)])
	}
}

func (x *index) double() {
	old := x.own
	d := &directory{depth: old.depth + 1, shards: make([]atomic.Pointer[shard], 2*len(old.shards))}
	for i := range old.shards {
		s := old.shards[i].Load()
		d.shards[2*i].Store(s)
		d.shards[2*i+1].Store(s)
	}
	x.show(d)
}

// settle puts in what waits. Of numbers with the same hash it calls clash with the
// one that was there first and the one that came, which is left out if clash says that they
// are the same: of what is the same any number may come, and no index has room for that.
func (x *index) settle(clash func(was, is uint32) (same bool)) {
	x.deferred = false
	if x.waiting.n == 0 {
		return
	}
	x.reserve(x.waiting.n)
	sorted, shift := x.sorted(), 64-x.own.depth
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && sorted[n]>>shift == sorted[0]>>shift {
			n++
		}
		x.fill(sorted[:n], clash)
		sorted = sorted[n:]
	}
	x.waiting = pieces[uint64]{} // and its memory is free
}

// fill is settle for numbers that have one shard until that is split.
func (x *index) fill(slots []uint64, clash func(was, is uint32) (same bool)) {
	s := x.shard(uint32(slots[0] >> 32))
	if len(slots) > shardSlots/lineSlots {
		for i := 0; i < shardSlots; i += lineSlots { // which fetches all of it
			x.looked += s.slots[i]
		}
	}
	split := false
	for _, slot := range slots {
		if split {
			s = x.shard(uint32(slot >> 32))
		}
		i, n, same := home(slot), uint64(0), false
		for ; *s.at(i) != 0; n++ {
			if was := *s.at(i); was>>32 == slot>>32 && clash(uint32(was)-1, uint32(slot)-1) {
				same = true
			}
			i++
		}
		if same {
			continue
		}
		if n < maxProbe && x.alone {
			*s.at(i) = slot
			continue
		}
		x.insert(uint32(slot>>32), slot)
		split = true
	}
}

// sorted returns what waits by shard and, within one, by order of addition.
func (x *index) sorted() []uint64 {
	shift := 64 - x.own.depth
	ends := make([]int, len(x.own.shards)+1)
	for i := range x.waiting.count() {
		for _, slot := range x.waiting.piece(i) {
			ends[slot>>shift+1]++
		}
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	out := make([]uint64, x.waiting.n)
	for i := range x.waiting.count() {
		for _, slot := range x.waiting.piece(i) {
			at := &ends[slot>>shift]
			out[*at] = slot
			*at++
		}
	}
	return out
}

// reserve makes shards for n numbers in an index that is empty.
func (x *index) reserve(n int) {
	if len(x.own.shards) > 1 || *x.own.shards[0].Load() != (shard{}) {
		return
	}
	const most = shardSlots * 5 / 8 // in a shard, on average
	depth := uint8(bits.Len(uint(n) / most))
	d := &directory{depth: depth, shards: make([]atomic.Pointer[shard], 1<<depth)}
	for i := range d.shards {
		s := x.fresh()
		s.depth = depth
		d.shards[i].Store(s)
	}
	x.show(d)
}

// fresh returns an empty shard.
func (x *index) fresh() *shard {
	if !x.alone {
		return new(shard)
	}
	if len(x.spare) == 0 {
		x.spare = make([]shard, spareShards)
	}
	s := &x.spare[0]
	x.spare = x.spare[1:]
	return s
}
