package economy

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/kuji-dev/kuji/catalog"
)

// nameIndex finds the number of an id, for the ids of one catalog: a table that
// is at least three quarters free, with linear probing. It is a map made for short
// keys that never change: a look-up is one multiplication and one comparison of
// words, and of a few keys of the hash it has the one by which the most ids stand
// where they are looked for first. Ids come from the operator, so that nobody gains
// by making them collide.
type nameIndex struct {
	slots []nameSlot // len is a power of two, or 0
	ids   []string   // by slot
	key   uint64
}

// nameSlot is one id. Of ids of up to 16 bytes the words are all there is to compare.
type nameSlot struct {
	words nameWords // of length 0: free
	num   uint32
}

// nameWords is the bytes of an id of up to 16 bytes in two words, and of a longer
// one a mixture.
type nameWords struct {
	a, b uint64
	len  uint32
}

// newNameIndex returns an index of ids, which differ and are not empty, and their
// numbers.
func newNameIndex(ids []string, nums []uint32) nameIndex {
	size := 4 << bits.Len(uint(len(ids)))
	x := nameIndex{slots: make([]nameSlot, size), ids: make([]string, size), key: nameKey0}
	taken := make([]uint32, size)
	best := len(ids) + 1
	for try, key := uint32(1), x.key; best > 0 && try <= 64 && int(try)*len(ids) < 1<<16; try, key = try+1, key*nameKey1 {
		away := 0 // from home
		for _, id := range ids {
			if home := &taken[wordsOf(id).hash(key)&uint64(size-1)]; *home == try {
				away++
			} else {
				*home = try
			}
		}
		if away < best {
			best, x.key = away, key
		}
	}
	for i, id := range ids {
		words := wordsOf(id)
		at := words.hash(x.key) & uint64(size-1)
		for x.slots[at].words.len != 0 {
			at = (at + 1) & uint64(size-1)
		}
		x.slots[at], x.ids[at] = nameSlot{words, nums[i]}, id
	}
	return x
}

// find returns the number of an id, and false when the catalog does not have it.
func (x *nameIndex) find(id string) (uint32, bool) {
	if len(x.slots) == 0 || id == "" {
		return 0, false
	}
	mask := uint64(len(x.slots) - 1)
	words := wordsOf(id)
	for i := words.hash(x.key) & mask; ; i = (i + 1) & mask {
		s := &x.slots[i]
		switch {
		case s.words == words && (len(id) <= 16 || x.ids[i] == id):
			return s.num, true
		case s.words.len == 0:
			return 0, false
		}
	}
}

// findAll is find for the items of a grant: it fills in their numbers and reports
// whether the catalog has them all.
func (x *nameIndex) findAll(items []catalog.Stack, nums []uint32) bool {
	for i := 0; ; i++ {
		i += x.findHome(items[i:], nums[i:])
		if i == len(items) {
			return true
		}
		var ok bool
		if nums[i], ok = x.find(items[i].Item); !ok {
			return false
		}
	}
}

// findHome fills in the numbers of the first items, as long as they have ids of the
// usual length that stand at home, and returns how many. It calls nothing, so that
// all that it works with stays in registers.
func (x *nameIndex) findHome(items []catalog.Stack, nums []uint32) int {
	slots, key := x.slots, x.key
	nums = nums[:len(items)]
	for i := range items {
		id := items[i].Item
		if len(id) < 4 || len(id) > 16 || len(slots) == 0 {
			return i
		}
		w := usualWords(unsafe.Pointer(unsafe.StringData(id)), len(id))
		s := &slots[w.hash(key)&uint64(len(slots)-1)]
		if s.words != w {
			return i
		}
		nums[i] = s.num
	}
	return len(items)
}

const (
	nameKey0 = 0xa0761d6478bd642f
	nameKey1 = 0xe7037ed1a0b428db
)

// wordsOf reads an id. Two ids of up to 16 bytes have the same words only if they
// are the same.
func wordsOf(s string) nameWords {
	if len(s) < 4 || len(s) > 16 {
		return oddWords(s)
	}
	return usualWords(unsafe.Pointer(unsafe.StringData(s)), len(s))
}

// usualWords is wordsOf for 4 to 16 bytes: four loads that overlap, without a
// branch that depends on the length.
func usualWords(p unsafe.Pointer, n int) nameWords {
	mid := n >> 3 << 2 // 0, 4 or 8
	q := unsafe.Add(p, n-4)
	return nameWords{load32(p, 0)<<32 | load32(p, mid), load32(q, 0)<<32 | load32(q, -mid), uint32(n)}
}

func load32(p unsafe.Pointer, at int) uint64 {
	return uint64(binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(p, at))[:]))
}

// oddWords is wordsOf for any other number of bytes.
func oddWords(s string) nameWords {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	switch n := len(b); {
	case n > 16:
		w := nameWords{b: nameKey1, len: uint32(n)}
		w.a = binary.LittleEndian.Uint64(b[n-8:])
		for ; len(b) > 8; b = b[8:] {
			hi, lo := bits.Mul64(binary.LittleEndian.Uint64(b)^nameKey0, w.b)
			w.b = hi ^ lo ^ nameKey1
		}
		return w
	case n > 0:
		return nameWords{uint64(b[0]) | uint64(b[n/2])<<8, uint64(b[n-1]), uint32(n)}
	}
	return nameWords{}
}

// hash mixes the words by a multiplication of which both halves count, as in
// wyhash. It is the same on every machine, though nothing that lasts depends on it.
func (w nameWords) hash(key uint64) uint64 {
	hi, lo := bits.Mul64(w.a^key, w.b^nameKey1^uint64(w.len))
	return hi ^ lo
}

func nameHash(s string) uint64 { return wordsOf(s).hash(nameKey0) }

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
