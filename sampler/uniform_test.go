package sampler_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/sampler"
)

// scripted is a source of the values given.
type scripted []uint64

func (s *scripted) Uint64() uint64 {
	x := (*s)[0]
	*s = (*s)[1:]
	return x
}

// first returns the smallest x of 64 bits whose product with total has point as its high half: ⌈point·2^64/total⌉.
// For point = total, that is 2^64, it returns 0.
func first(point, total uint64) uint64 {
	if point == total {
		return 0
	}
	q, r := bits.Div64(point, 0, total)
	if r > 0 {
		q++
	}
	return q
}

// TestUniformExactly counts, for many totals, how many of all 2^64 values of a source lead to each point: exactly
// ⌊2^64/total⌋, the same for all. The values with one point are an interval; those that a draw drops are fewer than
// one in each interval on average and stand at its beginning, so that its first two values and its last decide.
func TestUniformExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	totals := []uint64{1, 2, 3, 5, 6, 7, 10, 64, 100, 255, 1 << 32, 1<<32 + 1, 1<<62 + 1, 1<<63 - 1, 3 << 60, 1<<63 - 25}
	for range 200 {
		totals = append(totals, 1+r.Uint64N(math.MaxInt64)>>r.UintN(63))
	}
	for _, total := range totals {
		s := mustNew(t, []uint64{total})
		each := math.MaxUint64 / total // ⌊2^64/total⌋, but for totals that divide 2^64
		if total&(total-1) == 0 {
			each++ // and for a total of 1 that is 2^64, wrapped to 0
		}
		for range min(total, 100) {
			point := r.Uint64N(total)
			from, to := first(point, total), first(point+1, total)-1 // -1 wraps as it should
			dropped := uint64(0)
			if drops(s, from) {
				dropped++
			}
			if from != to && drops(s, from+1) || to != from && drops(s, to) {
				t.Fatalf("total %d: dropped more than the first value of point %d", total, point)
			}
			if got := to - from + 1 - dropped; got != each {
				t.Fatalf("total %d: %d values lead to point %d, want %d", total, got, point, each)
			}
		}
	}
}

// drops reports whether a draw from s drops x and takes another value.
func drops(s *sampler.Sampler, x uint64) bool {
	src := scripted{x, math.MaxUint64} // the largest value is never dropped
	s.Draw(&src)
	return len(src) == 0
}

// TestPoints makes sure that a draw with x lands where the product says, at the ends of each entry's interval.
func TestPoints(t *testing.T) {
	for _, weights := range [][]uint64{
		{1}, {1, 1}, {3, 0, 4}, {0, 0, 1, 0}, {1 << 62, 1, 1<<62 - 2}, {7, 1 << 40, 0, 0, 9},
	} {
		s := mustNew(t, weights)
		var begin uint64
		for i, w := range weights {
			if w == 0 {
				continue
			}
			for _, x := range []uint64{first(begin, s.Total()) + 1, first(begin+w, s.Total()) - 1} {
				src := scripted{x}
				if got, _ := s.Draw(&src); got != i {
					t.Errorf("%d: drew %d with %#x, want %d", weights, got, x, i)
				}
			}
			begin += w
		}
	}
}

// TestEnumerated asks small tables for every point and counts: each entry must be found exactly as often as its weight
// says, in all tables of four weights up to 3 and in random ones of up to three levels, made so or changed into it.
func TestEnumerated(t *testing.T) {
	check := func(s *sampler.Sampler, weights []uint64) {
		t.Helper()
		got := make([]uint64, len(weights))
		for point := range s.Total() {
			i, _ := s.At(point)
			got[i]++
		}
		for i, w := range weights {
			if got[i] != w {
				t.Fatalf("%d: index %d found %d times, want %d", weights, i, got[i], w)
			}
		}
	}
	for n := range 256 {
		weights := []uint64{uint64(n & 3), uint64(n >> 2 & 3), uint64(n >> 4 & 3), uint64(n >> 6)}
		check(mustNew(t, weights), weights)
	}
	r := rand.New(rand.NewPCG(10, 11))
	for range 300 {
		n := 1 + r.IntN(600)
		before, weights := make([]uint64, n), make([]uint64, n)
		for i := range weights {
			before[i], weights[i] = r.Uint64N(1<<r.UintN(36)), r.Uint64N(1+r.Uint64N(8))
		}
		check(mustNew(t, weights), weights)
		s := mustNew(t, before)
		for i, w := range weights {
			mustSet(t, s, i, w)
		}
		check(s, weights)
	}
}

