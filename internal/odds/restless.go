package odds

import (
	"math"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// scheme is what a draw can at most do: which facts it can change and then ask for, so that ways keep
// them, and which pools are restless because of that. Slices are by index in Standing.pools.
type scheme struct {
	work
	s        *Standing
	at       map[uint32]int    // by pool number: the index
	most     [][]uint64        // how often a draw from one pool can pick from another
	uses     map[fact]uint64   // the most that the draw can take from budgets and lists of codes
	opened   [][]*rules.Budget // those that what a pool gives can come from: see opens
	keeps    map[fact]uint64   // the facts that ways keep; from this value on, higher ones make no difference
	restless []bool
	calm     []bool // neither the pool nor one below it is restless
	empties  []bool // boxes whose last ticket the draw can take, where that matters
}

func (w *scheme) find(s *Standing) {
	n := len(s.pools)
	w.s, w.at, w.uses, w.keeps = s, map[uint32]int{}, map[fact]uint64{}, map[fact]uint64{}
	w.most, w.restless, w.calm, w.empties = make([][]uint64, n), make([]bool, n), make([]bool, n), make([]bool, n)
	for i, pt := range s.pools {
		w.at[pt.Num] = i
	}
	most := make([]uint64, n)
	for i := n - 1; i >= 0; i-- {
		w.countPicks(i, most)
	}
	for i := range w.most[0] {
		w.most[0][i] *= s.count
	}
	w.countUses()
	w.opened = w.opens()
	for i := range s.pools {
		w.empties[i] = w.canEmpty(i)
	}
	w.findRestless()
	w.findCalm()
}

// countPicks counts how often a draw from a pool can at most pick from it and from those below. one is
// scratch memory: a number for each pool.
func (w *scheme) countPicks(i int, one []uint64) {
	pt := w.s.pools[i]
	w.most[i] = make([]uint64, len(w.s.pools))
	count := func(inner []rules.Inner) {
		clear(one)
		for k := range inner {
			for below, n := range w.most[w.at[inner[k].Pool.Num]] {
				one[below] += inner[k].Max * n
			}
		}
		w.budget -= (len(inner) + 1) * len(one)
	}
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		if e.Most == 0 || len(e.Inner) == 0 || w.budget <= 0 {
			continue
		}
		count(e.Inner)
		for below, n := range one {
			if pt.Config.Mode == catalog.ModeEach {
				w.most[i][below] += n
			} else {
				w.most[i][below] = max(w.most[i][below], n)
			}
		}
	}
	count(pt.Last.Inner) // in addition to what the ticket itself gives
	for below, n := range one {
		w.most[i][below] = (w.most[i][below] + n) * uint64(pt.Config.Rolls.Max)
	}
	w.most[i][i] = uint64(pt.Config.Rolls.Max)
}

// visits returns how often a draw can at most pick from a pool.
func (w *scheme) visits(i int) uint64 { return w.most[0][i] }

// findRestless finds the facts that a draw can change and then ask for, and the pools in question.
func (w *scheme) findRestless() {
	type asker struct {
		pool int
		most uint64
	}
	askers := map[fact][]asker{}
	for k := range w.s.root.Must {
		w.keeps[hitsFact|fact(k)] = w.s.root.Must[k].AtLeast
	}
	for i, pt := range w.s.pools {
		w.restless[i] = w.empties[i] || w.promised(i) || pt.Config.Rolls.Distinct && pt.Config.Rolls.Max > 1
		w.asks(i, func(f fact, most uint64) { askers[f] = append(askers[f], asker{i, most}) })
	}
	defer keepCounters(w)
	for i := range w.s.pools {
		for _, f := range w.changes(i) {
			w.budget -= len(askers[f]) / 4
			if w.budget <= 0 {
				return
			}
			for _, a := range askers[f] {
				if w.empties[a.pool] || w.before(i, a.pool, f) { // a box asks again after its ticket was taken
					w.keeps[f] = max(w.keeps[f], a.most)
					w.restless[i], w.restless[a.pool] = true, true
				}
			}
		}
	}
}

func (w *scheme) findCalm() {
	for i := len(w.s.pools) - 1; i >= 0; i-- {
		w.calm[i] = !w.restless[i]
		for k, n := range w.most[i] {
			w.calm[i] = w.calm[i] && (n == 0 || k == i || w.calm[k])
		}
	}
}

