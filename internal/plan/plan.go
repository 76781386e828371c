// Package plan says in words what applying a catalog would change, and what deserves a second look.
// It reads a realm's state and the rules' tables. Nothing that decides may enter it.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/odds"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/view"
)

// The kinds of change. Package kuji has the same, for go doc to show.
const (
	ChangeItemAdded      view.ChangeKind = "item_added"
	ChangeItemChanged    view.ChangeKind = "item_changed"
	ChangeItemRemoved    view.ChangeKind = "item_removed"
	ChangePoolAdded      view.ChangeKind = "pool_added"
	ChangePoolChanged    view.ChangeKind = "pool_changed"
	ChangePoolRemoved    view.ChangeKind = "pool_removed"
	ChangeEntryAdded     view.ChangeKind = "entry_added"
	ChangeEntryChanged   view.ChangeKind = "entry_changed"
	ChangeEntryRemoved   view.ChangeKind = "entry_removed"
	ChangeCounterAdded   view.ChangeKind = "counter_added"
	ChangeCounterChanged view.ChangeKind = "counter_changed"
	ChangeCounterRemoved view.ChangeKind = "counter_removed"
	ChangeQuestAdded     view.ChangeKind = "quest_added"
	ChangeQuestChanged   view.ChangeKind = "quest_changed"
	ChangeQuestRemoved   view.ChangeKind = "quest_removed"
	ChangeRealm          view.ChangeKind = "realm_changed" // starting grants, idempotency window, name
	ChangeNotice         view.ChangeKind = "notice"        // no change: something deserves a second look
)

// Planner makes a plan, concurrently with commands but not with another catalog. What commands change
// is read at some moment after NewPlanner.
type Planner struct {
	state    PlanState
	t        *rules.Tables
	supplies []string // by item number: what players hold; empty: nothing
	now      int64    // the time stamp that applying the catalog would get
	players  uint32
	young    int // how many remembered request ids the new window would still cover
	pools    map[string]*counts
	refilled map[string]uint64 // by pool: how often its box was filled
	open     map[string]int    // by round: how many are open
	reserved map[uint32]uint64 // by number of the pool: draws that are held with a refund
}

// PlanState is all that a plan reads of a realm.
type PlanState interface {
	rules.State
	Supply(item uint32) (text string, any bool)
	YoungerThan(time int64) int
	ReadStock(pool uint32, entries []uint32, version uint64, f func(i int, left, drawn uint64, limited bool)) (last uint64, ok bool)
}

// NewPlanner begins a plan of a catalog over t, applied at the time stamp now. The caller holds the
// realm's lock, for a time in proportion to the number of items, pools and open rounds.
func NewPlanner(state PlanState, t *rules.Tables, c *catalog.Catalog, now int64) *Planner {
	p := &Planner{
		state: state, t: t, now: now, players: state.Players(), supplies: make([]string, state.Items()),
		pools: map[string]*counts{}, refilled: map[string]uint64{},
		open: rules.OpenByName(state), reserved: rules.Reserved(state),
	}
	for i := range p.supplies {
		if text, any := state.Supply(uint32(i)); any {
			p.supplies[i] = text
		}
	}
	for _, c := range []*catalog.Catalog{t.Catalog, c} {
		if c == nil {
			continue
		}
		for i := range c.Pools {
			if num, ok := state.CounterNum(rules.RefillName(c.Pools[i].ID)); ok && c.Pools[i].Refill > 0 {
				p.refilled[c.Pools[i].ID] = state.Tally(num)
			}
		}
	}
	p.young = state.YoungerThan(p.now + state.Back() - c.Idempotency.Age.Milliseconds() - 1)
	return p
}

// counts is what was drawn from a pool over all catalogs, and what is left.
type counts struct {
	known       bool
	num         uint32
	drawn, left []uint64 // by entry number
}