// critical returns the quantile of chi-square with free degrees of freedom that is exceeded with a probability of one
// in a million, by the approximation of E. B. Wilson and M. M. Hilferty, "The Distribution of Chi-Square", PNAS 17(12),
// 1931, in which z is the quantile of the normal distribution.
func critical(free int) float64 { return wilsonHilferty(free, 4.7534) }

func wilsonHilferty(free int, z float64) float64 {
	k := float64(free)
	return k * math.Pow(1-2/(9*k)+z*math.Sqrt(2/(9*k)), 3)
}

// TestCritical compares with the 0.999 quantiles of the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.4: the
// approximation is too large by 3 % for one degree of freedom, by less for more, and nowhere too small by 0.1 %.
func TestCritical(t *testing.T) {
	for free, want := range map[int]float64{1: 10.828, 2: 13.816, 5: 20.515, 10: 29.588, 30: 59.703, 100: 149.449} {
		if got := wilsonHilferty(free, 3.0902); got < 0.999*want || got > 1.031*want {
			t.Errorf("%d degrees of freedom: %.3f, want %.3f", free, got, want)
		}
	}
}

// TestChiSquare holds draws to their distribution over many tables, sizes and weights, with fixed seeds: at rest, and
// after every weight has been changed there and back.
func TestChiSquare(t *testing.T) {
	shapes := map[string]func(*rand.Rand, int) uint64{
		"equal":     func(*rand.Rand, int) uint64 { return 1 },
		"uniform":   func(r *rand.Rand, _ int) uint64 { return 1 + r.Uint64N(1000) },
		"half zero": func(r *rand.Rand, _ int) uint64 { return r.Uint64N(2) * 7 },
		"Zipf":      func(_ *rand.Rand, i int) uint64 { return 1_000_000 / uint64(i+1) },
		"huge":      func(r *rand.Rand, _ int) uint64 { return 1<<49 + r.Uint64N(1<<50) },
		"a giant":   func(_ *rand.Rand, i int) uint64 { return 10 + uint64(max(0, 1-i))<<20 },
		"steps":     func(_ *rand.Rand, i int) uint64 { return 1 << (i % 12) },
	}
	for name, shape := range shapes {
		for _, n := range []int{2, 3, 10, 16, 17, 40, 100, 1000, 5000} {
			t.Run(fmt.Sprintf("%s of %d", name, n), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, uint64(n)))
				weights := make([]uint64, n)
				for i := range weights {
					weights[i] = shape(r, i)
				}
				weights[0] = max(weights[0], 1)
				s := mustNew(t, weights)
				chiSquare(t, s, weights, rand.NewChaCha8([32]byte{byte(n), 1}))
				for i, w := range weights {
					mustSet(t, s, i, w/3+1)
				}
				for i, w := range weights {
					mustSet(t, s, i, w)
				}
				chiSquare(t, s, weights, rand.NewChaCha8([32]byte{byte(n), 2}))
			})
		}
	}
}

func chiSquare(t *testing.T, s *sampler.Sampler, weights []uint64, src sampler.Source) {
	t.Helper()
	draws := 20_000 + 10*len(weights)
	count := make([]int, len(weights))
	for range draws {
		i, _ := s.Draw(src)
		count[i]++
	}
	chi, bins := 0.0, 0
	want, got := 0.0, 0 // of entries gathered until they are expected five times at least
	add := func() {
		chi += (float64(got) - want) * (float64(got) - want) / want
		bins++
		want, got = 0, 0
	}
	for i, w := range weights {
		if w == 0 && count[i] > 0 {
			t.Fatalf("drew index %d of weight 0", i)
		}
		want += float64(draws) * float64(w) / float64(s.Total())
		got += count[i]
		if want >= 5 {
			add()
		}
	}
	if want > 0 {
		add()
	}
	if bins > 1 && chi > critical(bins-1) {
		t.Errorf("chi-square %.1f with %d degrees of freedom, want at most %.1f", chi, bins-1, critical(bins-1))
	}
}
