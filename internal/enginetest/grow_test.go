package enginetest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/verify"
)

const growCatalog = `
kuji: 1
items: {energy: {grows: {every: %s, by: %d, to: %d}}, coin: {}}
pools:
  run: {price: {energy: 5}, entries: [{id: coin, weight: 1, reward: {items: {coin: 1}}}]}
  rich: {when: {holds: {energy: 50}}, entries: [{id: coin, weight: 1, reward: {items: {coin: 1}}}]}
`

// growing is an item that grows, walked second by second.
type growing struct {
	n, every, by, to int
	since            int // seconds of the interval that are over
}

func (g *growing) pass(seconds int) {
	for range seconds {
		if g.n >= g.to || g.every == 0 {
			g.since = 0
			continue
		}
		if g.since++; g.since == g.every {
			g.n, g.since = min(g.n+g.by, g.to), 0
		}
	}
}

func (g *growing) change(by int) {
	full := g.n >= g.to
	if g.n += by; full {
		g.since = 0
	}
}

// TestEnergy: after any commands at any times, through changed catalogs, a clock that is set back and a restart, what
// has grown is what walking through the seconds gives.
func TestEnergy(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	dir := t.TempDir()
	e, r := openDir(t, dir, now)
	model := map[string]*growing{}
	rate := growing{every: 300, by: 1, to: 100}
	apply := func() {
		t.Helper()
		if _, err := r.Apply(t.Context(), parse(t, fmt.Sprintf(growCatalog, fmt.Sprintf("%ds", rate.every), rate.by, rate.to))); err != nil {
			t.Fatal(err)
		}
		for _, g := range model {
			g.every, g.by, g.to, g.since = rate.every, rate.by, rate.to, 0
		}
	}
	apply()
	for i := range 3000 {
		seconds := rnd.IntN(2000)
		now.Add(time.Duration(seconds) * time.Second)
		for _, g := range model {
			g.pass(seconds)
		}
		player := fmt.Sprint("p", rnd.IntN(4))
		g := model[player]
		if g == nil {
			do(t, r, kuji.Register{Player: player})
			g = &growing{every: rate.every, by: rate.by, to: rate.to}
			model[player] = g
		}
		switch n := rnd.IntN(20); {
		case n < 8:
			count := 1 + rnd.IntN(3)
			res := do(t, r, kuji.Draw{Player: player, Pool: "run", Count: count})
			if want := g.n >= 5*count; (res.Status == kuji.OK) != want {
				t.Fatalf("step %d: %d runs with %d: %v", i, count, g.n, res)
			} else if want {
				g.change(-5 * count)
			}
		case n < 11:
			gift := 1 + rnd.IntN(30)
			do(t, r, kuji.Grant{Player: player, Items: []kuji.Stack{{Item: "energy", Quantity: uint64(gift)}}})
			g.change(gift)
		case n < 13:
			if res := do(t, r, kuji.Draw{Player: player, Pool: "rich"}); (res.Status == kuji.OK) != (g.n >= 50) {
				t.Fatalf("step %d: a condition with %d: %v", i, g.n, res)
			}
		case n < 14:
			g.atomic(t, r, player)
		case n < 15 && rnd.IntN(10) == 0:
			rate = growing{every: 60 + rnd.IntN(600), by: 1 + rnd.IntN(3), to: 20 + rnd.IntN(200)}
			apply()
		case n < 16 && rnd.IntN(20) == 0:
			do(t, r, kuji.Register{Player: player}) // the log says that it is so late
			now.Add(-time.Duration(rnd.IntN(3600)) * time.Second)
			if _, err := r.SetClock(t.Context(), now.Now(), "ops", "wrong"); err != nil {
				t.Fatal(err)
			}
		case n < 17 && rnd.IntN(20) == 0:
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e, r = openDir(t, dir, now)
		}
		got, err := r.Balance(t.Context(), player, "energy")
		if err != nil || got != uint64(g.n) {
			t.Fatalf("step %d: %s has %d, want %d: %v", i, player, got, g.n, err)
		}
		v, err := r.Player(t.Context(), player)
		if err != nil {
			t.Fatal(err)
		}
		var want []kuji.Growing
		if g.n < g.to {
			next := now.Now().Add(time.Duration(g.every-g.since) * time.Second)
			full := next.Add(time.Duration(((g.to-g.n+g.by-1)/g.by-1)*g.every) * time.Second)
			want = []kuji.Growing{{Item: "energy", Next: next.UnixMilli(), Full: full.UnixMilli()}}
		}
		if !reflect.DeepEqual(v.Grows, want) {
			t.Fatalf("step %d: %s grows %+v, want %+v", i, player, v.Grows, want)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Dir(dir, "test", verify.Options{}); err != nil {
		t.Error(err)
	}
}

// atomic spends and gains in one group.
func (g *growing) atomic(t *testing.T, r *kuji.Realm, player string) {
	t.Helper()
	energy := []kuji.Stack{{Item: "energy", Quantity: 7}}
	res := do(t, r, kuji.Atomic{Members: []kuji.Request{
		kuji.Consume{Player: player, Items: energy}, kuji.Grant{Player: player, Items: energy}, kuji.Consume{Player: player, Items: energy},
	}})
	if (res.Status == kuji.OK) != (g.n >= 7) {
		t.Fatalf("a group with %d: %v", g.n, res)
	}
	if res.Status == kuji.OK {
		g.change(-7)
		g.change(7)
		g.change(-7)
	}
}

// openDir opens a realm in a directory, with a clock that shows *now.
func openDir(t *testing.T, dir string, now *hand) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	e, err := kuji.Open(dir, kuji.Options{Now: now.Now, Sync: kuji.SyncNone})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	return e, r
}

// TestGrowsForAll: who was there before an item grew has grown since then; who comes later, since then; and
// nothing grows beyond what a catalog says any more.
func TestGrowsForAll(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	s := drivertest.NewShared(drivertest.SharedOptions{})
	_, r := openAt(t, s, 1, kuji.Options{Now: now.Now})
	put := func(yaml string) {
		t.Helper()
		if _, err := r.Apply(t.Context(), parse(t, yaml)); err != nil {
			t.Fatal(err)
		}
	}
	has := func(player string, want uint64) {
		t.Helper()
		if got, err := r.Balance(t.Context(), player, "energy"); err != nil || got != want {
			t.Errorf("%s has %d, want %d: %v", player, got, want, err)
		}
	}
	put("kuji: 1\nitems: {energy: {}}\n")
	do(t, r, kuji.Register{Player: "ann"})
	now.Add(time.Hour)
	put("kuji: 1\nitems: {energy: {grows: {every: 1m, to: 100}}}\nstart: {energy: 3}\n")
	now.Add(10 * time.Minute)
	has("ann", 10)
	do(t, r, kuji.Register{Player: "bob"})
	now.Add(10 * time.Minute)
	has("ann", 20)
	has("bob", 13)
	put("kuji: 1\nitems: {energy: {}}\n")
	now.Add(time.Hour)
	has("ann", 20)
	do(t, r, kuji.Register{Player: "cid"}) // when it grows no more: what has grown before is not for cid
	do(t, r, kuji.Transfer{From: "ann", To: "dan", Items: []kuji.Stack{{Item: "energy", Quantity: 1}}})
	has("cid", 0)
	has("dan", 1)
	put("kuji: 1\nitems: {energy: {grows: {every: 1h, by: 7, to: 22}}}\n")
	now.Add(time.Hour)
	has("ann", 22)
	has("bob", 20)
	has("cid", 7)
	has("dan", 8)
	do(t, r, kuji.Transfer{From: "ann", To: "bob", Items: []kuji.Stack{{Item: "energy", Quantity: 22}}})
	has("ann", 0)
	has("bob", 42)
}

// TestGrowIsNotGiven: what has grown by itself is in no outcome, in nothing that is collected or claimed, only in
// the changes.
func TestGrowIsNotGiven(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, `
kuji: 1
items: {energy: {grows: {every: 1m, to: 50}, most: 60, beyond: mail}}
pools: {p: {entries: [{id: e, weight: 1, reward: {items: {energy: 5}}}]}}
counters: {wins: {}}
quests: {q: {claim: automatic, needs: {wins: 1}, reward: {items: {energy: 7}}}}
`)
	do(t, r, kuji.Register{Player: "ann"})
	later := func() { now.Add(3 * time.Minute) }
	later()
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "p"}); !reflect.DeepEqual(res.Outcomes[0].Items, stacksOf("5 energy")) {
		t.Errorf("a draw gave %v, want 5 energy", res.Outcomes)
	}
	later()
	if res := do(t, r, kuji.Progress{Player: "ann", Event: "wins"}); len(res.Claims()) != 1 || !reflect.DeepEqual(res.Claims()[0].Items, stacksOf("7 energy")) {
		t.Errorf("a quest gave %v, want 7 energy", res.Claims())
	}
	do(t, r, kuji.Grant{Player: "ann", Items: stacksOf("50 energy")})
	do(t, r, kuji.Consume{Player: "ann", Items: stacksOf("59 energy")})
	later()
	if res := do(t, r, kuji.Collect{Player: "ann"}); !reflect.DeepEqual(res.Collected(), stacksOf("8 energy")) {
		t.Errorf("collected %v, want 8 energy", res.Collected())
	}
	var deltas []int64
	records, err := through(t.Context(), r, 1, r.Stats().LastEvent)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		for _, c := range rec.Changes {
			deltas = append(deltas, c.Delta)
		}
	}
	if want := []int64{3 + 5, 3 + 7, 42, -59, 3 + 8}; !reflect.DeepEqual(deltas, want) {
		t.Errorf("changes %v, want %v", deltas, want)
	}
}
