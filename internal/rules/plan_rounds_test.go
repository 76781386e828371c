package rules_test

import (
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
)

// TestPlanOfRounds: what a plan says of rounds and of purchases, change by change.
func TestPlanOfRounds(t *testing.T) {
	const before = `{kuji: 1, items: {gem: {}}, rounds: {duel: {stake: {any: true}, winner: {gets: everything}}, race: {ticket: {}, winners: {count: 3, reward: {items: {gem: 1}}}}, cup: {ticket: {}, every: week, winner: {reward: {items: {gem: 1}}}}}}`
	for name, c := range map[string]struct{ from, to, want string }{
		"nothing":   {"", "", "version 1 is in force"},
		"new":       {"rounds: {", "rounds: {more: {ticket: {}, winner: {reward: {items: {gem: 1}}}}, ", "realm_changed: round more: added"},
		"gone":      {", race: {ticket: {}, winners: {count: 3, reward: {items: {gem: 1}}}}", "", "realm_changed: round race: removed; those that are open give everything back when they end"},
		"changed":   {"count: 3", "count: 2", "realm_changed: round race: winners {count: 2, by: tickets, reward: {items: {gem: 1}}} instead of {count: 3, by: tickets, reward: {items: {gem: 1}}}"},
		"new cup":   {"rounds: {", "rounds: {more: {ticket: {}, every: day, winner: {reward: {items: {gem: 1}}}}, ", "realm_changed: round more: added; the calendar opens one for each day, from that of now on"},
		"no cup":    {"every: week, ", "", "realm_changed: round cup: no every instead of week; the one that is open ends with its week"},
		"month":     {"every: week", "every: month", "realm_changed: round cup: every month instead of week; the one that is open ends with its week; the calendar opens one for each month, from that of now on"},
		"purchases": {"kuji: 1,", `kuji: 1, idempotency: {purchases: "order-"},`, `realm_changed: idempotency window: room for 33554432 ids of the last 24h0m0s, that is 388 new ids a second, instead of 33554432 of the last 24h0m0s; ids that begin with "order-" are never forgotten from now on`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put(before)
			if got := r.plan(strings.Replace(before, c.from, c.to, 1)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	// What only winners get, somebody can get.
	const won = `{kuji: 1, items: {cup: {}, pin: {}}, pools: {cups: {internal: true, entries: [{id: e, weight: 1, reward: {items: {cup: 1}}}]}}, rounds: {race: {ticket: {}, winner: {reward: [{items: {pin: 1}}, {pool: cups}]}}}}`
	if got := newRealm(t, 1).plan(won); strings.Contains(got, "notice") {
		t.Errorf("winners get a pin and a cup, and the plan says\n%s", got)
	}
}

// TestPlanOfWhatIsOpen: a plan says how many open rounds and held draws it changes.
func TestPlanOfWhatIsOpen(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {coin: {}, gem: {}}, pools: {shop: {price: {coin: 1}, entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}]}},
		rounds: {duel: {stake: {any: true}, winner: {gets: everything}}, race: {ticket: {}, winner: {reward: {items: {gem: 1}}}}}}`)
	r.do(grant("ann", of("coin", 100)))
	r.want(heldFor("h", true, draw("ann", "shop", 2)), rules.OK, "")
	for range 2 {
		r.want(opened("", "race"), rules.OK, "")
		r.want(opened("", "duel"), rules.OK, "")
	}
	got := r.plan(`{kuji: 1, items: {coin: {}, gem: {}}, rounds: {race: {ticket: {}, winner: {reward: {items: {gem: 2}}}}}}`)
	for _, want := range []string{
		"pool shop: removed; 0 draws stay counted and count again if it returns; 2 draws that are held with a refund cannot be confirmed, and come back",
		"; open ones that follow it: 2",
		"round duel: removed; those that are open give everything back when they end: 2",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
