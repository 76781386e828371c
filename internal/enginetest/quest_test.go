package enginetest

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/drivertest"
)

const questCatalog = `
kuji: 1
zone: America/New_York
items: {gold: {kind: currency}, ore: {}, gem: {}, licence: {}, box: {}, medal: {}}
pools:
  sell-ore: {price: {ore: 1}, entries: [{id: coins, weight: 1, reward: {items: {gold: 2}}}]}
  sell-gem: {price: {gem: 1}, entries: [{id: coins, weight: 1, reward: {items: {gold: 9}}}]}
  daily: {limits: [{per: day, draws: 1}], entries: [{id: e, weight: 1, reward: {items: {gold: 1}}}]}
  rare-chest: {internal: true, entries: [{id: medal, weight: 1, reward: {items: {medal: 1}}}]}
  late: {when: {counters: {sold: 2}}, entries: [{id: e, weight: 1}]}
  shy: {when: {counters: {wins: {max: 2}}}, entries: [{id: e, weight: 1}]}
  lucky:
    entries:
      - {id: never, weight: 0, luck: {counter: wins, weights: [{from: 3, weight: 1000000000000000000}]}, reward: {items: {gem: 1}}}
      - {id: always, weight: 1}
counters:
  wins: {}
  best: {of: {progress: wins}, highest: true}
  sold: {of: {draws: [sell-ore, sell-gem]}, per: week}
  spent: {of: {spends: gem}, per: day}
  earned: {of: {gains: gold}, most: {per: day, count: 10}}
  eaten: {of: {consumes: ore}}
  coins: {of: {entries: [sell-ore/coins, sell-gem/coins]}}
  visits: {of: {draws: daily}, streak: {per: day, forgive: 1}}
  bosses: {of: {progress: boss}, distinct: 3}
  raid: {for: realm, of: {progress: damage}}
quests:
  salesman: {needs: {sold: 3}, when: {holds: {licence: 1}}, reward: {items: {gold: 800}}}
  hunter:
    tiers:
      - {needs: {bosses: 1}, reward: {items: {gold: 100}}}
      - {needs: {bosses: 3}, reward: {pool: rare-chest}}
  winner: {claim: automatic, needs: {wins: 5}, reward: {items: {gem: 5}}}
  after: {claim: automatic, needs: {wins: 1}, when: {quests: {winner: 1}}, reward: {pool: rare-chest}}
  giant: {claim: automatic, needs: {raid: 1000}, reward: {items: {box: 1}}}
`

// counts returns where counters stand.
func counts(t *testing.T, r *kuji.Realm, player string) map[string]uint64 {
	t.Helper()
	v, err := r.Goals(t.Context(), player)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]uint64{}
	for _, c := range v.Counters {
		by[c.ID] = c.Value
	}
	return by
}

func questOf(t *testing.T, r *kuji.Realm, player, id string) kuji.QuestView {
	t.Helper()
	v, err := r.Goals(t.Context(), player)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range v.Quests {
		if q.ID == id {
			return q
		}
	}
	t.Fatalf("no quest %s", id)
	return kuji.QuestView{}
}

// TestCounters: every kind of fact moves the counters that count it, in each of their forms.
func TestCounters(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, questCatalog)
	do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "ore", Quantity: 5}, {Item: "gem", Quantity: 2}, {Item: "gold", Quantity: 3}}})
	do(t, r, kuji.Draw{Player: "ann", Pool: "sell-ore", Count: 2})
	do(t, r, kuji.Draw{Player: "ann", Pool: "sell-gem"})
	do(t, r, kuji.Consume{Player: "ann", Items: []kuji.Stack{{Item: "ore", Quantity: 2}}})
	do(t, r, kuji.Transfer{From: "ann", To: "bob", Items: []kuji.Stack{{Item: "gold", Quantity: 3}}})
	for i, key := range []string{"a", "b", "a", "c", "d"} {
		do(t, r, kuji.Progress{Player: "ann", Event: "boss", Key: key, N: uint64(i + 1)})
	}
	for _, n := range []uint64{2, 7, 1} {
		do(t, r, kuji.Progress{Player: "ann", Event: "wins", N: n})
	}
	do(t, r, kuji.Progress{Player: "ann", Event: "damage", N: 40})
	do(t, r, kuji.Progress{Player: "bob", Event: "damage", N: 2})
	do(t, r, kuji.Draw{Player: "ann", Pool: "daily"})
	want := map[string]uint64{"wins": 10, "best": 7, "sold": 3, "spent": 1, "earned": 10, "eaten": 2, "coins": 3, "visits": 1, "bosses": 3, "raid": 42}
	if got := counts(t, r, "ann"); !reflect.DeepEqual(got, want) {
		t.Errorf("ann has %v, want %v", got, want)
	}
	if got, want := counts(t, r, "bob"), (map[string]uint64{"raid": 42}); !reflect.DeepEqual(got, want) {
		t.Errorf("bob has %v, want %v", got, want)
	}
	now.Add(24 * time.Hour)
	do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "gold", Quantity: 4}}})
	do(t, r, kuji.Draw{Player: "ann", Pool: "daily"})
	delete(want, "spent")
	want["visits"], want["earned"] = 2, 15
	if got := counts(t, r, "ann"); !reflect.DeepEqual(got, want) {
		t.Errorf("a day later ann has %v, want %v", got, want)
	}
	now.Add(48 * time.Hour) // one day is missed, and forgiven
	do(t, r, kuji.Draw{Player: "ann", Pool: "daily"})
	if got := counts(t, r, "ann")["visits"]; got != 3 {
		t.Errorf("after a day that is forgiven, a streak of %d, want 3", got)
	}
	now.Add(48 * time.Hour)
	if got := counts(t, r, "ann")["visits"]; got != 0 {
		t.Errorf("after another one, a streak of %d, want 0", got)
	}
	do(t, r, kuji.Draw{Player: "ann", Pool: "daily"})
	if got := counts(t, r, "ann")["visits"]; got != 1 {
		t.Errorf("it begins again at %d, want 1", got)
	}
	if got := counts(t, r, "ann")["sold"]; got != 0 {
		t.Errorf("in the next week %d are sold, want 0", got)
	}
}

