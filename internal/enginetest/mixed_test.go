package enginetest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/verify"
)

// mixedCatalogs have all that counts, lasts, grows and is bounded, with quests that reach each other. The second one
// means other things by the same ids, and lacks some.
var mixedCatalogs = []string{`
kuji: 1
zone: America/Santiago
day: {begins: 05:00, week: sunday}
seasons: {spring: {starts: 2026-03-01T00:00, ends: 2026-03-20T00:00}, late: {starts: 2026-03-21T00:00, ends: 2026-06-01T00:00}}
items:
  crate: {most: 12, family: box}
  chest: {most: 9, beyond: cut, family: box, lasts: 30m}
  coin: {most: 30, beyond: {mail: 2h}}
  pearl: {most: 5, beyond: {mail: 30m}}
  pass: {lasts: 1h, extend: true}
  ticket: {lasts: 20m}
  energy: {grows: {every: 5m, by: 2, to: 20}, most: 25, beyond: cut}
  ore: {}
  medal: {}
start: {coin: 3, energy: 5, ticket: 1}
counters:
  wins: {}
  day: {of: {progress: wins}, per: day}
  coins: {of: {gains: coin}, most: {per: day, count: 20}}
  spent: {of: {spends: box}, per: week}
  ranked:
    of: {progress: wins, draws: [open, shop]}
    per: day
    ranked: {rewards: [{to: 1, reward: {items: {medal: 1, coin: 4}}}, {to: 3, reward: {items: {pearl: 2, ticket: 1}}}]}
  seas: {of: {progress: wins, gains: coin}, per: season, ranked: {rewards: [{to: 2, reward: {pool: rare}}]}}
  alltime: {of: {gains: [coin, ore]}, ranked: true}
  streak: {of: {draws: [open, shop]}, streak: {per: day, forgive: 1}}
  keys: {of: {progress: boss}, distinct: 4, per: day}
  got: {of: {entries: [open/a, open/b]}}
  raid: {for: realm, of: {progress: wins}}
quests:
  one: {claim: automatic, per: day, needs: {day: 3}, reward: {items: {ore: 2, crate: 1}}}
  two: {claim: automatic, needs: {coins: 5}, when: {quests: {one: 1}}, reward: {items: {coin: 8, pass: 2}}}
  three: {claim: automatic, per: week, needs: {wins: 1}, when: {holds: {ore: 2}}, reward: {items: {coin: 5, pearl: 3}}}
  four:
    per: day
    tiers:
      - {needs: {day: 1}, reward: {items: {coin: 9}}}
      - {needs: {day: 4}, reward: {pool: rare}}
      - {needs: {day: 6}, reward: {items: {chest: 3}, pool: open}}
  five: {needs: {raid: 20}, when: {quests: {two: 1}}, reward: {items: {ticket: 3}}}
  six: {claim: automatic, per: day, needs: {keys: 2, streak: 2}, reward: {pool: rare}}
pools:
  open:
    price: {box: 1}
    limits: [{per: day, draws: 20}]
    entries:
      - {id: a, weight: 1, reward: {items: {coin: {min: 1, max: 9}}}}
      - {id: b, weight: 1, stock: 200, reward: {items: {pearl: {min: 1, max: 3}, pass: 1}}}
      - {id: c, weight: 1, reward: {items: {chest: {min: 1, max: 4}, ticket: 1}}}
  shop:
    price: {coin: 5}
    price_by: {counter: spent, prices: [{from: 2, price: {coin: 7}}, {from: 5, price: {coin: 2, box: 1}}]}
    entries: [{id: e, weight: 1, reward: {items: {crate: {min: 1, max: 2}, energy: {min: 1, max: 4}}}}]
  run: {price: {energy: 3}, entries: [{id: e, weight: 1, reward: {items: {ore: {min: 1, max: 4}}}}]}
  rare:
    internal: true
    entries:
      - {id: x, weight: 1, stock: 150, reward: {items: {medal: 1, coin: 3}}}
      - {id: y, weight: 1, stock: 40, reward: {items: {pass: {min: 1, max: 3}}}}
`, `
kuji: 1
zone: America/New_York
items:
  crate: {}
  chest: {most: 4, family: box}
  coin: {}
  pass: {family: box}
  ticket: {lasts: 2h, extend: true, most: 3, beyond: cut}
  energy: {}
  ore: {lasts: 3h, family: box}
  pearl: {grows: {every: 1m, to: 3}, most: 3, beyond: cut}
start: {coin: 3}
counters:
  wins: {of: {progress: boss}, distinct: 2}
  day: {of: {progress: wins}, per: day, ranked: true}
  spent: {of: {spends: coin}, per: week, ranked: {rewards: [{to: 2, reward: {items: {ticket: 2}}}]}}
  seas: {of: {progress: wins}, highest: true}
  raid: {of: {progress: wins}}
quests:
  one: {needs: {day: 3}, reward: {items: {ore: 2, crate: 1}}}
  four: {per: day, claim: automatic, tiers: [{needs: {day: 1}, reward: {items: {coin: 9, ticket: 1}}}, {needs: {day: 2}, reward: {items: {ticket: 2}}}]}
pools:
  shop: {price: {coin: 5}, entries: [{id: e, weight: 1, reward: {items: {ticket: {min: 1, max: 2}}}}]}
  open: {price: {box: 2}, entries: [{id: a, weight: 1, reward: {items: {coin: {min: 1, max: 9}}}}]}
`}

