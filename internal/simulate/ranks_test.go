package simulate_test

import (
	"slices"
	"testing"

	"github.com/kuji-dev/kuji/internal/simulate"
)

func prizeOf(all []simulate.Prize, item string) (n uint64) {
	for _, p := range all {
		if p.Item == item {
			n += p.Total
		}
	}
	return n
}

// TestRanks: at the end of each day, ranks get their rewards. 10 players draw once a day, each after 3 wins.
func TestRanks(t *testing.T) {
	c := parse(t, `{kuji: 1, items: {cup: {}, coin: {}, key: {}}, pools: {p: {entries: [{id: x, weight: 1}]}, box: {internal: true, entries: [{id: k, weight: 1, stock: 3, reward: {items: {key: 1}}}]}},
		counters: {wins: {per: day, ranked: {rewards: [{to: 1, reward: {items: {cup: 1}}}, {to: 2, reward: {pool: box}}, {to: 4, reward: {items: {coin: 5}}}]}}}}`)
	const players, days = 10, 8
	config := simulate.Config{Pool: "p", Players: players, Draws: days, Count: 1, Rate: players / 24.0, Progress: []simulate.Progress{{Event: "wins", N: 3, Per: "draw"}}}
	r := run(t, c, config)
	// The last day has not ended. The second rank draws from a box that has 3 keys.
	if len(r.Ranks) != 1 || r.Ranks[0].Counter != "wins" || r.Ranks[0].Ended != days-1 || r.Ranks[0].Paid != 4*(days-1)-4 || r.Ranks[0].Missed != 4 {
		t.Fatalf("ranks %+v", r.Ranks)
	}
	given := r.Ranks[0].Given
	if prizeOf(given, "cup") != days-1 || prizeOf(given, "key") != 3 || prizeOf(given, "coin") != 2*5*(days-1) || len(r.Given) != 0 {
		t.Errorf("ranks give %+v, draws %+v", given, r.Given)
	}
	if r.StockOf != "all" {
		t.Errorf("players who are ranked are in one crowd; stock of %s", r.StockOf)
	}
	if again := run(t, c, config); again.Ranks[0].Paid != r.Ranks[0].Paid {
		t.Error("another result the second time")
	}
	config.Until, config.Draws = "cup", 20
	if r = run(t, c, config); r.Until.Reached != players {
		t.Errorf("%d players had the first rank once, want all %d: who has it stops", r.Until.Reached, players)
	}
}

// TestGrowing: what grows pays for draws, and draws have not given it. 5 players draw every hour, for 2 energy; 1 grows
// in an hour.
func TestGrowing(t *testing.T) {
	c := parse(t, `{kuji: 1, items: {energy: {grows: {every: 1h, to: 10}}}, start: {energy: 10}, pools: {p: {price: {energy: 2}, entries: [{id: x, weight: 1}]}}}`)
	const players, draws = 5, 40
	r := run(t, c, simulate.Config{Pool: "p", Players: players, Draws: draws, Count: 1, Rate: players})
	if r.Draws != players*draws || len(r.Refused) != 1 && len(r.Refused) != 0 {
		t.Errorf("%d draws, refused %+v", r.Draws, r.Refused)
	}
	if len(r.Given) != 0 || len(r.Paid) != 1 || r.Paid[0].Total != 2*players*draws {
		t.Errorf("given %+v, paid %+v", r.Given, r.Paid)
	}
	if got := prizeOf(r.Grown, "energy"); got != players*(draws-1) {
		t.Errorf("%d energy has grown, want %d", got, players*(draws-1))
	}
}

