package rules

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/catalog"
)

// The kinds of change. Package kuji has the same, for go doc to show.
const (
	ChangeItemAdded    = "item_added"
	ChangeItemChanged  = "item_changed"
	ChangeItemRemoved  = "item_removed"
	ChangePoolAdded    = "pool_added"
	ChangePoolChanged  = "pool_changed"
	ChangePoolRemoved  = "pool_removed"
	ChangeEntryAdded   = "entry_added"
	ChangeEntryChanged = "entry_changed"
	ChangeEntryKept    = "entry_kept"
	ChangeEntryRemoved = "entry_removed"
	ChangeRealm        = "realm_changed" // starting grants, idempotency window, name
)

// Change is one line of a [Plan]: what happens to one item, pool or entry.
type Change struct {
	Kind  string
	ID    string // of the item or the pool
	Entry string // id of the entry in the pool; empty for items and pools
	// For entries: how many were drawn so far, and the total and remaining stock before and after.
	// Before has no meaning for a new entry, After none for a removed one.
	Drawn                           uint64
	UnlimitedBefore, UnlimitedAfter bool
	StockBefore, StockAfter         uint64
	LeftBefore, LeftAfter           uint64
	// Warning is set if the change deserves a second look: more were drawn than the new stock, or
	// players hold an item that is removed.
	Warning string
	Text    string // the whole change in words
}

// Plan says what applying a catalog would change.
type Plan struct {
	Unchanged bool   // the catalog is already in force: applying it does nothing and is not logged
	Version   uint64 // the version it would get; if Unchanged, the one it has
	Changes   []Change
}

// Planner makes a plan concurrently with commands, but not with another catalog. It reads what
// commands change at some moment after NewPlanner.
type Planner struct {
	state    PlanState
	t        *Tables
	supplies []string // by item number: what players hold, in words; empty: nobody holds any
	now      int64
	players  uint32
	young    int // how many remembered request ids the new window would still cover
}

// PlanState is everything that a plan reads of a realm.
type PlanState interface {
	State
	Supply(item uint32) (text string, any bool)
	YoungerThan(time int64) int
	ReadStock(pool uint32, entries []uint32, version uint64, f func(i int, left, drawn uint64, limited bool)) (last uint64, ok bool)
}

// NewPlanner begins a plan of a catalog over t. The caller holds the realm's lock meanwhile, for a
// time in proportion to the number of items.
func NewPlanner(state PlanState, t *Tables, c *catalog.Catalog) *Planner {
	p := &Planner{state: state, t: t, now: state.Now(), players: state.Players(), supplies: make([]string, state.Items())}
	for i := range p.supplies {
		if text, any := state.Supply(uint32(i)); any {
			p.supplies[i] = text
		}
	}
	p.young = state.YoungerThan(p.now + state.Back() - c.Idempotency.Age.Milliseconds() - 1)
	return p
}

// counts is how many were drawn from a pool over all catalogs, and how many are left.
type counts struct {
	known       bool
	num         uint32
	drawn, left []uint64 // by entry number
}

// counts reads a pool's counts.
func (s *Planner) counts(id string) (c counts) {
	if c.num, c.known = s.state.PoolNum(id); !c.known {
		return c
	}
	all := make([]uint32, s.state.Entries(c.num))
	for i := range all {
		all[i] = uint32(i)
	}
	c.drawn, c.left = make([]uint64, len(all)), make([]uint64, len(all))
	s.state.ReadStock(c.num, all, s.t.Version, func(i int, left, drawn uint64, _ bool) { c.left[i], c.drawn[i] = left, drawn })
	return c
}

// total returns how many were drawn from the whole pool.
func (c *counts) total() (sum uint64) {
	for _, d := range c.drawn {
		sum += d
	}
	return sum
}

// Plan says, item by item, what applying c would change, or refuses it with a *ConflictError.
func (s *Planner) Plan(c *catalog.Catalog) (Plan, error) {
	prepared, err := Prepare(s.state, s.t, c)
	if err != nil {
		return Plan{}, err
	}
	if prepared.unchanged {
		return Plan{Unchanged: true, Version: s.t.Version}, nil
	}
	p := Plan{Version: s.t.Version + 1}
	s.planItems(&p, c)
	s.planRealm(&p, c)
	for i := range c.Pools {
		s.planPool(&p, &c.Pools[i])
	}
	if old := s.t.Catalog; old != nil {
		in := make(map[string]bool, len(c.Pools))
		for i := range c.Pools {
			in[c.Pools[i].ID] = true
		}
		for i := range old.Pools {
			id := old.Pools[i].ID
			if in[id] {
				continue
			}
			st := s.counts(id)
			p.add(Change{Kind: ChangePoolRemoved, ID: id, Text: fmt.Sprintf(
				"pool %s: removed; %d draws stay counted and count again if it returns", id, st.total())})
			p.removeEntries(s.t.pool[id], &st, nil)
		}
	}
	return p, nil
}

func (p *Plan) add(c Change) { p.Changes = append(p.Changes, c) }

