package catalog

import (
	"fmt"
	"iter"
	"slices"
)

// Check checks everything that rules rely on. [Parse] and [Decode] have done so;
// call it for a catalog built in Go. The error is an *[Errors] without lines and
// columns.
func (c *Catalog) Check() error { return c.check(true) }

// check is Check. An old log can have catalogs that are not taken any more, since they promise what never
// comes: what is not fresh may.
func (c *Catalog) check(fresh bool) error {
	var errs log
	k := check{report: report{send: func(at *log, _ bool, message string) {
		errs.here = at.here
		errs.add(0, 0, "%s", message)
	}}, c: c, fresh: fresh, itemsKnown: true, poolsKnown: true}
	k.run()
	return errs.err()
}

// report takes the faults of a check, and knows where in the catalog the check is.
type report struct {
	log
	// send takes a fault at the present path; onKey: of the last key itself.
	send func(at *log, onKey bool, message string)
	// line returns the line of a place in the source. It is nil without a source.
	line func(at []step) int
}

// check is one pass over a compiled catalog. [Parse] and [Decode] share it, so
// that what one accepts the other does, but for promises that never come, and so
// that no log, however damaged, brings the rules what they do not expect.
//
// What is about one pool is a poolCheck, with a budgetCheck and a pityCheck; what pools lead to is a
// nestingCheck.
type check struct {
	report
	c *Catalog
	// fresh is false for a catalog that was taken before.
	fresh bool
	// itemsKnown and poolsKnown are false when the source's items or pools
	// could not be read, so that references to them say nothing.
	itemsKnown, poolsKnown bool

	items map[string]*Item
	pools map[string]int

	budgets  budgetCheck
	redeemed map[string]string // by list of codes: the pool whose draws it pays for
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

// at runs f with key added to the path.
func (k *report) at(key string, f func()) {
	k.enter(key)
	f()
	k.leave()
}

func (k *check) run() {
	k.name(k.c.Name)
	k.at("zone", func() { k.zone(&k.c.Zone) })
	k.at("items", k.checkItems)
	k.at("pools", k.checkPools)
	k.at("start", func() { k.stacks(k.c.Start) })
	k.at("idempotency", k.checkIdempotency)
	k.at("guesses", k.checkGuesses)
	if n := len(k.c.AppendCanonical(nil)); n > MaxCanonical {
		k.fault("expected at most %d bytes in canonical form, found %d", MaxCanonical, n)
	}
}

func (k *report) name(s string) {
	if wrong := textProblem(s); wrong != "" {
		k.at("name", func() { k.fault("expected %s, found %s: %s", nameShape{}.expects(), quote(s), wrong) })
	}
}

func (k *report) between(key string, v, low, high uint64) {
	if v < low || v > high {
		k.at(key, func() { k.fault("expected a whole number from %d to %d, found %d", low, high, v) })
	}
}

func (k *check) checkItems() {
	k.items = make(map[string]*Item, len(k.c.Items))
	if len(k.c.Items) > MaxItems {
		k.fault("expected at most %d items, found %d", MaxItems, len(k.c.Items))
		return
	}
	for i := range k.c.Items {
		item := &k.c.Items[i]
		k.enter(item.ID)
		if k.newID(item.ID, "an item", k.items[item.ID] != nil) {
			k.items[item.ID] = item
		}
		if item.Kind != KindItem && item.Kind != KindCurrency && !isProbe(item.Kind) {
			k.at("kind", func() { k.fault("expected item or currency, found kind %d", item.Kind) })
		}
		k.name(item.Name)
		k.leave()
	}
}

// newID checks an id that is being defined.
func (k *report) newID(id, what string, taken bool) bool {
	switch {
	case !ValidID(id):
		k.faultOnKey("expected %s, found %s", idShape{what}.expects(), quote(id))
	case taken:
		k.faultOnKey("duplicate id")
	default:
		return true
	}
	return false
}

// item checks a reference to an item, which is the last key of the path.
func (k *check) item(id string) {
	item := k.items[id]
	switch {
	case item == nil && !k.itemsKnown:
	case item == nil:
		k.faultOnKey("there is no item %s%s", quote(id), k.suggest(id, keys(k.items)))
	}
}

func (k *report) suggest(id string, among iter.Seq[string]) string {
	if best := nearest(id, among); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// keys yields the keys of m in order, so that messages do not change from run
// to run.
func keys[V any](m map[string]V) iter.Seq[string] {
	sorted := make([]string, 0, len(m))
	for key := range m {
		sorted = append(sorted, key)
	}
	slices.Sort(sorted)
	return slices.Values(sorted)
}

// stacks checks a price or the start.
func (k *check) stacks(all []Stack) {
	if len(all) > MaxBundle {
		k.fault("expected at most %d items, found %d", MaxBundle, len(all))
		return
	}
	for i, s := range all {
		k.enter(s.Item)
		k.item(s.Item)
		if slices.ContainsFunc(all[:i], func(o Stack) bool { return o.Item == s.Item }) {
			k.faultOnKey("duplicate id")
		}
		if s.Quantity < 1 || s.Quantity > MaxQuantity {
			k.fault("expected a whole number from 1 to %d, found %d", uint64(MaxQuantity), s.Quantity)
		}
		k.leave()
	}
}

func (k *check) checkIdempotency() {
	i := k.c.Idempotency
	k.between("count", uint64(i.Count), 1, MaxIdempotencyCount)
	if i.Age < MinIdempotencyAge || i.Age > MaxIdempotencyAge {
		k.at("age", func() { k.fault("expected from %s to %s, found %s", MinIdempotencyAge, MaxIdempotencyAge, i.Age) })
	}
	ahead := func(format string, args ...any) { k.at("ahead", func() { k.fault(format, args...) }) }
	switch {
	case i.IDs != IDsAny && i.IDs != IDsTimeOrdered:
		k.at("ids", func() { k.fault("expected any or time-ordered, found form %d", i.IDs) })
	case i.IDs == IDsAny && i.Ahead != 0:
		ahead("expected ids: time-ordered as well")
	case i.IDs == IDsAny:
	case i.Ahead < MinAhead || i.Ahead > MaxAhead:
		ahead("expected from %s to %s, found %s", MinAhead, MaxAhead, i.Ahead)
	case 2*i.Ahead > i.Age:
		found := formatDuration(i.Ahead)
		if i.Ahead == DefaultAhead { // perhaps nobody wrote it
			found += ", the default"
		}
		ahead("expected at most half of age, which is %s, found %s", formatDuration(i.Age), found)
	}
}

func (k *check) checkPools() {
	k.pools = make(map[string]int, len(k.c.Pools))
	k.redeemed = map[string]string{}
	if len(k.c.Pools) > MaxPools {
		k.fault("expected at most %d pools, found %d", MaxPools, len(k.c.Pools))
		return
	}
	entries, timed := 0, 0
	for i := range k.c.Pools {
		id := k.c.Pools[i].ID
		_, taken := k.pools[id]
		k.enter(id)
		if k.newID(id, "a pool", taken) {
			k.pools[id] = i
		}
		k.leave()
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
	(&nestingCheck{k, make([]reach, len(k.c.Pools))}).run()
}

func (k *poolCheck) run() {
	p := k.p
	k.name(p.Name)
	if p.Mode < ModeWeighted || p.Mode > ModeEach {
		k.at("mode", func() { k.fault("expected weighted, raffle or each, found mode %d", p.Mode) })
		return
	}
	k.prices()
	k.times()
	k.between("max_count", uint64(p.MaxCount), 1, MaxDrawCount)
	k.at("limits", func() { k.limits(p.Limits) })
	k.at("redeem", k.redeem)
	if len(p.Entries) == 0 {
		k.fault("expected at least one entry, found none")
		return
	}
	k.at("budget", func() { k.budgets.of(p) })
	k.at("entries", func() {
		k.entries()
		k.odds()
		k.budgets.affordable(p)
	})
	k.at("when", func() { k.condition(&p.When) })
	k.rolls()
	(&pityCheck{poolCheck: k}).run()
	k.box()
	k.internal()
}

// box checks what happens when a raffle's box is empty.
func (k *poolCheck) box() {
	p := k.p
	k.at("last", func() {
		if p.Mode != ModeRaffle && !p.Last.Nothing() {
			k.fault("expected none, found a reward: only a raffle has a last ticket")
		}
		k.reward(&p.Last)
		if len(p.Last.Codes) > 0 {
			k.at("code", func() { k.fault("expected none: when the last ticket is drawn, the list may be used up") })
		}
	})
	switch sum := p.oddsSum(); {
	case p.Refill == 0:
	case p.Mode != ModeRaffle:
		k.at("refill", func() { k.fault("expected none, found %d: only a raffle has a box", p.Refill) })
	case p.Refill > MaxRefill:
		k.between("refill", uint64(p.Refill), 0, MaxRefill)
	case sum > MaxQuantity/(uint64(p.Refill)+1):
		k.at("refill", func() {
			k.fault("expected at most %d tickets in all boxes together, found %d in each of %d", uint64(MaxQuantity), sum, p.Refill+1)
		})
	}
}

// internal refuses what nobody would ever come by.
func (k *poolCheck) internal() {
	p := k.p
	if !p.Internal {
		return
	}
	for _, rule := range []struct {
		key string
		set bool
	}{
		{"price", len(p.Price) > 0}, {"bundles", len(p.Bundles) > 0}, {"free", p.Free.Per != 0}, {"redeem", len(p.Redeem) > 0}, {"starts", p.StartsAt != 0},
		{"ends", p.EndsAt != 0}, {"max_count", p.MaxCount != DefaultMaxCount}, {"limits", len(p.Limits) > 0}, {"when", !p.When.Empty()}, {"guarantee", len(p.Guarantees) > 0},
	} {
		if rule.set {
			k.at(rule.key, func() { k.fault("expected none in an internal pool: nobody draws from it directly") })
		}
	}
}

func (k *poolCheck) prices() {
	p := k.p
	k.at("price", func() {
		if len(p.Price) > MaxPrices {
			k.fault("expected at most %d prices, found %d", MaxPrices, len(p.Price))
			return
		}
		for i, one := range p.Price {
			k.price(one, i, len(p.Price) > 1)
		}
	})
	k.at("bundles", func() {
		switch {
		case len(p.Bundles) > MaxPrices:
			k.fault("expected at most %d bundles, found %d", MaxPrices, len(p.Bundles))
			return
		case len(p.Bundles) > 0 && len(p.Price) == 0:
			k.fault("expected a price too: without one, drawing is free")
		}
		for i := range p.Bundles {
			b := &p.Bundles[i]
			k.enterIndex(i)
			k.between("draws", uint64(b.Draws), 2, MaxDrawCount)
			k.fitsCount(b.Draws)
			if i > 0 && b.Draws <= p.Bundles[i-1].Draws {
				k.at("draws", func() {
					k.fault("expected more than %d, as in the bundle before, found %d", p.Bundles[i-1].Draws, b.Draws)
				})
			}
			k.at("price", func() { k.price(b.Price, 0, false) })
			k.leave()
		}
	})
	if f := p.Free; f != (Free{}) {
		k.at("free", func() {
			if f.Per != PerForever && f.Per != PerDay && f.Per != PerWeek {
				k.at("per", func() { k.fault("expected forever, day or week, found %d", f.Per) })
			}
			k.between("draws", f.Draws, 1, MaxTimedDraws)
			if len(p.Price) == 0 {
				k.fault("expected a price too: without one, every draw is free")
			}
		})
	}
}

// fitsCount checks a number of draws that a request must be able to ask for.
func (k *poolCheck) fitsCount(draws uint32) {
	if draws <= MaxDrawCount && draws > k.p.MaxCount {
		k.at("draws", func() { k.fault("expected at most %d, the pool's max_count, found %d", k.p.MaxCount, draws) })
	}
}

func (k *poolCheck) price(all []Stack, i int, listed bool) {
	if listed {
		k.enterIndex(i)
		defer k.leave()
	}
	if len(all) == 0 {
		k.fault("expected at least one item, found none")
	}
	k.stacks(all)
}

func (k *poolCheck) rolls() {
	p := k.p
	k.enter("rolls")
	defer k.leave()
	if p.Rolls.Min < 1 || p.Rolls.Max > MaxPicks || p.Rolls.Min > p.Rolls.Max {
		k.fault("expected whole numbers from 1 to %d, min not above max, found min %d and max %d", MaxPicks, p.Rolls.Min, p.Rolls.Max)
		return
	}
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

func (k *poolCheck) times() {
	p := k.p
	k.instant("starts", p.StartsAt)
	k.instant("ends", p.EndsAt)
	if p.StartsAt > 0 && p.EndsAt > 0 && p.EndsAt <= p.StartsAt {
		k.at("ends", func() { k.fault("expected a time after starts, found one %s", beforeOrAt(p)) })
	}
}

func (k *report) instant(key string, at int64) {
	if at < 0 || at > maxInstant {
		k.at(key, func() { k.fault("expected Unix milliseconds from 1 to %d, found %d", int64(maxInstant), at) })
	}
}

func beforeOrAt(p *Pool) string {
	if p.EndsAt == p.StartsAt {
		return "at the same moment"
	}
	return "before it"
}

func (k *poolCheck) limits(all []PlayerLimit) {
	if len(all) > MaxPlayerLimits {
		k.fault("expected at most %d limits, found %d", MaxPlayerLimits, len(all))
		return
	}
	for i, l := range all {
		k.enterIndex(i)
		if l.Per < PerForever || l.Per > PerWindow {
			k.at("per", func() { k.fault("expected forever, day, week or window, found %d", l.Per) })
		}
		if l.Per == PerWindow {
			k.between("window", uint64(l.Window), 1, uint64(MaxWindow.Milliseconds()))
		} else if l.Window != 0 {
			k.at("window", func() { k.fault("expected none, found %d milliseconds: it belongs to per: window", l.Window) })
		}
		if l.Per == PerForever {
			k.between("draws", l.Draws, 1, MaxQuantity)
		} else {
			k.between("draws", l.Draws, 1, MaxTimedDraws)
		}
		same := func(o PlayerLimit) bool { return o.Per == l.Per && o.Window == l.Window }
		if j := slices.IndexFunc(all[:i], same); j >= 0 {
			k.fault("duplicate limit: limits[%d] counts over the same time", j)
		}
		k.leave()
	}
}

func (k *poolCheck) entries() {
	p := k.p
	first, adaptive := make(map[string]int, len(p.Entries)), 0
	for i := range p.Entries {
		e := &p.Entries[i]
		k.enterIndex(i)
		k.enter("id")
		if j, taken := first[e.ID]; taken {
			k.fault("duplicate id %s: entries[%d] has it too", quote(e.ID), j)
		} else if k.newID(e.ID, "an entry", false) {
			first[e.ID] = i
		}
		k.leave()
		k.stock(e)
		if e.Group != "" && !ValidID(e.Group) {
			k.at("group", func() { k.fault("expected %s, found %s", idShape{"a group"}.expects(), quote(e.Group)) })
		}
		k.at("when", func() { k.condition(&e.When) })
		k.at("luck", func() { k.luck(&e.Luck) })
		k.at("moments", func() { k.moments(e) })
		switch {
		case k.always(e):
		case p.Mode == ModeRaffle:
			k.fault("expected no condition in a raffle: a ticket is for everybody")
		default:
			adaptive++
		}
		switch {
		case k.everybody(e) || !k.always(e):
		case p.Mode == ModeRaffle:
			k.at("reward", func() {
				k.fault("expected no code in a raffle, where the list may be used up before the tickets: let the ticket draw from a pool that has something else too")
			})
		default:
			adaptive++
		}
		if e.Unique && len(e.Reward.Items) == 0 {
			k.at("unique", func() { k.fault("expected items in the reward: a player can have them only once") })
		}
		k.enter("reward")
		k.reward(&e.Reward)
		k.leave()
		k.leave()
	}
	if adaptive > MaxAdaptive {
		k.fault("expected at most %d entries with a condition or a code, found %d", MaxAdaptive, adaptive)
	}
}

func (k *poolCheck) stock(e *Entry) {
	switch {
	case e.Stock.Unlimited && k.p.Mode == ModeRaffle:
		k.at("stock", func() { k.fault("expected a number, found unlimited: the odds in a raffle are the remaining stock") })
	case e.Stock.Unlimited && e.Stock.Count != 0:
		k.at("stock", func() { k.fault("expected unlimited or a number, found both") })
	}
	k.between("stock", e.Stock.Count, 0, MaxQuantity)
	if k.p.Mode == ModeRaffle && e.Weight != 0 {
		k.at("weight", func() { k.fault("expected none, found %d: the odds in a raffle are the remaining stock", e.Weight) })
	}
}

func (k *check) reward(w *Reward) {
	k.at("items", func() { k.quantities(w.Items) })
	if len(w.Codes) > MaxCodes {
		k.fault("expected codes from at most %d lists, found %d", MaxCodes, len(w.Codes))
		return
	}
	for i, list := range w.Codes {
		k.enterPlace("code", i)
		k.newID(list, "a list of codes", false)
		if slices.Contains(w.Codes[:i], list) {
			k.fault("expected each list of codes once, found %s again", quote(list))
		}
		k.leave()
	}
	if len(w.Draws) > MaxInner {
		k.fault("expected draws from at most %d pools, found %d", MaxInner, len(w.Draws))
		return
	}
	for i := range w.Draws {
		in := &w.Draws[i]
		k.enterPlace("pool", i)
		if _, ok := k.pools[in.Pool]; !ok && k.poolsKnown {
			k.fault("there is no pool %s%s", quote(in.Pool), k.suggest(in.Pool, keys(k.pools)))
		}
		if slices.ContainsFunc(w.Draws[:i], func(o Inner) bool { return o.Pool == in.Pool }) {
			k.fault("expected each pool once, with times, found %s again", quote(in.Pool))
		}
		if in.Min < 1 || in.Max > MaxPicks || in.Min > in.Max {
			k.fault("expected times from 1 to %d, min not above max, found min %d and max %d", MaxPicks, in.Min, in.Max)
		}
		k.leave()
	}
}

func (k *check) quantities(all []Quantity) {
	if len(all) > MaxBundle {
		k.fault("expected at most %d items, found %d", MaxBundle, len(all))
		return
	}
	for i := range all {
		q := &all[i]
		before := 0
		for j := range i {
			if all[j].Item == q.Item {
				before++
			}
		}
		k.enterPlace(q.Item, before)
		k.item(q.Item)
		if before > 0 {
			k.faultOnKey("duplicate id")
		}
		if q.Min < 1 || q.Max > MaxQuantity || q.Min > q.Max {
			k.fault("expected whole numbers from 1 to %d, min not above max, found min %d and max %d", uint64(MaxQuantity), q.Min, q.Max)
		}
		k.leave()
	}
}

// odds checks the weights, tickets or chances of a pool, and that something can be drawn at all.
func (k *poolCheck) odds() {
	p := k.p
	digits := map[Mode]int{ModeWeighted: maxDigits, ModeRaffle: 0, ModeEach: MaxDropDigits}[p.Mode]
	scale, n := uint64(1), 0
	for scale < p.WeightScale && n < digits {
		scale, n = scale*10, n+1
	}
	if scale != p.WeightScale {
		k.fault("expected weights scaled by a power of ten up to 10^%d, found %d", digits, p.WeightScale)
	}
	key := map[Mode]string{ModeWeighted: "weight", ModeRaffle: "stock", ModeEach: "chance"}[p.Mode]
	sum, stocked, always := uint64(0), false, false
	for i := range p.Entries {
		e := &p.Entries[i]
		odds, wrong := p.heaviest(e), ""
		switch {
		case p.Mode == ModeEach && odds > 100*scale:
			wrong = "expected at most 100 percent"
		case p.Mode != ModeEach && odds > MaxWeightSum-sum:
			wrong = fmt.Sprintf("expected odds whose sum, scaled by %d, is at most %d; it is larger from here on", p.WeightScale, uint64(MaxWeightSum))
		}
		if wrong != "" {
			k.enterIndex(i)
			k.at(key, func() { k.fault("%s", wrong) })
			k.leave()
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
