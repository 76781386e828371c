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

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// Odds say what the next draw from a pool gives, through all pools below, exactly: in fractions of
// integers. They are computed from a copy of everything that the draw depends on, a [Standing], so
// that no command waits for them.
//
// Most pools are calm: no pick of a draw depends on what the picks before it have taken. Their
// odds are products and sums. A pool is restless if its picks do, such as a box that one draw takes
// several tickets from, or an entry that goes away once the player holds its item. Its odds come
// from following every way that a draw can go: see [walk].

const (
	// MaxOutcomes is the most entries, in a pool and all below it, that odds are computed of.
	MaxOutcomes = 10_000
	// MaxWork bounds the multiplications of machine words that one pool's odds may take, and all
	// else in the same unit: a fact that is looked up is 2, a way that is kept at least 16. It is about a
	// second. What is not a multiplication and can be repeated counts too, and nothing goes on when the
	// budget is used up: else odds that are refused take many times as long as they may.
	MaxWork = 1 << 26
	// askEvery is after how many of them the caller is asked whether to go on: some ten thousand times
	// a second.
	askEvery = 1 << 13
)

// Going reports whether somebody still waits for what is computed. It is called often, and may let
// others run meanwhile.
type Going func() bool

// OddsError says why odds cannot be computed.
type OddsError struct{ Message string }

func (e *OddsError) Error() string { return e.Message }

// Odds is what the next draw from a pool gives a player.
type Odds struct {
	// Status is how a draw would end, and Subject what that is about. For a unseen it leaves the
	// price out. If it is not OK, the odds are those if the player could draw.
	Status   rules.Status
	Subject  string
	Outcomes []OutcomeOdds // of the pool and those below it, each pool before those it leads to
	Items    []ItemOdds    // what the draw can give, in the catalog's order
	Tracks   []TrackOdds
}

// OutcomeOdds says how likely a draw takes an entry. Most draws take an entry at most once: then
// both numbers are the same.
type OutcomeOdds struct {
	Pool, Entry string
	Chance      *big.Rat // that the draw takes it at least once; nil for a request for several draws
	Expected    *big.Rat // how many times the draw, or the request, takes it on average
}

// ItemOdds says how many of an item a draw gives on average.
type ItemOdds struct {
	Item     string
	Expected *big.Rat
}

// TrackOdds says where a player stands in a track.
type TrackOdds struct {
	Pool, Track string
	Draws       uint64 // since the last hit
	CertainIn   uint64 // 1: the next draw is certain to hit; 0: no draw is, or nothing can be drawn of the group
	Unless      string // what can come in place of that hit: see TrackDraws.Unless
}

// A fact is something that a pick can depend on: what is left of an entry, how many of an item the
// player holds, a counter of the player, or one of the realm.
type fact uint64

const (
	codesFact   fact = 1 << 61 // what is left of a list
	hitsFact    fact = 3 << 61 // how often draws of the request have hit the group of a guarantee of the root
	balanceFact fact = 1 << 62
	counterFact fact = 2 << 62
	tallyFact   fact = 3 << 62
	factKinds   fact = 3 << 62 // what is left: 0
)

// Facts of a budget and of moments: what is spent; whether it is still to be decided how many moments
// have come; how many are due.
func spentOf(b *rules.Budget) fact              { return tallyFact | fact(b.Counter) }
func openOf(m *rules.Moments) fact              { return tallyFact | fact(m.Counter) }
func dueOf(m *rules.Moments) fact               { return tallyFact | fact(m.Counter+2) }
func listOf(list uint32) fact                   { return codesFact | fact(list) }
func stockOf(pt *rules.Pool, entry uint32) fact { return fact(pt.Num)<<32 | fact(entry) }

// Standing is everything that the next draw from a pool depends on, at one moment.
type Standing struct {
	t       *rules.Tables
	root    *rules.Pool
	pools   []*rules.Pool // root and those below it, each before those it leads to
	facts   map[fact]uint64
	pending map[*rules.Moments]rules.Pending
	count   uint64 // how many draws the request makes
	status  rules.Status
	subject string
}

// Stand copies what a player's next request for count draws from a pool depends on; the player "" is
// one who was never seen. It returns nil if the catalog has no such pool. The caller holds the realm's
// lock, for a time in proportion to the entries.
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

// Newcomer returns the standing of a player who was never seen, in a catalog that need not be in force.
// left says what is left of stocks, and refilled how often boxes were filled. No list of codes is used
// up, budgets are full, and no moment has come.
func Newcomer(t *rules.Tables, pt *rules.Pool, left func(pt *rules.Pool, entry uint32) uint64, refilled func(*rules.Pool) uint64) (*Standing, error) {
	s, err := newStanding(t, pt)
	if err != nil {
		return nil, err
	}
	s.copyFacts(&unseen{t: t, left: left, refilled: refilled})
	return s, nil
}

