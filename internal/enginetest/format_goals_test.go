package enginetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// goalsCatalog has all that counters, quests and rules of items can say of a choice.
const goalsCatalog = `
kuji: 1
zone: Europe/Berlin
seasons: {spring: {starts: 2027-01-10T00:00, ends: 2027-01-19T00:00}}
items:
  coin: {kind: currency, most: 60, beyond: cut}
  gem: {kind: currency, most: 9, beyond: {mail: 20h}}
  crate: {most: 500}
  energy: {grows: {every: %dm, by: 2, to: 30}, most: 40, beyond: mail}
  bronze: {family: box}
  silver: {family: box, lasts: 60h}
  gold: {family: box}
start: {coin: 5, bronze: 2}
counters:
  wins: {}
  draws: {of: {draws: [lucky, shop]}}
  silvers: {of: {gains: silver}, per: week}
  daily: {of: {gains: coin}, per: day, most: {per: hour, count: 40}}
  kinds: {of: {gains: box, entries: [lucky/luck]}, distinct: 4, per: week}
  days: {of: {draws: lucky}, streak: {per: day, forgive: 1}}
  best: {of: {spends: [coin, box]}, highest: true}
  raid: {for: realm, of: {entries: [lucky/raid], consumes: box}, per: month}
  season: {of: {progress: wins}, per: {season: spring}}
  points: {of: {progress: wins, draws: shop}, per: day,
    ranked: {rewards: [{to: 1, reward: {items: {gem: {min: 1, max: 9}}, pool: bonus}}, {to: 4, reward: {pool: bonus}}, {to: 9, reward: {items: {energy: {min: 1, max: 30}}}}]}}
quests:
  rusty: {claim: automatic, per: week, when: {lacks: [silver]}, needs: {silvers: 1}, reward: {items: {gem: {min: 1, max: 3}}, pool: bonus}}
  first: {claim: automatic, needs: {wins: 2}, reward: {items: {gem: {min: 1, max: 12}}}}
  daily: {per: day, tiers: [{needs: {daily: 5}, reward: {items: {bronze: {min: 1, max: 3}}}}, {needs: {daily: 20}, reward: {pool: bonus}}]}
pools:
  bonus: {internal: true, entries: [{id: a, weight: 1, reward: {items: {coin: {min: 1, max: 90}}}}, {id: b, weight: 1, reward: {items: {energy: {min: 1, max: 5}}}},
    {id: c, weight: 4, when: {quests: {first: 1}}, reward: {items: {gem: 2}}}]}
  lucky: {rolls: {min: 1, max: 2}, entries: [{id: luck, weight: 1, luck: {counter: draws, weights: [{from: 3, weight: 9}, {from: 40, weight: 2}]}, reward: {items: {coin: {min: 1, max: 7}}}},
    {id: days, weight: 3, when: {counters: {days: 2}}, reward: {items: {silver: 1}}}, {id: raid, weight: 2, when: {counters: {raid: {max: 9}}}, reward: {items: {gold: 1}}},
    {id: kinds, weight: 3, when: {counters: {kinds: {min: 1, max: 3}}}, reward: {items: {silver: {min: 1, max: 2}}}}, {id: season, weight: 3, when: {counters: {season: 1, best: 2}}},
    {id: quest, weight: 3, when: {quests: {daily: 1}}, reward: {pool: bonus}}, {id: box, weight: 2, when: {holds: {box: 4}, lacks: [gem]}, reward: {items: {gem: 1}}},
    {id: many, weight: 1, luck: {item: box, weights: [{from: 3, weight: 5}]}, reward: {items: {crate: 1}}}, {id: z, weight: 1}]}
  shop: {price: {coin: 1}, price_by: {counter: points, prices: [{from: 2, price: {coin: 2, box: 1}}, {from: 6, price: {box: 2, silver: 1}}]}, free: {per: day, draws: 1},
    entries: [{id: a, weight: 1, reward: {items: {energy: 3}}}, {id: b, weight: 1, reward: {items: {gem: {min: 1, max: 5}}}}]}
  boxes: {price: [{box: 2, energy: 1}, {energy: 9}], entries: [{id: a, weight: 1, reward: {items: {coin: {min: 1, max: 20}, gem: 1}}}, {id: b, weight: 1, reward: {items: {energy: {min: 1, max: 4}}}}]}
`

