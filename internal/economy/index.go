package economy

import "sync/atomic"

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
// One goroutine writes. Others may read at the same time, through [index.load],
// if numbers are only ever added: a shard that was split stays as it was, so
// that a reader that still looks into it sees the index of a moment ago.
type index struct {
	own *directory // the writer's
	dir atomic.Pointer[directory]
}

// directory names shards by the top depth bits of a hash.
type directory struct {
	depth  uint8 // len(shards) is 1<<depth
	shards []atomic.Pointer[shard]
}

const (
	shardSlots = 512
	// maxProbe is how far from its home a slot's content may stand; a shard in
	// which it would stand farther, at about two thirds full, is split. Counting
	// what is in a shard would cost an add, and a removal, a second cache line.
	maxProbe = 48
	// maxDepth is the depth at which no split tells hashes apart any more.
	maxDepth = 32
)

// shard is open addressing with linear probing, by a hash's low bits.
type shard struct {
	slots [shardSlots]uint64
	depth uint8 // how many top bits the hashes in it have in common
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

// slots returns where the writer looks for a hash: from its low bits on, round,
// until a slot is free. There is always a free one.
func (x *index) slots(hash uint32) *[shardSlots]uint64 { return &x.shard(hash).slots }

func (x *index) shard(hash uint32) *shard { return x.own.shard(hash) }

func (d *directory) shard(hash uint32) *shard { return d.shards[uint64(hash)<<d.depth>>32].Load() }

// peek is shard for readers.
func (x *index) peek(hash uint32) *shard { return x.dir.Load().shard(hash) }

// load returns the slot i of a shard for a reader beside the writer.
func (s *shard) load(i uint32) uint64 { return atomic.LoadUint64(&s.slots[i]) }

// add puts a number in that is not there.
func (x *index) add(hash, number uint32) {
	slot := uint64(hash)<<32 | uint64(number+1)
	for most := uint64(maxProbe); !x.shard(hash).put(slot, most); {
		if x.shard(hash).depth < maxDepth {
			x.split(hash)
		} else {
			most = shardSlots - 2 // and so many equal hashes do not happen
		}
	}
}

// home returns the slot that a slot's content would best stand in.
func home(slot uint64) uint64 { return slot >> 32 % shardSlots }

// put puts a slot's content in and reports whether there was a place for it, at
// most so far from its home.
func (s *shard) put(slot, most uint64) bool {
	i := home(slot)
	for n := uint64(0); s.slots[i] != 0; n++ {
		if n == most {
			return false
		}
		i = (i + 1) % shardSlots
	}
	atomic.StoreUint64(&s.slots[i], slot)
	return true
}

// remove takes out a number that is there. There must be no readers.
func (x *index) remove(hash, number uint32) {
	s := x.shard(hash)
	slot := uint64(hash)<<32 | uint64(number+1)
	i := home(slot)
	for s.slots[i] != slot {
		i = (i + 1) % shardSlots
	}
	// Close the gap: move back every later slot of the run that may stand in it.
	for j := (i + 1) % shardSlots; s.slots[j] != 0; j = (j + 1) % shardSlots {
		if (j-home(s.slots[j]))%shardSlots >= (j-i)%shardSlots {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = 0
}

// split replaces the shard of a hash by two halves.
func (x *index) split(hash uint32) {
	old := x.shard(hash)
	if old.depth == x.own.depth {
		x.double()
	}
	d := x.own
	bit := uint64(1) << (63 - old.depth) // of a slot
	halves := [2]*shard{{depth: old.depth + 1}, {depth: old.depth + 1}}
	for _, slot := range old.slots {
		switch {
		case slot == 0:
		case slot&bit != 0:
			halves[1].put(slot, shardSlots)
		default:
			halves[0].put(slot, shardSlots)
		}
	}
	// The directory's entries of the old shard: the second half of them has the bit set.
	span := uint64(1) << (d.depth - old.depth)
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
