package odds

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// ways follow the draws of one request through all that can happen. Each way has its chance, what is
// still to be done, and the facts that have changed on it. In each step every way does the next thing,
// and ways that have become the same are joined.
//
// Ways keep only facts that a draw can change and then ask for. The pools that deal with them are
// restless. A draw from a calm pool changes nothing for the rest of the way: it is only counted, and
// spread divides it among the entries below.
type ways struct {
	picks
	drawn   []*big.Rat   // how often calm pools are drawn from, on average
	taken   [][]*big.Rat // how often entries are taken, on average; by index in the catalog
	base    [][]*big.Rat // the chances of a calm pool's entries
	emptied []*big.Rat   // how often boxes give their last ticket, on average
	hits    []*big.Rat   // the chances that a draw from a calm pool takes the sought entry
	ends    *joined      // where the ways end; nil: nobody asks
}

type way struct {
	chance *big.Rat
	facts  facts
	todo   []todo // a stack
}

// todo is something that is still to be done on a way.
type todo struct {
	what   byte
	pool   int             // index in Standing.pools
	n      uint64          // how many draws, picks or rolls are left
	left   uint64          // how many draws of the request are left, this one included
	next   int             // the next entry to roll for, or the next draws of a reward
	entry  uint32          // whose reward it is
	picked []uint32        // the entries that picks must not take again, ascending
	open   []*rules.Budget // what is given comes from these, of those that ways keep
}

const (
	toDraw  byte = iota // from a pool
	toPick              // of one draw
	toRoll              // of one draw in mode each
	toGive              // the draws of an entry's reward
	toEmpty             // what follows if a ticket was the last of its box
)

// lastTicket in place of an entry means the reward for the last ticket of the box.
const lastTicket = math.MaxUint32

type sought struct {
	pool  int
	entry uint32
}

func newWays(s *Standing, budget int, going Going) *ways {
	n := len(s.pools)
	w := &ways{drawn: make([]*big.Rat, n), taken: make([][]*big.Rat, n), base: make([][]*big.Rat, n), emptied: make([]*big.Rat, n)}
	w.work = work{budget, going, budget + askEvery, big.NewRat(1, 1), new(big.Rat)}
	for i, pt := range s.pools {
		w.drawn[i], w.emptied[i] = w.zero, w.zero
		w.taken[i] = slices.Repeat([]*big.Rat{w.zero}, len(pt.Order))
	}
	w.find(s)
	if len(s.root.Must) > 0 {
		w.due = s.root.DueAlone(w.sums(nil, s.root, nil)) // for a request of one draw
	}
	return w
}

// follow follows the draws from the root. Without a sought entry it counts what is taken from restless
// pools, and how often calm ones are drawn from. With one, it drops the ways that take it and returns
// how likely the others are.
func (w *ways) follow(look *sought) (missed *big.Rat) {
	ways := []way{{chance: big.NewRat(1, 1), todo: []todo{{what: toDraw, n: w.s.count}}}}
	missed = new(big.Rat)
	for len(ways) > 0 && w.budget > 0 {
		next := joined{known: make(map[string]int, len(ways))}
		for i := 0; i < len(ways) && w.budget > 0; i++ { // one step can make thousands of ways
			w.step(&ways[i], look, func(one way) {
				w.budget -= one.work()
				if len(one.todo) > 0 {
					next.add(&w.work, one)
					return
				}
				missed = w.add(missed, one.chance)
				if w.ends != nil {
					w.ends.add(&w.work, one)
				}
			})
		}
		ways = next.all
	}
	return missed
}

// joined is ways without two that are the same.
type joined struct {
	all   []way
	known map[string]int // by key: index in all
	key   []byte
}

// add adds a way, and returns its index.
func (j *joined) add(w *work, one way) int {
	j.key = one.key(j.key[:0])
	at, ok := j.known[string(j.key)]
	if ok {
		j.all[at].chance = w.add(j.all[at].chance, one.chance)
		return at
	}
	j.known[string(j.key)] = len(j.all)
	j.all = append(j.all, one)
	return len(j.all) - 1
}

// work is what keeping a way takes from the budget.
func (y *way) work() int {
	n := 16 + 4*len(y.facts) + 8*len(y.todo)
	for i := range y.todo {
		n += len(y.todo[i].picked) + len(y.todo[i].open)
	}
	return n
}