// TestCountersDecide: conditions and luck see counters, in the same group too, as far as they are certain there.
func TestCountersDecide(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, questCatalog)
	do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "ore", Quantity: 9}}})
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "late"}); res.Status != kuji.NotEligible {
		t.Errorf("before anything is sold: %v", res)
	}
	group := func(n int) kuji.Result {
		return do(t, r, kuji.Atomic{Members: []kuji.Request{kuji.Draw{Player: "ann", Pool: "sell-ore", Count: n}, kuji.Draw{Player: "ann", Pool: "late"}}})
	}
	if res := group(1); res.Status != kuji.NotEligible || counts(t, r, "ann")["sold"] != 0 {
		t.Errorf("after one is sold in the group: %v, %v", res, counts(t, r, "ann"))
	}
	if res := group(2); res.Status != kuji.OK || counts(t, r, "ann")["sold"] != 2 {
		t.Errorf("after two are sold in the group: %v", res)
	}
	luck := do(t, r, kuji.Atomic{Members: []kuji.Request{
		kuji.Draw{Player: "ann", Pool: "lucky"}, kuji.Progress{Player: "ann", Event: "wins", N: 3}, kuji.Draw{Player: "ann", Pool: "lucky"},
	}})
	if luck.Status != kuji.OK || luck.Members[0].Outcomes[0].Entry != "always" || luck.Members[2].Outcomes[0].Entry != "never" {
		t.Errorf("luck by a counter: %+v", luck)
	}
	if res := do(t, r, kuji.Draw{Player: "ann", Pool: "shy"}); res.Status != kuji.NotEligible {
		t.Errorf("above the most: %v", res)
	}
}

