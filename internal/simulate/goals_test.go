package simulate_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji/internal/simulate"
)

const journey = `
kuji: 1
items: {gold: {}, gem: {}, medal: {}, ticket: {}, crown: {}}
pools:
  chest: {price: {ticket: 1}, max_count: 10, entries: [{id: gem, weight: 1, reward: {items: {gem: 1}}}, {id: blank, weight: 3}]}
  prize: {internal: true, entries: [{id: medal, weight: 1, reward: {items: {medal: 1}}}, {id: code, weight: 1, reward: {code: gifts}}]}
counters:
  wins: {}
  today: {of: {progress: wins}, per: day}
  bosses: {of: {progress: boss}, distinct: 4}
  opened: {of: {draws: chest}}
  gems: {of: {gains: gem}}
quests:
  daily: {needs: {today: 2}, reward: {items: {gold: 10}}}
  hunter: {tiers: [{needs: {bosses: 2}, reward: {items: {gold: 1}}}, {needs: {bosses: 4}, reward: {pool: prize}}, {needs: {bosses: 5}}]}
  collector: {claim: automatic, tiers: [{needs: {gems: 1}, reward: {items: {crown: 1}}}, {needs: {gems: 3}, reward: {items: {crown: 1}}}]}
  last: {needs: {opened: 20}, when: {quests: {collector: 2}}, reward: {items: {gold: 100}}}
`

func questOf(t *testing.T, r *simulate.Report, id string) simulate.Quest {
	t.Helper()
	i := slices.IndexFunc(r.Quests, func(q simulate.Quest) bool { return q.Quest == id })
	if i < 0 {
		t.Fatalf("no quest %s in %+v", id, r.Quests)
	}
	return r.Quests[i]
}

// total returns how many of an item a quest has given.
func total(q simulate.Quest, item string) (n uint64) {
	for _, g := range q.Given {
		if g.Item == item {
			n = g.Total
		}
	}
	return n
}

// TestQuests: players claim what they reach, quests claim themselves, and the report says how far it goes. Each of 100
// players opens 20 chests in 20 days, wins 2.5 times a day and meets one of 4 bosses every other day.
func TestQuests(t *testing.T) {
	const players, days = 100, 20
	config := simulate.Config{Pool: "chest", Players: players, Draws: days, Count: 1, Seed: 3, Rate: players / 24.0, Progress: []simulate.Progress{
		{Event: "wins", N: 2.5, Per: "day"}, {Event: "boss", N: 0.5, Per: "day", Keys: 4}}}
	r := run(t, parse(t, journey), config)
	if r.Draws != players*days {
		t.Fatalf("%d draws, want %d", r.Draws, players*days)
	}
	// The first day has no progress before it, except for who draws late in it; later days have 2 or 3 wins.
	daily := questOf(t, r, "daily")
	if daily.Tiers[0] != players || daily.Claims < players*(days-1) || daily.Claims > players*days || total(daily, "gold") != 10*daily.Claims {
		t.Errorf("daily: %+v", daily)
	}
	perDay := float64(daily.Claims) * 10 / players / days
	if got := daily.Given[0]; got.PerDay == nil || math.Abs(*got.PerDay-perDay) > 1e-9 || math.Abs(got.PerPlayer-perDay*days) > 1e-9 {
		t.Errorf("daily gives %+v, want %v a day", got, perDay)
	}
	// Nine or ten reports of one of 4 bosses: 2 different ones with all but 1 in 4^8, 4 with about 3 in 4.
	hunter := questOf(t, r, "hunter")
	if n := hunter.Tiers; n[0] != players || n[1] < 55 || n[1] > 90 || n[2] != 0 || hunter.Claims != n[0]+n[1] || total(hunter, "gold") != players {
		t.Errorf("hunter: %+v", hunter)
	}
	medals := total(hunter, "medal")
	if len(r.Codes) != 1 || r.Codes[0].Given+medals != hunter.Tiers[1] || r.Codes[0].Given == 0 || medals == 0 {
		t.Errorf("hunter gives %d medals and codes %+v, want %d in all", medals, r.Codes, hunter.Tiers[1])
	}
	// At least 1 and at least 3 of 20 at 1 in 4: 0.9968 and 0.9087.
	collector := questOf(t, r, "collector")
	if n := collector.Tiers; n[0] < 97 || n[1] < 82 || n[1] > 98 || total(collector, "crown") != n[0]+n[1] {
		t.Errorf("collector: %+v", collector)
	}
	if last := questOf(t, r, "last"); last.Claims != collector.Tiers[1] || total(last, "gold") != 100*last.Claims {
		t.Errorf("last: %+v, want those %d who have collected", last, collector.Tiers[1])
	}
	for _, g := range r.Given {
		if g.Item != "gem" {
			t.Errorf("draws give %+v, want only gems", g)
		}
	}
	if again := run(t, parse(t, journey), config); !slices.EqualFunc(r.Quests, again.Quests, func(a, b simulate.Quest) bool { return a.Claims == b.Claims }) {
		t.Error("another result the second time")
	}
}

