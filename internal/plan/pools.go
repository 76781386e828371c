package plan

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/odds"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

func (s *Planner) planPools(p *draft, t *rules.Tables, going odds.Going) {
	var touched rules.NumSet
	for i := range t.Catalog.Pools {
		if pt := t.PoolByID[t.Catalog.Pools[i].ID]; s.planPool(p, pt) {
			touched.Add(pt.Num) // a pool has the same number in all catalogs
		}
	}
	s.planOdds(p, t, touched, going)
	if s.t.Catalog == nil {
		return
	}
	for i := range s.t.Catalog.Pools {
		id := s.t.Catalog.Pools[i].ID
		if t.PoolByID[id] != nil {
			continue
		}
		st := s.counts(id)
		text := fmt.Sprintf("pool %s: removed; %d draws stay counted and count again if it returns", id, st.total())
		if n := s.reserved[st.num]; st.known && n > 0 {
			text += fmt.Sprintf("; %d draws that are held with a refund cannot be confirmed, and come back", n)
		}
		p.add(view.Change{Kind: ChangePoolRemoved, ID: id, Text: text})
		p.removeEntries(s.t.PoolByID[id], st, nil)
	}
}

// planPool describes the changes of one pool, and reports whether there are any.
func (s *Planner) planPool(p *draft, pt *rules.Pool) bool {
	c := pt.Config
	st, old, before := s.counts(c.ID), s.t.PoolByID[c.ID], len(p.Changes)
	if old == nil {
		text := "pool " + c.ID + ": added"
		if st.known {
			text += fmt.Sprintf("; it was here before, and its %d draws count", st.total())
		}
		p.add(view.Change{Kind: ChangePoolAdded, ID: c.ID, Text: text, Settings: differences(nil, c.Settings())})
	} else if changed := differences(old.Config.Settings(), c.Settings()); len(changed) > 0 {
		p.lines[c.ID] = len(p.Changes)
		p.add(view.Change{Kind: ChangePoolChanged, ID: c.ID, Text: "pool " + c.ID + ": " + settingsText(changed), Settings: changed,
			Warning: warnings(old, st, c)})
	}
	for i := range c.Entries {
		s.planEntry(p, c, i, st, old)
	}
	if old != nil {
		p.removeEntries(old, st, pt)
	}
	return len(p.Changes) > before
}

func differences(before, after []catalog.Setting) (all []view.Setting) {
	value := func(in []catalog.Setting, key string) string {
		for _, s := range in {
			if s.Key == key {
				return s.Value
			}
		}
		return ""
	}
	for _, s := range before {
		if now := value(after, s.Key); now != s.Value {
			all = append(all, view.Setting{Name: s.Key, Before: s.Value, After: now})
		}
	}
	for _, s := range after {
		if value(before, s.Key) == "" {
			all = append(all, view.Setting{Name: s.Key, After: s.Value})
		}
	}
	return all
}

// settingsText writes changed settings in words, the first few.
func settingsText(all []view.Setting) string {
	var parts []string
	for i, s := range all {
		switch {
		case i == 8:
			return fmt.Sprintf("%s and %d more", strings.Join(parts, ", "), len(all)-i)
		case s.Before == "":
			parts = append(parts, s.Name+" "+clip(s.After))
		case s.After == "":
			parts = append(parts, fmt.Sprintf("no %s instead of %s", s.Name, clip(s.Before)))
		default:
			parts = append(parts, fmt.Sprintf("%s %s instead of %s", s.Name, clip(s.After), clip(s.Before)))
		}
	}
	return strings.Join(parts, ", ")
}

