package rules_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

const mixedPools, mixedEntries = 6, 5

var mixedItems = []string{"gem", "key", "card", "clover"}

// mixedCatalog draws a catalog in which every rule meets every other, with so little in stock that
// all of it runs out. A pool leads to those behind it. What the catalog's check refuses is drawn
// again.
func mixedCatalog(pick picker, name int) *catalog.Catalog {
	c := &catalog.Catalog{Name: fmt.Sprint("v", name), Idempotency: catalog.Idempotency{Count: 1 << 20, Age: catalog.DefaultIdempotencyAge}}
	for _, id := range mixedItems {
		c.Items = append(c.Items, catalog.Item{ID: id, Kind: catalog.KindItem})
	}
	c.Start = []catalog.Stack{of("gem", 1+uint64(pick("gems", 60)))}
	c.Counters = mixedCounters(pick)
	for i := mixedPools - 1; i >= 0; i-- {
		for try := 0; ; try++ {
			p := mixedPool(pick, i, c.Pools)
			if try == 20 { // it is there, at least
				p = catalog.Pool{ID: p.ID, Mode: catalog.ModeWeighted, Rolls: catalog.Rolls{Min: 1, Max: 1}, MaxCount: 100, WeightScale: 1,
					Entries: []catalog.Entry{{ID: "e0", Weight: 1, Stock: catalog.Stock{Unlimited: true}}}}
			}
			with := *c
			with.Pools = append([]catalog.Pool{p}, c.Pools...)
			if with.Check() == nil {
				c = &with
				break
			}
		}
	}
	for i := range c.Counters {
		mixedFacts(pick, c, &c.Counters[i].Of)
	}
	return c
}

// mixedCounters draws counters of every form. They count items that are gained or spent.
func mixedCounters(pick picker) (all []catalog.Counter) {
	for i := range 4 {
		c := catalog.Counter{ID: fmt.Sprint("c", i), For: catalog.ForPlayer, Per: catalog.Period{Per: []catalog.Per{catalog.PerForever, catalog.PerDay}[pick("per", 2)]}}
		if pick.one("of the realm", 4) {
			c.For = catalog.ForRealm
		}
		switch pick("form", 5) {
		case 0:
			c.Most = catalog.Most{Per: catalog.PerDay, Count: 1 + uint64(pick("most", 6))}
		case 1:
			c.Highest = true
		case 2:
			c.Distinct = 1 + uint32(pick("distinct", 4))
		case 3:
			c.Per, c.Streak = catalog.Period{Per: catalog.PerForever}, catalog.Streak{Per: catalog.PerDay}
		}
		c.Of.Gains = mixedItems[pick("gains", len(mixedItems)):]
		c.Of.Spends = mixedItems[:1+pick("spends", 2)]
		all = append(all, c)
	}
	return all
}

// mixedFacts makes a counter count draws and entries, too.
func mixedFacts(pick picker, c *catalog.Catalog, of *catalog.Facts) {
	for i := range c.Pools {
		p := &c.Pools[i]
		if !p.Internal && pick.one("draws", 3) {
			of.Draws = append(of.Draws, p.ID)
		}
		if pick.one("entries", 3) {
			of.Entries = append(of.Entries, p.ID+"/"+p.Entries[pick("entry", len(p.Entries))].ID)
		}
	}
}

// one is true once in n times.
func (pick picker) one(label string, n int) bool { return pick(label, n) == 0 }

