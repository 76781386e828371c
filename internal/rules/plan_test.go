package rules_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/plan"
	"github.com/kuji-dev/kuji/internal/rules"
)

// plan plans a catalog and returns its text, with the warnings.
func (r *realm) plan(yaml string) string {
	r.t.Helper()
	c := parse(r.t, yaml)
	p, err := plan.NewPlanner(r.state, r.rules.Tables(), c, r.now).Plan(c, waits)
	if err != nil {
		return err.Error()
	}
	if p.Unchanged {
		return fmt.Sprintf("version %d is in force", p.Version)
	}
	if want := r.rules.Tables().Version + 1; p.Version != want {
		r.t.Errorf("the plan is of version %d, want %d", p.Version, want)
	}
	var b strings.Builder
	for _, ch := range p.Changes {
		fmt.Fprintf(&b, "%s: %s\n", ch.Kind, ch.Text)
		if strings.HasSuffix(string(ch.Kind), "_changed") && len(ch.Settings) == 0 {
			r.t.Errorf("%s %s says not what changes: a table of the plan would have no values", ch.Kind, ch.ID)
		}
		if ch.Warning != "" {
			fmt.Fprintf(&b, "\twarning: %s\n", ch.Warning)
		}
	}
	return strings.TrimSpace(b.String())
}

