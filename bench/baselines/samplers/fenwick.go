package samplers

import "math/bits"

// Fenwick draws by descent in a binary indexed tree: O(log n) a draw and a change.
// P. Fenwick, "A New Data Structure for Cumulative Frequency Tables", Software: Practice and Experience 24(3), 1994.
type Fenwick struct {
	total   uint64
	top     int // the largest power of two that is at most the number of entries
	weights []uint64
	sums    []uint64 // sums[i], i >= 1, is the sum of the i&-i weights that end with entry i-1
}

// NewFenwick returns a Fenwick with these weights.
func NewFenwick(weights []uint64) *Fenwick {
	n := len(weights)
	f := &Fenwick{weights: append([]uint64(nil), weights...), sums: make([]uint64, n+1)}
	if n > 0 {
		f.top = 1 << (bits.Len(uint(n)) - 1)
	}
	for i, w := range weights {
		f.total += w
		f.sums[i+1] += w
		if parent := i + 1 + (i+1)&-(i+1); parent <= n {
			f.sums[parent] += f.sums[i+1]
		}
	}
	return f
}

// Total returns the sum of the weights.
func (f *Fenwick) Total() uint64 { return f.total }

// Weight returns the weight at index i.
func (f *Fenwick) Weight(i int) uint64 { return f.weights[i] }

// Draw chooses an index; it reports false when the total is zero.
func (f *Fenwick) Draw(src Source) (int, bool) {
	if f.total == 0 {
		return 0, false
	}
	point := below(src, f.total)
	at := 0
	for step := f.top; step > 0; step >>= 1 {
		if next := at + step; next < len(f.sums) && f.sums[next] <= point {
			point -= f.sums[next]
			at = next
		}
	}
	return at, true
}

// Set changes the weight at index i. It never fails.
func (f *Fenwick) Set(i int, weight uint64) error {
	delta := weight - f.weights[i]
	f.weights[i] = weight
	f.total += delta
	for i++; i < len(f.sums); i += i & -i {
		f.sums[i] += delta
	}
	return nil
}
