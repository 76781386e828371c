package catalog_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
)

// drawGoals draws counters of every form, and quests that ask for them.
func (w *written) drawGoals(t *rapid.T, items []string) {
	c := &w.want
	for _, id := range ids(t, 0, 5, "counters") {
		c.Counters = append(c.Counters, drawCounter(t, c, id, items))
	}
	for _, id := range ids(t, 0, 4, "quests") {
		c.Quests = append(c.Quests, drawQuest(t, c, id, items))
	}
}

// among draws some of a list, perhaps none.
func among(t *rapid.T, all []string) (some []string) {
	for _, one := range all {
		if rapid.IntRange(0, 2).Draw(t, "counted") == 0 && len(some) < catalog.MaxCounted {
			some = append(some, one)
		}
	}
	return some
}

func drawPeriod(t *rapid.T, c *catalog.Catalog) catalog.Period {
	p := catalog.Period{Per: rapid.SampledFrom([]catalog.Per{catalog.PerForever, catalog.PerDay, catalog.PerWeek, catalog.PerMonth}).Draw(t, "per")}
	if len(c.Seasons) > 0 && maybe(t, "season") {
		p = catalog.Period{Per: catalog.PerSeason, Season: c.Seasons[0].ID}
	}
	return p
}

func drawCounter(t *rapid.T, c *catalog.Catalog, id string, items []string) catalog.Counter {
	k := catalog.Counter{ID: id, Name: name(t), For: rapid.SampledFrom([]catalog.For{catalog.ForPlayer, catalog.ForRealm}).Draw(t, "for"), Per: drawPeriod(t, c)}
	if maybe(t, "facts") {
		var pools, entries []string
		for i := range c.Pools {
			if p := &c.Pools[i]; !p.Internal {
				pools = append(pools, p.ID)
			}
			entries = append(entries, c.Pools[i].ID+"/"+c.Pools[i].Entries[0].ID)
		}
		k.Of = catalog.Facts{Progress: ids(t, 1, 3, "events"), Draws: among(t, pools), Entries: among(t, entries),
			Gains: among(t, items), Spends: among(t, items), Consumes: among(t, items)}
	}
	timed := []catalog.Per{catalog.PerDay, catalog.PerWeek, catalog.PerMonth}
	switch rapid.IntRange(0, 4).Draw(t, "form") {
	case 0:
		k.Per = catalog.Period{Per: catalog.PerForever}
		k.Streak = catalog.Streak{Per: rapid.SampledFrom(timed).Draw(t, "streak"), Forgive: rapid.SampledFrom([]uint32{0, 0, 1, catalog.MaxForgiven}).Draw(t, "forgive")}
	case 1:
		k.Highest = true
	case 2:
		k.Distinct = rapid.Uint32Range(1, catalog.MaxDistinct).Draw(t, "distinct")
	case 3:
		k.Most = catalog.Most{Per: rapid.SampledFrom(append(timed, catalog.PerHour)).Draw(t, "most"), Count: quantity(t, 1)}
	}
	return k
}

// drawNeeds asks for some counters of all time or of a period.
func drawNeeds(t *rapid.T, c *catalog.Catalog, per catalog.Period) (all []catalog.Counted) {
	for i := range c.Counters {
		k := &c.Counters[i]
		if k.Per != per && k.Per.Per != catalog.PerForever || rapid.Bool().Draw(t, "needed") {
			continue
		}
		n := catalog.Counted{Counter: k.ID, Min: quantity(t, 1), Max: catalog.MaxCount}
		if maybe(t, "max") {
			n.Min, n.Max = min(n.Min, catalog.MaxCount-1)-1, catalog.MaxCount-1
		}
		all = append(all, n)
	}
	return all
}

func drawQuest(t *rapid.T, c *catalog.Catalog, id string, items []string) catalog.Quest {
	q := catalog.Quest{ID: id, Name: name(t), Per: drawPeriod(t, c), Claim: catalog.ClaimPlayer}
	for i, s := range stacks(t, items) {
		if i%2 == 0 {
			q.When.Holds = append(q.When.Holds, s)
		} else {
			q.When.Lacks = append(q.When.Lacks, s.Item)
		}
	}
	q.When.Counters = drawNeeds(t, c, q.Per)
	for i := range c.Quests {
		if maybe(t, "quest") {
			q.When.Quests = append(q.When.Quests, catalog.Done{Quest: c.Quests[i].ID, Tiers: uint64(len(c.Quests[i].Steps()))})
		}
	}
	tier := func() catalog.Tier {
		return catalog.Tier{Needs: drawNeeds(t, c, q.Per), Reward: drawReward(t, items, nil, true).Reward}
	}
	if q.Tier = tier(); maybe(t, "tiers") {
		q.Tier = catalog.Tier{}
		for range rapid.IntRange(1, 3).Draw(t, "how many tiers") {
			q.Tiers = append(q.Tiers, tier())
		}
	}
	automatic := !q.When.Empty()
	for _, s := range q.Steps() {
		automatic = automatic || len(q.Tiers) == 0 && len(s.Needs) > 0
	}
	if automatic && rapid.Bool().Draw(t, "automatic") {
		q.Claim = catalog.ClaimAutomatic
	}
	return q
}