// TestMostOfAnItem: what is beyond the most is cut, or mailed and collected; who can hold no more is refused.
func TestMostOfAnItem(t *testing.T) {
	c := parse(t, `{kuji: 1, items: {coin: {most: 5, beyond: cut}, gem: {most: 5, beyond: {mail: 4d}}, crate: {most: 5}},
		pools: {coins: {entries: [{id: x, weight: 1, reward: {items: {coin: 2}}}]}, gems: {entries: [{id: x, weight: 1, reward: {items: {gem: 2}}}]},
			shop: {price: {gem: 5}, entries: [{id: x, weight: 1, reward: {items: {gem: 7}}}, {id: y, weight: 1}]}, crates: {entries: [{id: x, weight: 1, reward: {items: {crate: 2}}}]}}}`)
	daily := func(pool string) *simulate.Report {
		return run(t, c, simulate.Config{Pool: pool, Players: 3, Draws: 10, Count: 1, Rate: 3.0 / 24})
	}
	if r := daily("coins"); !slices.Equal(r.Beyond, []simulate.Beyond{{Item: "coin", Cut: 3 * 15}}) || r.Given[0].Total != 3*5 {
		t.Errorf("coins: given %+v, beyond %+v", r.Given, r.Beyond)
	}
	// Of 20 gems, 5 fit; 1 + 7 × 2 are mailed, and those of the last four days wait.
	if r := daily("gems"); len(r.Beyond) != 1 || r.Beyond[0] != (simulate.Beyond{Item: "gem", Mailed: 3 * 15, Gone: 3 * 7}) || r.Given[0].Total != 3*5 {
		t.Errorf("gems: given %+v, beyond %+v", r.Given, r.Beyond)
	}
	if r := daily("shop"); r.Draws != 30 || len(r.Beyond) != 1 || r.Beyond[0].Collected == 0 || r.Beyond[0].Cut != 0 {
		t.Errorf("shop: %d draws, beyond %+v", r.Draws, r.Beyond)
	}
	if r := daily("crates"); r.Draws != 6 || len(r.Refused) != 1 || r.Refused[0].Status != "most_reached" || r.Refused[0].Stopped != 3 {
		t.Errorf("crates: %d draws, refused %+v", r.Draws, r.Refused)
	}
}

// TestQuestsExample: a trader mines and sells.
func TestQuestsExample(t *testing.T) {
	r := run(t, example(t, "quests.yaml"), simulate.Config{Pool: "mine", Players: 50, Draws: 60, Count: 1, Seed: 1, Rate: 50 * 2 / 24.0,
		Progress: []simulate.Progress{{Event: "login", N: 1, Per: "day"}, {Event: "boss", N: 1, Per: "day", Keys: 100}}})
	login, hunter := questOf(t, r, "login"), questOf(t, r, "hunter")
	if r.Draws != 50*60 || !slices.Equal(login.Tiers, []uint64{50, 50, 50}) || total(login, "crate") != 50 || hunter.Tiers[1] != 50 {
		t.Errorf("%d draws, login %+v, hunter %+v", r.Draws, login, hunter)
	}
}

// TestSeasonExample: the season of the pass runs, players are ranked by the week, and a pass is claimed.
func TestSeasonExample(t *testing.T) {
	const players = 20
	r := run(t, example(t, "season.yaml"), simulate.Config{Pool: "event-box", Players: players, Draws: 100, Count: 1, Seed: 1, Rate: players / 24.0,
		Progress: []simulate.Progress{{Event: "win", N: 2, Per: "day"}, {Event: "match", N: 300, Per: "day"}}})
	pass := questOf(t, r, "pass-free")
	if !slices.Equal(pass.Tiers, []uint64{players, players, players}) || pass.Claims != 3*players {
		t.Errorf("the free pass: %+v", pass)
	}
	// Of 100 days from 1 March on, 14 weeks end: the first one is whole, as it was a Monday. The season ends on 1 June.
	for _, k := range r.Ranks {
		switch k.Counter {
		case "weekly-wins":
			if k.Ended != 14 || k.Paid != 14*players || prizeOf(k.Given, "gem") != 14*10*100 || prizeOf(k.Given, "coin") != 14*(players-10)*1000 {
				t.Errorf("weekly wins: %+v", k)
			}
		case "rating":
			if k.Ended != 1 || k.Paid != players || prizeOf(k.Given, "trophy") != 1 || prizeOf(k.Given, "gem") != 5000+(players-1)*500 {
				t.Errorf("rating: %+v", k)
			}
		}
	}
	if len(r.Ranks) != 2 {
		t.Errorf("ranks %+v", r.Ranks)
	}
}

// TestFarmExample: energy pays for the harvest, and grows back.
func TestFarmExample(t *testing.T) {
	const players, draws = 20, 60
	r := run(t, example(t, "farm.yaml"), simulate.Config{Pool: "harvest", Players: players, Draws: draws, Count: 1, Seed: 1, Rate: players * 2})
	if r.Draws != players*draws {
		t.Fatalf("%d draws, refused %+v", r.Draws, r.Refused)
	}
	// A harvest every half hour: 6 of the 5 energy that it costs have grown, from a full 60.
	if got := prizeOf(r.Grown, "energy"); got != players*5*(draws-1) {
		t.Errorf("%d energy has grown, want %d", got, players*5*(draws-1))
	}
	if f := questOf(t, r, "farmer"); !slices.Equal(f.Tiers, []uint64{players, players}) {
		t.Errorf("farmer: %+v", f)
	}
	for _, g := range r.Given {
		if g.Item == "energy" {
			t.Errorf("draws give %+v", g)
		}
	}
}