// warnings says what deserves a second look: counters that begin again, numbers that move far.
func warnings(old *rules.Pool, st *counts, c *catalog.Pool) string {
	var all []string
	warn := func(what []string, format string) {
		if len(what) > 0 {
			all = append(all, fmt.Sprintf(format, strings.Join(what, " and ")))
		}
	}
	if st.total() > 0 {
		warn(newLimits(old, c), "the limit %s counts from now on: draws that players made while the pool did not have it are not in it")
		if was, now := old.Config.Free.Per, c.Free.Per; was != 0 && now != 0 && was != now {
			warn([]string{perText(now)}, "free draws %s count from now on: those that players have had are not in them")
		}
		warn(lostTracks(old, c), "what players have counted on the track %s does not count any more, unless the pool has a track with this name again")
		warn(newBudgets(old, c), "the budget of %s counts from now on: what was given before is in another one")
	}
	if prices := movedPrices(old.Config, c); len(prices) > 0 {
		all = append(all, "the price moves more than threefold: "+strings.Join(prices, ", "))
	}
	if pity := movedPity(old.Config, c); len(pity) > 0 {
		all = append(all, "pity moves more than threefold: "+few(pity))
	}
	return strings.Join(all, "; ")
}

// newLimits returns the limits over a time over which the pool in force has none.
func newLimits(old *rules.Pool, c *catalog.Pool) (what []string) {
	for _, l := range c.Limits {
		if !slices.ContainsFunc(old.Limits, func(o rules.Limit) bool { return o.Per == l.Per && o.Window == l.Window }) {
			what = append(what, limitText(l))
		}
	}
	return what
}

// lostTracks returns the tracks whose counters the new pool does not have, by their shown names.
func lostTracks(old *rules.Pool, c *catalog.Pool) (what []string) {
	for i := range old.Config.Tracks {
		was := &old.Config.Tracks[i]
		goesOn := func(t catalog.Track) bool { return rules.TrackName(c.ID, &t) == rules.TrackName(c.ID, was) }
		if !slices.ContainsFunc(c.Tracks, goesOn) {
			what = append(what, rules.ShownName(c.ID, was))
		}
	}
	return what
}

// newBudgets returns the items of which both pools have a budget, but not the same one.
func newBudgets(old *rules.Pool, c *catalog.Pool) (what []string) {
	items, names := map[string]bool{}, map[string]bool{}
	for i := range old.Config.Budgets {
		b := &old.Config.Budgets[i]
		for _, st := range b.Of {
			items[st.Item], names[rules.BudgetName(c.ID, b, st.Item)] = true, true
		}
	}
	for i := range c.Budgets {
		b := &c.Budgets[i]
		for _, st := range b.Of {
			if items[st.Item] && !names[rules.BudgetName(c.ID, b, st.Item)] {
				what = append(what, st.Item+" "+perText(b.Per))
			}
		}
	}
	return what
}

func limitText(l catalog.PlayerLimit) string {
	if l.Per == catalog.PerWindow {
		return fmt.Sprintf("per window of %v", time.Duration(l.Window)*time.Millisecond)
	}
	return perText(l.Per)
}

func perText(p catalog.Per) string {
	if p == catalog.PerForever {
		return "forever"
	}
	return "per " + p.String()
}

// removeEntries describes the entries of a pool that the new catalog drops.
func (p *draft) removeEntries(pool *rules.Pool, st *counts, now *rules.Pool) {
	for i, num := range pool.Order {
		e := &pool.Entries[num]
		if now != nil && now.Entries[num].Present {
			continue
		}
		ch := view.Change{Kind: ChangeEntryRemoved, ID: pool.Config.ID, Entry: e.ID, Drawn: st.drawn[num],
			UnlimitedBefore: !e.Limited, StockBefore: e.Config.Stock.Count, LeftBefore: st.left[num]}
		ch.Settings = differences(pool.Config.EntrySettings(i), nil)
		ch.Text = fmt.Sprintf("pool %s, entry %s: removed with %s left; its %d draws count again if it returns", ch.ID, e.ID, stockText(ch.UnlimitedBefore, ch.LeftBefore, ch.StockBefore), ch.Drawn)
		p.add(ch)
	}
}