// mixer makes requests of every kind, about all that mixedCatalogs name.
type mixer struct{ *rand.Rand }

func (m mixer) of(all ...string) string { return all[m.IntN(len(all))] }

func (m mixer) one() kuji.Request {
	players := []string{"ann", "bob", "cid", "dan"}
	from := m.IntN(4)
	player := players[from]
	some := []kuji.Stack{{Item: m.of("crate", "chest", "coin", "pearl", "pass", "ticket", "energy", "ore"), Quantity: 1 + uint64(m.IntN(9))}}
	switch m.IntN(11) {
	case 0, 1:
		return kuji.Grant{Player: player, Items: some}
	case 2:
		return kuji.Consume{Player: player, Items: some}
	case 3:
		return kuji.Transfer{From: player, To: players[(from+1+m.IntN(3))%4], Items: some}
	case 4:
		return kuji.Progress{Player: player, Event: "wins", N: 1 + uint64(m.IntN(3))}
	case 5:
		return kuji.Progress{Player: player, Event: "boss", Key: fmt.Sprint(m.IntN(5))}
	case 6, 7:
		return kuji.Claim{Player: player, Quest: m.of("one", "two", "three", "four", "five", "six"), Tiers: m.IntN(3)}
	}
	return kuji.Draw{Player: player, Pool: m.of("open", "shop", "run"), Count: 1 + m.IntN(3)}
}

func (m mixer) next() kuji.Request {
	switch k := m.IntN(10); {
	case k < 2:
		return kuji.Collect{Player: m.of("ann", "bob", "cid", "dan")}
	case k < 3:
		counter := m.of("wins", "day", "ranked", "seas", "streak", "spent", "alltime", "keys")
		return kuji.SetCounter{Player: m.of("ann", "bob", "cid", "dan"), Counter: counter, Value: uint64(m.IntN(6)), Note: kuji.Note{Reason: "ticket"}}
	case k < 6:
		return m.one()
	}
	var members []kuji.Request
	for range 1 + m.IntN(6) {
		members = append(members, m.one())
	}
	return kuji.Atomic{Members: members}
}

