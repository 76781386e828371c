package golden_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
)

// goldenCatalogs are applied one after the other, each for a third of the requests.
var goldenCatalogs = []string{`
kuji: 1
items: {gem: {kind: currency}, gold: {kind: currency}, sword: {}, shield: {}}
start: {gem: 30}
pools:
  box:
    mode: raffle
    max_count: 20
    entries:
      - {id: a, stock: 3, reward: {items: {sword: 1}}}
      - {id: b, stock: 40, reward: {items: {gem: {min: 1, max: 1000000000}, gold: {min: 3, max: 9}}}}
  paid:
    price: {gem: 2}
    limits: [{per: day, draws: 4}, {per: window, window: 90m, draws: 3}, {per: forever, draws: 9}]
    entries:
      - {id: shield, weight: 0.125, stock: 5, reward: {items: {shield: {min: 1, max: 3}}}}
      - {id: dust, weight: 7, reward: nothing}
  chain:
    entries:
      - {id: inner, weight: 3, reward: {pool: box}}
      - {id: other, weight: 2, stock: 4, reward: {pool: paid}}
      - {id: gold, weight: 1, reward: {items: {gold: 2}}}
  banner:
    price: [{gold: 4}, {gem: 3}]
    bundles: [{draws: 3, price: {gem: 5}}]
    free: {per: day, draws: 1}
    pity:
      five: {certain: 6, rising: {from: 3, by: 12.5}, share: banner}
      four: {of: [four, gold], certain: 3}
    entries:
      - {id: five, weight: 1, reward: {pool: five}}
      - {id: four, weight: 5.5, group: gold, reward: {items: {gold: {min: 1, max: 4}}}}
      - {id: three, weight: 90}
  five:
    internal: true
    pity: {featured: {certain: 2, share: featured}}
    entries:
      - {id: featured, weight: 1, reward: {items: {sword: 1}}}
      - {id: lost, weight: 1, stock: 4, reward: {items: {shield: 1}}}
      - {id: other, weight: 1, reward: {items: {shield: 2}}}
`, `
kuji: 1
name: second
idempotency: {count: 1000, age: 24h}
items: {gem: {kind: currency}, gold: {kind: currency}, sword: {}, bow: {}}
start: {gem: 10, gold: 1}
pools:
  box:
    mode: raffle
    max_count: 20
    entries:
      - {id: a, stock: 4, reward: {items: {bow: 1}}}
      - {id: b, stock: 30, reward: {items: {gem: 5}}}
  chain:
    price: {gold: 1}
    entries:
      - {id: inner, weight: 1, reward: {pool: box}}
      - {id: bow, weight: 1000000, reward: {items: {bow: {min: 1, max: 2}}}}
  banner:
    pity:
      five: {certain: 8, rising: {from: 2, by: [0.25, 4, 99]}, share: banner}
      four: {rising: {from: 2, by: 33.333}}
    guarantee: [{draws: 2, at_least: 1, of: [good]}]
    entries:
      - {id: three, weight: 900}
      - {id: five, weight: 1, group: good}
      - {id: four, weight: 50, group: good, when: {pity: {five: 2}}}
      - {id: spare, weight: 3, group: good, reward: {items: {gold: 1}}}
  wheel:
    redeem: [{code: caps}, {code: shared, times: 2, uses: 3}]
    entries:
      - {id: bow, weight: 1, reward: {items: {bow: 1}}}
      - {id: gold, weight: 5, reward: {items: {gold: {min: 1, max: 5}}}}
`, goldenRules}

