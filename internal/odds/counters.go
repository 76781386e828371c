package odds

import (
	"slices"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// What a draw gives can move counters on which its later picks depend. Ways keep where such a counter
// stands; if it has a cap or is a streak, by how much it can still move; and if it is distinct, which
// keys it has seen, of those that the draw can bring. Once a counter stands so high that no pick asks
// for more, the rest makes no difference.

func countOf(c *rules.Counter) fact { return tallyFact | 1<<60 | fact(c.Num) }
func roomOf(c *rules.Counter) fact  { return tallyFact | 1<<60 | 1<<59 | fact(c.Num) }
func seenOf(c *rules.Counter, key int) fact {
	return tallyFact | 1<<58 | fact(c.Num)<<keyBits | fact(key)
}

// keyBits is the room for the number of a key: a counter counts at most catalog.MaxCounted things of each
// kind.
const keyBits = 16

// keys are what distinct counters can count in a draw.
type keys struct {
	all    []rules.Mover
	number map[rules.Mover]int // among those of the same counter
}

// copyCounters copies how the counters that picks ask for can still move.
func (s *Standing) copyCounters(from rules.Facts) {
	for i := range s.t.Counters {
		if c := s.t.Counters[i]; s.asked(c) {
			s.facts[roomOf(c)] = from.Room(c)
		}
	}
	s.number = map[rules.Mover]int{}
	seen, numbers := map[*rules.Counter][]uint64{}, map[*rules.Counter]int{}
	s.movers(func(all []rules.Mover) {
		for _, m := range all {
			if m.Config.Distinct == 0 || !s.asked(m.Counter) {
				continue
			}
			if _, known := s.number[m]; known {
				continue
			}
			if _, known := seen[m.Counter]; !known {
				seen[m.Counter] = from.Keys(m.Counter)
			}
			n := numbers[m.Counter]
			s.keys.all, s.number[m], numbers[m.Counter] = append(s.keys.all, m), n, n+1
			if slices.Contains(seen[m.Counter], m.Key) {
				s.facts[seenOf(m.Counter, n)] = 1
			}
		}
	})
}

// asked reports whether a pick can ask where a counter stands.
func (s *Standing) asked(c *rules.Counter) bool {
	_, ok := s.facts[countOf(c)]
	return ok
}

// movers calls f with all that can move counters in a request.
func (s *Standing) movers(f func(all []rules.Mover)) {
	f(s.root.Moves())
	for _, pt := range s.pools {
		for k := range pt.Last.Items {
			f(s.t.Gains(pt.Last.Items[k].Item))
		}
		for _, num := range pt.Order {
			e := &pt.Entries[num]
			f(e.Moves())
			for k := range e.Items {
				f(s.t.Gains(e.Items[k].Item))
			}
		}
	}
}

// keepCounters makes ways keep what decides how the counters that they keep move on.
func keepCounters(w *scheme) {
	kept := func(c *rules.Counter) bool {
		_, kept := w.keeps[countOf(c)]
		return kept
	}
	w.budget -= len(w.s.t.Counters) + len(w.s.keys.all)
	for _, c := range w.s.t.Counters {
		if kept(c) && (c.Config.Streak.Per != 0 || c.Config.Most.Per != 0) {
			w.keeps[roomOf(c)] = catalog.MaxCount
		}
	}
	for _, m := range w.s.keys.all {
		if kept(m.Counter) {
			w.keeps[seenOf(m.Counter, w.s.number[m])] = 1
		}
	}
}

// moves adds the facts that picks change of counters.
func (s *Standing) moves(all []fact, by []rules.Mover) []fact {
	for _, m := range by {
		if s.asked(m.Counter) && s.facts[roomOf(m.Counter)] > 0 {
			all = append(all, countOf(m.Counter))
		}
	}
	return all
}

// move returns the facts after one that counters count, with n.
func (w *scheme) move(at facts, by []rules.Mover, n uint64) facts {
	for _, m := range by {
		c := m.Counter
		if w.need(at, m) == 0 {
			continue
		}
		room := w.room(at, c)
		next, used := c.Move(w.value(at, countOf(c)), room, n)
		at = w.set(at, countOf(c), next)
		switch {
		case next >= w.keeps[countOf(c)]:
			at = w.set(at, roomOf(c), 0)
			at = slices.DeleteFunc(slices.Clone(at), func(f changed) bool { return f.fact>>keyBits == seenOf(c, 0)>>keyBits })
		case c.Config.Distinct > 0:
			at = w.set(at, seenOf(c, w.s.number[m]), 1)
		default:
			at = w.set(at, roomOf(c), room-used)
		}
	}
	return at
}

// need returns the least number of a fact from which on a higher one makes no difference to a counter; 0
// if none does.
func (w *scheme) need(at facts, m rules.Mover) uint64 {
	most, kept := w.keeps[countOf(m.Counter)]
	if !kept {
		return 0
	}
	value, room := w.value(at, countOf(m.Counter)), w.room(at, m.Counter)
	switch {
	case value >= most || room == 0:
		return 0
	case m.Config.Highest:
		return most
	case m.Config.Distinct > 0:
		return 1 - w.value(at, seenOf(m.Counter, w.s.number[m]))
	}
	return min(most-value, room)
}

// room returns by how much a counter can still move on a way.
func (w *scheme) room(at facts, c *rules.Counter) uint64 {
	if d := uint64(c.Config.Distinct); d > 0 && w.s.facts[roomOf(c)] > 0 {
		return d - min(d, w.value(at, countOf(c)))
	}
	return w.value(at, roomOf(c))
}
