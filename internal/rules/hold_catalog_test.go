package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// heldCatalog makes up a catalog of holds. Pools, limits and budgets may be gone, stocks and caps are others, and items
// may last for a time. Prizes neither last nor have a cap, so they can be counted.
func heldCatalog(pick picker, version int) string {
	some := func(what string, texts ...string) string { return texts[pick(what, len(texts))] }
	text := fmt.Sprintf("kuji: 1\nname: v%d\nitems:\n  coin: {kind: currency}\n  prize: {}\n", version)
	for _, id := range []string{"gem", "key", "sword"} {
		text += "  " + id + ": {" + some(id, "", "", "", "", "lasts: 1h", "most: 1, beyond: mail", "most: 2, beyond: cut", "most: 2, beyond: refuse", "most: 1") + "}\n"
	}
	text += "  token: {" + some("token", "", "lasts: 1h", "grows: {every: 1m, by: 1, to: 5}", "lasts: 5m") + "}\n"
	facts, there := "counters:\n  gained: {of: {gains: [gem, prize]}}\n", map[string]bool{}
	text += "pools:\n  always: {entries: [{id: e, weight: 1, reward: {items: {gem: 1}}}]}\n"
	shop := "  shop: {price: {coin: 1}, "
	if pick("price", 3) == 0 {
		shop = "  shop: {price: {token: 1}, "
	}
	box := "  box: {mode: raffle, %s entries: [{id: a, stock: %d, reward: {items: {gem: 1}}}, {id: b, stock: 1, reward: {items: {key: 1}}}]}\n"
	boxes := []string{box, "", "refill: 2,", "refill: 1, last: {items: {sword: 1}},", "last: {items: {sword: 2, key: 1}},", "last: {pool: always},"}
	if pick("mode", 4) == 0 {
		boxes = []string{strings.Replace(strings.ReplaceAll(box, "stock", "weight: 1, stock"), "raffle", "weighted", 1), ""}
	}
	for _, p := range [][]string{
		{
			shop + "%s entries: [{id: prize, weight: 1, stock: %d, reward: {items: {prize: 1}}}]}\n",
			"", "limits: [{per: day, draws: 5}],", "limits: [{per: forever, draws: 6}, {per: window, window: 1h, draws: 4}],", "limits: [{per: week, draws: 3}],",
			"ends: 2023-11-13T00:20:00Z,", "free: {per: day, draws: 2},", "price_by: {counter: gained, prices: [{from: 1, price: {coin: 2}}]},",
			"pity: {t: {of: [prize], certain: 2}},",
		},
		boxes,
		{
			"  outer: {%s entries: [{id: in, weight: 1, stock: %d, reward: {pool: shop}}, {id: box, weight: 1, reward: {pool: box}}]}\n",
			"", "price: {coin: 1},",
		},
		{
			"  codes: {%s entries: [{id: code, weight: 1, stock: %d, reward: {code: list, items: {key: 1}}}, {id: gem, weight: 1, reward: {items: {gem: 2}}}]}\n",
			"", "price: {key: 1},",
		},
		{
			"  budget: {%s entries: [{id: gem, weight: 100, stock: %d, reward: {items: {gem: 1}}}, {id: none, weight: 1}]}\n",
			"", "budget: {per: day, of: {gem: 2}},", "budget: {per: forever, of: {gem: 3}},", "budget: {per: hour, of: {gem: 3}},",
		},
	} {
		id, i := strings.Fields(p[0])[0], 1+pick("rules", len(p)-1)
		if there[id] = pick("gone", 6) > 0; id == "outer:" && !(there["shop:"] && there["box:"]) {
			continue
		}
		if there[id] {
			text += fmt.Sprintf(p[0], p[i], 1+pick("stock", 5))
		}
	}
	if there["shop:"] {
		facts += "  won: {of: {entries: shop/prize}}\n  drawn: {of: {draws: shop}}\n"
	}
	return text + facts
}

// changes puts another catalog in force, unless it is refused.
func (r *realm) changes(pick picker, version int) bool {
	c, err := catalog.Parse([]byte(heldCatalog(pick, version)))
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := rules.Prepare(r.state, r.rules.Tables(), c, nil, 0); err != nil {
		return false
	}
	r.force(c)
	return true
}