// goldenRules is a catalog of rules that take several entries or depend on the player.
const goldenRules = `
kuji: 1
items: {gem: {kind: currency}, gold: {kind: currency}, key: {}, sword: {}, bow: {}, card-a: {}, card-b: {}, card-c: {}, clover: {}}
start: {gem: 10, key: 3}
guesses: {per: hour, count: 1}
pools:
  box:
    mode: raffle
    max_count: 20
    entries:
      - {id: a, stock: 4, reward: {items: {bow: 1}}}
      - {id: b, stock: 90, reward: {items: {gem: 5}}}
  kuji:
    mode: raffle
    refill: 6
    pity: {last-a: {of: [a], certain: 3}}
    last: [{items: {bow: {min: 1, max: 3}}}, {pool: hand, times: {min: 1, max: 2}}]
    entries:
      - {id: a, stock: 1, reward: {items: {gold: 5}}}
      - {id: b, stock: 4, reward: {pool: hand}}
      - {id: c, stock: 2}
  chest:
    price: [{key: 1}, {gem: 2, gold: 1}]
    free: {per: week, draws: 2}
    rolls: {min: 2, max: 4}
    pity: {good: {certain: 5}}
    entries:
      - {id: good, weight: 1, reward: {items: {gold: {min: 3, max: 6}}}}
      - {id: both, weight: 4, reward: [{items: {gold: 1}}, {pool: drops, times: {min: 1, max: 2}}, {pool: hand}]}
      - {id: blank, weight: 6}
  drops:
    mode: each
    price: {gem: 1}
    redeem: {code: caps, times: 3, until: 2028-01-01T00:00:00Z}
    rolls: {min: 1, max: 2}
    entries:
      - {id: feather, chance: 12.5, reward: {items: {gem: {min: 1, max: 9}}}}
      - {id: never, chance: 0}
      - {id: key, chance: 40, stock: 20, reward: {items: {key: 1}}}
      - {id: clover, chance: 30, when: {lacks: [sword]}, reward: {items: {clover: 1}}}
      - {id: sure, chance: 100, unique: true, reward: {items: {sword: 1}}}
  hand:
    rolls: {min: 1, max: 3, distinct: true}
    entries:
      - {id: one, weight: 5, reward: {items: {gold: 1}}}
      - {id: two, weight: 2}
      - {id: lucky, weight: 1, luck: {item: clover, weights: [{from: 1, weight: 5}, {from: 3, weight: 0}]}, reward: {items: {gold: 9}}}
      - {id: three, weight: 1}
      - {id: rare, weight: 9, stock: 3}
  cards:
    when: {lacks: [card-c]}
    entries:
      - {id: a, weight: 1, unique: true, reward: {items: {card-a: 1}}}
      - {id: b, weight: 2, unique: true, reward: {items: {card-b: 1}}}
      - {id: c, weight: 3, unique: true, stock: 3, reward: {items: {card-c: 1}}}
  banner:
    guarantee: [{draws: 3, at_least: 1, of: [good]}]
    pity: {five: {of: [five], certain: 4, share: banner}}
    entries:
      - {id: three, weight: 900, when: {holds: {gem: 3}}}
      - {id: four, weight: 50, group: good, unique: true, reward: {items: {card-a: 1}}}
      - {id: five, weight: 1, group: good, stock: 3}
      - {id: spare, weight: 100, luck: {pity: five, weights: [{from: 2, weight: 20.5}]}}
`

// goldenCaps are codes, one for each round.
var goldenCaps = func() (all []string) {
	for i := range 12 {
		all = append(all, fmt.Sprintf("CAP-%02d", i))
	}
	return all
}()

// goldenRequests returns requests of every kind, with every outcome.
func goldenRequests(i int) []kuji.Request {
	id := func(s string) string { return fmt.Sprint(s, "-", i) }
	player := fmt.Sprint("p", i%5)
	stacks := func(item string, n uint64) []kuji.Stack { return []kuji.Stack{{Item: item, Quantity: n}} }
	return []kuji.Request{
		kuji.Draw{ID: id("box"), Player: player, Pool: "box", Count: 1 + i%3},
		kuji.Draw{ID: id("paid"), Player: player, Pool: "paid"},
		kuji.Draw{Player: player, Pool: "chain", Count: 1 + i%2},
		kuji.Draw{ID: id("poor"), Player: id("poor"), Pool: "box", Count: 21},
		kuji.Draw{ID: id("banner"), Player: player, Pool: "banner", Count: 1 + i%4},
		kuji.Draw{ID: id("banner-gem"), Player: player, Pool: "banner", Count: 3, Pay: "gem"},
		kuji.Draw{ID: id("banner-bow"), Player: "p1", Pool: "banner", Pay: "bow"},
		kuji.Draw{ID: id("chest"), Player: player, Pool: "chest", Count: 1 + i%2},
		kuji.Draw{ID: id("drops"), Player: "p0", Pool: "drops", Count: 2},
		kuji.Draw{ID: id("hand"), Player: "p0", Pool: "hand", Count: 1 + i%3},
		kuji.Draw{ID: id("kuji"), Player: player, Pool: "kuji", Count: 3 + 3*(i%3)},
		kuji.Draw{ID: id("cards"), Player: player, Pool: "cards", Count: 1 + i%2},
		kuji.Redeem{ID: id("cap"), Player: player, Code: fmt.Sprintf("cap %02d", i)},
		kuji.Redeem{ID: id("cap-again"), Player: "p1", Code: fmt.Sprintf("CAP-%02d", i)},
		kuji.Redeem{ID: id("shared"), Player: player, Code: "Shared-Code"},
		kuji.Redeem{ID: id("guess"), Player: fmt.Sprint("guesser", i/4), Code: id("no such code")},
		kuji.Transfer{ID: id("gift"), From: player, To: id("gifted"), Items: stacks("gem", 1)},
		kuji.Register{ID: id("register"), Player: id("gifted"), Note: kuji.Note{Reason: "came"}},
		kuji.Grant{ID: id("grant"), Player: id("new"), Items: []kuji.Stack{{Item: "gem", Quantity: 1 << 40}, {Item: "gold", Quantity: 7}}},
		kuji.Consume{ID: id("consume"), Player: player, Items: stacks("gem", 3)},
		kuji.Transfer{ID: id("transfer"), From: player, To: id("new"), Items: stacks("gem", uint64(1+i))},
		kuji.Atomic{ID: id("atomic"), Members: []kuji.Request{
			kuji.Grant{Player: player, Items: stacks("gold", 5)},
			kuji.Draw{Player: player, Pool: "chain", Count: 2},
			kuji.Transfer{From: player, To: "bank", Items: stacks("gold", 1)},
			kuji.Draw{Player: "bank", Pool: "box"},
			kuji.Transfer{From: player, To: id("heir"), Items: stacks("gold", 1)},
			kuji.Register{Player: id("heir")},
		}},
		kuji.Atomic{ID: id("several"), Members: []kuji.Request{
			kuji.Draw{Player: id("fresh"), Pool: "chest"},
			kuji.Draw{Player: "p0", Pool: "drops"},
			kuji.Grant{Player: player, Items: stacks("gem", 1)},
			kuji.Draw{Player: player, Pool: "banner", Count: 2},
			kuji.Draw{Player: player, Pool: "hand"},
		}},
		kuji.Consume{ID: id("noted"), Player: player, Items: stacks("gem", 1), Note: kuji.Note{By: "ops", Reason: "ticket 7", Metadata: "{}"}},
		kuji.Draw{ID: id("limit"), Player: player, Pool: "paid", Count: 5},
		kuji.Atomic{ID: id("undone"), Members: []kuji.Request{
			kuji.Grant{Player: "bank", Items: stacks("gem", 5)},
			kuji.Consume{Player: "bank", Items: stacks("sword", 1<<53-1)},
			kuji.Draw{Player: "bank", Pool: "box"},
		}},
	}
}

