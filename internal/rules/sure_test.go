package rules_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// stocks is what is left of everything: a byte for each limited entry, by pool and entry, and one
// for each pool's refills. As a string it is a key of maps.
type stocks string

// adversary knows everything that draws from a tiny catalog can come to, whatever is chosen.
type adversary struct{ c *catalog.Catalog }

func (a adversary) pool(id string) int {
	for i := range a.c.Pools {
		if a.c.Pools[i].ID == id {
			return i
		}
	}
	panic(id)
}

const stride = mixedEntries + 1 // of a pool in stocks

func (a adversary) full() stocks {
	s := make([]byte, stride*len(a.c.Pools))
	for i := range a.c.Pools {
		a.fill(s, i)
		s[i*stride+mixedEntries] = byte(a.c.Pools[i].Refill)
	}
	return stocks(s)
}

func (a adversary) fill(s []byte, pool int) {
	for e := range a.c.Pools[pool].Entries {
		s[pool*stride+e] = byte(a.c.Pools[pool].Entries[e].Stock.Count)
	}
}

// live reports whether an entry can be drawn.
func (a adversary) live(s stocks, pool, entry int) bool {
	p := &a.c.Pools[pool]
	e := &p.Entries[entry]
	if p.Mode == catalog.ModeWeighted && e.Weight == 0 || !e.Stock.Unlimited && s[pool*stride+entry] == 0 {
		return false
	}
	if in := e.Reward.Draws; len(in) == 1 && in[0].Max == 1 {
		return a.has(s, a.pool(in[0].Pool))
	}
	return true
}

func (a adversary) has(s stocks, pool int) bool {
	for e := range a.c.Pools[pool].Entries {
		if a.live(s, pool, e) {
			return true
		}
	}
	return false
}

// after returns all that can be left after n draws of one entry each, nil if one can find nothing.
func (a adversary) after(from map[stocks]bool, pool, n int) map[stocks]bool {
	for range n {
		to := map[stocks]bool{}
		for s := range from {
			if !a.has(s, pool) {
				return nil
			}
			for e := range a.c.Pools[pool].Entries {
				if !a.live(s, pool, e) {
					continue
				}
				given := a.taken(s, pool, e)
				if given == nil {
					return nil
				}
				for s := range given {
					to[s] = true
				}
			}
		}
		from = to
	}
	return from
}

// taken returns all that can be left after an entry was taken.
func (a adversary) taken(s stocks, pool, entry int) map[stocks]bool {
	p := &a.c.Pools[pool]
	e := &p.Entries[entry]
	if !e.Stock.Unlimited {
		b := []byte(s)
		b[pool*stride+entry]--
		s = stocks(b)
	}
	given := a.given(map[stocks]bool{s: true}, &e.Reward)
	if p.Mode != catalog.ModeRaffle || given == nil {
		return given
	}
	all := map[stocks]bool{}
	for s := range given {
		if a.has(s, pool) {
			all[s] = true
			continue
		}
		last := a.given(map[stocks]bool{s: true}, &p.Last)
		if last == nil {
			return nil
		}
		for s := range last {
			b := []byte(s)
			if left := &b[pool*stride+mixedEntries]; *left > 0 {
				*left--
				a.fill(b, pool)
			}
			all[stocks(b)] = true
		}
	}
	return all
}

func (a adversary) given(from map[stocks]bool, w *catalog.Reward) map[stocks]bool {
	for _, in := range w.Draws {
		pool, all := a.pool(in.Pool), map[stocks]bool{}
		rolls := a.c.Pools[pool].Rolls
		for n := in.Min * rolls.Min; n <= in.Max*rolls.Max; n++ {
			some := a.after(from, pool, int(n))
			if some == nil {
				return nil
			}
			for s := range some {
				all[s] = true
			}
		}
		from = all
	}
	return from
}

// TestSure: a draw is in stock only if it is whatever is chosen.
func TestSure(t *testing.T) {
	inStock, soldOut, over := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		c := tinyCatalog(seeded(rapid.Uint64().Draw(rt, "seed")))
		a, r := adversary{c}, newRealm(rt, 1)
		r.force(c)
		for i := range c.Pools {
			for n := 1; n <= 4; n++ {
				cmd := draw("ann", c.Pools[i].ID, n)
				status, _ := r.decide(&cmd, r.src)
				r.rules.Reset(r.rules.Tables()) // what was decided is never applied
				all := a.after(map[stocks]bool{a.full(): true}, i, n*int(c.Pools[i].Rolls.Max))
				switch {
				case status == rules.OK && all == nil:
					rt.Fatalf("%d draws from %s can fail, in %+v", n, c.Pools[i].ID, c.Pools)
				case status == rules.OK:
					inStock++
				case all == nil:
					soldOut++
				default:
					over++ // allowed where branches share stock
				}
			}
		}
	})
	t.Logf("%d in stock, %d sold out, %d refused that would have found stock", inStock, soldOut, over)
	if over > soldOut/20 {
		t.Error("more is refused than the theory's simplicity is worth")
	}
}

// tinyCatalog draws a catalog with so little in stock that all can be tried.
func tinyCatalog(pick picker) *catalog.Catalog {
	c := &catalog.Catalog{Idempotency: catalog.Idempotency{Count: 1 << 20, Age: catalog.DefaultIdempotencyAge}}
	c.Items = append(c.Items, catalog.Item{ID: "gem", Kind: catalog.KindItem})
	pools := 3 + pick("pools", 2)
	for len(c.Pools) < pools {
		with := *c
		with.Pools = append([]catalog.Pool{tinyPool(pick, pools-1-len(c.Pools), c.Pools)}, c.Pools...)
		if with.Check() == nil {
			c = &with
		}
	}
	return c
}

func tinyPool(pick picker, i int, below []catalog.Pool) catalog.Pool {
	p := catalog.Pool{ID: fmt.Sprint("p", i), MaxCount: catalog.DefaultMaxCount, WeightScale: 1, Rolls: catalog.Rolls{Min: 1, Max: 1},
		Mode: []catalog.Mode{catalog.ModeWeighted, catalog.ModeWeighted, catalog.ModeRaffle}[pick("mode", 3)]}
	if pick.one("rolls", 6) {
		p.Rolls.Max = 2
	}
	for n := range 1 + pick("entries", 3) {
		e := catalog.Entry{ID: fmt.Sprint("e", n), Reward: tinyReward(pick, below)}
		if p.Mode == catalog.ModeWeighted {
			e.Weight, e.Stock.Unlimited = 1, pick.one("unlimited", 3)
		}
		if !e.Stock.Unlimited {
			e.Stock.Count = uint64(pick("stock", 4))
		}
		p.Entries = append(p.Entries, e)
	}
	if p.Mode == catalog.ModeRaffle {
		if pick.one("last", 3) {
			p.Last = tinyReward(pick, below)
		}
		p.Refill = uint32(pick("refill", 6) / 4)
	}
	return p
}

func tinyReward(pick picker, below []catalog.Pool) (w catalog.Reward) {
	for i := range below {
		if pick.one("lead to it", 2) {
			in := catalog.Inner{Pool: below[i].ID, Min: 1, Max: 1}
			if pick.one("times", 4) {
				in.Max = 2
			}
			w.Draws = append(w.Draws, in)
			if pick.one("enough", 2) {
				break
			}
		}
	}
	return w
}