// TestHoldsThroughCatalogs: whatever the catalog becomes between a hold and its end, a confirm gives it or says why not,
// a cancel gives it back, and so does the deadline. Nothing is lost, and nothing stays held.
func TestHoldsThroughCatalogs(t *testing.T) {
	changed, held, confirmed := 0, map[rules.Status]int{}, map[rules.Status]int{}
	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
		r := newRealm(t, rapid.Uint64().Draw(t, "seed"))
		r.codes("list", "one", "two", "three", "four")
		for v := 0; !r.changes(pick, v); v++ {
		}
		players := []string{"ann", "bob", "cid"}
		for _, p := range players {
			r.do(grant(p, of("coin", 100), of("token", 3)))
		}
		var open, done []string
		forgot := false
		missing := 0 // prizes that a reverse took, or did not find, and did not put back; and those of who is forgotten
		for i := range rapid.IntRange(5, 60).Draw(t, "steps") {
			who, to := players[pick("player", 3)], players[pick("to", 3)]
			pool := []string{"shop", "shop", "box", "box", "outer", "codes", "budget", "always"}[pick("pool", 8)]
			item := []string{"coin", "gem", "key", "sword", "token"}[pick("item", 5)]
			one, id := draw(who, pool, 1+pick("count", 2)), fmt.Sprint("h", i)
			refund := pick("refund", 2) == 0
			cmd := one
			switch pick("what", 15) {
			case 0, 1, 2:
				cmd = heldFor(id, refund, one)
			case 3:
				cmd = heldFor(id, refund, one, consume(who, of(item, 1)), draw(to, "shop", 1))
			case 4:
				cmd = heldFor(id, refund, consume(who, of(item, 1)), grant(to, of("key", 1), of("gem", 1)))
			case 5:
				if who == to {
					continue
				}
				cmd = heldFor(id, refund, transfer(who, to, of(item, 1)), grant(who, of("sword", 1)))
			case 6:
				r.now += int64(1+pick("minutes", 4)) * minute
				r.sweep()
				continue
			case 7, 8:
				if r.changes(pick, i+100) {
					changed++
				}
				continue
			case 9, 10:
				if len(open) == 0 {
					continue
				}
				of := pick("hold", len(open))
				if cmd = cancel(fmt.Sprint("c", i), open[of]); pick("confirm", 3) > 0 {
					cmd.Kind = rules.KindConfirm
				}
			case 11, 12:
				if len(done) > 0 {
					cmd = reverse(done[pick("done", len(done))])
				}
			case 13:
				cmd = grant(who, of(item, 1))
			case 14:
				if cmd = mergeOf(who, to); who == to {
					cmd = rules.Command{Kind: rules.KindForget, Player: who}
				}
			}
			if cmd.ID == "" {
				cmd.ID = id
			}
			r.settleAll(&cmd)
			status, _ := r.decide(&cmd, r.src)
			if status != rules.Refused {
				r.apply(r.w.Buf)
				r.check()
			}
			switch cmd.Kind {
			case rules.KindHold:
				held[status]++
			case rules.KindConfirm:
				confirmed[status]++
			}
			switch {
			case cmd.Kind == rules.KindHold && status == rules.OK:
				open = append(open, cmd.ID)
			case cmd.Kind == rules.KindReverse, cmd.Kind == rules.KindForget:
				r.sweep() // erases the names
				forgot = forgot || cmd.Kind == rules.KindForget
				missing = r.prizes(players)
			case status == rules.OK:
				done = append(done, cmd.ID)
			case cmd.Kind == rules.KindCancel && status != rules.OK && status != rules.HoldEnded && !(forgot && status == rules.UnknownHold):
				t.Fatalf("a cancel ends %v", status)
			}
			if n := r.prizes(players); n != missing {
				t.Fatalf("%d prizes that were drawn are nobody's, want %d", n, missing)
			}
		}
		r.now += 10 * minute
		r.sweep()
		for _, p := range players {
			for _, item := range []string{"coin", "prize", "gem", "key", "sword", "token"} {
				if n := r.held(p, item); n != 0 {
					t.Fatalf("%s has %d of %s held after the last deadline", p, n, item)
				}
				if n := r.holds(p, item); n > 0 { // all of it can be spent
					cmd := consume(p, of(item, n))
					if r.settleAll(&cmd); r.holds(p, item) == n {
						r.ends(cmd, rules.OK)
					}
				}
			}
		}
		r.now += 25 * 60 * minute
		r.sweep()
		for k := range r.state.Records(nil, nil) {
			if strings.IndexByte("hqcd", k[0]) >= 0 {
				t.Fatalf("the record %q is left", k)
			}
		}
		r.replay()
	})
	t.Logf("%d catalogs; holds ended %v, confirms %v", changed, held, confirmed)
}

