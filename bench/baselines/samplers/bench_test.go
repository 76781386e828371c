package samplers_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/bench/baselines/samplers"
	"github.com/kuji-dev/kuji/sampler"
)

// The benchmarks compare Sampler with the textbook structures in one run, in the three ways that tables are used, a
// draw of a ChaCha8 source being one operation:
//
//	Static   weights that never change
//	RunOut   odds by weights of 1 to 1000; an entry's weight becomes 0 when its stock, a separate number, is gone;
//	         RunOutSlowly has a hundred times the stock
//	Raffle   weights count tickets, and every draw lowers one by one; read back from the structure itself
//
// RunOut and Raffle draw the table to empty and then start again, outside the time taken.

// table is what the structures have in common.
type table interface {
	Draw(samplers.Source) (int, bool)
	Set(index int, weight uint64) error
	Weight(index int) uint64
	Total() uint64
}

// drawer is what is left of table for a structure that cannot change.
type drawer interface {
	Draw(samplers.Source) (int, bool)
	Total() uint64
}

// fixed gives a drawer what it lacks of table; only Static may use it.
type fixed struct{ drawer }

func (fixed) Set(int, uint64) error { panic("cannot change") }
func (fixed) Weight(int) uint64     { panic("cannot change") }

// taker draws by Take, which has the Set of a raffle in it.
type taker struct{ *sampler.Sampler }

func (t taker) Draw(src samplers.Source) (int, bool) { return t.Take(src) }

func newSampler(weights []uint64) *sampler.Sampler {
	s, err := sampler.New(weights)
	if err != nil {
		panic(err)
	}
	return s
}

type structure struct {
	name string
	uses string // S for Static, O for RunOut, R for Raffle
	make func([]uint64) table
}

var structures = []structure{
	{"kuji", "SOR", func(w []uint64) table { return newSampler(w) }},
	{"kuji-take", "R", func(w []uint64) table { return taker{newSampler(w)} }},
	{"prefix", "S", func(w []uint64) table { return samplers.NewPrefix(w) }},
	{"alias", "S", func(w []uint64) table { return fixed{samplers.NewAlias(w)} }},
	{"lazyalias", "OR", func(w []uint64) table { return samplers.NewLazyAlias(w) }},
	{"fenwick", "SOR", func(w []uint64) table { return samplers.NewFenwick(w) }},
	{"sums16", "SOR", func(w []uint64) table { return samplers.NewSums16(w) }},
}

var sink int

// benchmark runs one use over all sizes and the structures fit for it.
func benchmark(b *testing.B, use string, run func(*testing.B, int, func([]uint64) table)) {
	for _, n := range []int{10, 100, 1_000, 10_000, 100_000, 1_000_000} {
		for _, s := range structures {
			for _, u := range s.uses {
				if string(u) == use {
					b.Run(fmt.Sprintf("n=%d/by=%s", n, s.name), func(b *testing.B) {
						b.ReportAllocs()
						run(b, n, s.make)
					})
				}
			}
		}
	}
}

func uniformWeights(n int, most uint64) []uint64 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	w := make([]uint64, n)
	for i := range w {
		w[i] = 1 + r.Uint64N(most)
	}
	return w
}

// stock is the most that an entry has in stock: nine, but enough in a small table for some 20 000 draws in all.
func stock(n int) uint64 { return uint64(max(9, 40_000/n)) }

func BenchmarkStatic(b *testing.B) {
	benchmark(b, "S", func(b *testing.B, n int, newTable func([]uint64) table) {
		t, src := newTable(uniformWeights(n, 1000)), rand.NewChaCha8([32]byte{})
		b.ResetTimer()
		for range b.N {
			i, _ := t.Draw(src)
			sink += i
		}
	})
}

func BenchmarkRunOut(b *testing.B) { runOut(b, 1) }

func BenchmarkRunOutSlowly(b *testing.B) { runOut(b, 100) }

func runOut(b *testing.B, plenty uint64) {
	benchmark(b, "O", func(b *testing.B, n int, newTable func([]uint64) table) {
		weights, full := uniformWeights(n, 1000), uniformWeights(n, plenty*stock(n))
		left := make([]uint32, n)
		src := rand.NewChaCha8([32]byte{})
		var t table
		refill := func() {
			t = newTable(weights)
			for i := range left {
				left[i] = uint32(full[i])
			}
		}
		refill()
		b.ResetTimer()
		for range b.N {
			if t.Total() == 0 {
				b.StopTimer()
				refill()
				b.StartTimer()
			}
			i, _ := t.Draw(src)
			if left[i]--; left[i] == 0 {
				if err := t.Set(i, 0); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkRaffle(b *testing.B) {
	benchmark(b, "R", func(b *testing.B, n int, newTable func([]uint64) table) {
		weights := uniformWeights(n, stock(n))
		t, src := newTable(weights), rand.NewChaCha8([32]byte{})
		_, taking := t.(taker)
		b.ResetTimer()
		for range b.N {
			if t.Total() == 0 {
				b.StopTimer()
				t = newTable(weights)
				b.StartTimer()
			}
			i, _ := t.Draw(src)
			if !taking {
				if err := t.Set(i, t.Weight(i)-1); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
