package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// A price is a set of items, paid for each single draw, or for a bundle of draws. A pool can have
// several: the caller chooses one, or the first that the player can pay is taken. Families: see family.go. A player can have
// some free draws, in all or in each day, week or month. Everything is paid before anything is drawn. Pools
// below cost nothing extra.
//
// As many draws as possible are free. The rest is paid with a bundle of exactly that many draws, or
// draw by draw. Fewer are free if the rest then makes a bundle that costs no more of any item: where
// ten draws cost as much as nine, the player keeps the free draw.

//
// A price can rise with a counter: each single draw then costs what it costs where the counter stands
// before that draw. That is certain before anything is drawn: the draws of the request before it count,
// also those that are free, but not what they give or cost.

// payment is what a draw costs.
type payment struct {
	price []Stack
	times uint64 // how many times the price
	free  uint64 // how many draws are free
}

// accounts is what the players of a command can pay, and what they can take.
type accounts struct {
	counting
	extra    uint64        // at least what the command has given of any one item; at most maxPeak
	draws    []pendingDraw // draws that have passed their checks
	next     int           // how many of them are written
	picks    uint64        // the most entries that they can take
	have     []uint64      // what the player has of each item in the best payment's price
	haveNext []uint64      // the same for the payment at hand
	taking   []Stack       // what payments take whose prices name families
	lacks    []Lack        // with InsufficientItems
	bills    []Stack       // the prices of payments that differ from draw to draw
	comers   int           // players who come with the command
	finder   Finder
	alone    bool // the command is the only one in its event
	shelves
	mailing
}

// pay pays for a Draw from the player's balances: a price that has the item Pay in it, or any price
// if Pay is empty. It fills in p, which must be zero.
func (r *accounts) pay(cmd *Command, player uint32, count uint64, p *payment) failure {
	pt := cmd.pool
	if len(pt.price) == 0 && cmd.Pay == "" {
		return failure{}
	}
	used := uint64(0)
	if pt.Free != nil {
		used = r.used(pt.Free, player)
		p.free = min(count, pt.Free.Draws-min(used, pt.Free.Draws))
	}
	if p.free < count {
		if f := r.cheapest(cmd, player, count, p); f.status != OK {
			return f
		}
	}
	if p.free > 0 {
		r.setCounter(player, pt.Free.Counter, pt.Free.value(used+p.free, r.steady))
	}
	for i, st := range p.price {
		r.values.put(valueKey(player, st.Item), r.have[i]-st.Quantity*p.times)
		r.takeUnits(player, st.Item, st.Quantity*p.times)
	}
	return failure{}
}

// offers is a search for the best payment: the first that the player can pay, or a later one that
// costs no more.
type offers struct {
	player uint32
	item   uint32 // must be in the price, if chosen
	chosen bool
	best   *payment
	failed failure // why there is no best yet
}

// cheapest fills in how count draws are paid. best.free of them can be free, but not all. It leaves
// what the player has of the price in have.
func (r *accounts) cheapest(cmd *Command, player uint32, count uint64, best *payment) failure {
	pt, o := cmd.pool, offers{player: player, item: cmd.pay, chosen: cmd.Pay != "", best: best}
	o.failed = failure{PriceNotOffered, o.item}
	free := best.free
	if pt.steps.Counter != nil {
		r.offer(&o, r.stepped(pt, player, free, count), 1, free)
	} else {
		r.offerAll(&o, pt, count, free)
	}
	if o.failed.status == OK && len(r.t.Families) > 0 {
		r.choose(&o, best)
	}
	return o.failed
}

// offerAll offers the prices and the bundles of a pool.
func (r *accounts) offerAll(o *offers, pt *Pool, count, free uint64) {
	paid := count - free
	for i := range pt.bundles {
		if b := &pt.bundles[i]; b.draws == paid && o.failed.status != OK {
			r.offer(o, b.price, 1, free)
		}
	}
	for i := 0; i < len(pt.price) && o.failed.status != OK; i++ {
		r.offer(o, pt.price[i], paid, free)
	}
	for i := range pt.bundles { // ascending
		if b := &pt.bundles[i]; b.draws > paid && b.draws <= count {
			r.offer(o, b.price, 1, count-b.draws)
		}
	}
}