// goals writes counters and quests.
func (w *writer) goals(c *catalog.Catalog) {
	if len(c.Counters) > 0 {
		w.line(0, "counters:")
	}
	for i := range c.Counters {
		w.counter(&c.Counters[i])
	}
	if len(c.Quests) > 0 {
		w.line(0, "quests:")
	}
	for i := range c.Quests {
		w.quest(c, &c.Quests[i])
	}
}

func period(p catalog.Period) string {
	if p.Season != "" {
		return fmt.Sprintf("{season: %q}", p.Season)
	}
	return perWords[p.Per]
}

func (w *writer) counter(k *catalog.Counter) {
	w.line(2, "%q:", k.ID)
	if realm := k.For == catalog.ForRealm; realm {
		w.line(4, "for: realm")
	} else {
		w.line(4, "for: player")
	}
	w.display(k.Name, &k.Display)
	if k.Ranked.Is {
		w.line(4, "ranked: true")
	}
	if !k.Of.Empty() {
		w.line(4, "of:")
	}
	for _, fact := range []struct {
		key string
		all []string
	}{{"progress", k.Of.Progress}, {"draws", k.Of.Draws}, {"entries", k.Of.Entries}, {"gains", k.Of.Gains}, {"spends", k.Of.Spends}, {"consumes", k.Of.Consumes}} {
		switch {
		case len(fact.all) == 1 && w.optional():
			w.line(6, "%s: %q", fact.key, fact.all[0])
		case len(fact.all) > 0:
			w.line(6, "%s: %s", fact.key, quotes(fact.all))
		}
	}
	if k.Per.Per != catalog.PerForever || k.Streak.Per == 0 && w.optional() {
		w.line(4, "per: %s", period(k.Per))
	}
	switch s := k.Streak; {
	case s.Per != 0 && s.Forgive == 0 && w.optional():
		w.line(4, "streak: %s", perWords[s.Per])
	case s.Per != 0:
		w.line(4, "streak: {per: %s, forgive: %d}", perWords[s.Per], s.Forgive)
	case k.Highest:
		w.line(4, "highest: true")
	case k.Distinct > 0:
		w.line(4, "distinct: %d", k.Distinct)
	case k.Most.Per != 0:
		w.line(4, "most: {per: %s, count: %d}", perWords[k.Most.Per], k.Most.Count)
	}
}

// counted writes where counters must stand.
func (w *writer) counted(indent int, key string, all []catalog.Counted) {
	if len(all) > 0 {
		w.line(indent, "%s:", key)
	}
	for _, n := range all {
		switch {
		case n.Max != catalog.MaxCount:
			w.line(indent+2, "%q: {min: %d, max: %d}", n.Counter, n.Min, n.Max)
		case w.optional():
			w.line(indent+2, "%q: {min: %d}", n.Counter, n.Min)
		default:
			w.line(indent+2, "%q: %d", n.Counter, n.Min)
		}
	}
}

func (w *writer) quest(c *catalog.Catalog, q *catalog.Quest) {
	w.line(2, "%q:", q.ID)
	w.line(4, "claim: %s", map[catalog.Claim]string{catalog.ClaimPlayer: "player", catalog.ClaimAutomatic: "automatic"}[q.Claim])
	w.display(q.Name, &q.Display)
	w.condition(4, &q.When)
	if said := inferred(c, q); !said || w.optional() {
		w.line(4, "per: %s", period(q.Per))
	}
	tier := func(indent int, s *catalog.Tier) {
		w.counted(indent, "needs", s.Needs)
		w.reward(indent, "reward", &s.Reward)
	}
	if len(q.Tiers) == 0 {
		tier(4, &q.Tier)
		return
	}
	w.line(4, "tiers:")
	for i := range q.Tiers {
		inner := &writer{t: w.t}
		if tier := &q.Tiers[i]; len(tier.Needs) == 0 && tier.Reward.Nothing() {
			w.line(6, "- {}")
			continue
		}
		inner.counted(8, "needs", q.Tiers[i].Needs)
		inner.reward(8, "reward", &q.Tiers[i].Reward)
		text := strings.TrimPrefix(inner.String(), "        ")
		w.WriteString("      - " + text)
	}
}

// inferred reports whether a quest's period follows from the counters that its tiers need.
func inferred(c *catalog.Catalog, q *catalog.Quest) bool {
	last := catalog.Period{Per: catalog.PerForever}
	for _, s := range q.Steps() {
		for _, n := range s.Needs {
			for i := range c.Counters {
				if k := &c.Counters[i]; k.ID == n.Counter && k.Per.Per != catalog.PerForever {
					last = k.Per
				}
			}
		}
	}
	return last == q.Per
}
