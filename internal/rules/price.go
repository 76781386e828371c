package rules

import "github.com/kuji-dev/kuji/internal/store"

// A price is some of any items, for each single draw. All of it is paid before anything
// is drawn. Nested pools are free.

// pay takes the price of count draws from what the player holds, and otherwise says which
// item there is too little of.
func (r *Rules) pay(pt *poolTable, player uint32, count uint64) (item uint32, ok bool) {
	for _, p := range pt.price {
		if !r.take(player, p.item, p.quantity*count) { // below 2^53 × 1000
			return p.item, false
		}
	}
	return 0, true
}

// writePrice writes what count draws cost.
func (r *Rules) writePrice(pt *poolTable, count uint64) {
	for _, p := range pt.price {
		r.d.w.Change(store.Spend, p.item, p.quantity*count)
	}
}