func mixedPool(pick picker, i int, below []catalog.Pool) catalog.Pool {
	p := catalog.Pool{
		ID: fmt.Sprint("p", i), MaxCount: catalog.DefaultMaxCount, WeightScale: 1, Rolls: catalog.Rolls{Min: 1, Max: 1},
		Mode: []catalog.Mode{catalog.ModeWeighted, catalog.ModeWeighted, catalog.ModeRaffle, catalog.ModeEach}[pick("mode", 4)],
	}
	if pick.one("rolls", 3) {
		p.Rolls.Max = 1 + uint32(pick("max", 3))
		p.Rolls.Min = 1 + uint32(pick("min", int(p.Rolls.Max)))
		p.Rolls.Distinct = p.Mode == catalog.ModeWeighted && pick.one("distinct", 2)
	}
	if p.Mode != catalog.ModeEach && !p.Rolls.Distinct && pick.one("pity", 2) {
		mixedTracks(pick, &p)
	}
	collect := p.Mode == catalog.ModeWeighted && p.Rolls.Max == 1 && pick.one("collect", 8)
	for e := range mixedEntries {
		if e == 0 || !pick.one("entry is gone", 4) {
			p.Entries = append(p.Entries, mixedEntry(pick, &p, e, below, collect))
		}
	}
	if p.Mode == catalog.ModeRaffle {
		if pick.one("last", 2) {
			p.Last = mixedReward(pick, below)
		}
		p.Refill = uint32(pick("refill", 3))
	}
	if p.Internal = i > 0 && pick.one("internal", 9); p.Internal {
		return p
	}
	if pick.one("price", 2) {
		p.Price = [][]catalog.Stack{{of("gem", 1)}, {of("key", 1), of("gem", 1)}}[pick("no gems", 2):]
		if pick.one("free", 2) {
			p.Free = catalog.Free{Per: catalog.PerDay, Draws: 1 + uint64(pick("free", 3))}
		}
		if pick.one("bundle", 2) {
			p.Bundles = []catalog.Bundle{{Draws: 3, Price: []catalog.Stack{of("gem", 2)}}}
		}
	}
	if pick.one("limited", 4) {
		p.Limits = []catalog.PlayerLimit{{Per: catalog.PerDay, Draws: 1 + uint64(pick("limit", 9))}}
	}
	if pick.one("when", 6) {
		p.When = mixedCondition(pick, &p)
	}
	if p.Mode != catalog.ModeEach && p.Rolls.Max == 1 && pick.one("guarantee", 3) {
		for range 1 + pick("guarantees", 2) {
			p.Guarantees = append(p.Guarantees, catalog.Guarantee{Draws: 2 + uint32(pick("set", 3)), AtLeast: 1, Of: mixedGroup(pick)})
		}
	}
	return p
}

func mixedGroup(pick picker) []string {
	return [][]string{{"e0"}, {"e1"}, {"g"}, {"e0", "g"}, {"e2", "e3"}}[pick("group", 5)]
}

func mixedTracks(pick picker, p *catalog.Pool) {
	for k := range 1 + pick("tracks", 3) {
		t := catalog.Track{Name: fmt.Sprint("t", k), Of: mixedGroup(pick)}
		if pick.one("certain", 2) {
			t.Certain = 1 + uint32(pick("certain", 6))
		}
		if t.Certain == 0 || pick.one("rising", 2) {
			t.Rising = catalog.Rising{From: 1, By: []uint64{[]uint64{0, 125, 400, 1000}[pick("by", 4)]}, Scale: 10}
			if pick.one("table", 2) {
				t.Rising.By, t.Rising.Table = []uint64{0, 1000, 33}, true
			}
		}
		if pick.one("shared", 2) {
			t.Share = fmt.Sprint("s", k)
		}
		p.Tracks = append(p.Tracks, t)
	}
}

func mixedCondition(pick picker, p *catalog.Pool) (c catalog.Condition) {
	item := func() string { return mixedItems[pick("item", len(mixedItems))] }
	switch pick("condition", 5) {
	case 3:
		c.Counters = []catalog.Counted{{Counter: fmt.Sprint("c", pick("counter", 4)), Min: 1 + uint64(pick("least", 6)), Max: catalog.MaxCount}}
	case 4:
		c.Counters = []catalog.Counted{{Counter: fmt.Sprint("c", pick("counter", 4)), Max: uint64(pick("most", 6))}}
	case 0:
		c.Holds = []catalog.Stack{of(item(), 1+uint64(pick("holds", 3)))}
	case 1:
		c.Lacks = []string{item()}
	case 2:
		if len(p.Tracks) > 0 {
			c.Tracks = []catalog.Reached{{Track: "t0", Draws: 1 + uint64(pick("reached", 3))}}
		}
	}
	return c
}

