package rules_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

const holds = `
kuji: 1
items:
  coin: {kind: currency}
  prize: {}
  sword: {}
  gem: {}
  key: {most: 3, beyond: mail}
  rent: {lasts: 1h}
counters:
  drawn: {of: {draws: shop}}
  won: {of: {entries: shop/prize}}
  gained: {of: {gains: prize}}
  spent: {of: {spends: coin}}
  consumed: {of: {consumes: coin}}
pools:
  shop:
    price: {coin: 10}
    limits: [{per: day, draws: 5}]
    entries: [{id: prize, weight: 1, stock: 4, reward: {items: {prize: 1}}}]
  box:
    mode: raffle
    refill: 1
    last: {items: {sword: 1}}
    entries: [{id: a, stock: 2, reward: {items: {gem: 1}}}]
  keys:
    entries: [{id: key, weight: 1, reward: {items: {key: 2}}}]
  codes:
    entries:
      - {id: code, weight: 1000000, reward: {code: list}}
      - {id: gem, weight: 1, reward: {items: {gem: 1}}}
  budget:
    budget: {per: day, of: {gem: 2}}
    entries:
      - {id: gem, weight: 1000000, reward: {items: {gem: 1}}}
      - {id: none, weight: 1}
  rented:
    entries: [{id: rent, weight: 1, reward: {items: {rent: 1}}}]
  rising:
    price: {coin: 1}
    price_by: {counter: drawn, prices: [{from: 1, price: {coin: 2}}]}
    entries: [{id: gem, weight: 1, reward: {items: {gem: 1}}}]
`

// held returns a command that is held for ten minutes, of members, or of one alone.
func heldFor(id string, refund bool, members ...rules.Command) rules.Command {
	return rules.Command{Kind: rules.KindHold, ID: id, Members: members, Hands: rules.Hands{Hold: &rules.HoldOf{For: 10 * minute, Refund: refund, One: len(members) == 1}}}
}

func confirm(id, of string) rules.Command {
	return rules.Command{Kind: rules.KindConfirm, ID: id, Hands: rules.Hands{Hold: &rules.HoldOf{Of: of}}}
}

func cancel(id, of string) rules.Command {
	return rules.Command{Kind: rules.KindCancel, ID: id, Hands: rules.Hands{Hold: &rules.HoldOf{Of: of}}}
}

// leftOf returns what is left of an entry.
func (r *realm) leftOf(pool, entry string) uint64 {
	num, _ := r.state.PoolNum(pool)
	e, _ := r.state.EntryNum(num, entry)
	return r.state.Left(num, e)
}

// counts returns where the counters of a player stand.
func (r *realm) counted(player string) string {
	text := ""
	for _, c := range []string{"drawn", "won", "gained", "spent", "consumed"} {
		text += fmt.Sprintf(" %s %d", c, r.count(player, c))
	}
	return text[1:]
}

// ended ends a hold in one of three ways, and checks that nothing is kept of it a day later.
func (r *realm) ended(id, how string) {
	r.t.Helper()
	switch how {
	case "confirm":
		r.want(confirm("c"+id, id), rules.OK, "")
	case "cancel":
		r.want(cancel("c"+id, id), rules.OK, "")
	case "deadline":
		r.now += 10 * minute
		r.sweep()
	}
}

