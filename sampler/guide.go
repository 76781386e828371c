package sampler

import (
	"math"
	"math/bits"
)

// stepsPerDraw is how many steps of making a guide one draw does: each a sum or a cell, about 2 ns.
const stepsPerDraw = 8

// minGuided is the least number of blocks for which a guide is faster than the tree.
const minGuided = 3

// guide leads from a point straight to its block while the weights are at rest. It cuts [0, total)
// into cells of 2^shift points.
//
//	a cell, from the top:    block           1 bit    shift bits
//	                      ┌───────────────┬───────┬────────────────┐
//	                      │ first block   │ tree  │ last           │
//	                      └───────────────┴───────┴────────────────┘
//
// A cell's points up to number last lie in the first block, and those after it in the next one. If tree
// is set, the cell meets more than two blocks, and the tree must be asked. Such a cell holds the ends of
// two blocks, and there are more cells than blocks, so fewer than half of the points are in one. A cell
// fits into 64 bits: there is room for at least twice as many cells as blocks, and that room times
// 2^shift is less than twice the total, or shift is 0.
type guide struct {
	live  bool
	shift uint8
	cells []uint64 // with room for all cells that there can be; nil in a table too small for a guide
	// starts[i] is the sum of the blocks before block i. Then come the total, and a number above every point.
	starts []uint64

	calm  uint64 // how many draws without a change pass before the guide is made again
	wait  uint64 // how many of them are still to come
	sum   int    // next element of starts to make
	block int    // block at the beginning of the next cell
	cell  int    // next element of cells to make
	limit int    // number of cells in use
}

// init prepares a zero guide for this many blocks, to be made at once.
func (g *guide) init(blocks int) {
	if blocks < minGuided {
		g.calm, g.wait = math.MaxUint64, math.MaxUint64
		return
	}
	g.cells = make([]uint64, 2<<bits.Len(uint(blocks-1)))
	g.starts = make([]uint64, blocks+2)
	g.calm = uint64(len(g.cells))
}

func (g *guide) changed() {
	g.live = false
	g.wait = g.calm
	g.sum = 0
}

// counted counts a draw while the guide is not live. It reports whether the guide should advance.
func (g *guide) counted() bool {
	if g.wait > 0 {
		g.wait--
		return false
	}
	return true
}

// lookup returns the block that covers point, and where in it, or false if the tree must be asked.
func (g *guide) lookup(point uint64) (block, within uint64, ok bool) {
	c := g.cells[point>>(g.shift&63)]
	tree := uint64(1) << (g.shift & 63)
	if c&tree != 0 {
		return 0, 0, false
	}
	last := c & (tree - 1)
	block = c>>(g.shift&63)>>1 + less(last, point&(tree-1))
	return block, point - g.starts[block], true
}

// advance does the next steps of making the guide for the blocks, whose sum, total, is above zero. After
// the last step the guide is live.
func (g *guide) advance(b *blocks, total uint64) {
	for range stepsPerDraw {
		switch {
		case g.sum < len(g.starts):
			g.addStart(b)
			g.block, g.cell = 0, 0
		case g.cell == 0 && g.block == 0:
			g.shift = uint8(max(0, bits.Len64(total-1)-bits.Len(uint(len(g.cells)-1))))
			g.limit = int((total-1)>>g.shift) + 1
			g.addCell()
		case g.cell < g.limit:
			g.addCell()
		default:
			g.live = true
			return
		}
	}
}

// addStart makes the next element of starts. The first one stays 0.
func (g *guide) addStart(b *blocks) {
	if i := g.sum; i > b.count {
		g.starts[i] = math.MaxUint64
	} else if i > 0 {
		g.starts[i] = g.starts[i-1] + b.at(uint64(i-1)).sum()
	}
	g.sum++
}

// addCell makes the next cell, or moves to the next block if this one ends before the cell begins.
func (g *guide) addCell() {
	low := uint64(g.cell) << g.shift
	end, next := g.starts[g.block+1], g.starts[g.block+2]
	if end <= low {
		g.block++
		return
	}
	tree := uint64(1) << g.shift
	c := uint64(g.block) << g.shift << 1
	switch high := low + tree; {
	case end >= high:
		c |= tree - 1
	case next >= high:
		c |= end - 1 - low
	default:
		c |= tree
	}
	g.cells[g.cell] = c
	g.cell++
}
