package rules

import "github.com/kuji-dev/kuji/internal/store"

// A price is a set of items, paid for each single draw. All of it is paid before anything is
// drawn. Nested pools cost nothing extra.

// pay pays the price of count draws from the player's balances. If one is too low, it returns its
// item.
func (r *Rules) pay(pt *poolTable, player uint32, count uint64) (item uint32, ok bool) {
	for _, p := range pt.price {
		if !r.spend(player, p.item, p.quantity*count) { // below 2^53 × 1000
			return p.item, false
		}
	}
	return 0, true
}

// writePrice writes the price of count draws.
func (r *Rules) writePrice(pt *poolTable, count uint64) {
	for _, p := range pt.price {
		r.d.w.Change(store.Spend, p.item, p.quantity*count)
	}
}
