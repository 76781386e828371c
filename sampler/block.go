package sampler

import "math"

// blockLen is the number of weights in a block.
const blockLen = 16

// block holds 16 weights as four groups of four running sums: a group's third number is the sum of its
// first three weights. A block of 16-bit sums is half a cache line, one of 32-bit sums a whole one.
type block[T uint16 | uint32 | uint64] [4][4]T

// find returns which of the 16 weights covers rest, a point within the block.
func (b *block[T]) find(rest uint64) uint64 {
	k, q := group(uint64(b[0][3]), uint64(b[1][3]), uint64(b[2][3]), rest+1)
	g := &b[k&3]
	return k*4 + less(uint64(g[0]), q) + less(uint64(g[1]), q) + less(uint64(g[2]), q)
}

// less returns 1 if sum < q, else 0. Neither may be above 2^63.
func less(sum, q uint64) uint64 { return (sum - q) >> 63 }

// group returns which of four groups covers the point before q, and how far q is into that group. s0,
// s1 and s2 are the sums of the first three groups.
func group(s0, s1, s2, q uint64) (k, within uint64) {
	d0, d1, d2 := less(s0, q), less(s0+s1, q), less(s0+s1+s2, q)
	return d0 + d1 + d2, q - (s0&-d0 + s1&-d1 + s2&-d2)
}

// weight returns the i-th weight, i taken modulo 16.
func (b *block[T]) weight(i uint) uint64 {
	g, j := &b[i>>2&3], i&3
	return uint64(g[j] - g[(j-1)&3]&-T((j+3)>>2)) // (j+3)>>2 is 0 for j = 0, which has nothing before it, and else 1
}

// add adds delta, modulo T, to the i-th weight, i taken modulo 16.
func (b *block[T]) add(i uint, delta uint64) {
	g, j, d := &b[i>>2&3], int64(i&3), T(delta)
	g[0] += d & T((j-1)>>63)
	g[1] += d & T((j-2)>>63)
	g[2] += d & T((j-3)>>63)
	g[3] += d
}

// lower lowers the i-th weight, i taken modulo 16, by one, if that makes it weight, which must not be
// 2^64-1. It reports whether it did.
func (b *block[T]) lower(i uint, weight uint64) bool {
	if b.weight(i)-1 != weight {
		return false
	}
	b.add(i, ^uint64(0))
	return true
}

// take is find, and lowers the weight found by one.
func (b *block[T]) take(rest uint64) uint64 {
	k, q := group(uint64(b[0][3]), uint64(b[1][3]), uint64(b[2][3]), rest+1)
	g := &b[k&3]
	d0, d1, d2 := less(uint64(g[0]), q), less(uint64(g[1]), q), less(uint64(g[2]), q)
	g[0] += T(d0) - 1
	g[1] += T(d1) - 1
	g[2] += T(d2) - 1
	g[3]--
	return k*4 + d0 + d1 + d2
}

func (b *block[T]) sum() uint64 {
	return uint64(b[0][3]) + uint64(b[1][3]) + uint64(b[2][3]) + uint64(b[3][3])
}

// groupSum returns the sum of the group that holds the i-th weight, i taken modulo 16.
func (b *block[T]) groupSum(i uint) uint64 { return uint64(b[i>>2&3][3]) }

// The widths that a table's blocks can have, in bits.
const (
	width16 = 16
	width32 = 32
	width64 = 64
)

// chunkLen is the number of moved blocks that are allocated together, 8 KiB.
const chunkLen = 64

// blocks holds all weights of a table, in blocks of one width. If a group's sum outgrows the width, its
// block moves to 64-bit sums elsewhere. It stays there: a weight that goes up and down costs no copies.
type blocks struct {
	width  uint8
	narrow []block[uint16] // used when width is 16
	middle []block[uint32] // used when width is 32
	wide   []block[uint64] // used when width is 64

	moved  uint32            // number of blocks that have moved
	places []uint32          // by block: 0, or 1 + its place among those that have moved; unused when width is 64
	chunks [][]block[uint64] // the moved blocks, chunkLen in each; allocated when the first block moves there

	count int // number of blocks
}

// init fills a zero blocks with weights, whose sum fits in 63 bits.
func (b *blocks) init(weights []uint64) {
	b.count = (len(weights) + blockLen - 1) / blockLen
	b.width = widthFor(weights)
	switch b.width {
	case width16:
		b.narrow = make([]block[uint16], b.count)
	case width32:
		b.middle = make([]block[uint32], b.count)
	default:
		b.wide = make([]block[uint64], b.count)
	}
	if b.width != width64 {
		b.places = make([]uint32, b.count)
		b.chunks = make([][]block[uint64], (b.count+chunkLen-1)/chunkLen)
	}
	for i, w := range weights {
		if w != 0 {
			b.fit(uint(i), w).add(uint(i), w)
		}
	}
}

// widthFor returns the smallest width that suffices for 15 in 16 blocks.
func widthFor(weights []uint64) uint8 {
	count := (len(weights) + blockLen - 1) / blockLen
	over16, over32 := 0, 0 // number of blocks for which 16 or 32 bits do not suffice
	for len(weights) > 0 {
		n := min(blockLen, len(weights))
		var most uint64 // the largest sum of a group
		for group := weights[:n]; len(group) > 0; group = group[min(4, len(group)):] {
			var sum uint64
			for _, w := range group[:min(4, len(group))] {
				sum += w
			}
			most = max(most, sum)
		}
		if most > math.MaxUint16 {
			over16++
		}
		if most > math.MaxUint32 {
			over32++
		}
		weights = weights[n:]
	}
	switch {
	case over16 <= count/16:
		return width16
	case over32 <= count/16:
		return width32
	}
	return width64
}

// store is a block of any width.
type store interface {
	find(rest uint64) uint64
	take(rest uint64) uint64
	weight(i uint) uint64
	sum() uint64
	add(i uint, delta uint64)
	groupSum(i uint) uint64
}

// at returns block i, wherever it is.
func (b *blocks) at(i uint64) store {
	switch {
	case b.moved > 0 && b.places[i] != 0:
		p := b.places[i] - 1
		return &b.chunks[p/chunkLen][p%chunkLen]
	case b.width == width16:
		return &b.narrow[i]
	case b.width == width32:
		return &b.middle[i]
	}
	return &b.wide[i]
}

func (b *blocks) weight(index uint) uint64 { return b.at(uint64(index / blockLen)).weight(index) }

// fit returns the block of index, with room for weight. If its sums are too narrow, it moves the block.
func (b *blocks) fit(index uint, weight uint64) store {
	i := index / blockLen
	p := b.at(uint64(i))
	if b.width == width64 || b.places[i] != 0 || (p.groupSum(index)-p.weight(index)+weight)>>b.width == 0 {
		return p
	}
	var moved block[uint64]
	for j := range uint(blockLen) {
		moved.add(j, p.weight(j))
	}
	chunk := &b.chunks[b.moved/chunkLen]
	if *chunk == nil {
		*chunk = make([]block[uint64], chunkLen)
	}
	(*chunk)[b.moved%chunkLen] = moved
	b.moved++
	b.places[i] = b.moved
	return b.at(uint64(i))
}
