package catalog

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Check checks everything that rules rely on. [Parse] and [Decode] have done so;
// call it for a catalog built in Go. The error is an *[Errors] without lines and
// columns.
func (c *Catalog) Check() error {
	var errs log
	k := check{c: c, itemsKnown: true, poolsKnown: true, report: func(at *log, _ bool, message string) {
		errs.here = at.here
		errs.add(0, 0, "%s", message)
	}}
	k.run()
	return errs.err()
}

// check is one pass over a compiled catalog. [Parse] and [Decode] share it, so
// that what one accepts the other does, and so that no log, however damaged,
// brings the rules what they do not expect.
type check struct {
	log
	c *Catalog
	// report takes a fault at the present path; onKey: of the last key itself.
	report func(at *log, onKey bool, message string)
	// itemsKnown and poolsKnown are false when the source's items or pools
	// could not be read, so that references to them say nothing.
	itemsKnown, poolsKnown bool

	items map[string]*Item
	pools map[string]int
}

func (k *check) fault(format string, args ...any) {
	k.report(&k.log, false, fmt.Sprintf(format, args...))
}

func (k *check) faultOnKey(format string, args ...any) {
	k.report(&k.log, true, fmt.Sprintf(format, args...))
}

// at runs f with key added to the path.
func (k *check) at(key string, f func()) {
	k.enter(key)
	f()
	k.leave()
}

func (k *check) run() {
	k.name(k.c.Name)
	k.at("items", k.checkItems)
	k.at("pools", k.checkPools)
	k.at("start", func() { k.stacks(k.c.Start) })
	k.at("idempotency", k.checkIdempotency)
	if n := len(k.c.AppendCanonical(nil)); n > MaxCanonical {
		k.fault("expected at most %d bytes in canonical form, found %d", MaxCanonical, n)
	}
}

func (k *check) name(s string) {
	if wrong := textProblem(s); wrong != "" {
		k.at("name", func() { k.fault("expected %s, found %s: %s", nameShape{}.expects(), quote(s), wrong) })
	}
}

func (k *check) between(key string, v, low, high uint64) {
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
		if item.Kind != KindItem && item.Kind != KindCurrency {
			k.at("kind", func() { k.fault("expected item or currency, found kind %d", item.Kind) })
		}
		k.name(item.Name)
		k.leave()
	}
}

