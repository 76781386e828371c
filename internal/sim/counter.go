package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// Counters, as the catalog's words say what they count.

// tally is where a counter stands.
type tally struct {
	value  uint64
	move   uint64   // with ranks: the number of the move that reached it, among those of all players
	period int64    // that the value is of; of a streak, the last one in it
	missed int64    // periods that the streak has missed
	keys   []string // that a counter of different keys has seen in the period
}

// goalBook is where counters stand, and what was claimed of quests.
type goalBook struct {
	tallies map[string]tally  // by counter, shape and player
	quests  map[string]taken  // by quest and player
	ladders map[string]ladder // by counter and shape: those that rank players, or have ranked them
	day     catalog.Day       // of the catalog in force
	seasons []catalog.Season
}

func (b goalBook) clone() goalBook {
	b.tallies, b.quests, b.ladders = maps.Clone(b.tallies), maps.Clone(b.quests), maps.Clone(b.ladders)
	return b
}

// ledger is where facts are stated: in the book of the model, or in that of a trial, which sees less.
type ledger struct {
	*model
	book goalBook
}

// tallyOf names a counter of a player, or of the realm. With another shape it is another one.
func tallyOf(c *catalog.Counter, player string) string {
	if c.For == catalog.ForRealm {
		player = ""
	}
	return fmt.Sprint(c.For, c.ID, c.Per, c.Streak.Per, c.Highest, c.Distinct > 0, " of ", player)
}

// period numbers the hours, days, weeks and months of the catalog's calendar; for all time it is 0.
func (b goalBook) period(per catalog.Per, now int64) int64 {
	const dayMillis = 24 * hourMillis
	today := now - int64(b.day.Begins)*60_000 // as if days began at 00:00
	switch per {
	case catalog.PerHour:
		return now / hourMillis
	case catalog.PerDay:
		return today / dayMillis
	case catalog.PerWeek: // 1969-12-29 was a Monday
		return (today/dayMillis + (3+7-int64(b.day.Week))%7) / 7
	case catalog.PerMonth:
		year, month, _ := time.UnixMilli(today).UTC().Date()
		return int64(year)*12 + int64(month)
	}
	return 0
}

// over is what a counter counts in one piece.
func over(c *catalog.Counter) catalog.Per {
	if c.Streak.Per != 0 {
		return c.Streak.Per
	}
	return c.Per.Per
}

// counts returns where a counter stands for a player.
func (b goalBook) counts(c *catalog.Counter, player string, now int64) uint64 {
	period, place, _ := b.present(c, now)
	t := b.tallies[placed(c, player, place)]
	switch later := period - t.period; {
	case later <= 0, c.Streak.Per != 0 && later == 1:
		return t.value
	case c.Streak.Per == 0, t.missed+later-1 > int64(c.Streak.Forgive):
		return 0
	}
	return t.value
}

// move moves a counter.
func (b goalBook) move(c *catalog.Counter, player string, n uint64, key string, now int64) {
	period, place, open := b.present(c, now)
	if !open {
		return
	}
	id, value := placed(c, player, place), b.counts(c, player, now)
	t := b.tallies[id]
	was := t
	switch {
	case c.Streak.Per != 0:
		switch {
		case value == 0:
			value, t.missed = 1, 0
		case period > t.period:
			value, t.missed = value+1, t.missed+period-t.period-1
		}
	case c.Highest:
		value = max(value, n)
	case c.Distinct > 0:
		keys := t.keys[:min(int(value), len(t.keys))]
		if slices.Contains(keys, key) || value >= uint64(c.Distinct) {
			return
		}
		t.keys = append(slices.Clip(keys), key)
		value++
	default:
		if c.Most.Per != 0 {
			n = b.capped(c, player, n, now)
		}
		if n == 0 {
			return
		}
		value = min(value+n, kuji.MaxQuantity)
	}
	t.value = value
	b.keep(c, id, was, t, period)
}

// keep notes where a counter stands, in a period.
func (b goalBook) keep(c *catalog.Counter, id string, was, t tally, period int64) {
	if _, ranks := b.ladders[tallyOf(c, "")]; ranks || period > t.period {
		t.period = period // with ranks, the same for all
	}
	b.ranks(c, was, &t)
	b.tallies[id] = t
}

// capped returns how much of a move counts, and counts it toward the cap.
func (b goalBook) capped(c *catalog.Counter, player string, n uint64, now int64) uint64 {
	id := tallyOf(c, player) + " cap"
	t := b.tallies[id]
	if p := b.period(c.Most.Per, now); p > t.period {
		t.period, t.value = p, 0
	}
	n = min(n, c.Most.Count-min(c.Most.Count, t.value))
	t.value += n
	b.tallies[id] = t
	return n
}

// set sets a counter by hand.
func (b goalBook) set(c *catalog.Counter, player string, v uint64, now int64) {
	period, place, _ := b.present(c, now)
	id := placed(c, player, place)
	t := b.tallies[id]
	was := t
	t.value, t.missed, t.keys = v, 0, nil
	b.keep(c, id, was, t, period)
}

// facts states that a player did n of something. kind chooses where counters name it.
func (m ledger) facts(player string, n uint64, what string, kind func(*catalog.Facts) []string) {
	for i := range m.catalog.Counters {
		if c := &m.catalog.Counters[i]; slices.ContainsFunc(kind(&c.Of), func(id string) bool { return slices.Contains(m.kin(id), what) }) {
			m.advance(c, player, n, what)
		}
	}
}

