package plan

import (
	"fmt"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// notice is something in a catalog that deserves a second look.
type notice struct{ id, warning string }

// noticesOf looks over a catalog. left says what is left of stocks.
func noticesOf(t *rules.Tables, now int64, left func(pt *rules.Pool, entry uint32) uint64) []notice {
	l := looker{
		t: t, now: now, left: left, open: make([]bool, len(t.PoolByNum)), entered: make([]bool, len(t.PoolByNum)),
		gives: map[uint32]bool{}, named: map[uint32]bool{}, chance: map[uint32]bool{}, sure: map[uint32]bool{},
	}
	for _, q := range t.Quests {
		for i := range q.Tiers {
			l.reward(q.Tiers[i].Reward(), true)
			for _, it := range q.Tiers[i].Reward().Items {
				l.sure[it.Item] = true
			}
		}
	}
	for _, c := range t.Counters {
		for reward := range c.Prizes() {
			l.reward(reward, true)
		}
	}
	for i := range t.Catalog.Rounds {
		l.won(&t.Catalog.Rounds[i].Winners.Reward)
	}
	for _, pt := range slices.Backward(t.BottomUp) {
		l.enter(pt)
	}
	for _, st := range t.Start {
		l.gives[st.Item], l.sure[st.Item] = true, true
	}
	for i := range t.Catalog.Items {
		if it := &t.Catalog.Items[i]; it.Grows.Every > 0 {
			num := t.ItemNum[it.ID]
			l.gives[num], l.sure[num] = true, true
		}
	}
	l.findChances()
	for i := range t.Catalog.Pools {
		l.pool(t.PoolByID[t.Catalog.Pools[i].ID])
	}
	for i := range t.Catalog.Items {
		id := t.Catalog.Items[i].ID
		if num := t.ItemNum[id]; l.named[num] && !l.gives[num] {
			l.add(id, "nobody can get this item: no draw that anybody can make gives it")
		}
	}
	return l.all
}

type looker struct {
	t       *rules.Tables
	now     int64
	left    func(pt *rules.Pool, entry uint32) uint64
	open    []bool          // pools that can be drawn from, directly or not
	entered []bool          // pools that others lead to
	named   map[uint32]bool // items that rewards name
	gives   map[uint32]bool // items that somebody can get
	chance  map[uint32]bool // items that draws for a price give, but not every such draw
	sure    map[uint32]bool // items that there is another way to get
	all     []notice
}

func (l *looker) add(id, warning string) { l.all = append(l.all, notice{id, warning}) }

// enter notes what can be reached through a pool. Call it first for all pools that lead to this one.
func (l *looker) enter(pt *rules.Pool) {
	c := pt.Config
	if !c.Internal && (c.EndsAt == 0 || c.EndsAt > l.now) {
		l.open[pt.Num] = true
	}
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		stock := !e.Limited || l.left(pt, num) > 0 || c.Refill > 0
		l.reward(&e.Reward, l.open[pt.Num] && e.Most > 0 && stock)
	}
	l.reward(&pt.Last, l.open[pt.Num])
}

// reward notes what a reward gives. can says whether it can be given.
func (l *looker) reward(w *rules.Reward, can bool) {
	for i := range w.Items {
		item := w.Items[i].Item
		l.named[item] = true
		if can {
			l.gives[item] = true
		}
	}
	for i := range w.Inner {
		below := w.Inner[i].Pool.Num
		l.entered[below] = true
		l.open[below] = l.open[below] || can
	}
}

// won notes what the winners of a round get.
func (l *looker) won(w *catalog.Reward) {
	for _, q := range w.Items {
		item := l.t.ItemNum[q.Item]
		l.named[item], l.gives[item] = true, true
	}
	for _, in := range w.Draws {
		below := l.t.PoolByID[in.Pool].Num
		l.entered[below], l.open[below] = true, true
	}
}