// offer makes a payment the best one, if it is.
func (r *accounts) offer(o *offers, price []Stack, times, free uint64) {
	if o.chosen && !r.t.offers(price, o.item) {
		return
	}
	p := payment{price, times, free}
	switch ok := r.canPay(&p, o); {
	case ok && (o.failed.status != OK || p.noMore(o.best)):
		*o.best, o.failed = p, failure{}
		r.have, r.haveNext = r.haveNext, r.have
	case !ok && o.failed.status == PriceNotOffered: // if several are too much, the first one counts
		o.failed = r.lacking(len(price), func(i int) Lack {
			return Lack{price[i].Item, r.payable(o, &p, price[i].Item), price[i].Quantity * times}
		})
	}
}

// priceSteps is a catalog.PriceBy by numbers.
type priceSteps struct {
	*Counter
	steps []priceStep
}

type priceStep struct {
	from  uint64
	price []Stack
}

func (t *Tables) priceSteps(c *catalog.PriceBy) (out priceSteps) {
	if c.Empty() {
		return out
	}
	out.Counter = t.CounterByID[c.Counter]
	for _, s := range c.Steps {
		out.steps = append(out.steps, priceStep{s.From, t.stacks(s.Price)})
	}
	return out
}

// stepped returns what the draws from free to count cost together, by where the counter of the price
// stands before each.
func (r *accounts) stepped(pt *Pool, player uint32, free, count uint64) []Stack {
	var (
		c     = pt.steps.Counter
		run   = r.stands(c, player)
		value = run.value
		price = pt.price[0]
		first = len(r.bills)
		room  = r.roomFor(c, run, pt.moves)
		next  = 0
	)
	for i := range count {
		for ; next < len(pt.steps.steps) && value >= pt.steps.steps[next].from; next++ {
			price = pt.steps.steps[next].price
		}
		if i >= free {
			r.bills = addStacks(r.bills, first, price)
		}
		moved, used := c.Move(value, room, 1)
		value, room = moved, room-used
	}
	return r.bills[first:len(r.bills):len(r.bills)]
}

// roomFor returns by how much draws of the pool can move a counter, by 1 each.
func (s *tallying) roomFor(c *Counter, r *running, moves movers) uint64 {
	i := slices.IndexFunc(moves, func(m Mover) bool { return m.Counter == c })
	if i < 0 || c.Config.Distinct > 0 && s.saw(c, r, moves[i].Key) {
		return 0
	}
	if c.Config.Distinct > 0 { // all of them are the same thing
		return min(1, s.room(c, r))
	}
	return s.room(c, r)
}

// addStacks adds a price to the sums from first on.
func addStacks(sums []Stack, first int, price []Stack) []Stack {
	for _, st := range price {
		if i := indexOf(sums[first:], st.Item); i >= 0 {
			sums[first+i].Quantity += st.Quantity // below 2^53 × 1000
		} else {
			sums = append(sums, st)
		}
	}
	return sums
}

// noMore reports whether p costs no more than o of any item.
func (p *payment) noMore(o *payment) bool {
	for _, st := range p.price {
		i := indexOf(o.price, st.Item)
		if i < 0 || o.price[i].Quantity*o.times < st.Quantity*p.times { // below 2^53 × 1000
			return false
		}
	}
	return true
}

// indexOf returns where an item stands in a list; -1: nowhere.
func indexOf(all []Stack, item uint32) int {
	return slices.IndexFunc(all, func(st Stack) bool { return st.Item == item })
}

// canPay reports whether a player has what a payment takes. It leaves what they have in haveNext.
func (r *accounts) canPay(p *payment, o *offers) bool {
	r.haveNext = r.haveNext[:0]
	for _, st := range p.price {
		have := uint64(0)
		if len(r.t.Families) == 0 {
			have = r.balance(o.player, st.Item)
		} else {
			have = r.payable(o, p, st.Item)
		}
		if have < st.Quantity*p.times { // below 2^53 × 1000
			return false
		}
		r.haveNext = append(r.haveNext, have)
	}
	return true
}

func (r *effects) writePrice(p *payment) {
	for _, st := range p.price {
		r.change(store.Spend, st.Item, st.Quantity*p.times)
	}
}