// newID checks an id that is being defined.
func (k *check) newID(id, what string, taken bool) bool {
	switch {
	case !validID(id):
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

func (k *check) suggest(id string, among iter.Seq[string]) string {
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
}

func (k *check) checkPools() {
	k.pools = make(map[string]int, len(k.c.Pools))
	if len(k.c.Pools) > MaxPools {
		k.fault("expected at most %d pools, found %d", MaxPools, len(k.c.Pools))
		return
	}
	entries := 0
	for i := range k.c.Pools {
		id := k.c.Pools[i].ID
		_, taken := k.pools[id]
		k.enter(id)
		if k.newID(id, "a pool", taken) {
			k.pools[id] = i
		}
		k.leave()
		entries += len(k.c.Pools[i].Entries)
	}
	if entries > MaxEntries {
		k.fault("expected at most %d entries in all pools together, found %d", MaxEntries, entries)
		return
	}
	for i := range k.c.Pools {
		k.enter(k.c.Pools[i].ID)
		k.pool(&k.c.Pools[i])
		k.leave()
	}
	k.chains()
}

func (k *check) pool(p *Pool) {
	k.name(p.Name)
	if p.Mode != ModeWeighted && p.Mode != ModeRaffle {
		k.at("mode", func() { k.fault("expected weighted or raffle, found mode %d", p.Mode) })
		return
	}
	k.at("price", func() { k.stacks(p.Price) })
	k.times(p)
	k.between("max_count", uint64(p.MaxCount), 1, MaxDrawCount)
	k.at("limits", func() { k.limits(p.Limits) })
	if len(p.Entries) == 0 {
		k.fault("expected at least one entry, found none")
		return
	}
	k.at("entries", func() {
		k.entries(p)
		k.odds(p)
	})
}

func (k *check) times(p *Pool) {
	for _, t := range []struct {
		key string
		at  int64
	}{{"starts", p.StartsAt}, {"ends", p.EndsAt}} {
		if t.at < 0 || t.at > maxInstant {
			k.at(t.key, func() { k.fault("expected Unix milliseconds from 1 to %d, found %d", int64(maxInstant), t.at) })
		}
	}
	if p.StartsAt > 0 && p.EndsAt > 0 && p.EndsAt <= p.StartsAt {
		k.at("ends", func() { k.fault("expected a time after starts, found one %s", beforeOrAt(p)) })
	}
}

func beforeOrAt(p *Pool) string {
	if p.EndsAt == p.StartsAt {
		return "at the same moment"
	}
	return "before it"
}

func (k *check) limits(all []PlayerLimit) {
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

func (k *check) entries(p *Pool) {
	first := make(map[string]int, len(p.Entries))
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
		k.stock(p, e)
		k.enter("reward")
		k.reward(&e.Reward)
		k.leave()
		k.leave()
	}
}

func (k *check) stock(p *Pool, e *Entry) {
	switch {
	case e.Stock.Unlimited && p.Mode == ModeRaffle:
		k.at("stock", func() { k.fault("expected a number, found unlimited: the odds in a raffle are the remaining stock") })
	case e.Stock.Unlimited && e.Stock.Count != 0:
		k.at("stock", func() { k.fault("expected unlimited or a number, found both") })
	}
	k.between("stock", e.Stock.Count, 0, MaxQuantity)
	if p.Mode == ModeRaffle && e.Weight != 0 {
		k.at("weight", func() { k.fault("expected none, found %d: the odds in a raffle are the remaining stock", e.Weight) })
	}
}

func (k *check) reward(w *Reward) {
	items, pool := len(w.Items) > 0, w.Pool != ""
	switch w.Kind {
	case RewardNothing:
		if items || pool {
			k.fault("expected nothing, found items or a pool")
		}
	case RewardItems:
		if !items || pool {
			k.fault("expected items and no pool")
		}
		k.at("items", func() { k.quantities(w.Items) })
	case RewardPool:
		if items || !pool {
			k.fault("expected a pool and no items")
		} else if _, ok := k.pools[w.Pool]; !ok && k.poolsKnown {
			k.at("pool", func() { k.fault("there is no pool %s%s", quote(w.Pool), k.suggest(w.Pool, keys(k.pools))) })
		}
	default:
		k.fault("expected items, a pool or nothing, found kind %d", w.Kind)
	}
}

func (k *check) quantities(all []Quantity) {
	if len(all) > MaxBundle {
		k.fault("expected at most %d items, found %d", MaxBundle, len(all))
		return
	}
	for i := range all {
		q := &all[i]
		k.enter(q.Item)
		k.item(q.Item)
		for j := range i {
			if all[j].Item == q.Item {
				k.faultOnKey("duplicate id")
				break
			}
		}
		if q.Min < 1 || q.Max > MaxQuantity || q.Min > q.Max {
			k.fault("expected whole numbers from 1 to %d, min not above max, found min %d and max %d", uint64(MaxQuantity), q.Min, q.Max)
		}
		k.leave()
	}
}

// odds checks the sum of a pool's weights or tickets, and that something can
// be drawn at all.
func (k *check) odds(p *Pool) {
	scale, n := uint64(1), 0
	for scale < p.WeightScale && n < maxDigits {
		scale, n = scale*10, n+1
	}
	if scale != p.WeightScale || p.Mode == ModeRaffle && scale != 1 {
		k.fault("expected weights scaled by a power of ten up to 10^%d (by 1 in a raffle), found %d", maxDigits, p.WeightScale)
	}
	key, sum, drawable := "weight", uint64(0), false
	if p.Mode == ModeRaffle {
		key = "stock"
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		odds := e.Weight
		if p.Mode == ModeRaffle {
			odds = e.Stock.Count
		}
		if odds > MaxWeightSum || sum > MaxWeightSum-odds {
			k.enterIndex(i)
			k.at(key, func() {
				k.fault("expected odds whose sum, scaled by %d, is at most %d; it is larger from here on", p.WeightScale, uint64(MaxWeightSum))
			})
			k.leave()
			return
		}
		sum += odds
		drawable = drawable || odds > 0 && (e.Stock.Unlimited || e.Stock.Count > 0)
	}
	switch {
	case drawable:
	case p.Mode == ModeRaffle:
		k.fault("expected at least one ticket, found a stock of 0 in every entry")
	case sum == 0:
		k.fault("expected a total weight above 0, found 0")
	default:
		k.fault("expected an entry with a weight above 0 and stock, found none")
	}
}

// chains refuses cycles of pool rewards, and chains of more than MaxPoolDepth
// pools. It walks depth first; depth[i] is the longest chain that starts at
// pool i once that is known. Recursion ends after MaxPools steps at most.
func (k *check) chains() {
	const unseen, onPath = 0, -1
	depth := make([]int, len(k.c.Pools))
	var path []int
	var walk func(i int) int
	walk = func(i int) int {
		depth[i], path = onPath, append(path, i)
		longest := 1
		for j := range k.c.Pools[i].Entries {
			w := &k.c.Pools[i].Entries[j].Reward
			next, ok := k.pools[w.Pool]
			if w.Kind != RewardPool || !ok {
				continue
			}
			if depth[next] == unseen {
				walk(next)
			}
			if depth[next] == onPath {
				k.faultAtReward(i, j, fmt.Sprintf("expected no cycle of pools, found %s", k.cycle(path, next)))
				continue
			}
			if longest <= MaxPoolDepth && depth[next]+1 > MaxPoolDepth && depth[next] <= MaxPoolDepth {
				k.faultAtReward(i, j, fmt.Sprintf("expected at most %d pools on a chain of pool rewards, found %d from %s on", MaxPoolDepth, depth[next]+1, k.c.Pools[i].ID))
			}
			longest = max(longest, depth[next]+1)
		}
		depth[i], path = longest, path[:len(path)-1]
		return longest
	}
	for i := range k.c.Pools {
		if depth[i] == unseen {
			walk(i)
		}
	}
}

func (k *check) faultAtReward(pool, entry int, message string) {
	depth := len(k.here)
	k.enter(k.c.Pools[pool].ID)
	k.enter("entries")
	k.enterIndex(entry)
	k.enter("reward")
	k.enter("pool")
	k.fault("%s", message)
	k.here = k.here[:depth]
}

// cycle writes the part of path from pool on as a → b → a.
func (k *check) cycle(path []int, pool int) string {
	from := slices.Index(path, pool)
	var names []string
	for _, i := range append(slices.Clone(path[from:]), pool) {
		names = append(names, k.c.Pools[i].ID)
	}
	if len(names) > 12 {
		names = append(append(slices.Clone(names[:6]), "…"), names[len(names)-5:]...)
	}
	return strings.Join(names, " → ")
}
