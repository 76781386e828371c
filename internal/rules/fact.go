package rules

// A fact is what counters count: progress that somebody reports, a draw that a player asks for, an entry
// taken, an item gained, paid or consumed. Each event, pool, entry and item has the list of the counters that
// count it. So no pool knows why anybody counts it, and what is not counted costs nothing.
//
// A command states its facts twice. In its first half, it states those that do not depend on chance: what
// makes later members of a group fail sees them. A command that is no group leaves that out. In its second
// half it states all of them, in order: weights and luck see each one as soon as it is there.

// movers are the counters that count the same thing.
type movers []Mover

// Mover is a counter with the key that a fact has for it, if it is distinct.
type Mover struct {
	*Counter
	Key uint64
}

// Moves returns what counts draws from a pool that players ask for.
func (pt *Pool) Moves() []Mover { return pt.moves }

// Moves returns what counts that an entry is taken.
func (e *Entry) Moves() []Mover { return e.moves }

// Gains returns what counts that an item is gained.
func (f *facts) Gains(item uint32) []Mover {
	if f.gains == nil {
		return nil
	}
	return f.gains[item]
}

// facts are what counters count of a catalog.
type facts struct {
	Events   map[string]movers // by name
	gains    []movers          // by item number; nil: nobody counts any
	spends   []movers
	consumes []movers
}

// setFacts fills in who counts what. Pools and items have their numbers.
func (t *Tables) setFacts() {
	t.Events = map[string]movers{}
	items := func(all *[]movers, ids []string, c *Counter) {
		for _, id := range ids {
			if *all == nil {
				*all = make([]movers, len(t.ItemAt))
			}
			num := t.ItemNum[id]
			for _, item := range itemsOf(&num, t.kin(id)) {
				at := &(*all)[item]
				*at = append(*at, Mover{c, keyOf(t.Catalog.Items[t.ItemAt[item]].ID)})
			}
		}
	}
	entries := map[string]movers{}
	for _, c := range t.Counters {
		of := &c.Config.Of
		for _, e := range c.Config.Events() {
			t.Events[e] = append(t.Events[e], Mover{c, 0})
		}
		for _, id := range of.Draws {
			pt := t.PoolByID[id]
			pt.moves = append(pt.moves, Mover{c, keyOf(id)})
		}
		for _, id := range of.Entries {
			entries[id] = append(entries[id], Mover{c, keyOf(id)})
		}
		items(&t.gains, of.Gains, c)
		items(&t.spends, of.Spends, c)
		items(&t.consumes, of.Consumes, c)
	}
	if len(entries) == 0 {
		return
	}
	for _, pt := range t.PoolByNum {
		if pt == nil {
			continue
		}
		for _, num := range pt.Order {
			e := &pt.Entries[num]
			e.moves = entries[pt.Config.ID+"/"+e.ID]
		}
	}
}

// fact states a fact about a player: n of what the counters count.
func (s *tallying) fact(all movers, player uint32, n uint64) {
	for _, m := range all {
		s.moveBy(m.Counter, player, n, m.Key)
	}
}

// drawn states the facts of some draws: one for each.
func (s *tallying) drawn(all movers, player uint32, draws uint64) {
	if len(all) > 0 {
		s.drawnBy(all, player, draws)
	}
}

func (s *tallying) drawnBy(all movers, player uint32, draws uint64) {
	for _, m := range all {
		n := draws
		if m.Config.Highest {
			n = 1
		}
		s.moveBy(m.Counter, player, n, m.Key)
	}
}

// each states a fact about each of some items. of has who counts them.
func (s *tallying) each(of []movers, player uint32, items []Stack, times uint64) {
	if of != nil {
		s.eachBy(of, player, items, times)
	}
}

func (s *tallying) eachBy(of []movers, player uint32, items []Stack, times uint64) {
	for _, st := range items {
		s.fact(of[st.Item], player, st.Quantity*times)
	}
}