// TestPlans: what a plan says, change by change. Each is a plan over the same realm, in which
// ann has drawn 7 of keep, and 3 gems of the pool rest.
func TestPlans(t *testing.T) {
	const before = `{kuji: 1, name: v1, items: {gem: {}, old: {}}, start: {old: 2}, pools: {
		p: {max_count: 10, entries: [{id: keep, weight: 1, stock: 10}, {id: gone, weight: 0, stock: 5, reward: {items: {old: 1}}}]},
		rest: {limits: [{per: window, window: 1h, draws: 30}], entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}]}}}`
	for name, c := range map[string]struct{ from, to, want string }{
		"nothing":            {"", "", "version 2 is in force"},
		"a name":             {"name: v1", "name: v2", `realm_changed: name: "v2" instead of "v1"`},
		"an item is removed": {"old: {}", "new: {}", "error"},
		"a stock is lowered": {"stock: 10", "stock: 4", `entry_changed: pool p, entry keep: stock 4 instead of 10; 7 drawn already, 3 of 10 left before, 0 of 4 after
	warning: 7 were drawn already, 3 more than the new stock: the entry is out of stock
pool_changed: pool p: odds of p/keep 0% instead of 100%
	warning: odds move more than threefold: p/keep from 100% to 0%`},
		"a stock is raised":     {"stock: 10", "stock: 11", `entry_changed: pool p, entry keep: stock 11 instead of 10; 7 drawn already, 3 of 10 left before, 4 of 11 after`},
		"a stock has no bound":  {", stock: 10", "", `entry_changed: pool p, entry keep: stock unlimited instead of 10; 7 drawn already, 3 of 10 left before, unlimited stock after`},
		"a weight":              {"{id: keep, weight: 1", "{id: keep, weight: 2", `entry_changed: pool p, entry keep: weight 2 instead of 1; 7 drawn already, 3 of 10 left`},
		"a weight, written out": {"{id: keep, weight: 1", "{id: keep, weight: 1.00", `version 2 is in force`},
		"another scale": {"{id: gone, weight: 0", "{id: gone, weight: 0.5", `entry_changed: pool p, entry gone: weight 0.5 instead of 0; 0 drawn already, 5 of 5 left
pool_changed: pool p: odds of p/keep 66.6667% instead of 100%, odds of p/gone 33.3333% instead of 0%, old per draw 0.333333`},
		"a reward": {"{items: {gem: 1}}", "{items: {gem: 2}}", `entry_changed: pool rest, entry e: reward {items: {gem: 2}} instead of {items: {gem: 1}}; 3 drawn already, unlimited stock left
pool_changed: pool rest: gem per draw 2 instead of 1`},
		"an entry comes": {"{id: e,", "{id: new, weight: 1, stock: 2}, {id: e,", `entry_added: pool rest, entry new: added with 2 of 2 left
pool_changed: pool rest: odds of rest/new 50%, odds of rest/e 50% instead of 100%, gem per draw 0.5 instead of 1`},
		"an entry goes": {", {id: gone, weight: 0, stock: 5, reward: {items: {old: 1}}}", "", `entry_removed: pool p, entry gone: removed with 5 of 5 left; its 0 draws count again if it returns`},
		"an entry returns": {"{id: e,", "{id: was, weight: 1, stock: 3}, {id: e,", `entry_added: pool rest, entry was: added with 2 of 3 left; it was here before, and its 1 draws count
pool_changed: pool rest: odds of rest/was 50%, odds of rest/e 50% instead of 100%, gem per draw 0.5 instead of 1`},
		"a price":          {"max_count: 10", "max_count: 9, price: {gem: 1}", `pool_changed: pool p: max_count 9 instead of 10, price {gem: 1}`},
		"a mode and times": {"p: {max_count: 10, entries: [{id: keep, weight: 1, ", "p: {max_count: 10, starts: 2023-11-13T01:00:00Z, ends: 2023-11-14T01:00:00Z, entries: [{id: keep, weight: 1, ", `pool_changed: pool p: starts 2023-11-13T01:00:00Z, ends 2023-11-14T01:00:00Z`},
		"the same limit":   {"draws: 30", "draws: 31", `pool_changed: pool rest: limits [{per: window, window: 1h, draws: 31}] instead of [{per: window, window: 1h, draws: 30}]`},
		"no limit":         {"limits: [{per: window, window: 1h, draws: 30}], ", "", `pool_changed: pool rest: no limits instead of [{per: window, window: 1h, draws: 30}]`},
		"another limit": {"window: 1h", "window: 2h", `pool_changed: pool rest: limits [{per: window, window: 2h, draws: 30}] instead of [{per: window, window: 1h, draws: 30}]
	warning: the limit per window of 2h0m0s counts from now on: draws that players made while the pool did not have it are not in it`},
		"two limits more": {"draws: 30}", "draws: 30}, {per: day, draws: 9}, {per: forever, draws: 99}", `pool_changed: pool rest: limits [{per: window, window: 1h, draws: 30}, {per: day, draws: 9}, {per: forever, draws: 99}] instead of [{per: window, window: 1h, draws: 30}]
	warning: the limit per day and forever counts from now on: draws that players made while the pool did not have it are not in it`},
		"a pool comes": {"pools: {", "pools: {new: {entries: [{id: a, weight: 1}]}, ", `pool_added: pool new: added
entry_added: pool new, entry a: added with unlimited stock left`},
		"a pool returns": {"pools: {", "pools: {away: {entries: [{id: a, weight: 1, stock: 2}]}, ", `pool_added: pool away: added; it was here before, and its 2 draws count
entry_added: pool away, entry a: added with 0 of 2 left; it was here before, and its 2 draws count`},
		"an item returns":     {"items: {", "items: {held: {}, ", `item_added: item held: added; it was here before, and players still hold 1`},
		"an item has a name":  {"gem: {}", "gem: {name: Gem}", `item_changed: item gem: renamed from "" to "Gem"`},
		"an item lasts":       {"old: {}", "old: {lasts: 30d}", `item_changed: item old: lasts 30d; nobody holds any`},
		"a start":             {"start: {old: 2}", "start: {old: 3}", `realm_changed: starting grants: changed for players who come from now on; of the 1 seen so far, those who have come keep theirs`},
		"another kind of old": {"old: {}", "old: {kind: currency}", `item old: its kind cannot change between item and currency: use another id for the new one`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put(`{kuji: 1, items: {held: {}}, start: {held: 1}, pools: {rest: {limits: [{per: window, window: 1h, draws: 30}], entries: [{id: was, weight: 1}]}, away: {entries: [{id: a, weight: 1}]}}}`)
			r.want(draw("ann", "rest", 1), rules.OK, "")
			r.want(draw("ann", "away", 2), rules.OK, "")
			r.put(before)
			r.want(draw("ann", "p", 3), rules.OK, "")
			r.want(draw("ann", "p", 4), rules.OK, "")
			r.want(draw("ann", "rest", 3), rules.OK, "")
			after := strings.Replace(before, c.from, c.to, 1)
			if c.want == "error" { // the item is everywhere
				after = strings.NewReplacer("old: {}", "new: {}", "start: {old: 2}, ", "", "{items: {old: 1}}", "{items: {new: 1}}").Replace(before)
				c.want = `item_added: item new: added
item_removed: item old: removed; nobody holds any
realm_changed: starting grants: changed for players who come from now on; of the 1 seen so far, those who have come keep theirs
entry_changed: pool p, entry gone: reward {items: {new: 1}} instead of {items: {old: 1}}; 0 drawn already, 5 of 5 left
notice: new: nobody can get this item: no draw that anybody can make gives it
	warning: nobody can get this item: no draw that anybody can make gives it`
			}
			got := r.plan(after)
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if !strings.HasPrefix(got, "item old: its kind") {
				r.put(after) // and what was planned can be done
			}
		})
	}
}

