package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Budgets and winning moments.

const hourMillis = 60 * 60 * 1000

// purse is how much of a budget's item was spent, and the steady time of the last spending.
type purse struct {
	spent uint64
	last  int64
}

// spent returns what was spent of a budget in this hour, day, week or month. The steady time of the last
// spending, less all that the clock was set back, is the stamp to compare.
func (m *model) spent(s share) uint64 {
	was := m.purses[s.name]
	if s.per != catalog.PerForever && was.last-m.back < turned(s.per, m.now, m.catalog.Day) {
		return 0
	}
	return was.spent
}

// affords reports whether every budget of a pool has what an entry could give.
func (m *model) affords(p *catalog.Pool, e *catalog.Entry) bool {
	for _, s := range shares(p) {
		if n := m.gives(&e.Reward, s.item); n > 0 && m.spent(s)+n > s.most {
			return false
		}
	}
	return true
}

// spend takes what an entry gives of an item from the open budgets. If that is a range, the outcome
// says how much: in the simulator's catalogs nothing else in such an outcome gives the item.
func (k *walk) spend(q catalog.Quantity) error {
	for _, s := range k.open {
		if s.item != q.Item {
			continue
		}
		n := q.Min
		if q.Min != q.Max {
			n = 0
			for _, it := range k.now.Items {
				if it.Item == q.Item {
					n = it.Quantity
				}
			}
		}
		sum := k.model.spent(s) + n
		if sum > s.most {
			return fmt.Errorf("%d of %q were spent, the budget is %d", sum, s.name, s.most)
		}
		k.purses[s.name] = purse{sum, k.steady()}
	}
	return nil
}