func stockText(unlimited bool, left, stock uint64) string {
	if unlimited {
		return "unlimited stock"
	}
	return fmt.Sprintf("%d of %d", left, stock)
}

// planEntry describes one entry of the new catalog, or counts it if nothing changes.
func (s *Planner) planEntry(p *draft, pool *catalog.Pool, i int, st *counts, old *rules.Pool) {
	e := &pool.Entries[i]
	ch := view.Change{ID: pool.ID, Entry: e.ID, UnlimitedAfter: e.Stock.Unlimited, StockAfter: e.Stock.Count}
	var before []catalog.Setting
	known := false
	if st.known {
		if num, ok := s.state.EntryNum(st.num, e.ID); ok {
			ch.Drawn = st.drawn[num]
			if known = old != nil && int(num) < len(old.Entries) && old.Entries[num].Present; known {
				was := &old.Entries[num]
				ch.UnlimitedBefore, ch.StockBefore, ch.LeftBefore = !was.Limited, was.Config.Stock.Count, st.left[num]
				before = old.Config.EntrySettings(slices.Index(old.Order, num))
			}
		}
	}
	ch.LeftAfter = leftAfter(e.Stock, ch.Drawn)
	ch.Settings = differences(before, pool.EntrySettings(i))
	at := fmt.Sprintf("pool %s, entry %s: ", pool.ID, e.ID)
	switch {
	case !known:
		ch.Kind = ChangeEntryAdded
		ch.Text = fmt.Sprintf("%sadded with %s left", at, stockText(ch.UnlimitedAfter, ch.LeftAfter, ch.StockAfter))
		if ch.Drawn > 0 {
			ch.Text += fmt.Sprintf("; it was here before, and its %d draws count", ch.Drawn)
		}
	case len(ch.Settings) == 0:
		p.Kept++
		return
	default:
		ch.Kind = ChangeEntryChanged
		left := stockText(ch.UnlimitedAfter, ch.LeftAfter, ch.StockAfter) + " left"
		if i := slices.IndexFunc(ch.Settings, func(s view.Setting) bool { return s.Name == "stock" }); i >= 0 {
			s := &ch.Settings[i]
			s.Before, s.After = cmp.Or(s.Before, "unlimited"), cmp.Or(s.After, "unlimited")
			left = fmt.Sprintf("%s left before, %s after", stockText(ch.UnlimitedBefore, ch.LeftBefore, ch.StockBefore), stockText(ch.UnlimitedAfter, ch.LeftAfter, ch.StockAfter))
		}
		ch.Text = fmt.Sprintf("%s%s; %d drawn already, %s", at, settingsText(ch.Settings), ch.Drawn, left)
	}
	if !e.Stock.Unlimited && ch.Drawn > e.Stock.Count {
		ch.Warning = fmt.Sprintf("%d were drawn already, %d more than the new stock: the entry is out of stock", ch.Drawn, ch.Drawn-e.Stock.Count)
	}
	p.add(ch)
}

// leftAfter returns how many are left of an entry's new stock, 0 if it is unlimited.
func leftAfter(st catalog.Stock, drawn uint64) uint64 { return st.Count - min(st.Count, drawn) }

// maxPlanWork bounds the work for all pools whose odds a plan compares: see odds.MaxWork.
const maxPlanWork = 4 * odds.MaxWork