// unseen is what chance depends on for a player who was never seen.
type unseen struct {
	rules.Facts // nobody asks for the rest
	t           *rules.Tables
	left        func(pt *rules.Pool, entry uint32) uint64
	refilled    func(*rules.Pool) uint64
}

func (n *unseen) Left(pt *rules.Pool, entry uint32) uint64       { return n.left(pt, entry) }
func (n *unseen) Refilled(pt *rules.Pool) uint64                 { return n.refilled(pt) }
func (n *unseen) CodesLeft(uint32) uint64                        { return math.MaxUint64 }
func (n *unseen) Spent(*rules.Budget) uint64                     { return 0 }
func (n *unseen) Moments(*rules.Moments) (uint64, rules.Pending) { return 0, rules.Pending{} }
func (n *unseen) Counter(uint32) uint64                          { return 0 }
func (n *unseen) Balance(item uint32) uint64 {
	for _, st := range n.t.Start {
		if st.Item == item {
			return st.Quantity
		}
	}
	return 0
}

func newStanding(t *rules.Tables, root *rules.Pool) (*Standing, error) {
	s := &Standing{t: t, root: root, count: 1, facts: map[fact]uint64{}, pending: map[*rules.Moments]rules.Pending{}}
	entries := 0
	var below rules.NumSet
	below.Add(root.Num)
	for i := len(t.BottomUp) - 1; i >= 0; i-- {
		pt := t.BottomUp[i]
		if !below.Has(pt.Num) {
			continue
		}
		for target := range pt.Targets() {
			below.Add(target.Num)
		}
		s.pools = append(s.pools, pt)
		if entries += len(pt.Order); entries > MaxOutcomes {
			return nil, &OddsError{fmt.Sprintf("more than %d entries in the pool and those below it: their odds are not computed", MaxOutcomes)}
		}
	}
	return s, nil
}

// copyFacts copies all that the draw can ask for.
func (s *Standing) copyFacts(from rules.Facts) {
	balance := func(item uint32) { s.facts[balanceFact|fact(item)] = from.Balance(item) }
	for _, pt := range s.pools {
		for i := range pt.Tracks {
			c := pt.Tracks[i].Counter
			s.facts[counterFact|fact(c)] = from.Counter(c)
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
			for _, st := range e.When.Holds {
				balance(st.Item)
			}
			for _, item := range e.When.Lacks {
				balance(item)
			}
			if len(e.Luck.Steps) > 0 && !e.Luck.Counts {
				balance(e.Luck.Item)
			}
		}
	}
}

// Odds computes the odds. It fails with an *OddsError if that takes too much work, or if nobody waits
// any more.
func (s *Standing) Odds(going Going) (Odds, error) {
	budget := MaxWork
	return s.OddsWithin(&budget, going)
}

// OddsWithin is Odds with no more work than a budget, which it reduces.
func (s *Standing) OddsWithin(budget *int, going Going) (Odds, error) {
	given := min(*budget, MaxWork)
	w := newWalk(s, given, going)
	defer func() { *budget -= given - w.budget }()
	w.follow(nil)
	w.spread()
	o := Odds{Status: s.status, Subject: s.subject}
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
			o.Outcomes = append(o.Outcomes, OutcomeOdds{Pool: pt.Config.ID, Entry: e.ID, Chance: chance, Expected: expected})
			give(e.Items, expected)
		}
		give(pt.Last.Items, w.emptied[at])
		for i := range pt.Tracks {
			o.Tracks = append(o.Tracks, w.track(at, i))
		}
	}
	for i := range s.t.Catalog.Items {
		id := s.t.Catalog.Items[i].ID
		if expected := items[s.t.ItemNum[id]]; expected != nil && expected.Sign() > 0 {
			o.Items = append(o.Items, ItemOdds{Item: id, Expected: expected})
		}
	}
	return o, w.err()
}

