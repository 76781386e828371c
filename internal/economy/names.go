package economy

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// nameIndex finds the number of an id, for the ids of one catalog: a table that
// is at least half free, with linear probing. It is a map made for short keys that
// never change: a look-up is one multiplication and one comparison of words. Ids
// come from the operator, so that nobody gains by making them collide.
type nameIndex struct {
	slots []nameSlot // len is a power of two
}

// nameSlot is one id. Of ids of up to 16 bytes the words are all there is to compare.
type nameSlot struct {
	words nameWords
	id    string // empty: free
	num   uint32
}

// nameWords is the bytes of an id of up to 16 bytes in two words, and of a longer
// one a mixture.
type nameWords struct {
	a, b uint64
	len  int
}

// newNameIndex returns an empty index with room for n ids.
func newNameIndex(n int) nameIndex {
	return nameIndex{slots: make([]nameSlot, 2<<bits.Len(uint(n)))}
}

// put adds an id, which must be new and not empty.
func (x *nameIndex) put(id string, num uint32) {
	mask := uint64(len(x.slots) - 1)
	words := wordsOf(id)
	i := words.hash() & mask
	for x.slots[i].id != "" {
		i = (i + 1) & mask
	}
	x.slots[i] = nameSlot{words, id, num}
}

// find returns the number of an id, and false when the catalog does not have it.
func (x *nameIndex) find(id string) (uint32, bool) {
	if len(x.slots) == 0 || id == "" {
		return 0, false
	}
	mask := uint64(len(x.slots) - 1)
	words := wordsOf(id)
	for i := words.hash() & mask; ; i = (i + 1) & mask {
		s := &x.slots[i&uint64(len(x.slots)-1)]
		switch {
		case s.words == words && (len(id) <= 16 || s.id == id):
			return s.num, true
		case s.words.len == 0:
			return 0, false
		}
	}
}

const (
	nameKey0 = 0xa0761d6478bd642f
	nameKey1 = 0xe7037ed1a0b428db
)

// wordsOf reads an id eight bytes at a time. Two ids of up to 16 bytes have the
// same words only if they are the same.
func wordsOf(s string) nameWords {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	switch n := len(b); {
	case n > 16:
		w := nameWords{b: nameKey1, len: n}
		w.a = binary.LittleEndian.Uint64(b[n-8:])
		for ; len(b) > 8; b = b[8:] {
			hi, lo := bits.Mul64(binary.LittleEndian.Uint64(b)^nameKey0, w.b)
			w.b = hi ^ lo ^ nameKey1
		}
		return w
	case n >= 8:
		return nameWords{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:]), n}
	case n >= 4:
		return nameWords{uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:])), n}
	case n > 0:
		return nameWords{uint64(b[0]) | uint64(b[n/2])<<8, uint64(b[n-1]), n}
	}
	return nameWords{}
}

// hash mixes the words by a multiplication of which both halves count, as in
// wyhash. It is the same on every machine, though nothing that lasts depends on it.
func (w nameWords) hash() uint64 {
	hi, lo := bits.Mul64(w.a^nameKey0, w.b^nameKey1^uint64(w.len))
	return hi ^ lo
}

func nameHash(s string) uint64 { return wordsOf(s).hash() }

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
