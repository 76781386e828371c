package enginetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// formatGoals plays with a catalog of goals for some weeks, in which all of it is met.
func formatGoals(t *testing.T) (dir string) {
	dir, clock := t.TempDir(), handAt(time.UnixMilli(1_799_938_800_000))
	e, r := open(t, dir, worldOptions{Now: clock.Now})
	goals, err := os.ReadFile("../../testdata/goals.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply := func(minutes string) {
		t.Helper()
		if _, err := r.Apply(t.Context(), displayed(t, parse(t, strings.ReplaceAll(string(goals), "EVERY", minutes)))); err != nil {
			t.Fatal(err)
		}
	}
	apply("7")
	rnd, met := rand.New(rand.NewPCG(4, 4)), map[string]int{}
	note := func(what string, n int) { met[what] += n }
	some := func(items ...string) []kuji.Stack {
		return []kuji.Stack{{Item: items[rnd.IntN(len(items))], Quantity: uint64(1 + rnd.IntN(6))}}
	}
	for i := range 900 {
		clock.Add(time.Duration(rnd.IntN(90)) * time.Minute)
		switch i {
		case 300:
			apply("3")
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
			kuji.Grant{Player: bob, Items: some("coin", "gem", "bronze", "silver", "energy", "pass")}, kuji.Consume{Player: ann, Items: some("energy", "gold", "gem", "bronze")},
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
			note("collected", len(res.Collected()))
			note("claims", len(res.Claims()))
			for _, b := range res.Beyond() {
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

// displayed gives everything in a catalog a display of all parts.
func displayed(t *testing.T, c *catalog.Catalog) *catalog.Catalog {
	t.Helper()
	c.Language, c.Rarities = "ja", []catalog.Rarity{{ID: "common"}, {ID: "epic", Name: "英雄", Names: catalog.Texts{{Language: "en", Text: "Epic"}, {Language: "ja", Text: "英雄"}}}}
	give := func(name *string, d *catalog.Display) {
		*name = "名"
		*d = catalog.Display{
			Names: catalog.Texts{{Language: "ja", Text: "名"}, {Language: "de", Text: "Name"}}, Description: catalog.Texts{{Text: "二\n行"}},
			Rarity: "epic", Icon: "/icon.png", Metadata: []catalog.Metadata{{Key: "a", Value: "1.50"}},
		}
	}
	for i := range c.Items {
		give(&c.Items[i].Name, &c.Items[i].Display)
	}
	for i := range c.Pools {
		give(&c.Pools[i].Name, &c.Pools[i].Display)
	}
	for i := range c.Counters {
		give(&c.Counters[i].Name, &c.Counters[i].Display)
	}
	for i := range c.Quests {
		give(&c.Quests[i].Name, &c.Quests[i].Display)
	}
	for i := range c.Rounds {
		give(&c.Rounds[i].Name, &c.Rounds[i].Display)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return c
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
