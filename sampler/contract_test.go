package sampler_test

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji/sampler"
	"pgregory.net/rapid"
)

// naive is the model: the contract of the package comment and nothing else.
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

func (n naive) draw(src sampler.Source) (int, bool) {
	total := n.total()
	if total == 0 {
		return 0, false
	}
	for {
		high, low := bits.Mul64(src.Uint64(), total)
		if low >= (math.MaxUint64%total+1)%total { // 2^64 mod total
			return n.at(high), true
		}
	}
}

// pair is a sampler and its model, with equal sources.
type pair struct {
	s          *sampler.Sampler
	model      naive
	src, other counting
}

func newPair(t *rapid.T, weights []uint64, seed uint64) *pair {
	s, err := sampler.New(weights)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{s, slices.Clone(weights), counting{Source: rand.NewPCG(seed, 0)}, counting{Source: rand.NewPCG(seed, 0)}}
}

func (p *pair) draw(t *rapid.T, draw func(sampler.Source) (int, bool)) (int, bool) {
	i, ok := draw(&p.src)
	j, want := p.model.draw(&p.other)
	if i != j || ok != want || p.src.taken != p.other.taken {
		t.Fatalf("drew %d, %v with %d values, want %d, %v with %d", i, ok, p.src.taken, j, want, p.other.taken)
	}
	return i, ok
}

func (p *pair) set(t *rapid.T, i int, w uint64) {
	rest := p.model.total() - p.model[i]
	if err := p.s.Set(i, w); (err != nil) != (w > sampler.MaxTotal-rest) {
		t.Fatalf("Set(%d, %d) next to %d: %v", i, w, rest, err)
	} else if err == nil {
		p.model[i] = w
	}
	if p.s.Weight(i) != p.model[i] {
		t.Fatalf("Weight(%d) = %d, want %d", i, p.s.Weight(i), p.model[i])
	}
}

// weightGen makes weights that blocks of 16, of 32 and of 64 bits hold, those at the edges above all.
func weightGen() *rapid.Generator[uint64] {
	return rapid.OneOf(
		rapid.SampledFrom([]uint64{0, 1, 1<<14 - 1, 1 << 14, math.MaxUint16, 1 << 16, 1<<30 - 1, 1 << 30, math.MaxUint32, 1 << 32}),
		rapid.Uint64Range(0, 3),
		rapid.Uint64Range(0, 1<<20),
		rapid.Uint64Range(0, math.MaxInt64>>12),
	)
}

// TestContract runs random operations on samplers of every size and width and on the model: each index, and each
// value taken from the source, must be the same. Runs of draws are long enough for guides to come back to life.
func TestContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 700)).Draw(t, "n")
		weight := weightGen()
		if rapid.Bool().Draw(t, "small") {
			weight = rapid.Uint64Range(0, 5)
		}
		p := newPair(t, rapid.SliceOfN(weight, n, n).Draw(t, "weights"), rapid.Uint64().Draw(t, "seed"))
		index := rapid.IntRange(0, n-1)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if p.s.Total() != p.model.total() || p.s.Len() != n {
					t.Fatalf("total %d, length %d, want %d, %d", p.s.Total(), p.s.Len(), p.model.total(), n)
				}
			},
			"draw": func(t *rapid.T) {
				for range rapid.IntRange(1, 600).Draw(t, "draws") {
					p.draw(t, p.s.Draw)
				}
			},
			"take": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "takes") {
					if i, ok := p.draw(t, p.s.Take); ok {
						p.model[i]--
					}
				}
			},
			"raffle": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "tickets") {
					if i, ok := p.draw(t, p.s.Draw); ok {
						p.set(t, i, p.model[i]-1)
					}
				}
			},
			"set": func(t *rapid.T) {
				p.set(t, index.Draw(t, "index"), rapid.OneOf(weight, weightGen(), rapid.Uint64()).Draw(t, "weight"))
			},
			"zero": func(t *rapid.T) {
				for i := range n {
					p.set(t, i, 0)
				}
			},
			"tentatively": func(t *rapid.T) {
				before := slices.Clone(p.model)
				var taken []int
				for range rapid.IntRange(1, 10).Draw(t, "draws") {
					if i, ok := p.draw(t, p.s.Take); ok {
						p.model[i]--
						taken = append(taken, i)
					}
				}
				for _, i := range slices.Backward(taken) {
					p.set(t, i, p.model[i]+1)
				}
				if !slices.Equal(before, p.model) {
					t.Fatal("the model does not undo")
				}
			},
			"again": func(t *rapid.T) { // a sampler made from the current weights goes on in the same way
				s, err := sampler.New(p.model)
				if err != nil {
					t.Fatal(err)
				}
				p.s = s
			},
			"points": func(t *rapid.T) {
				for range 20 {
					point := rapid.Uint64Range(0, max(1, p.model.total())).Draw(t, "point")
					want := p.model.at(point)
					if i, ok := p.s.At(point); ok != (want >= 0) || ok && i != want {
						t.Fatalf("At(%d) = %d, %v, want %d", point, i, ok, want)
					}
				}
			},
		})
	})
}

