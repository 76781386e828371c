package samplers

// Alias draws from a table in which each of n equally likely slots is shared by two entries: O(1) a draw. It cannot be
// changed. A. J. Walker, "An Efficient Method for Generating Discrete Random Variables with General Distributions",
// ACM TOMS 3(3), 1977; built in O(n) after M. D. Vose, "A Linear Algorithm for Generating Random Numbers with a Given
// Distribution", IEEE TSE 17(9), 1991, in integers: every weight is multiplied by n, so that a slot holds the total.
type Alias struct {
	total uint64
	slots []slot
}

// slot gives its own index to values below own, and the index other to the rest of [0, total).
type slot struct {
	own   uint64
	other uint32
}

// NewAlias returns an Alias with these weights.
func NewAlias(weights []uint64) *Alias {
	a := &Alias{slots: make([]slot, len(weights))}
	a.build(weights, make([]uint32, len(weights)))
	return a
}

// build fills the table from weights; work holds as many numbers.
func (a *Alias) build(weights []uint64, work []uint32) {
	n := len(weights)
	a.total = 0
	for _, w := range weights {
		a.total += w
	}
	small, large := 0, n // two stacks in one array: of slots that want more, and of slots that have too much
	for i, w := range weights {
		a.slots[i] = slot{own: w * uint64(n), other: uint32(i)}
		if a.slots[i].own < a.total {
			work[small] = uint32(i)
			small++
		} else {
			large--
			work[large] = uint32(i)
		}
	}
	for small > 0 && large < n {
		small--
		s, l := work[small], work[large]
		a.slots[s].other = l
		a.slots[l].own -= a.total - a.slots[s].own
		if a.slots[l].own < a.total {
			large++
			work[small] = l
			small++
		}
	}
}

// Total returns the sum of the weights.
func (a *Alias) Total() uint64 { return a.total }

// Draw chooses an index; it reports false when the total is zero.
func (a *Alias) Draw(src Source) (int, bool) {
	if a.total == 0 {
		return 0, false
	}
	i := below(src, uint64(len(a.slots)))
	if below(src, a.total) < a.slots[i].own {
		return int(i), true
	}
	return int(a.slots[i].other), true
}

// LazyAlias draws from an alias table that is kept as it was built and accepts an entry with probability current/built.
// It is built again when the total has fallen to half or a weight rises above what was built: O(1) expected for a draw,
// O(n) now and then for a change.
type LazyAlias struct {
	table   Alias
	current uint64 // sum of weights
	weights []uint64
	built   []uint64
	work    []uint32
}

// NewLazyAlias returns a LazyAlias with these weights.
func NewLazyAlias(weights []uint64) *LazyAlias {
	n := len(weights)
	l := &LazyAlias{
		table:   Alias{slots: make([]slot, n)},
		weights: append([]uint64(nil), weights...),
		built:   make([]uint64, n),
		work:    make([]uint32, n),
	}
	l.build()
	return l
}

func (l *LazyAlias) build() {
	copy(l.built, l.weights)
	l.table.build(l.built, l.work)
	l.current = l.table.total
}

// Total returns the sum of the weights.
func (l *LazyAlias) Total() uint64 { return l.current }

// Weight returns the weight at index i.
func (l *LazyAlias) Weight(i int) uint64 { return l.weights[i] }

// Draw chooses an index; it reports false when the total is zero.
func (l *LazyAlias) Draw(src Source) (int, bool) {
	if l.current == 0 {
		return 0, false
	}
	for {
		i, _ := l.table.Draw(src)
		if w, b := l.weights[i], l.built[i]; w == b || below(src, b) < w {
			return i, true
		}
	}
}

// Set changes the weight at index i. It never fails.
func (l *LazyAlias) Set(i int, weight uint64) error {
	l.current += weight - l.weights[i]
	l.weights[i] = weight
	if weight > l.built[i] || l.current <= l.table.total/2 {
		l.build()
	}
	return nil
}
