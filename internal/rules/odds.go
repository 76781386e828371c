package rules

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
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
	// maxOddsWork bounds the multiplications of machine words that one pool's odds may take, and all
	// else in the same unit: a fact that is looked up is 2, a way that is kept at least 16. It is about a
	// second. What is not a multiplication and can be repeated counts too, and nothing goes on when the
	// budget is used up: else odds that are refused take many times as long as they may.
	maxOddsWork = 1 << 26
	// askEvery is after how many of them the caller is asked whether to go on: some ten thousand times
	// a second.
	askEvery = 1 << 13
	// newcomer stands for a player who was never seen. No player has so long an id.
	newcomer = "a player whose id is longer than the id of any player ever can be"
)

// Going reports whether somebody still waits for what is computed. It is called often, and may let
// others run meanwhile.
type Going func() bool

// OddsError says why odds cannot be computed.
type OddsError struct{ Message string }

func (e *OddsError) Error() string { return e.Message }

// Odds is what the next draw from a pool gives a player.
type Odds struct {
	// Status is how a draw would end, and Subject what that is about. For a newcomer it leaves the
	// price out. If it is not OK, the odds are those if the player could draw.
	Status   Status
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
func spentOf(b *Budget) fact                   { return tallyFact | fact(b.Counter) }
func openOf(m *Moments) fact                   { return tallyFact | fact(m.Counter) }
func dueOf(m *Moments) fact                    { return tallyFact | fact(m.Counter+2) }
func listOf(list uint32) fact                  { return codesFact | fact(list) }
func stockOf(pt *Pool, entry uint32) fact { return fact(EntryKey(pt, entry)) }

// Standing is everything that the next draw from a pool depends on, at one moment.
type Standing struct {
	t       *Tables
	root    *Pool
	pools   []*Pool // root and those below it, each before those it leads to
	facts   map[fact]uint64
	pending map[*Moments]Pending
	count   uint64 // how many draws the request makes
	status  Status
	subject string
}

// Stand is StandFor for a request for one draw.
func (r *Rules) Stand(pool, player string, now int64) (*Standing, error) {
	return r.StandFor(pool, player, 1, now)
}

// StandFor copies what a player's next request for count draws from a pool depends on; the player "" is one
// who was never seen. It returns nil if the catalog has no such pool. The caller holds the realm's lock, for a
// time in proportion to the entries.
func (r *Rules) StandFor(pool, player string, count int, now int64) (*Standing, error) {
	pt := r.t.PoolByID[pool]
	if pt == nil {
		return nil, nil
	}
	s, err := newStanding(r.t, pt)
	if err != nil {
		return nil, err
	}
	s.count = uint64(count)
	cmd := Command{Kind: KindDraw, Player: player, Pool: pool, Count: count}
	if player == "" {
		cmd.Player = newcomer
	}
	r.begin(now, nil, nil)
	defer r.d.end()
	f, num := r.check(&cmd), r.see(cmd.Player)
	if f.status == CodeRequired || player == "" && f.status == InsufficientItems {
		f = failure{}
		if !r.inStock(pt, num, s.count) {
			f = failure{SoldOut, pt.Num}
		}
	}
	if pt.Config.Internal {
		f = failure{Refused, pt.Num}
	}
	s.status, s.subject = f.status, r.subject(f)
	// What the draw costs is spent before it asks for what the player holds.
	s.copyFacts(&sight{
		left:     r.state.Left,
		refilled: func(pt *Pool) uint64 { return r.tally(pt.Refills) },
		balance:  func(item uint32) uint64 { return r.balance(num, item) },
		counter:  func(c uint32) uint64 { return r.counter(num, c) },
		codes: func(list uint32) uint64 {
			left, _ := r.state.CodesLeft(list)
			return left
		},
		spent:  r.spent,
		expect: r.expect,
	})
	return s, nil
}

// subject returns the id that a failure is about.
func (r *Rules) subject(f failure) string {
	switch f.status {
	case OK:
		return ""
	case InsufficientItems, BalanceOverflow:
		return r.state.ItemID(f.subject)
	}
	return r.state.PoolID(f.subject)
}

// standingOf returns the standing of a newcomer in a catalog that need not be in force. No list of
// codes is used up, budgets are full, and no moment has come.
func standingOf(t *Tables, pt *Pool, left func(pool, entry uint32) uint64, refilled func(*Pool) uint64) (*Standing, error) {
	s, err := newStanding(t, pt)
	if err != nil {
		return nil, err
	}
	s.copyFacts(&sight{
		left: left, refilled: refilled,
		balance: func(item uint32) uint64 {
			for _, st := range t.Start {
				if st.Item == item {
					return st.Quantity
				}
			}
			return 0
		},
		counter: func(uint32) uint64 { return 0 },
		codes:   func(uint32) uint64 { return math.MaxUint64 },
		spent:   func(*Budget) uint64 { return 0 },
		expect:  func(*Moments) (uint64, Pending) { return 0, Pending{} },
	})
	return s, nil
}

func newStanding(t *Tables, root *Pool) (*Standing, error) {
	s := &Standing{t: t, root: root, count: 1, facts: map[fact]uint64{}, pending: map[*Moments]Pending{}}
	entries := 0
	var below NumSet
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

// sight is where the facts of a standing come from.
type sight struct {
	left                    func(pool, entry uint32) uint64
	refilled                func(*Pool) uint64
	balance, counter, codes func(uint32) uint64
	spent                   func(*Budget) uint64
	expect                  func(*Moments) (due uint64, p Pending)
}

func (s *Standing) copyFacts(from *sight) {
	for _, pt := range s.pools {
		for i := range pt.Tracks {
			c := pt.Tracks[i].Counter
			s.facts[counterFact|fact(c)] = from.counter(c)
		}
		if pt.Config.Refill > 0 {
			s.facts[tallyFact|fact(pt.Refills)] = from.refilled(pt)
		}
		for _, m := range pt.Moments {
			due, p := from.expect(m)
			s.facts[dueOf(m)], s.facts[openOf(m)], s.pending[m] = due, min(p.Open, 1), p
		}
		for _, num := range pt.Order {
			e := &pt.Entries[num]
			if e.Limited {
				s.facts[stockOf(pt, num)] = from.left(pt.Num, num)
			}
			for _, list := range e.Codes {
				s.facts[listOf(list)] = from.codes(list)
			}
			for _, c := range e.Costs {
				s.facts[spentOf(c.Budget)] = from.spent(c.Budget)
			}
			for _, st := range e.When.Holds {
				s.facts[balanceFact|fact(st.Item)] = from.balance(st.Item)
			}
			for _, item := range e.When.Lacks {
				s.facts[balanceFact|fact(item)] = from.balance(item)
			}
			if len(e.Luck.Steps) > 0 && !e.Luck.Counts {
				s.facts[balanceFact|fact(e.Luck.Item)] = from.balance(e.Luck.Item)
			}
		}
	}
}

// Odds computes the odds. It fails with an *OddsError if that takes too much work, or if nobody waits
// any more.
func (s *Standing) Odds(going Going) (Odds, error) {
	budget := maxOddsWork
	return s.odds(&budget, going)
}

// odds is Odds with no more work than a budget, which it reduces.
func (s *Standing) odds(budget *int, going Going) (Odds, error) {
	given := min(*budget, maxOddsWork)
	w := newWalk(s, given, going)
	defer func() { *budget -= given - w.budget }()
	w.follow(nil)
	w.spread()
	o := Odds{Status: s.status, Subject: s.subject}
	items := map[uint32]*big.Rat{}
	give := func(all []Quantity, times *big.Rat) {
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
	out.CertainIn, unless = Place{pt, i}.CertainIn(out.Draws, due, sums, func(entry uint32) bool {
		e := &pt.Entries[entry]
		return w.left(nil, pt, entry) > 0 && w.hasCodes(nil, e) && w.affords(nil, e)
	}, func(track int) string { return c[track].Name })
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
func (w *walk) chances(at world, pt *Pool, due uint32, picked []uint32) []*big.Rat {
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
func (w *walk) rollChance(at world, pt *Pool, entry uint32) *big.Rat {
	e := &pt.Entries[entry]
	w.budget--
	if w.left(at, pt, entry) == 0 || !w.hasCodes(at, e) || !w.affords(at, e) || !e.When.Met(w.person(at)) {
		return w.none
	}
	return w.fraction(new(big.Int).SetUint64(e.Weight), new(big.Int).SetUint64(100*pt.Config.WeightScale))
}

// weigh fills in the weights of a pool's entries and the sums of its classes: see [Rules.weigh].
func (w *walk) weigh(at world, pt *Pool, picked []uint32, ask bool, weights, sums []uint64) (total uint64) {
	clear(sums)
	for i, num := range pt.Order {
		e, weight := &pt.Entries[num], uint64(0)
		switch left, target := w.left(at, pt, num), e.Target(); {
		case left == 0 || contains(picked, num):
		case !w.hasCodes(at, e), !w.affords(at, e):
		case e.Conditional:
			weight = e.WeightFor(w.person(at), ask)
		case target == nil || w.live(at, target):
			weight = pt.Weight(num, left)
		}
		weights[i] = weight
		sums[e.Class] += weight
		total += weight
	}
	w.budget -= len(pt.Order)
	return total
}

// contains looks for an entry in some that are ascending.
func contains(picked []uint32, entry uint32) bool {
	_, found := slices.BinarySearch(picked, entry)
	return found
}

// person returns what conditions and luck ask of the player on a way.
func (w *walk) person(at world) Person {
	return Person{
		Balance: func(item uint32) uint64 { return w.value(at, balanceFact|fact(item)) },
		Counter: func(n uint32) uint64 { return w.value(at, counterFact|fact(n)) },
	}
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
func (w *walk) decided(at world, pt *Pool, due uint32, sums []uint64, total uint64) []*big.Rat {
	rates := make([]*big.Rat, len(sums))
	for i := range rates {
		rates[i] = w.none
	}
	all := new(big.Int).SetUint64(pt.Parts(total))
	next := func(t *Track) uint64 { return w.value(at, counterFact|fact(t.Counter)) + 1 }
	pt.Divide(pt.Changing(due, next), due, sums, next, func(in, out uint32, part uint64) bool {
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

// hasCodes reports whether every list that an entry gives a code of has one.
func (w *walk) hasCodes(at world, e *Entry) bool {
	for _, list := range e.Codes {
		if w.value(at, listOf(list)) == 0 {
			return false
		}
	}
	return true
}

// affords reports whether the budgets of its pool have what an entry can give: see [Rules.affords].
func (w *walk) affords(at world, e *Entry) bool {
	for _, c := range e.Costs {
		if c.Most > c.Left(w.value(at, spentOf(c.Budget))) {
			return false
		}
	}
	return true
}

// moments fills in the chances of the entries of a pool that a moment makes certain, and returns how
// likely there is no such entry: see [Rules.momentDue].
func (w *walk) moments(at world, pt *Pool, due uint32, all []*big.Rat) (none *big.Rat) {
	none = w.one
	for _, m := range pt.Moments {
		i, e := slices.Index(pt.Order, m.Entry), &pt.Entries[m.Entry]
		if pt.Classes[e.Class].Groups&due != due {
			continue
		}
		if none.Sign() == 0 || w.left(at, pt, m.Entry) == 0 || !w.hasCodes(at, e) || !w.affords(at, e) {
			continue
		}
		switch {
		case w.value(at, dueOf(m)) > 0:
			all[i], none = none, new(big.Rat)
		case w.value(at, openOf(m)) > 0:
			missed := w.binomial(w.s.pending[m], 0)
			all[i], none = w.mul(none, w.not(missed)), w.mul(none, missed)
		}
	}
	return none
}

// binomial returns how likely exactly n of the moments that are still to be decided have come.
func (w *walk) binomial(p Pending, n uint64) *big.Rat {
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
func (w *walk) settle(y way, m *Moments, most uint64, emit func(way)) {
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

// live reports whether something can be drawn from a pool.
func (w *walk) live(at world, pt *Pool) bool {
	if pt.Endless {
		return true
	}
	for _, num := range pt.Order {
		e := &pt.Entries[num]
		w.budget--
		if e.Branch == NoBranch || pt.Weight(num, w.left(at, pt, num)) == 0 {
			continue
		}
		if target := e.Target(); target == nil || w.live(at, target) {
			return true
		}
	}
	return false
}

// refillsLeft returns how often a box can still be filled.
func (w *walk) refillsLeft(at world, pt *Pool) uint64 {
	if pt.Config.Refill == 0 {
		return 0
	}
	return pt.RefillsLeft(w.value(at, tallyFact|fact(pt.Refills)))
}

func (w *walk) left(at world, pt *Pool, entry uint32) uint64 {
	if !pt.Entries[entry].Limited {
		return 1
	}
	return w.value(at, stockOf(pt, entry))
}