// TestHolds: what a command that is held takes and gives, when it is asked for, and when it ends.
func TestHolds(t *testing.T) {
	type has struct{ coin, coinHeld, prize, prizeHeld, left uint64 }
	tests := map[string]struct {
		hold                   rules.Command
		asked, given, goneBack has
		facts                  [3]string // when it is asked for, after it is confirmed, and after it is cancelled
	}{
		"draw": {heldFor("h", false, draw("ann", "shop", 2)),
			has{80, 0, 0, 2, 2}, has{80, 0, 2, 0, 2}, has{80, 0, 0, 0, 4},
			[3]string{"drawn 2 won 0 gained 0 spent 20 consumed 0", "drawn 2 won 2 gained 2 spent 20 consumed 0", "drawn 2 won 0 gained 0 spent 20 consumed 0"}},
		"draw with refund": {heldFor("h", true, draw("ann", "shop", 2)),
			has{80, 20, 0, 0, 4}, has{80, 0, 2, 0, 2}, has{100, 0, 0, 0, 4},
			[3]string{"drawn 0 won 0 gained 0 spent 0 consumed 0", "drawn 2 won 2 gained 2 spent 20 consumed 0", "drawn 0 won 0 gained 0 spent 0 consumed 0"}},
		"consume": {heldFor("h", false, consume("ann", of("coin", 30))),
			has{70, 30, 0, 0, 4}, has{70, 0, 0, 0, 4}, has{100, 0, 0, 0, 4},
			[3]string{"drawn 0 won 0 gained 0 spent 0 consumed 0", "drawn 0 won 0 gained 0 spent 0 consumed 30", "drawn 0 won 0 gained 0 spent 0 consumed 0"}},
		"transfer": {heldFor("h", false, transfer("ann", "bob", of("coin", 30))),
			has{70, 30, 0, 0, 4}, has{70, 0, 0, 0, 4}, has{100, 0, 0, 0, 4},
			[3]string{"drawn 0 won 0 gained 0 spent 0 consumed 0", "drawn 0 won 0 gained 0 spent 0 consumed 0", "drawn 0 won 0 gained 0 spent 0 consumed 0"}},
		"a group without draws": {heldFor("h", false, consume("ann", of("coin", 30)), grant("ann", of("prize", 1))),
			has{70, 30, 0, 1, 4}, has{70, 0, 1, 0, 4}, has{100, 0, 0, 0, 4},
			[3]string{"drawn 0 won 0 gained 0 spent 0 consumed 0", "drawn 0 won 0 gained 1 spent 0 consumed 30", "drawn 0 won 0 gained 0 spent 0 consumed 0"}},
		"a group that draws pays for good": {heldFor("h", false, consume("ann", of("coin", 30)), draw("ann", "shop", 1)),
			has{60, 0, 0, 1, 3}, has{60, 0, 1, 0, 3}, has{60, 0, 0, 0, 4},
			[3]string{"drawn 1 won 0 gained 0 spent 10 consumed 30", "drawn 1 won 1 gained 1 spent 10 consumed 30", "drawn 1 won 0 gained 0 spent 10 consumed 30"}},
		"a group that draws, with refund": {heldFor("h", true, consume("ann", of("coin", 30)), draw("ann", "shop", 1), draw("ann", "shop", 3)),
			has{30, 70, 0, 0, 4}, has{30, 0, 4, 0, 0}, has{100, 0, 0, 0, 4},
			[3]string{"drawn 0 won 0 gained 0 spent 0 consumed 0", "drawn 4 won 4 gained 4 spent 40 consumed 30", "drawn 0 won 0 gained 0 spent 0 consumed 0"}},
	}
	for name, c := range tests {
		for _, how := range []string{"confirm", "cancel", "deadline"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				r := newRealm(t, 1)
				r.put(holds)
				r.do(grant("ann", of("coin", 100)))
				r.want(c.hold, rules.OK, "")
				look := func() has {
					return has{r.holds("ann", "coin"), r.held("ann", "coin"), r.holds("ann", "prize"), r.held("ann", "prize"), r.leftOf("shop", "prize")}
				}
				if got := look(); got != c.asked || r.counted("ann") != c.facts[0] {
					t.Fatalf("asked: %+v, want %+v; %s, want %s", got, c.asked, r.counted("ann"), c.facts[0])
				}
				r.ended("h", how)
				want, facts := c.given, c.facts[1]
				if how != "confirm" {
					want, facts = c.goneBack, c.facts[2]
				}
				if got := look(); got != want || r.counted("ann") != facts {
					t.Fatalf("%+v, want %+v; %s, want %s", got, want, r.counted("ann"), facts)
				}
				r.want(confirm("again", "h"), rules.HoldEnded, "")
				r.want(cancel("once more", "h"), rules.HoldEnded, "")
				r.now += 25 * 60 * minute
				if r.sweep(); r.records() != 0 {
					t.Errorf("%d records are left", r.records())
				}
				r.want(confirm("late", "h"), rules.UnknownHold, "")
				r.replay()
			})
		}
	}
}

