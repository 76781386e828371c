// Package odds says what draws give, exactly, in fractions of integers: the next draw of a player,
// and draws in the long run. It reads the rules' tables and asks the rules what an entry weighs, so it
// decides nothing itself. Neither commands, nor events, nor a realm's lock may enter it.
package odds

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// Odds say exactly what the next draw from a pool gives, through all pools below. They are computed
// from a [Standing], a copy of all that the draw depends on, so no command waits for them.
//
// Most pools are calm: no pick in a draw depends on what the picks before it took. Their odds are
// products and sums. Other pools are restless, such as a box from which one draw takes several
// tickets, or a pool with an entry that goes away once the player holds its item. Their odds come from
// following every way that a draw can go: see [ways].

const (
	// MaxOutcomes is the most entries, in a pool and all below it, whose odds are computed.
	MaxOutcomes = 10_000
	// MaxWork bounds the work for one pool's odds, about a second, in multiplications of machine words.
	// All that can be repeated counts: looking up a fact is 2, keeping a way at least 16. All work stops
	// when the budget is used up, or refused odds would take many times as long.
	MaxWork = 1 << 26
	// askEvery is the work between two calls of Going: some ten thousand calls a second.
	askEvery = 1 << 13
)

// Going reports whether somebody still waits for the result. It is called often.
type Going func() bool

// OddsError says why odds cannot be computed.
type OddsError struct{ Message string }

func (e *OddsError) Error() string { return e.Message }

// Standing is all that the next draw from a pool depends on, at one moment.
type Standing struct {
	t          *rules.Tables
	root       *rules.Pool
	pools      []*rules.Pool // root and those below it, each before those it leads to
	facts      map[fact]uint64
	pending    map[*rules.Moments]rules.Pending
	unfinished []*rules.Pool // boxes of which tickets are held
	keys
	count   uint64 // how many draws the request makes
	status  rules.Status
	subject string
}

// Stand copies what a player's next request for count draws from a pool depends on. The player "" is
// one who was never seen. Stand returns nil if the catalog has no such pool. The caller holds the
// realm's lock, for a time in proportion to the entries.
func Stand(r *rules.Rules, pool, player string, count int, now int64) (*Standing, error) {
	pt := r.Tables().PoolByID[pool]
	if pt == nil {
		return nil, nil
	}
	s, err := newStanding(r.Tables(), pt)
	if err != nil {
		return nil, err
	}
	s.count = uint64(count)
	s.status, s.subject = r.Try(pt, player, count, now, s.copyFacts)
	return s, nil
}

// Newcomer returns the standing of a player who was never seen, in a catalog that need not be in
// force. left says what is left of stocks, and refilled how often boxes were filled. All lists have
// codes, budgets are full, and no moment has come.
func Newcomer(t *rules.Tables, pt *rules.Pool, left func(pt *rules.Pool, entry uint32) uint64, refilled func(*rules.Pool) uint64) (*Standing, error) {
	s, err := newStanding(t, pt)
	if err != nil {
		return nil, err
	}
	s.copyFacts(&unseen{t: t, left: left, refilled: refilled})
	return s, nil
}

// unseen has the facts of a player who was never seen.
type unseen struct {
	rules.Facts // nobody asks for the rest
	t           *rules.Tables
	left        func(pt *rules.Pool, entry uint32) uint64
	refilled    func(*rules.Pool) uint64
}

func (n *unseen) Left(pt *rules.Pool, entry uint32) uint64       { return n.left(pt, entry) }
func (n *unseen) Unfinished(*rules.Pool) bool                    { return false }
func (n *unseen) Refilled(pt *rules.Pool) uint64                 { return n.refilled(pt) }
func (n *unseen) CodesLeft(uint32) uint64                        { return math.MaxUint64 }
func (n *unseen) Spent(*rules.Budget) uint64                     { return 0 }
func (n *unseen) Moments(*rules.Moments) (uint64, rules.Pending) { return 0, rules.Pending{} }
func (n *unseen) Counter(uint32) uint64                          { return 0 }
func (n *unseen) Count(c *rules.Counter) uint64                  { return n.start(c).value }
func (n *unseen) Room(c *rules.Counter) uint64                   { return n.start(c).room }
func (n *unseen) Keys(c *rules.Counter) []uint64                 { return n.start(c).keys }
func (n *unseen) Claimed(*rules.Quest) uint64                    { return 0 }
func (n *unseen) Balance(item uint32) uint64 {
	for _, st := range n.t.Start {
		if st.Item == item {
			return st.Quantity
		}
	}
	return 0
}

// started is where a counter stands once a player has the starting grants, if its period runs.
type started struct {
	value, room uint64
	keys        []uint64
}

func (n *unseen) start(c *rules.Counter) (at started) {
	at.room = c.Whole()
	for _, st := range n.t.Start {
		for _, m := range n.t.Gains(st.Item) {
			if m.Counter != c {
				continue
			}
			var used uint64
			at.value, used = c.Move(at.value, at.room, st.Quantity)
			at.room, at.keys = at.room-used, append(at.keys, m.Key)
		}
	}
	return at
}