// opens returns, for each pool, the budgets that what it gives can come from, without its own.
func (w *scheme) opens() [][]*rules.Budget {
	all := make([][]*rules.Budget, len(w.s.pools))
	lead := func(inner []rules.Inner, open []*rules.Budget) {
		for k := range inner {
			below := w.at[inner[k].Pool.Num]
			w.budget -= len(open) * (1 + len(all[below])/16)
			if w.budget <= 0 {
				return
			}
			for _, b := range open {
				if !slices.Contains(all[below], b) {
					all[below] = append(all[below], b)
				}
			}
		}
	}
	for i, pt := range w.s.pools {
		lead(pt.Last.Inner, all[i])
		for _, num := range pt.Order {
			if e := &pt.Entries[num]; len(e.Inner) > 0 && w.budget > 0 {
				lead(e.Inner, opensOf(e, all[i]))
			}
		}
	}
	return all
}

// opensOf adds the budgets of an entry to others.
func opensOf(e *rules.Entry, open []*rules.Budget) []*rules.Budget {
	open = slices.Clip(open)
	for _, c := range e.Costs {
		open = append(open, c.Budget)
	}
	return open
}

// countUses counts how much a draw can at most take from each budget and each list of codes.
func (w *scheme) countUses() {
	const most = 1 << 60 // sums below it are exact
	for i, pt := range w.s.pools {
		once, facts := map[fact]uint64{}, []fact(nil) // of one pick, or one roll of mode each
		visits := w.visits(i)
		if visits == 0 {
			continue
		}
		for _, num := range pt.Order {
			e := &pt.Entries[num]
			if e.Most == 0 {
				continue
			}
			use := func(f fact, n uint64) {
				if _, known := once[f]; !known {
					facts = append(facts, f)
				}
				if pt.Config.Mode == catalog.ModeEach {
					once[f] = min(once[f]+n, most)
				} else {
					once[f] = max(once[f], n)
				}
			}
			for _, c := range e.Costs {
				use(spentOf(c.Budget), c.Most)
			}
			for _, list := range e.Codes {
				use(listOf(list), 1)
			}
		}
		for _, f := range facts {
			w.uses[f] = min(w.uses[f]+min(once[f], most/visits)*visits, most)
		}
	}
}

// before reports whether a draw can pick from pool a and then ask for a fact in a pick from b.
func (w *scheme) before(a, b int, f fact) bool {
	if w.visits(a) > 1 || w.visits(b) > 1 {
		return true
	}
	if a == b { // a roll of mode each goes through all entries, but asks each for its stock only once
		return w.s.pools[a].Config.Mode == catalog.ModeEach && f >= codesFact
	}
	return w.most[b][a] == 0 // else b comes first, once
}

// asking takes a fact that picks ask for. Values above most make no difference.
type asking func(f fact, most uint64)

// asks finds the facts that picks from a pool ask for.
func (w *scheme) asks(i int, ask asking) {
	pt := w.s.pools[i]
	for k := range pt.Tracks {
		ask(counterFact|fact(pt.Tracks[k].Counter), settled(&pt.Tracks[k], pt.Whole))
	}
	if w.fills(i) {
		ask(tallyFact|fact(pt.Refills), uint64(pt.Config.Refill))
	}
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		if e.Most == 0 {
			continue
		}
		questions(e, ask)
		w.asksStock(i, num, pt.Config.Mode == catalog.ModeRaffle, ask)
		w.asksSupply(e, ask)
	}
	for _, m := range pt.Moments {
		w.asksMoments(i, m, ask)
	}
	w.asksBelow(pt, ask)
}

// questions finds the facts about the player that an entry's weight depends on.
func questions(e *rules.Entry, ask asking) {
	for i := range e.When.Holds {
		for _, item := range e.When.Holds[i].Items() {
			ask(balanceFact|fact(item), e.When.Holds[i].Quantity)
		}
	}
	for _, item := range e.When.Lacks {
		ask(balanceFact|fact(item), 1)
		ask(balanceFact|fact(rules.HeldOf(item)), 1)
	}
	for _, t := range e.When.Tracks {
		ask(counterFact|fact(t.Counter), t.Draws)
	}
	for _, c := range e.When.Counters {
		ask(countOf(c.Counter), c.Min)
		if c.Max < catalog.MaxCount {
			ask(countOf(c.Counter), c.Max+1)
		}
	}
	for _, d := range e.When.Quests {
		ask(claimedOf(d.Quest), d.Tiers)
	}
	switch l := &e.Luck; {
	case len(l.Steps) == 0:
	case l.Counter != nil:
		ask(countOf(l.Counter), l.Last())
	case l.Counts:
		ask(counterFact|fact(l.Item), l.Last())
	default:
		for _, item := range l.Items() {
			ask(balanceFact|fact(item), l.Last())
		}
	}
}

