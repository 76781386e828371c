package sampler

import "math/bits"

// maxDepth is the number of levels over MaxLen entries: two halves of 8^9 blocks of 16 are 2^32.
const maxDepth = 9

// node is one cache line of the tree: for each of its eight children the sum of the children before
// it, so the first is always zero. The sum of all eight is one level higher.
type node [8]uint64

// find returns which of the node's children covers rest, a point within the node.
func (n *node) find(rest uint64) (child uint64) {
	q := rest + 1 // each term is less(n[i], q), spelled out: so the compiler still inlines it
	return (n[1]-q)>>63 + (n[2]-q)>>63 + (n[3]-q)>>63 +
		((n[4]-q)>>63 + (n[5]-q)>>63) + ((n[6]-q)>>63 + (n[7]-q)>>63)
}

// tree finds blocks by running sums. Its top level has up to two nodes, the roots of its two halves.
// That saves a level.
type tree struct {
	// half is the sum of the first half. If there is only one half, it is 2^63 more than all that was
	// added since init, and so above every point.
	half   uint64
	depth  int
	levels [maxDepth]int // where in nodes each level begins, roots first
	nodes  []node
}

// init makes a zero tree the tree of the blocks.
func (t *tree) init(b *blocks) {
	sums := make([]uint64, b.count)
	for i := range sums {
		sums[i] = b.at(uint64(i)).sum()
	}
	var sizes [maxDepth]int // blocks upward
	all := 0
	for width := b.count; width > 2; t.depth++ {
		width = (width + 7) / 8
		sizes[t.depth] = width
		all += width
	}
	t.nodes = make([]node, all)
	for k := range t.depth {
		all -= sizes[k]
		t.levels[t.depth-1-k] = all
		level := t.nodes[all : all+sizes[k]]
		for i := range level {
			var sum uint64
			for j := range level[i] {
				level[i][j] = sum
				if child := i*8 + j; child < len(sums) {
					sum += sums[child]
				}
			}
			sums[i] = sum // its place has been read: i <= i*8
		}
		sums = sums[:len(level)]
	}
	t.half = 1 << 63
	if len(sums) == 2 {
		t.half = sums[0]
	}
}

// root returns which half covers point, which is below the sum of all, and where in that half it is.
func (t *tree) root(point uint64) (half, within uint64) {
	_, first := bits.Sub64(point, t.half, 0)
	return 1 - first, point - t.half&(first-1)
}

// take finds the block that covers point, and lowers its sum by one: at each level, the sums that find
// does not count.
func (t *tree) take(point uint64) (block, within uint64) {
	at, rest := t.root(point)
	t.half -= 1 - at
	for _, level := range t.levels[:t.depth] {
		n := &t.nodes[uint64(level)+at]
		q := rest + 1
		d1, d2, d3, d4 := less(n[1], q), less(n[2], q), less(n[3], q), less(n[4], q)
		d5, d6, d7 := less(n[5], q), less(n[6], q), less(n[7], q)
		child := d1 + d2 + d3 + d4 + (d5 + d6 + d7)
		rest -= n[child&7]
		n[1] += d1 - 1
		n[2] += d2 - 1
		n[3] += d3 - 1
		n[4] += d4 - 1
		n[5] += d5 - 1
		n[6] += d6 - 1
		n[7] += d7 - 1
		at = at*8 + child
	}
	return at, rest
}

// add adds delta, modulo 2^64, to the sum of the block.
func (t *tree) add(block uint, delta uint64) {
	at := block
	for k := t.depth - 1; k >= 0; k-- {
		child := int64(at % 8)
		at /= 8
		n := &t.nodes[uint(t.levels[k])+at]
		n[1] += delta & uint64((child-1)>>63) // all ones if child < 1, that is, if the child's sum is part of this one
		n[2] += delta & uint64((child-2)>>63)
		n[3] += delta & uint64((child-3)>>63)
		n[4] += delta & uint64((child-4)>>63)
		n[5] += delta & uint64((child-5)>>63)
		n[6] += delta & uint64((child-6)>>63)
		n[7] += delta & uint64((child-7)>>63)
	}
	t.half += delta & (uint64(at) - 1)
}
