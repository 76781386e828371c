package store

import (
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
	alone bool    // nobody reads beside the writer
	spare []shard // made ahead
}

// directory names shards by the top depth bits of a hash.
type directory struct {
	depth  uint64 // len(shards) is 1<<depth
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
	// spareShards is how many are made at a time.
	spareShards = 7
	// maxDepth is the depth at which no split tells hashes apart any more.
	maxDepth = 32
)

// shard is open addressing with linear probing, by a hash's low bits.
type shard struct {
	slots [shardSlots]uint64
	depth uint64 // how many top bits the hashes in it have in common; as wide as a slot, so that slots keep their alignment
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

// at returns the place of slot i, round. Of s.slots[i] the compiler would make a look at the
// first slot, too, to see that s is not nil: mostly a cache miss for nothing.
func (s *shard) at(i uint32) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(s), uintptr(i%shardSlots)*unsafe.Sizeof(s.slots[0])))
}

// load returns the slot i of a shard for a reader beside the writer.
func (s *shard) load(i uint32) uint64 { return atomic.LoadUint64(s.at(i)) }

// content returns what stands in a number's slot.
func content(hash, number uint32) uint64 { return uint64(hash)<<32 | uint64(number+1) }

// add puts a number in that is not there.
func (x *index) add(hash, number uint32) { x.insert(hash, content(hash, number)) }

// replace puts a number in the place of one that is there. Readers see one or the other.
func (x *index) replace(hash, was, is uint32) {
	s := x.shard(hash)
	x.store(s, s.place(hash, content(hash, was)), content(hash, is))
}

// place returns in which slot something stands that is there.
func (s *shard) place(hash uint32, slot uint64) uint32 {
	i := first(hash)
	for *s.at(i) != slot {
		if *s.at(i) == 0 {
			panic("store: an index has lost a number")
		}
		i++
	}
	return i
}

func (x *index) insert(hash uint32, slot uint64) {
	for most := uint64(maxProbe); !x.put(x.shard(hash), slot, most); {
		if x.shard(hash).depth < maxDepth {
			x.split(hash)
		} else {
			most = shardSlots - 2 // and so many equal hashes do not happen
		}
	}
}

// first returns the home of a hash: the slot where its number would best stand.
func first(hash uint32) uint32 { return hash % shardSlots }

// home is first for the content of a slot.
func home(slot uint64) uint32 { return first(uint32(slot >> 32)) }

// put puts a slot's content into a shard and reports whether there was a place for it,
// at most so far from its home.
func (x *index) put(s *shard, slot, most uint64) bool {
	i := home(slot)
	for n := uint64(0); *s.at(i) != 0; n++ {
		if n == most {
			return false
		}
		i++
	}
	x.store(s, i, slot)
	return true
}

// store sets the slot i of a shard.
func (x *index) store(s *shard, i uint32, slot uint64) {
	if x.alone {
		*s.at(i) = slot
		return
	}
	atomic.StoreUint64(s.at(i), slot)
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

// split replaces the shard of a hash by two halves. Readers may still look into the old one;
// where there are none, it becomes one of the two.
func (x *index) split(hash uint32) {
	old := x.shard(hash)
	if old.depth == x.own.depth {
		x.double()
	}
	d, depth, slots := x.own, old.depth, old.slots
	halves := [2]*shard{old, x.fresh()}
	if x.alone {
		clear(old.slots[:])
	} else {
		halves[0] = x.fresh()
	}
	for _, slot := range slots {
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

// fresh returns an empty shard. Several are made at a time: they fill a size of memory.
func (x *index) fresh() *shard {
	if len(x.spare) == 0 {
		x.spare = make([]shard, spareShards)
	}
	s := &x.spare[0]
	x.spare = x.spare[1:]
	return s
}