// TestQuestsWithoutTime: progress by draws, and an item that only a quest gives ends a player's draws.
func TestQuestsWithoutTime(t *testing.T) {
	r := run(t, parse(t, journey), simulate.Config{Pool: "chest", Players: 50, Draws: 60, Count: 2, Seed: 1, Until: "crown",
		Progress: []simulate.Progress{{Event: "boss", N: 0.25, Per: "draw"}}})
	collector := questOf(t, r, "collector")
	if r.Until.Reached != collector.Tiers[0] || collector.Tiers[1] > 0 && r.Until.Reached == 0 {
		t.Errorf("%d players have it, the quest was claimed by %d", r.Until.Reached, collector.Tiers[0])
	}
	if hunter := questOf(t, r, "hunter"); hunter.Claims != 0 { // one boss without a key
		t.Errorf("hunter: %+v", hunter)
	}
	for _, q := range r.Quests {
		for _, g := range q.Given {
			if g.PerDay != nil {
				t.Errorf("%s gives %v a day, but no time passes", q.Quest, *g.PerDay)
			}
		}
	}
}

// TestGoalsOfTheRealm: players who share a counter share a crowd.
func TestGoalsOfTheRealm(t *testing.T) {
	r := run(t, parse(t, `{kuji: 1, items: {a: {}}, pools: {p: {entries: [{id: x, weight: 1}]}}, counters: {raid: {for: realm, of: {draws: p}}},
		quests: {raid: {needs: {raid: 150}, reward: {items: {a: 1}}}}}`), simulate.Config{Pool: "p", Players: 100, Draws: 2, Count: 1})
	// In the second turn, the 50th player reaches it; the first 49 have had their last turn.
	if q := questOf(t, r, "raid"); r.StockOf != "all" || q.Tiers[0] != 51 {
		t.Errorf("%+v, stock of %s", q, r.StockOf)
	}
}

// TestRisingPrice: players buy what each draw costs where the counter stands.
func TestRisingPrice(t *testing.T) {
	c := parse(t, `{kuji: 1, items: {gem: {}, key: {}}, counters: {c: {of: {draws: p}}}, pools: {p: {price: {gem: 1}, max_count: 10,
		price_by: {counter: c, prices: [{from: 2, price: {gem: 10}}, {from: 4, price: {key: 1}}]}, entries: [{id: x, weight: 1}]}}}`)
	for _, count := range []int{1, 3} {
		r := run(t, c, simulate.Config{Pool: "p", Players: 10, Draws: 6, Count: count})
		if len(r.Paid) != 2 || r.Paid[0].Total != 220 || r.Paid[1].Total != 20 || r.Draws != 60 {
			t.Errorf("%d at once: paid %+v for %d draws, want 220 gems and 20 keys for 60", count, r.Paid, r.Draws)
		}
	}
}

// TestWaitsForACounter: a player whom a pool refuses for a counter tries again.
func TestWaitsForACounter(t *testing.T) {
	c := parse(t, `{kuji: 1, items: {a: {}}, counters: {wins: {}}, pools: {p: {when: {counters: {wins: 3}}, entries: [{id: x, weight: 1}]}}}`)
	r := run(t, c, simulate.Config{Pool: "p", Players: 10, Draws: 6, Count: 1, Progress: []simulate.Progress{{Event: "wins", N: 1, Per: "draw"}}})
	if r.Draws != 40 || len(r.Refused) != 1 || r.Refused[0].Requests != 20 || r.Refused[0].Stopped != 0 {
		t.Errorf("%d draws, refused %+v, want 40 after 20 in vain", r.Draws, r.Refused)
	}
	r = run(t, c, simulate.Config{Pool: "p", Players: 10, Draws: 6, Count: 1})
	if r.Draws != 0 || r.Refused[0].Stopped != 10 {
		t.Errorf("without progress: %d draws, refused %+v", r.Draws, r.Refused)
	}
}

// TestRefusesProgress: what cannot be simulated is named.
func TestRefusesProgress(t *testing.T) {
	for _, c := range []struct {
		progress []simulate.Progress
		want     string
	}{
		{[]simulate.Progress{{Event: "losses", N: 1, Per: "draw"}}, `progress: "losses": expected an event that a counter of the catalog counts`},
		{[]simulate.Progress{{Event: "wins", N: 0, Per: "draw"}}, "progress: wins=0: expected a number above 0, at most 1e+12"},
		{[]simulate.Progress{{Event: "wins", N: math.NaN(), Per: "draw"}}, "progress: wins=NaN: expected a number above 0, at most 1e+12"},
		{[]simulate.Progress{{Event: "wins", N: 1, Per: "week"}}, `progress: wins, per "week": expected draw or day`},
		{[]simulate.Progress{{Event: "wins", N: 1, Per: "day"}}, "progress: wins, per day: expected --rate or --days too, or no time passes"},
		{[]simulate.Progress{{Event: "wins", N: 1, Per: "draw"}, {Event: "wins", N: 1, Per: "draw"}}, "progress: wins: expected each event once"},
		{[]simulate.Progress{{Event: "boss", N: 1, Per: "draw", Keys: -1}}, "progress: boss: expected at most 1e+06 keys, found -1"},
	} {
		_, err := simulate.Run(t.Context(), parse(t, journey), simulate.Config{Pool: "chest", Players: 1, Draws: 1, Count: 1, Progress: c.progress})
		if wrong, ok := errors.AsType[*simulate.ConfigError](err); !ok || wrong.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.progress, err, c.want)
		}
	}
}