// track says where the player stands in a track, and what is certain if nothing else changes.
func (w *walk) track(pool, i int) TrackOdds {
	pt := w.s.pools[pool]
	t, c := &pt.Tracks[i], pt.Config.Tracks
	f := counterFact | fact(t.Counter)
	out := TrackOdds{Pool: pt.Config.ID, Track: c[i].Name, Draws: w.s.facts[f]}
	if t.Certain == 0 {
		return out
	}
	then, sums := world{{f, max(out.Draws, t.Certain-1)}}, make([]uint64, len(pt.Classes))
	w.weigh(then, pt, nil, true, make([]uint64, len(pt.Order)), sums)
	due := uint32(0)
	if pool == 0 {
		due = pt.DueAlone(sums)
	}
	var unless []string
	out.CertainIn, unless = rules.Place{Pool: pt, Index: i}.CertainIn(out.Draws, due, sums, func(entry uint32) bool { return pt.There(w.on(nil, nil), entry) }, func(track int) string { return c[track].Name })
	out.Unless = strings.Join(unless, ", ")
	return out
}

// Text writes a fraction as a decimal number with so many significant digits, without trailing
// zeros.
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

// chances returns how likely the next pick takes each entry of a pool, in catalog order. due is
// the group of a guarantee that must be hit, or 0, and picked the entries that this draw must not take
// again. In mode each they are the chances of one roll, each entry by itself.
func (w *walk) chances(at world, pt *rules.Pool, due uint32, picked []uint32) []*big.Rat {
	all := make([]*big.Rat, len(pt.Order))
	if pt.Config.Mode == catalog.ModeEach {
		for i, num := range pt.Order {
			all[i] = w.rollChance(at, pt, num)
		}
		return all
	}
	for i := range all {
		all[i] = w.none
	}
	none := w.moments(at, pt, due, all)
	if none.Sign() == 0 || w.budget <= 0 {
		return all
	}
	weights := slices.Grow(w.weights[:0], len(pt.Order))[:len(pt.Order)]
	w.weights = weights
	sums := make([]uint64, len(pt.Classes))
	total := w.weigh(at, pt, picked, true, weights, sums)
	if pt.Collect && total == 0 && pt != w.s.root { // the root is sold out then: see pick
		total = w.weigh(at, pt, picked, false, weights, sums)
	}
	rates := w.decided(at, pt, due, sums, total)
	for i := range rates {
		if none != w.one && rates[i].Sign() > 0 {
			rates[i] = w.mul(none, rates[i])
		}
	}
	for i, num := range pt.Order {
		if rate := rates[pt.Entries[num].Class]; weights[i] > 0 && rate.Sign() > 0 {
			all[i] = w.mul(rate, new(big.Rat).SetUint64(weights[i]))
		}
	}
	return all
}

// rollChance returns how likely a roll of mode each takes an entry.
func (w *walk) rollChance(at world, pt *rules.Pool, entry uint32) *big.Rat {
	w.budget--
	weight := pt.Weigh(w.on(at, nil), entry, true)
	if weight == 0 {
		return w.none
	}
	return w.fraction(new(big.Int).SetUint64(weight), new(big.Int).SetUint64(100*pt.Config.WeightScale))
}

// weigh fills in the weights of a pool's entries and the sums of its classes.
func (w *walk) weigh(at world, pt *rules.Pool, picked []uint32, ask bool, weights, sums []uint64) (total uint64) {
	clear(sums)
	f := w.on(at, picked)
	for i, num := range pt.Order {
		weights[i] = pt.Weigh(f, num, ask)
		sums[pt.Entries[num].Class] += weights[i]
		total += weights[i]
	}
	w.budget -= len(pt.Order)
	return total
}

// onWay is what the rules see on a way: see [Facts].
type onWay struct {
	w      *walk
	at     world
	picked []uint32 // the entries of the pool at hand that picks must not take again, ascending
}

func (w *walk) on(at world, picked []uint32) *onWay { return &onWay{w, at, picked} }

func (o *onWay) Left(pt *rules.Pool, entry uint32) uint64 {
	if !pt.Entries[entry].Limited {
		return 1
	}
	return o.w.value(o.at, stockOf(pt, entry))
}

func (o *onWay) Picked(_ *rules.Pool, entry uint32) bool { // pools below one with distinct picks are weighed by themselves
	_, found := slices.BinarySearch(o.picked, entry)
	return found
}

func (o *onWay) Live(pt *rules.Pool) bool {
	o.w.budget -= len(pt.Order)
	return pt.Alive(o.w.on(o.at, nil))
}

func (o *onWay) Refilled(pt *rules.Pool) uint64 { return o.w.value(o.at, tallyFact|fact(pt.Refills)) }
func (o *onWay) CodesLeft(list uint32) uint64   { return o.w.value(o.at, listOf(list)) }
func (o *onWay) Spent(b *rules.Budget) uint64   { return o.w.value(o.at, spentOf(b)) }
func (o *onWay) Balance(item uint32) uint64     { return o.w.value(o.at, balanceFact|fact(item)) }
func (o *onWay) Counter(counter uint32) uint64  { return o.w.value(o.at, counterFact|fact(counter)) }
func (o *onWay) Moments(m *rules.Moments) (due uint64, p rules.Pending) {
	if due = o.w.value(o.at, dueOf(m)); o.w.value(o.at, openOf(m)) > 0 {
		p = o.w.s.pending[m]
	}
	return due, p
}

