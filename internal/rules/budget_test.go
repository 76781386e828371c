package rules_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// given returns how much of an item an event gives.
func (r *realm) given(ev *store.Event, item string) (sum uint64) {
	r.t.Helper()
	num, ok := r.state.ItemNum(item)
	if !ok {
		r.t.Fatalf("no item %s", item)
	}
	var e store.Effect
	for c := ev.Changes(); c.Next(&e); {
		if e.Verb == store.Gain && e.N == num {
			sum += e.Value
		}
	}
	return sum
}

// TestBudgetOfADay draws for 30 days at ten times what a budget of 50,000 a day allows: never
// above, and all of it but what one entry could exceed.
func TestBudgetOfADay(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`
kuji: 1
zone: Asia/Tokyo
items: {cash: {}}
pools:
  splash:
    max_count: 1000
    budget: {per: day, of: {cash: 50000}, share: summer}
    entries:
      - {id: prize, weight: 50, reward: {items: {cash: {min: 50, max: 150}}}}
      - {id: blank, weight: 50}
`)
	place, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	days := map[string]uint64{}
	start := at(t, "2026-07-01 00:00:00.000 +0900")
	for d := range int64(30) {
		for i := range int64(10) { // of 1000 draws: 10 × 1000 × 50 % × 100 is 500,000
			r.now = start + d*day + i*day/10
			ev := r.want(draw(fmt.Sprint("p", i%3), "splash", 1000), rules.OK, "")
			days[time.UnixMilli(r.now).In(place).Format("2006-01-02")] += r.given(&ev, "cash")
		}
	}
	if len(days) != 30 {
		t.Errorf("%d days", len(days))
	}
	for date, sum := range days {
		if sum > 50_000 || sum <= 50_000-150 {
			t.Errorf("%s: %d of 50000 given", date, sum)
		}
	}
	r.replay()
}

// TestBudgetOdds: while there is budget, the odds are those of the weights.
func TestBudgetOdds(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`
kuji: 1
items: {cash: {}}
pools:
  p:
    max_count: 1000
    budget: {per: forever, of: {cash: 900000}}
    entries:
      - {id: large, weight: 1, reward: {items: {cash: 50}}}
      - {id: small, weight: 3, reward: {items: {cash: 5}}}
      - {id: blank, weight: 6}
`)
	counts := r.takes(draw("ann", "p", 1000), 100, nil) // 650,000 or so
	likely(t, "large", counts["p/large"], 100_000, 0.1)
	likely(t, "small", counts["p/small"], 100_000, 0.3)
	r.takes(draw("ann", "p", 1000), 100, nil)
	if got := balance(r, "ann", "cash"); got != 900_000 {
		t.Errorf("%d of 900000 given, in steps of 5", got)
	}
	counts = r.takes(draw("ann", "p", 1000), 1, nil)
	if counts["p/blank"] != 1000 {
		t.Errorf("nothing is left: %v", counts)
	}
}

func balance(r *realm, player, item string) uint64 {
	num, _ := r.state.Player(player)
	it, _ := r.state.ItemNum(item)
	return r.state.Balance(num, it)
}

// budgets is a catalog with budgets that meet: shared ones, inner pools that have them too, several
// rolls, ranges, drop tables, groups.
const budgets = `
kuji: 1
zone: Asia/Kathmandu
items: {cash: {}, gold: {}}
pools:
  outer:
    max_count: 100
    rolls: {min: 1, max: 3}
    budget:
      - {per: hour, of: {cash: 300, gold: 100}, share: all}
      - {per: day, of: {cash: 1000}}
    entries:
      - {id: through, weight: 5, reward: [{pool: inner, times: {min: 1, max: 2}}, {items: {gold: {min: 1, max: 5}}}]}
      - {id: cash, weight: 2, reward: {items: {cash: {min: 1, max: 30}}}}
      - {id: blank, weight: 3}
  inner:
    budget: {per: hour, of: {cash: 300, gold: 100}, share: all}
    entries:
      - {id: much, weight: 1, reward: {items: {cash: 40, gold: 1}}}
      - {id: little, weight: 3, reward: {items: {cash: {min: 1, max: 3}}}}
      - {id: blank, weight: 1}
  drops:
    mode: each
    budget: [{per: week, of: {gold: 150}}, {per: hour, of: {cash: 300, gold: 100}, share: all}]
    entries:
      - {id: a, chance: 50, reward: {items: {gold: {min: 1, max: 4}}}}
      - {id: b, chance: 20, reward: {pool: inner}}
`

