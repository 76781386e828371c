package economy

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/catalog"
)

// ChangeKind says what a [Change] is about.
type ChangeKind string

const (
	ChangeItemAdded    ChangeKind = "item_added"
	ChangeItemChanged  ChangeKind = "item_changed"
	ChangeItemRemoved  ChangeKind = "item_removed"
	ChangePoolAdded    ChangeKind = "pool_added"
	ChangePoolChanged  ChangeKind = "pool_changed"
	ChangePoolRemoved  ChangeKind = "pool_removed"
	ChangeEntryAdded   ChangeKind = "entry_added"
	ChangeEntryChanged ChangeKind = "entry_changed"
	ChangeEntryKept    ChangeKind = "entry_kept"
	ChangeEntryRemoved ChangeKind = "entry_removed"
	ChangeRealm        ChangeKind = "realm_changed" // starting grants, idempotency window, name
)

// Change is one line of a [Plan]: what happens to one item, pool or entry.
type Change struct {
	Kind  ChangeKind
	ID    string // the item, or the pool
	Entry string // the entry in the pool; empty for items and pools
	// For entries: how many were drawn so far, and the stock in all and left
	// before and after. Before is meaningless for an added entry that was
	// never seen, After for a removed one.
	Drawn                           uint64
	UnlimitedBefore, UnlimitedAfter bool
	StockBefore, StockAfter         uint64
	LeftBefore, LeftAfter           uint64
	// Warning is set when the change deserves a second look: more was drawn
	// already than the new stock, or players hold an item that is removed.
	Warning string
	Text    string // the whole change in words
}

// Plan says what applying a catalog would do.
type Plan struct {
	Unchanged bool   // the catalog is the one in force: applying it does nothing and is not logged
	Version   uint64 // the version it would get, or has when Unchanged
	Changes   []Change
}

// ConflictError says why the realm's state refuses a catalog that is well
// formed by itself.
type ConflictError struct {
	Subject string // the item or pool
	Message string
}

func (e *ConflictError) Error() string { return e.Subject + ": " + e.Message }

// Planner is what a plan needs of a state, so that the plan itself can be made beside
// commands, though not beside Apply of another catalog: a copy of what commands change,
// but for the counters of pools, which Plan copies.
type Planner struct {
	items   []itemState
	itemNum map[string]uint32
	pools   []*poolState
	poolNum map[string]uint32
	limits  []limitKey
	current *tables
	now     int64
	players int
	ids     requestIDs
}

// names returns a planner that knows names and nothing that commands change.
func (s *State) names() *Planner {
	return &Planner{items: s.items, itemNum: s.itemNum, pools: s.pools, poolNum: s.poolNum, limits: s.limits, current: s.current}
}

// Planner begins a plan. The caller holds the realm's lock, for a time that does not depend on
// how many entries there are.
func (s *State) Planner() *Planner {
	p := s.names()
	p.items = slices.Clone(s.items)
	p.now, p.players, p.ids = s.now, s.players.count(), s.ids.frozen()
	return p
}

// look has the planner go by a copy of the pools: each part as it is at some moment from now on.
func (p *Planner) look() {
	pools := make([]*poolState, len(p.pools))
	for i, st := range p.pools {
		pools[i] = &poolState{id: st.id, entryNum: st.entryNum, entryIDs: st.entryIDs, drawn: make([]uint64, len(st.drawn)), left: make([]uint64, len(st.left))}
		st.copyCounters(pools[i].drawn, pools[i].left)
	}
	p.pools = pools
}

// Plan is Planner and its Plan at once.
func (s *State) Plan(c *catalog.Catalog) (Plan, error) { return s.Planner().Plan(c) }

// Plan says what applying c would do, item by item, or refuses it with a
// *ConflictError. What it says of draws is as of some moment since Planner.
func (s *Planner) Plan(c *catalog.Catalog) (Plan, error) {
	if s.current.version > 0 && c.Hash() == s.current.hash {
		return Plan{Unchanged: true, Version: s.current.version}, nil
	}
	s.look()
	if err := s.checkNumbers(c); err != nil {
		return Plan{}, err
	}
	if err := s.checkKinds(c); err != nil {
		return Plan{}, err
	}
	p := Plan{Version: s.current.version + 1}
	s.planItems(&p, c)
	s.planRealm(&p, c)
	for i := range c.Pools {
		s.planPool(&p, &c.Pools[i])
	}
	if old := s.current.catalog; old != nil {
		in := make(map[string]bool, len(c.Pools))
		for i := range c.Pools {
			in[c.Pools[i].ID] = true
		}
		for i := range old.Pools {
			id := old.Pools[i].ID
			if in[id] {
				continue
			}
			st := s.pools[s.poolNum[id]]
			p.add(Change{Kind: ChangePoolRemoved, ID: id, Text: fmt.Sprintf(
				"pool %s: removed; %d draws stay counted and count again if it returns", id, st.totalDrawn())})
			p.removeEntries(s.current.pool[id], st, nil)
		}
	}
	return p, nil
}