func (s *Planner) counts(id string) *counts {
	if c := s.pools[id]; c != nil {
		return c
	}
	c := new(counts)
	s.pools[id] = c
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

func (c *counts) total() (sum uint64) {
	for _, d := range c.drawn {
		sum += d
	}
	return sum
}

// Plan says what applying c would change, or refuses it with a *ConflictError. It leaves out the odds
// if nobody waits for it any more.
func (s *Planner) Plan(c *catalog.Catalog, going odds.Going) (view.Plan, error) {
	prepared, err := rules.Prepare(s.state, s.t, c, nil, 0)
	if err != nil {
		return view.Plan{}, err
	}
	if prepared.Unchanged {
		return view.Plan{Unchanged: true, Version: s.t.Version}, nil
	}
	p := draft{Plan: view.Plan{Version: s.t.Version + 1}, lines: map[string]int{}}
	s.planItems(&p, prepared.Tables)
	s.planRealm(&p, c)
	s.planPools(&p, prepared.Tables, going)
	s.planCounters(&p, prepared.Tables.Catalog)
	s.planQuests(&p, prepared.Tables.Catalog)
	s.planRounds(&p, prepared.Tables.Catalog)
	s.planNotices(&p, prepared.Tables)
	return p.Plan, nil
}

// planNotices adds the notices of the new catalog that the one in force does not have.
func (s *Planner) planNotices(p *draft, t *rules.Tables) {
	known := map[notice]bool{}
	if s.t.Catalog != nil {
		for _, n := range noticesOf(s.t, s.now, s.leftNow) {
			known[n] = true
		}
	}
	for _, n := range noticesOf(t, s.now, s.leftThen) {
		if !known[n] {
			p.add(view.Change{Kind: ChangeNotice, ID: n.id, Warning: n.warning, Text: n.id + ": " + n.warning})
		}
	}
}

// draft is a plan in the making.
type draft struct {
	view.Plan
	settings int            // how many there are in all Changes
	lines    map[string]int // by pool: index in Changes of the change of its settings
}

// maxPlanSettings is the most settings that a plan lists. The changes after that have only their text.
const maxPlanSettings = 200_000

func (p *draft) add(c view.Change) {
	if p.settings += len(c.Settings); p.settings > maxPlanSettings {
		c.Settings = nil
	}
	p.Changes = append(p.Changes, c)
}

func (s *Planner) planItems(p *draft, t *rules.Tables) {
	for i := range t.Catalog.Items {
		it := &t.Catalog.Items[i]
		num, known := s.state.ItemNum(it.ID)
		if _, was := s.t.ItemNum[it.ID]; was {
			if old := &s.t.Catalog.Items[s.t.ItemAt[num]]; !old.Equal(it) {
				p.add(itemChange(old, it, s.supplies[num]))
			}
			continue
		}
		text := "item " + it.ID + ": added"
		if known && s.supplies[num] != "" {
			text += fmt.Sprintf("; it was here before, and players still hold %s", s.supplies[num])
		}
		if s.players > 0 && it.Grows.Every > 0 {
			text += "; it grows from now on, for all players"
		}
		p.add(view.Change{Kind: ChangeItemAdded, ID: it.ID, Text: text})
	}
	if s.t.Catalog == nil {
		return
	}
	for i := range s.t.Catalog.Items {
		id := s.t.Catalog.Items[i].ID
		if _, stays := t.ItemNum[id]; stays {
			continue
		}
		p.add(s.itemRemoved(&s.t.Catalog.Items[i]))
	}
}

// itemRemoved says what becomes of what players hold of an item that leaves the catalog.
func (s *Planner) itemRemoved(it *catalog.Item) view.Change {
	num := s.t.ItemNum[it.ID]
	ch := view.Change{Kind: ChangeItemRemoved, ID: it.ID, Text: "item " + it.ID + ": removed; "}
	supply, grows := s.supplies[num], s.players > 0 && s.t.GrowthOf(num) != nil
	switch {
	case supply == "" && !grows:
		ch.Text += "nobody holds any"
	case supply == "":
		ch.Text += "what has grown for players stays theirs"
	default:
		ch.Text += fmt.Sprintf("the %s that players hold stay theirs", supply)
	}
	if supply != "" || grows {
		ch.Text += ", but can be neither granted nor consumed until it returns"
		ch.Warning = "players hold an item that this catalog removes"
	}
	if supply != "" && s.t.LotsOf(num) != nil {
		ch.Text += "; units that last go at their times"
	}
	if it.Grows.Every > 0 && grows {
		ch.Text += "; it grows no more"
	}
	if it.Beyond.Do == catalog.BeyondMail {
		ch.Text += "; what waits in mailboxes can be collected only if it returns before its time"
	}
	return ch
}

func (s *Planner) planRealm(p *draft, c *catalog.Catalog) {
	old := s.t.Catalog
	if old == nil {
		return
	}
	if !slices.Equal(old.Start, c.Start) {
		p.add(realmChange("start", stacksText(old.Start), stacksText(c.Start),
			"starting grants: changed for players who come from now on; of the %d seen so far, those who have come keep theirs", s.players))
	}
	if old.Idempotency != c.Idempotency {
		p.add(s.planWindow(old.Idempotency, c.Idempotency))
	}
	s.planCalendar(p, c)
	if was, now := guessesText(old.Guesses), guessesText(c.Guesses); was != now {
		p.add(realmChange("guesses", was, now, "guesses of codes: %s instead of %s for each player", now, was))
	}
	planTexts(p, old, c)
}

func realmChange(name, before, after, format string, args ...any) view.Change {
	return view.Change{Kind: ChangeRealm, ID: name, Text: fmt.Sprintf(format, args...), Settings: []view.Setting{{Name: name, Before: before, After: after}}}
}

func guessesText(g catalog.Guesses) string {
	if g.Per == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, %s", g.Count, g.Per.String())
}

func stacksText(all []catalog.Stack) string {
	var parts []string
	for _, st := range all {
		parts = append(parts, fmt.Sprintf("%s: %d", st.Item, st.Quantity))
	}
	return strings.Join(parts, ", ")
}

func (s *Planner) planWindow(old, w catalog.Idempotency) view.Change {
	ch := realmChange("idempotency", windowText(old), windowText(w),
		"idempotency window: room for %d ids of the last %v, that is %s new ids a second, instead of %d of the last %v", w.Count, w.Age, rate(w), old.Count, old.Age)
	young := s.young
	if w.Purchases != old.Purchases {
		ch.Text += "; " + purchasesText(w.Purchases)
	}
	if w.IDs == catalog.IDsTimeOrdered {
		ch.Text += fmt.Sprintf("; ids carry their time, at most %v ahead", w.Ahead)
	}
	switch {
	case young >= int(w.Count):
		ch.Warning = fmt.Sprintf("%d request ids of the last %v are remembered already: new request ids will be refused until the oldest of them have aged", young, w.Age)
	case young > int(w.Count)/4*3:
		ch.Warning = fmt.Sprintf("%d request ids of the last %v are remembered already, of %d that there is room for: once it is used up, new request ids will be refused", young, w.Age, w.Count)
	case w.IDs == catalog.IDsTimeOrdered && old.IDs != w.IDs:
		ch.Warning = "request ids other than UUIDv7 and ULID will be refused"
	case w.IDs != old.IDs:
		ch.Warning = "request ids need not carry their time any more: a repeat of one that was forgotten will be carried out again"
	case w.Age < old.Age:
		ch.Warning = fmt.Sprintf("request ids older than %v may be forgotten at once: a late retry of one would be carried out again", w.Age)
	}
	return ch
}

func purchasesText(prefix string) string {
	if prefix == "" {
		return "new ids of purchases are forgotten too"
	}
	return fmt.Sprintf("ids that begin with %q are never forgotten from now on", prefix)
}

func windowText(w catalog.Idempotency) string {
	text := fmt.Sprintf("count: %d, age: %v", w.Count, w.Age)
	if w.IDs == catalog.IDsTimeOrdered {
		text += fmt.Sprintf(", ids: time-ordered, ahead: %v", w.Ahead)
	}
	if w.Purchases != "" {
		text += fmt.Sprintf(", purchases: %q", w.Purchases)
	}
	return text
}

// rate returns how many new ids a second a window has room for in the long run.
func rate(w catalog.Idempotency) string {
	millis := uint64(w.Count) * 1_000_000 / uint64(w.Age.Milliseconds())
	if millis >= 10_000 {
		return fmt.Sprint(millis / 1000)
	}
	return fmt.Sprintf("%d.%03d", millis/1000, millis%1000)
}
