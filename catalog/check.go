package catalog

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/kuji-dev/kuji/internal/document"
)

// Check checks everything that rules rely on, as [Parse] and [Decode] do. Call it for a catalog built
// in Go. The error is an *[Errors] without lines and columns.
func (c *Catalog) Check() error { return c.check(true) }

// check is Check. A catalog from a log may promise what never comes: older builds took such ones.
func (c *Catalog) check(fresh bool) error {
	var errs log
	k := check{report: report{language: c.TextLanguage(), send: func(at *log, _ bool, message string) {
		errs.here = at.here
		errs.add(0, 0, "%s", message)
	}}, c: c, fresh: fresh, itemsKnown: true, poolsKnown: true, raritiesKnown: true}
	k.run()
	return errs.err()
}

// report takes the faults of a check, and knows where in the catalog the check is.
type report struct {
	log
	send func(at *log, onKey bool, message string) // takes a fault at the present path; onKey: of the last key itself
	line func(at []step) int                       // the line of a place in the source; nil: there is no source
	// unreadable reports whether something at a place of the source could not be read; nil: there is no source.
	unreadable func(at []step) bool
	language   string                         // of texts that name none; empty: not known
	there      [len(referred)]map[string]bool // ids that can be referred to, by index in referred; nil: any
}

// check is one pass over a compiled catalog, for [Parse] and [Decode] alike, so that no damaged log brings
// the rules what they do not expect. The table of keys checks limits and references. A poolCheck, with a
// budgetCheck and a pityCheck, checks what spans several keys, and a nestingCheck what pools lead to.
type check struct {
	report
	c     *Catalog
	fresh bool // false for a catalog that was taken before
	// False if the source's items, pools or rarities could not be read. Then references to them can be anything.
	itemsKnown, poolsKnown, raritiesKnown bool

	pools      map[string]int // by id: index in c.Pools
	families   map[string][]string
	entryPaths map[string]bool // of all pools, as pool/entry; nil: nobody asked
	budgets    budgetCheck
	redeemed   map[string]string // by list of codes: the pool whose draws it pays for
}

// poolCheck is the part of a check that is about one pool.
type poolCheck struct {
	*check
	p *Pool
}

func (k *report) fault(format string, args ...any) {
	k.send(&k.log, false, fmt.Sprintf(format, args...))
}

func (k *report) faultOnKey(format string, args ...any) {
	k.send(&k.log, true, fmt.Sprintf(format, args...))
}

// faultAt is fault with key added to the path.
func (k *report) faultAt(key, format string, args ...any) {
	k.faultUnder([]step{{key: key}}, format, args...)
}

// faultUnder is fault with steps added to the path.
func (k *report) faultUnder(steps []step, format string, args ...any) {
	depth := len(k.here)
	k.here = append(k.here, steps...)
	k.fault(format, args...)
	k.here = k.here[:depth]
}

// at runs f with key added to the path.
func (k *report) at(key string, f func()) {
	k.enter(key)
	f()
	k.leave()
}

func (k *check) run() {
	k.pools, k.redeemed = make(map[string]int, len(k.c.Pools)), map[string]string{}
	for i := range k.c.Pools {
		k.pools[k.c.Pools[i].ID] = i
	}
	if k.itemsKnown {
		items := texts(k.c.Items, func(i *Item) string { return i.ID })
		k.thereAre("an item", items)
		var families []string
		families, k.families = k.c.Families()
		k.thereAre("an item or family", slices.Concat(items, families))
	}
	if k.poolsKnown {
		k.thereAre("a pool", texts(k.c.Pools, func(p *Pool) string { return p.ID }))
	}
	k.thereAre("a counter", texts(k.c.Counters, func(c *Counter) string { return c.ID }))
	k.thereAre("a quest", texts(k.c.Quests, func(q *Quest) string { return q.ID }))
	k.thereAre("a season", texts(k.c.Seasons, func(s *Season) string { return s.ID }))
	k.thereAre("a pot", k.c.pots())
	if k.raritiesKnown {
		k.thereAre("a rarity", texts(k.c.Rarities, func(r *Rarity) string { return r.ID }))
	}
	rootShape.check(&k.report, k.c)
	checkDisplays(k)
	k.at("seasons", k.checkSeasons)
	k.at("items", k.checkItems)
	k.checkStart()
	k.at("pools", k.checkPools)
	k.at("counters", k.checkCounters)
	k.at("quests", k.checkQuests)
	k.at("rounds", k.checkRounds)
	k.at("idempotency", k.checkIdempotency)
	k.at("guesses", k.checkGuesses)
	if !k.fresh { // decoded: it is as long as the form
		return
	}
	if n := len(k.c.AppendCanonical(nil)); n > MaxCanonical {
		k.fault("expected at most %d bytes in canonical form, found %d", MaxCanonical, n)
	}
}

