// Package samplers holds the textbook ways to draw from a weighted table, each in its plainest
// honest form, as baselines for the benchmarks of package sampler. Only benchmarks and their tests
// may import it.
//
// All of them are exact: they use only integers, and are unbiased by Lemire's multiply-shift with
// rejection. They have the methods of sampler.Sampler but check less: callers must keep indexes in
// range and sums below 2^63, for the alias tables sums times entries.
package samplers

import (
	"math/bits"

	"github.com/kuji-dev/kuji/sampler"
)

// Source is a source of uniformly distributed 64-bit values.
type Source = sampler.Source

// below returns a value uniformly distributed in [0, n), n > 0.
func below(src Source, n uint64) uint64 {
	hi, lo := bits.Mul64(src.Uint64(), n)
	if lo < n {
		for least := -n % n; lo < least; {
			hi, lo = bits.Mul64(src.Uint64(), n)
		}
	}
	return hi
}