// TestHoldRefusals: what cannot be held, and what fails.
func TestHoldRefusals(t *testing.T) {
	r := newRealm(t, 1)
	r.put(holds)
	r.do(grant("ann", of("coin", 100), of("rent", 1)))
	for field, cmd := range map[string]rules.Command{
		"pool":             heldFor("h", false, draw("ann", "rented", 1)),
		"refund":           heldFor("h", true, draw("ann", "rising", 1)),
		"items":            heldFor("h", false, consume("ann", of("rent", 1))),
		"items[0].item":    heldFor("h", false, consume("ann", of("none", 1))),
		"members[1].items": heldFor("h", false, grant("ann", of("coin", 1)), grant("ann", of("rent", 1))),
	} {
		r.want(cmd, rules.Refused, field)
	}
	for want, damage := range map[string]func(c *rules.Command){
		"id: empty":                 func(c *rules.Command) { c.ID = "" },
		"hold_ms: 999 milli":        func(c *rules.Command) { c.Hold.For = 999 },
		"hold_ms: 2592000001 milli": func(c *rules.Command) { c.Hold.For = rules.MaxHold + 1 },
		"count: 0":                  func(c *rules.Command) { c.Members[0].Count = 0 },
		"members[1].kind: a register cannot be held": func(c *rules.Command) {
			c.Members, c.Hold.One = append(c.Members, register("ann")), false
		},
	} {
		c := heldFor("h", false, draw("ann", "shop", 1))
		damage(&c)
		if err := c.Check(); err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	r.want(heldFor("f1", false, draw("ann", "shop", 5)), rules.SoldOut, "shop")
	r.want(heldFor("f2", true, draw("ann", "shop", 5)), rules.SoldOut, "shop")
	r.want(heldFor("f3", false, consume("ann", of("coin", 101))), rules.InsufficientItems, "coin")
	r.want(heldFor("h", true, draw("ann", "shop", 3)), rules.OK, "")
	r.want(heldFor("f4", false, draw("ann", "shop", 2)), rules.SoldOut, "shop") // one is not reserved
	r.do(grant("bob", of("coin", 100)))
	r.want(draw("bob", "shop", 2), rules.SoldOut, "shop")
	r.want(draw("bob", "shop", 1), rules.OK, "")
	r.want(draw("bob", "shop", 1), rules.SoldOut, "shop")
	r.want(heldFor("f5", false, draw("ann", "shop", 3)), rules.LimitReached, "shop")
	r.want(cancel("c", "h"), rules.OK, "")
	r.want(heldFor("i", true, draw("ann", "shop", 3)), rules.OK, "") // the limit is as before
	for i := range rules.MaxPlayerHolds - 1 {
		r.want(heldFor(fmt.Sprint("n", i), false, grant("ann", of("prize", 1))), rules.OK, "")
	}
	r.want(heldFor("one more", false, grant("ann", of("prize", 1))), rules.TooManyHolds, "")
}

// TestHeldLimits: the limits of a draw with refund come back, but not into a day that began since.
func TestHeldLimits(t *testing.T) {
	r := newRealm(t, 1)
	r.put(holds)
	r.do(grant("ann", of("coin", 100)))
	r.now = monday + 24*60*minute - minute
	r.want(heldFor("h", true, draw("ann", "shop", 2)), rules.OK, "")
	r.now += 2 * minute
	r.want(draw("ann", "shop", 2), rules.OK, "")
	r.want(cancel("c", "h"), rules.OK, "")
	if l := r.stopped(draw("ann", "shop", 4)); l.Left != 3 {
		t.Errorf("%+v", l)
	}
}

// TestHeldBox: the last reward and the refill of a box wait while one of its tickets is held.
func TestHeldBox(t *testing.T) {
	for _, how := range []string{"confirm", "cancel"} {
		r := newRealm(t, 1)
		r.put(holds)
		r.want(heldFor("h", false, draw("ann", "box", 1)), rules.OK, "")
		r.want(draw("bob", "box", 1), rules.OK, "")
		r.want(draw("bob", "box", 1), rules.SoldOut, "box")
		if r.holds("bob", "sword") != 0 {
			t.Fatal("the box was finished while a ticket was held")
		}
		r.ended("h", how)
		if how == "cancel" {
			r.want(draw("cid", "box", 1), rules.OK, "")
		}
		for player, want := range map[string]bool{"ann": how == "confirm", "bob": false, "cid": how == "cancel"} {
			if got := r.holds(player, "sword") == 1; got != want {
				t.Errorf("%s: %s has the last reward: %v", how, player, got)
			}
		}
		if left := r.leftOf("box", "a"); left != 2 {
			t.Errorf("%s: %d tickets are in the box", how, left)
		}
		r.replay()
	}
}

// TestHeldCodes: codes are promised by number, and handed out by a confirm.
func TestHeldCodes(t *testing.T) {
	for _, how := range []string{"confirm", "cancel"} {
		r := newRealm(t, 1)
		r.codes("list", "one", "two")
		r.put(holds)
		given := func(ev *store.Event) (n int) {
			effects := ev.Changes()
			for e := (store.Effect{}); effects.Next(&e); {
				if e.Verb == store.GiveCode {
					n++
				}
			}
			return n
		}
		ev := r.want(heldFor("h", false, draw("ann", "codes", 1)), rules.OK, "")
		if n := given(&ev); n != 0 {
			t.Fatalf("%d codes are given before the hold is confirmed", n)
		}
		ev = r.want(draw("bob", "codes", 10), rules.OK, "")
		if n := given(&ev); n != 1 {
			t.Fatalf("%d codes were not promised, of 2", n)
		}
		r.ended("h", how)
		want := map[string]int{"confirm": 0, "cancel": 1}[how]
		ev = r.want(draw("bob", "codes", 10), rules.OK, "")
		if n := given(&ev); n != want {
			t.Fatalf("%s: %d codes are left, want %d", how, n, want)
		}
	}
}

// TestHeldUnique: who has something held of what is given once does not get it again.
func TestHeldUnique(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, items: {cat: {}, dog: {}}, pools: {p: {entries: [
		{id: cat, weight: 1, unique: true, reward: {items: {cat: 1}}}, {id: dog, weight: 1, unique: true, reward: {items: {dog: 1}}}]}}}`)
	r.want(heldFor("h", false, draw("ann", "p", 1)), rules.OK, "")
	for _, o := range r.odds("p", "ann").Outcomes {
		if held := r.held("ann", o.Entry) > 0; (o.Expected.Sign() == 0) != held {
			t.Errorf("%s has odds %v, and is held: %v", o.Entry, o.Expected, held)
		}
	}
	r.want(heldFor("i", false, draw("ann", "p", 1)), rules.OK, "")
	r.wantHas("ann", "cat", 0, 1)
	r.wantHas("ann", "dog", 0, 1)
	r.want(draw("ann", "p", 1), rules.SoldOut, "p")
	r.want(cancel("c", "h"), rules.OK, "")
	r.want(draw("ann", "p", 1), rules.OK, "")
}

// TestHeldBudget: what a draw took of a budget comes back on the same day.
func TestHeldBudget(t *testing.T) {
	r := newRealm(t, 1)
	r.put(holds)
	gems := func(day int) uint64 {
		r.t.Helper()
		before := r.holds("bob", "gem")
		r.want(draw("bob", "budget", 5), rules.OK, "")
		return r.holds("bob", "gem") - before
	}
	r.want(heldFor("h", false, draw("ann", "budget", 1)), rules.OK, "")
	r.want(heldFor("i", false, draw("ann", "budget", 1)), rules.OK, "")
	if n := gems(1); n != 0 {
		t.Fatalf("%d gems beyond the budget", n)
	}
	r.want(cancel("c", "h"), rules.OK, "")
	if n := gems(1); n != 1 {
		t.Fatalf("%d gems came back", n)
	}
	r.now += 24 * 60 * minute
	r.sweep()
	if n := gems(2); n != 2 {
		t.Fatalf("%d gems on the next day", n)
	}
}

// TestHeldBeyond: what is beyond what a player can hold is promised, and mailed by a confirm.
func TestHeldBeyond(t *testing.T) {
	r := newRealm(t, 1)
	r.put(holds)
	r.want(heldFor("h", false, draw("ann", "keys", 2)), rules.OK, "")
	r.wantHas("ann", "key", 0, 3)
	r.want(cancel("c", "h"), rules.OK, "")
	r.wantHas("ann", "key", 0, 0)
	r.want(rules.Command{Kind: rules.KindCollect, Player: "ann"}, rules.NothingToCollect, "")
	r.want(heldFor("i", false, draw("ann", "keys", 2)), rules.OK, "")
	r.want(confirm("d", "i"), rules.OK, "")
	r.wantHas("ann", "key", 3, 0)
	r.want(consume("ann", of("key", 3)), rules.OK, "")
	r.want(rules.Command{Kind: rules.KindCollect, Player: "ann"}, rules.OK, "")
	r.wantHas("ann", "key", 1, 0)
}

// TestNobodyDrawsAgainForFree: a player who holds, looks, cancels and draws again sees the odds of paying.
func TestNobodyDrawsAgainForFree(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 2000
	}
	r := newRealm(t, 7)
	r.put(`{kuji: 1, items: {coin: {kind: currency}, rare: {}}, pools: {p: {price: {coin: 1}, pity: {hard: {of: [rare], certain: 20}},
		entries: [{id: rare, weight: 5, reward: {items: {rare: 1}}}, {id: common, weight: 95}]}}}`)
	r.do(grant("ann", of("coin", uint64(n))))
	seen := 0.0
	for i := range n {
		id := fmt.Sprint(i)
		r.want(heldFor(id, false, draw("ann", "p", 1)), rules.OK, "")
		seen += float64(r.held("ann", "rare"))
		r.want(cancel("", id), rules.OK, "")
		if i%500 == 0 {
			r.now += 25 * 60 * minute
			r.sweep()
		}
	}
	r.wantHas("ann", "coin", 0, 0)
	want := float64(n) / 12.83 // the expected number of draws to a rare one, of at most 20
	chiSquare(t, "rare", []float64{seen, float64(n) - seen}, []float64{want, float64(n) - want}, 15.1)
}

// TestHoldsAtRandom: players hold, confirm, cancel, draw and wait at random. What is left, held and given is always
// all there is; after the last deadline nothing is held.
func TestHoldsAtRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRealm(t, rapid.Uint64().Draw(t, "seed"))
		r.codes("list", "one", "two", "three")
		r.put(holds)
		players := []string{"ann", "bob", "cid", "dan"}
		for _, p := range players {
			r.do(grant(p, of("coin", 1000)))
		}
		ids := []string{"none"}
		for i := range rapid.IntRange(10, 80).Draw(t, "steps") {
			pick := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
			who := players[pick(3, "player")]
			pool := []string{"shop", "shop", "box", "box", "keys", "codes", "budget"}[pick(7, "pool")]
			one, id := draw(who, pool, 1+pick(2, "count")), fmt.Sprint("h", i)
			refund := pick(2, "refund") == 0
			cmd := one
			switch pick(9, "what") {
			case 0, 1, 2:
				cmd = heldFor(id, refund, one)
			case 3:
				cmd = heldFor(id, refund, one, consume(who, of("coin", 3)), draw(who, "shop", 1))
			case 4:
				cmd = heldFor(id, refund, transfer(who, "dan", of("coin", 2)), grant(who, of("key", 1)))
			case 5, 6:
				cmd = confirm("", ids[pick(len(ids), "hold")])
			case 7:
				cmd = cancel("", ids[pick(len(ids), "hold")])
			default:
				r.now += int64(pick(4, "minutes")) * minute
			}
			r.settleAll(&cmd)
			if ev := r.do(cmd); cmd.Kind == rules.KindHold && ev.Status == 0 {
				ids = append(ids, cmd.ID)
			}
			prizes := r.leftOf("shop", "prize")
			for _, p := range players {
				prizes += r.holds(p, "prize") + r.held(p, "prize")
			}
			if prizes != 4 {
				t.Fatalf("%d prizes, of 4", prizes)
			}
		}
		r.now += 10 * minute
		r.sweep()
		for _, p := range players {
			for _, item := range []string{"coin", "prize", "gem", "key", "sword"} {
				if n := r.held(p, item); n != 0 {
					t.Fatalf("%s has %d of %s held after the last deadline", p, n, item)
				}
			}
		}
		r.now += 25 * 60 * minute
		if r.sweep(); r.records() != 0 {
			t.Fatalf("%d records are left", r.records())
		}
		r.replay()
	})
}

// TestHoldsOfMergedPlayers: what is held of a player who is merged, or forgotten, is given or comes back, once.
func TestHoldsOfMergedPlayers(t *testing.T) {
	for _, how := range []string{"confirm", "cancel"} {
		r := newRealm(t, 1)
		r.put(holds)
		for _, p := range []string{"ann", "bob", "cid"} {
			r.do(grant(p, of("coin", 100)))
		}
		r.want(heldFor("h", false, draw("bob", "shop", 2)), rules.OK, "")
		r.want(heldFor("i", true, draw("bob", "shop", 1)), rules.OK, "")
		r.want(heldFor("j", false, transfer("cid", "bob", of("coin", 7))), rules.OK, "")
		r.want(rules.Command{Kind: rules.KindMerge, Player: "ann", To: "bob"}, rules.OK, "")
		r.wantHas("ann", "coin", 170, 10)
		r.wantHas("ann", "prize", 0, 2)
		for _, id := range []string{"h", "i", "j"} {
			r.ended(id, how)
		}
		if how == "confirm" {
			r.wantHas("ann", "coin", 177, 0)
			r.wantHas("ann", "prize", 3, 0)
		} else {
			r.wantHas("ann", "coin", 180, 0)
			r.wantHas("cid", "coin", 100, 0)
			r.wantHas("ann", "prize", 0, 0)
		}
		r.replay()
	}
}

// TestHoldsOfForgottenPlayers: a Forget cancels what is held of the player. A transfer to the player cannot be confirmed
// any more. Nor can anything of a player who is blocked.
func TestHoldsOfForgottenPlayers(t *testing.T) {
	r := newRealm(t, 1)
	r.put(holds)
	for _, p := range []string{"ann", "bob", "cid"} {
		r.do(grant(p, of("coin", 100)))
	}
	r.want(heldFor("h", false, draw("ann", "shop", 2)), rules.OK, "")
	r.want(heldFor("i", true, draw("ann", "shop", 1)), rules.OK, "")
	r.want(heldFor("j", false, transfer("ann", "bob", of("coin", 7)), transfer("cid", "bob", of("coin", 5))), rules.OK, "")
	r.want(heldFor("k", false, transfer("bob", "ann", of("coin", 3))), rules.OK, "")
	r.want(rules.Command{Kind: rules.KindBlock, Player: "ann", Note: &rules.Note{Reason: "cheats"}}, rules.OK, "")
	r.want(confirm("blocked", "h"), rules.Blocked, "")
	r.want(rules.Command{Kind: rules.KindForget, Player: "ann"}, rules.OK, "")
	if left := r.leftOf("shop", "prize"); left != 4 {
		t.Errorf("%d prizes are left", left)
	}
	r.wantHas("cid", "coin", 100, 0)
	r.wantHas("bob", "coin", 97, 3)
	r.want(confirm("late", "h"), rules.UnknownHold, "")
	r.sweep()
	r.want(confirm("nobody", "k"), rules.UnknownPlayer, "")
	r.now += 10 * minute
	r.sweep()
	r.wantHas("bob", "coin", 100, 0)
	r.want(draw("bob", "shop", 4), rules.OK, "")
	r.replay()
}