// idOf returns the request id of a golden request.
func idOf(req kuji.Request) string { return reflect.ValueOf(req).FieldByName("ID").String() }

// campaign returns a catalog with budgets, moments and codes that meet.
func campaign(t *testing.T, missed string) string {
	t.Helper()
	return strings.ReplaceAll(shared(t, "campaign.yaml"), "MISSED", missed)
}

// goals returns a catalog with counters, quests, ranks, and items that last, grow or are bounded.
func goals(t *testing.T, minutes string) string {
	t.Helper()
	return strings.ReplaceAll(shared(t, "goals.yaml"), "EVERY", minutes)
}

// shared returns a catalog that tests of other rooms use too.
func shared(t *testing.T, name string) string {
	t.Helper()
	yaml, err := os.ReadFile("../../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(yaml)
}

// goalsRequests returns requests in a realm of goals.
func goalsRequests(i int) []kuji.Request {
	id := func(s string) string { return fmt.Sprint(s, "-", i) }
	ann, bob := fmt.Sprint("p", i%4), fmt.Sprint("q", i%3)
	some := func(items ...string) []kuji.Stack {
		return []kuji.Stack{{Item: items[i%len(items)], Quantity: uint64(1 + i%6)}}
	}
	return []kuji.Request{
		kuji.Draw{ID: id("lucky"), Player: ann, Pool: "lucky", Count: 1 + i%5},
		kuji.Draw{ID: id("shop"), Player: ann, Pool: "shop", Count: 1 + i%3, Pay: []string{"", "", "box", "bronze"}[i%4]},
		kuji.Draw{ID: id("boxes"), Player: bob, Pool: "boxes", Count: 1 + i%2},
		kuji.Progress{ID: id("wins"), Player: ann, Event: "wins", N: uint64(1 + i%3)},
		kuji.Claim{ID: id("daily"), Player: ann, Quest: "daily"},
		kuji.Collect{ID: id("mail"), Player: ann},
		kuji.Transfer{ID: id("gift"), From: ann, To: bob, Items: some("gem", "energy", "silver", "gold")},
		kuji.Grant{ID: id("grant"), Player: bob, Items: some("coin", "gem", "bronze", "silver", "energy", "pass", "crate")},
		kuji.Consume{ID: id("eat"), Player: ann, Items: some("energy", "gem")},
		kuji.Atomic{ID: id("group"), Members: []kuji.Request{
			kuji.Grant{Player: ann, Items: some("coin", "gem", "energy", "pass")},
			kuji.Draw{Player: ann, Pool: "lucky", Count: 2},
			kuji.Progress{Player: bob, Event: "wins"},
			kuji.Claim{Player: bob, Quest: "daily"},
		}},
		kuji.SetCounter{ID: id("raid"), Counter: "raid", Value: uint64(i % 20), Note: kuji.Note{By: "ops", Reason: "to put it right"}},
	}
}
