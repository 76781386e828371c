package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Families of items, and prices by a counter.

// kin returns the items that an id stands for: those of a family, or itself.
func (r rulebook) kin(id string) (all []string) {
	for i := range r.catalog.Items {
		if r.catalog.Items[i].Family == id {
			all = append(all, r.catalog.Items[i].ID)
		}
	}
	if all == nil {
		return []string{id}
	}
	return all
}

// family returns the family that an item is of, "" if there is none.
func (r rulebook) family(item string) string {
	if it := r.item(item); it != nil {
		return it.Family
	}
	return ""
}

// isFamily reports whether an id is that of a family.
func (r rulebook) isFamily(id string) bool {
	return slices.ContainsFunc(r.catalog.Items, func(it catalog.Item) bool { return id != "" && it.Family == id })
}

// has returns how many of an item or a family somebody has who holds this.
func (r rulebook) has(held map[string]uint64, id string) (n uint64) {
	for _, item := range r.kin(id) {
		n += held[item]
	}
	return n
}

// prices works out what is paid.
type prices struct{ rulebook }

// rest returns how much of an item can pay for its family in a price. pay is what the caller wants to pay with.
func (r prices) rest(held map[string]uint64, price []kuji.Stack, pay, item string) uint64 {
	if pay != "" && pay != item && !r.isFamily(pay) && r.family(pay) == r.family(item) {
		return 0
	}
	have := held[item]
	for _, st := range price {
		if st.Item == item {
			have = less(have, st.Quantity)
		}
	}
	return have
}

// payable returns how much of an item or a family of a price can be paid.
func (r prices) payable(held map[string]uint64, price []kuji.Stack, pay, id string) (n uint64) {
	if !r.isFamily(id) {
		return held[id]
	}
	for _, item := range r.kin(id) {
		n += r.rest(held, price, pay, item)
	}
	return n
}

// takes returns the items that a price takes from somebody who can pay it.
func (r prices) takes(held map[string]uint64, price []kuji.Stack, pay string) (all []kuji.Stack) {
	add := func(item string, q uint64) {
		if i := slices.IndexFunc(all, func(st kuji.Stack) bool { return st.Item == item }); i >= 0 {
			all[i].Quantity += q
		} else {
			all = append(all, kuji.Stack{Item: item, Quantity: q})
		}
	}
	for _, st := range price {
		if !r.isFamily(st.Item) {
			add(st.Item, st.Quantity)
			continue
		}
		need := st.Quantity
		for _, item := range r.kin(st.Item) {
			if n := min(need, r.rest(held, price, pay, item)); n > 0 {
				add(item, n)
				need -= n
			}
		}
	}
	return all
}

// bill returns what draws cost together whose price is by a counter, but for the first ones, which are free.
func (t *trial) bill(p *catalog.Pool, player string, free, count int) (all []kuji.Stack) {
	c, sight := t.counter(p.PriceBy.Counter), t.sight.clone()
	for i := range count {
		price := p.Price[0]
		for _, s := range p.PriceBy.Steps {
			if sight.counts(c, player, t.now) >= s.From {
				price = s.Price
			}
		}
		for _, st := range price {
			j := slices.IndexFunc(all, func(b kuji.Stack) bool { return b.Item == st.Item })
			switch {
			case i < free:
			case j >= 0:
				all[j].Quantity += st.Quantity
			default:
				all = append(all, kuji.Stack(st))
			}
		}
		if slices.Contains(c.Of.Draws, p.ID) {
			sight.move(c, player, 1, p.ID, t.now)
		}
	}
	return all
}

// heldText writes pools that ask for families, and whose price is by a counter, if there are any.
func heldText(goals bool, r *rand.Rand, pf func(string, ...any)) {
	pf("  armory:\n    price: [{arms: %d}, {gem: 3, arms: 1, sword: 1}]\n    max_count: 4", 1+r.IntN(2))
	if r.IntN(2) == 0 {
		pf("    bundles: [{draws: 2, price: {arms: %d, gem: 1}}]", 1+r.IntN(3))
	}
	pf("    entries:")
	pf("      - {id: sword, weight: 2, reward: {items: {sword: 1}}}")
	pf("      - {id: shield, weight: 2, reward: {items: {shield: 2}}}")
	pf("      - {id: full, weight: 3, when: {holds: {arms: 3}}, reward: {items: {gold: 1}}}")
	pf("      - {id: luck, weight: 1, luck: {item: arms, weights: [{from: 2, weight: 5}, {from: 5, weight: 0}]}}")
	pf("      - {id: card, weight: 3, when: {lacks: [deck]}, reward: {items: {card-a: 1}}}")
	if !goals {
		return
	}
	counter := []string{"refreshes", "refreshes", "worn", "visits", "raid"}[r.IntN(5)]
	pf("  refresh:\n    price: {gem: %d}\n    free: {per: day, draws: %d}", 1+r.IntN(2), 1+r.IntN(2))
	pf("    price_by: {counter: %s, prices: [{from: 1, price: {gem: 2}}, {from: %d, price: {arms: 1, gem: 1}}, {from: 6, price: {gold: 1}}]}", counter, 2+r.IntN(3))
	pf("    entries:")
	pf("      - {id: sword, weight: 1, reward: {items: {sword: 1}}}")
	pf("      - {id: gem, weight: 4, reward: {items: {gem: 2}}}")
}