func mixedEntry(pick picker, p *catalog.Pool, n int, below []catalog.Pool, collect bool) catalog.Entry {
	e := catalog.Entry{ID: fmt.Sprint("e", n)}
	if p.Mode != catalog.ModeRaffle {
		e.Weight = []uint64{1, 3, 7, 100, 0}[pick("weight", 5)]
		e.Stock.Unlimited = pick.one("unlimited", 3)
	}
	if !e.Stock.Unlimited {
		e.Stock.Count = uint64(pick("stock", 6))
	}
	if pick.one("in the group", 3) {
		e.Group = "g"
	}
	if collect {
		e.Unique, e.Reward.Items = true, []catalog.Quantity{{Item: mixedItems[n%len(mixedItems)], Min: 1, Max: 1}}
		return e
	}
	e.Reward = mixedReward(pick, below)
	if p.Mode == catalog.ModeRaffle {
		return e
	}
	switch pick("conditional", 8) {
	case 0:
		e.When = mixedCondition(pick, p)
	case 1:
		e.Unique = len(e.Reward.Items) > 0
	case 2:
		if p.Mode == catalog.ModeWeighted {
			e.Luck = catalog.Luck{Item: "clover", Steps: []catalog.LuckStep{{From: 1, Weight: 5}, {From: 3, Weight: 50}}}
			if pick.one("by a counter", 2) {
				e.Luck.Item, e.Luck.Counter = "", fmt.Sprint("c", pick("counter", 4))
			}
		}
	}
	return e
}

func mixedReward(pick picker, below []catalog.Pool) (w catalog.Reward) {
	if pick.one("items", 2) {
		w.Items = []catalog.Quantity{{Item: mixedItems[pick("item", len(mixedItems))], Min: 1, Max: 1 + uint64(pick("max", 3))}}
	}
	for i := range below {
		if pick.one("lead to it", 3) {
			in := catalog.Inner{Pool: below[i].ID, Min: 1, Max: 1}
			if pick.one("times", 3) {
				in.Max = 1 + uint32(pick("times", 3))
			}
			w.Draws = append(w.Draws, in)
		}
	}
	return w
}

func mixedCommand(pick picker) rules.Command {
	player := func() string { return fmt.Sprint("player-", pick("player", 3)) }
	body := func() rules.Command {
		item := of(mixedItems[pick("item", len(mixedItems))], 1+uint64(pick("quantity", 5)))
		switch pick("kind", 8) {
		case 0:
			return consume(player(), item)
		case 1:
			return grant(player(), item)
		}
		c := draw(player(), fmt.Sprint("p", pick("pool", mixedPools)), 1+pick("count", 7))
		if pick.one("pay", 8) {
			c.Pay = mixedItems[pick("item", len(mixedItems))]
		}
		return c
	}
	if !pick.one("group", 3) {
		return body()
	}
	c := rules.Command{Kind: rules.KindAtomic}
	for range 1 + pick("members", 4) {
		c.Members = append(c.Members, body())
	}
	return c
}

// wantSame checks that a command is decided the same by rules that are made anew, from a catalog
// read again: nothing that they remember, and no order of a map, changes a byte.
func wantSame(r *realm, cmd *rules.Command, seed uint64) {
	r.t.Helper()
	if status, _ := r.decide(cmd, rand.NewPCG(seed, 1)); status == rules.Refused {
		return
	}
	was := bytes.Clone(r.w.Buf)
	r.rules.Reset(r.rules.Tables()) // what was decided is never applied
	tables, err := rules.Load(r.state, r.state.Catalog())
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	w := store.Writer{}
	rules.New(r.state, tables).Decide(cmd, r.now, rand.NewPCG(seed, 1), &w)
	if !bytes.Equal(was, w.Buf) {
		r.t.Fatalf("%+v is decided as\n%x, by new rules as\n%x", cmd, was, w.Buf)
	}
}

// TestMixed lets all rules meet: no draw that has passed its checks fails while it chooses, whatever
// is chosen, the store accepts every effect, and what the rules remember agrees with the state.
func TestMixed(t *testing.T) {
	ended := map[rules.Status]int{}
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		mixed(rt, seeded(seed), seed, ended)
	})
	for _, s := range []rules.Status{rules.OK, rules.SoldOut, rules.LimitReached, rules.InsufficientItems, rules.NotEligible, rules.PriceNotOffered} {
		if ended[s] < 20 && !testing.Short() {
			t.Errorf("only %d commands ended %v: the test is too small", ended[s], s)
		}
	}
}

func mixed(t rapid.TB, pick picker, seed uint64, ended map[rules.Status]int) {
	r := newRealm(t, seed)
	for n := range 60 {
		if n%20 == 0 {
			r.force(mixedCatalog(pick, n))
		}
		r.now += int64(pick("time", 9_000_000))
		cmd := mixedCommand(pick)
		wantNoChoice(r, &cmd, n%8 == 0)
		if n%8 == 1 {
			wantSame(r, &cmd, seed)
		}
		ev := r.do(cmd)
		ended[rules.Status(ev.Status)]++
	}
	r.replay()
}