// key appends what tells ways apart.
func (y *way) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(y.facts)))
	for _, c := range y.facts {
		b = binary.AppendUvarint(b, uint64(c.fact))
		b = binary.AppendUvarint(b, c.value)
	}
	for i := range y.todo {
		t := &y.todo[i]
		for _, v := range [...]uint64{uint64(t.what), uint64(t.pool), t.n, t.left, uint64(t.next), uint64(t.entry), uint64(len(t.picked)), uint64(len(t.open))} {
			b = binary.AppendUvarint(b, v)
		}
		for _, num := range t.picked {
			b = binary.AppendUvarint(b, uint64(num))
		}
		for _, open := range t.open {
			b = binary.AppendUvarint(b, uint64(open.Counter))
		}
	}
	return b
}

// step does the next thing on a way, and emits all that can come of it.
func (w *ways) step(y *way, look *sought, emit func(way)) {
	t := y.todo[len(y.todo)-1]
	rest := way{y.chance, y.facts, slices.Clip(y.todo[:len(y.todo)-1])}
	switch t.what {
	case toDraw:
		w.stepDraws(rest, t, look, emit)
	case toPick:
		w.stepPick(rest, t, look, emit)
	case toRoll:
		w.stepRoll(rest, t, look, emit)
	case toGive:
		inner := w.s.pools[t.pool].Last.Inner
		if t.entry != lastTicket {
			inner = w.s.pools[t.pool].Entries[t.entry].Inner
		}
		in := &inner[t.next]
		if t.next++; t.next < len(inner) {
			rest = rest.with(t)
		}
		w.between(rest, in.Min, in.Max, func(rest way, n uint64) {
			emit(rest.with(todo{what: toDraw, pool: w.at[in.Pool.Num], n: n, open: t.open}))
		})
	case toEmpty:
		w.stepEmpty(rest, t, look, emit)
	}
}

func (y way) with(t todo) way {
	y.todo = append(slices.Clip(y.todo), t)
	return y
}

// between divides a way among the numbers of a range, all equally likely.
func (w *ways) between(y way, low, high uint64, f func(way, uint64)) {
	if low != high {
		y.chance = w.mul(y.chance, new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).SetUint64(high-low+1)))
	}
	for n := low; n <= high && w.budget > 0; n++ {
		f(y, n)
	}
}

func (w *ways) stepDraws(rest way, t todo, look *sought, emit func(way)) {
	pt := w.s.pools[t.pool]
	if w.calm[t.pool] {
		if look == nil {
			w.drawn[t.pool] = w.add(w.drawn[t.pool], w.mul(rest.chance, new(big.Rat).SetUint64(t.n)))
		} else {
			rest.chance = w.mul(rest.chance, w.power(w.not(w.hit(t.pool, look)), t.n, t.n))
		}
		emit(rest)
		return
	}
	if t.pool == 0 && t.n < w.s.count {
		rest.facts = w.move(rest.facts, pt.Moves(), 1) // the draw before
	}
	if t.n > 1 {
		rest = rest.with(todo{what: toDraw, pool: t.pool, n: t.n - 1, open: t.open})
	}
	what := toPick
	if pt.Config.Mode == catalog.ModeEach {
		what = toRoll
	}
	w.between(rest, uint64(pt.Config.Rolls.Min), uint64(pt.Config.Rolls.Max), func(rest way, n uint64) {
		emit(rest.with(todo{what: what, pool: t.pool, n: n, left: t.n, open: t.open}))
	})
}

func (w *ways) stepPick(rest way, t todo, look *sought, emit func(way)) {
	pt, some := w.s.pools[t.pool], false
	for _, m := range pt.Moments {
		if _, kept := w.keeps[openOf(m)]; kept && w.value(rest.facts, openOf(m)) > 0 {
			w.settle(rest.with(t), m, w.visits(t.pool), emit)
			return
		}
	}
	due, hits := w.dueNow(rest.facts, &t)
	for i, chance := range w.chances(rest.facts, pt, due, t.picked) {
		if chance.Sign() == 0 || w.budget <= 0 {
			continue
		}
		some = true
		num, after := pt.Order[i], way{w.mul(rest.chance, chance), rest.facts, rest.todo}
		groups := pt.Classes[pt.Entries[num].Class].Groups
		pt.Count(w.on(rest.facts, nil), groups, func(counter uint32, n uint64) {
			after.facts = w.set(after.facts, counterFact|fact(counter), n)
		})
		after.facts = w.kept(after.facts, &t, groups, hits)
		for _, m := range pt.Moments {
			if m.Entry == num {
				after.facts = w.set(after.facts, dueOf(m), w.value(after.facts, dueOf(m))-1)
			}
		}
		if t.n > 1 {
			more := t
			more.n = t.n - 1
			if pt.Config.Rolls.Distinct {
				at, _ := slices.BinarySearch(t.picked, num)
				more.picked = slices.Insert(slices.Clone(t.picked), at, num)
			}
			after = after.with(more)
		}
		w.take(after, &t, i, look, emit)
	}
	if !some {
		emit(rest) // there is nothing more
	}
}

