package catalog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kuji-dev/kuji/catalog"
)

// roundOf returns a round of the example by its id.
func roundOf(c *catalog.Catalog, id string) *catalog.Round {
	return &c.Rounds[slices.IndexFunc(c.Rounds, func(r catalog.Round) bool { return r.ID == id })]
}

// TestRoundDefaults: what the example leaves out.
func TestRoundDefaults(t *testing.T) {
	c := example(t, "rounds.yaml")
	for id, want := range map[string]catalog.Round{
		"gamble": {
			ID: "gamble", Name: "A gamble", Stake: catalog.Stake{Family: "box", Min: 1, Max: 5, Same: true}, Entrants: catalog.Entrants{Min: 2, Max: 20}, Open: 120_000, One: true, Opens: true,
			Winners: catalog.Winners{Count: 1, Distinct: true, By: catalog.ByValue, Values: []catalog.Stack{{Item: "coin", Quantity: 1}, {Item: "sword", Quantity: 250}}, Everything: true},
		},
		"giveaway": {
			ID: "giveaway", Ticket: catalog.Ticket{Is: true, Price: []catalog.Stack{{Item: "coin", Quantity: 10}}, Most: 100}, Entrants: catalog.Entrants{Min: 1, Max: 100_000},
			Winners: catalog.Winners{Count: 5, Distinct: true, By: catalog.ByTickets, Reward: catalog.Reward{Items: []catalog.Quantity{{Item: "key", Min: 1, Max: 1}}},
				Rerolls: catalog.Rerolls{Most: 10, Within: 86_400_000}},
		},
		"jackpot": {
			ID: "jackpot", Ticket: catalog.Ticket{Is: true, Price: []catalog.Stack{{Item: "coin", Quantity: 1}}, Most: 1000, Adds: []catalog.Adds{{Pot: "pot", Share: 900_000}}},
			Entrants: catalog.Entrants{Min: 1, Max: 100_000}, Every: catalog.PerWeek,
			Winners: catalog.Winners{Count: 3, Distinct: true, By: catalog.ByTickets, Pot: "pot", Shares: []uint32{60, 30, 10}},
		},
		"duel": {
			ID: "duel", Stake: catalog.Stake{Any: true, Min: 1, Max: 1000, Same: true}, Entrants: catalog.Entrants{Min: 2, Max: 2}, Open: 60_000,
			Winners: catalog.Winners{Count: 1, Distinct: true, By: catalog.ByChance, Everything: true},
		},
		"race": {
			ID: "race", Ticket: catalog.Ticket{Is: true, Most: 1}, Entrants: catalog.Entrants{Min: 1, Max: 100_000},
			Winners: catalog.Winners{Count: 3, Distinct: true, By: catalog.ByRank, Rank: "points", Reward: catalog.Reward{Items: []catalog.Quantity{{Item: "coin", Min: 100, Max: 100}}}},
		},
	} {
		if diff := cmp.Diff(want, *roundOf(c, id)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", id, diff)
		}
	}
	if c.Idempotency.Purchases != "order-" || c.Opening("small-box") != 0 || c.Opening("large-box") != 1 || c.Opening("coin") != -1 {
		t.Errorf("purchases %q, openings %d %d %d", c.Idempotency.Purchases, c.Opening("small-box"), c.Opening("large-box"), c.Opening("coin"))
	}
	if c.Pools[1].Price[0][0].Item = "small-box"; c.Opening("small-box") != -1 {
		t.Error("one of two pools opens the box")
	}
}

// TestRoundVersion: only a catalog with the new words has version 5 of the form, and a realm of an older level
// refuses it by name.
func TestRoundVersion(t *testing.T) {
	for _, c := range []struct {
		damage  func(c *catalog.Catalog)
		version byte
		refused string
	}{
		{func(*catalog.Catalog) {}, 5, `catalog "rounds" needs format level 5`},
		{func(c *catalog.Catalog) { c.Rounds = nil }, 5, `catalog "purchases" needs format level 5`},
		{func(c *catalog.Catalog) { c.Rounds, c.Idempotency.Purchases = nil, "" }, 4, ""},
	} {
		changed := example(t, "rounds.yaml")
		c.damage(changed)
		if got := changed.AppendCanonical(nil)[7]; got != c.version {
			t.Errorf("version %d, want %d", got, c.version)
		}
		if err := changed.Allow(4); (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("at level 4: %v, want %q", err, c.refused)
		}
		if err := changed.Allow(5); err != nil {
			t.Error(err)
		}
	}
}