// TestPlanOfAll: the whole of a first plan, and of one that removes a pool and what is held.
func TestPlanOfAll(t *testing.T) {
	r := newRealm(t, 1)
	const first = `{kuji: 1, items: {gem: {}}, start: {gem: 4}, pools: {p: {entries: [{id: a, weight: 1, stock: 3}]}}}`
	if got, want := r.plan(first), `item_added: item gem: added
pool_added: pool p: added
entry_added: pool p, entry a: added with 3 of 3 left`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.put(first)
	r.want(draw("ann", "p", 1), rules.OK, "")
	if got, want := r.plan(first+" # again"), `version 1 is in force`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := r.plan(`{kuji: 1, items: {new: {}}}`), `item_added: item new: added
item_removed: item gem: removed; the 4 that players hold stay theirs, but can be neither granted nor consumed until it returns
	warning: players hold an item that this catalog removes
realm_changed: starting grants: changed for players who come from now on; of the 1 seen so far, those who have come keep theirs
pool_removed: pool p: removed; 1 draws stay counted and count again if it returns
entry_removed: pool p, entry a: removed with 2 of 3 left; its 1 draws count again if it returns`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPlanOfWindows: a catalog that leaves too little room for the request ids that are
// remembered, or for the rate of the last while, says so.
func TestPlanOfWindows(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {}}, idempotency: {count: 1000, age: 1h}}`)
	for i := range 50 {
		cmd := grant("ann", of("gem", 1))
		cmd.ID = fmt.Sprint("id", i)
		r.want(cmd, rules.OK, "")
	}
	for window, want := range map[string]string{
		"{count: 2000, age: 2h}":                  "",
		"{count: 1000, age: 2h}":                  "",
		"{count: 1000, age: 5m}":                  "request ids older than 5m0s may be forgotten at once",
		"{count: 60, age: 1h}":                    "50 request ids of the last 1h0m0s are remembered already, of 60",
		"{count: 50, age: 1h}":                    "new request ids will be refused",
		"{count: 70, age: 1h}":                    "",
		"{count: 70, age: 1h, ids: time-ordered}": "ids carry their time, at most 5m0s ahead\n\twarning: request ids other than UUIDv7 and ULID will be refused",
	} {
		got := r.plan(`{kuji: 1, items: {gem: {}}, idempotency: ` + window + `}`)
		if !strings.HasPrefix(got, "realm_changed: idempotency window: ") || strings.Contains(got, "warning") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want a warning %q", window, got, want)
		}
	}
}

// TestPlanOfCounters: a plan warns of what was counted and the new catalog does not go on with. Ann has
// drawn once from the pool, and from one with another track of the same name.
func TestPlanOfCounters(t *testing.T) {
	const before = `{kuji: 1, items: {gem: {}, key: {}}, start: {gem: 9}, pools: {
		p: {price: {gem: 1}, free: {per: day}, pity: {rare: {certain: 10, share: event}, fine: {certain: 5}}, budget: {per: day, of: {key: 50}},
			entries: [{id: rare, weight: 1, reward: {items: {key: 1}}}, {id: fine, weight: 1}, {id: rest, weight: 1}]},
		q: {pity: {rare: {certain: 10, share: event}}, entries: [{id: rare, weight: 1}, {id: rest, weight: 1}]},
		still: {pity: {rare: {certain: 10}}, entries: [{id: rare, weight: 1}, {id: rest, weight: 1}]}}}`
	const lost = "what players have counted on the track %s does not count any more, unless the pool has a track with this name again"
	for name, c := range map[string]struct{ from, to, want string }{
		"the same counters":       {"certain: 10, share: event}, fine: {certain: 5}", "certain: 9, share: event}, fine: {of: [rare, fine], rising: {from: 2, by: 1}}", ""},
		"another order":           {"rare: {certain: 10, share: event}, fine: {certain: 5}", "fine: {certain: 5}, rare: {certain: 10, share: event}", ""},
		"another name, one share": {"rare: {certain: 10, share: event}, fine", "best: {of: [rare], certain: 10, share: event}, fine", ""},
		"one more track":          {"fine: {certain: 5}}, budget", "fine: {certain: 5}, rest: {}}, budget", ""},
		"another share":           {"share: event}, fine", "share: autumn}, fine", fmt.Sprintf(lost, "event")},
		"no share":                {", share: event}, fine", "}, fine", fmt.Sprintf(lost, "event")},
		"another name":            {"fine: {certain: 5}", "good: {of: [fine], certain: 5}", fmt.Sprintf(lost, "p/fine")},
		"no pity":                 {"pity: {rare: {certain: 10, share: event}, fine: {certain: 5}}, ", "", fmt.Sprintf(lost, "event and p/fine")},
		"nobody has drawn":        {"still: {pity: {rare: {certain: 10}}, ", "still: {", ""},
		"free in a week":          {"free: {per: day}", "free: {per: week}", "free draws per week count from now on: those that players have had are not in them"},
		"more are free":           {"free: {per: day}", "free: {per: day, draws: 2}", ""},
		"none is free":            {"free: {per: day}, ", "", ""},
		"a budget for an hour":    {"budget: {per: day, ", "budget: {per: hour, ", "the budget of key per hour counts from now on: what was given before is in another one"},
		"a shared budget":         {"key: 50}}", "key: 50}, share: all}", "the budget of key per day counts from now on: what was given before is in another one"},
		"a higher budget":         {"key: 50}", "key: 60}", ""},
		"one item more":           {"key: 50}", "key: 50, gem: 5}", ""},
		"no budget":               {"budget: {per: day, of: {key: 50}},", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put(before)
			r.want(draw("ann", "p", 1), rules.OK, "")
			r.want(draw("ann", "q", 1), rules.OK, "")
			var all []string
			for line := range strings.Lines(r.plan(strings.Replace(before, c.from, c.to, 1))) {
				if text, ok := strings.CutPrefix(line, "\twarning: "); ok {
					all = append(all, strings.TrimSpace(text))
				}
			}
			if got := strings.Join(all, "\n"); got != c.want || !strings.Contains(before, c.from) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestNotices: what deserves a second look in a catalog as a whole, once.
func TestNotices(t *testing.T) {
	const items = "{kuji: 1, items: {a: {}, b: {}, c: {}, ticket: {}}, "
	for name, c := range map[string]struct{ pools, want string }{
		"all is well":         {`p: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {pool: q}}]}, q: {internal: true, entries: [{id: x, weight: 1, reward: {items: {a: 1}}}]}`, ""},
		"a quest leads to it": {`p: {internal: true, entries: [{id: x, weight: 1, reward: {items: {a: 1}}}]}}, counters: {n: {}}, quests: {q: {needs: {n: 1}, reward: [{pool: p}, {items: {b: 1}}]}`, ""},
		"no weight":           {`p: {entries: [{id: x, weight: 1}, {id: y, weight: 0, reward: {items: {a: 1}}}]}`, "a: nobody can get this item: no draw that anybody can make gives it"},
		"weight by luck":      {`p: {entries: [{id: x, weight: 1}, {id: y, weight: 0, luck: {item: b, weights: [{from: 1, weight: 2}]}, reward: {items: {a: 1}}}, {id: z, weight: 1, reward: {items: {b: 1}}}]}`, ""},
		"a last ticket":       {`p: {mode: raffle, last: [{items: {a: 1}}, {pool: q}], entries: [{id: x, stock: 1}]}, q: {internal: true, entries: [{id: x, weight: 1}]}`, ""},
		"no stock":            {`p: {entries: [{id: x, weight: 1}, {id: y, weight: 1, stock: 0, reward: {items: {a: 1}}}]}`, "a: nobody can get this item: no draw that anybody can make gives it"},
		"nobody leads to it":  {`p: {internal: true, entries: [{id: x, weight: 1}]}`, "p: nobody can draw from this pool: it is internal, and no draw leads to it"},
		"nobody comes to it":  {`p: {internal: true, entries: [{id: x, weight: 1, reward: {pool: q}}]}, q: {internal: true, entries: [{id: x, weight: 1}]}, r: {entries: [{id: x, weight: 1}, {id: y, weight: 0, reward: {pool: p}}]}`, "p: nobody can draw from this pool: it is internal, and no draw leads to it\nq: nobody can draw from this pool: it is internal, and no draw leads to it"},
		"it has ended":        {`p: {ends: 2023-11-01T00:00:00Z, entries: [{id: x, weight: 1}]}`, "p: nobody can draw from this pool: it has ended"},
		"it ends later":       {`p: {ends: 2023-12-01T00:00:00Z, entries: [{id: x, weight: 1}]}`, ""},
		"the side door":       {`p: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {pool: q}}]}, q: {entries: [{id: x, weight: 1}]}`, "q: other pools lead to this pool, but anybody can draw from it directly, free and without a limit: set internal, unless that is meant"},
		"a side door at cost": {`p: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {pool: q}}]}, q: {price: {ticket: 2}, entries: [{id: x, weight: 1}]}`, ""},
		"a guarantee below":   {`p: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {pool: q}}]}, q: {price: {ticket: 2}, guarantee: [{draws: 10, of: [x]}], entries: [{id: x, weight: 1}, {id: y, weight: 1}]}`, "q: other pools lead to this pool, and its guarantee does not hold for what they draw from it: only for requests that draw from it directly"},
		"complete gacha":      {`p: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {items: {a: 1}}}, {id: y, weight: 1, reward: {items: {b: 1}}}]}, swap: {price: {a: 1, b: 1}, entries: [{id: x, weight: 1, reward: {items: {c: 1}}}]}`, "swap: complete gacha: a draw costs 2 different items that are only drawn by chance and for a price, such as a and b; some countries forbid this"},
		"a set to hold":       {`p: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {items: {a: 1}}}, {id: y, weight: 1, reward: {items: {b: 1}}}, {id: z, weight: 1, when: {holds: {a: 1, b: 1}}, reward: {items: {c: 1}}}]}`, "p: complete gacha: entry z asks for 2 different items that are only drawn by chance and for a price, such as a and b; some countries forbid this"},
		"a set for a bundle":  {`p: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {items: {a: 1}}}, {id: y, weight: 1, reward: {items: {b: 1}}}]}, swap: {price: {ticket: 1}, bundles: [{draws: 10, price: {a: 1, b: 1}}], entries: [{id: x, weight: 1, reward: {items: {c: 1}}}]}`, "swap: complete gacha: a bundle of 10 draws costs 2 different items that are only drawn by chance and for a price, such as a and b; some countries forbid this"},
		"several of one":      {`p: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {items: {a: 1}}}, {id: y, weight: 1, reward: {items: {b: 1}}}]}, swap: {price: {a: 10}, entries: [{id: x, weight: 1, reward: {items: {c: 1}}}]}`, ""},
		"one is also free":    {`p: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {items: {a: 1}}}, {id: y, weight: 1, reward: {items: {b: 1}}}]}, free: {limits: [{per: day, draws: 1}], entries: [{id: x, weight: 1, reward: {items: {a: 1}}}]}, swap: {price: {a: 1, b: 1}, entries: [{id: x, weight: 1, reward: {items: {c: 1}}}]}`, ""},
		"every draw gives it": {`p: {price: {ticket: 1}, entries: [{id: x, weight: 1, reward: {items: {a: 1, b: 1}}}, {id: y, weight: 1, reward: {items: {b: 1}}}]}, swap: {price: {a: 1, b: 1}, entries: [{id: x, weight: 1, reward: {items: {c: 1}}}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, 1)
			r.put("{kuji: 1, items: {c: {}}}")
			yaml := items + "pools: {" + c.pools + "}}"
			var all []string
			for line := range strings.Lines(r.plan(yaml)) {
				if text, ok := strings.CutPrefix(line, "notice: "); ok {
					all = append(all, strings.TrimSpace(text))
				}
			}
			if got := strings.Join(all, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			r.put(yaml)
			if got := r.plan(strings.Replace(yaml, "items: {", "items: {more: {}, ", 1)); got != "item_added: item more: added" {
				t.Errorf("noticed again: %s", got)
			}
		})
	}
}