func ofDraws(f *catalog.Facts) []string    { return f.Draws }
func ofEntries(f *catalog.Facts) []string  { return f.Entries }
func ofGains(f *catalog.Facts) []string    { return f.Gains }
func ofSpends(f *catalog.Facts) []string   { return f.Spends }
func ofConsumes(f *catalog.Facts) []string { return f.Consumes }

// stacks states a fact about each of some items.
func (m ledger) stacks(player string, items []kuji.Stack, kind func(*catalog.Facts) []string) {
	for _, it := range items {
		m.facts(player, it.Quantity, it.Item, kind)
	}
}

// startsGained states the facts of the starting grants.
func (m ledger) startsGained(player string) {
	for _, s := range m.catalog.Start {
		m.facts(player, s.Quantity, s.Item, ofGains)
	}
}

// itemFacts states the facts of a Grant or a Consume.
func (m ledger) itemFacts(rec kuji.Record) {
	switch rec.Kind {
	case "grant":
		m.stacks(rec.Player, rec.Items, ofGains)
	case "consume":
		m.stacks(rec.Player, rec.Items, ofConsumes)
	}
}

// reports moves the counters of the event that a Progress brings.
func (m ledger) reports(rec kuji.Record) {
	for i := range m.catalog.Counters {
		if c := &m.catalog.Counters[i]; slices.Contains(c.Events(), rec.Event) {
			m.advance(c, rec.Player, *rec.Value, rec.Key)
		}
	}
}

// advance moves a counter, and notes who has moved one of the realm: quests that ask for it fire for them.
func (m ledger) advance(c *catalog.Counter, player string, n uint64, key string) {
	id := tallyOf(c, player)
	before := m.book.tallies[id]
	m.book.move(c, player, n, key, m.now)
	if after := m.book.tallies[id]; c.For == catalog.ForRealm && (after.value != before.value || after.period != before.period) {
		m.movers[c.ID+" "+player] = true
	}
}

// counter returns a counter, nil if the catalog does not have it.
func (r rulebook) counter(id string) *catalog.Counter {
	if r.catalog == nil {
		return nil
	}
	for i := range r.catalog.Counters {
		if r.catalog.Counters[i].ID == id {
			return &r.catalog.Counters[i]
		}
	}
	return nil
}

// stand reports whether counters stand where they must.
func (m ledger) stand(all []catalog.Counted, player string) bool {
	return !slices.ContainsFunc(all, func(c catalog.Counted) bool {
		n := m.book.counts(m.counter(c.Counter), player, m.now)
		return n < c.Min || n > c.Max
	})
}

// countersText writes counters of every form, and of every kind of fact. It returns over what time one of them
// counts.
func countersText(r *rand.Rand, pf func(string, ...any)) (bosses string) {
	per := func() string { return []string{"day", "week", "month", "forever"}[r.IntN(4)] }
	bosses = per()
	pf("counters:")
	if wins := per(); wins == "forever" {
		pf("  wins: {per: forever%s}", rankedText(r, false))
	} else {
		pf("  wins: {per: %s%s}", wins, rankedText(r, true))
	}
	pf("  best: {of: {progress: wins, draws: open}, highest: true, per: %s}", per())
	pf("  bosses: {of: {progress: boss}, distinct: %d, per: %s}", 2+r.IntN(3), bosses)
	pf("  visits: {of: {draws: [open, hand]}, streak: {per: day, forgive: %d}}", r.IntN(3))
	pf("  sold: {of: {draws: [box, paid]}, per: week}")
	pf("  spent: {of: {spends: [gem, gold]}, per: day}")
	pf("  earned: {of: {gains: [gold, sword, key]}, most: {per: %s, count: %d}}", []string{"hour", "day", "week"}[r.IntN(3)], 3+r.IntN(20))
	pf("  refreshes: {of: {draws: [refresh, armory]}, per: %s}", per())
	pf("  worn: {of: {gains: arms, spends: [arms, gem], consumes: deck}, per: %s}", per())
	pf("  eaten: {of: {consumes: [gem, gold, key]}, per: %s}", []string{"day", "forever"}[r.IntN(2)])
	pf("  hits: {of: {entries: [open/sword, box/t0, hand/one, five/lost], draws: luck}}")
	pf("  raid: {for: realm, of: {progress: [wins, damage], draws: hand}, per: %s}", per())
	pf("  nights: {for: realm, of: {gains: gem}, streak: day}")
	return bosses
}

// setCounterRequest sets a counter by hand.
func setCounterRequest(r *rand.Rand, player string) kuji.Request {
	req := kuji.SetCounter{Player: player, Value: r.Uint64N(6), Note: kuji.Note{Reason: "a fault"}}
	req.Counter = []string{"wins", "best", "bosses", "visits", "sold", "earned", "hits", "raid", "nights", "score", "peak", "total", "purse"}[r.IntN(13)]
	switch {
	case req.Counter == "raid" || req.Counter == "nights":
		req.Player = ""
	case req.Counter == "bosses":
		req.Value = 0
	case r.IntN(40) == 0:
		req.Value = kuji.MaxQuantity - r.Uint64N(2)
	}
	return req
}

// progressRequest reports an event.
func progressRequest(r *rand.Rand, player string) kuji.Request {
	req := kuji.Progress{Player: player, Event: []string{"wins", "boss", "boss", "damage", "wins", "boss", "boss", "damage", "nosuch"}[r.IntN(9)], N: r.Uint64N(4)}
	if req.Event == "boss" {
		req.Key = []string{"", "a", "b", "c", "d"}[r.IntN(5)]
	}
	if req.N > 0 && r.IntN(40) == 0 {
		req.N = kuji.MaxQuantity - r.Uint64N(2)
	}
	return req
}