func (l *looker) pool(pt *rules.Pool) {
	c := pt.Config
	switch {
	case c.Internal && !l.open[pt.Num]:
		l.add(c.ID, "nobody can draw from this pool: it is internal, and no draw leads to it")
	case c.EndsAt != 0 && c.EndsAt <= l.now && !l.open[pt.Num]:
		l.add(c.ID, "nobody can draw from this pool: it has ended")
	case !c.Internal && l.entered[pt.Num] && len(c.Price) == 0 && len(c.Redeem) == 0 && len(c.Limits) == 0 && c.When.Empty():
		l.add(c.ID, "other pools lead to this pool, but anybody can draw from it directly, free and without a limit: set internal, unless that is meant")
	}
	if len(c.Guarantees) > 0 && l.entered[pt.Num] {
		l.add(c.ID, "other pools lead to this pool, and its guarantee does not hold for what they draw from it: only for requests that draw from it directly")
	}
	for _, price := range c.Price {
		l.complete(c.ID, "a draw costs", price)
	}
	for _, step := range c.PriceBy.Steps {
		l.complete(c.ID, "a draw costs", step.Price)
	}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		l.complete(c.ID, fmt.Sprintf("a bundle of %d draws costs", b.Draws), b.Price)
	}
	l.complete(c.ID, "who draws must hold", c.When.Holds)
	for i := range c.Entries {
		l.complete(c.ID, "entry "+c.Entries[i].ID+" asks for", c.Entries[i].When.Holds)
	}
}

// complete warns of a complete gacha ("kompu gacha"): a set of two or more different items is worth
// something, and players can get each only by chance, from draws that cost something.
func (l *looker) complete(pool, what string, set []catalog.Stack) {
	var items []string
	for _, st := range set {
		if num, ok := l.t.ItemNum[st.Item]; ok && l.chance[num] && !l.sure[num] { // one item of a family is enough
			items = append(items, st.Item)
		}
	}
	if len(items) > 1 {
		slices.Sort(items)
		l.add(pool, fmt.Sprintf("complete gacha: %s %d different items that are only drawn by chance and for a price, such as %s and %s; some countries forbid this",
			what, len(items), items[0], items[1]))
	}
}

// findChances finds the items that are given by chance and for a price, and those that can be had in
// another way: free, or with every draw from a pool with a price.
func (l *looker) findChances() {
	always := make([][]uint32, len(l.t.PoolByNum)) // by pool: the items that every draw gives, ascending
	for _, pt := range l.t.BottomUp {
		always[pt.Num] = alwaysOf(pt, always)
		if pt.Config.Internal {
			continue
		}
		for _, g := range pt.Gains {
			_, every := slices.BinarySearch(always[pt.Num], g.Item)
			if len(pt.Config.Price) == 0 && len(pt.Config.Redeem) == 0 || every {
				l.sure[g.Item] = true
			} else {
				l.chance[g.Item] = true
			}
		}
	}
}

// alwaysOf returns the items that every draw from a pool gives, ascending. below has inner pools'.
func alwaysOf(pt *rules.Pool, below [][]uint32) (all []uint32) {
	first, each := true, pt.Config.Mode == catalog.ModeEach
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		if e.Most == 0 || each && e.Weight < 100*pt.Config.WeightScale {
			continue
		}
		var gives []uint32
		for i := range e.Items {
			gives = append(gives, e.Items[i].Item)
		}
		for i := range e.Inner {
			gives = append(gives, below[e.Inner[i].Pool.Num]...)
		}
		slices.Sort(gives)
		switch {
		case first:
			all = gives
		case each:
			all = append(all, gives...)
			slices.Sort(all)
		default:
			all = slices.DeleteFunc(all, func(item uint32) bool {
				_, also := slices.BinarySearch(gives, item)
				return !also
			})
		}
		if first = false; len(all) == 0 && !each {
			break
		}
	}
	return slices.Compact(all)
}