func (k *report) between(key string, v, low, high uint64) {
	if v < low || v > high {
		k.faultAt(key, "expected a whole number from %d to %d, found %d", low, high, v)
	}
}

// thereAre says what ids can be referred to.
func (k *report) thereAre(what string, ids []string) {
	all := make(map[string]bool, len(ids))
	for _, id := range ids {
		all[id] = true
	}
	k.there[slices.Index(referred[:], what)] = all
}

func (k *report) suggest(id string, among iter.Seq[string]) string {
	if best := nearest(id, among); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// keys yields the keys of m in order, so that messages do not change from run to run.
func keys[V any](m map[string]V) iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(m)))
}

func (k *check) checkIdempotency() {
	if i := k.c.Idempotency; i.IDs == IDsTimeOrdered && i.Ahead <= MaxAhead && 2*i.Ahead > i.Age {
		found := document.FormatDuration(i.Ahead)
		if i.Ahead == DefaultAhead { // perhaps nobody wrote it
			found += ", the default"
		}
		k.faultAt("ahead", "expected at most half of age, which is %s, found %s", document.FormatDuration(i.Age), found)
	}
}

func (k *check) checkPools() {
	entries, timed := 0, 0
	for i := range k.c.Pools {
		entries += len(k.c.Pools[i].Entries)
		for j := range k.c.Pools[i].Entries {
			if k.c.Pools[i].Entries[j].Moments.Count > 0 {
				timed++
			}
		}
	}
	if entries > MaxEntries {
		k.fault("expected at most %d entries in all pools together, found %d", MaxEntries, entries)
		return
	}
	if timed > MaxMomentEntries {
		k.fault("expected at most %d entries with moments in all pools together, found %d", MaxMomentEntries, timed)
	}
	k.budgets = newBudgetCheck(k)
	for i := range k.c.Pools {
		k.enter(k.c.Pools[i].ID)
		(&poolCheck{k, &k.c.Pools[i]}).run()
		k.leave()
	}
	(&nestingCheck{k, map[int]reach{}}).run()
}

func (k *poolCheck) run() {
	p := k.p
	if entryShapes[p.Mode] == nil || len(p.Entries) == 0 {
		return // the table has said it
	}
	k.prices()
	switch {
	case p.StartsAt <= 0 || p.EndsAt <= 0:
	case p.EndsAt == p.StartsAt:
		k.faultAt("ends", "expected a time after starts, found one at the same moment")
	case p.EndsAt < p.StartsAt:
		k.faultAt("ends", "expected a time after starts, found one before it")
	}
	k.at("limits", k.limits)
	k.at("redeem", k.redeem)
	k.at("budget", func() { k.budgets.of(p) })
	k.at("entries", func() {
		k.entries()
		k.odds()
		k.budgets.affordable(p)
	})
	k.condition(&p.When)
	k.rolls()
	(&pityCheck{poolCheck: k}).run()
	k.box()
	k.internal()
}

