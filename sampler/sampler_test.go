package sampler_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/sampler"
	"pgregory.net/rapid"
)

// naive is the model: the definition of a draw in as few lines as it takes.
type naive []uint64

func (n naive) total() (sum uint64) {
	for _, w := range n {
		sum += w
	}
	return sum
}

func (n naive) at(point uint64) int {
	for i, w := range n {
		if point < w {
			return i
		}
		point -= w
	}
	return -1
}

func mustNew(tb testing.TB, weights []uint64) *sampler.Sampler {
	tb.Helper()
	s, err := sampler.New(weights)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestEmptyAndZero(t *testing.T) {
	src := rand.NewPCG(1, 2)
	for _, weights := range [][]uint64{nil, {}, {0}, {0, 0, 0}} {
		s := mustNew(t, weights)
		if i, ok := s.Draw(src); ok {
			t.Errorf("%v: drew %d from a total of zero", weights, i)
		}
		if i, ok := s.Take(src); ok {
			t.Errorf("%v: took %d from a total of zero", weights, i)
		}
		if s.Len() != len(weights) || s.Total() != 0 {
			t.Errorf("%v: Len %d Total %d", weights, s.Len(), s.Total())
		}
	}
}

func TestOverflow(t *testing.T) {
	if _, err := sampler.New([]uint64{math.MaxInt64, 1}); !errors.Is(err, sampler.ErrOverflow) {
		t.Errorf("New: got %v, want ErrOverflow", err)
	}
	if _, err := sampler.New([]uint64{math.MaxUint64, 1}); !errors.Is(err, sampler.ErrOverflow) {
		t.Errorf("New, sum wraps: got %v, want ErrOverflow", err)
	}
	s := mustNew(t, []uint64{0, 0})
	if err := s.Set(1, math.MaxUint64); !errors.Is(err, sampler.ErrOverflow) || s.Total() != 0 {
		t.Errorf("Set(1, 2^64-1) of a weight of zero: got %v, total %d, want ErrOverflow, total 0", err, s.Total())
	}
	s = mustNew(t, []uint64{math.MaxInt64 - 1, 1})
	for _, w := range []uint64{2, math.MaxUint64} {
		if err := s.Set(1, w); !errors.Is(err, sampler.ErrOverflow) {
			t.Errorf("Set(1, %d): got %v, want ErrOverflow", w, err)
		}
	}
	if s.Weight(1) != 1 || s.Total() != math.MaxInt64 {
		t.Errorf("a refused Set changed the table: weight %d total %d", s.Weight(1), s.Total())
	}
	for _, i := range []int{-1, 2} {
		if err := s.Set(i, 1); !errors.Is(err, sampler.ErrIndex) {
			t.Errorf("Set(%d): got %v, want ErrIndex", i, err)
		}
	}
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(0, 1<<20), rapid.Uint64Range(0, math.MaxInt64>>11))
		model := naive(rapid.SliceOfN(weight, 0, 300).Draw(t, "weights"))
		s, err := sampler.New(model)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			total := model.total()
			if s.Total() != total || s.Len() != len(model) {
				t.Fatalf("Total %d Len %d, want %d %d", s.Total(), s.Len(), total, len(model))
			}
			if total == 0 && len(model) == 0 {
				return
			}
			if total > 0 && rapid.Bool().Draw(t, "draw") {
				p := rapid.Uint64Range(0, total-1).Draw(t, "point")
				if i, ok := s.At(p); !ok || i != model.at(p) {
					t.Fatalf("At(%d) = %d, %v, want %d", p, i, ok, model.at(p))
				}
				continue
			}
			i := rapid.IntRange(0, len(model)-1).Draw(t, "index")
			model[i] = weight.Draw(t, "weight")
			if err := s.Set(i, model[i]); err != nil {
				t.Fatal(err)
			}
			if s.Weight(i) != model[i] {
				t.Fatalf("Weight(%d) = %d, want %d", i, s.Weight(i), model[i])
			}
		}
	})
}