// opens returns the budgets that pay for what an entry gives: those of its pool, and those of the
// entries on the way to it, each once.
func (k *walk) opens(p *catalog.Pool, e *catalog.Entry) []share {
	all := slices.Clone(k.open)
	for _, s := range shares(p) {
		if k.gives(&e.Reward, s.item) > 0 && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// coming is what the model knows of an entry's moments. They come at random, so it keeps every
// possibility: how many have come, and how many of those are due.
type coming struct {
	until int64 // the stamp up to which this is known
	ways  map[momentsWay]bool
}

type momentsWay struct{ come, due uint64 }

// weighted returns the milliseconds from the start of a pool to a time, each multiplied by the weight
// of its hour.
func weighted(p *catalog.Pool, e *catalog.Entry, to int64) (sum uint64) {
	weights := e.Moments.ByHour()
	for at := p.StartsAt; at < min(to, p.EndsAt); {
		end := min((at/hourMillis+1)*hourMillis, to, p.EndsAt)
		sum += uint64(end-at) * weights[at/hourMillis%24]
		at = end
	}
	return sum
}

// momentsCome works out how many moments of an entry can have come by now.
func (m *model) momentsCome(p *catalog.Pool, e *catalog.Entry) *coming {
	name := p.ID + "/" + e.ID
	was := m.moments[name]
	if was.ways == nil {
		was.ways = map[momentsWay]bool{{}: true}
	}
	end := weighted(p, e, p.EndsAt)
	if m.now > was.until && m.now >= p.StartsAt && end > 0 {
		from, to, count := weighted(p, e, was.until), weighted(p, e, m.now), uint64(e.Moments.Count)
		ways := map[momentsWay]bool{}
		for w := range was.ways {
			// The moments that must have come have come, then as many as can have come.
			must, can := func(uint64) bool { return to >= end }, func(uint64) bool { return to > from || to >= end }
			switch e.Moments.Spread {
			case catalog.SpreadEven:
				must = func(i uint64) bool { return end*(2*i+1)/(2*count) < to }
				can = must
			case catalog.SpreadSlots:
				must = func(i uint64) bool { return to >= end*(i+1)/count && to > end*i/count }
				can = func(i uint64) bool { return must(i) || to > max(from, end*i/count) }
			}
			n := w.come
			for n < count && must(n) {
				n++
			}
			for ; ; n++ {
				due := w.due + n - w.come
				if n > w.come && e.Moments.Pass {
					due = 1
				}
				ways[momentsWay{n, due}] = true
				if n >= count || !can(n) {
					break
				}
			}
		}
		was = coming{m.now, ways}
	}
	m.moments[name] = was
	return &was
}

// moment judges a pick where moments may be due. sure is true if the pick took one.
func (k *walk) moment(p *catalog.Pool, picked *catalog.Entry) (sure bool, err error) {
	for i := range p.Entries { // one of them at most has moments: several would have to be followed together
		e := &p.Entries[i]
		if e.Moments.Count == 0 {
			continue
		}
		was := k.momentsCome(p, e)
		left, _ := k.left(p, e)
		there := left > 0 && k.affords(p, e) && k.hasCodes(e)
		ways := map[momentsWay]bool{}
		for w := range was.ways {
			switch {
			case picked.ID == e.ID && there && w.due > 0:
				ways[momentsWay{w.come, w.due - 1}] = true
			case picked.ID != e.ID && (!there || w.due == 0):
				ways[w] = true
			}
		}
		if len(ways) == 0 {
			return false, fmt.Errorf("%s/%s was given at %d; of the moments of %s, of which %d are left, as many can have come and be due: %v", p.ID, picked.ID, k.model.now, e.ID, left, was.ways)
		}
		k.moments[p.ID+"/"+e.ID] = coming{was.until, ways}
		sure = sure || picked.ID == e.ID
	}
	return sure, nil
}

// hand gives the next code of each of a reward's lists.
func (k *walk) hand(w *catalog.Reward) {
	for _, list := range w.Codes {
		k.coded = append(k.coded, kuji.RewardCode{List: list, Number: uint64(len(k.owners[list])), Code: kuji.Redacted})
		k.owners[list] = append(k.owners[list], k.player)
	}
}

// campaignText writes pools with budgets, moments and codes.
func campaignText(r *rand.Rand, pf func(string, ...any)) {
	starts := epoch + r.Int64N(2*hourMillis)
	fund := fmt.Sprintf("{per: %s, of: {cash: %d}, share: fund}", []string{"hour", "day", "week", "month", "forever"}[r.IntN(5)], 8+r.IntN(20))
	pf("  splash:\n    starts: %s\n    ends: %s\n    budget: %s", stamp(starts), stamp(starts+(1+r.Int64N(50))*hourMillis), fund)
	pf("    entries:")
	spread := []string{"even", "slots", "random"}[r.IntN(3)]
	hours := []string{"", ", weights: {0-7: 0, 12-13: 3, 19-23: 5}"}[r.IntN(2)]
	missed := []string{"wait", "pass"}[r.IntN(2)]
	prize := []string{"{items: {sword: 1}}", "{code: keys}", "{items: {cash: 3}}"}[r.IntN(3)]
	pf("      - {id: prize, weight: 0, moments: {count: %d, spread: %s, missed: %s%s}, reward: %s}", 1+r.IntN(6), spread, missed, hours, prize)
	pf("      - {id: cash, weight: 3, reward: {items: {cash: {min: 1, max: 5}}}}")
	pf("      - {id: coupon, weight: 2, reward: [{code: coupons}, {items: {gold: 1}}]}")
	pf("      - {id: through, weight: 1, reward: [{pool: till}, {items: {cash: 1}}]}")
	pf("      - {id: blank, weight: 4}")
	pf("  till:\n    mode: each\n    budget: [%s, {per: hour, of: {gold: %d}}]\n    entries:", fund, 1+r.IntN(6))
	pf("      - {id: coin, chance: 100, reward: {items: {cash: 2}}}")
	pf("      - {id: key, chance: 100, reward: [{code: keys}, {code: coupons}]}")
	pf("      - {id: gold, chance: 100, reward: {items: {gold: 1}}}")
	pf("      - {id: big, chance: 40, reward: {items: {cash: 5}}}")
}