// findDue returns the group of the guarantee that the draw, a request by itself, must hit: see
// [Pool.Due].
func (w *walk) findDue() uint32 {
	pt := w.s.root
	if len(pt.Must) == 0 {
		return 0
	}
	sums := make([]uint64, len(pt.Classes))
	w.weigh(nil, pt, nil, true, make([]uint64, len(pt.Order)), sums)
	return pt.DueAlone(sums)
}

// decided returns, for each class, the chance of one unit of its entries' weights: see
// [Pool.Divide].
func (w *walk) decided(at world, pt *rules.Pool, due uint32, sums []uint64, total uint64) []*big.Rat {
	rates := make([]*big.Rat, len(sums))
	for i := range rates {
		rates[i] = w.none
	}
	all := new(big.Int).SetUint64(pt.Parts(total))
	f := w.on(at, nil)
	pt.Divide(pt.Changing(due, f), due, sums, f, func(in, out uint32, part uint64) bool {
		sum := pt.Among(sums, in, out)
		if part == 0 || sum == 0 {
			return true
		}
		rate := w.fraction(new(big.Int).SetUint64(part), new(big.Int).Mul(all, new(big.Int).SetUint64(sum)))
		for i := range pt.Classes {
			if pt.Classes[i].Within(in, out) {
				rates[i] = w.add(rates[i], rate)
			}
		}
		return true
	})
	return rates
}

// moments fills in the chances of the entries of a pool that a moment makes certain, and returns how
// likely there is no such entry: see [Rules.momentDue].
func (w *walk) moments(at world, pt *rules.Pool, due uint32, all []*big.Rat) (none *big.Rat) {
	none = w.one
	f := w.on(at, nil)
	for _, m := range pt.Moments {
		if none.Sign() == 0 || !pt.Takes(f, m, due) {
			continue
		}
		i := slices.Index(pt.Order, m.Entry)
		switch now, p := f.Moments(m); {
		case now > 0:
			all[i], none = none, new(big.Rat)
		case p.Open > 0:
			missed := w.binomial(p, 0)
			all[i], none = w.mul(none, w.not(missed)), w.mul(none, missed)
		}
	}
	return none
}

// binomial returns how likely exactly n of the moments that are still to be decided have come.
func (w *walk) binomial(p rules.Pending, n uint64) *big.Rat {
	if n > p.Open {
		return new(big.Rat)
	}
	part, rest, whole := new(big.Int).SetUint64(p.Part), new(big.Int).SetUint64(p.Whole-p.Part), new(big.Int).SetUint64(p.Whole)
	if gcd := new(big.Int).GCD(nil, nil, part, whole); gcd.Sign() > 0 {
		part.Quo(part, gcd)
		rest.Quo(rest, gcd)
		whole.Quo(whole, gcd)
	}
	if size := big.NewInt(0).Lsh(w.one.Num(), uint(min(1<<20, p.Open*uint64(whole.BitLen())))); !w.pay(size, size) {
		return new(big.Rat)
	}
	k, all := new(big.Int).SetUint64(n), new(big.Int).SetUint64(p.Open)
	ways := new(big.Int).Binomial(int64(p.Open), int64(n)) // at most catalog.MaxRandomMoments
	ways.Mul(ways, part.Exp(part, k, nil))
	ways.Mul(ways, rest.Exp(rest, k.Sub(all, k), nil))
	return new(big.Rat).SetFrac(ways, whole.Exp(whole, all, nil))
}

// settle divides a way by how many moments have come, where that matters to later picks. All that
// one draw cannot take anyway come to the same.
func (w *walk) settle(y way, m *rules.Moments, most uint64, emit func(way)) {
	p, due, rest := w.s.pending[m], w.value(y.world, dueOf(m)), w.one
	world := w.set(y.world, openOf(m), 0)
	for n := uint64(0); rest.Sign() > 0 && w.budget > 0; n++ {
		chance := rest
		if n < most {
			chance = w.binomial(p, n)
		}
		rest = w.add(rest, new(big.Rat).Neg(chance))
		if chance.Sign() > 0 {
			emit(way{w.mul(y.chance, chance), w.set(world, dueOf(m), m.Due(due, n)), y.todo})
		}
	}
}
