package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A price is a set of items, paid for each single draw, or for a bundle of draws. A pool can have
// several: the caller chooses one, or the first that the player can pay is taken. The first draws
// of a day, a week or ever may be free. All of it is paid before anything is drawn. Nested pools
// cost nothing extra.
//
// As many draws are free as can be, and the rest is paid: by a bundle of exactly that many draws, or
// draw by draw. Fewer are free if what is paid then makes a bundle that costs no more of any item.
// So where ten draws cost as much as nine, the free one is still there.

// payment is what a draw costs.
type payment struct {
	price []stack
	times uint64 // how many times the price
	free  uint64 // how many draws are free
}

// pay pays the price of count draws from the player's balances: one that has item choice in it, or
// with an empty choice any.
func (r *Rules) pay(pt *poolTable, player uint32, count uint64, choice string) (payment, failure) {
	if len(pt.price) == 0 && choice == "" {
		return payment{}, failure{}
	}
	free, used := uint64(0), uint64(0)
	if pt.free != nil {
		used = r.used(pt.free, player)
		free = min(count, pt.free.draws-min(used, pt.free.draws))
	}
	p, f := payment{free: free}, failure{}
	if free < count {
		p, f = r.cheapest(pt, player, count, free, choice)
	}
	if f.status != OK {
		return payment{}, f
	}
	if p.free > 0 {
		r.setCounter(player, pt.free.counter, pt.free.value(used+p.free, r.d.steady))
	}
	for _, st := range p.price {
		r.spend(player, st.item, st.quantity*p.times)
	}
	return p, failure{}
}

// cheapest returns how count draws are paid, of which free can be free, but not all.
func (r *Rules) cheapest(pt *poolTable, player uint32, count, free uint64, choice string) (best payment, f failure) {
	item := uint32(0)
	if choice != "" {
		item = r.t.item[choice]
	}
	f = failure{PriceNotOffered, item}
	try := func(p payment) {
		if choice != "" && !has(p.price, item) {
			return
		}
		switch ok := r.canPay(p, player); {
		case ok && (f.status != OK || p.noMore(&best)):
			best, f = p, failure{}
		case !ok && f.status == PriceNotOffered: // of several that are too much the first one counts
			f = r.tooDear(p, player)
		}
	}
	first := func(p payment) { // unless something better stands before it
		if f.status != OK {
			try(p)
		}
	}
	paid := count - free
	for i := range pt.bundles {
		if b := &pt.bundles[i]; b.draws == paid {
			first(payment{b.price, 1, free})
		}
	}
	for _, price := range pt.price {
		first(payment{price, paid, free})
	}
	for i := range pt.bundles { // ascending
		if b := &pt.bundles[i]; b.draws > paid && b.draws <= count {
			try(payment{b.price, 1, count - b.draws})
		}
	}
	return best, f
}

// noMore reports whether p costs no more than o of any item.
func (p *payment) noMore(o *payment) bool {
	for _, st := range p.price {
		i := slices.IndexFunc(o.price, func(other stack) bool { return other.item == st.item })
		if i < 0 || o.price[i].quantity*o.times < st.quantity*p.times { // below 2^53 × 1000
			return false
		}
	}
	return true
}

func has(price []stack, item uint32) bool {
	for _, st := range price {
		if st.item == item {
			return true
		}
	}
	return false
}

// canPay reports whether a player has what a payment takes.
func (r *Rules) canPay(p payment, player uint32) bool {
	for _, st := range p.price {
		if r.balance(player, st.item) < st.quantity*p.times { // below 2^53 × 1000
			return false
		}
	}
	return true
}

// tooDear is the failure of a player who has less than a payment takes.
func (r *Rules) tooDear(p payment, player uint32) failure {
	r.d.lacks = r.d.lacks[:0]
	for _, st := range p.price {
		r.lack(player, st.item, st.quantity*p.times)
	}
	return failure{InsufficientItems, r.d.lacks[0].Item}
}

// writePrice writes what a draw costs.
func (r *Rules) writePrice(p payment) {
	for _, st := range p.price {
		r.change(store.Spend, st.item, st.quantity*p.times)
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