// reopened closes a realm, after a snapshot or without one, and opens it again: its state must be the same.
func reopened(t *testing.T, e *kuji.Engine, r *kuji.Realm, dir string, now *hand, snapshot bool) (*kuji.Engine, *kuji.Realm) {
	t.Helper()
	if snapshot {
		if _, err := r.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want, at, err := r.StateHash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, r = openDir(t, dir, now)
	got, pos, err := r.StateHash(t.Context())
	if err != nil || pos == at && got != want { // after at, what is due may have been swept
		t.Fatalf("position %d has another state: %v", at, err)
	}
	return e, r
}

// TestAllMixed: whatever catalogs say in turn, wherever the clock is set, and however often the realm is opened again, no
// request stops it, and the verifier decides all of it once more.
func TestAllMixed(t *testing.T) {
	m, now, dir := mixer{rand.New(rand.NewPCG(3, 99))}, handAt(time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)), t.TempDir()
	e, r := openDir(t, dir, now)
	apply := func(i int) {
		t.Helper()
		if _, err := r.Apply(t.Context(), parse(t, mixedCatalogs[i])); err != nil {
			t.Fatal(err)
		}
	}
	apply(0)
	catalogs, statuses := 0, map[kuji.Status]int{}
	for i := range 1500 {
		now.Add(time.Duration(m.IntN(3)/2*m.IntN(900_000)) * time.Millisecond)
		switch m.IntN(60) {
		case 0:
			now.Add(time.Duration(m.IntN(40)) * time.Hour)
		case 1:
			now.Add(-time.Duration(m.IntN(30)) * time.Hour)
			if _, err := r.SetClock(t.Context(), now.Now(), "ops", "it was wrong"); err != nil {
				t.Fatal(err)
			}
		case 2:
			catalogs++
			apply(catalogs % 2)
		case 3:
			e, r = reopened(t, e, r, dir, now, m.IntN(2) == 0)
		}
		res, err := r.Do(t.Context(), m.next())
		if err == nil {
			statuses[res.Status]++
		} else if kuji.CodeOf(err) != kuji.CodeNotFound { // in the catalog in force
			t.Fatalf("step %d: %v", i, err)
		}
	}
	if len(statuses) < 6 || catalogs < 10 {
		t.Errorf("after %d catalogs, requests ended only as %v", catalogs, statuses)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := verify.Dir(dir, "test", verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rep.Epochs {
		if e.Undecided != "" {
			t.Errorf("epoch %d: %s", e.Epoch, e.Undecided)
		}
	}
}

// TestAnswersStay: an answer comes again after the catalog has lost what it is about.
func TestAnswersStay(t *testing.T) {
	now := handAt(time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC))
	r := realmAt(t, now, `
kuji: 1
items: {gem: {most: 5, beyond: mail}, ore: {}}
counters: {wins: {}}
quests:
  a: {needs: {wins: 1}, reward: {items: {gem: 8}}}
  b: {claim: automatic, needs: {wins: 2}, reward: {items: {ore: 8}}}
`)
	requests := []kuji.Request{
		kuji.Progress{ID: "1", Player: "ann", Event: "wins", N: 2},
		kuji.Claim{ID: "2", Player: "ann", Quest: "a"},
		kuji.Consume{ID: "3", Player: "ann", Items: stacksOf("3 gem")},
		kuji.Collect{ID: "4", Player: "ann"},
		kuji.SetCounter{ID: "5", Player: "ann", Counter: "wins", Value: 9, Note: kuji.Note{Reason: "ticket"}},
		kuji.Atomic{ID: "6", Members: []kuji.Request{kuji.Progress{Player: "bob", Event: "wins", N: 3}, kuji.Claim{Player: "bob", Quest: "a"}}},
	}
	var was []kuji.Result
	for _, req := range requests {
		res := do(t, r, req)
		res.Replayed = true
		was = append(was, res)
	}
	for _, yaml := range []string{"kuji: 1\nitems: {ore: {}}\n", "kuji: 1\nitems: {gem: {lasts: 1h}, ore: {}}\ncounters: {wins: {of: {progress: x}, per: day}}\n"} {
		if _, err := r.Apply(t.Context(), parse(t, yaml)); err != nil {
			t.Fatal(err)
		}
		for i, req := range requests {
			if res := do(t, r, req); !reflect.DeepEqual(res, was[i]) {
				t.Errorf("%T: %+v, want %+v", req, res, was[i])
			}
		}
	}
	if got := items(t, r, "bob"); got["gem"] != 5 {
		t.Errorf("bob has %v", got)
	}
	if res := do(t, r, kuji.Collect{Player: "bob"}); res.Status != kuji.OK || items(t, r, "bob")["gem"] != 8 {
		t.Errorf("the mail of the first catalog: %v, %v", res, items(t, r, "bob"))
	}
}