func newStanding(t *rules.Tables, root *rules.Pool) (*Standing, error) {
	s := &Standing{t: t, root: root, pools: Reach(t, root), count: 1,
		facts: map[fact]uint64{}, pending: map[*rules.Moments]rules.Pending{}}
	entries := 0
	for _, pt := range s.pools {
		if entries += len(pt.Order); entries > MaxOutcomes {
			return nil, &OddsError{fmt.Sprintf("more than %d entries in the pool and those below it: their odds are not computed", MaxOutcomes)}
		}
	}
	return s, nil
}

// Reach returns a pool and those below it, each before those it leads to.
func Reach(t *rules.Tables, root *rules.Pool) (all []*rules.Pool) {
	var below rules.NumSet
	below.Add(root.Num)
	for _, pt := range slices.Backward(t.BottomUp) {
		if !below.Has(pt.Num) {
			continue
		}
		for target := range pt.Targets() {
			below.Add(target.Num)
		}
		all = append(all, pt)
	}
	return all
}

// copyFacts copies all that the draw can ask for.
func (s *Standing) copyFacts(from rules.Facts) {
	for _, pt := range s.pools {
		for i := range pt.Tracks {
			c := pt.Tracks[i].Counter
			s.facts[counterFact|fact(c)] = from.Counter(c)
		}
		if from.Unfinished(pt) {
			s.unfinished = append(s.unfinished, pt)
		}
		if pt.Config.Refill > 0 {
			s.facts[tallyFact|fact(pt.Refills)] = from.Refilled(pt)
		}
		for _, m := range pt.Moments {
			due, p := from.Moments(m)
			s.facts[dueOf(m)], s.facts[openOf(m)], s.pending[m] = due, min(p.Open, 1), p
		}
		for _, num := range pt.Order {
			e := &pt.Entries[num]
			if e.Limited {
				s.facts[stockOf(pt, num)] = from.Left(pt, num)
			}
			for _, list := range e.Codes {
				s.facts[listOf(list)] = from.CodesLeft(list)
			}
			for _, c := range e.Costs {
				s.facts[spentOf(c.Budget)] = from.Spent(c.Budget)
			}
			questions(e, func(f fact, _ uint64) {
				if f&factKinds == balanceFact { // the tracks' counters are there already
					s.facts[f] = from.Balance(uint32(f))
				}
			})
			for _, c := range e.When.Counters {
				s.facts[countOf(c.Counter)] = from.Count(c.Counter)
			}
			if c := e.Luck.Counter; c != nil {
				s.facts[countOf(c)] = from.Count(c)
			}
			for _, d := range e.When.Quests {
				s.facts[claimedOf(d.Quest)] = from.Claimed(d.Quest)
			}
		}
	}
	s.copyCounters(from)
}

// Odds computes the odds. It fails with an *OddsError after too much work, or if nobody waits.
func (s *Standing) Odds(going Going) (view.Odds, error) {
	budget := MaxWork
	return s.OddsWithin(&budget, going)
}

// OddsWithin is Odds within a budget of work, which it reduces.
func (s *Standing) OddsWithin(budget *int, going Going) (view.Odds, error) {
	given := min(*budget, MaxWork)
	w := newWays(s, given, going)
	defer func() { *budget -= given - w.budget }()
	w.follow(nil)
	w.spread()
	o := view.Odds{Status: s.status, Subject: s.subject}
	items := map[uint32]*big.Rat{}
	give := func(all []rules.Quantity, times *big.Rat) {
		for _, it := range all {
			sum := items[it.Item]
			if sum == nil {
				sum = new(big.Rat)
			}
			items[it.Item] = w.add(sum, w.mul(times, mean(it.Min, it.Max)))
		}
	}
	for at, pt := range s.pools {
		for i, num := range pt.Order {
			e, expected := &pt.Entries[num], w.taken[at][i]
			chance := expected
			switch {
			case s.count > 1:
				chance = nil
			case w.visits(at) > 1 && expected.Sign() > 0 && w.budget > 0:
				chance = w.chance(at, num)
			}
			o.Outcomes = append(o.Outcomes, view.OutcomeOdds{Pool: pt.Config.ID, Entry: e.ID, Chance: chance, Expected: expected})
			give(e.Items, expected)
		}
		give(pt.Last.Items, w.emptied[at])
		for i := range pt.Tracks {
			o.Pity = append(o.Pity, w.track(at, i))
		}
	}
	for i := range s.t.Catalog.Items {
		id := s.t.Catalog.Items[i].ID
		if expected := items[s.t.ItemNum[id]]; expected != nil && expected.Sign() > 0 {
			o.Items = append(o.Items, view.ItemOdds{Item: id, Expected: expected})
		}
	}
	return o, w.err()
}

// Text writes a fraction as a decimal number with this many significant digits, without trailing zeros.
func Text(r *big.Rat, digits int) string {
	if r.Sign() == 0 {
		return "0"
	}
	places := digits - 1
	for ten, v := big.NewRat(10, 1), new(big.Rat).Set(r); v.Cmp(big.NewRat(1, 1)) < 0; places++ {
		v.Mul(v, ten)
	}
	if n := len(new(big.Int).Quo(r.Num(), r.Denom()).String()); r.Cmp(big.NewRat(1, 1)) >= 0 {
		places = max(0, digits-n)
	}
	text := r.FloatString(places)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
