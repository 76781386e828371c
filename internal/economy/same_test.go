package economy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/sampler"
)

// Pools of which a catalog changes nothing that odds and stock depend on.

// TestSameKeepsSampler: a catalog holds up draws and readers of the pools that it changes,
// and of no others.
func TestSameKeepsSampler(t *testing.T) {
	const before = `{kuji: 1, name: v1, items: {gem: {kind: currency}, gold: {}}, pools: {
		alone: {entries: [{id: a, weight: 3, stock: 9, reward: {items: {gold: 2}}}, {id: b, weight: 1}]},
		below: {mode: raffle, entries: [{id: a, stock: 9, reward: {items: {gold: 2}}}, {id: b, stock: 90}]},
		above: {price: {gem: 1}, entries: [{id: in, weight: 2, reward: {pool: below}}, {id: out, weight: 1, stock: 7}]}}}`
	all := []string{"alone", "below", "above"}
	for name, c := range map[string]struct {
		from, to string
		changed  []string
	}{
		"a name":             {"name: v1", "name: v2", nil},
		"a price":            {"price: {gem: 1}", "price: {gem: 2}", nil},
		"a reward":           {"a, weight: 3, stock: 9, reward: {items: {gold: 2}}", "a, weight: 3, stock: 9, reward: {items: {gold: {min: 1, max: 4}}}", nil},
		"a limit":            {"price: {gem: 1}", "price: {gem: 1}, limits: [{per: day, draws: 3}]", nil},
		"an item more":       {"gold: {}", "gold: {}, iron: {}", nil},
		"a weight":           {"id: a, weight: 3", "id: a, weight: 4", []string{"alone"}},
		"an odd of none":     {"id: b, weight: 1", "id: b, weight: 0", []string{"alone"}},
		"a stock":            {"weight: 3, stock: 9", "weight: 3, stock: 8", []string{"alone"}},
		"a limit of a stock": {"weight: 3, stock: 9,", "weight: 3,", []string{"alone"}},
		"an entry more":      {"{id: b, weight: 1}", "{id: b, weight: 1}, {id: c, weight: 1}", []string{"alone"}},
		"an entry less":      {", {id: b, weight: 1}", "", []string{"alone"}},
		"an order":           {"{id: a, weight: 3, stock: 9, reward: {items: {gold: 2}}}, {id: b, weight: 1}", "{id: b, weight: 1}, {id: a, weight: 3, stock: 9, reward: {items: {gold: 2}}}", []string{"alone"}},
		"a mode":             {"alone: {entries: [{id: a, weight: 3, stock: 9, reward: {items: {gold: 2}}}, {id: b, weight: 1}]}", "alone: {mode: raffle, entries: [{id: a, stock: 9, reward: {items: {gold: 2}}}, {id: b, stock: 1}]}", []string{"alone"}},
		"what leads nowhere": {"reward: {pool: below}", "reward: nothing", []string{"above"}},
		"what is led to":     {"reward: {pool: below}", "reward: {pool: alone}", []string{"above"}},
		"what is below":      {"id: b, stock: 90", "id: b, stock: 91", []string{"below", "above"}},
		"a pool more":        {"alone: {", "another: {entries: [{id: a, weight: 1}]}, alone: {", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindow(t, before)
			for i := range 3 {
				w.do(Command{Kind: KindDraw, Player: "ann", Pool: all[i], Count: 1})
			}
			samplers := map[string]*sampler.Sampler{}
			for _, id := range all {
				samplers[id] = w.pools[w.poolNum[id]].sampler
			}
			after := strings.Replace(before, c.from, c.to, 1)
			if after == before {
				t.Fatal("nothing is changed")
			}
			held := w.heldPools[:cap(w.heldPools)]
			clear(held)
			w.put(after)
			held = w.heldPools[:cap(w.heldPools)]
			for _, id := range all {
				if got, want := slices.Contains(held, w.pools[w.poolNum[id]]), slices.Contains(c.changed, id); got != want {
					t.Errorf("pool %s: readers wait for the whole change: %v, want %v", id, got, want)
				}
				if kept, want := w.pools[w.poolNum[id]].sampler == samplers[id], !slices.Contains(c.changed, id); kept != want {
					t.Errorf("pool %s: the sampler is kept: %v, want %v", id, kept, want)
				}
				if v, ok := w.Pool(id); !ok || v.Last != w.pos {
					t.Errorf("pool %s changed at position %d, and says %d", id, w.pos, v.Last)
				}
			}
			if err := w.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSameOrAnew: after any catalogs, and draws between them and while they are made ready,
// the state is the one that everything computed anew gives, and that its log gives.
func TestSameOrAnew(t *testing.T) {
	kept, built := 0, 0
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 8))
		type entry struct {
			weight, stock int
			large         bool // there are maxCounted more
		}
		type pool struct {
			raffle, gone bool
			entries      []entry // weight -1: not there; stock -1: unlimited
			to           int     // the pool that the first entry leads to; 0: none
		}
		pools := make([]pool, 5)
		for i := range pools {
			pools[i].to = r.IntN(i + 1)
			for range 2 + r.IntN(3) {
				pools[i].entries = append(pools[i].entries, entry{weight: 1 + r.IntN(3), stock: r.IntN(6)})
			}
		}
		name := 0
		yaml := func() string {
			name++
			var b strings.Builder
			fmt.Fprintf(&b, "{kuji: 1, name: v%d, items: {gem: {}}, pools: {always: {entries: [{id: a, weight: 1}]}", name)
			for i, p := range pools {
				if p.gone {
					continue
				}
				mode := "weighted"
				if p.raffle {
					mode = "raffle"
				}
				fmt.Fprintf(&b, ", p%d: {mode: %s, entries: [", i+1, mode)
				zero := ", weight: 1" // of the one that keeps the catalog a good one
				if p.raffle {
					zero = ""
				}
				fmt.Fprintf(&b, "{id: z%s, stock: 2}", zero)
				for j, e := range p.entries {
					if e.weight < 0 && j > 0 {
						continue
					}
					fmt.Fprintf(&b, ", {id: e%d", j)
					if !p.raffle {
						fmt.Fprintf(&b, ", weight: %d", max(e.weight, 0))
					}
					stock := uint64(max(e.stock, 0))
					if e.large {
						stock += maxCounted
					}
					if p.raffle || e.large || e.stock >= 0 {
						fmt.Fprintf(&b, ", stock: %d", stock)
					}
					if j == 0 && p.to > 0 && !pools[p.to-1].gone {
						fmt.Fprintf(&b, ", reward: {pool: p%d}", p.to)
					}
					b.WriteString("}")
				}
				b.WriteString("]}")
			}
			b.WriteString("}}")
			return b.String()
		}
		first := yaml()
		w := newWindow(t, first)
		w.twin = newWindow(t, first).State
		draws := func(n int) {
			for i := range n {
				id := fmt.Sprint("p", 1+r.IntN(len(pools)))
				w.do(Command{Kind: KindDraw, Player: fmt.Sprint("player", i%3), Pool: id, Count: 1})
			}
		}
		for range 40 {
			for range 1 + r.IntN(3) {
				num := r.IntN(len(pools))
				p := &pools[num]
				e := &p.entries[r.IntN(len(p.entries))]
				switch r.IntN(9) {
				case 0:
					e.weight = r.IntN(4)
				case 1:
					e.weight = -1
				case 2:
					e.stock = r.IntN(9) - 1
				case 3:
					p.gone = !p.gone
				case 4:
					p.raffle = !p.raffle
				case 5:
					p.entries = append(p.entries, entry{weight: 1, stock: r.IntN(3)})
				case 6:
					p.to = r.IntN(num + 1)
				case 7:
					e.large = !e.large
				}
			}
			was := map[*poolState]*sampler.Sampler{}
			for _, ps := range w.pools {
				was[ps] = ps.sampler
			}
			staged := r.IntN(4) > 0
			w.putWith(yaml(), false, func(p *Prepared) {
				if staged && w.Watch(p) {
					draws(r.IntN(12))
					w.Stage(p)
				}
				for range r.IntN(3) {
					if draws(r.IntN(12)); p.staged != nil {
						p.take()
						draws(r.IntN(6))
						p.CatchUp()
					}
				}
				if draws(r.IntN(12)); p.staged != nil && r.IntN(4) == 0 {
					p.take() // and nobody catches up
					draws(r.IntN(6))
				}
			})
			for ps, smp := range was {
				if smp != nil && smp == ps.sampler {
					kept++
				} else if ps.sampler != nil {
					built++
				}
			}
			if err := w.Check(); err != nil {
				t.Fatalf("seed %d, catalog %d: %v", seed, name, err)
			}
			left := map[*poolState][]uint64{}
			for _, ps := range w.pools {
				left[ps] = slices.Clone(ps.left)
				w.restock(ps)
				if !slices.Equal(left[ps], ps.left) {
					t.Fatalf("seed %d, catalog %d, pool %s: %d are left, %d anew", seed, name, ps.id, left[ps], ps.left)
				}
				if pt := w.current.pool[ps.id]; pt != nil && ps.spent.Load() != (w.odds[pt.num].live == 0) {
					t.Fatalf("seed %d, catalog %d, pool %s: that it is spent is said to be %v", seed, name, ps.id, ps.spent.Load())
				}
				whole, _ := w.Pool(ps.id)
				if page, _ := w.PoolPage(ps.id, 0, 1); page.Total != whole.Total {
					t.Fatalf("seed %d, catalog %d, pool %s: the total weight is said to be %d, the sum is %d", seed, name, ps.id, page.Total, whole.Total)
				}
			}
			if w.Hash() != w.twin.Hash() {
				t.Fatalf("seed %d, catalog %d: the state is not the one that its log gives", seed, name)
			}
			draws(r.IntN(12))
			if err := w.Check(); err != nil {
				t.Fatalf("seed %d, after catalog %d: %v", seed, name, err)
			}
		}
	}
	if kept < 1000 || built < 1000 {
		t.Errorf("%d samplers were kept, %d built", kept, built)
	}
}