// planOdds compares what pools give a player who was never seen. touched are those that change.
func (s *Planner) planOdds(p *draft, t *rules.Tables, touched rules.NumSet, going odds.Going) {
	if s.t.Catalog == nil {
		return
	}
	budget, skipped := maxPlanWork, 0
	after, before := leadTo(t, touched), leadTo(s.t, touched)
	for i := range t.Catalog.Pools {
		c := &t.Catalog.Pools[i]
		pt, old := t.PoolByID[c.ID], s.t.PoolByID[c.ID]
		if c.Internal || old == nil || !after.Has(pt.Num) && !before.Has(old.Num) {
			continue
		}
		is, err := odds.Newcomer(t, pt, s.leftThen, s.refilledOf)
		was, oldErr := odds.Newcomer(s.t, old, s.leftNow, s.refilledOf)
		var now, then view.Odds
		if err == nil && oldErr == nil {
			now, err = is.OddsWithin(&budget, going)
			then, oldErr = was.OddsWithin(&budget, going)
		}
		if err != nil || oldErr != nil {
			skipped++
		} else if changed, warning := compareOdds(&then, &now); len(changed) > 0 {
			p.addSettings(c.ID, changed, warning)
		}
	}
	if skipped > 0 {
		p.add(view.Change{Kind: ChangeNotice, ID: "odds", Text: fmt.Sprintf("odds: those of %d pools that change are not compared: it would take too long", skipped)})
	}
}

// leadTo returns some pools and all that lead to one of them.
func leadTo(t *rules.Tables, some rules.NumSet) rules.NumSet {
	all := slices.Clone(some)
	for _, pt := range t.BottomUp {
		for target := range pt.Targets() {
			if all.Has(target.Num) {
				all.Add(pt.Num)
				break
			}
		}
	}
	return all
}

func (s *Planner) refilledOf(pt *rules.Pool) uint64 { return s.refilled[pt.Config.ID] }

// leftNow returns what is left of an entry with the stock in force.
func (s *Planner) leftNow(pt *rules.Pool, entry uint32) uint64 {
	return s.counts(pt.Config.ID).left[entry]
}

// leftThen returns what is left of an entry with the new stock.
func (s *Planner) leftThen(pt *rules.Pool, entry uint32) uint64 {
	drawn := uint64(0)
	if st := s.counts(pt.Config.ID); int(entry) < len(st.drawn) {
		drawn = st.drawn[entry]
	}
	return leftAfter(pt.Entries[entry].Config.Stock, drawn)
}

// compareOdds returns what differs, and a warning of odds or averages that move over threefold.
func compareOdds(before, now *view.Odds) (changed []view.Setting, warning string) {
	changed, moved := compare(before.Outcomes, now.Outcomes, percent,
		func(e *view.OutcomeOdds) (string, *big.Rat) { return e.Pool + "/" + e.Entry, e.Chance })
	for i := range changed {
		changed[i].Name = "odds of " + changed[i].Name
	}
	averages, many := compare(before.Items, now.Items, func(x *big.Rat) string { return odds.Text(x, 6) },
		func(it *view.ItemOdds) (string, *big.Rat) { return it.Item, it.Expected })
	for i := range averages {
		averages[i].Name += " per draw"
	}
	switch {
	case len(moved) > 0: // averages follow from the odds
		warning = "odds move more than threefold: " + few(moved)
	case len(many) > 0:
		warning = "the average of an item moves more than threefold: " + few(many)
	}
	return append(changed, averages...), warning
}

// compare returns which figures differ, and which of them move more than threefold.
func compare[T any](before, now []T, text func(*big.Rat) string, figure func(*T) (name string, value *big.Rat)) (changed []view.Setting, moved []string) {
	was := map[string]*big.Rat{}
	for i := range before {
		name, value := figure(&before[i])
		was[name] = value
	}
	for i := range now {
		name, value := figure(&now[i])
		old, set := was[name], view.Setting{Name: name, After: text(value)}
		delete(was, name)
		switch {
		case old == nil && value.Sign() == 0, old != nil && old.Cmp(value) == 0:
			continue
		case old != nil:
			set.Before = text(old)
			if jumps(old, value) {
				moved = append(moved, fmt.Sprintf("%s from %s to %s", name, set.Before, set.After))
			}
		}
		changed = append(changed, set)
	}
	for i := range before {
		if name, value := figure(&before[i]); was[name] != nil && value.Sign() > 0 {
			changed = append(changed, view.Setting{Name: name, Before: text(value)})
		}
	}
	return changed, moved
}

