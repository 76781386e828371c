package economy

// index maps hashes to numbers below 2^32-1, with a pointer for some hundred
// numbers and none for each, and grows without ever stopping for long:
// extendible hashing (Fagin, Nievergelt, Pippenger and Strong, ACM TODS 4, 1979).
// A directory, by the hash's top bits, names shards of a fixed size; a shard that
// fills up is split in two, and only now and then the directory, which is small,
// is doubled. Adding costs at most one split.
//
// A slot is hash<<32 | number+1; 0 is free. The caller tells numbers apart whose
// hashes are the same.
type index struct {
	dir   []*shard // by the top depth bits of a hash
	depth uint8    // len(dir) is 1<<depth
}

const (
	shardSlots = 512
	shardFull  = shardSlots * 3 / 4
)

// shard is open addressing with linear probing, by a hash's low bits.
type shard struct {
	slots [shardSlots]uint64
	used  uint16
	depth uint8 // how many top bits the hashes in it have in common
}

func (x *index) init() { x.dir = []*shard{new(shard)} }

// slots returns where to look for a hash: from its low bits on, round, until a
// slot is free. There is always a free one.
func (x *index) slots(hash uint32) *[shardSlots]uint64 { return &x.shard(hash).slots }

func (x *index) shard(hash uint32) *shard { return x.dir[uint64(hash)<<x.depth>>32] }

// add puts a number in that is not there.
func (x *index) add(hash, number uint32) {
	s := x.shard(hash)
	for s.used >= shardFull {
		x.split(hash)
		s = x.shard(hash)
	}
	s.put(uint64(hash)<<32 | uint64(number+1))
}

// home returns the slot that a slot's content would best stand in.
func home(slot uint64) uint64 { return slot >> 32 % shardSlots }

func (s *shard) put(slot uint64) {
	i := home(slot)
	for s.slots[i] != 0 {
		i = (i + 1) % shardSlots
	}
	s.slots[i] = slot
	s.used++
}

// remove takes out a number that is there.
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
	s.used--
}

// split moves half of the shard of a hash to a new one.
func (x *index) split(hash uint32) {
	old := x.shard(hash)
	if old.depth == x.depth {
		x.double()
	}
	bit := uint64(1) << (63 - old.depth) // of a slot
	before := *old
	*old = shard{depth: before.depth + 1}
	moved := &shard{depth: before.depth + 1}
	for _, slot := range before.slots {
		switch {
		case slot == 0:
		case slot&bit != 0:
			moved.put(slot)
		default:
			old.put(slot)
		}
	}
	// The directory's entries of the old shard: those whose bit is set move.
	span := uint64(1) << (x.depth - before.depth)
	first := uint64(hash) << x.depth >> 32 &^ (span - 1)
	for i := first + span/2; i < first+span; i++ {
		x.dir[i] = moved
	}
}

func (x *index) double() {
	dir := make([]*shard, 2*len(x.dir))
	for i, s := range x.dir {
		dir[2*i], dir[2*i+1] = s, s
	}
	x.dir = dir
	x.depth++
}
