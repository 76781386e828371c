package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// Budgets, winning moments and codes: what the model knows of them, and the imports of codes.

const hourMillis = 60 * 60 * 1000

// purse is what was spent of one item of a budget, and the steady time when something last was.
type purse struct {
	spent uint64
	last  int64
}

// share is one item of a budget of a pool.
type share struct {
	name string
	per  catalog.Per
	item string
	most uint64
}

func shares(p *catalog.Pool) (all []share) {
	for _, b := range p.Budgets {
		owner := "pool " + p.ID
		if b.Share != "" {
			owner = "all " + b.Share
		}
		for _, s := range b.Of {
			all = append(all, share{fmt.Sprint(owner, " ", b.Per, " ", s.Item), b.Per, s.Item, s.Quantity})
		}
	}
	return all
}

// spent returns what was spent of a budget in the hour or day at hand. The hour or day of the last
// spending is that of the stamp which has its steady time now.
func (m *model) spent(s share) uint64 {
	length := map[catalog.Per]int64{catalog.PerHour: hourMillis, catalog.PerDay: 24 * hourMillis}[s.per]
	was := m.purses[s.name]
	if length > 0 && max(0, was.last-m.back)/length < m.now/length {
		return 0
	}
	return was.spent
}

// costly reports whether an entry can give what a budget of its pool is of.
func (m *model) costly(p *catalog.Pool, e *catalog.Entry) bool {
	return slices.ContainsFunc(shares(p), func(s share) bool { return supplyOf(m).gives(&e.Reward, s.item) > 0 })
}

// affords reports whether every budget of its pool has what an entry could give.
func (m *model) affords(p *catalog.Pool, e *catalog.Entry) bool {
	for _, s := range shares(p) {
		if n := supplyOf(m).gives(&e.Reward, s.item); n > 0 && m.spent(s)+n > s.most {
			return false
		}
	}
	return true
}

// spend takes what an entry gives of an item from the budgets that are open. Of a range it is what
// the outcome says: in the simulator's catalogs such an outcome gives no more of the item.
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

