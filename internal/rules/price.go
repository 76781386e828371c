package rules

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A price is a set of items, paid for each single draw, or for a bundle of draws. A pool can have
// several: the caller chooses one, or the first that the player can pay is taken. The first draws
// of a day, a week or ever may be free. All of it is paid before anything is drawn. Nested pools
// cost nothing extra.

// payment is what a draw costs.
type payment struct {
	price []stack
	times uint64 // how many times the price
}

// pay pays the price of count draws from the player's balances: the one that has item choice in
// it, or with an empty choice the first that the player can pay.
func (r *Rules) pay(pt *poolTable, player uint32, count uint64, choice string) (payment, failure) {
	if len(pt.price) == 0 && choice == "" {
		return payment{}, failure{}
	}
	if pt.free != nil {
		used := r.used(pt.free, player)
		free := min(count, pt.free.draws-min(used, pt.free.draws))
		if free > 0 {
			r.setCounter(player, pt.free.counter, pt.free.value(used+free, r.d.steady))
		}
		if count -= free; count == 0 {
			return payment{}, failure{}
		}
	}
	item, chosen := r.t.item[choice]
	short, offered := uint32(0), false
	try := func(p payment) bool {
		if choice != "" && !(chosen && has(p.price, item)) {
			return false
		}
		lacks, ok := r.spendAll(p, player)
		if !ok && !offered {
			short = lacks
		}
		offered = true
		return ok
	}
	for i := range pt.bundles {
		if b := &pt.bundles[i]; b.draws == count {
			if p := (payment{b.price, 1}); try(p) {
				return p, failure{}
			}
		}
	}
	for _, price := range pt.price {
		if p := (payment{price, count}); try(p) {
			return p, failure{}
		}
	}
	if !offered {
		return payment{}, failure{PriceNotOffered, r.itemRef(choice)}
	}
	return payment{}, failure{InsufficientItems, store.Ref{Num: short}}
}

func has(price []stack, item uint32) bool {
	for _, st := range price {
		if st.item == item {
			return true
		}
	}
	return false
}

// spendAll subtracts a price from the player's balances. If one of them is too low, it subtracts
// nothing and returns its item.
func (r *Rules) spendAll(p payment, player uint32) (item uint32, ok bool) {
	for _, st := range p.price {
		if r.balance(player, st.item) < st.quantity*p.times { // below 2^53 × 1000
			return st.item, false
		}
	}
	for _, st := range p.price {
		r.spend(player, st.item, st.quantity*p.times)
	}
	return 0, true
}

// writePrice writes what a draw costs.
func (r *Rules) writePrice(p payment) {
	for _, st := range p.price {
		r.d.w.Change(store.Spend, st.item, st.quantity*p.times)
	}
}

// freeName returns the name of the counter of free draws.
func freeName(pool string, f catalog.Free) string {
	switch f.Per {
	case catalog.PerDay:
		return pool + "/free/day"
	case catalog.PerWeek:
		return pool + "/free/week"
	}
	return pool + "/free"
}
