package rules

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
)

// A family stands for any of its items. Nobody can hold it. It has a number among those of items, so that
// refusals can name it.
//
// A price in a family is paid from its items, in the order of the catalog, or from the one that the caller
// chooses to pay with. The first half of a command fixes what is taken of each, so the second half takes nothing
// that the command's own draws give. In a condition or luck, what counts is how many of its items the
// player holds together. Counters count each of its items.

// kindFamily is the kind of a family among those of items: see catalog.ItemKind.
const kindFamily = 3

// Family is a family of a catalog.
type Family struct {
	ID    string
	Num   uint32
	Items []uint32 // in the order of the catalog
}

// families are those of a catalog.
type families struct {
	Families  []Family
	familyNum map[string]uint32 // by id
	familyAt  map[uint32]int    // by number of the family, and of each of its items: the place in Families
}

// families numbers families, from next on. Items have their numbers. It returns the next number after that.
func (d *definer) families(c *catalog.Catalog, next int) (int, error) {
	ids, items := c.Families()
	if len(ids) == 0 {
		return next, nil
	}
	t := &d.t.families
	t.familyNum, t.familyAt = map[string]uint32{}, map[uint32]int{}
	for _, id := range ids {
		num, known := d.state.ItemNum(id)
		switch {
		case !known:
			num = uint32(next)
			next++
			d.nameItem(kindFamily, id)
		case d.state.ItemKind(num) != kindFamily:
			return next, &ConflictError{Subject: "family " + id, Message: "an earlier catalog has an item with this id: use another id for the family"}
		}
		f := Family{ID: id, Num: num}
		for _, item := range items[id] {
			f.Items = append(f.Items, d.t.ItemNum[item])
			t.familyAt[d.t.ItemNum[item]] = len(t.Families)
		}
		t.familyNum[id], t.familyAt[num] = num, len(t.Families)
		t.Families = append(t.Families, f)
	}
	return next, nil
}

// Family returns the family with a number, nil if that is the number of something else.
func (t *families) Family(num uint32) *Family {
	if at, ok := t.familyAt[num]; ok && t.Families[at].Num == num {
		return &t.Families[at]
	}
	return nil
}

// of returns the family that an item is of, nil if there is none.
func (t *families) of(item uint32) *Family {
	if at, ok := t.familyAt[item]; ok {
		return &t.Families[at]
	}
	return nil
}

// kin returns the numbers of what an id stands for: the items of a family, nil of an item.
func (t *families) kin(id string) []uint32 {
	if num, ok := t.familyNum[id]; ok {
		return t.Family(num).Items
	}
	return nil
}

// named returns the number of an item or a family.
func named(t *Tables, id string) (num uint32, ok bool) {
	if num, ok = t.ItemNum[id]; !ok {
		num, ok = t.familyNum[id]
	}
	return num, ok
}

// Held is an item that somebody must hold, or a family, with the items that it stands for.
type Held struct {
	Stack
	Of []uint32 // nil: the item itself
}

// Items returns the items that count.
func (h *Held) Items() []uint32 { return itemsOf(&h.Item, h.Of) }

func itemsOf(item *uint32, of []uint32) []uint32 {
	if of != nil {
		return of
	}
	return []uint32{*item}
}

// held returns how many of an item, or of the items that it stands for, a player holds.
func held(f Facts, item uint32, of []uint32) (n uint64) {
	if of == nil {
		return f.Balance(item)
	}
	for _, one := range of {
		n += f.Balance(one) // at most catalog.MaxFamily × MaxQuantity
	}
	return n
}

// The first half of a command.

// offers reports whether a price can be paid with an item, or names a family.
func (t *families) offers(price []Stack, item uint32) bool {
	if indexOf(price, item) >= 0 {
		return true
	}
	f := t.of(item)
	return f != nil && indexOf(price, f.Num) >= 0
}

// payable returns how much of an item or a family of a price a player can pay: of a family, what the price does
// not take of its items by their own ids.
func (r *accounts) payable(o *offers, p *payment, item uint32) (have uint64) {
	f := r.t.Family(item)
	if f == nil {
		return r.balance(o.player, item)
	}
	for _, one := range f.Items {
		have += r.rest(o, p, one)
	}
	return have
}

// rest returns how much of an item can pay for its family.
func (r *accounts) rest(o *offers, p *payment, item uint32) uint64 {
	if o.chosen && o.item != item && r.t.of(item) == r.t.of(o.item) && r.t.Family(o.item) == nil {
		return 0 // the caller chose another one
	}
	have := r.balance(o.player, item)
	if i := indexOf(p.price, item); i >= 0 {
		have -= min(have, p.price[i].Quantity*p.times)
	}
	return have
}

// choose fixes what a payment takes of each item, if its price names families. The player can pay.
func (r *accounts) choose(o *offers, p *payment) {
	if !slices.ContainsFunc(p.price, func(st Stack) bool { return r.t.Family(st.Item) != nil }) {
		return
	}
	first := len(r.taking)
	for _, st := range p.price {
		need := st.Quantity * p.times
		f := r.t.Family(st.Item)
		if f == nil {
			r.takes(first, st.Item, need)
			continue
		}
		for _, one := range f.Items {
			if n := min(need, r.rest(o, p, one)); n > 0 {
				r.takes(first, one, n)
				need -= n
			}
		}
	}
	p.price, p.times = r.taking[first:], 1
	r.have = r.have[:0]
	for _, st := range p.price {
		r.have = append(r.have, r.balance(o.player, st.Item))
	}
}

// takes adds to what a payment takes, which stands in taking from a place on.
func (r *accounts) takes(first int, item uint32, q uint64) {
	if i := indexOf(r.taking[first:], item); i >= 0 {
		r.taking[first+i].Quantity += q
		return
	}
	r.taking = append(r.taking, Stack{item, q})
}
