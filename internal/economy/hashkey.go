package economy

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"unsafe"
)

// hashKey hashes ids that clients choose. Without the key, which is new at every
// start, nobody can find ids that collide. It is wyhash's construction (Wang Yi,
// "Modern Non-Cryptographic Hash Function and Pseudorandom Number Generator",
// 2019), which is also what Go's maps use where the processor has no AES: products
// of 64 by 64 bits, of which both halves count and both factors hold key. Ids are
// short, so that a call to hash/maphash would cost several times the hash.
type hashKey struct{ a, b, c uint64 }

func newHashKey() hashKey {
	seed := maphash.MakeSeed()
	return hashKey{maphash.String(seed, "a"), maphash.String(seed, "b"), maphash.String(seed, "c")}
}

func mix(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}

// hash returns the upper half of an id's hash.
func (k *hashKey) hash(id string) uint32 {
	b := unsafe.Slice(unsafe.StringData(id), len(id))
	n := len(b)
	var x, y uint64
	switch {
	case n > 16:
		h := k.c
		for rest := b; len(rest) > 16; rest = rest[16:] {
			h = mix(binary.LittleEndian.Uint64(rest)^k.a, binary.LittleEndian.Uint64(rest[8:])^h)
		}
		x, y = binary.LittleEndian.Uint64(b[n-16:]), binary.LittleEndian.Uint64(b[n-8:])^h
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x = uint64(b[0])<<16 | uint64(b[n/2])<<8 | uint64(b[n-1])
	}
	hi, lo := bits.Mul64(x^k.a, y^k.b)
	return uint32(mix(lo^k.b^uint64(n), hi^k.c) >> 32)
}

// hashBytes is hash of an id in bytes.
func (k *hashKey) hashBytes(id []byte) uint32 {
	return k.hash(unsafe.String(unsafe.SliceData(id), len(id)))
}
