package catalog

import "slices"

// A family is named by the items that are of it. Where a price, a condition, luck or a counter names it, it
// stands for any of its items.

// Families returns the families of a catalog, by the first item of each, with their items in the order of the
// catalog.
func (c *Catalog) Families() (ids []string, items map[string][]string) {
	items = map[string][]string{}
	for i := range c.Items {
		it := &c.Items[i]
		if it.Family == "" {
			continue
		}
		if items[it.Family] == nil {
			ids = append(ids, it.Family)
		}
		items[it.Family] = append(items[it.Family], it.ID)
	}
	return ids, items
}

// itemOrFamily is an id that can be that of a family too.
var itemOrFamily = id("an item or family")

// anyStacksShape is a mapping from ids of items or families to fixed quantities.
var anyStacksShape = dict[Stack]{
	key:   itemOrFamily,
	value: part[Stack, uint64]{integer[uint64](1, MaxQuantity), func(s *Stack) *uint64 { return &s.Quantity }},
	id:    func(s *Stack) *string { return &s.Item },
	max:   MaxBundle,
}

// kinOf returns what an id stands for: the items of a family, or itself.
func (k *check) kinOf(id string) []string {
	if all := k.families[id]; all != nil {
		return all
	}
	return []string{id}
}

// checkFamilies checks how large families are, and that no item has the id of one.
func (k *check) checkFamilies() {
	for i := range k.c.Items {
		it := &k.c.Items[i]
		switch all := k.families[it.Family]; {
		case it.Family == "":
		case k.there[itemRef][it.Family] && all[0] == it.ID:
			k.at(it.ID, func() {
				k.faultAt("family", "expected an id that no item has, found %s: nobody could tell the family from the item", quote(it.Family))
			})
		case len(all) > MaxFamily && all[MaxFamily] == it.ID:
			k.at(it.ID, func() {
				k.faultAt("family", "expected at most %d items of family %s, found %d", MaxFamily, quote(it.Family), len(all))
			})
		}
	}
}

// priceOf checks how many items a price can take.
func (k *check) priceOf(price []Stack) {
	n := 0
	for _, st := range price {
		n += len(k.kinOf(st.Item))
	}
	if n > MaxFamily && len(price) <= MaxBundle {
		k.fault("expected a price of at most %d different items, those of families included, found %d", MaxFamily, n)
	}
}

// contradicts reports whether a condition that holds some of these can never lack an item or a family.
func (k *check) contradicts(holds []Stack, lacks string) bool {
	kin := k.kinOf(lacks)
	return slices.ContainsFunc(holds, func(s Stack) bool {
		return s.Item == lacks || !slices.ContainsFunc(k.kinOf(s.Item), func(id string) bool { return !slices.Contains(kin, id) })
	})
}