// TestCheckRounds holds Check and Decode to what Parse cannot say, or says by the source.
func TestCheckRounds(t *testing.T) {
	for name, c := range map[string]struct {
		round  string
		damage func(r *catalog.Round)
		want   string
	}{
		"neither":           {"race", func(r *catalog.Round) { r.Ticket = catalog.Ticket{} }, "rounds.race: expected one of stake and ticket, found none"},
		"both":              {"race", func(r *catalog.Round) { r.Stake = catalog.Stake{Any: true, Min: 1, Max: 1} }, "rounds.race: expected one of stake and ticket, found both"},
		"a ticket's price":  {"duel", func(r *catalog.Round) { r.Ticket.Most = 1 }, "rounds.duel.ticket: expected nothing of a ticket that is not there"},
		"stake of two":      {"duel", func(r *catalog.Round) { r.Stake.Item = "key" }, "rounds.duel.stake: expected one of item, family and any, found several"},
		"stake of none":     {"duel", func(r *catalog.Round) { r.Stake.Any = false }, "rounds.duel.stake: expected one of item, family and any, found none"},
		"no units":          {"duel", func(r *catalog.Round) { r.Stake.Min = 0 }, "rounds.duel.stake.count: expected whole numbers from 1 to 1000"},
		"no family":         {"duel", func(r *catalog.Round) { r.Stake.Any, r.Stake.Family = false, "b" }, `rounds.duel.stake.family: there is no family "b"`},
		"no tickets":        {"race", func(r *catalog.Round) { r.Ticket.Most = 0 }, "rounds.race.ticket.most: expected a whole number from 1 to 1000000, found 0"},
		"adds of nothing":   {"jackpot", func(r *catalog.Round) { r.Ticket.Price = nil }, "rounds.jackpot.ticket.adds: expected none: it needs a price"},
		"adds too much":     {"jackpot", func(r *catalog.Round) { r.Ticket.Adds[0].Share = 1_000_001 }, "rounds.jackpot.ticket.adds.pot: expected a number above 0, at most 1, with at most 6 digits after the point, found 1.000001"},
		"adds nothing":      {"jackpot", func(r *catalog.Round) { r.Ticket.Adds[0].Share = 0 }, "rounds.jackpot.ticket.adds.pot: expected a number above 0"},
		"a reserved pot":    {"jackpot", func(r *catalog.Round) { r.Ticket.Adds[0].Pot, r.Winners.Pot = "everything", "everything" }, "rounds.jackpot.ticket.adds.everything: expected the id of a pot"},
		"pot twice":         {"jackpot", func(r *catalog.Round) { r.Ticket.Adds = []catalog.Adds{{Pot: "pot", Share: 1}, {Pot: "pot", Share: 1}} }, "rounds.jackpot.ticket.adds.pot: duplicate id"},
		"no entrants":       {"race", func(r *catalog.Round) { r.Entrants = catalog.Entrants{} }, "rounds.race.entrants.min: expected a whole number from 1 to 100000, found 0"},
		"many entrants":     {"duel", func(r *catalog.Round) { r.Entrants.Max = 101 }, "rounds.duel.entrants.max: expected a whole number from 1 to 100, found 101"},
		"an instant":        {"race", func(r *catalog.Round) { r.Open = -1 }, "rounds.race.open: expected a duration"},
		"every hour":        {"jackpot", func(r *catalog.Round) { r.Every = catalog.PerHour }, "rounds.jackpot.every: expected day, week or month"},
		"every duel":        {"duel", func(r *catalog.Round) { r.Every, r.Open = catalog.PerDay, 0 }, "rounds.duel.every: expected none without tickets"},
		"opens tickets":     {"race", func(r *catalog.Round) { r.Opens = true }, "rounds.race.opens: expected none without stakes"},
		"no winners":        {"race", func(r *catalog.Round) { r.Winners.Count = 0 }, "rounds.race.winners: expected winner or winners, found none"},
		"many winners":      {"race", func(r *catalog.Round) { r.Winners.Count = 101 }, "rounds.race.winners.count: expected a whole number from 1 to 100"},
		"by nothing":        {"duel", func(r *catalog.Round) { r.Winners.By = 0 }, "rounds.duel.winners.by: expected tickets or chance"},
		"by what":           {"duel", func(r *catalog.Round) { r.Winners.By = 5 }, "rounds.duel.winners.by: expected tickets or chance"},
		"by values of none": {"gamble", func(r *catalog.Round) { r.Winners.Values = nil }, "rounds.gamble.winners.by: expected value or rank, which says what decides, found none or another one"},
		"by no rank":        {"race", func(r *catalog.Round) { r.Winners.Rank = "" }, "rounds.race.winners.by: expected value or rank"},
		"a high value":      {"gamble", func(r *catalog.Round) { r.Winners.Values[0].Quantity = 1<<32 + 1 }, "rounds.gamble.winners.by.value.coin: expected a whole number from 0 to 4294967296"},
		"no pot":            {"jackpot", func(r *catalog.Round) { r.Winners.Pot = "none" }, `rounds.jackpot.winners.gets: there is no pot "none"`},
		"nothing":           {"race", func(r *catalog.Round) { r.Winners.Reward = catalog.Reward{} }, "rounds.race.winners: expected gets, reward or both, found none"},
		"shares of nothing": {"race", func(r *catalog.Round) { r.Winners.Shares = []uint32{50} }, "rounds.race.winners.shares: expected none: it needs gets"},
		"a share of 0":      {"jackpot", func(r *catalog.Round) { r.Winners.Shares[1] = 0 }, "rounds.jackpot.winners.shares[1]: expected a whole number from 1 to 100, found 0"},
		"huge shares":       {"jackpot", func(r *catalog.Round) { r.Winners.Shares = []uint32{1<<32 - 1, 1} }, "rounds.jackpot.winners.shares: expected at most 100 percent in all"},
		"rerolls of none":   {"giveaway", func(r *catalog.Round) { r.Winners.Rerolls.Most = 0 }, "rounds.giveaway.winners.rerolls.most: expected a whole number from 1 to 100, found 0"},
		"rerolls at once":   {"giveaway", func(r *catalog.Round) { r.Winners.Rerolls.Within = 1 }, "rounds.giveaway.winners.rerolls.within: expected a duration"},
		"a long name":       {"race", func(r *catalog.Round) { r.Name = "a\nb" }, "rounds.race.name: expected a text"},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := example(t, "rounds.yaml")
			c.damage(roundOf(damaged, c.round))
			if err := damaged.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check: got %v, want something with %q", err, c.want)
			}
			if again, err := catalog.Decode(damaged.AppendCanonical(nil)); err == nil {
				// The form cannot say what was damaged. Then it is the form of another catalog.
				if diff := cmp.Diff(damaged, again); diff == "" {
					t.Error("Decode: no error")
				}
			} else if !errors.Is(err, catalog.ErrCanonical) {
				t.Errorf("Decode: %v", err)
			}
		})
	}
	c := example(t, "rounds.yaml")
	r := roundOf(c, "jackpot")
	for i := range catalog.MaxPots / 16 {
		more := *r
		more.ID, more.Ticket.Adds = fmt.Sprint("more", i), nil
		for j := range 16 {
			more.Ticket.Adds = append(more.Ticket.Adds, catalog.Adds{Pot: fmt.Sprintf("pot-%d-%d", i, j), Share: 1})
		}
		c.Rounds = append(c.Rounds, more)
	}
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "rounds: expected at most 64 pots of all rounds together, found 65") {
		t.Errorf("65 pots: %v", err)
	}
	c = example(t, "rounds.yaml")
	if c.Idempotency.Purchases = "a text of 17 byte"; c.Check() == nil {
		t.Error("a long prefix of purchases")
	}
}

