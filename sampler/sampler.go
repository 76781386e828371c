// Package sampler draws indexes at random, each with probability proportional to its integer weight, from a table
// whose weights change between draws.
//
// The package knows nothing of rewards, pools or logs and imports nothing else of the project.
package sampler

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// MaxTotal is the largest sum of weights that a Sampler holds: 2^63 - 1.
const MaxTotal = math.MaxInt64

// MaxLen is the largest number of entries that a Sampler holds: 2^31 - 1.
const MaxLen = math.MaxInt32

var (
	// ErrIndex reports an index that is negative or not below Len.
	ErrIndex = errors.New("sampler: index out of range")
	// ErrOverflow reports weights whose sum exceeds MaxTotal.
	ErrOverflow = errors.New("sampler: sum of weights exceeds 63 bits")
	// ErrTooLong reports a table of more than MaxLen entries.
	ErrTooLong = errors.New("sampler: too many entries")
)

// Source is a source of uniformly distributed 64-bit values. It is the interface of math/rand/v2.Source.
type Source interface{ Uint64() uint64 }

// Sampler is a table of weights to draw from. It is not safe for concurrent use.
type Sampler struct {
	total   uint64
	weights []uint64
	sums    []uint64 // Fenwick tree: sums[i] is the sum of the weights (i+1)&i .. i
}

// New returns a Sampler with the weights given. The slice is copied; a weight may be zero, and so may their number.
// It returns ErrOverflow when the weights' sum exceeds MaxTotal and ErrTooLong when there are more than MaxLen of them.
func New(weights []uint64) (*Sampler, error) {
	if len(weights) > MaxLen {
		return nil, fmt.Errorf("%w: got %d, want at most %d", ErrTooLong, len(weights), MaxLen)
	}
	s := &Sampler{weights: make([]uint64, len(weights)), sums: make([]uint64, len(weights))}
	for i, w := range weights {
		if w > MaxTotal-s.total {
			return nil, fmt.Errorf("%w: weight %d at index %d on top of %d", ErrOverflow, w, i, s.total)
		}
		s.total += w
	}
	copy(s.weights, weights)
	copy(s.sums, weights)
	for i := range s.sums {
		if parent := i | (i + 1); parent < len(s.sums) {
			s.sums[parent] += s.sums[i]
		}
	}
	return s, nil
}

// Len returns the number of entries, those of weight zero included.
func (s *Sampler) Len() int { return len(s.weights) }

// Total returns the sum of the weights.
func (s *Sampler) Total() uint64 { return s.total }

// Weight returns the weight of the entry at index. Like a slice, it panics when index is out of range.
func (s *Sampler) Weight(index int) uint64 { return s.weights[index] }

// Draw chooses an entry with probability weight/total. It reports false, and takes nothing from src, when the total is zero.
func (s *Sampler) Draw(src Source) (index int, ok bool) {
	if s.total == 0 {
		return 0, false
	}
	return s.find(below(src, s.total)), true
}

// At returns the entry that covers point when the entries' weights are laid end to end from zero in the order of their
// indexes. It reports false when point is not below the total.
func (s *Sampler) At(point uint64) (index int, ok bool) {
	if point >= s.total {
		return 0, false
	}
	return s.find(point), true
}

// find returns the entry that covers point, which is below the total.
func (s *Sampler) find(point uint64) int {
	at := -1
	for step := 1 << (bits.Len(uint(len(s.sums))) - 1); step > 0; step >>= 1 {
		if next := at + step; next < len(s.sums) && s.sums[next] <= point {
			point -= s.sums[next]
			at = next
		}
	}
	return at + 1
}

// Take draws an entry as Draw does and lowers its weight by one: a ticket out of the box.
func (s *Sampler) Take(src Source) (index int, ok bool) {
	index, ok = s.Draw(src)
	if ok {
		s.add(index, ^uint64(0))
	}
	return index, ok
}

// Set changes the weight of the entry at index. On an error nothing is changed: ErrIndex when there is no such entry,
// ErrOverflow when the sum of the weights would exceed MaxTotal.
func (s *Sampler) Set(index int, weight uint64) error {
	if index < 0 || index >= len(s.weights) {
		return fmt.Errorf("%w: got %d, want 0 to %d", ErrIndex, index, len(s.weights)-1)
	}
	old := s.weights[index]
	if rest := s.total - old; weight > MaxTotal-rest {
		return fmt.Errorf("%w: weight %d at index %d on top of %d", ErrOverflow, weight, index, rest)
	}
	s.add(index, weight-old)
	return nil
}

// add adds delta, modulo 2^64, to the weight at index and to every sum above it.
func (s *Sampler) add(index int, delta uint64) {
	s.total += delta
	s.weights[index] += delta
	for i := index; i < len(s.sums); i |= i + 1 {
		s.sums[i] += delta
	}
}

// below returns a value uniformly distributed in [0, n), n > 0, by the multiply-shift method with rejection:
// D. Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29(1), 2019, algorithm 5.
func below(src Source, n uint64) uint64 {
	hi, lo := bits.Mul64(src.Uint64(), n)
	if lo < n {
		for least := -n % n; lo < least; {
			hi, lo = bits.Mul64(src.Uint64(), n)
		}
	}
	return hi
}
