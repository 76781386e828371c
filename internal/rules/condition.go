package rules

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/store"
)

// Condition is what must be true of a player who draws from a pool, or takes an entry: a
// catalog.Condition by numbers. An entry whose condition does not hold weighs nothing, and no draw
// may count on its stock: see inStock.
type Condition struct {
	Holds    []Held
	Lacks    []uint32
	Tracks   []Reached
	Counters []Range
	Quests   []QuestDone
}

type Reached struct {
	Counter uint32
	Draws   uint64
}

func (c *Condition) empty() bool {
	return len(c.Holds)+len(c.Lacks)+len(c.Tracks)+len(c.Counters)+len(c.Quests) == 0
}

// condition compiles a condition of a pool or of one of its entries, which has its tracks, or with no pool that
// of a quest.
func (t *Tables) condition(pt *Pool, c *catalog.Condition) (out Condition) {
	if c.Empty() {
		return out
	}
	for _, st := range t.stacks(c.Holds) {
		h := Held{Stack: st}
		if f := t.Family(st.Item); f != nil {
			h.Of = f.Items
		}
		out.Holds = append(out.Holds, h)
	}
	for _, id := range c.Lacks {
		num := t.ItemNum[id]
		out.Lacks = append(out.Lacks, itemsOf(&num, t.kin(id))...)
	}
	for _, want := range c.Tracks {
		for i := range pt.Tracks {
			if pt.Config.Tracks[i].Name == want.Track {
				out.Tracks = append(out.Tracks, Reached{pt.Tracks[i].Counter, want.Draws})
			}
		}
	}
	out.Counters = t.ranges(c.Counters)
	for _, d := range c.Quests {
		out.Quests = append(out.Quests, QuestDone{t.QuestByID[d.Quest], d.Tiers})
	}
	return out
}

// watch notes the items that an entry asks for: a draw must see what earlier ones gave.
func (t *Tables) watch(e *Entry) {
	t.watchItems(&e.When, func(uint32) {})
	if len(e.Luck.Steps) > 0 && !e.Luck.Counts && e.Luck.Counter == nil {
		for _, item := range e.Luck.Items() {
			t.Watched.Add(item)
		}
	}
}

// watchItems notes the items that a condition asks for, and calls each for them.
func (t *Tables) watchItems(c *Condition, each func(item uint32)) {
	for i := range c.Holds {
		for _, item := range c.Holds[i].Items() {
			t.Watched.Add(item)
			each(item)
		}
	}
	for _, item := range c.Lacks {
		t.Watched.Add(item)
		each(item)
	}
}

// Luck is a catalog.Luck by numbers: an entry's weights by what is held, or by where a track or a counter stands.
type Luck struct {
	Counts  bool     // by a track's counter
	Item    uint32   // number of the item or family, or of the track's counter
	of      []uint32 // the items of the family
	Counter *Counter // by a counter; nil: by one of the others
	Steps   []catalog.LuckStep
}

// Items returns the items that it counts.
func (l *Luck) Items() []uint32 { return itemsOf(&l.Item, l.of) }

// Last returns the count at which the last step begins.
func (l *Luck) Last() uint64 { return l.Steps[len(l.Steps)-1].From }

func (t *Tables) luck(pt *Pool, l *catalog.Luck) Luck {
	if l.Empty() {
		return Luck{}
	}
	out := Luck{Counts: l.Track != "", of: t.kin(l.Item), Counter: t.CounterByID[l.Counter], Steps: l.Steps}
	out.Item, _ = named(t, l.Item)
	for i := range pt.Tracks {
		if pt.Config.Tracks[i].Name == l.Track {
			out.Item = pt.Tracks[i].Counter
		}
	}
	return out
}

// weightFor returns what an entry in stock weighs for a player: see [Pool.Weigh].
func (e *Entry) weightFor(f Facts, ask bool) uint64 {
	switch {
	case ask && !e.When.Met(f):
		return 0
	case len(e.Luck.Steps) == 0:
		return e.Weight
	case e.Luck.Counter != nil:
		return e.weightAt(f.Count(e.Luck.Counter))
	case e.Luck.Counts:
		return e.weightAt(f.Counter(e.Luck.Item))
	}
	return e.weightAt(held(f, e.Luck.Item, e.Luck.of))
}

func (e *Entry) weightAt(n uint64) uint64 {
	w := e.Weight
	for _, s := range e.Luck.Steps {
		if n >= s.From {
			w = s.Weight
		}
	}
	return w
}

// HeldOf returns what [Facts.Balance] calls what is held of an item: who has some held does not lack it.
func HeldOf(item uint32) uint32 { return store.HeldOf(item) }

// Met reports whether a condition holds for a player.
func (c *Condition) Met(f Facts) bool {
	for i := range c.Holds {
		if h := &c.Holds[i]; held(f, h.Item, h.Of) < h.Quantity {
			return false
		}
	}
	for _, item := range c.Lacks {
		if f.Balance(item) > 0 || f.Balance(HeldOf(item)) > 0 {
			return false
		}
	}
	for _, t := range c.Tracks {
		if f.Counter(t.Counter) < t.Draws {
			return false
		}
	}
	for _, d := range c.Quests {
		if f.Claimed(d.Quest) < d.Tiers {
			return false
		}
	}
	return Reaches(c.Counters, f)
}

// collected returns how many entries of a pool a player can still take, if all its entries have
// conditions. Each is unique and gives what no other does, so drawing one takes away only itself. An
// entry counts if it has stock for need draws.
func (r *stocks) collected(pt *Pool, player uint32, need uint64) (n uint64) {
	for _, num := range pt.Order {
		if e := &pt.Entries[num]; e.Weight > 0 && (!e.Limited || r.state.Left(pt.Num, num) >= need) && e.When.Met(&r.Sight) {
			n++
		}
	}
	return n
}