func (p *Plan) add(c Change) { p.Changes = append(p.Changes, c) }

func (p *poolState) totalDrawn() uint64 {
	var sum uint64
	for _, d := range p.drawn {
		sum += d
	}
	return sum
}

// checkNumbers refuses a catalog that would name more than a realm can ever hold.
func (s *Planner) checkNumbers(c *catalog.Catalog) error {
	over := func(what string, have, add, limit int) error {
		if have+add <= limit {
			return nil
		}
		return &ConflictError{Subject: what, Message: fmt.Sprintf("%d named by earlier catalogs and %d new ones; a realm can name %d in its life", have, add, limit)}
	}
	items, pools, limits := 0, 0, 0
	for i := range c.Items {
		if _, ok := s.itemNum[c.Items[i].ID]; !ok {
			items++
		}
	}
	for i := range c.Pools {
		pool := &c.Pools[i]
		limits += len(pool.Limits)
		num, ok := s.poolNum[pool.ID]
		if !ok {
			pools++
			continue
		}
		entries := 0
		for j := range pool.Entries {
			if _, ok := s.pools[num].entryNum[pool.Entries[j].ID]; !ok {
				entries++
			}
		}
		if err := over("entries of pool "+pool.ID, len(s.pools[num].entryIDs), entries, maxEntriesEver); err != nil {
			return err
		}
	}
	if err := over("items", len(s.items), items, maxItemsEver); err != nil {
		return err
	}
	if err := over("pools", len(s.pools), pools, maxPoolsEver); err != nil {
		return err
	}
	return over("player limits", len(s.limits), limits, maxLimitsEver)
}

// checkKinds refuses a catalog that gives a known item another kind.
func (s *Planner) checkKinds(c *catalog.Catalog) error {
	for i := range c.Items {
		it := &c.Items[i]
		if num, known := s.itemNum[it.ID]; known && s.items[num].kind != it.Kind {
			return &ConflictError{Subject: "item " + it.ID, Message: "its kind cannot change between item and currency: give the new one another id"}
		}
	}
	return nil
}

func (s *Planner) planItems(p *Plan, c *catalog.Catalog) {
	before := map[string]*catalog.Item{}
	if old := s.current.catalog; old != nil {
		for i := range old.Items {
			before[old.Items[i].ID] = &old.Items[i]
		}
	}
	in := make(map[string]bool, len(c.Items))
	for i := range c.Items {
		it := &c.Items[i]
		in[it.ID] = true
		num, known := s.itemNum[it.ID]
		if old := before[it.ID]; old != nil {
			if *old != *it {
				p.add(Change{Kind: ChangeItemChanged, ID: it.ID, Text: fmt.Sprintf("item %s: renamed from %q to %q", it.ID, old.Name, it.Name)})
			}
			continue
		}
		text := "item " + it.ID + ": added"
		if known && (s.items[num].supply.hi|s.items[num].supply.lo) != 0 {
			text += fmt.Sprintf("; it was here before, and players still hold %v", s.items[num].supply)
		}
		p.add(Change{Kind: ChangeItemAdded, ID: it.ID, Text: text})
	}
	if s.current.catalog == nil {
		return
	}
	for i := range s.current.catalog.Items {
		id := s.current.catalog.Items[i].ID
		if in[id] {
			continue
		}
		ch := Change{Kind: ChangeItemRemoved, ID: id, Text: "item " + id + ": removed; nobody holds any"}
		if it := &s.items[s.itemNum[id]]; it.supply.hi|it.supply.lo != 0 {
			ch.Text = fmt.Sprintf("item %s: removed; the %v that players hold stay theirs, but can be neither granted nor consumed until it returns", id, it.supply)
			ch.Warning = "players hold an item that this catalog removes"
		}
		p.add(ch)
	}
}