// TestQuests: tiers are claimed in order, once, by the player or by the event that reaches them.
func TestQuests(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, questCatalog)
	claim := func(quest string, tiers int) kuji.Result {
		return do(t, r, kuji.Claim{Player: "ann", Quest: quest, Tiers: tiers})
	}
	if res := claim("hunter", 0); res.Status != kuji.NotReached || res.Subject != "hunter" {
		t.Errorf("before anything: %v", res)
	}
	for _, key := range []string{"a", "b"} {
		do(t, r, kuji.Progress{Player: "ann", Event: "boss", Key: key})
	}
	if q := questOf(t, r, "ann", "hunter"); q.Claimable != 1 || q.Claimed != 0 || q.Tiers != 2 || len(q.Needs) != 1 || q.Needs[0].Value != 2 || q.Needs[0].Min != 3 {
		t.Errorf("two of three: %+v", q)
	}
	if res := claim("hunter", 2); res.Status != kuji.NotReached {
		t.Errorf("two tiers at once: %v", res)
	}
	do(t, r, kuji.Progress{Player: "ann", Event: "boss", Key: "c"})
	want := []kuji.Claimed{
		{Quest: "hunter", Tier: 1, Items: []kuji.Stack{{Item: "gold", Quantity: 100}}},
		{Quest: "hunter", Tier: 2, Items: []kuji.Stack{{Item: "medal", Quantity: 1}}, Via: []string{"rare-chest/medal"}},
	}
	if res := claim("hunter", 0); res.Status != kuji.OK || !reflect.DeepEqual(res.Claims(), want) {
		t.Errorf("claimed %+v, want %+v", res, want)
	}
	if res := claim("hunter", 0); res.Status != kuji.AlreadyClaimed || res.Subject != "hunter" {
		t.Errorf("a second time: %v", res)
	}
	do(t, r, kuji.Progress{Player: "ann", Event: "wins", N: 4})
	won := do(t, r, kuji.Progress{ID: "won", Player: "ann", Event: "wins"})
	want = []kuji.Claimed{
		{Quest: "winner", Tier: 1, Items: []kuji.Stack{{Item: "gem", Quantity: 5}}},
		{Quest: "after", Tier: 1, Items: []kuji.Stack{{Item: "medal", Quantity: 1}}, Via: []string{"rare-chest/medal"}},
	}
	if !reflect.DeepEqual(won.Claims(), want) {
		t.Errorf("by itself %+v, want %+v", won.Claims(), want)
	}
	if again := do(t, r, kuji.Progress{ID: "won", Player: "ann", Event: "wins"}); !again.Replayed || !reflect.DeepEqual(again.Claims(), want) {
		t.Errorf("the same id again: %+v", again)
	}
	group := do(t, r, kuji.Atomic{Members: []kuji.Request{
		kuji.Progress{Player: "bob", Event: "boss", Key: "x"}, kuji.Claim{Player: "bob", Quest: "hunter", Tiers: 1},
		kuji.Progress{Player: "cid", Event: "damage", N: 1000}, kuji.Progress{Player: "bob", Event: "wins", N: 5},
	}})
	want = []kuji.Claimed{
		{Quest: "giant", Tier: 1, Player: "cid", Items: []kuji.Stack{{Item: "box", Quantity: 1}}},
		{Quest: "winner", Tier: 1, Player: "bob", Items: []kuji.Stack{{Item: "gem", Quantity: 5}}},
		{Quest: "after", Tier: 1, Player: "bob", Items: []kuji.Stack{{Item: "medal", Quantity: 1}}, Via: []string{"rare-chest/medal"}},
	}
	if group.Status != kuji.OK || len(group.Members[1].Claims()) != 1 || !reflect.DeepEqual(group.Claims(), want) {
		t.Errorf("in a group: %+v, want %+v", group, want)
	}
}

// TestWeeklyClaim: of 50 concurrent claims one is paid. After Monday 00:00, with the realm closed over midnight,
// the next one is.
func TestWeeklyClaim(t *testing.T) {
	now := handAt(time.Date(2026, 3, 8, 22, 0, 0, 0, time.UTC)) // Sunday evening in New York; clocks change on this day
	s := drivertest.NewShared(drivertest.SharedOptions{})
	open := func() (*kuji.Engine, *kuji.Realm) {
		return openAt(t, s, 1, kuji.Options{Now: now.Now})
	}
	e, r := open()
	if _, err := r.Apply(t.Context(), parse(t, questCatalog)); err != nil {
		t.Fatal(err)
	}
	sell := func() {
		do(t, r, kuji.Grant{Player: "ann", Items: []kuji.Stack{{Item: "ore", Quantity: 3}, {Item: "licence", Quantity: 1}}})
		do(t, r, kuji.Draw{Player: "ann", Pool: "sell-ore", Count: 3})
	}
	round := 0
	claims := func() (paid int) {
		round++
		var wait sync.WaitGroup
		var mu sync.Mutex
		for i := range 50 {
			wait.Go(func() {
				res, err := r.Do(t.Context(), kuji.Claim{ID: fmt.Sprint(round, "-", i), Player: "ann", Quest: "salesman"})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if res.Status == kuji.OK {
					paid++
				}
			})
		}
		wait.Wait()
		return paid
	}
	sell()
	if n := claims(); n != 1 {
		t.Errorf("%d of 50 claims are paid", n)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	now.Add(24 * time.Hour)
	_, r = open()
	if n := claims(); n != 0 {
		t.Errorf("%d claims are paid with nothing sold this week", n)
	}
	sell()
	if n := claims(); n != 1 {
		t.Errorf("%d of 50 claims are paid in the next week", n)
	}
	if got, err := r.Balance(t.Context(), "ann", "gold"); err != nil || got != 2*(3*2+800) {
		t.Errorf("ann has %d gold: %v", got, err)
	}
}

// TestSetCounter: what is set by hand counts, with who and why in the log.
func TestSetCounter(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, questCatalog)
	set := func(player, counter string, v uint64) (kuji.Result, error) {
		return r.Do(t.Context(), kuji.SetCounter{Player: player, Counter: counter, Value: v, Note: kuji.Note{By: "ops", Reason: "ticket 1"}})
	}
	for counter, v := range map[string]uint64{"wins": 4, "sold": 7, "visits": 9, "best": 1, "bosses": 0} {
		if res, err := set("ann", counter, v); err != nil || res.Status != kuji.OK || counts(t, r, "ann")[counter] != v {
			t.Errorf("%s set to %d: %v, %v: %v", counter, v, res, err, counts(t, r, "ann"))
		}
	}
	if res, err := set("", "raid", 999); err != nil || res.Status != kuji.OK || counts(t, r, "bob")["raid"] != 999 {
		t.Errorf("the realm's: %v, %v", res, err)
	}
	for _, bad := range []struct {
		player, counter string
		v               uint64
	}{{"", "wins", 1}, {"ann", "raid", 1}, {"ann", "bosses", 1}, {"ann", "none", 1}, {"ann", "wins", 1 << 53}} {
		if res, err := set(bad.player, bad.counter, bad.v); err == nil {
			t.Errorf("%+v: %v", bad, res)
		}
	}
	now.Add(24 * time.Hour)
	do(t, r, kuji.Draw{Player: "ann", Pool: "daily"})
	if got := counts(t, r, "ann")["visits"]; got != 10 {
		t.Errorf("a streak that was set goes on to %d, want 10", got)
	}
}

