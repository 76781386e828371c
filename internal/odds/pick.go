package odds

import (
	"math/big"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// picks computes the chances of one pick: which entry of a pool it takes, and how likely.
type picks struct {
	scheme
	weights []uint64 // scratch memory of chances
	due     uint32   // the group of a guarantee that one draw from the root must hit, or 0
}

// chances returns how likely the next pick takes each entry of a pool, in catalog order. due is the
// group of a guarantee that must be hit, or 0. picked are the entries that this draw must not take
// again. In mode each, the chances are those of one roll for each entry.
func (w *picks) chances(at facts, pt *rules.Pool, due uint32, picked []uint32) []*big.Rat {
	all := make([]*big.Rat, len(pt.Order))
	if pt.Config.Mode == catalog.ModeEach {
		for i, num := range pt.Order {
			all[i] = w.rollChance(at, pt, num)
		}
		return all
	}
	for i := range all {
		all[i] = w.zero
	}
	none := w.moments(at, pt, due, all)
	if none.Sign() == 0 || w.budget <= 0 {
		return all
	}
	weights := slices.Grow(w.weights[:0], len(pt.Order))[:len(pt.Order)]
	w.weights = weights
	sums := make([]uint64, len(pt.Classes))
	total := w.weigh(at, pt, picked, true, weights, sums)
	if pt.Collect && total == 0 && pt != w.s.root { // a root is sold out then
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
func (w *picks) rollChance(at facts, pt *rules.Pool, entry uint32) *big.Rat {
	w.budget--
	weight := pt.Weigh(w.on(at, nil), entry, true)
	if weight == 0 {
		return w.zero
	}
	return w.fraction(new(big.Int).SetUint64(weight), new(big.Int).SetUint64(100*pt.Config.WeightScale))
}

// weigh fills in entries' weights and classes' sums. Without ask, conditions count as met.
func (w *picks) weigh(at facts, pt *rules.Pool, picked []uint32, ask bool, weights, sums []uint64) (total uint64) {
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

func (w *picks) sums(at facts, pt *rules.Pool, picked []uint32) []uint64 {
	sums := make([]uint64, len(pt.Classes))
	w.weigh(at, pt, picked, true, make([]uint64, len(pt.Order)), sums)
	return sums
}

// dueIn returns the group that every pick from a calm pool must hit, or 0. Only the root has
// guarantees to keep. A pool with guarantees has one roll, so that is one pick of a draw.
func (w *picks) dueIn(i int) uint32 {
	if i == 0 {
		return w.due
	}
	return 0
}

// dueNow returns the group that a pick must hit, or 0, and how often each guarantee was hit so far.
func (w *picks) dueNow(at facts, t *todo) (due uint32, hits [catalog.MaxTracks]uint64) {
	if !w.promised(t.pool) {
		return w.dueIn(t.pool), hits
	}
	pt := w.s.root
	for k := range pt.Must {
		hits[k] = w.value(at, hitsFact|fact(k))
	}
	due = pt.Due(w.s.count-t.left, w.s.count, &hits, func() []uint64 { return w.sums(at, pt, t.picked) }, w.on(at, nil))
	return due, hits
}

// kept returns the facts after a pick that hit groups: with one hit more for their guarantees.
func (w *picks) kept(at facts, t *todo, groups uint32, hits [catalog.MaxTracks]uint64) facts {
	if !w.promised(t.pool) {
		return at
	}
	w.s.root.Hit(groups, &hits)
	for k := range w.s.root.Must {
		at = w.set(at, hitsFact|fact(k), hits[k])
	}
	return at
}

// decided returns, for each class, the chance of one unit of weight: see [rules.Pool.Divide].
func (w *picks) decided(at facts, pt *rules.Pool, due uint32, sums []uint64, total uint64) []*big.Rat {
	rates := make([]*big.Rat, len(sums))
	for i := range rates {
		rates[i] = w.zero
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

// moments fills in the chances of the entries that a due moment forces, and returns how likely no
// moment forces one: see [rules.Pool.Takes].
func (w *picks) moments(at facts, pt *rules.Pool, due uint32, all []*big.Rat) (none *big.Rat) {
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

// binomial returns how likely exactly n of the open moments have come.
func (w *picks) binomial(p rules.Pending, n uint64) *big.Rat {
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

// settle splits a way by how many moments have come. More than a draw can take, most, are most.
func (w *picks) settle(y way, m *rules.Moments, most uint64, emit func(way)) {
	p, due, rest := w.s.pending[m], w.value(y.facts, dueOf(m)), w.one
	now := w.set(y.facts, openOf(m), 0)
	for n := uint64(0); rest.Sign() > 0 && w.budget > 0; n++ {
		chance := rest
		if n < most {
			chance = w.binomial(p, n)
		}
		rest = w.add(rest, new(big.Rat).Neg(chance))
		if chance.Sign() > 0 {
			emit(way{w.mul(y.chance, chance), w.set(now, dueOf(m), m.Due(due, n)), y.todo})
		}
	}
}

// track says where the player stands in a track, and which draw is a certain hit, all else equal.
func (w *picks) track(pool, i int) view.TrackOdds {
	pt := w.s.pools[pool]
	t, c := &pt.Tracks[i], pt.Config.Tracks
	f := counterFact | fact(t.Counter)
	out := view.TrackOdds{Pool: pt.Config.ID, Track: c[i].Name, Draws: w.s.facts[f]}
	if t.Certain == 0 {
		return out
	}
	sums := w.sums(facts{{f, max(out.Draws, t.Certain-1)}}, pt, nil)
	due := uint32(0)
	if pool == 0 {
		due = pt.DueAlone(sums)
	}
	var unless []string
	out.CertainIn, unless = rules.Place{Pool: pt, Index: i}.CertainIn(out.Draws, due, sums,
		func(entry uint32) bool { return pt.There(w.on(nil, nil), entry) },
		func(track int) string { return c[track].Name })
	out.Unless = strings.Join(unless, ", ")
	return out
}