// prizes returns how many more prizes were drawn than players have, with what is held.
func (r *realm) prizes(players []string) (n int) {
	if num, ok := r.state.PoolNum("shop"); ok {
		e, _ := r.state.EntryNum(num, "prize")
		n = int(r.state.DrawnOf(num, e))
	}
	seen := map[uint32]bool{}
	for _, p := range players {
		num, ok := r.state.Player(p)
		if ok && !seen[num] { // a player may have several names
			n -= int(r.holds(p, "prize") + r.held(p, "prize"))
		}
		seen[num] = true
	}
	return n
}

// TestHeldBeforeItWasABox: a pool that becomes a box is not finished, and not filled again, while something is held that
// was drawn from it before.
func TestHeldBeforeItWasABox(t *testing.T) {
	const before = `{kuji: 1, items: {gem: {}}, pools: {box: {entries: [{id: a, weight: 1, stock: 2, reward: {items: {gem: 1}}}]}}}`
	const after = `{kuji: 1, items: {gem: {}}, pools: {box: {mode: raffle, refill: 5, entries: [{id: a, stock: 2, reward: {items: {gem: 1}}}]}}}`
	for _, how := range []string{"confirm", "cancel"} {
		r := newRealm(t, 1)
		r.put(before)
		r.want(heldFor("h", false, draw("ann", "box", 1)), rules.OK, "")
		r.put(after)
		r.want(draw("bob", "box", 1), rules.OK, "")
		r.want(draw("bob", "box", 1), rules.SoldOut, "box")
		r.ended("h", how)
		if left, want := r.leftOf("box", "a"), map[string]uint64{"confirm": 2, "cancel": 1}[how]; left != want {
			t.Errorf("%s: %d tickets are left, want %d", how, left, want)
		}
		r.want(draw("bob", "box", 2), rules.OK, "")
		r.replay()
	}
}

// TestHeldBoxWithAnotherLast: a confirm that finishes a box fails if the last reward does not fit, also if that is drawn
// since the catalog changed.
func TestHeldBoxWithAnotherLast(t *testing.T) {
	const text = `{kuji: 1, items: {gem: {}, star: {most: 1}}, pools: {
		stars: {entries: [{id: e, weight: 1, reward: {items: {star: 1}}}]},
		box: {mode: raffle, %s entries: [{id: a, stock: 1, reward: {items: {gem: 1}}}]}}}`
	r := newRealm(t, 1)
	r.put(fmt.Sprintf(text, ""))
	r.do(grant("ann", of("star", 1)))
	r.want(heldFor("h", false, draw("ann", "box", 1)), rules.OK, "")
	r.put(fmt.Sprintf(text, "last: {pool: stars},"))
	if ev := r.do(confirm("full", "h")); rules.Status(ev.Status) != rules.MostReached {
		t.Fatalf("a confirm ends %v", rules.Status(ev.Status))
	}
	r.do(consume("ann", of("star", 1)))
	r.want(confirm("c", "h"), rules.OK, "")
	r.wantHas("ann", "star", 1, 0)
	r.replay()
}

// TestHeldBoxAfterReverse: a reverse of a draw from a box that was filled since may put back a ticket for one that is
// held. When that comes back, the box is full already.
func TestHeldBoxAfterReverse(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {gem: {}}, pools: {box: {mode: raffle, refill: 5, entries: [{id: a, stock: 2, reward: {items: {gem: 1}}}]}}}`)
	r.want(named("d", draw("ann", "box", 2)), rules.OK, "") // it is filled again
	r.want(heldFor("h", false, draw("bob", "box", 1)), rules.OK, "")
	r.want(reverse("d"), rules.OK, "")
	r.want(cancel("c", "h"), rules.OK, "")
	if left := r.leftOf("box", "a"); left != 2 {
		t.Errorf("%d tickets are left, of 2", left)
	}
	r.replay()
}