// box checks what happens when a raffle's box is empty.
func (k *poolCheck) box() {
	p := k.p
	if len(p.Last.Codes) > 0 {
		k.at("last", func() {
			k.faultAt("code", "expected none: when the last ticket is drawn, the list may be used up")
		})
	}
	if p.Mode != ModeRaffle || p.Refill == 0 {
		return
	}
	if sum := p.oddsSum(); sum > MaxQuantity/(uint64(p.Refill)+1) {
		k.faultAt("refill", "expected at most %d tickets in all boxes together, found %d in each of %d",
			uint64(MaxQuantity), sum, p.Refill+1)
	}
}

// internal refuses settings of internal pools that nothing would use.
func (k *poolCheck) internal() {
	p := k.p
	if !p.Internal {
		return
	}
	for _, rule := range []struct {
		key string
		set bool
	}{
		{"price", len(p.Price) > 0}, {"bundles", len(p.Bundles) > 0}, {"price_by", !p.PriceBy.Empty()}, {"free", p.Free.Per != 0}, {"redeem", len(p.Redeem) > 0}, {"starts", p.StartsAt != 0},
		{"ends", p.EndsAt != 0}, {"max_count", p.MaxCount != DefaultMaxCount}, {"limits", len(p.Limits) > 0}, {"when", !p.When.Empty()}, {"guarantee", len(p.Guarantees) > 0},
	} {
		if rule.set {
			k.faultAt(rule.key, "expected none in an internal pool: nobody draws from it directly")
		}
	}
}

func (k *poolCheck) prices() {
	p := k.p
	if len(p.Bundles) > 0 && len(p.Price) == 0 {
		k.faultAt("bundles", "expected a price too: without one, drawing is free")
	}
	k.at("price", func() {
		for i := range p.Price {
			k.priceOf(p.Price[i])
		}
	})
	k.at("bundles", func() {
		for i := range k.each(len(p.Bundles)) {
			k.priceOf(p.Bundles[i].Price)
			k.fitsCount(p.Bundles[i].Draws)
			if i > 0 && p.Bundles[i].Draws <= p.Bundles[i-1].Draws {
				k.faultAt("draws", "expected more than %d, as in the bundle before, found %d",
					p.Bundles[i-1].Draws, p.Bundles[i].Draws)
			}
		}
	})
	k.at("price_by", k.priceBy)
	if p.Free != (Free{}) && len(p.Price) == 0 {
		k.faultAt("free", "expected a price too: without one, every draw is free")
	}
}

// fitsCount checks a number of draws that a request must be able to ask for.
func (k *poolCheck) fitsCount(draws uint32) {
	if draws <= MaxDrawCount && draws > k.p.MaxCount {
		k.faultAt("draws", "expected at most %d, the pool's max_count, found %d", k.p.MaxCount, draws)
	}
}

func (k *poolCheck) rolls() {
	p := k.p
	k.enter("rolls")
	defer k.leave()
	switch {
	case len(p.Guarantees) > 0 && p.Rolls.Max > 1:
		k.fault("expected one roll in a pool with a guarantee, found up to %d", p.Rolls.Max)
	case !p.Rolls.Distinct:
	case p.Mode != ModeWeighted:
		k.fault("expected distinct rolls in mode weighted only")
	case len(p.Tracks) > 0:
		k.fault("expected no pity in a pool with distinct rolls")
	}
}

// heaviest returns the most that an entry can weigh: in mode raffle its tickets.
func (p *Pool) heaviest(e *Entry) uint64 {
	if p.Mode == ModeRaffle {
		return e.Stock.Count
	}
	w := e.Weight
	for _, s := range e.Luck.Steps {
		w = max(w, s.Weight)
	}
	return w
}

func (k *poolCheck) limits() {
	all := k.p.Limits
	for i := range k.each(len(all)) {
		l := all[i]
		if l.Per != PerForever {
			k.between("draws", l.Draws, 1, MaxTimedDraws)
		}
		same := func(o PlayerLimit) bool { return o.Per == l.Per && o.Window == l.Window }
		if j := slices.IndexFunc(all[:i], same); j >= 0 {
			k.fault("duplicate limit: limits[%d] counts over the same time", j)
		}
	}
}

