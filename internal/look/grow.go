package look

import (
	"cmp"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/view"
)

// Grown returns what a player holds of the items that grow, and when there will be more, at a time stamp. held is
// what the state says that the player holds, in its order, and counters are the player's, ascending. back is how far
// the clock has been set back.
func Grown(t *rules.Tables, held []catalog.Stack, counters []store.CounterValue, now, back int64) (items []catalog.Stack, grows []view.Growing) {
	items = held
	for i := range t.Growths {
		g := &t.Growths[i]
		at := slices.IndexFunc(items, func(s catalog.Stack) bool { return s.Item == g.ID })
		was := uint64(0)
		if at >= 0 {
			was = items[at].Quantity
		}
		n, since := GrownTo(g, was, counters, now, back)
		switch {
		case at >= 0:
			items[at].Quantity = n
		case n > 0:
			items = slices.Insert(items, place(t, items, g.Item), catalog.Stack{Item: g.ID, Quantity: n})
		}
		if next, full := g.Next(n, since); next > 0 {
			grows = append(grows, view.Growing{Item: g.ID, Next: int64(next) - back, Full: int64(full) - back})
		}
	}
	return items, grows
}

// GrownTo returns what a balance in the state has grown to, for a player with these counters, and since when it
// grows.
func GrownTo(g *rules.Growth, balance uint64, counters []store.CounterValue, now, back int64) (n, since uint64) {
	if i, ok := slices.BinarySearchFunc(counters, g.Since, func(v store.CounterValue, c uint32) int { return cmp.Compare(v.Counter, c) }); ok {
		since = counters[i].Value
	}
	return g.At(balance, since, uint64(now+back))
}

// place returns where an item belongs among others, which are in the order of their numbers.
func place(t *rules.Tables, items []catalog.Stack, num uint32) int {
	for i, s := range items {
		if n, ok := t.ItemNum[s.Item]; ok && n > num {
			return i
		}
	}
	return len(items)
}
