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
	price []Stack
	times uint64 // how many times the price
	free  uint64 // how many draws are free
}

// accounts is what the players of a command can pay, and what they can take.
type accounts struct {
	counting
	extra    uint64        // no less than what the command has given of any one item; at most maxPeak
	draws    []pendingDraw // draws that have passed their checks
	picks    uint64        // the most entries that they can take
	have     []uint64      // what the player has of what the best payment takes, in the order of its price
	haveNext []uint64      // the same of the payment that is looked at
	lacks    []Lack        // with InsufficientItems
}

// pay pays the price of count draws from the player's balances: one that has item choice in it, or
// with an empty choice any. It fills in p, which must be zero.
func (r *accounts) pay(pt *Pool, player uint32, count uint64, choice string, p *payment) failure {
	if len(pt.price) == 0 && choice == "" {
		return failure{}
	}
	used := uint64(0)
	if pt.Free != nil {
		used = r.used(pt.Free, player)
		p.free = min(count, pt.Free.Draws-min(used, pt.Free.Draws))
	}
	if p.free < count {
		if f := r.cheapest(pt, player, count, choice, p); f.status != OK {
			return f
		}
	}
	if p.free > 0 {
		r.setCounter(player, pt.Free.Counter, pt.Free.value(used+p.free, r.steady))
	}
	for i, st := range p.price {
		r.values.put(valueKey(player, st.Item), r.have[i]-st.Quantity*p.times)
	}
	return failure{}
}

// offers is what is known of several payments while the best of them is looked for: the first that
// the player can pay, or a later one that costs no more.
type offers struct {
	player uint32
	item   uint32 // must be in the price, if chosen
	chosen bool
	best   *payment
	failed failure // why there is no best yet
}

// cheapest fills in how count draws are paid, of which best.free can be free, but not all. What the
// player has of what it costs is in have.
func (r *accounts) cheapest(pt *Pool, player uint32, count uint64, choice string, best *payment) failure {
	o := offers{player: player, chosen: choice != "", best: best}
	if o.chosen {
		o.item = r.t.ItemNum[choice]
	}
	o.failed = failure{PriceNotOffered, o.item}
	free := best.free
	paid := count - free
	for i := range pt.bundles {
		if b := &pt.bundles[i]; b.draws == paid && o.failed.status != OK {
			r.offer(&o, b.price, 1, free)
		}
	}
	for i := 0; i < len(pt.price) && o.failed.status != OK; i++ {
		r.offer(&o, pt.price[i], paid, free)
	}
	for i := range pt.bundles { // ascending
		if b := &pt.bundles[i]; b.draws > paid && b.draws <= count {
			r.offer(&o, b.price, 1, count-b.draws)
		}
	}
	return o.failed
}

// offer makes a payment the best if it is.
func (r *accounts) offer(o *offers, price []Stack, times, free uint64) {
	if o.chosen && !has(price, o.item) {
		return
	}
	p := payment{price, times, free}
	switch ok := r.canPay(&p, o.player); {
	case ok && (o.failed.status != OK || p.noMore(o.best)):
		*o.best, o.failed = p, failure{}
		r.have, r.haveNext = r.haveNext, r.have
	case !ok && o.failed.status == PriceNotOffered: // of several that are too much the first one counts
		o.failed = r.tooDear(&p, o.player)
	}
}

// noMore reports whether p costs no more than o of any item.
func (p *payment) noMore(o *payment) bool {
	for _, st := range p.price {
		i := slices.IndexFunc(o.price, func(other Stack) bool { return other.Item == st.Item })
		if i < 0 || o.price[i].Quantity*o.times < st.Quantity*p.times { // below 2^53 × 1000
			return false
		}
	}
	return true
}

func has(price []Stack, item uint32) bool {
	return slices.ContainsFunc(price, func(st Stack) bool { return st.Item == item })
}

// canPay reports whether a player has what a payment takes. How much that is, is then in
// haveNext.
func (r *accounts) canPay(p *payment, player uint32) bool {
	r.haveNext = r.haveNext[:0]
	for _, st := range p.price {
		have := r.balance(player, st.Item)
		if have < st.Quantity*p.times { // below 2^53 × 1000
			return false
		}
		r.haveNext = append(r.haveNext, have)
	}
	return true
}

// tooDear is the failure of a player who has less than a payment takes.
func (r *accounts) tooDear(p *payment, player uint32) failure {
	return r.lacking(player, len(p.price), func(i int) (item uint32, need uint64) { return p.price[i].Item, p.price[i].Quantity * p.times })
}

// writePrice writes what a draw costs.
func (r *effects) writePrice(p *payment) {
	for _, st := range p.price {
		r.change(store.Spend, st.Item, st.Quantity*p.times)
	}
}

// freeName returns the name of the counter of free draws.
func freeName(pool string, f catalog.Free) string {
	if f.Per == catalog.PerForever {
		return pool + "/free"
	}
	return pool + "/free/" + f.Per.String()
}
