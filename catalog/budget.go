package catalog

import "slices"

// Budget is how much the entries of a pool can give of some items within a time, all players together.
// An entry that could give more than is left is out of stock until the budget refills, so a check takes
// it for one with a condition.
type Budget struct {
	Per   Per     `json:"per"`             // not PerWindow
	Of    []Stack `json:"of"`              // at least one
	Share string  `json:"share,omitempty"` // the name of the budget, if pools share it; empty: this pool's own
}

// budgetCheck is the part of a check that is about budgets.
type budgetCheck struct {
	*check
	shared map[string]sharedBudget // by time and name
	number map[string]int          // of each item that has a budget
	gives  [][]uint64              // by pool: see gains
}

// of checks the budgets of a pool.
func (k *budgetCheck) of(p *Pool) {
	if len(p.Budgets) > 0 && p.Mode == ModeRaffle {
		k.fault("expected none in a raffle: a ticket is for everybody")
		return
	}
	for i := range k.oneOrEach(len(p.Budgets)) {
		b := &p.Budgets[i]
		for j := range p.Budgets[:i] {
			o := &p.Budgets[j]
			if o.Per == b.Per && o.Share == b.Share && (b.Share != "" || slices.ContainsFunc(b.Of, o.has)) {
				k.fault("duplicate budget: budget[%d] counts the same", j)
			}
		}
		if b.Share == "" {
			continue
		}
		key := b.Per.String() + "/" + b.Share
		if first, ok := k.shared[key]; !ok {
			k.shared[key] = sharedBudget{p.ID, b.Of}
		} else if !slices.Equal(first.of, b.Of) {
			k.faultAt("of", "expected the same as in pool %s, which shares the budget", first.pool)
		}
	}
}

// has reports whether a budget is of an item.
func (b *Budget) has(s Stack) bool {
	return slices.ContainsFunc(b.Of, func(o Stack) bool { return o.Item == s.Item })
}

// sharedBudget is a budget that pools share, in the first pool that has it.
type sharedBudget struct {
	pool string
	of   []Stack
}

// newBudgetCheck numbers the items that have a budget.
func newBudgetCheck(of *check) budgetCheck {
	k := budgetCheck{check: of, shared: map[string]sharedBudget{}, number: map[string]int{}, gives: make([][]uint64, len(of.c.Pools))}
	counters := 0
	for i := range k.c.Pools {
		for j := range k.c.Pools[i].Budgets {
			b := &k.c.Pools[i].Budgets[j]
			counters += len(b.Of)
			for _, s := range b.Of {
				if _, ok := k.number[s.Item]; !ok && len(k.number) <= MaxBudgetItems {
					k.number[s.Item] = len(k.number)
				}
			}
		}
	}
	switch {
	case len(k.number) > MaxBudgetItems:
		k.fault("expected budgets of at most %d different items, found more", MaxBudgetItems)
		clear(k.number)
	case counters > MaxBudgetCounters:
		k.fault("expected budgets that name at most %d items in all pools together, found %d", MaxBudgetCounters, counters)
	}
	return k
}

// gains returns the most that one draw from a pool can give of each item that has a budget. In a cycle of
// pools, which is refused elsewhere, it counts what it finds.
func (k *budgetCheck) gains(pool int) []uint64 {
	if k.gives[pool] != nil {
		return k.gives[pool]
	}
	p, sum := &k.c.Pools[pool], make([]uint64, len(k.number))
	k.gives[pool] = sum
	if len(sum) == 0 {
		return sum
	}
	last := k.gainsOf(&p.Last)
	for i := range p.Entries {
		if e := &p.Entries[i]; p.heaviest(e) == 0 && e.Moments.Count == 0 {
			continue
		}
		for n, q := range k.gainsOf(&p.Entries[i].Reward) {
			if p.Mode == ModeEach {
				sum[n] = plus(sum[n], q)
			} else {
				sum[n] = max(sum[n], q)
			}
		}
	}
	for n := range sum {
		sum[n] = times(plus(sum[n], last[n]), uint64(p.Rolls.Max))
	}
	return sum
}

// gainsOf is gains of a reward.
func (k *budgetCheck) gainsOf(w *Reward) []uint64 {
	sum := make([]uint64, len(k.number))
	for _, q := range w.Items {
		if n, ok := k.number[q.Item]; ok {
			sum[n] = plus(sum[n], q.Max)
		}
	}
	for _, in := range w.Draws {
		if pool, ok := k.pools[in.Pool]; ok {
			for n, q := range k.gains(pool) {
				sum[n] = plus(sum[n], times(q, uint64(in.Max)))
			}
		}
	}
	return sum
}

// always reports whether an entry is there for every player while it has stock, with the same weight.
func (k *poolCheck) always(e *Entry) bool {
	return e.always() && !k.budgets.costly(k.p, e) && e.Moments.Count == 0
}

// costly reports whether an entry of p can give an item that p has a budget of.
func (k *budgetCheck) costly(p *Pool, e *Entry) (costly bool) {
	k.costs(p, e, func(Stack, uint64) { costly = true })
	return costly
}

// costs calls f with each item that an entry can give of a budget, and how much of it at most.
func (k *budgetCheck) costs(p *Pool, e *Entry, f func(s Stack, cost uint64)) {
	if len(p.Budgets) == 0 {
		return
	}
	gains := k.gainsOf(&e.Reward)
	for i := range p.Budgets {
		for _, s := range p.Budgets[i].Of {
			if n, ok := k.number[s.Item]; ok && gains[n] > 0 {
				f(s, gains[n])
			}
		}
	}
}

// affordable refuses entries that cost more than their budget ever has.
func (k *budgetCheck) affordable(p *Pool) {
	for i := range p.Entries {
		k.costs(p, &p.Entries[i], func(s Stack, cost uint64) {
			if cost > s.Quantity && (p.heaviest(&p.Entries[i]) > 0 || p.Entries[i].Moments.Count > 0) {
				k.faultUnder([]step{{index: i, inList: true}, {key: "reward"}},
					"expected at most %d %s, all of its budget, found up to %d: the entry could never be drawn", s.Quantity, s.Item, cost)
			}
		})
	}
}
