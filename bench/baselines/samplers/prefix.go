package samplers

import "sort"

// Prefix draws by binary search in an array of prefix sums: O(log n) a draw, O(n) a change.
type Prefix struct{ sums []uint64 } // sums[i] is the sum of the weights 0 .. i

// NewPrefix returns a Prefix with these weights.
func NewPrefix(weights []uint64) *Prefix {
	p := &Prefix{sums: make([]uint64, len(weights))}
	var sum uint64
	for i, w := range weights {
		sum += w
		p.sums[i] = sum
	}
	return p
}

// Total returns the sum of the weights.
func (p *Prefix) Total() uint64 {
	if len(p.sums) == 0 {
		return 0
	}
	return p.sums[len(p.sums)-1]
}

// Weight returns the weight at index i.
func (p *Prefix) Weight(i int) uint64 {
	if i == 0 {
		return p.sums[0]
	}
	return p.sums[i] - p.sums[i-1]
}

// Draw chooses an index; it reports false when the total is zero.
func (p *Prefix) Draw(src Source) (int, bool) {
	total := p.Total()
	if total == 0 {
		return 0, false
	}
	point := below(src, total)
	return sort.Search(len(p.sums), func(i int) bool { return p.sums[i] > point }), true
}

// Set changes the weight at index i. It never fails.
func (p *Prefix) Set(i int, weight uint64) error {
	old := p.Weight(i)
	for ; i < len(p.sums); i++ {
		p.sums[i] += weight - old
	}
	return nil
}
