package simulate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/examples"
	"github.com/kuji-dev/kuji/internal/simulate"
)

func parse(t *testing.T, yaml string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func example(t *testing.T, name string) *catalog.Catalog {
	t.Helper()
	yaml, err := examples.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(yaml))
}

func run(t *testing.T, c *catalog.Catalog, config simulate.Config) *simulate.Report {
	t.Helper()
	r, err := simulate.Run(t.Context(), c, config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func odds(t *testing.T, r *simulate.Report, pool, entry string) simulate.Odds {
	t.Helper()
	for _, o := range r.Odds {
		if o.Pool == pool && o.Entry == entry {
			return o
		}
	}
	t.Fatalf("no odds of %s in %s: %+v", entry, pool, r.Odds)
	return simulate.Odds{}
}

// holds checks that a number that must come out is in the interval, and the interval is not wide.
func holds(t *testing.T, o simulate.Odds, want, width float64) {
	t.Helper()
	if want < o.Low || want > o.High || o.High-o.Low > width || o.Seen < o.Low || o.Seen > o.High {
		t.Errorf("%s is seen %v, from %v to %v; want %v within less than %v", o.Entry, o.Seen, o.Low, o.High, want, width)
	}
}

func near(t *testing.T, what string, got *float64, want, off float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > off {
		t.Errorf("%s: %v, want %v ± %v", what, deref(got), want, off)
	}
}

func exactly(t *testing.T, what string, got *uint64, want uint64) {
	t.Helper()
	if got == nil || *got != want {
		t.Errorf("%s: %v, want %d", what, deref(got), want)
	}
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// TestConsolidatedRate: with pity a five-star comes in 1.605 % of all draws, a four-star in 13.03 %.
// Published are 1.600 % and 13.000 %: HoYoverse, Genshin Impact, details of the character event wish,
// "consolidated probability (incl. guarantee)". The wanted odds are the published base rates. New players
// begin without pity, so theirs are a little lower.
func TestConsolidatedRate(t *testing.T) {
	const players, draws = 100, 5000
	wantFive, wantFour, wantFeatured := bannerRates(draws)
	near(t, "five stars by formula", &wantFive, 0.016, 0.0001)
	near(t, "four stars by formula", &wantFour, 0.13, 0.0004)
	r := run(t, example(t, "gacha-banner.yaml"), simulate.Config{Pool: "banner", Players: players, Draws: draws, Count: 10, Seed: 1})
	five, four := odds(t, r, "banner", "five-star"), odds(t, r, "banner", "four-star")
	if five.Wanted != 0.006 || four.Wanted != 0.051 || five.Taken != uint64(math.Round(five.Seen*players*draws)) {
		t.Errorf("five stars: %+v, four stars: %+v", five, four)
	}
	holds(t, five, wantFive, 0.0006)
	holds(t, four, wantFour, 0.001)
	if simple := 2 * 1.96 * math.Sqrt(0.016*0.984/players/draws); five.High-five.Low > 0.8*simple {
		t.Errorf("the interval is %v wide; pity makes players more alike than independent draws: %v", five.High-five.Low, simple)
	}
	holds(t, odds(t, r, "five-star", "featured"), wantFeatured, 0.0006)
	if r.Draws != players*draws || r.StockOf != "none" || r.Stock != nil || !r.OddsChange {
		t.Errorf("%d draws, stock of %s", r.Draws, r.StockOf)
	}
}

// bannerRates returns how many of so many draws of a new player give five stars, four stars and the
// featured one, on average, from the chances of examples/gacha-banner.yaml.
func bannerRates(draws int) (five, four, featured float64) {
	var at [90][11][2]float64 // by draws since the last hits, and whether the last 50/50 was lost
	at[0][0][0] = 1
	for range draws {
		var next [90][11][2]float64
		for a := range at {
			p5 := min(1, 0.006+0.06*max(0, float64(a+1-73)))
			if a+1 == 90 {
				p5 = 1
			}
			for b := range at[a] {
				p4 := (1 - p5) * 0.051 / 0.994
				switch {
				case b+1 >= 10:
					p4 = 1 - p5
				case b+1 == 9:
					p4 = min(1-p5, 0.051+0.51)
				}
				for lost, p := range at[a][b] {
					won := 0.5 + 0.5*float64(lost)
					five, four, featured = five+p*p5, four+p*p4, featured+p*p5*won
					more := min(b+1, 10)
					next[0][more][0] += p * p5 * won
					next[0][more][1] += p * p5 * (1 - won)
					if a+1 < 90 {
						next[a+1][0][lost] += p * p4
						next[a+1][more][lost] += p * (1 - p5 - p4)
					}
				}
			}
		}
		at = next
	}
	n := float64(draws)
	return five / n, four / n, featured / n
}

// TestFeatured: the cost of a featured five-star under 50/50 is a renewal process that a few lines
// compute exactly: half of the players have it by draw 80, 99 % by draw 161, all by draw 180, and the
// mean is 93.4 draws of 160 each.
func TestFeatured(t *testing.T) {
	one := make([]float64, 91) // by draw: chance that a five-star comes then
	alive, wait := 1.0, 0.0
	for k := 1; k <= 90; k++ {
		p := 0.006 + 0.06*max(0, float64(k-73))
		if k == 90 {
			p = 1
		}
		one[k] = alive * p
		wait += float64(k) * one[k]
		alive *= 1 - p
	}
	two := make([]float64, 181)
	for i := range one {
		two[i] += one[i] / 2
		for k := range one {
			two[i+k] += one[i] * one[k] / 2
		}
	}
	at := func(share float64) uint64 {
		for k, sum := 0, 0.0; ; k++ {
			if sum += two[k]; sum >= share {
				return uint64(k)
			}
		}
	}
	r := run(t, example(t, "gacha-banner.yaml"), simulate.Config{Pool: "banner", Pay: "starlight", Players: 8000, Draws: 180, Count: 1, Seed: 3, Until: "hoshimi"})
	draws, gems := r.Until.Costs[0], r.Until.Costs[1]
	if at(0.5) != 80 || at(0.99) != 161 || math.Abs(1.5*wait-93.4) > 0.1 {
		t.Errorf("by formula: median %d, p99 %d, mean %v", at(0.5), at(0.99), 1.5*wait)
	}
	if r.Until.Reached != 8000 || gems.Item != "starlight" || draws.Item != "" {
		t.Fatalf("%+v", r.Until)
	}
	near(t, "mean", draws.Mean, 1.5*wait, 1.5)
	near(t, "error of the mean", draws.Error, 0.96, 0.1)
	near(t, "mean in starlight", gems.Mean, *draws.Mean*160, 1e-6)
	exactly(t, "median in starlight", gems.Median, *draws.Median*160)
	if *draws.Median < 79 || *draws.Median > 81 || *draws.P99 < 160 || *draws.P99 > 162 || *draws.Worst > 180 {
		t.Errorf("median %d, p99 %d, worst %d; want 80 and 161, each at most 1 off, and at most 180", *draws.Median, *draws.P99, *draws.Worst)
	}
	sum := uint64(0)
	for _, s := range r.Until.Distribution {
		sum += s.Players
	}
	if sum != 8000 {
		t.Errorf("%d players in the distribution", sum)
	}
}

// TestBoxOfOnesOwn: in a box of k tickets the grand prize is as likely to be any of them: (k+1)/2
// draws on average, never more than k.
func TestBoxOfOnesOwn(t *testing.T) {
	for _, k := range []int{1, 10, 300} {
		c := parse(t, fmt.Sprintf(`{kuji: 1, items: {grand: {}, small: {}, coin: {}}, start: {coin: 7}, pools: {box: {mode: raffle, price: {coin: 3}, entries: [
			{id: grand, stock: 1, reward: {items: {grand: 1}}}, {id: small, stock: %d, reward: {items: {small: 1}}}]}}}`, k-1))
		players := 2000
		r := run(t, c, simulate.Config{Pool: "box", Players: players, Draws: k, Count: 1, Seed: 5, Until: "grand", Independent: true})
		mean := float64(k+1) / 2
		sd := math.Sqrt(float64(k*k-1) / 12)
		near(t, fmt.Sprintf("mean of a box of %d", k), r.Until.Costs[0].Mean, mean, 4*sd/math.Sqrt(float64(players))+1e-9)
		near(t, "cost", r.Until.Costs[1].Mean, 3**r.Until.Costs[0].Mean, 1e-9)
		if *r.Until.Costs[0].Worst > uint64(k) || r.StockOf != "each" || r.Stock != nil {
			t.Errorf("box of %d: %+v", k, r)
		}
	}
}

// TestCollector: n different items take n draws without duplicates, and n × H(n) with them.
func TestCollector(t *testing.T) {
	const n = 6
	pool := func(unique bool) string {
		all, cards := "", ""
		for i := range n {
			cards += fmt.Sprintf("c%d: {}, ", i)
			all += fmt.Sprintf("{id: e%d, weight: 1, unique: %v, reward: {items: {c%d: 1}}}, ", i, unique, i)
		}
		return cards + "|" + all
	}
	cards, all, _ := strings.Cut(pool(true), "|")
	r := run(t, parse(t, `{kuji: 1, items: {`+cards+`}, pools: {p: {entries: [`+all+`]}}}`), simulate.Config{Pool: "p", Players: 100, Draws: 10, Count: 1})
	if r.Draws != 100*n || len(r.Refused) != 1 || r.Refused[0].Status != "sold_out" || r.Refused[0].Stopped != 100 {
		t.Errorf("without duplicates: %d draws, %+v", r.Draws, r.Refused)
	}
	for _, o := range r.Odds {
		if o.Taken != 100 || o.Low != o.Seen || o.High != o.Seen {
			t.Errorf("without duplicates: %+v", o)
		}
	}
	// With duplicates: the last item, which only those get who have all the others.
	cards, all, _ = strings.Cut(pool(false), "|")
	has := strings.TrimSuffix(strings.ReplaceAll(cards, "{}", "1"), ", ")
	r = run(t, parse(t, `{kuji: 1, items: {`+cards+`all: {}}, pools: {
		p: {entries: [{id: draw, weight: 1, reward: [{pool: cards}, {pool: check}]}]}, cards: {internal: true, entries: [`+all+`]},
		check: {internal: true, entries: [{id: not, weight: 0.000000001}, {id: all, weight: 1000000000, when: {holds: {`+has+`}, lacks: [all]}, reward: {items: {all: 1}}}]}}}`),
		simulate.Config{Pool: "p", Players: 8000, Draws: 500, Count: 1, Seed: 1, Until: "all"})
	want := 0.0
	for i := 1; i <= n; i++ {
		want += n / float64(i)
	}
	near(t, "with duplicates", r.Until.Costs[0].Mean, want, 0.3)
}

// TestSharedStock: all players share one box, which sells out after its tickets, and days follow from
// the rate.
func TestSharedStock(t *testing.T) {
	c := parse(t, `{kuji: 1, items: {a: {}, b: {}, last: {}}, pools: {box: {mode: raffle, last: {items: {last: 1}}, limits: [{per: day, draws: 1}], entries: [
		{id: a, stock: 20, reward: {items: {a: 1}}}, {id: b, stock: 460, reward: {items: {b: 1}}}]}}}`)
	r := run(t, c, simulate.Config{Pool: "box", Players: 48, Draws: 30, Count: 1, Seed: 1, Rate: 2})
	if r.StockOf != "all" || r.Draws != 480 || odds(t, r, "box", "a").Taken != 20 {
		t.Fatalf("%+v", r)
	}
	if r.Stock.SoldOut == nil || r.Stock.SoldOut.Draws != 480 || math.Abs(*r.Stock.SoldOut.Days-10) > 1e-9 {
		t.Errorf("sold out %+v", r.Stock.SoldOut)
	}
	last, gone := r.Stock.Samples[len(r.Stock.Samples)-1], uint64(0)
	for _, e := range r.Stock.Entries {
		if e.Left != 0 || e.Gone == nil {
			t.Fatalf("%+v", e)
		}
		gone = max(gone, e.Gone.Draws)
	}
	if gone != 480 || last.Draws != 480 || last.Left[0]+last.Left[1] != 0 || r.Stock.Samples[0].Left[1] != 460 {
		t.Errorf("%+v", r.Stock)
	}
	for i, s := range r.Stock.Samples {
		if s.Left[0]+s.Left[1] != 480-s.Draws || i > 0 && s.Draws <= r.Stock.Samples[i-1].Draws {
			t.Errorf("sample %d: %+v", i, s)
		}
	}
	// Twice as fast the limit of a day is reached before the day is over, and the rest waits.
	r = run(t, c, simulate.Config{Pool: "box", Players: 48, Draws: 30, Count: 1, Seed: 1, Rate: 4})
	if r.Refused[0].Status != "limit_reached" && r.Refused[1].Status != "limit_reached" || math.Abs(*r.Stock.SoldOut.Days-9.5) > 0.51 {
		t.Errorf("%+v, sold out %v", r.Refused, *r.Stock.SoldOut.Days)
	}
	// Without a rate no time passes.
	r = run(t, c, simulate.Config{Pool: "box", Players: 48, Draws: 30, Count: 1, Seed: 1})
	if r.Draws != 48 || r.Refused[0].Stopped != 48 || r.Stock.SoldOut != nil || r.Stock.Samples[0].Days != nil {
		t.Errorf("%d draws, %+v", r.Draws, r.Refused)
	}
}

// TestSamplesAreBounded: a long simulation keeps few of them.
func TestSamplesAreBounded(t *testing.T) {
	c := parse(t, `{kuji: 1, items: {a: {}}, pools: {p: {entries: [{id: a, weight: 1, stock: 3000}, {id: b, weight: 1}]}}}`)
	r := run(t, c, simulate.Config{Pool: "p", Players: 10, Draws: 1000, Count: 1})
	if n := len(r.Stock.Samples); n < 200 || n > 400 {
		t.Errorf("%d samples", n)
	}
}

// TestSameOnAnyCores: the report depends on the Config alone.
func TestSameOnAnyCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, config := range map[string]simulate.Config{
		"gacha-banner.yaml": {Pool: "banner", Players: 1500, Draws: 100, Count: 10, Seed: 7, Until: "hoshimi"},
		"box-raffle.yaml":   {Pool: "box", Players: 300, Draws: 20, Count: 1, Seed: 7, Independent: true},
		"collection.yaml":   {Pool: "friends", Players: 5000, Draws: 6, Count: 3, Seed: 7, Rate: 100},
		"bottle-caps.yaml":  {Pool: "caps", Players: 500, Draws: 10, Count: 1, Seed: 7, Rate: 100}, // simulated players have codes
		"instant-win.yaml":  {Pool: "splash", Players: 500, Draws: 10, Count: 1, Seed: 7, Rate: 100},
	} {
		var first []byte
		for _, cores := range []int{1, 2, 5} {
			runtime.GOMAXPROCS(cores)
			got, err := json.Marshal(run(t, example(t, name), config))
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			}
			if string(first) != string(got) {
				t.Errorf("%s: %d cores give\n%s\none gives\n%s", name, cores, got, first)
			}
		}
		config.Seed++
		other, err := json.Marshal(run(t, example(t, name), config))
		if err != nil {
			t.Fatal(err)
		}
		if string(other) == string(first) {
			t.Errorf("%s: another seed gives the same", name)
		}
	}
}

// TestIntervals: of many simulations about 95 % have the true odds in the interval.
func TestIntervals(t *testing.T) {
	c := parse(t, `{kuji: 1, items: {a: {}}, pools: {
		plain: {entries: [{id: a, weight: 5}, {id: b, weight: 95}]},
		luck: {entries: [{id: a, weight: 5, when: {lacks: [a]}, reward: {items: {a: 1}}}, {id: b, weight: 95}]},
		rolls: {rolls: {min: 1, max: 5}, entries: [{id: a, weight: 5}, {id: b, weight: 95}]}}}`)
	for _, of := range []struct {
		pool    string
		players int
		want    float64
	}{
		{"plain", 1, 0.05}, {"plain", 40, 0.05}, {"rolls", 40, 0.15}, {"rolls", 1, 0.15},
		{"luck", 200, (1 - math.Pow(0.95, 10)) / 10}, // of ten draws at most one
	} {
		hits := 0
		const n = 100
		for seed := range uint64(n) {
			r := run(t, c, simulate.Config{Pool: of.pool, Players: of.players, Draws: 2000 / of.players, Count: 1, Seed: seed})
			if o := odds(t, r, of.pool, "a"); of.want >= o.Low && of.want <= o.High {
				hits++
			}
		}
		if hits < n*89/100 {
			t.Errorf("%s, %d players: %d of %d intervals hold the true odds", of.pool, of.players, hits, n)
		}
	}
}

// TestPrices: players pay with what they have, and buy what they lack.
func TestPrices(t *testing.T) {
	c := parse(t, `{kuji: 1, items: {gem: {}, ticket: {}, b: {}}, start: {gem: 320}, pools: {p: {
		price: [{ticket: 1}, {gem: 160}], bundles: [{draws: 10, price: {gem: 1440}}], free: {per: forever, draws: 1},
		entries: [{id: a, weight: 1, reward: {items: {gem: 16}}}]}}}`)
	paid := func(r *simulate.Report) string {
		var all []string
		for _, a := range r.Paid {
			all = append(all, fmt.Sprintf("%d %s", a.Total, a.Item))
		}
		return strings.Join(all, ", ")
	}
	for _, of := range []struct {
		count int
		pay   string
		want  string
	}{
		{1, "", "25 ticket, 640 gem"}, // one is free, two are paid with start's gems and two with gems won
		{1, "gem", "4640 gem"},
		{10, "", "4320 gem"}, // the bundle, which costs as much as the nine draws that are not free
	} {
		r := run(t, c, simulate.Config{Pool: "p", Players: 1, Draws: 30, Count: of.count, Pay: of.pay})
		if got := paid(r); got != of.want || r.Draws != 30 || len(r.Refused) != 0 {
			t.Errorf("count %d, pay %q: %s for %d draws, refused %v; want %s", of.count, of.pay, got, r.Draws, r.Refused, of.want)
		}
	}
}

// TestNobodyDraws: a report without a single draw can be written down.
func TestNobodyDraws(t *testing.T) {
	r := run(t, example(t, "collection.yaml"), simulate.Config{Pool: "secret", Players: 200, Draws: 5, Count: 1, Until: "white-stag"})
	if _, err := json.Marshal(r); err != nil || r.Draws != 0 || r.Refused[0].Status != "not_eligible" || r.Refused[0].Stopped != 200 || r.Until.Costs[0].Median != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRefusesConfig: bad configurations are refused by the name of their field.
func TestRefusesConfig(t *testing.T) {
	good := simulate.Config{Pool: "banner", Players: 1, Draws: 10, Count: 10}
	for want, change := range map[string]func(*simulate.Config){
		`pool: "x": expected one that players draw from: banner`:                             func(c *simulate.Config) { c.Pool = "x" },
		`pool: "five-star": expected one that`:                                               func(c *simulate.Config) { c.Pool = "five-star" },
		`players: 0: expected from 1 to 10000000`:                                            func(c *simulate.Config) { c.Players = 0 },
		`draws: 10000010: expected from 1 to`:                                                func(c *simulate.Config) { c.Draws = 10_000_010 },
		`draws: 15: expected a multiple of 10`:                                               func(c *simulate.Config) { c.Draws = 15 },
		`count: 11: expected from 1 to 10`:                                                   func(c *simulate.Config) { c.Count = 11 },
		`rate: -1: expected from 0 to`:                                                       func(c *simulate.Config) { c.Rate = -1 },
		`rate: NaN: expected from 0 to`:                                                      func(c *simulate.Config) { c.Rate = math.NaN() },
		`rate: 1e-09: expected a rate at which`:                                              func(c *simulate.Config) { c.Rate = 1e-9 },
		`pay: "x": expected an item of the pool's price`:                                     func(c *simulate.Config) { c.Pay = "x" },
		`until: "x": expected an item of the catalog`:                                        func(c *simulate.Config) { c.Until = "x" },
		`until: "ticket": expected an item that the pool banner, a quest or a rank can give`: func(c *simulate.Config) { c.Until = "ticket" },
	} {
		config := good
		change(&config)
		_, err := simulate.Run(t.Context(), example(t, "gacha-banner.yaml"), config)
		if bad, ok := errors.AsType[*simulate.ConfigError](err); !ok || !strings.HasPrefix(bad.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCanceled: a simulation ends with its context, and counts all draws otherwise.
func TestCanceled(t *testing.T) {
	config := simulate.Config{Pool: "banner", Players: 100, Draws: 1000, Count: 10, Done: new(atomic.Int64)}
	run(t, example(t, "gacha-banner.yaml"), config)
	if n := config.Done.Load(); n != 100_000 {
		t.Errorf("%d draws done", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := simulate.Run(ctx, example(t, "gacha-banner.yaml"), config); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
}

// TestBudgetOverTime: a budget of 50,000 a day over 30 days at ten times the demand.
func TestBudgetOverTime(t *testing.T) {
	r := run(t, parse(t, `
kuji: 1
zone: Asia/Tokyo
items: {cash: {}}
pools:
  splash:
    starts: 2026-07-01T00:00:00+09:00
    ends: 2026-07-31T00:00:00+09:00
    budget: {per: day, of: {cash: 50000}, share: summer}
    entries:
      - {id: prize, weight: 50, reward: {items: {cash: {min: 50, max: 150}}}}
      - {id: blank, weight: 50}
`), simulate.Config{Pool: "splash", Players: 3000, Draws: 100, Count: 1, Seed: 1, Rate: 300_000.0 / 30 / 24})
	b := r.Stock.Budgets[0]
	want := simulate.BudgetUse{Pool: "splash", Per: "day", Share: "summer", Item: "cash", Limit: 50_000, Spans: 30, Full: 30, Spent: b.Spent, Most: b.Most}
	if b != want || b.Most > 50_000 || b.Spent > 30*50_000 || b.Spent < 30*(50_000-150) || r.Given[0].Total != b.Spent {
		t.Errorf("%+v, given %+v", b, r.Given)
	}
	// Without the budget a draw gives 50 on average, 500,000 a day. So it lasts for a tenth of a day.
	low, samples := 0, 0
	for _, m := range r.Stock.Samples {
		if day := *m.Days - math.Floor(*m.Days); day > 0.12 {
			if samples++; m.Spent[0] < 50_000-150 {
				low++
			}
		}
		if m.Spent[0] > 50_000 {
			t.Fatalf("%+v", m)
		}
	}
	if low > 0 || samples < 100 {
		t.Errorf("%d of %d samples have something left", low, samples)
	}
}

// TestMomentsOverTime: even moments are taken one by one while time passes; without time none comes.
func TestMomentsOverTime(t *testing.T) {
	c := parse(t, `
kuji: 1
items: {console: {}}
pools:
  splash:
    starts: 2026-07-01T00:00:00Z
    ends: 2026-07-11T00:00:00Z
    entries: [{id: console, moments: {count: 10, spread: even}, reward: {items: {console: 1}}}, {id: blank, weight: 1}]
`)
	config := simulate.Config{Pool: "splash", Players: 240, Draws: 100, Count: 1, Seed: 1, Rate: 100}
	r := run(t, c, config)
	if e := r.Stock.Entries[0]; e.Left != 0 || e.Gone == nil || math.Abs(*e.Gone.Days-9.5) > 0.01 || odds(t, r, "splash", "console").Taken != 10 {
		t.Errorf("%+v", r.Stock.Entries)
	}
	for _, m := range r.Stock.Samples {
		if want := 10 - math.Floor(*m.Days+0.5); math.Abs(float64(m.Left[0])-want) > 1 {
			t.Errorf("%v left after %v days, want %v", m.Left, *m.Days, want)
		}
	}
	config.Rate = 0
	if r := run(t, c, config); odds(t, r, "splash", "console").Taken != 0 {
		t.Errorf("without time: %+v", r.Odds)
	}
}

const coupons = `
kuji: 1
items: {gem: {}}
pools:
  splash: {entries: [{id: through, weight: 1, reward: {pool: inner, times: 2}}, {id: blank, weight: 1}]}
  inner: {internal: true, entries: [{id: coupon, weight: 1, reward: [{code: ten-percent}, {code: keys}]}, {id: blank, weight: 3}]}
`

// TestCodes: lists have as many codes as are asked for, or as many as there are said to be.
func TestCodes(t *testing.T) {
	config := simulate.Config{Pool: "splash", Players: 200, Draws: 100, Count: 10, Seed: 1}
	r := run(t, parse(t, coupons), config)
	taken := odds(t, r, "inner", "coupon").Taken // 1/4 a draw
	if r.Stock != nil || taken < 4500 || taken > 5500 || len(r.Codes) != 2 || r.Codes[0] != (simulate.Codes{List: "ten-percent", Given: taken}) || r.Codes[1] != (simulate.Codes{List: "keys", Given: taken}) {
		t.Errorf("%d taken: %+v", taken, r.Codes)
	}
	config.Codes, config.Rate = map[string]int64{"keys": 1000}, 100
	r = run(t, parse(t, coupons), config)
	if n := odds(t, r, "inner", "coupon").Taken; n != 1000 || r.Codes[0].Given != n || r.Codes[0].Of != nil {
		t.Errorf("%d of 1000 codes taken: %+v", n, r.Codes)
	}
	keys := r.Codes[1] // gone after 4000 draws, in 40 hours
	if keys.Given != 1000 || *keys.Of != 1000 || keys.Gone == nil || math.Abs(float64(keys.Gone.Draws)-4000) > 600 || math.Abs(*keys.Gone.Days-float64(keys.Gone.Draws)/2400) > 0.01 {
		t.Errorf("%+v", keys)
	}
	last := r.Stock.Samples[len(r.Stock.Samples)-1]
	if r.Stock.Lists[0] != "keys" || last.Codes[0] != 0 || r.Stock.Samples[0].Codes[0] != 1000 {
		t.Errorf("%v, from %+v to %+v", r.Stock.Lists, r.Stock.Samples[0], last)
	}
	config.Independent = true
	r = run(t, parse(t, coupons), config)
	if n := odds(t, r, "inner", "coupon").Taken; n < 4500 || n > 5500 || r.StockOf != "each" || r.Stock != nil {
		t.Errorf("with lists of one's own %d are taken: %s", n, r.StockOf)
	}
	for list, n := range map[string]int64{"keys": 0, "ten-percent": simulate.MaxCodes + 1, "others": 5} {
		config.Codes = map[string]int64{list: n}
		_, err := simulate.Run(t.Context(), parse(t, coupons), config)
		if bad, ok := errors.AsType[*simulate.ConfigError](err); !ok || bad.Field != "codes" {
			t.Errorf("%s=%d: %v", list, n, err)
		}
	}
}

// TestDays counts the days of the whole time, also those on which nothing was spent.
func TestDays(t *testing.T) {
	r := run(t, parse(t, `
kuji: 1
items: {cash: {}}
pools:
  p:
    starts: 2026-07-01T00:00:00Z
    ends: 2026-08-01T00:00:00Z
    budget: {per: day, of: {cash: 1}}
    entries:
      - {id: prize, weight: 1, reward: {items: {cash: 1}}}
      - {id: blank, weight: 19}
`), simulate.Config{Pool: "p", Players: 60, Draws: 5, Count: 1, Seed: 1, Rate: 10.0 / 24}) // ten draws a day, for 30 days
	if b := r.Stock.Budgets[0]; b.Spans != 30 || b.Full == 0 || b.Full >= 30 || b.Full != b.Spent {
		t.Errorf("%+v", b)
	}
}

// TestLongRun compares with what pity gives in the long run, and with what a guarantee gives in requests.
func TestLongRun(t *testing.T) {
	const entries = `entries: [{id: five, weight: 1}, {id: four, weight: 4}, {id: z, weight: 15}]`
	for name, c := range map[string]struct {
		pool  string
		count int
		want  float64 // of five; 0: none is known
	}{
		"pity":            {`pity: {five: {certain: 2}}, ` + entries, 1, 20.0 / 39},
		"pity in tens":    {`pity: {five: {certain: 2}}, ` + entries, 10, 20.0 / 39},
		"a guarantee":     {`guarantee: [{draws: 2, of: [five, four]}], ` + entries, 2, (0.05 + 0.05 + 0.75*(0.2-0.05)) / 2},
		"one at a time":   {`guarantee: [{draws: 2, of: [five, four]}], ` + entries, 1, 0.05},
		"both":            {`pity: {five: {certain: 2}}, guarantee: [{draws: 2, of: [five, four]}], ` + entries, 2, 0},
		"nothing changes": {entries, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, parse(t, `{kuji: 1, items: {gem: {}}, pools: {p: {`+c.pool+`}}}`), simulate.Config{Pool: "p", Players: 200, Draws: 100, Count: c.count, Seed: 1})
			o := odds(t, r, "p", "five")
			switch {
			case c.want == 0:
				if o.LongRun != nil {
					t.Errorf("%v in the long run", *o.LongRun)
				}
			case o.LongRun == nil || math.Abs(*o.LongRun-c.want) > 1e-12:
				t.Errorf("%+v (%s), want %v in the long run", o, r.NoLongRun, c.want)
			case math.Abs(o.Seen-c.want) > 0.01:
				t.Errorf("%v seen, want %v", o.Seen, c.want)
			}
		})
	}
}

// TestItemsThatLast: what a player got goes before the player's next request.
func TestItemsThatLast(t *testing.T) {
	c := parse(t, `{kuji: 1, items: {buff: {lasts: 30m}}, pools: {p: {entries: [
		{id: buff, weight: 99, when: {lacks: [buff]}, reward: {items: {buff: 1}}}, {id: rest, weight: 1}]}}}`)
	for rate, least := range map[float64]uint64{1: 180, 100: 0} { // draws an hour
		taken := odds(t, run(t, c, simulate.Config{Pool: "p", Players: 2, Draws: 100, Count: 1, Seed: 1, Rate: 2 * rate}), "p", "buff").Taken
		if taken < least || least == 0 && taken > 20 {
			t.Errorf("at %v draws an hour of each player, the buff came %d times in 200 draws", rate, taken)
		}
	}
}