// TestPlanOfABoxThatWasFilled: a plan knows how often a box was filled. Here it was all that it can
// be: the last ticket of one draw fills it no more, and there is nothing to take after it.
func TestPlanOfABoxThatWasFilled(t *testing.T) {
	yaml := func(weight int) string {
		return fmt.Sprintf(`{kuji: 1, items: {a: {}}, pools: {p: {rolls: 2, entries: [{id: x, weight: %d, reward: {pool: box}}, {id: y, weight: 1}]},
			box: {mode: raffle, refill: 1, last: {items: {a: 1}}, entries: [{id: t, stock: 1}]}}}`, weight)
	}
	r := newRealm(t, 1)
	r.put(yaml(1))
	r.want(draw("ann", "box", 1), rules.OK, "")
	// One ticket: two rolls take it with a chance of 1 - 1/2², and then of 1 - 1/4².
	if got, want := r.plan(yaml(3)), "a per draw 0.9375 instead of 0.75"; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %q in it", got, want)
	}
}

// TestPlanOfOdds: a plan compares what pools give through inner pools, and counts what is kept.
func TestPlanOfOdds(t *testing.T) {
	r := newRealm(t, 1)
	r.put(banner)
	const from, to = "{id: featured, weight: 1,", "{id: featured, weight: 0.01,"
	if got, want := r.plan(strings.Replace(banner, from, to, 1)), `entry_changed: pool five-star, entry featured: weight 0.01 instead of 1; 0 drawn already, unlimited stock left
pool_changed: pool banner: odds of five-star/featured 0.00594059% instead of 0.3%, odds of five-star/lost 0.594059% instead of 0.3%, hero per draw 0.0000594059 instead of 0.003, other per draw 0.00594059 instead of 0.003
	warning: odds move more than threefold: five-star/featured from 0.3% to 0.00594059%`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	c := parse(t, strings.Replace(banner, from, to, 1))
	if p, err := plan.NewPlanner(r.state, r.rules.Tables(), c, r.now).Plan(c, waits); err != nil || p.Kept != 4 {
		t.Errorf("%d entries kept, want 4: %v", p.Kept, err)
	}
}