func (s *Planner) planItems(p *Plan, c *catalog.Catalog) {
	before := map[string]*catalog.Item{}
	if old := s.t.Catalog; old != nil {
		for i := range old.Items {
			before[old.Items[i].ID] = &old.Items[i]
		}
	}
	in := make(map[string]bool, len(c.Items))
	for i := range c.Items {
		it := &c.Items[i]
		in[it.ID] = true
		num, known := s.state.ItemNum(it.ID)
		if old := before[it.ID]; old != nil {
			if *old != *it {
				p.add(Change{Kind: ChangeItemChanged, ID: it.ID, Text: fmt.Sprintf("item %s: renamed from %q to %q", it.ID, old.Name, it.Name)})
			}
			continue
		}
		text := "item " + it.ID + ": added"
		if known && s.supplies[num] != "" {
			text += fmt.Sprintf("; it was here before, and players still hold %s", s.supplies[num])
		}
		p.add(Change{Kind: ChangeItemAdded, ID: it.ID, Text: text})
	}
	if s.t.Catalog == nil {
		return
	}
	for i := range s.t.Catalog.Items {
		id := s.t.Catalog.Items[i].ID
		if in[id] {
			continue
		}
		ch := Change{Kind: ChangeItemRemoved, ID: id, Text: "item " + id + ": removed; nobody holds any"}
		if supply := s.supplies[s.t.item[id]]; supply != "" {
			ch.Text = fmt.Sprintf("item %s: removed; the %s that players hold stay theirs, but can be neither granted nor consumed until it returns", id, supply)
			ch.Warning = "players hold an item that this catalog removes"
		}
		p.add(ch)
	}
}

func (s *Planner) planRealm(p *Plan, c *catalog.Catalog) {
	old := s.t.Catalog
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
	young := s.young
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

// rate returns how many new ids per second fit a window in the long run.
func rate(w catalog.Idempotency) string {
	millis := uint64(w.Count) * 1_000_000 / uint64(w.Age.Milliseconds())
	if millis >= 10_000 {
		return fmt.Sprint(millis / 1000)
	}
	return fmt.Sprintf("%d.%03d", millis/1000, millis%1000)
}

func (s *Planner) planPool(p *Plan, c *catalog.Pool) {
	st := s.counts(c.ID)
	old := s.t.pool[c.ID]
	if old == nil {
		text := "pool " + c.ID + ": added"
		if st.known {
			text += fmt.Sprintf("; it was here before, and its %d draws count", st.total())
		}
		p.add(Change{Kind: ChangePoolAdded, ID: c.ID, Text: text})
	} else if what := poolChanges(old.config, c); what != "" {
		p.add(Change{Kind: ChangePoolChanged, ID: c.ID, Text: "pool " + c.ID + ": " + what, Warning: newCounters(old, &st, c)})
	}
	in := make(map[string]bool, len(c.Entries))
	for i := range c.Entries {
		in[c.Entries[i].ID] = true
		p.add(s.planEntry(c, &c.Entries[i], &st, old))
	}
	if old == nil {
		return
	}
	p.removeEntries(old, &st, in)
}

// newCounters warns of limits over a time that the pool in force has no limit over.
func newCounters(old *poolTable, st *counts, c *catalog.Pool) string {
	if st.total() == 0 {
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

// removeEntries describes the entries of a pool that the new catalog does not keep.
func (p *Plan) removeEntries(pool *poolTable, st *counts, kept map[string]bool) {
	for _, num := range pool.order {
		e := &pool.entries[num]
		if kept[e.id] {
			continue
		}
		ch := Change{Kind: ChangeEntryRemoved, ID: pool.config.ID, Entry: e.id, Drawn: st.drawn[num],
			UnlimitedBefore: !e.limited, StockBefore: e.config.Stock.Count, LeftBefore: st.left[num]}
		ch.Text = fmt.Sprintf("pool %s, entry %s: removed with %s left; its %d draws count again if it returns", ch.ID, e.id, ch.before(), ch.Drawn)
		p.add(ch)
	}
}

// poolChanges names the settings of a pool that differ.
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

// planEntry describes one entry of the new catalog. Every entry gets a line, even if nothing
// changes: an operator must see how many were drawn already.
func (s *Planner) planEntry(pool *catalog.Pool, e *catalog.Entry, st *counts, old *poolTable) Change {
	ch := Change{ID: pool.ID, Entry: e.ID, UnlimitedAfter: e.Stock.Unlimited, StockAfter: e.Stock.Count}
	var before *entryTable
	if st.known {
		if num, ok := s.state.EntryNum(st.num, e.ID); ok {
			ch.Drawn = st.drawn[num]
			if old != nil && int(num) < len(old.entries) && old.entries[num].present {
				before = &old.entries[num]
				ch.UnlimitedBefore, ch.StockBefore, ch.LeftBefore = !before.limited, before.config.Stock.Count, st.left[num]
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

// sameOdds reports whether an entry's weight is the same number in both catalogs, although each
// has its own scale.
func sameOdds(oldPool *catalog.Pool, old *catalog.Entry, pool *catalog.Pool, e *catalog.Entry) bool {
	hi1, lo1 := bits.Mul64(old.Weight, pool.WeightScale)
	hi2, lo2 := bits.Mul64(e.Weight, oldPool.WeightScale)
	return hi1 == hi2 && lo1 == lo2
}

func sameReward(a, b *catalog.Reward) bool {
	return a.Kind == b.Kind && a.Pool == b.Pool && slices.Equal(a.Items, b.Items)
}

// leftAfter returns how many are left of an entry's new stock after drawn of them were drawn.
func leftAfter(st catalog.Stock, drawn uint64) uint64 {
	if st.Unlimited || st.Count <= drawn {
		return 0
	}
	return st.Count - drawn
}
