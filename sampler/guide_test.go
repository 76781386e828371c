package sampler

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// tables returns weights of many sizes and shapes with a total above zero: smooth, skewed, with holes, tiny and huge.
func tables() (all [][]uint64) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{33, 47, 48, 64, 65, 100, 1000, 4096, 9999} {
		for _, weight := range []func(i int) uint64{
			func(int) uint64 { return 1 },
			func(int) uint64 { return r.Uint64N(1000) },
			func(int) uint64 { return r.Uint64() >> (13 + r.UintN(51)) >> bits.Len(uint(n)) },
			func(i int) uint64 { return uint64(i/100%2) * 3 },
			func(i int) uint64 { return 1 << (62 * max(0, i+2-n)) }, // a giant at the end
			func(i int) uint64 { return 1 << (62 * max(0, 1-i)) },   // and at the beginning
		} {
			weights := make([]uint64, n)
			for i := range weights {
				weights[i] = weight(i)
			}
			weights[n/2]++
			all = append(all, weights)
		}
	}
	return all
}

// TestGuideAgreesWithTree compares the two at both ends of every cell and of what it gives to its first block, and
// makes sure that fewer than half of all points need the tree.
func TestGuideAgreesWithTree(t *testing.T) {
	for _, weights := range tables() {
		s, err := New(weights)
		if err != nil {
			t.Fatal(err)
		}
		g := &s.guide
		if !g.live {
			t.Fatalf("%d entries: no guide after New", len(weights))
		}
		if g.shift > 0 && g.limit <= s.blocks.count {
			t.Fatalf("%d entries: %d cells for %d blocks, want more", len(weights), g.limit, s.blocks.count)
		}
		asks := 0
		for cell, c := range g.cells[:g.limit] {
			if asks += int(c >> g.shift & 1); 2*asks > s.blocks.count {
				t.Fatalf("%d entries: %d cells or more ask the tree, want at most one for two of %d blocks", len(weights), asks, s.blocks.count)
			}
			low := uint64(cell) << g.shift
			last := low + c&(1<<g.shift-1)
			for _, point := range []uint64{low, last - 1, last, last + 1, low + 1<<g.shift - 1} {
				if point < low || point-low >= 1<<g.shift || point >= s.total {
					continue
				}
				block, within, ok := g.lookup(point)
				index := s.find(point)
				g.live = false
				want := s.find(point)
				g.live = true
				if index != want || ok && (block != uint64(want)/blockLen || within != point-g.starts[block]) {
					t.Fatalf("%d entries, point %d of cell %d: block %d and %d (%v), index %d, want %d",
						len(weights), point, cell, block, within, ok, index, want)
				}
			}
		}
	}
}

// TestGuideServes makes sure that the guide answers nearly all draws where blocks are alike.
func TestGuideServes(t *testing.T) {
	weights := make([]uint64, 20_000)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range weights {
		weights[i] = 1 + r.Uint64N(1000)
	}
	s, err := New(weights)
	if err != nil {
		t.Fatal(err)
	}
	served := 0
	for range 10_000 {
		if _, _, ok := s.guide.lookup(r.Uint64N(s.total)); ok {
			served++
		}
	}
	if served < 9_500 {
		t.Errorf("the guide served %d of 10000 draws, want at least 9500", served)
	}
}

// TestStepsAreBounded counts what an operation does beyond its descent, in a table of a million entries: a change does
// not touch the guide's cells, and a draw makes at most stepsPerDraw of its elements, after a wait. This is what
// keeps every single operation short; and the guide must come back in the end.
func TestStepsAreBounded(t *testing.T) {
	weights := make([]uint64, 1_000_000)
	for i := range weights {
		weights[i] = uint64(i%1000) + 1
	}
	s, err := New(weights)
	if err != nil {
		t.Fatal(err)
	}
	if s.tree.depth > 5 {
		t.Errorf("a million entries have %d levels, want at most 5", s.tree.depth)
	}
	src, g := rand.NewPCG(5, 6), &s.guide
	for _, change := range []func(){
		func() { s.Take(src) },
		func() { _ = s.Set(7, 1<<40) }, // moves a block
		func() { _ = s.Set(7, 3) },
		func() { _ = s.Set(500_000, 0) },
	} {
		change()
		if g.live {
			t.Fatal("the guide outlives a change")
		}
		draws := 0
		for ; !g.live; draws++ {
			before := g.sum + g.block + g.cell
			waited := g.wait == 0
			s.Draw(src)
			after := g.sum + g.block + g.cell
			if waited && after-before > stepsPerDraw {
				t.Fatalf("draw %d: %d steps, want at most %d", draws, after-before, stepsPerDraw)
			}
			if !waited && after != before {
				t.Fatalf("draw %d: steps while the guide is to wait", draws)
			}
		}
		work := len(g.starts) + g.limit
		if least, most := len(g.cells)+work/stepsPerDraw, len(g.cells)+(work+s.blocks.count)/stepsPerDraw+2; draws < least || draws > most {
			t.Errorf("the guide came back after %d draws, want %d to %d", draws, least, most)
		}
	}
}

