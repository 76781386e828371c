package enginetest

import (
	"maps"
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/drivertest"
)

var recipe = regexp.MustCompile("(?s)```yaml (\\w+)\n(.*?)```")

// TestRecipes: every catalog of the page of recipes is taken, and does what the page says of it.
func TestRecipes(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	monday := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var clock atomic.Int64 // Unix milliseconds; the realm reads it when something falls due
	set := func(to time.Time) { clock.Store(to.UnixMilli()) }
	pass := func(d time.Duration) { clock.Add(d.Milliseconds()) }
	day := func() { pass(24 * time.Hour) }
	give := func(t *testing.T, r *kuji.Realm, item string, n uint64) {
		t.Helper()
		if res := do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: item, Quantity: n}}}); res.Status != kuji.OK {
			t.Fatal(res)
		}
	}
	draw := func(t *testing.T, r *kuji.Realm, pool string, n int, want kuji.Status) kuji.Result {
		t.Helper()
		res := do(t, r, kuji.Draw{Player: "ann", Pool: pool, Count: n})
		if res.Status != want {
			t.Errorf("%d draws from %s: %v, want %v", n, pool, res, want)
		}
		return res
	}
	claim := func(t *testing.T, r *kuji.Realm, quest string, want kuji.Status, tiers int) {
		t.Helper()
		if res := do(t, r, kuji.Claim{Player: "ann", Quest: quest}); res.Status != want || len(res.Claims()) != tiers {
			t.Errorf("claim of %s: %+v, want %v with %d tiers", quest, res, want, tiers)
		}
	}
	progress := func(t *testing.T, r *kuji.Realm, player, event string, n uint64, tiers int) {
		t.Helper()
		if res := do(t, r, kuji.Progress{Player: player, Event: event, N: n}); len(res.Claims()) != tiers {
			t.Errorf("%d of %s pays %+v, want %d tiers", n, event, res.Claims(), tiers)
		}
	}
	has := func(t *testing.T, r *kuji.Realm, item string, want uint64) {
		t.Helper()
		if got := items(t, r, "ann")[item]; got != want {
			t.Errorf("ann has %d of %s, want %d", got, item, want)
		}
	}
	uses := map[string]func(t *testing.T, r *kuji.Realm){
		"shop": func(t *testing.T, r *kuji.Realm) {
			draw(t, r, "buy-potion", 3, kuji.InsufficientItems)
			give(t, r, "coin", 600)
			draw(t, r, "buy-potion", 3, kuji.OK)
			draw(t, r, "buy-potion", 3, kuji.LimitReached)
			draw(t, r, "buy-hat", 1, kuji.OK)
			draw(t, r, "buy-hat", 1, kuji.LimitReached)
			has(t, r, "coin", 40)
		},
		"selling": func(t *testing.T, r *kuji.Realm) {
			give(t, r, "ore", 25)
			draw(t, r, "sell-ore", 2, kuji.OK)
			has(t, r, "coin", 6)
		},
		"recipe": func(t *testing.T, r *kuji.Realm) {
			give(t, r, "ore", 300)
			give(t, r, "coal", 100)
			draw(t, r, "forge-blade", 100, kuji.OK)
			if got := items(t, r, "ann"); got["blade"]+got["slag"] != 100 || got["ore"]+got["coal"] != 0 {
				t.Errorf("forged %v", got)
			}
		},
		"upgrading": func(t *testing.T, r *kuji.Realm) {
			give(t, r, "stone", 50)
			give(t, r, "sword-1", 1)
			for items(t, r, "ann")["sword-2"] == 0 {
				draw(t, r, "upgrade-2", 1, kuji.OK)
			}
		},
		"login": func(t *testing.T, r *kuji.Realm) {
			for d := range 7 {
				progress(t, r, "ann", "login", 1, 1)
				progress(t, r, "ann", "login", 1, 0)
				if day(); d == 3 {
					day()
				}
			}
			has(t, r, "coin", 210)
			has(t, r, "chest", 1)
		},
		"wheel": func(t *testing.T, r *kuji.Realm) {
			draw(t, r, "daily-wheel", 1, kuji.OK)
			if res := draw(t, r, "daily-wheel", 1, kuji.LimitReached); res.Limit.Resets <= clock.Load() {
				t.Errorf("the next turn comes at %d", res.Limit.Resets)
			}
			draw(t, r, "quick-wheel", 1, kuji.OK)
			pass(4 * time.Hour)
			draw(t, r, "quick-wheel", 1, kuji.OK)
		},
		"weekly": func(t *testing.T, r *kuji.Realm) {
			for range 2 {
				give(t, r, "licence", 1)
				give(t, r, "ore", 20)
				draw(t, r, "sell-ore", 19, kuji.OK)
				claim(t, r, "salesman", kuji.NotReached, 0)
				draw(t, r, "sell-ore", 1, kuji.OK)
				claim(t, r, "salesman", kuji.OK, 1)
				claim(t, r, "salesman", kuji.AlreadyClaimed, 0)
				pass(7 * 24 * time.Hour)
			}
			has(t, r, "coin", 2*(60+800))
		},
		"pass": func(t *testing.T, r *kuji.Realm) {
			progress(t, r, "ann", "match", 500, 0)
			claim(t, r, "pass-free", kuji.NotReached, 0) // the season has not begun
			set(time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC))
			progress(t, r, "ann", "match", 350, 0)
			claim(t, r, "pass-paid", kuji.NotReached, 0)
			give(t, r, "spring-pass", 1)
			claim(t, r, "pass-paid", kuji.OK, 2)
			claim(t, r, "pass-free", kuji.OK, 2)
			has(t, r, "coin", 350)
		},
		"advent": func(t *testing.T, r *kuji.Realm) {
			draw(t, r, "door-1", 1, kuji.NotStarted)
			day()
			draw(t, r, "door-1", 1, kuji.OK)
			draw(t, r, "door-1", 1, kuji.LimitReached)
			set(time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC))
			draw(t, r, "door-1", 1, kuji.Ended)
			draw(t, r, "door-24", 1, kuji.OK)
			has(t, r, "star", 2)
		},
		"community": func(t *testing.T, r *kuji.Realm) {
			progress(t, r, "ann", "damage", 10, 0)
			claim(t, r, "raid", kuji.NotReached, 0)
			progress(t, r, "bob", "damage", 990, 0)
			claim(t, r, "raid", kuji.OK, 1)
		},
		"subscription": func(t *testing.T, r *kuji.Realm) {
			draw(t, r, "sub-daily", 1, kuji.NotEligible)
			give(t, r, "sub", 1)
			give(t, r, "sub", 1)
			for range 60 {
				draw(t, r, "sub-daily", 1, kuji.OK)
				draw(t, r, "sub-daily", 1, kuji.LimitReached)
				day()
			}
			draw(t, r, "sub-daily", 1, kuji.NotEligible)
		},
		"mail": func(t *testing.T, r *kuji.Realm) {
			give(t, r, "welcome-letter", 2)
			draw(t, r, "open-welcome-letter", 1, kuji.OK)
			pass(14 * 24 * time.Hour)
			draw(t, r, "open-welcome-letter", 1, kuji.InsufficientItems)
			has(t, r, "coin", 100)
		},
		"energy": func(t *testing.T, r *kuji.Realm) {
			draw(t, r, "run", 20, kuji.OK)
			draw(t, r, "run", 1, kuji.InsufficientItems)
			pass(25 * time.Minute)
			draw(t, r, "run", 1, kuji.OK)
		},
		"leaderboard": func(t *testing.T, r *kuji.Realm) {
			progress(t, r, "ann", "score", 10, 0)
			progress(t, r, "bob", "score", 7, 0)
			pass(7 * 24 * time.Hour)
			for items(t, r, "ann")["gem"] == 0 { // what is due is paid beside other requests
				do(t, r, kuji.Register{Player: "cid"})
			}
			has(t, r, "gem", 50)
		},
	}
	maps.Copy(uses, roundRecipes(pass))
	maps.Copy(uses, holdRecipes(pass))
	for _, m := range recipe.FindAllStringSubmatch(string(page), -1) {
		name, yaml := m[1], m[2]
		t.Run(name, func(t *testing.T) {
			set(monday)
			if uses[name] == nil {
				t.Fatal("nothing uses it")
			}
			_, r := openAt(t, drivertest.NewShared(drivertest.SharedOptions{}), 1, kuji.Options{Now: func() time.Time { return time.UnixMilli(clock.Load()) }})
			if _, err := r.Apply(t.Context(), parse(t, yaml)); err != nil {
				t.Fatal(err)
			}
			uses[name](t, r)
			delete(uses, name)
		})
	}
	for name := range uses {
		t.Errorf("the page has no recipe %q", name)
	}
}