// asksBelow finds the facts that decide whether something is left in the pools below.
func (w *scheme) asksBelow(pt *rules.Pool, ask asking) {
	for k := range pt.Branches {
		target := pt.Branches[k].Target
		if target == nil {
			continue
		}
		w.budget -= len(target.Order)
		if target.Endless || w.budget <= 0 {
			continue
		}
		for _, num := range target.Order {
			w.asksStock(w.at[target.Num], num, false, ask)
		}
		w.asksBelow(target, ask)
	}
}

// asksStock asks for an entry's stock if the draw can use it up, or if each ticket counts.
func (w *scheme) asksStock(i int, entry uint32, tickets bool, ask asking) {
	pt := w.s.pools[i]
	if e := &pt.Entries[entry]; e.Limited && e.Most > 0 {
		if left := w.s.facts[stockOf(pt, entry)]; (left > 0 || w.fills(i)) && (tickets || left <= w.visits(i)) {
			ask(stockOf(pt, entry), math.MaxUint64)
		}
	}
}

// asksSupply asks for the budgets and lists of codes of an entry that the draw can use up.
func (w *scheme) asksSupply(e *rules.Entry, ask asking) {
	for _, c := range e.Costs {
		f := spentOf(c.Budget)
		if left := c.Left(w.s.facts[f]); left >= c.Most && w.uses[f] > left {
			ask(f, c.Limit-c.Most+1)
		}
	}
	for _, list := range e.Codes {
		if left := w.s.facts[listOf(list)]; left > 0 && w.uses[listOf(list)] > left {
			ask(listOf(list), math.MaxUint64)
		}
	}
}

// asksMoments asks how many moments are due, if any can be.
func (w *scheme) asksMoments(i int, m *rules.Moments, ask asking) {
	pt := w.s.pools[i]
	due, open := w.s.facts[dueOf(m)], w.s.facts[openOf(m)]
	if due+open == 0 || !pt.There(w.on(nil, nil), m.Entry) {
		return
	}
	if ask(dueOf(m), w.visits(i)); open > 0 {
		ask(openOf(m), 1)
	}
}

// changes returns the facts that picks from a pool change.
func (w *scheme) changes(i int) (all []fact) {
	pt := w.s.pools[i]
	for _, m := range pt.Moments {
		all = append(all, dueOf(m), openOf(m))
	}
	for k := range pt.Tracks {
		all = append(all, counterFact|fact(pt.Tracks[k].Counter))
	}
	give := func(items []rules.Quantity, open []*rules.Budget) {
		w.budget -= len(items) * (1 + len(open))
		for k := range items {
			if w.s.t.Watched.Has(items[k].Item) {
				all = append(all, balanceFact|fact(items[k].Item))
			}
			moved := w.s.t.Gains(items[k].Item)
			w.budget -= len(moved)
			all = w.s.moves(all, moved)
			for _, b := range open {
				if b.Item == items[k].Item {
					all = append(all, spentOf(b))
				}
			}
		}
	}
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		if e.Most == 0 || w.budget <= 0 {
			continue
		}
		if e.Limited {
			all = append(all, stockOf(pt, num))
		}
		for _, list := range e.Codes {
			all = append(all, listOf(list))
		}
		w.budget -= len(e.Moves())
		all = w.s.moves(all, e.Moves())
		give(e.Items, opensOf(e, w.opened[i]))
	}
	give(pt.Last.Items, w.opened[i])
	if w.fills(i) {
		all = append(all, tallyFact|fact(pt.Refills))
	}
	if i == 0 && w.s.count > 1 { // the last draw counts when nothing asks any more
		all = w.s.moves(all, pt.Moves())
	}
	return all
}

// canEmpty reports whether the draw can take the last ticket of a box and something follows.
func (w *scheme) canEmpty(i int) bool {
	pt, tickets := w.s.pools[i], uint64(0)
	if w.on(nil, nil).Unfinished(pt) || len(pt.Last.Items) == 0 && len(pt.Last.Inner) == 0 && pt.RefillsLeft(w.on(nil, nil)) == 0 {
		return false
	}
	for k := range pt.Branches {
		if target := pt.Branches[k].Target; target != nil && !target.Endless {
			return true // a box whose tickets lead to nothing is empty too
		}
	}
	for _, num := range pt.Order {
		tickets += w.on(nil, nil).Left(pt, num)
	}
	return tickets <= w.visits(i)
}

func (w *scheme) fills(i int) bool {
	return w.empties[i] && w.s.pools[i].RefillsLeft(w.on(nil, nil)) > 0
}
