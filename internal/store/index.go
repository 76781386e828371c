package store

import (
	"sync/atomic"
	"unsafe"
)

// index maps hashes to numbers below 2^32-1. It has one pointer per several hundred numbers and
// grows without long pauses: extendible hashing (Fagin, Nievergelt, Pippenger and Strong, ACM TODS
// 4, 1979). A directory names shards of a fixed size by the top bits of the hash. A full shard is
// replaced by two. The directory, which is small, doubles now and then.
//
// A slot is hash<<32 | number+1; 0 is free. The caller must tell apart numbers with the same hash.
//
// One goroutine writes. Others may read at the same time, through [index.peek], if numbers are only
// ever added or replaced. A reader in a shard that was split may see a number that was replaced
// since. Where it must not, the writer holds a guard while it replaces numbers with that hash.
type index struct {
	own   *directory // the writer's
	dir   atomic.Pointer[directory]
	alone bool    // only the writer reads
	spare []shard // allocated ahead
}

// directory names shards by the top depth bits of a hash.
type directory struct {
	depth  uint64 // len(shards) is 1<<depth
	shards []atomic.Pointer[shard]
}

const (
	shardSlots = 512
	// lineSlots is the number of slots in a cache line.
	lineSlots = 8
	// maxProbe is how far a slot's content may be from its home. A shard that would need more is
	// split, at about two thirds full. Counting the content instead would cost each add and remove
	// a second cache line.
	maxProbe = 48
	// spareShards is how many shards are allocated at a time.
	spareShards = 7
	// maxDepth is the depth from which a split no longer separates hashes.
	maxDepth = 32
)

// shard is open addressing with linear probing, by a hash's low bits.
type shard struct {
	slots [shardSlots]uint64
	depth uint64 // how many top bits its hashes share; as wide as a slot, to keep slots aligned
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

// shard returns the shard in which the writer looks for a hash: from its home on, wrapping around,
// up to a free slot. There always is one.
func (x *index) shard(hash uint32) *shard { return x.own.shard(hash) }

func (d *directory) shard(hash uint32) *shard { return d.shards[uint64(hash)<<(d.depth&63)>>32].Load() }

// peek is shard for readers.
func (x *index) peek(hash uint32) *shard { return x.dir.Load().shard(hash) }

// at returns the place of slot i, wrapping around. For s.slots[i] the compiler would also read the
// first slot, to check that s is not nil: usually a wasted cache miss.
func (s *shard) at(i uint32) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(s), uintptr(i%shardSlots)*unsafe.Sizeof(s.slots[0])))
}

// load returns slot i of a shard, for a reader concurrent with the writer.
func (s *shard) load(i uint32) uint64 { return atomic.LoadUint64(s.at(i)) }

func content(hash, number uint32) uint64 { return uint64(hash)<<32 | uint64(number+1) }

// add adds a number that is not in the index.
func (x *index) add(hash, number uint32) { x.insert(hash, content(hash, number)) }

// replace replaces a number that is in the index. Readers see either one.
func (x *index) replace(hash, was, is uint32) {
	s := x.shard(hash)
	x.store(s, s.place(hash, content(hash, was)), content(hash, is))
}

// place returns the slot with this content, which must be in the shard.
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
			most = shardSlots - 2 // that many equal hashes do not happen
		}
	}
}

// first returns the home of a hash: the slot where a search for it begins.
func first(hash uint32) uint32 { return hash % shardSlots }

// home returns the home of a slot's content.
func home(slot uint64) uint32 { return first(uint32(slot >> 32)) }

// put puts a slot's content into a shard. It reports whether there was a free slot at most so far
// from its home.
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

func (x *index) store(s *shard, i uint32, slot uint64) {
	if x.alone {
		*s.at(i) = slot
		return
	}
	atomic.StoreUint64(s.at(i), slot)
}

// remove removes a number that is in the index. There must be no readers.
func (x *index) remove(hash, number uint32) {
	s := x.shard(hash)
	i := s.place(hash, content(hash, number))
	// Close the gap: move into it every later slot of the run that may be there.
	for j := i + 1; *s.at(j) != 0; j++ {
		if (j-home(*s.at(j)))%shardSlots >= (j-i)%shardSlots {
			*s.at(i) = *s.at(j)
			i = j
		}
	}
	*s.at(i) = 0
}

// split replaces the shard of a hash by two halves. Readers may still be in the old one. Without
// readers, the old one becomes one of the halves.
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
		into := &halves[slot>>(63-depth)&1].slots // nobody reads it yet
		i := home(slot)
		for into[i] != 0 {
			i = (i + 1) % shardSlots
		}
		into[i] = slot
	}
	halves[0].depth, halves[1].depth = depth+1, depth+1
	// The directory's entries for the old shard: in the second half of them the bit is set.
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

// fresh returns an empty shard. It allocates several at a time, which together fill a size class.
func (x *index) fresh() *shard {
	if len(x.spare) == 0 {
		x.spare = make([]shard, spareShards)
	}
	s := &x.spare[0]
	x.spare = x.spare[1:]
	// Write both pages before anybody reads them. A page of new memory that is read first is mapped twice, and the
	// second time interrupts all processors.
	s.slots[0], s.slots[shardSlots-1] = 0, 0
	return s
}