func (k *poolCheck) entries() {
	p := k.p
	first, adaptive := make(map[string]int, len(p.Entries)), 0
	for i := range k.each(len(p.Entries)) {
		e := &p.Entries[i]
		if j, taken := first[e.ID]; taken {
			k.faultAt("id", "duplicate id %s: entries[%d] has it too", quote(e.ID), j)
		} else {
			first[e.ID] = i
		}
		k.stock(e)
		if p.Mode == ModeEach && e.Group != "" { // the table has no group for it
			k.at("group", func() { entryGroup.check(&k.report, e) })
		}
		k.condition(&e.When)
		if l := &e.Luck; len(l.Steps)+len(l.Item)+len(l.Track)+len(l.Counter) > 0 {
			k.at("luck", func() { k.luck(l) })
		}
		if !e.Moments.Empty() {
			k.at("moments", func() { k.moments(e) })
		}
		always := k.always(e)
		switch {
		case always:
		case p.Mode == ModeRaffle:
			k.fault("expected no condition in a raffle: a ticket is for everybody")
		default:
			adaptive++
		}
		switch {
		case !always || len(e.Reward.Codes) == 0:
		case p.Mode == ModeRaffle:
			k.faultAt("reward", "expected no code in a raffle, where the list may be used up before the tickets: let the ticket draw from a pool that has something else too")
		default:
			adaptive++
		}
		if e.Unique && len(e.Reward.Items) == 0 {
			k.faultAt("unique", "expected items in the reward: a player can have them only once")
		}
	}
	if adaptive > MaxAdaptive {
		k.fault("expected at most %d entries with a condition or a code, found %d", MaxAdaptive, adaptive)
	}
}

func (k *poolCheck) stock(e *Entry) {
	switch {
	case e.Stock.Unlimited && k.p.Mode == ModeRaffle:
		k.faultAt("stock", "expected a number, found unlimited: the odds in a raffle are the remaining stock")
	case e.Stock.Unlimited && e.Stock.Count != 0:
		k.faultAt("stock", "expected unlimited or a number, found both")
	}
	if k.p.Mode == ModeRaffle && e.Weight != 0 {
		k.faultAt("weight", "expected none, found %d: the odds in a raffle are the remaining stock", e.Weight)
	}
}

// odds checks the weights, tickets or chances of a pool, and that something can be drawn at all.
func (k *poolCheck) odds() {
	p := k.p
	digits := map[Mode]uint8{ModeWeighted: maxDigits, ModeRaffle: 0, ModeEach: MaxDropDigits}[p.Mode]
	if !powerUpTo(p.WeightScale, digits) {
		k.fault("expected weights scaled by a power of ten up to 10^%d, found %d", digits, p.WeightScale)
	}
	key := map[Mode]string{ModeWeighted: "weight", ModeRaffle: "stock", ModeEach: "chance"}[p.Mode]
	sum, stocked, always := uint64(0), false, false
	for i := range p.Entries {
		e := &p.Entries[i]
		odds, wrong := p.heaviest(e), ""
		switch {
		case p.Mode == ModeEach && odds > 100*p.WeightScale:
			wrong = "expected at most 100 percent"
		case p.Mode != ModeEach && odds > MaxWeightSum-sum:
			wrong = fmt.Sprintf("expected odds whose sum, scaled by %d, is at most %d; it is larger from here on", p.WeightScale, uint64(MaxWeightSum))
		}
		if wrong != "" {
			k.faultUnder([]step{{index: i, inList: true}, {key: key}}, "%s", wrong)
			return
		}
		if p.Mode != ModeEach {
			sum += odds
		}
		if odds > 0 && (e.Stock.Unlimited || e.Stock.Count > 0) {
			stocked, always = true, always || k.everybody(e)
		}
	}
	switch {
	case always || stocked && p.Mode == ModeEach:
	case stocked:
		k.collect()
	case p.Mode == ModeRaffle:
		k.fault("expected at least one ticket, found a stock of 0 in every entry")
	default:
		k.fault("expected an entry with a %s above 0 and stock, found none", key)
	}
}
