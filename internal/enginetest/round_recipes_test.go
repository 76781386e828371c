package enginetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// roundRecipes make the requests that the recipes of rounds name. pass lets time pass.
func roundRecipes(pass func(time.Duration)) map[string]func(t *testing.T, r *kuji.Realm) {
	ask := func(t *testing.T, r *kuji.Realm, req kuji.Request, want kuji.Status) kuji.Result {
		t.Helper()
		res := do(t, r, req)
		if res.Status != want {
			t.Fatalf("%+v: %v, want %v", req, res, want)
		}
		return res
	}
	give := func(t *testing.T, r *kuji.Realm, item string, n uint64, players ...string) {
		t.Helper()
		for _, p := range players {
			ask(t, r, kuji.Grant{Player: p, Items: []kuji.Stack{{Item: item, Quantity: n}}}, kuji.OK)
		}
	}
	all := func(t *testing.T, r *kuji.Realm, item string, players ...string) (n uint64) {
		t.Helper()
		for _, p := range players {
			n += items(t, r, p)[item]
		}
		return n
	}
	get := func(t *testing.T, r *kuji.Realm, number uint64) kuji.RoundView {
		t.Helper()
		v, err := kuji.RoundsOf(r).Get(t.Context(), number, 0)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return map[string]func(t *testing.T, r *kuji.Realm){
		"giveaway": func(t *testing.T, r *kuji.Realm) {
			ask(t, r, kuji.OpenRound{Round: "giveaway"}, kuji.OK)
			for i := range 5 {
				ask(t, r, kuji.Join{Player: fmt.Sprint("p", i), Round: "giveaway"}, kuji.OK)
			}
			ask(t, r, kuji.Join{Player: "p0", Round: "giveaway"}, kuji.AlreadyJoined)
			won := map[string]bool{}
			res := ask(t, r, kuji.Settle{Round: "giveaway"}, kuji.OK)
			for _, c := range append(res.Claims(), ask(t, r, kuji.Reroll{Round: "giveaway", Number: 1}, kuji.OK).Claims()...) {
				won[c.Player] = true
			}
			if keys := all(t, r, "game-key", "p0", "p1", "p2", "p3", "p4"); len(won) != 4 || keys != 4 {
				t.Errorf("%v have won %d keys, want 4 different players", won, keys)
			}
			pass(24 * time.Hour)
			if res := do(t, r, kuji.Reroll{Round: "giveaway", Number: 1}); res.Status != kuji.RoundClosed && res.Status != kuji.UnknownRound { // perhaps it is forgotten
				t.Errorf("after a day: %v", res)
			}
		},
		"jackpot": func(t *testing.T, r *kuji.Realm) {
			players := []string{"ann", "bob", "cat", "dan"}
			give(t, r, "coin", 100, players...)
			ask(t, r, kuji.OpenRound{Round: "jackpot"}, kuji.OK)
			ask(t, r, kuji.OpenRound{Round: "jackpot"}, kuji.AlreadyOpen)
			for _, p := range players {
				ask(t, r, kuji.Join{Player: p, Round: "jackpot", Tickets: 100}, kuji.OK)
			}
			res := ask(t, r, kuji.Settle{Round: "jackpot"}, kuji.OK)
			for i, want := range []uint64{216, 108, 36} { // of nine tenths of 400
				if got := res.Claims()[i].Items; len(got) != 1 || got[0].Quantity != want {
					t.Errorf("place %d gets %v, want %d", i+1, got, want)
				}
			}
			if n := all(t, r, "coin", players...); n != 360 {
				t.Errorf("all have %d coins", n)
			}
			ask(t, r, kuji.OpenRound{Round: "jackpot"}, kuji.OK)
			ask(t, r, kuji.Join{Player: res.Claims()[0].Player, Round: "jackpot", Tickets: 200}, kuji.OK)
			ask(t, r, kuji.CancelRound{Round: "jackpot"}, kuji.OK)
			if n := all(t, r, "coin", players...); n != 360 {
				t.Errorf("after a round that was cancelled, all have %d coins", n)
			}
		},
		"gamble": func(t *testing.T, r *kuji.Realm) {
			players := []string{"ann", "bob", "cat"}
			give(t, r, "box", 3, players...)
			ask(t, r, kuji.OpenRound{Round: "gamble", Player: "ann", Stake: []kuji.Stack{{Item: "box", Quantity: 2}}}, kuji.OK)
			ask(t, r, kuji.Join{Player: "bob", Round: "gamble"}, kuji.OK)
			ask(t, r, kuji.Join{Player: "cat", Round: "gamble"}, kuji.OK)
			res := ask(t, r, kuji.Settle{Round: "gamble"}, kuji.OK)
			winner, worth := res.Claims()[0].Player, uint64(0)
			for i, c := range res.Claims() {
				if worth += c.Value; i > 0 && c.Value > res.Claims()[i-1].Value {
					t.Errorf("the places are %+v", res.Claims())
				}
			}
			has := items(t, r, winner)
			if len(res.Claims()) != 3 || has["coin"]+250*has["sword"] != worth || all(t, r, "box", players...) != 3 {
				t.Errorf("%s has %v, worth %d, of %+v", winner, has, worth, res.Claims())
			}
			ask(t, r, kuji.OpenRound{Round: "gamble", Player: "ann", Stake: []kuji.Stack{{Item: "box", Quantity: 1}}}, kuji.OK)
			pass(2 * time.Minute)
			ask(t, r, kuji.Join{Player: "bob", Round: "gamble"}, kuji.UnknownRound)
			if v := get(t, r, 2); v.State != "returned" || items(t, r, "ann")["box"] != 1 {
				t.Errorf("alone: %+v, and ann has %v", v, items(t, r, "ann"))
			}
		},
		"duel": func(t *testing.T, r *kuji.Realm) {
			give(t, r, "sword", 1, "ann", "bob")
			stake := []kuji.Stack{{Item: "sword", Quantity: 1}}
			ask(t, r, kuji.OpenRound{Round: "duel", Player: "ann", Stake: stake}, kuji.OK)
			ask(t, r, kuji.Join{Player: "bob", Round: "duel", Stake: stake}, kuji.OK)
			ask(t, r, kuji.Settle{Round: "duel"}, kuji.UnknownRound) // it has settled itself
			v := get(t, r, 1)
			if len(v.Winners) != 1 || items(t, r, v.Winners[0].Player)["sword"] != 2 || all(t, r, "sword", "ann", "bob") != 2 {
				t.Errorf("the duel: %+v", v)
			}
			ask(t, r, kuji.OpenRound{Round: "duel", Player: v.Winners[0].Player, Stake: stake}, kuji.OK)
			pass(time.Minute)
			ask(t, r, kuji.Register{Player: "cat"}, kuji.OK)
			if all(t, r, "sword", "ann", "bob") != 2 {
				t.Error("a stake is gone")
			}
		},
	}
}
