package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A budget bounds what the picks from a pool give of an item in an hour, a day, a week, a month or in all. An
// entry of the pool that could give more than is left, here or through pools below, weighs nothing.
// Only what the entry really gives is spent. Until it has given all, nothing else is picked from the
// pool, so what it could give is still there.
//
// A budget has two counters of the realm: what was spent, and the steady time of the last spending
// (see store.State.Back). The spending counts until the hour, day, week or month of that time is over in the
// zone in force. As with limits, setting the clock back changes nothing.

const budgetWidth = 2

// Budget is one item of a catalog.Budget. Pools that share it have the same one.
type Budget struct {
	Counter uint32 // what was spent; the next counter has the time of the last spending
	Per     catalog.Per
	Item    uint32
	Limit   uint64
}

// Cost is the most that an entry takes from a budget.
type Cost struct {
	*Budget
	Most uint64
}

// BudgetName returns the name of a budget's counters: see [TrackName].
func BudgetName(pool string, b *catalog.Budget, item string) string {
	if b.Share != "" {
		return "/budget/" + b.Share + "/" + b.Per.String() + "/" + item
	}
	return pool + "/budget/" + b.Per.String() + "/" + item
}

// setCosts notes what the entries of a pool can take from its budgets, by the known gains below.
func (pt *Pool) setCosts() {
	if len(pt.Budgets) == 0 {
		return
	}
	var gains []Stack
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		gains = e.gains(gains[:0])
		for _, b := range pt.Budgets {
			if i := indexOf(gains, b.Item); i >= 0 {
				e.Costs = append(e.Costs, Cost{b, gains[i].Quantity})
				e.Conditional = true
			}
		}
	}
}

// Left returns what is left of a budget. A catalog can lower the limit below what was spent.
func (b *Budget) Left(spent uint64) uint64 { return b.Limit - min(b.Limit, spent) }

// giveFromBudgets gives the reward of an entry, out of its budgets and those that are open.
func (r *drawing) giveFromBudgets(e *Entry) {
	open := len(r.open)
	for _, c := range e.Costs {
		if !slices.Contains(r.open, c.Budget) {
			r.open = append(r.open, c.Budget)
		}
	}
	r.give(&e.Reward)
	r.open = r.open[:open]
}

// spendBudgets takes a quantity of an item from the open budgets.
func (r *drawing) spendBudgets(item uint32, quantity uint64) {
	for _, b := range r.open {
		if b.Item != item {
			continue
		}
		if r.aside != nil {
			r.aside.spent(b, quantity)
		}
		r.values.put(valueKey(noPlayer, counterKey|b.Counter), r.Spent(b)+quantity)
		r.values.put(valueKey(noPlayer, counterKey|(b.Counter+1)), uint64(r.steady))
		if r.touch(b.Counter) {
			r.spentOf = append(r.spentOf, b)
		}
	}
}

func (r *drawing) writeBudgets() {
	for _, b := range r.spentOf {
		r.w.More(store.Tally, uint64(b.Counter), r.tally(b.Counter))
		if when := r.tally(b.Counter + 1); when != r.state.Tally(b.Counter+1) {
			r.w.More(store.Tally, uint64(b.Counter+1), when)
		}
	}
	r.spentOf = r.spentOf[:0]
}