// TestChangesRestartTheGuide interrupts its making at every step.
func TestChangesRestartTheGuide(t *testing.T) {
	weights := make([]uint64, 100)
	for i := range weights {
		weights[i] = 10
	}
	s, err := New(weights)
	if err != nil {
		t.Fatal(err)
	}
	src := rand.NewPCG(7, 8)
	for draws := range 60 {
		if err := s.Set(draws, uint64(draws)<<20); err != nil {
			t.Fatal(err)
		}
		for range draws {
			s.Draw(src)
		}
		for point := uint64(0); point < s.total; point += 1 + s.total/500 {
			g := s.guide // At would go on with it
			got := s.find(point)
			s.guide.live = false
			if want := s.find(point); got != want {
				t.Fatalf("after %d draws: point %d is %d, want %d", draws, point, got, want)
			}
			s.guide = g
		}
	}
}

// TestNoChange makes sure that setting a weight to what it is does not cost a guide.
func TestNoChange(t *testing.T) {
	s, err := New(make([]uint64, 100))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := s.Set(i, 1); err != nil {
			t.Fatal(err)
		}
	}
	for src := rand.NewPCG(9, 10); !s.guide.live; {
		s.Draw(src)
	}
	if err := s.Set(50, 1); err != nil || !s.guide.live {
		t.Errorf("Set to the same weight: error %v, guide live %v", err, s.guide.live)
	}
}

// TestMoved counts the blocks that move to 64-bit sums: those that must, once, and no other.
func TestMoved(t *testing.T) {
	weights := make([]uint64, 16*1000)
	for i := range weights {
		weights[i] = 9
	}
	s, err := New(weights)
	if err != nil {
		t.Fatal(err)
	}
	if s.blocks.width != width16 {
		t.Fatalf("weights of 9 take %d bits", s.blocks.width)
	}
	set := func(i int, w uint64, moved uint32) {
		t.Helper()
		if err := s.Set(i, w); err != nil {
			t.Fatal(err)
		}
		if s.blocks.moved != moved || s.Weight(i) != w {
			t.Errorf("Set(%d, %d): weight %d and %d blocks moved, want %d", i, w, s.Weight(i), s.blocks.moved, moved)
		}
	}
	set(0, math.MaxUint16-27, 0) // with three times 9 the group is full
	set(4, 1<<16, 1)             // another group does not fit
	set(0, math.MaxUint16-26, 1)
	set(4, 0, 1)
	set(4, 1<<50, 1)
	for i := range 1000 {
		set(i*16, 1<<20, uint32(i)+1)
	}
	for i, w := range weights {
		switch {
		case i%16 == 0:
			w = 1 << 20
		case i == 4:
			w = 1 << 50
		}
		if got := s.Weight(i); got != w {
			t.Fatalf("weight %d at %d, want %d", got, i, w)
		}
	}
}

// TestWidths makes sure that a few large weights do not widen a table, and many do.
func TestWidths(t *testing.T) {
	for _, test := range []struct {
		every  int // block that has the large weight
		weight uint64
		width  uint8
	}{
		{17, 1 << 40, width16}, {17, 1 << 16, width16}, {10, 1 << 16, width32}, {4, 1 << 16, width32}, {4, 1 << 30, width32}, {4, 1 << 32, width64},
	} {
		weights := make([]uint64, 16*340)
		for i := range weights {
			weights[i] = 1
			if i%(16*test.every) == 5 {
				weights[i] = test.weight
			}
		}
		s, err := New(weights)
		if err != nil {
			t.Fatal(err)
		}
		if s.blocks.width != test.width {
			t.Errorf("%d in one block of %d: width %d, want %d", test.weight, test.every, s.blocks.width, test.width)
		}
		for i, w := range weights {
			if s.Weight(i) != w {
				t.Fatalf("weight %d at %d, want %d", s.Weight(i), i, w)
			}
		}
	}
}

// TestMemory holds the state to the bytes for an entry that the package comment states.
func TestMemory(t *testing.T) {
	for _, n := range []int{10_000, 100_000, 16<<15 + 16, 1_000_000} {
		for weight, most := range map[uint64]float64{10: 5.4, 1 << 20: 7.4, 1 << 40: 11.1} {
			weights := make([]uint64, n)
			for i := range weights {
				weights[i] = weight
			}
			s, err := New(weights)
			if err != nil {
				t.Fatal(err)
			}
			b, g := &s.blocks, &s.guide
			bytes := 32*len(b.narrow) + 64*len(b.middle) + 128*len(b.wide) + 4*len(b.places) + 24*len(b.chunks) +
				64*len(s.tree.nodes) + 8*len(g.cells) + 8*len(g.starts)
			if got := float64(bytes) / float64(n); got > most {
				t.Errorf("%d entries of weight %d: %.2f bytes each, want at most %.2f", n, weight, got, most)
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	if bits.UintSize == 32 {
		t.Skip("no slice is too long here")
	}
	n := MaxLen
	if err := checkLen(n); err != nil {
		t.Errorf("%d entries: %v", n, err)
	}
	if err := checkLen(n + 1); !errors.Is(err, ErrTooLong) {
		t.Errorf("%d entries: got %v, want ErrTooLong", n+1, err)
	}
}