// TestDecodeRounds builds forms of rounds with one fault each.
func TestDecodeRounds(t *testing.T) {
	good := example(t, "rounds.yaml").AppendCanonical(nil)
	after := func(text string, skip int, with ...byte) []byte {
		at := bytes.Index(good, []byte(text)) + len(text) + skip
		return slices.Concat(good[:at], with, good[at+len(with):])
	}
	for name, c := range map[string]struct {
		form []byte
		want string
	}{
		"a stake of what":  {after("\x04duel\x00", 1, 4), "expected 1 to 3, what is staked, found 4"},
		"unknown flags":    {after("\x04duel\x00", 0, 8), "unknown flags 0x8"},
		"no pot":           {after("\x04race\x00", 12, 5), "expected the id of a pot, found none"},
		"the wrong form":   {slices.Concat(good[:7], []byte{4}, good[8:]), "more bytes"},
		"unknown winners":  {after("\x04race\x00", 12, 16), "unknown flags 0x10"},
		"of another level": {slices.Concat(good[:7], []byte{99}, good[8:]), "newer Kuji"},
	} {
		_, err := catalog.Decode(c.form)
		if err == nil || !errors.Is(err, catalog.ErrCanonical) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want something with %q", name, err, c.want)
		}
	}
}

// TestDocumentOfRounds parses the rounds of the documentation.
func TestDocumentOfRounds(t *testing.T) {
	doc, err := os.ReadFile("../docs/reference/catalog.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "## Rounds\n")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	source, _, ok := strings.Cut(rest, "```\n")
	before, _, _ := strings.Cut(string(example(t, "rounds.yaml").AppendYAML(nil)), "rounds:\n")
	if !ok {
		t.Fatal("no rounds in the documentation")
	}
	if _, err := catalog.Parse([]byte(before + source)); err != nil {
		t.Error(err)
	}
}
