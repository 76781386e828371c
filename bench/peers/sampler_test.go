package peers

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mroth/weightedrand/v2"

	"github.com/kuji-dev/kuji/sampler"
)

func BenchmarkSampler(b *testing.B) { benchmark(b, samplerWorkloads()) }

// samplerWorkloads: one draw from weights 1…1000, and one draw and the change
// of a weight, which is what limited stock does to every draw.
func samplerWorkloads() []workload {
	var all []workload
	for _, entries := range []int{10, 100, 10_000, 1_000_000} {
		for _, w := range []struct {
			name string
			body func(r *run, weights []uint64)
		}{
			{"work=draw/entries=%d/sampler=kuji", drawKuji},
			{"work=draw/entries=%d/sampler=weightedrand", drawWeightedrand},
			{"work=draw+set/entries=%d/sampler=kuji", drawSetKuji},
			{"work=draw+set/entries=%d/sampler=weightedrand", drawSetWeightedrand},
		} {
			all = append(all, workload{
				fmt.Sprintf(w.name, entries),
				func(r *run) { w.body(r, weights(min(entries, r.records))) },
			})
		}
	}
	return all
}

func weights(n int) []uint64 {
	rng := rand.New(rand.NewPCG(3, 4))
	w := make([]uint64, n)
	for i := range w {
		w[i] = 1 + rng.Uint64N(1000)
	}
	return w
}

func choices(weights []uint64) []weightedrand.Choice[int, uint64] {
	c := make([]weightedrand.Choice[int, uint64], len(weights))
	for i, w := range weights {
		c[i] = weightedrand.NewChoice(i, w)
	}
	return c
}

func drawKuji(r *run, weights []uint64) {
	s, err := sampler.New(weights)
	r.check(err)
	src := rand.NewPCG(5, 6)
	r.ReportAllocs()
	r.ResetTimer()
	sum := 0
	for range r.n {
		i, ok := s.Draw(src)
		if !ok {
			r.Fatal("nothing to draw")
		}
		sum += i
	}
	sunk = sum
}

func drawWeightedrand(r *run, weights []uint64) {
	c, err := weightedrand.NewChooser(choices(weights)...)
	r.check(err)
	r.ReportAllocs()
	r.ResetTimer()
	sum := 0
	for range r.n {
		sum += c.Pick()
	}
	sunk = sum
}

// sunk keeps results from being optimised away.
var sunk int

func drawSetKuji(r *run, weights []uint64) {
	s, err := sampler.New(weights)
	r.check(err)
	src := rand.NewPCG(5, 6)
	r.ReportAllocs()
	r.ResetTimer()
	for range r.n {
		i, ok := s.Draw(src)
		if !ok {
			r.Fatal("nothing to draw")
		}
		r.check(s.Set(i, 1+src.Uint64()%1000))
	}
}

// drawSetWeightedrand has to build a new chooser after each change.
func drawSetWeightedrand(r *run, weights []uint64) {
	all := choices(weights)
	c, err := weightedrand.NewChooser(all...)
	r.check(err)
	src := rand.NewPCG(5, 6)
	r.ReportAllocs()
	r.ResetTimer()
	for range r.n {
		i := c.Pick()
		for at := range all { // NewChooser has sorted them
			if all[at].Item == i {
				all[at].Weight = 1 + src.Uint64()%1000
				break
			}
		}
		c, err = weightedrand.NewChooser(all...)
		r.check(err)
	}
}