// TestBudgetsMeet draws at random and adds up what every budget gave.
func TestBudgetsMeet(t *testing.T) {
	r := newRealm(t, 7)
	r.put(budgets)
	rnd := rand.New(rand.NewPCG(3, 3))
	place := time.FixedZone("", 5*3600+45*60)
	spent := map[string]uint64{}
	full := 0
	for range 3000 {
		r.now += rnd.Int64N(hour / 4)
		pool := []string{"outer", "inner", "drops"}[rnd.IntN(3)]
		cmd := draw("ann", pool, 1+rnd.IntN(4))
		pools := []string{pool}
		if rnd.IntN(5) == 0 {
			cmd = group(draw("ann", pool, 2), draw("bob", pool, 3))
		}
		ev := r.want(cmd, rules.OK, "")
		cash, gold := r.given(&ev, "cash"), r.given(&ev, "gold")
		now := time.UnixMilli(r.now).In(place)
		year, week := now.ISOWeek()
		add := func(name string, q, most uint64) {
			t.Helper()
			if spent[name] += q; spent[name] > most {
				t.Fatalf("%s: %d, above %d, by a draw from %s", name, spent[name], most, strings.Join(pools, ","))
			}
			if q > 0 && spent[name] > most-most/10 {
				full++
			}
		}
		add("cash in hour "+now.Format("2006-01-02 15"), cash, 300)
		add("gold in hour "+now.Format("2006-01-02 15"), gold, 100)
		switch pool {
		case "outer":
			add("cash on day "+now.Format("2006-01-02"), cash, 1000)
		case "drops":
			add(fmt.Sprint("gold in week ", year, week), gold, 150)
		}
	}
	if full == 0 {
		t.Error("no budget was ever nearly used up: the test shows nothing")
	}
	// What the counters say is what was given.
	first, ok := r.state.CounterNum("/budget/all/hour/cash")
	if got, want := r.state.Tally(first), spent["cash in hour "+time.UnixMilli(r.now).In(place).Format("2006-01-02 15")]; !ok || got != want {
		t.Errorf("the counter has %d, want %d", got, want)
	}
	r.replay()
}

// TestBudgetChanges: what was spent counts in the next catalog too, as long as it lasts.
func TestBudgetChanges(t *testing.T) {
	with := func(budget string) string {
		return `{kuji: 1, items: {cash: {}}, pools: {p: {budget: ` + budget + `, entries: [{id: prize, weight: 1, reward: {items: {cash: 10}}}, {id: blank, weight: 0.000001}]}}}`
	}
	r := newRealm(t, 1)
	r.put(with("{per: day, of: {cash: 100}}"))
	draws := func(want uint64) {
		t.Helper()
		ev := r.want(draw("ann", "p", 50), rules.OK, "")
		if got := r.given(&ev, "cash"); got != want {
			t.Errorf("%d given, want %d", got, want)
		}
	}
	draws(100)
	r.put(with("{per: day, of: {cash: 135}}"))
	draws(30)
	r.put(with("{per: day, of: {cash: 20}}"))
	draws(0)
	r.now += day
	draws(20)
	r.put(with("{per: hour, of: {cash: 10}}")) // another budget
	draws(10)
	r.put(with("{per: day, of: {cash: 50}}"))
	draws(30)
	r.replay()
}

// setBack sets the clock back to a time stamp.
func (r *realm) setBack(to int64) {
	r.t.Helper()
	r.w.Buf = r.w.Buf[:0]
	(&rules.SetClock{To: to, By: "ops", Reason: "it was wrong"}).Write(&r.w, r.now)
	r.apply(r.w.Buf)
	r.now = to
}

// TestBudgetSetBack: a clock that is put right fills no budget, and does not keep one from being
// full again when its day is over.
func TestBudgetSetBack(t *testing.T) {
	r := newRealm(t, 1)
	r.put(`{kuji: 1, zone: Asia/Tokyo, items: {cash: {}}, pools: {p: {budget: {per: day, of: {cash: 100}}, entries: [{id: prize, weight: 1, reward: {items: {cash: 10}}}, {id: blank, weight: 0.000001}]}}}`)
	draws := func(want uint64) {
		t.Helper()
		ev := r.want(draw("ann", "p", 50), rules.OK, "")
		if got := r.given(&ev, "cash"); got != want {
			t.Errorf("%d given, want %d", got, want)
		}
	}
	right := at(t, "2026-07-01 12:00:00.000 +0900")
	r.now = right + 365*day
	draws(100)
	r.setBack(right)
	draws(0)
	r.now = at(t, "2026-07-01 23:59:59.999 +0900")
	draws(0)
	r.now++
	draws(100)
	r.replay()
}