func (s *Planner) planRealm(p *Plan, c *catalog.Catalog) {
	old := s.current.catalog
	if old == nil {
		return
	}
	if !slices.Equal(old.Start, c.Start) {
		p.add(Change{Kind: ChangeRealm, ID: "start", Text: fmt.Sprintf(
			"starting grants: changed for players first seen from now on; the %d seen so far keep theirs", s.players)})
	}
	if old.Idempotency != c.Idempotency {
		p.add(s.planWindow(old.Idempotency, c.Idempotency))
	}
	if old.Name != c.Name {
		p.add(Change{Kind: ChangeRealm, ID: "name", Text: fmt.Sprintf("name: %q instead of %q", c.Name, old.Name)})
	}
}

// planWindow describes a change of the idempotency window.
func (s *Planner) planWindow(old, w catalog.Idempotency) Change {
	ch := Change{Kind: ChangeRealm, ID: "idempotency", Text: fmt.Sprintf(
		"idempotency window: room for %d ids of the last %v, that is %s new ids a second, instead of %d of the last %v", w.Count, w.Age, rate(w), old.Count, old.Age)}
	young := s.ids.youngerThan(s.now - w.Age.Milliseconds() - 1)
	switch {
	case young >= int(w.Count):
		ch.Warning = fmt.Sprintf("%d request ids of the last %v are remembered already: new request ids will be refused until the oldest of them have aged", young, w.Age)
	case young > int(w.Count)/4*3:
		ch.Warning = fmt.Sprintf("%d request ids of the last %v are remembered already, of %d that there is room for: once it is used up, new request ids will be refused", young, w.Age, w.Count)
	case w.Age < old.Age:
		ch.Warning = fmt.Sprintf("request ids older than %v may be forgotten at once: a late retry of one would be carried out again", w.Age)
	}
	return ch
}

// rate returns how many new ids a second a window stands without end.
func rate(w catalog.Idempotency) string {
	millis := uint64(w.Count) * 1_000_000 / uint64(w.Age.Milliseconds())
	if millis >= 10_000 {
		return fmt.Sprint(millis / 1000)
	}
	return fmt.Sprintf("%d.%03d", millis/1000, millis%1000)
}

func (s *Planner) planPool(p *Plan, c *catalog.Pool) {
	var st *poolState
	if num, ok := s.poolNum[c.ID]; ok {
		st = s.pools[num]
	}
	old := s.current.pool[c.ID]
	if old == nil {
		text := "pool " + c.ID + ": added"
		if st != nil {
			text += fmt.Sprintf("; it was here before, and its %d draws count", st.totalDrawn())
		}
		p.add(Change{Kind: ChangePoolAdded, ID: c.ID, Text: text})
	} else if what := poolChanges(old.config, c); what != "" {
		p.add(Change{Kind: ChangePoolChanged, ID: c.ID, Text: "pool " + c.ID + ": " + what, Warning: s.newCounters(old, st, c)})
	}
	in := make(map[string]bool, len(c.Entries))
	for i := range c.Entries {
		in[c.Entries[i].ID] = true
		p.add(planEntry(c, &c.Entries[i], st, old))
	}
	if old == nil {
		return
	}
	p.removeEntries(old, st, in)
}

// newCounters warns of limits that count over a time over which the pool in force does not.
func (s *Planner) newCounters(old *poolTable, st *poolState, c *catalog.Pool) string {
	if st.totalDrawn() == 0 {
		return ""
	}
	var what []string
	for _, l := range c.Limits {
		if slices.ContainsFunc(old.limits, func(o limitTable) bool { return o.per == l.Per && o.window == l.Window }) {
			continue
		}
		what = append(what, limitText(l))
	}
	if len(what) == 0 {
		return ""
	}
	return fmt.Sprintf("the limit %s counts from now on: draws that players made while the pool did not have it are not in it", strings.Join(what, " and "))
}

func limitText(l catalog.PlayerLimit) string {
	switch l.Per {
	case catalog.PerForever:
		return "for ever"
	case catalog.PerDay:
		return "per day"
	case catalog.PerWeek:
		return "per week"
	}
	return fmt.Sprintf("per window of %v", time.Duration(l.Window)*time.Millisecond)
}

// removeEntries describes the entries of a pool that are not kept.
func (p *Plan) removeEntries(pool *poolTable, st *poolState, kept map[string]bool) {
	for _, num := range pool.order {
		e := &pool.entries[num]
		if kept[e.id] {
			continue
		}
		ch := Change{Kind: ChangeEntryRemoved, ID: pool.config.ID, Entry: e.id, Drawn: st.drawn[num],
			UnlimitedBefore: !e.limited, StockBefore: e.stock, LeftBefore: st.left[num]}
		ch.Text = fmt.Sprintf("pool %s, entry %s: removed with %s left; its %d draws count again if it returns", ch.ID, e.id, ch.before(), ch.Drawn)
		p.add(ch)
	}
}

