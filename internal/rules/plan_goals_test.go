package rules_test

import (
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
)

// goalsBefore is a catalog with counters and quests, of which ann has claimed one.
const goalsBefore = `{kuji: 1, items: {gem: {}, key: {}}, pools: {p: {price: {gem: 1}, price_by: {counter: sold, prices: [{from: 3, price: {gem: 2}}]}, entries: [{id: e, weight: 1}]}},
	counters: {wins: {}, sold: {of: {draws: p}, per: day}, boss: {distinct: 9}}, start: {gem: 9},
	quests: {win: {needs: {wins: 1}, reward: {items: {gem: 5}}}, path: {tiers: [{needs: {wins: 1}, reward: {items: {gem: 1}}}, {needs: {wins: 2}, reward: {items: {key: 1}}}]}, daily: {needs: {sold: 1}, reward: {items: {gem: 1}}}}}`

// TestPlanOfGoals: what a plan says of counters, quests and prices by counters, change by change.
func TestPlanOfGoals(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"nothing":                 {"", "", "version 1 is in force"},
		"a counter is new":        {"wins: {},", "wins: {}, losses: {},", "counter_added: counter losses: added; it counts from now on"},
		"a counter goes":          {", boss: {distinct: 9}", "", "counter_removed: counter boss: removed; where it stands is kept, and counts again if it returns"},
		"a name":                  {"wins: {},", "wins: {name: Wins},", `counter_changed: counter wins: name "Wins"; it goes on from where it stands`},
		"what it counts":          {"wins: {},", "wins: {of: {progress: [wins, draws]}},", "counter_changed: counter wins: of {progress: [wins, draws]}; it goes on from where it stands"},
		"a cap":                   {"wins: {},", "wins: {most: {per: day, count: 3}},", "counter_changed: counter wins: most {per: day, count: 3}; it goes on from where it stands"},
		"more keys":               {"distinct: 9", "distinct: 10", "counter_changed: counter boss: distinct 10 instead of 9; it goes on from where it stands"},
		"another time":            {"boss: {distinct: 9}", "boss: {distinct: 9, per: day}", "counter_changed: counter boss: per day; it begins at 0\n\twarning: what it has counted so far is kept, but does not count until it counts in the old way again"},
		"another way":             {"wins: {},", "wins: {highest: true},", "counter_changed: counter wins: highest true; it begins at 0\n\twarning: what it has counted so far is kept, but does not count until it counts in the old way again"},
		"of the realm":            {"wins: {},", "wins: {for: realm},", "counter_changed: counter wins: for realm; it begins at 0\n\twarning: what it has counted so far is kept, but does not count until it counts in the old way again"},
		"a quest is new":          {"quests: {", "quests: {more: {needs: {wins: 9}}, ", "quest_added: quest more: added"},
		"a quest goes":            {", daily: {needs: {sold: 1}, reward: {items: {gem: 1}}}", "", "quest_removed: quest daily: removed; what players have claimed is kept, and counts again if it returns"},
		"more is needed":          {"win: {needs: {wins: 1}", "win: {needs: {wins: 4}", "quest_changed: quest win: needs {wins: 4} instead of {wins: 1}; the needs of a tier hold for players who have not claimed it yet"},
		"another reward":          {"items: {gem: 5}", "items: {gem: 6}", "quest_changed: quest win: reward {items: {gem: 6}} instead of {items: {gem: 5}}; the reward of a tier holds for players who have not claimed it yet"},
		"a reward of a tier":      {"items: {key: 1}", "items: {key: 2}", "quest_changed: quest path: tier 2 reward {items: {key: 2}} instead of {items: {key: 1}}; the reward of a tier holds for players who have not claimed it yet"},
		"fewer tiers":             {", {needs: {wins: 2}, reward: {items: {key: 1}}}", "", "quest_changed: quest path: no tier 2 needs instead of {wins: 2}, no tier 2 reward instead of {items: {key: 1}}; players who have claimed more than 1 tier keep what they got, and have claimed all"},
		"more tiers":              {"reward: {items: {key: 1}}}]", "reward: {items: {key: 1}}}, {needs: {wins: 3}}]", "quest_changed: quest path: tier 3 needs {wins: 3}; players who have claimed 2 tiers go on with tier 3"},
		"a quest of another time": {"daily: {needs: {sold: 1}, ", "daily: {per: week, needs: {wins: 1}, ", "quest_changed: quest daily: per week instead of day, needs {wins: 1} instead of {sold: 1}; players begin at its first tier\n\twarning: what players have claimed is kept, but does not count until the quest begins again with the old time"},
		"who claims":              {"win: {needs", "win: {claim: automatic, needs", "quest_changed: quest win: claim automatic; what is reached already waits until something that it needs moves, or to be claimed"},
		"who can":                 {"win: {needs", "win: {when: {holds: {key: 1}}, needs", "quest_changed: quest win: when {holds: {key: 1}}; who can claim holds for tiers that are not claimed yet"},
		"a price by the counter":  {"price: {gem: 2}}]", "price: {gem: 3}}]", "pool_changed: pool p: price_by {counter: sold, prices: [{from: 3, price: {gem: 3}}]} instead of {counter: sold, prices: [{from: 3, price: {gem: 2}}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put(goalsBefore)
			r.want(draw("ann", "p", 1), rules.OK, "")
			if c.from != "" && !strings.Contains(goalsBefore, c.from) {
				t.Fatalf("%q is not in the catalog", c.from)
			}
			got := r.plan(strings.Replace(goalsBefore, c.from, c.to, 1))
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestPlanOfRanks: what a plan says of players who are ranked by a counter, and of their rewards.
func TestPlanOfRanks(t *testing.T) {
	const rewards = "{rewards: [{to: 1, reward: {items: {gem: 5}}}]}"
	const before = `{kuji: 1, items: {gem: {}, cup: {}, pin: {}}, seasons: {autumn: {starts: 2023-09-01T00:00, ends: 2023-12-01T00:00}, any: {starts: 2023-01-01T00:00, ends: 2023-02-01T00:00}},
		counters: {day: {per: day, ranked: ` + rewards + `}, all: {ranked: true}, none: {}, season: {per: season, ranked: ` + rewards + `}},
		pools: {cups: {internal: true, entries: [{id: e, weight: 1, reward: {items: {cup: 1}}}]}}}`
	const waits = "\n\twarning: ranks that are not paid yet wait until players are ranked by it like that again"
	const internal = "notice: cups: nobody can draw from this pool: it is internal, and no draw leads to it\n"
	for name, c := range map[string]struct{ from, to, want string }{
		"another reward":     {"day: {per: day, ranked: " + rewards, "day: {per: day, ranked: {rewards: [{to: 1, reward: {items: {gem: 9}}}]}", "counter_changed: counter day: ranked {rewards: [{to: 1, reward: {items: {gem: 9}}}]} instead of {rewards: [{to: 1, reward: {items: {gem: 5}}}]}; it goes on from where it stands; ranks that are not paid yet get the rewards of this catalog"},
		"the first reward":   {"season: {per: season, ranked: " + rewards, "season: {per: season, ranked: {rewards: [{to: 2, reward: {items: {gem: 5}}}]}", "counter_changed: counter season: ranked {rewards: [{to: 2, reward: {items: {gem: 5}}}]} instead of {rewards: [{to: 1, reward: {items: {gem: 5}}}]}; it goes on from where it stands; ranks that are not paid yet get the rewards of this catalog"},
		"no rewards":         {"day: {per: day, ranked: " + rewards, "day: {per: day, ranked: true", "counter_changed: counter day: ranked true instead of {rewards: [{to: 1, reward: {items: {gem: 5}}}]}; it goes on from where it stands; ranks get nothing any more\n\twarning: ranks that are not paid yet get nothing, unless it has rewards again before its next period ends"},
		"no ranks":           {"day: {per: day, ranked: " + rewards + "}", "day: {per: day}", "counter_changed: counter day: no ranked instead of {rewards: [{to: 1, reward: {items: {gem: 5}}}]}; it goes on from where it stands; nobody is ranked by it any more" + waits},
		"no ranks, unpaid":   {"all: {ranked: true}", "all: {}", "counter_changed: counter all: no ranked instead of true; it goes on from where it stands; nobody is ranked by it any more"},
		"gone":               {"day: {per: day, ranked: " + rewards + "}, ", "", "counter_removed: counter day: removed; where it stands is kept, and counts again if it returns; nobody is ranked by it any more" + waits},
		"ranks":              {"none: {}", "none: {ranked: true}", "counter_changed: counter none: ranked true; it goes on from where it stands; players are ranked by it, by what they have counted so far"},
		"another time":       {"day: {per: day", "day: {per: week", "counter_changed: counter day: per week instead of day; it begins at 0; players are ranked again\n\twarning: what it has counted so far is kept, but does not count until it counts in the old way again; ranks that are not paid yet wait until players are ranked by it like that again"},
		"an end now":         {"ends: 2023-12-01T00:00", "ends: 2023-11-01T00:00", "realm_changed: season autumn: ends 2023-11-01T00:00:00Z instead of 2023-12-01T00:00:00Z\n\twarning: it is over as soon as this catalog is in force: its counters stand still; ranks get their rewards"},
		"a later start":      {"starts: 2023-09-01T00:00", "starts: 2023-10-01T00:00", "realm_changed: season autumn: starts 2023-10-01T00:00:00Z instead of 2023-09-01T00:00:00Z\n\twarning: it has started already: its counters begin at 0 again; ranks get their rewards"},
		"a season that goes": {"autumn: {starts: 2023-09-01T00:00, ends: 2023-12-01T00:00}, ", "", "realm_changed: season autumn: removed; starts 2023-09-01T00:00:00Z, ends 2023-12-01T00:00:00Z\n\twarning: it runs: its counters stand still; ranks get their rewards"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.now = 1_700_000_000_000
			r.put(before)
			if !strings.Contains(before, c.from) {
				t.Fatalf("%q is not in the catalog", c.from)
			}
			if got := r.plan(strings.Replace(before, c.from, c.to, 1)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	r := newRealm(t, 1)
	r.now = 1_700_000_000_000
	if got := r.plan(before); !strings.Contains(got, strings.TrimSpace(internal)) {
		t.Errorf("cups lead nowhere, and the plan is\n%s", got)
	}
	r.put(before)
	r.put(strings.Replace(before, "ranked: "+rewards+"}, all", "ranked: true}, all", 1))
	// What only ranks get, somebody can get.
	if got := r.plan(strings.Replace(before, "{items: {gem: 5}}", "[{items: {pin: 1}}, {pool: cups}]", 1)); strings.Contains(got, "notice") {
		t.Errorf("ranks get a pin and a cup, and the plan says\n%s", got)
	}
	// Players are ranked again.
	r.put(strings.Replace(before, "day: {per: day, ranked: "+rewards+"}", "day: {per: day}", 1))
	if got, want := r.plan(before), "counter_changed: counter day: ranked "+rewards+"; it goes on from where it stands; players are ranked by it, by what they have counted so far; ranks that were not paid earlier get the rewards of this catalog"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestGoalsComeBack: a counter and a quest that go and come back, or count another time in between, have what
// they had.
func TestGoalsComeBack(t *testing.T) {
	r := newRealm(t, 1)
	r.put(goalsBefore)
	claim := claim("ann", "daily", 0)
	r.want(draw("ann", "p", 1), rules.OK, "")
	r.want(claim, rules.OK, "")
	weekly := strings.NewReplacer("per: day", "per: week").Replace(goalsBefore)
	r.put(weekly)
	r.want(claim, rules.NotReached, "daily")
	r.want(draw("ann", "p", 1), rules.OK, "")
	r.want(claim, rules.OK, "")
	const want = `counter_changed: counter sold: per day instead of week; it goes on from where it stood when it last counted like this
	warning: what it has counted in the present way is kept, but does not count until it counts in that way again
quest_changed: quest daily: per day instead of week; what players claimed when it last began again with this time counts
	warning: what players have claimed is kept, but does not count until the quest begins again with the old time`
	if got := r.plan(goalsBefore); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.put(goalsBefore)
	r.want(claim, rules.AlreadyClaimed, "daily")
	gone := strings.Replace(goalsBefore, ", daily: {needs: {sold: 1}, reward: {items: {gem: 1}}}", "", 1)
	r.put(gone)
	if got, want := r.plan(goalsBefore), "quest_added: quest daily: added; it was here before, and what players have claimed counts"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.put(goalsBefore)
	r.want(claim, rules.AlreadyClaimed, "daily")
}