// realmAt returns a realm in memory with a catalog, whose clock shows *now.
func realmAt(t *testing.T, now *hand, catalog string) *kuji.Realm {
	t.Helper()
	_, r := openAt(t, drivertest.NewShared(drivertest.SharedOptions{}), 1, kuji.Options{Now: now.Now})
	if _, err := r.Apply(t.Context(), parse(t, catalog)); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCertainFacts: a later member of a group sees what earlier ones gain, consume, pay, draw and report for sure.
func TestCertainFacts(t *testing.T) {
	gold := []kuji.Stack{{Item: "gold", Quantity: 2}}
	for fact, first := range map[string]kuji.Request{
		"gains": kuji.Grant{Player: "ann", Items: gold}, "consumes": kuji.Consume{Player: "ann", Items: gold},
		"spends": kuji.Draw{Player: "ann", Pool: "shop"}, "draws": kuji.Draw{Player: "ann", Pool: "shop"}, "progress": kuji.Progress{Player: "ann", Event: "gold", N: 2},
	} {
		of, min := "gold", 2
		if fact == "draws" {
			of, min = "shop", 1
		}
		r := realmAt(t, handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)), fmt.Sprintf(`
kuji: 1
items: {gold: {}}
start: {gold: 9}
counters: {seen: {of: {%s: %s}}}
pools:
  shop: {price: {gold: 2}, entries: [{id: a, weight: 1}]}
  gate: {when: {counters: {seen: %d}}, entries: [{id: a, weight: 1}]}
`, fact, of, min))
		do(t, r, kuji.Register{Player: "ann"})
		do(t, r, kuji.SetCounter{Player: "ann", Counter: "seen", Note: kuji.Note{Reason: "what the player began with"}})
		gate := kuji.Draw{Player: "ann", Pool: "gate"}
		if res := do(t, r, kuji.Atomic{Members: []kuji.Request{gate, first}}); res.Status == kuji.OK {
			t.Errorf("%s: the gate is open before it", fact)
		}
		if res := do(t, r, kuji.Atomic{Members: []kuji.Request{first, gate}}); res.Status != kuji.OK {
			t.Errorf("%s: a later member does not see it: %v", fact, res)
		}
		if res := do(t, r, gate); res.Status != kuji.OK {
			t.Errorf("%s: the next command does not see it: %v", fact, res)
		}
	}
}

// TestPoolsByCounters: what a pool shows to nobody in particular has every counter at 0.
func TestPoolsByCounters(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, questCatalog)
	do(t, r, kuji.Progress{Player: "ann", Event: "wins", N: 9})
	if v, err := r.Pool(t.Context(), "lucky"); err != nil || v.Entries[0].Weight != 0 || v.Entries[1].Weight != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestSubmittedClaims: a callback of Submit is told of quests that claimed themselves, among others that are told
// of none.
func TestSubmittedClaims(t *testing.T) {
	now := handAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, questCatalog)
	var wait sync.WaitGroup
	var mu sync.Mutex
	claimed := map[string]int{}
	for i := range 20 {
		player := fmt.Sprint("p", i%10)
		wait.Add(1)
		r.Submit(kuji.Progress{Player: player, Event: "wins", N: 3}, func(res kuji.Result, err error) {
			defer wait.Done()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			claimed[player] += len(res.Claims())
		})
	}
	wait.Wait()
	for i := range 10 {
		if n := claimed[fmt.Sprint("p", i)]; n != 2 { // winner, and after
			t.Errorf("player %d is told of %d claims, want 2", i, n)
		}
	}
}