func few(all []string) string {
	if len(all) > 3 {
		all = append(all[:3], fmt.Sprintf("%d more", len(all)-3))
	}
	return strings.Join(all, ", ")
}

// jumps reports whether a number moves more than threefold, up or down. Odds do if a weight gets a
// digit too many: with a share of w, ten times the weight moves its odds by 10/(1+9w) and all others
// by 1+9w, and one of the two is at least the root of ten, 3.16.
func jumps(before, now *big.Rat) bool {
	low, high := before, now
	if low.Cmp(high) > 0 {
		low, high = high, low
	}
	return before.Sign() > 0 && new(big.Rat).Mul(low, big.NewRat(3, 1)).Cmp(high) < 0
}

// movedPrices returns the prices that move more than threefold. It compares alternatives by place.
func movedPrices(old, c *catalog.Pool) (moved []string) {
	for i := range min(len(old.Price), len(c.Price)) {
		for _, st := range c.Price[i] {
			was := slices.IndexFunc(old.Price[i], func(o catalog.Stack) bool { return o.Item == st.Item })
			if was < 0 {
				continue
			}
			before := old.Price[i][was].Quantity
			if jumps(new(big.Rat).SetUint64(before), new(big.Rat).SetUint64(st.Quantity)) {
				moved = append(moved, fmt.Sprintf("%d %s instead of %d", st.Quantity, st.Item, before))
			}
		}
	}
	return moved
}

// movedPity returns the numbers of pity that move over threefold, which one draw's odds do not show.
func movedPity(old, c *catalog.Pool) (moved []string) {
	compare := func(what string, before, now *big.Rat) {
		if jumps(before, now) && now.Sign() > 0 {
			moved = append(moved, fmt.Sprintf("%s %s instead of %s", what, odds.Text(now, 6), odds.Text(before, 6)))
		}
	}
	whole := func(n uint32) *big.Rat { return new(big.Rat).SetUint64(uint64(n)) }
	for i := range c.Tracks {
		t := &c.Tracks[i]
		was := slices.IndexFunc(old.Tracks, func(o catalog.Track) bool { return o.Name == t.Name })
		if was < 0 {
			continue
		}
		o := &old.Tracks[was]
		compare(t.Name+": certain", whole(o.Certain), whole(t.Certain))
		compare(t.Name+": rising from", whole(o.Rising.From), whole(t.Rising.From))
		for j := range min(len(o.Rising.By), len(t.Rising.By)) {
			points := func(r *catalog.Rising) *big.Rat {
				return new(big.Rat).SetFrac(new(big.Int).SetUint64(r.By[j]), new(big.Int).SetUint64(r.Scale))
			}
			compare(t.Name+": rising by", points(&o.Rising), points(&t.Rising))
		}
	}
	for i := range min(len(old.Guarantees), len(c.Guarantees)) {
		compare("guarantee: draws", whole(old.Guarantees[i].Draws), whole(c.Guarantees[i].Draws))
		compare("guarantee: at_least", whole(old.Guarantees[i].AtLeast), whole(c.Guarantees[i].AtLeast))
	}
	return moved
}

func percent(x *big.Rat) string { return odds.Text(new(big.Rat).Mul(x, big.NewRat(100, 1)), 6) + "%" }

// addSettings adds settings to the change of a pool.
func (p *draft) addSettings(pool string, changed []view.Setting, warning string) {
	i, ok := p.lines[pool]
	if !ok {
		i = len(p.Changes)
		p.add(view.Change{Kind: ChangePoolChanged, ID: pool})
	}
	c := &p.Changes[i]
	c.Settings = append(c.Settings, changed...)
	c.Text = "pool " + pool + ": " + settingsText(c.Settings)
	if c.Warning != "" && warning != "" {
		c.Warning += "; "
	}
	c.Warning += warning
}