// formatGoals plays with that catalog for some weeks, in which all of it is met.
func formatGoals(t *testing.T) (dir string) {
	dir, clock := t.TempDir(), handAt(time.UnixMilli(1_799_938_800_000))
	e, r := open(t, dir, worldOptions{Now: clock.Now})
	apply := func(minutes int) {
		t.Helper()
		if _, err := r.Apply(t.Context(), parse(t, fmt.Sprintf(goalsCatalog, minutes))); err != nil {
			t.Fatal(err)
		}
	}
	apply(7)
	rnd, met := rand.New(rand.NewPCG(4, 4)), map[string]int{}
	note := func(what string, n int) { met[what] += n }
	some := func(items ...string) []kuji.Stack {
		return []kuji.Stack{{Item: items[rnd.IntN(len(items))], Quantity: uint64(1 + rnd.IntN(6))}}
	}
	for i := range 900 {
		clock.Add(time.Duration(rnd.IntN(90)) * time.Minute)
		switch i {
		case 300:
			apply(3)
		case 600:
			clock.Add(-30 * time.Hour)
			if _, err := r.SetClock(t.Context(), clock.Now(), "ops", "for a test"); err != nil {
				t.Fatal(err)
			}
		}
		ann, bob := fmt.Sprint("p", rnd.IntN(6)), fmt.Sprint("q", rnd.IntN(3))
		pay := []string{"", "", "gold", "box", "bronze"}[rnd.IntN(5)]
		for _, req := range []kuji.Request{
			kuji.Draw{Player: ann, Pool: "lucky", Count: 1 + i%5}, kuji.Draw{Player: ann, Pool: "shop", Count: 1 + i%4, Pay: pay},
			kuji.Draw{Player: bob, Pool: "boxes", Count: 1 + i%3, Pay: pay}, kuji.Progress{Player: ann, Event: "wins", N: uint64(1 + i%3)},
			kuji.Claim{Player: ann, Quest: "daily"}, kuji.Collect{Player: ann}, kuji.Transfer{From: ann, To: bob, Items: some("gem", "energy", "gold", "silver")},
			kuji.Grant{Player: bob, Items: some("coin", "gem", "bronze", "silver", "energy")}, kuji.Consume{Player: ann, Items: some("energy", "gold", "gem", "bronze")},
			kuji.Atomic{Members: []kuji.Request{
				kuji.Grant{Player: ann, Items: some("coin", "gem", "energy", "bronze")}, kuji.Draw{Player: ann, Pool: "lucky", Count: 2}, kuji.Progress{Player: bob, Event: "wins"},
				kuji.Consume{Player: ann, Items: []kuji.Stack{{Item: "bronze", Quantity: 1}}}, kuji.Draw{Player: ann, Pool: "shop", Count: 2}, kuji.Draw{Player: ann, Pool: "lucky"},
			}},
			kuji.SetCounter{Counter: "raid", Value: uint64(rnd.IntN(20)), Note: kuji.Note{Reason: "a test"}},
		} {
			if rnd.IntN(4) > 0 {
				continue
			}
			res := do(t, r, req)
			note("collected", len(res.Collected))
			note("claims", len(res.Claims))
			for _, b := range res.Beyond {
				note(b.How, 1)
			}
		}
	}
	for i := range 6 { // settles what is due for them
		do(t, r, kuji.Register{Player: fmt.Sprint("p", i)})
		do(t, r, kuji.Register{Player: fmt.Sprint("q", i%3)})
	}
	all := paidRanks(t, r, 9)
	for _, rec := range all {
		note("pay "+rec.Pay, len(rec.Paid))
		if rec.Kind != "due" {
			continue
		}
		for _, c := range rec.Claims {
			note(map[bool]string{true: "ranks", false: "due quests"}[c.Rank > 0], 1)
		}
		for _, b := range rec.Beyond {
			note("due "+b.How, 1)
		}
	}
	for _, what := range []string{"collected", "claims", "cut", "mailed", "ranks", "due quests", "due gone", "pay box", "pay gold"} {
		if met[what] == 0 {
			t.Errorf("%s: never met, of %v", what, met)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// paidRanks waits until the ranks of each period that has ended are paid, down to a rank, and returns all events.
func paidRanks(t *testing.T, r *kuji.Realm, to uint64) []kuji.Record {
	t.Helper()
	for {
		all, err := through(t.Context(), r, 1, r.Stats().LastEvent)
		if err != nil {
			t.Fatal(err)
		}
		open := uint64(0)
		for _, rec := range all {
			switch {
			case rec.Due == nil || rec.Due.Counter == "":
			case rec.Due.From == 0:
				open += min(rec.Due.Count, to)
			default:
				open -= rec.Due.Count
			}
		}
		if open == 0 {
			return all
		}
	}
}