// TestSlips: whatever the weights are, a plan warns if a digit or the point of one of them slips, or
// that of a price or a quantity. It is silent about a change by half.
func TestSlips(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 3))
	for range 200 {
		weights := make([]uint64, 2+rnd.IntN(4))
		for i := range weights {
			weights[i] = 10 * (1 + rnd.Uint64N(uint64(1)<<rnd.IntN(20)))
		}
		yaml := func(weights []uint64, price, gems uint64) string {
			var b strings.Builder
			fmt.Fprintf(&b, "{kuji: 1, items: {gem: {}, coin: {}}, start: {coin: 1}, pools: {p: {price: {coin: %d}, entries: [", price)
			for i, w := range weights {
				fmt.Fprintf(&b, "{id: e%d, weight: %d, reward: {items: {gem: %d}}}, ", i, w, gems)
			}
			return b.String() + "]}}}"
		}
		r := newRealm(t, 1)
		r.put(yaml(weights, 160, 40))
		slipped := slices.Clone(weights)
		if i := rnd.IntN(len(weights)); rnd.IntN(2) == 0 {
			slipped[i] *= 10
		} else {
			slipped[i] /= 10
		}
		if got := r.plan(yaml(slipped, 160, 40)); !strings.Contains(got, "odds move more than threefold") {
			t.Errorf("weights %d to %d: no warning:\n%s", weights, slipped, got)
		}
		half := slices.Clone(weights)
		half[rnd.IntN(len(half))] /= 2
		if got := r.plan(yaml(half, 240, 60)); strings.Contains(got, "threefold") {
			t.Errorf("weights %d to %d: a warning:\n%s", weights, half, got)
		}
	}
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {}, coin: {}}, pools: {p: {price: [{coin: 160}, {gem: 5}], entries: [{id: e, weight: 1, reward: {items: {gem: 50}}}]}}}`)
	got := r.plan(`{kuji: 1, items: {gem: {}, coin: {}}, pools: {p: {price: [{coin: 16}, {gem: 5}], entries: [{id: e, weight: 1, reward: {items: {gem: 500}}}]}}}`)
	if want := "warning: the price moves more than threefold: 16 coin instead of 160; the average of an item moves more than threefold: gem from 50 to 500"; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %s", got, want)
	}
}

// TestSlipsOfPity: a slipped digit of a track or a guarantee is warned of, though the odds of the next
// draw stay as they are.
func TestSlipsOfPity(t *testing.T) {
	const good = `{kuji: 1, items: {gem: {}}, pools: {p: {max_count: 1000, pity: {five: {certain: 90, rising: {from: 74, by: 6}}, four: {rising: {from: 9, by: [5, 15]}}}, guarantee: [{draws: 10, of: [four, five]}],
		entries: [{id: five, weight: 0.6}, {id: four, weight: 5.1}, {id: three, weight: 94.3}]}}}`
	for slip, want := range map[string]string{
		"certain: 90>certain: 900":        "five: certain 900 instead of 90",
		"from: 74>from: 7":                "five: rising from 7 instead of 74",
		"by: 6}>by: 60}":                  "five: rising by 60 instead of 6",
		"by: 6}>by: 0.6}":                 "five: rising by 0.6 instead of 6",
		"by: [5, 15]>by: [0.5, 15]":       "four: rising by 0.5 instead of 5",
		"draws: 10,>draws: 100,":          "guarantee: draws 100 instead of 10",
		"certain: 90>certain: 80":         "",
		"from: 74, by: 6>from: 70, by: 8": "",
	} {
		r := newRealm(t, 1)
		r.put(good)
		before, now, _ := strings.Cut(slip, ">")
		got := r.plan(strings.Replace(good, before, now, 1))
		if want == "" && strings.Contains(got, "threefold") || want != "" && !strings.Contains(got, "pity moves more than threefold: "+want) {
			t.Errorf("%s: got\n%s\nwant %q", slip, got, want)
		}
	}
}

// TestPlanTime: what a plan says of time is so when the catalog would be applied, not when something
// last happened.
func TestPlanTime(t *testing.T) {
	r := newRealm(t, 1)
	yaml := `{kuji: 1, items: {gem: {}}, pools: {p: {ends: ` + time.UnixMilli(r.now+1000).UTC().Format(time.RFC3339Nano) + `, entries: [{id: a, weight: 1}]}}}`
	if got := r.plan(yaml); strings.Contains(got, "ended") {
		t.Errorf("a second before the end:\n%s", got)
	}
	r.now += 1000
	if got := r.plan(yaml); !strings.Contains(got, "warning: nobody can draw from this pool: it has ended") {
		t.Errorf("at the end:\n%s", got)
	}
}

// TestPlanOfLots: a plan says what becomes of units when an item lasts otherwise.
func TestPlanOfLots(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {lasts: 1h}, pass: {}, coin: {}}, start: {gem: 2}}`)
	r.want(rules.Command{Kind: rules.KindGrant, Player: "ann", Items: []catalogStack{{Item: "coin", Quantity: 7}}}, rules.OK, "")
	r.want(rules.Command{Kind: rules.KindRegister, Player: "ann"}, rules.OK, "")
	for after, want := range map[string]string{
		"gem: {lasts: 2h}, pass: {}":                    "item_changed: item gem: lasts 2h instead of 1h; units that players hold keep their ends",
		"gem: {lasts: 1h, extend: true}, pass: {}":      "item_changed: item gem: extend true; units that players hold keep their ends",
		"gem: {name: Gem}, pass: {}":                    `item_changed: item gem: renamed from "" to "Gem", no lasts instead of 1h; units that come from now on stay, and those that players hold keep their ends`,
		"gem: {lasts: 1h}, pass: {}, coin: {lasts: 5m}": "item_changed: item coin: lasts 5m; units that come from now on go after that, and the 7 that players hold keep their ends, or stay if they have none",
		"gem: {lasts: 1h}, pass: {lasts: 1d}":           "item_changed: item pass: lasts 1d; nobody holds any",
		"pass: {}": `item_removed: item gem: removed; the 2 that players hold stay theirs, but can be neither granted nor consumed until it returns; units that last go at their times
	warning: players hold an item that this catalog removes
realm_changed: starting grants: changed for players who come from now on; of the 1 seen so far, those who have come keep theirs`,
	} {
		start := ", start: {gem: 2}"
		if after == "pass: {}" {
			start = ""
		}
		if !strings.Contains(after, "coin") {
			after += ", coin: {}"
		}
		if got := r.plan("{kuji: 1, items: {" + after + "}" + start + "}"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", after, got, want)
		}
	}
}
