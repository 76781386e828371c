package samplers

// Sums16 draws by descent in a tree of sums with sixteen children a node: O(log n) a draw and a change.
type Sums16 struct {
	n      int
	levels [][]uint64 // levels[0] are the weights; levels[k][i] is the sum of levels[k-1][16*i : 16*i+16]; the last has one
}

// NewSums16 returns a Sums16 with these weights.
func NewSums16(weights []uint64) *Sums16 {
	s := &Sums16{n: len(weights)}
	level := make([]uint64, (len(weights)+15)/16*16)
	copy(level, weights)
	for {
		s.levels = append(s.levels, level)
		if len(level) <= 1 {
			return s
		}
		size := (len(level) + 15) / 16
		if size > 1 {
			size = (size + 15) / 16 * 16
		}
		up := make([]uint64, size)
		for i, w := range level {
			up[i/16] += w
		}
		level = up
	}
}

// Total returns the sum of the weights.
func (s *Sums16) Total() uint64 {
	if s.n == 0 {
		return 0
	}
	return s.levels[len(s.levels)-1][0]
}

// Weight returns the weight at index i.
func (s *Sums16) Weight(i int) uint64 { return s.levels[0][i] }

// Draw chooses an index; it reports false when the total is zero.
func (s *Sums16) Draw(src Source) (int, bool) {
	total := s.Total()
	if total == 0 {
		return 0, false
	}
	point := below(src, total)
	at := 0
	for k := len(s.levels) - 2; k >= 0; k-- {
		at *= 16
		for _, sum := range s.levels[k][at : at+16] {
			if point < sum {
				break
			}
			point -= sum
			at++
		}
	}
	return at, true
}

// Set changes the weight at index i. It never fails.
func (s *Sums16) Set(i int, weight uint64) error {
	delta := weight - s.levels[0][i]
	for _, level := range s.levels {
		level[i] += delta
		i /= 16
	}
	return nil
}