// stepRoll rolls for the next entry of a drop table that has a chance.
func (w *ways) stepRoll(rest way, t todo, look *sought, emit func(way)) {
	pt := w.s.pools[t.pool]
	for ; t.n > 0; t.n-- {
		for t.next < len(pt.Order) {
			i := t.next
			t.next++
			chance := w.rollChance(rest.facts, pt, pt.Order[i])
			if chance.Sign() == 0 {
				continue
			}
			if missed := w.not(chance); missed.Sign() > 0 {
				emit(way{w.mul(rest.chance, missed), rest.facts, rest.todo}.with(t))
			}
			w.take(way{w.mul(rest.chance, chance), rest.facts, rest.todo}.with(t), &t, i, look, emit)
			return
		}
		t.next = 0
	}
	emit(rest)
}

// take takes an entry, by its index in the catalog, and gives its reward.
func (w *ways) take(y way, t *todo, i int, look *sought, emit func(way)) {
	pool, pt, open := t.pool, w.s.pools[t.pool], t.open
	num := pt.Order[i]
	e := &pt.Entries[num]
	if look == nil {
		w.taken[pool][i] = w.add(w.taken[pool][i], y.chance)
	} else if look.pool == pool && look.entry == num {
		return
	}
	if e.Limited {
		y.facts = w.set(y.facts, stockOf(pt, num), w.value(y.facts, stockOf(pt, num))-1)
	}
	y.facts = w.move(y.facts, e.Moves(), 1)
	for _, list := range e.Codes {
		y.facts = w.set(y.facts, listOf(list), w.value(y.facts, listOf(list))-1)
	}
	for _, c := range e.Costs {
		if _, kept := w.keeps[spentOf(c.Budget)]; kept && !slices.Contains(open, c.Budget) {
			open = append(slices.Clip(open), c.Budget)
		}
	}
	if w.empties[pool] {
		y = y.with(todo{what: toEmpty, pool: pool, open: t.open})
	}
	if len(e.Inner) > 0 {
		y = y.with(todo{what: toGive, pool: pool, entry: num, open: open})
	}
	w.give(y, e.Items, open, emit)
}

// stepEmpty does what the rules do if a box is empty. Nothing that the last ticket gives can ask for
// the box, so it can be filled first.
func (w *ways) stepEmpty(rest way, t todo, look *sought, emit func(way)) {
	pool, pt := t.pool, w.s.pools[t.pool]
	if pt.Alive(w.on(rest.facts, nil)) {
		emit(rest)
		return
	}
	if look == nil {
		w.emptied[pool] = w.add(w.emptied[pool], rest.chance)
	}
	if n := pt.RefillsLeft(w.on(rest.facts, nil)); n > 0 {
		w.budget -= len(rest.facts)/4 + len(pt.Order)
		rest.facts = slices.Clone(rest.facts)
		for _, num := range pt.Order {
			rest.facts = w.put(rest.facts, stockOf(pt, num), pt.Entries[num].Config.Stock.Count)
		}
		rest.facts = w.set(rest.facts, tallyFact|fact(pt.Refills), uint64(pt.Config.Refill)-n+1)
	}
	if len(pt.Last.Inner) > 0 {
		rest = rest.with(todo{what: toGive, pool: pool, entry: lastTicket, open: t.open})
	}
	w.give(rest, pt.Last.Items, t.open, emit)
}