// opens returns the budgets from which what an entry gives comes: those of its pool besides those of
// the entries on the way to it, each once.
func (k *walk) opens(p *catalog.Pool, e *catalog.Entry) []share {
	all := slices.Clone(k.open)
	for _, s := range shares(p) {
		if supplyOf(k.model).gives(&e.Reward, s.item) > 0 && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// coming is what the model knows of an entry's moments. When they come is chosen at random, so it
// knows all ways in which it can have been: how many have come, and how many of those are due.
type coming struct {
	until int64 // the stamp up to which it is decided
	ways  map[momentsWay]bool
}

type momentsWay struct{ come, due uint64 }

// weighted returns the milliseconds from the start of a pool to a time, each as often as its hour
// weighs.
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
			// could has the numbers that are possible: from least on, as long as the next can have
			// come.
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

// moment judges whether a pick took the entry of a moment that was due. sure is true if it did.
func (k *walk) moment(p *catalog.Pool, picked *catalog.Entry) (sure bool, err error) {
	for i := range p.Entries { // at most one: more would need to be followed together
		e := &p.Entries[i]
		if e.Moments.Count == 0 {
			continue
		}
		was := k.momentsCome(p, e)
		left, _ := k.left(p, e)
		there := left > 0 && k.affords(p, e) && listsOf(k.model).hasCodes(e)
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

// hasCodes reports whether every list has a code for an entry.
func (m lists) hasCodes(e *catalog.Entry) bool {
	return !slices.ContainsFunc(e.Reward.Codes, func(list string) bool { return len(m.owners[list]) >= len(m.codes[list]) })
}

// hand gives the next code of each list of a reward.
func (k *walk) hand(w *catalog.Reward) {
	for _, list := range w.Codes {
		k.coded = append(k.coded, kuji.RewardCode{List: list, Number: uint64(len(k.owners[list])), Code: kuji.Redacted})
		k.owners[list] = append(k.owners[list], k.player)
	}
}

// cloneCampaigns clones what a command may change.
func (m *model) cloneCampaigns(c *model) {
	c.purses, c.moments, c.owners, c.uses = maps.Clone(m.purses), maps.Clone(m.moments), maps.Clone(m.owners), maps.Clone(m.uses)
	for list, owners := range c.owners {
		c.owners[list] = slices.Clip(owners)
	}
	for code, users := range c.uses {
		c.uses[code] = slices.Clip(users)
	}
}

// A realm gets files of codes in a fixed order, each until it is acknowledged.

const codeFiles = 9

var codeLists = []string{"keys", "coupons", "caps"}

// codeFile returns a file: its list and its codes, some of which are in the file of the list before,
// or twice.
func codeFile(n int) (list string, codes []string) {
	list = codeLists[n%3]
	for i := range 3 + n/3 {
		codes = append(codes, fmt.Sprintf("%s-%d", list, n/3*2+i))
	}
	return list, append(codes, codes[0])
}

// importCodes follows an import in the log.
func (m lists) importCodes(rec kuji.Record) error {
	list, codes := codeFile(m.files)
	m.files++
	before := len(m.codes[list])
	for _, code := range codes {
		if !slices.Contains(m.codes[list], code) {
			m.codes[list] = append(m.codes[list], code)
		}
	}
	if added := len(m.codes[list]) - before; m.files > codeFiles || rec.List != list || rec.Count != added {
		return fmt.Errorf("%d codes of %s were imported, the model says %d of %s", rec.Count, rec.List, added, list)
	}
	return nil
}

// codeOf returns the code that a list has at a place, whatever has been imported of it.
func codeOf(list string, number uint64) string {
	var all []string
	for n := range codeFiles {
		if name, codes := codeFile(n); name == list {
			all = append(all, codes...)
		}
	}
	for i := 0; i < len(all); i++ {
		if slices.Contains(all[:i], all[i]) {
			all = slices.Delete(all, i, i+1)
			i--
		}
	}
	if number >= uint64(len(all)) {
		return ""
	}
	return all[number]
}

// bring imports the next file of codes, or one again that was acknowledged.
func (s *session) bring() {
	w := s.w
	n := s.files
	if n == codeFiles || n > 0 && w.schedule.IntN(4) == 0 {
		n = w.schedule.IntN(n)
	}
	list, codes := codeFile(n)
	got, err := s.realm.ImportCodes(context.Background(), list, codes)
	w.note("%s: import file %d of %s: %+v %v", s.name, n, list, got, kuji.CodeOf(err))
	switch {
	case err != nil && kuji.CodeOf(err) == kuji.CodeOverloaded && w.cfg.Faults&Clock != 0: // the open batch has set the clock
	case err != nil:
		s.told(err, nil)
	case n < s.files:
		if got.Added > 0 {
			w.fail("%d codes of %s were added that had been imported", got.Added, list)
		}
	case s.poisoned:
		w.fail("codes were imported after the realm had stopped")
	default:
		s.files++
	}
}

// codesRead is a list of codes that was shown.
type codesRead struct {
	list  string
	view  kuji.CodesView
	given []kuji.GivenCode
}

// readCodes looks at a list of codes, without waiting.
func (s *session) readCodes() {
	w := s.w
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a read that would have to wait is refused
	rd := read{position: s.realm.Stats().Position, codes: &codesRead{list: codeLists[w.schedule.IntN(3)]}}
	var err error
	rd.codes.view, rd.codes.given, err = s.realm.ExportCodes(ctx, rd.codes.list, 0, 100)
	w.note("codes %s: %+v %v, %v", rd.codes.list, rd.codes.view, rd.codes.given, kuji.CodeOf(err))
	switch code := kuji.CodeOf(err); {
	case code == kuji.CodeCanceled && errors.Is(err, context.Canceled), code == kuji.CodeNotFound:
		return
	case code == kuji.CodeFailed && (s.excused() || vfs.Short(err)):
		s.poisoned = true
		return
	case err != nil:
		w.fail("a list of codes cannot be read: %w", err)
	}
	if rd.codes.view.Position > rd.position {
		w.fail("codes show position %d, only %d is durable", rd.codes.view.Position, rd.position)
	}
	w.report.Reads++
	s.reads = append(s.reads, rd)
}

// exports compares a list of codes with the model.
func (m lists) exports(rd *codesRead) error {
	owners := m.owners[rd.list]
	if int(rd.view.Codes) != len(m.codes[rd.list]) || int(rd.view.Given) != len(owners) || len(rd.given) != len(owners) {
		return fmt.Errorf("%s has %+v and %d were given, the model says %d of %d", rd.list, rd.view, len(rd.given), len(owners), len(m.codes[rd.list]))
	}
	redeemed, uses := 0, 0
	for i := range m.codes[rd.list] {
		n := len(m.uses[spelled(rd.list, uint64(i))])
		redeemed, uses = redeemed+min(n, 1), uses+n
	}
	if int(rd.view.Redeemed) != redeemed || int(rd.view.Uses) != uses {
		return fmt.Errorf("%s has %+v, the model says %d redeemed in %d uses", rd.list, rd.view, redeemed, uses)
	}
	for i, g := range rd.given {
		want := kuji.RewardCode{List: rd.list, Number: uint64(i), Code: m.codes[rd.list][i]}
		if g.Code != want || g.Player != owners[i] {
			return fmt.Errorf("%s (%q) went to %s, the model says %s (%q) to %s", g.Code, g.Code.Code, g.Player, want, want.Code, owners[i])
		}
	}
	return nil
}

// redacted returns outcomes as records have them, and an error if a code was not the one of its
// place in its list.
func redacted(outcomes []kuji.Outcome) ([]kuji.Outcome, error) {
	all := slices.Clone(outcomes)
	for i := range all {
		all[i].Codes = slices.Clone(all[i].Codes)
		for j, c := range all[i].Codes {
			if want := codeOf(c.List, c.Number); c.Code != want {
				return nil, fmt.Errorf("%s was %q for its player, and was imported as %q", c, c.Code, want)
			}
			all[i].Codes[j].Code = kuji.Redacted
		}
	}
	return all, nil
}

// sealed returns a result as a record has it.
func sealed(res kuji.Result) (kuji.Result, error) {
	var err error
	if res.Outcomes, err = redacted(res.Outcomes); err != nil {
		return res, err
	}
	res.Members = slices.Clone(res.Members)
	for i := range res.Members {
		if res.Members[i], err = sealed(res.Members[i]); err != nil {
			return res, err
		}
	}
	return res, nil
}

// campaignText writes pools with budgets, moments and codes.
func campaignText(r *rand.Rand, pf func(string, ...any)) {
	starts := epoch + r.Int64N(2*hourMillis)
	fund := fmt.Sprintf("{per: %s, of: {cash: %d}, share: fund}", []string{"hour", "day", "forever"}[r.IntN(3)], 8+r.IntN(20))
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
