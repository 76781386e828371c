package economy

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// nameIndex finds the number of an id, for the ids of one catalog: a table that
// is at least half free, with linear probing. It is a map made for short keys that
// never change: a look-up is one multiplication and one comparison of bytes. Ids
// come from the operator, so that nobody gains by making them collide.
type nameIndex struct {
	slots []nameSlot // len is a power of two
}

type nameSlot struct {
	id  string // empty: free
	num uint32
}

// newNameIndex returns an empty index with room for n ids.
func newNameIndex(n int) nameIndex {
	return nameIndex{slots: make([]nameSlot, 2<<bits.Len(uint(n)))}
}

// put adds an id, which must be new and not empty.
func (x *nameIndex) put(id string, num uint32) {
	mask := uint64(len(x.slots) - 1)
	i := nameHash(id) & mask
	for x.slots[i].id != "" {
		i = (i + 1) & mask
	}
	x.slots[i] = nameSlot{id, num}
}

// find returns the number of an id, and false when the catalog does not have it.
func (x *nameIndex) find(id string) (uint32, bool) {
	mask := uint64(len(x.slots) - 1)
	if len(x.slots) == 0 {
		return 0, false
	}
	for i := nameHash(id) & mask; ; i = (i + 1) & mask {
		s := &x.slots[i]
		if s.id == id {
			return s.num, s.id != ""
		}
		if s.id == "" {
			return 0, false
		}
	}
}

// nameHash mixes all bytes of s, eight at a time, by multiplications of which both
// halves count, as in wyhash. It is the same on every machine, though nothing
// that lasts depends on it.
func nameHash(s string) uint64 {
	const k0, k1, k2 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	h := uint64(len(s))*k0 ^ k2
	for len(b) > 8 {
		hi, lo := bits.Mul64(binary.LittleEndian.Uint64(b)^k0, h^k1)
		h, b = hi^lo, b[8:]
	}
	var v uint64
	switch {
	case len(b) == 8:
		v = binary.LittleEndian.Uint64(b)
	case len(b) >= 4:
		v = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))<<32
	case len(b) > 0:
		v = uint64(b[0]) | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])<<16
	}
	hi, lo := bits.Mul64(v^k1, h^k0)
	return hi ^ lo
}

// firstTwice returns the index of the first of ids that stands before it, too, and
// where; false when each stands once. There are at most MaxStacks.
func firstTwice(n int, id func(i int) string) (twice, first int, found bool) {
	var seen [4 * MaxStacks]uint8 // index+1
	for i := range n {
		at := nameHash(id(i)) % uint64(len(seen))
		for ; seen[at] != 0; at = (at + 1) % uint64(len(seen)) {
			if j := int(seen[at]) - 1; id(j) == id(i) {
				return i, j, true
			}
		}
		seen[at] = uint8(i + 1)
	}
	return 0, 0, false
}