// give adds items to what the player holds and what budgets have spent, where it matters.
func (w *ways) give(y way, items []rules.Quantity, open []*rules.Budget, emit func(way)) {
	for i, it := range items {
		given := []fact{balanceFact | fact(it.Item)}
		for _, b := range open {
			if b.Item == it.Item {
				given = append(given, spentOf(b))
			}
		}
		add := func(at facts, q uint64) facts {
			for k, f := range given {
				if k == 0 { // the balance
					at = w.set(at, f, w.s.t.Gained(uint32(it.Item), w.value(at, f), q))
					continue
				}
				at = w.set(at, f, w.value(at, f)+q)
			}
			return w.move(at, w.s.t.Gains(it.Item), q)
		}
		need := uint64(0) // a higher quantity makes no difference
		for _, f := range given {
			if most, kept := w.keeps[f]; kept {
				need = max(need, most-min(most, w.value(y.facts, f)))
			}
		}
		for _, m := range w.s.t.Gains(it.Item) {
			need = max(need, w.need(y.facts, m))
		}
		switch {
		case need == 0:
			continue
		case it.Min == it.Max:
			y.facts = add(y.facts, it.Min)
			continue
		}
		enough := min(max(need, it.Min), it.Max)
		whole := new(big.Int).SetUint64(it.Max - it.Min + 1)
		for q := it.Min; q <= enough && w.budget > 0; q++ {
			n := uint64(1)
			if q == enough {
				n = it.Max - enough + 1
			}
			part := w.mul(y.chance, w.fraction(new(big.Int).SetUint64(n), whole))
			w.give(way{part, add(y.facts, q), y.todo}, items[i+1:], open, emit)
		}
		return
	}
	emit(y)
}

// spread divides the draws from calm pools among their entries and the pools below them.
func (w *ways) spread() {
	if w.calm[0] {
		w.drawn[0] = new(big.Rat).SetUint64(w.s.count)
	}
	for i, pt := range w.s.pools {
		if !w.calm[i] || w.drawn[i].Sign() == 0 || w.budget <= 0 {
			continue
		}
		count := w.mul(w.drawn[i], mean(uint64(pt.Config.Rolls.Min), uint64(pt.Config.Rolls.Max)))
		for k, chance := range w.baseOf(i) {
			if chance.Sign() == 0 {
				continue
			}
			taken := w.mul(count, chance)
			w.taken[i][k] = taken
			for _, in := range pt.Entries[pt.Order[k]].Inner {
				below := w.at[in.Pool.Num]
				w.drawn[below] = w.add(w.drawn[below], w.mul(taken, mean(in.Min, in.Max)))
			}
		}
	}
}

// baseOf returns the chances of a calm pool's entries: see chances.
func (w *ways) baseOf(i int) []*big.Rat {
	if w.base[i] == nil {
		w.base[i] = w.chances(nil, w.s.pools[i], w.dueIn(i), nil)
	}
	return w.base[i]
}

// promised reports whether what a pick must hit depends on the draws before it in the request.
func (w *scheme) promised(pool int) bool {
	return pool == 0 && w.s.count > 1 && len(w.s.root.Must) > 0
}

// chance returns how likely the draw takes an entry at least once.
func (w *ways) chance(pool int, entry uint32) *big.Rat {
	look := &sought{pool, entry}
	if w.hits == nil {
		w.hits = make([]*big.Rat, len(w.s.pools))
	}
	clear(w.hits)
	if w.calm[0] {
		return w.hit(0, look)
	}
	return w.not(w.follow(look))
}

// hit returns how likely one draw from a calm pool takes the sought entry at least once.
func (w *ways) hit(i int, look *sought) *big.Rat {
	switch pt := w.s.pools[i]; {
	case w.hits[i] != nil:
	case w.most[i][look.pool] == 0 || w.budget <= 0:
		w.hits[i] = w.zero
	default:
		sum, none := w.zero, w.one
		w.budget -= len(pt.Order) / 16
		for k, chance := range w.baseOf(i) {
			e := &pt.Entries[pt.Order[k]]
			sought := look.pool == i && look.entry == pt.Order[k]
			if chance.Sign() == 0 || !sought && len(e.Inner) == 0 {
				continue
			}
			through := w.one
			if !sought {
				for _, in := range e.Inner {
					through = w.mul(through, w.power(w.not(w.hit(w.at[in.Pool.Num], look)), in.Min, in.Max))
				}
				through = w.not(through)
			}
			if through.Sign() == 0 {
				continue
			}
			chance = w.mul(chance, through)
			if pt.Config.Mode == catalog.ModeEach {
				none = w.mul(none, w.not(chance))
			} else {
				sum = w.add(sum, chance)
			}
		}
		if pt.Config.Mode != catalog.ModeEach {
			none = w.not(sum)
		}
		w.hits[i] = w.not(w.power(none, uint64(pt.Config.Rolls.Min), uint64(pt.Config.Rolls.Max)))
	}
	return w.hits[i]
}

func mean(low, high uint64) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(low+high), big.NewInt(2))
}
