package samplers_test

import (
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/bench/baselines/samplers"
)

// TestBaselinesDrawByWeight holds each baseline to its distribution, so that the figures compare like with like.
func TestBaselinesDrawByWeight(t *testing.T) {
	weights := []uint64{5, 0, 1, 30, 2, 2, 0, 60}
	for range 40 {
		weights = append(weights, 10, 0)
	}
	half := append([]uint64(nil), weights...)
	fenwick, sums, lazy, prefix := samplers.NewFenwick(weights), samplers.NewSums16(weights), samplers.NewLazyAlias(weights), samplers.NewPrefix(weights)
	for i := range half {
		half[i] -= half[i] / 2
		for _, d := range []table{fenwick, sums, lazy, prefix} {
			if err := d.Set(i, half[i]); err != nil {
				t.Fatal(err)
			}
			if w := d.Weight(i); w != half[i] {
				t.Fatalf("%T: weight %d, want %d", d, w, half[i])
			}
		}
	}
	for name, d := range map[string]drawer{
		"prefix": prefix, "fenwick": fenwick, "sums16": sums, "lazy alias": lazy, "alias": samplers.NewAlias(half),
	} {
		src := rand.NewPCG(7, 11)
		const draws = 200_000
		count := make([]int, len(half))
		for range draws {
			i, ok := d.Draw(src)
			if !ok {
				t.Fatalf("%s: nothing drawn from a total of %d", name, d.Total())
			}
			count[i]++
		}
		chi, free := 0.0, -1
		for i, w := range half {
			want := draws * float64(w) / float64(d.Total())
			if w == 0 {
				if count[i] != 0 {
					t.Errorf("%s: drew index %d of weight 0", name, i)
				}
				continue
			}
			free++
			chi += (float64(count[i]) - want) * (float64(count[i]) - want) / want
		}
		// 80.077: the 0.999 quantile of chi-square with 45 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.4).
		if free != 45 || chi > 80.077 {
			t.Errorf("%s: chi-square %.1f with %d degrees of freedom, want at most 80.077 with 45", name, chi, free)
		}
	}
}
