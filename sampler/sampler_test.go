package sampler_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/sampler"
)

func mustNew(tb testing.TB, weights []uint64) *sampler.Sampler {
	tb.Helper()
	s, err := sampler.New(weights)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func mustSet(tb testing.TB, s *sampler.Sampler, index int, weight uint64) {
	tb.Helper()
	if err := s.Set(index, weight); err != nil {
		tb.Fatal(err)
	}
}

func TestZeroTotal(t *testing.T) {
	src := &counting{Source: rand.NewPCG(1, 2)}
	tables := map[string]*sampler.Sampler{"zero value": new(sampler.Sampler)}
	for name, n := range map[string]int{"none": 0, "one": 1, "a block": 16, "a tree": 100} {
		tables[name] = mustNew(t, make([]uint64, n))
	}
	for name, s := range tables {
		for range 100 { // a guide that was made of nothing would show by now
			if i, ok := s.Draw(src); ok {
				t.Fatalf("%s: drew %d from a total of zero", name, i)
			}
			if i, ok := s.Take(src); ok {
				t.Fatalf("%s: took %d from a total of zero", name, i)
			}
			if i, ok := s.At(0); ok {
				t.Fatalf("%s: %d covers a point of a total of zero", name, i)
			}
		}
		if s.Total() != 0 {
			t.Errorf("%s: total %d", name, s.Total())
		}
	}
	if src.taken != 0 {
		t.Errorf("%d values taken for nothing", src.taken)
	}
}

// TestToZeroAndBack drains tables of every shape to nothing and fills them again.
func TestToZeroAndBack(t *testing.T) {
	src := rand.NewPCG(3, 4)
	for _, n := range []int{1, 2, 15, 16, 17, 32, 33, 48, 49, 300, 2049} {
		weights := make([]uint64, n)
		for i := range weights {
			weights[i] = uint64(i % 4)
		}
		weights[n-1] = 5
		s := mustNew(t, weights)
		for range 3 {
			got := make([]uint64, n)
			for s.Total() > 0 {
				i, _ := s.Take(src)
				got[i]++
			}
			for i, w := range weights {
				if got[i] != w || s.Weight(i) != 0 {
					t.Fatalf("n=%d: %d taken of the %d of index %d, and %d left", n, got[i], w, i, s.Weight(i))
				}
				mustSet(t, s, i, w)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	t.Run("New", func(t *testing.T) {
		for _, weights := range [][]uint64{
			{math.MaxInt64, 1},
			{math.MaxInt64 + 1},
			{1, math.MaxUint64}, // the sum wraps round to 0
			{1 << 62, 1 << 62, 1 << 62, 1 << 62, 5},
		} {
			if s, err := sampler.New(weights); !errors.Is(err, sampler.ErrOverflow) || s != nil {
				t.Errorf("New(%d): got %v, %v, want ErrOverflow", weights, s, err)
			}
		}
		if s := mustNew(t, []uint64{math.MaxInt64}); s.Total() != sampler.MaxTotal {
			t.Errorf("Total %d, want MaxTotal", s.Total())
		}
	})
	t.Run("Set", func(t *testing.T) {
		for _, test := range []struct {
			weights []uint64
			index   int
			weight  uint64
			want    error
		}{
			{[]uint64{math.MaxInt64 - 1, 1}, 1, 2, sampler.ErrOverflow},
			{[]uint64{math.MaxInt64 - 1, 1}, 1, math.MaxUint64, sampler.ErrOverflow},
			{[]uint64{math.MaxInt64, 0}, 1, 1, sampler.ErrOverflow},
			{[]uint64{7, 0}, 1, math.MaxUint64, sampler.ErrOverflow}, // one below zero, modulo 2^64
			{[]uint64{0, 0}, 1, math.MaxInt64 + 1, sampler.ErrOverflow},
			{[]uint64{1, 2}, -1, 1, sampler.ErrIndex},
			{[]uint64{1, 2}, 2, 1, sampler.ErrIndex}, // in the block, but not in the table
			{[]uint64{1, 2}, math.MinInt, 1, sampler.ErrIndex},
			{nil, 0, 1, sampler.ErrIndex},
		} {
			s := mustNew(t, test.weights)
			total := s.Total()
			if err := s.Set(test.index, test.weight); !errors.Is(err, test.want) {
				t.Errorf("%d: Set(%d, %d): got %v, want %v", test.weights, test.index, test.weight, err, test.want)
			}
			for i, w := range test.weights {
				if s.Weight(i) != w || s.Total() != total {
					t.Errorf("%d: a refused Set(%d, %d) changed the table", test.weights, test.index, test.weight)
				}
			}
		}
	})
	t.Run("Weight", func(t *testing.T) {
		for _, i := range []int{-1, 3} {
			func() {
				defer func() {
					if err, _ := recover().(error); !errors.Is(err, sampler.ErrIndex) {
						t.Errorf("Weight(%d): panicked with %v, want ErrIndex", i, err)
					}
				}()
				mustNew(t, []uint64{1, 2, 3}).Weight(i)
			}()
		}
	})
}

// TestKeepsNothing makes sure that a table does not change with the slice that it was made from.
func TestKeepsNothing(t *testing.T) {
	weights := []uint64{1, 2, 3}
	s := mustNew(t, weights)
	weights[1] = 100
	if s.Weight(1) != 2 || s.Total() != 6 || s.Len() != 3 {
		t.Errorf("weight %d, total %d, length %d, want 2, 6, 3", s.Weight(1), s.Total(), s.Len())
	}
}

// TestAllocations holds the operations to allocating nothing, whatever the width and use.
func TestAllocations(t *testing.T) {
	for name, weight := range map[string]uint64{"16 bits": 40, "32 bits": 1 << 20, "64 bits": 1 << 40} {
		weights := make([]uint64, 3000)
		for i := range weights {
			weights[i] = weight
		}
		s, src := mustNew(t, weights), rand.NewChaCha8([32]byte{})
		mustSet(t, s, 17, 1<<50) // moves a block, if there is a width to outgrow
		n := 0
		for op, run := range map[string]func(){
			"Draw": func() { sink, _ = s.Draw(src) },
			"Take": func() { sink, _ = s.Take(src) },
			"Draw and Set": func() {
				i, _ := s.Draw(src)
				mustSet(t, s, i, s.Weight(i)-1)
			},
			"Set to and fro": func() {
				n++
				mustSet(t, s, 17, uint64(n%2)<<50)
			},
		} {
			if allocs := testing.AllocsPerRun(5000, run); allocs != 0 {
				t.Errorf("%s, %s: %v allocations, want 0", name, op, allocs)
			}
		}
	}
}

var sink int

// counting counts the values taken from a source.
type counting struct {
	sampler.Source
	taken int
}

func (c *counting) Uint64() uint64 {
	c.taken++
	return c.Source.Uint64()
}
