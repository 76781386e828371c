package rules_test

import (
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
)

// party is a catalog with starting grants.
const party = `{kuji: 1, items: {gem: {kind: currency}, coin: {kind: currency}}, start: {gem: 5}, guesses: {per: forever, count: 9},
	pools: {
		free: {pity: {a: {certain: 3}}, entries: [{id: a, weight: 1}]},
		paid: {price: {gem: 1}, entries: [{id: a, weight: 1}]},
		caps: {price: {gem: 1}, redeem: {code: caps, uses: 9}, entries: [{id: a, weight: 1}]}}}`

// TestStartForThoseWhoCome: what brings the starting grants, and what does not, for a player who is
// new and for one whom a transfer has named before. Nothing brings them twice.
func TestStartForThoseWhoCome(t *testing.T) {
	for name, c := range map[string]struct {
		does   rules.Command
		status rules.Status
		gems   uint64 // that bob then has of the starting grants
	}{
		"a draw":                  {draw("bob", "free", 1), rules.OK, 5},
		"a draw they pay for":     {draw("bob", "paid", 2), rules.OK, 3},
		"a draw that fails":       {draw("bob", "paid", 6), rules.InsufficientItems, 0},
		"a grant":                 {grant("bob", of("coin", 1)), rules.OK, 5},
		"a register":              {register("bob"), rules.OK, 5},
		"a code":                  {redeem("bob", "cap"), rules.OK, 5},
		"a guess":                 {redeem("bob", "nosuch"), rules.UnknownCode, 0},
		"a track":                 {setTrack("bob", "free/a", 2, "ops", "a fault"), rules.OK, 0},
		"a transfer to them":      {transfer("ann", "bob", of("coin", 1)), rules.OK, 0},
		"a transfer by them":      {transfer("bob", "ann", of("gem", 1)), rules.InsufficientItems, 0},
		"a consumption":           {consume("bob", of("gem", 1)), rules.InsufficientItems, 0},
		"a group they receive in": {group(draw("ann", "free", 1), transfer("ann", "bob", of("coin", 1))), rules.OK, 0},
		"a group they come in":    {group(transfer("ann", "bob", of("coin", 1)), draw("bob", "paid", 1), register("bob"), grant("bob", of("coin", 1))), rules.OK, 4},
		"a group spends at once":  {group(register("bob"), consume("bob", of("gem", 5))), rules.OK, 0},
		"a group that fails":      {group(register("bob"), consume("bob", of("gem", 6))), rules.InsufficientItems, 0},
	} {
		for _, before := range []bool{false, true} {
			r := newRealm(t, 1)
			r.put(party)
			r.codes("caps", "cap")
			r.want(grant("ann", of("coin", 9)), rules.OK, "")
			if before {
				r.want(transfer("ann", "bob", of("coin", 1)), rules.OK, "")
			}
			ev := r.do(c.does)
			if got := rules.Status(ev.Status); got != c.status || r.holds("bob", "gem") != c.gems {
				t.Errorf("%s (named before: %v) ends %v, and bob has %d gems; want %v and %d", name, before, got, r.holds("bob", "gem"), c.status, c.gems)
			}
			had := r.holds("bob", "gem")
			came := c.status == rules.OK && (c.gems > 0 || name == "a group spends at once")
			for range 2 {
				if r.want(register("bob"), rules.OK, ""); !came {
					had, came = had+5, true
				}
				r.want(grant("bob", of("coin", 1)), rules.OK, "")
				if got := r.holds("bob", "gem"); got != had {
					t.Errorf("%s (named before: %v): once registered bob has %d gems, want %d", name, before, got, had)
				}
			}
			r.replay()
		}
	}
}

// TestEscrow: an account that only receives items and passes them on never has starting grants to
// take away from it.
func TestEscrow(t *testing.T) {
	r := newRealm(t, 1)
	r.put(party)
	r.want(register("ann"), rules.OK, "")
	r.want(register("bob"), rules.OK, "")
	for range 4 {
		r.want(transfer("ann", "escrow", of("gem", 2)), rules.OK, "")
		r.want(transfer("escrow", "bob", of("gem", 3)), rules.InsufficientItems, "gem")
		r.want(group(transfer("escrow", "bob", of("gem", 1)), consume("escrow", of("gem", 1))), rules.OK, "")
		r.want(transfer("bob", "ann", of("gem", 1)), rules.OK, "")
		r.want(grant("ann", of("gem", 1)), rules.OK, "")
	}
	if n := r.holds("escrow", "gem"); n != 0 {
		t.Errorf("the escrow account holds %d gems, want 0", n)
	}
}

// TestStartOfLaterCatalogs: who comes gets what the catalog in force gives; who has come, nothing
// more. Before any catalog has starting grants nobody waits for them.
func TestStartOfLaterCatalogs(t *testing.T) {
	const none = `{kuji: 1, items: {gem: {kind: currency}, coin: {}}, pools: {free: {entries: [{id: a, weight: 1}]}}}`
	const some = `{kuji: 1, items: {gem: {kind: currency}, coin: {}}, start: {gem: 7, coin: 2}, pools: {free: {entries: [{id: a, weight: 1}]}}}`
	r := newRealm(t, 1)
	if err := r.rules.Resolve(&rules.Command{Kind: rules.KindRegister, Player: "ann"}); err == nil {
		t.Error("a register before there is a catalog is not refused")
	}
	r.put(none)
	r.want(grant("ann", of("gem", 9)), rules.OK, "")
	r.want(transfer("ann", "early", of("gem", 1)), rules.OK, "")
	r.put(some)
	r.want(transfer("ann", "bob", of("gem", 1)), rules.OK, "")
	r.want(transfer("ann", "cat", of("gem", 1)), rules.OK, "")
	r.put(none)
	r.want(draw("bob", "free", 1), rules.OK, "") // comes, and there is nothing to get
	r.want(transfer("ann", "dan", of("gem", 1)), rules.OK, "")
	r.put(some)
	for player, want := range map[string]uint64{"ann": 5, "early": 1, "bob": 1, "cat": 8, "dan": 8, "eve": 7} {
		r.want(register(player), rules.OK, "")
		if got := r.holds(player, "gem"); got != want {
			t.Errorf("%s holds %d gems, want %d", player, got, want)
		}
	}
	r.replay()
}

// TestStartMustFit: who waits may hold so much already that the starting grants do not fit.
func TestStartMustFit(t *testing.T) {
	r := newRealm(t, 1)
	r.put(party)
	r.want(grant("ann", of("gem", rules.MaxQuantity-5)), rules.OK, "")
	r.want(transfer("ann", "bob", of("gem", rules.MaxQuantity-4)), rules.OK, "")
	for _, cmd := range []rules.Command{register("bob"), draw("bob", "free", 1), grant("bob", of("coin", 1)), redeem("bob", "cap")} {
		if cmd.Kind == rules.KindRedeem {
			r.codes("caps", "cap")
		}
		r.want(cmd, rules.BalanceOverflow, "gem")
	}
	r.want(group(consume("bob", of("gem", 1)), register("bob")), rules.OK, "")
	if n := r.holds("bob", "gem"); n != rules.MaxQuantity {
		t.Errorf("bob holds %d gems, want %d", n, uint64(rules.MaxQuantity))
	}
	r.replay()
}
