package enginetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// holdRecipes make the requests that the recipes of holds name. pass lets time pass.
func holdRecipes(pass func(time.Duration)) map[string]func(t *testing.T, r *kuji.Realm) {
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
	return map[string]func(t *testing.T, r *kuji.Realm){
		"checkout": func(t *testing.T, r *kuji.Realm) {
			give(t, r, "coin", 30, "ann", "bob")
			cart := kuji.Holding{For: 15 * time.Minute, Refund: true}
			for i, end := range []kuji.Request{nil, kuji.Cancel{ID: "left", Hold: "cart-1"}, kuji.Confirm{ID: "paid", Hold: "cart-2"}} {
				ask(t, r, kuji.Draw{ID: fmt.Sprint("cart-", i), Player: "ann", Pool: "shirts", Hold: cart}, kuji.OK)
				ask(t, r, kuji.Draw{ID: fmt.Sprint("late-", i), Player: "bob", Pool: "shirts", Hold: cart}, kuji.SoldOut)
				ask(t, r, kuji.Consume{Player: "ann", Items: []kuji.Stack{{Item: "coin", Quantity: 20}}}, kuji.InsufficientItems)
				if end == nil {
					pass(15 * time.Minute)
					continue
				}
				ask(t, r, end, kuji.OK)
			}
			late := ask(t, r, kuji.Cancel{ID: "late", Hold: "cart-2"}, kuji.HoldEnded)
			if has := items(t, r, "ann"); has["shirt"] != 1 || has["coin"] != 10 || late.Hold().By != "paid" {
				t.Errorf("ann has %v, and the hold ended by %q", has, late.Hold().By)
			}
		},
		"prize": func(t *testing.T, r *kuji.Realm) {
			if _, err := r.Codes().Import(t.Context(), "vouchers", []string{"V-1"}); err != nil {
				t.Fatal(err)
			}
			give(t, r, "ticket", 100, "ann", "bob")
			won := func(player, id string) {
				for i := range 100 {
					hold := fmt.Sprint(id, i)
					if res := ask(t, r, kuji.Draw{ID: hold, Player: player, Pool: "prizes", Hold: kuji.Holding{For: 72 * time.Hour}}, kuji.OK); res.Outcomes[0].Entry == "voucher" {
						if res.Outcomes[0].Codes != nil || items(t, r, player)["voucher"] != 0 {
							t.Errorf("%s has the voucher before anybody has confirmed it: %+v", player, res)
						}
						ask(t, r, map[string]kuji.Request{"ann": kuji.Cancel{Hold: hold}, "bob": kuji.Confirm{Hold: hold}}[player], kuji.OK)
						return
					}
					ask(t, r, kuji.Confirm{Hold: hold}, kuji.OK)
				}
				t.Fatalf("%s has won no voucher in 100 draws", player)
			}
			won("ann", "a")
			won("bob", "b")
			if ann, bob := items(t, r, "ann")["voucher"], items(t, r, "bob")["voucher"]; ann != 0 || bob != 1 {
				t.Errorf("ann has %d vouchers and bob %d", ann, bob)
			}
		},
	}
}
