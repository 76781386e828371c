package rules

import "github.com/kuji-dev/kuji/catalog"

// A condition is what must be true of a player: for a pool, who can draw; for an entry, whether it
// is there for this player. An entry whose condition does not hold weighs nothing. No draw may rely
// on it to find stock: see [Rules.inStock].

// condition is a catalog.Condition by numbers.
type condition struct {
	holds  []stack
	lacks  []uint32
	tracks []reached
}

type reached struct {
	counter uint32
	draws   uint64
}

func (c *condition) empty() bool { return len(c.holds) == 0 && len(c.lacks) == 0 && len(c.tracks) == 0 }

// condition compiles a condition of a pool, whose tracks are known, or of one of its entries.
func (t *Tables) condition(pt *poolTable, c *catalog.Condition) (out condition) {
	if c.Empty() {
		return out
	}
	out.holds = t.stacks(c.Holds)
	for _, item := range c.Lacks {
		out.lacks = append(out.lacks, t.item[item])
	}
	for _, want := range c.Tracks {
		for i := range pt.tracks {
			if pt.config.Tracks[i].Name == want.Track {
				out.tracks = append(out.tracks, reached{pt.tracks[i].counter, want.Draws})
			}
		}
	}
	return out
}

// watch notes the items that an entry's condition and luck ask for: draws of one command must see
// what earlier ones gave.
func (t *Tables) watch(e *entryTable) {
	for _, st := range e.when.holds {
		t.watched.add(st.item)
	}
	for _, item := range e.when.lacks {
		t.watched.add(item)
	}
	if len(e.luck.steps) > 0 && !e.luck.counts {
		t.watched.add(e.luck.item)
	}
}

// luckTable is a catalog.Luck by numbers: the weights of an entry by how many of an item the player
// holds, or by what a track has counted.
type luckTable struct {
	counts bool   // the track's counter, not an item
	item   uint32 // or the number of the counter
	steps  []catalog.LuckStep
}

// last returns the count from which on the last step holds.
func (l *luckTable) last() uint64 { return l.steps[len(l.steps)-1].From }

func (t *Tables) luck(pt *poolTable, l *catalog.Luck) luckTable {
	if l.Empty() {
		return luckTable{}
	}
	out := luckTable{counts: l.Track != "", item: t.item[l.Item], steps: l.Steps}
	for i := range pt.tracks {
		if pt.config.Tracks[i].Name == l.Track {
			out.item = pt.tracks[i].counter
		}
	}
	return out
}

// person is what conditions and luck ask of a player: balances by item, counters by number.
type person struct{ balance, counter func(uint32) uint64 }

// weightFor returns what an entry in stock weighs for a player. Without ask, its condition is taken
// to hold.
func (e *entryTable) weightFor(p person, ask bool) uint64 {
	switch {
	case ask && !e.when.met(p):
		return 0
	case len(e.luck.steps) == 0:
		return e.weight
	case e.luck.counts:
		return e.weightAt(p.counter(e.luck.item))
	}
	return e.weightAt(p.balance(e.luck.item))
}

// weightAt returns what an entry weighs when its luck counts n.
func (e *entryTable) weightAt(n uint64) uint64 {
	w := e.weight
	for _, s := range e.luck.steps {
		if n >= s.From {
			w = s.Weight
		}
	}
	return w
}

// met reports whether a condition holds for a player.
func (c *condition) met(p person) bool {
	for _, st := range c.holds {
		if p.balance(st.item) < st.quantity {
			return false
		}
	}
	for _, item := range c.lacks {
		if p.balance(item) > 0 {
			return false
		}
	}
	for _, t := range c.tracks {
		if p.counter(t.counter) < t.draws {
			return false
		}
	}
	return true
}

// person returns what conditions and luck ask of a player at this point of the command. The compiler
// inlines it, so that nothing is allocated.
func (r *Rules) person(player uint32) person {
	return person{
		balance: func(item uint32) uint64 { return r.balance(player, item) },
		counter: func(n uint32) uint64 { return r.counter(player, n) },
	}
}

// collected returns how many entries are left of a pool for a player, if all of its entries have
// conditions. Each is unique, and gives what no other does: drawing one takes away only itself. An
// entry counts if it has stock for need draws, whoever makes them.
func (r *Rules) collected(pt *poolTable, player uint32, need uint64) (n uint64) {
	p := r.person(player)
	for _, num := range pt.order {
		if e := &pt.entries[num]; e.weight > 0 && (!e.limited || r.state.Left(pt.num, num) >= need) && e.when.met(p) {
			n++
		}
	}
	return n
}