// TestContractLarge compares with the model's points where a linear search would take too long: in tables of many
// levels, drawn from, lowered, raised and at rest again.
func TestContractLarge(t *testing.T) {
	for _, n := range []int{4096, 4097, 16 * 2048, 16*2048 + 1, 200_000} {
		r := rand.New(rand.NewPCG(5, uint64(n)))
		weights := make([]uint64, n)
		for i := range weights {
			weights[i] = r.Uint64N(1 << (i % 24))
		}
		s := mustNew(t, weights)
		check := func() {
			t.Helper()
			var begin uint64
			for i, w := range weights {
				if w == 0 {
					continue
				}
				for _, point := range []uint64{begin, begin + w - 1} {
					if got, ok := s.At(point); !ok || got != i {
						t.Fatalf("n=%d: At(%d) = %d, %v, want %d", n, point, got, ok, i)
					}
				}
				begin += w
			}
			if begin != s.Total() {
				t.Fatalf("n=%d: total %d, want %d", n, s.Total(), begin)
			}
		}
		check()
		for range 20_000 {
			if i, _ := s.Take(r); weights[i] > 0 {
				weights[i]--
			} else {
				t.Fatalf("n=%d: took index %d of weight 0", n, i)
			}
			i := r.IntN(n)
			weights[i] = r.Uint64N(1 << (i % 40))
			mustSet(t, s, i, weights[i])
		}
		check()
		check() // by the guide, which the first check has given the time to be made
	}
}

// TestSequence pins the indexes themselves: a recorded log must replay with every later version. The sum is over the
// indexes as little-endian 32-bit numbers.
func TestSequence(t *testing.T) {
	weights := make([]uint64, 5000)
	for i := range weights {
		weights[i] = uint64(i*i) % 1009
	}
	s, src := mustNew(t, weights), rand.NewChaCha8([32]byte([]byte("chacha8: the seed of this record")))
	sum := fnv.New64a()
	var first []int
	for n := range 100_000 {
		i, _ := s.Draw(src)
		switch {
		case n < 8:
			first = append(first, i)
		case n%3 == 0:
			mustSet(t, s, i, s.Weight(i)/2)
		case n > 50_000 && n < 80_000: // at rest
		case n%5 == 0:
			mustSet(t, s, (i+1)%5000, uint64(n)<<(n%40))
		}
		sum.Write(binary.LittleEndian.AppendUint32(nil, uint32(i)))
	}
	if want := []int{4236, 4345, 3813, 3846, 1757, 2925, 4706, 3624}; !slices.Equal(first, want) {
		t.Errorf("first indexes %d, want %d", first, want)
	}
	if got, want := sum.Sum64(), uint64(0xb9777115eaf5ab0); got != want {
		t.Errorf("sum over all indexes %#x, want %#x", got, want)
	}
}