// poolChanges names what differs in the settings of a pool.
func poolChanges(old, c *catalog.Pool) string {
	var what []string
	note := func(changed bool, s string) {
		if changed {
			what = append(what, s)
		}
	}
	note(old.Name != c.Name, "name")
	note(old.Mode != c.Mode, "mode")
	note(!slices.Equal(old.Price, c.Price), "price")
	note(old.StartsAt != c.StartsAt, "start")
	note(old.EndsAt != c.EndsAt, "end")
	note(old.MaxCount != c.MaxCount, "max_count")
	note(!slices.Equal(old.Limits, c.Limits), "player limits")
	if len(what) == 0 {
		return ""
	}
	return "changed " + strings.Join(what, ", ")
}

func (c *Change) before() string {
	if c.UnlimitedBefore {
		return "unlimited stock"
	}
	return fmt.Sprintf("%d of %d", c.LeftBefore, c.StockBefore)
}

func (c *Change) after() string {
	if c.UnlimitedAfter {
		return "unlimited stock"
	}
	return fmt.Sprintf("%d of %d", c.LeftAfter, c.StockAfter)
}

// planEntry describes one entry of the new catalog. Every entry gets a line,
// changed or not: what was drawn already is what an operator must see.
func planEntry(pool *catalog.Pool, e *catalog.Entry, st *poolState, old *poolTable) Change {
	ch := Change{ID: pool.ID, Entry: e.ID, UnlimitedAfter: e.Stock.Unlimited, StockAfter: e.Stock.Count}
	var before *entryTable
	if st != nil {
		if num, ok := st.entryNum[e.ID]; ok {
			ch.Drawn = st.drawn[num]
			if old != nil && int(num) < len(old.entries) && old.entries[num].present {
				before = &old.entries[num]
				ch.UnlimitedBefore, ch.StockBefore, ch.LeftBefore = !before.limited, before.stock, st.left[num]
			}
		}
	}
	ch.LeftAfter = leftAfter(e.Stock, ch.Drawn)
	at := fmt.Sprintf("pool %s, entry %s: ", pool.ID, e.ID)
	switch {
	case before == nil:
		ch.Kind = ChangeEntryAdded
		ch.Text = fmt.Sprintf("%sadded with %s left", at, ch.after())
		if ch.Drawn > 0 {
			ch.Text += fmt.Sprintf("; it was here before, and its %d draws count", ch.Drawn)
		}
	case ch.UnlimitedBefore != ch.UnlimitedAfter || ch.StockBefore != ch.StockAfter:
		ch.Kind = ChangeEntryChanged
		ch.Text = fmt.Sprintf("%sstock changed; %d drawn already; %s left before, %s after", at, ch.Drawn, ch.before(), ch.after())
	case !sameOdds(old.config, before.config, pool, e) || !sameReward(&before.config.Reward, &e.Reward):
		ch.Kind = ChangeEntryChanged
		ch.Text = fmt.Sprintf("%sweight or reward changed; %d drawn already, %s left", at, ch.Drawn, ch.after())
	default:
		ch.Kind = ChangeEntryKept
		ch.Text = fmt.Sprintf("%sas before; %d drawn already, %s left", at, ch.Drawn, ch.after())
	}
	if !e.Stock.Unlimited && ch.Drawn > e.Stock.Count {
		ch.Warning = fmt.Sprintf("%d were drawn already, %d more than the new stock: the entry is out of stock", ch.Drawn, ch.Drawn-e.Stock.Count)
	}
	return ch
}

// sameOdds reports whether an entry's weight is the same number in both
// catalogs, each scaled in its own way.
func sameOdds(oldPool *catalog.Pool, old *catalog.Entry, pool *catalog.Pool, e *catalog.Entry) bool {
	hi1, lo1 := bits.Mul64(old.Weight, pool.WeightScale)
	hi2, lo2 := bits.Mul64(e.Weight, oldPool.WeightScale)
	return hi1 == hi2 && lo1 == lo2
}

func sameReward(a, b *catalog.Reward) bool {
	return a.Kind == b.Kind && a.Pool == b.Pool && slices.Equal(a.Items, b.Items)
}
