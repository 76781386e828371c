package economy

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// TestStagedIsPutInForce: what was computed beside commands is what is put in force, and
// nothing in place of it, unless something can have been drawn of which it does not know.
func TestStagedIsPutInForce(t *testing.T) {
	const yaml = `{kuji: 1, name: v%d, items: {gem: {}}, pools: {one: {entries: [{id: a, weight: %d, stock: 50}, {id: b, weight: 1}]}, two: {entries: [{id: a, weight: 1}]}}}`
	w := newWindow(t, fmt.Sprintf(yaml, 1, 1))
	one := w.pools[w.poolNum["one"]]
	draw := Command{Kind: KindDraw, Player: "ann", Pool: "one", Count: 1}
	stage := func(p *Prepared) {
		if !w.Watch(p) {
			t.Fatal("the catalog is said to change no pool")
		}
		w.Stage(p)
	}
	for i, c := range []struct {
		name      string
		meanwhile func(p *Prepared)
		kept      bool
	}{
		{"staged", stage, true},
		{"drawn from since", func(p *Prepared) { stage(p); w.do(draw) }, true},
		{"given up and begun again", func(p *Prepared) { stage(p); w.Unwatch(); w.do(draw); stage(p) }, true},
		{"given up", func(p *Prepared) { stage(p); w.Unwatch(); w.do(draw) }, false},
		{"overtaken by another's", func(p *Prepared) {
			stage(p)
			other, err := w.Prepare(parseCatalog(t, fmt.Sprintf(yaml, 99, 99)))
			if err != nil {
				t.Fatal(err)
			}
			w.do(draw)
			stage(other)
		}, false},
		{"not watched", func(p *Prepared) { w.Stage(p); w.do(draw) }, false},
		{"nothing", func(p *Prepared) { w.do(draw) }, false},
	} {
		var p *Prepared
		var made *staged
		w.putWith(fmt.Sprintf(yaml, i+2, i+2), false, func(prepared *Prepared) {
			p = prepared
			c.meanwhile(p)
			made = p.staged
		})
		if kept := made != nil && made.next.pools[0].sampler == one.sampler; kept != c.kept {
			t.Errorf("%s: what was computed is put in force: %v, want %v", c.name, kept, c.kept)
		}
		if w.watch != nil {
			t.Errorf("%s: draws are still put down", c.name)
		}
		if err := w.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// Of a catalog that another overtakes, which changes other pools, nothing counts.
	overtaken, err := w.Prepare(parseCatalog(t, fmt.Sprintf(yaml, 98, 98)))
	if err != nil {
		t.Fatal(err)
	}
	w.putWith(strings.Replace(fmt.Sprintf(yaml, 97, 8), "two: {", "three: {entries: [{id: a, weight: 1}]}, two: {", 1), false, func(*Prepared) {
		stage(overtaken)
		w.do(draw)
	})
	if w.Watch(overtaken) || w.watch != nil {
		t.Error("a catalog is watched for that is based on another than the one in force")
	}
	w.put(fmt.Sprintf(yaml, 99, 8))
	w.putWith(fmt.Sprintf(yaml, 100, 8), false, func(p *Prepared) {
		if w.Watch(p) || w.watch != nil {
			t.Error("a catalog is said to change pools of which it changes the name alone")
		}
	})
}

func parseCatalog(t *testing.T, yaml string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLagsBounded: what is left to catch up with under the realm's lock does not depend on how much is drawn
// while a catalog is made ready.
func TestLagsBounded(t *testing.T) {
	const yaml = `{kuji: 1, items: {gem: {}}, pools: {one: {entries: [{id: a, weight: %d}, {id: z, weight: 0, reward: {pool: last}}]}, two: {entries: [{id: a, weight: 1}]}, last: {entries: [{id: a, weight: 1, stock: 1}]}}}`
	w := newWindow(t, fmt.Sprintf(yaml, 1))
	draws := func(pool string, n int) {
		for range n {
			w.do(Command{Kind: KindDraw, Player: "ann", Pool: pool, Count: 1})
		}
	}
	w.putWith(fmt.Sprintf(yaml, 2), true, func(p *Prepared) {
		draws("two", 2*fewSince)
		draws("one", fewSince)
		if w.Lags(p) {
			t.Error("few draws are too many, or those from pools that stay as they are count")
		}
		draws("one", 1)
		if !w.Lags(p) {
			t.Error("many draws are few")
		}
		p.CatchUp()
		draws("one", watchChunk+1)
		if !w.Lags(p) {
			t.Error("what is in full chunks does not count")
		}
		draws("one", 5*watchChunk)
		p.CatchUp()
		w.Lags(p)
		p.CatchUp()
		draws("last", 1)
		if !w.Lags(p) {
			t.Error("the end of a pool, to which many entries may lead, is taken for little")
		}
		p.CatchUp()
		if taken := &p.staged.taken; len(taken.full)+len(taken.drawn)+len(taken.died) > 0 {
			t.Error("what was caught up with is caught up with again")
		}
		draws("one", 10)
		if w.Lags(p) || len(w.watch.drawn) != 10 {
			t.Errorf("%d draws are left to catch up with, want 10", len(w.watch.drawn))
		}
	})
	if err := w.Check(); err != nil {
		t.Error(err)
	}
	if got := w.pools[0].drawn[0]; got != fewSince+12+6*watchChunk {
		t.Errorf("%d are drawn, want %d", got, fewSince+12+6*watchChunk)
	}
}

// TestPlannerBounded: what a plan takes under the realm's lock does not depend on how many entries there are.
func TestPlannerBounded(t *testing.T) {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "{id: e%d, weight: 1, stock: 5}, ", i)
	}
	w := newWindow(t, fmt.Sprintf("{kuji: 1, items: {gem: {}}, pools: {one: {entries: [%s]}}}", b.String()))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := w.Planner()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 20_000 {
		t.Errorf("%d bytes are allocated, want at most two for an entry", n)
	}
	if plan, err := p.Plan(w.current.catalog); err != nil || !plan.Unchanged {
		t.Errorf("the catalog in force: %+v, %v", plan, err)
	}
}

// TestWatchBounded: draws are not put down for ever for a catalog that is never put in force, and
// of one that comes late nothing is amiss.
func TestWatchBounded(t *testing.T) {
	const yaml = `{kuji: 1, items: {gem: {}}, pools: {one: {entries: [{id: a, weight: %d, stock: 9}]}}}`
	w := newWindow(t, fmt.Sprintf(yaml, 1))
	w.putWith(fmt.Sprintf(yaml, 2), true, func(p *Prepared) {
		watch := w.watch
		w.do(Command{Kind: KindDraw, Player: "ann", Pool: "one", Count: 4})
		for n := 0; w.watch != nil; n++ {
			if n > mostChunks*watchChunk {
				t.Fatalf("%d draws are put down", n)
			}
			w.putDown(0, 0, 4)
		}
		w.do(Command{Kind: KindDraw, Player: "ann", Pool: "one", Count: 3})
		if len(watch.full) != mostChunks {
			t.Errorf("%d chunks are full, want %d", len(watch.full), mostChunks)
		}
		for range 3 {
			if w.Lags(p) {
				p.CatchUp()
			}
		}
	})
	if got := w.pools[0].left[0]; got != 2 {
		t.Errorf("%d are left, want 2", got)
	}
	if err := w.Check(); err != nil {
		t.Error(err)
	}
}

// TestCountersBesideCommonDraws copies a pool's counters while draws of the commonest kind go on: of an
// entry, what is left and what was drawn are as of one moment. How many draws come while they are copied is
// chance; on one processor there may be none.
func TestCountersBesideCommonDraws(t *testing.T) {
	const stock, entries, copies = uint64(1 << 40), partEntries, 500
	var b strings.Builder
	for i := range entries {
		fmt.Fprintf(&b, "{id: e%d, stock: %d, reward: {items: {gem: 1}}}, ", i, stock)
	}
	w := newWindow(t, fmt.Sprintf("{kuji: 1, items: {gem: {}}, start: {gem: 1}, pools: {one: {mode: raffle, entries: [%s]}}}", b.String()))
	w.do(Command{Kind: KindDraw, Player: "ann", Pool: "one", Count: 1}) // who is known from now on
	first := w.pos
	var over atomic.Bool
	var draws atomic.Uint64
	var writer sync.WaitGroup
	writer.Go(func() {
		for pos := first + 1; !over.Load(); pos++ {
			draws.Add(1)
			if _, _, ok, err := w.DrawPlain(&Draw{Player: "ann", Pool: "one"}, w.HashIDs("", "ann"), w.src, &At{Position: pos, Time: w.at}, nil); !ok || err != nil {
				t.Errorf("the draw at %d is not plain: %v", pos, err)
				return
			}
		}
	})
	defer writer.Wait()
	defer over.Store(true)
	drawn, left := make([]uint64, entries), make([]uint64, entries)
	for range copies {
		for before := draws.Load(); draws.Load() == before && !t.Failed(); {
			runtime.Gosched()
		}
		w.pools[0].copyCounters(drawn, left)
		for num, n := range drawn {
			if left[num] != stock-n {
				t.Fatalf("entry %d: %d drawn and %d left of %d", num, n, left[num], stock)
			}
		}
	}
}

// TestStageBesideCommands makes catalogs ready and plans them while others draw and read.
func TestStageBesideCommands(t *testing.T) {
	const entries, versions = 3 * partEntries, 6
	yaml := func(version int) *catalog.Catalog {
		var b strings.Builder
		fmt.Fprintf(&b, "kuji: 1\nitems: {gem: {}}\npools:\n  small: {entries: [{id: a, weight: 1}]}\n  nested: {entries: [{id: a, weight: 1, stock: 40, reward: {items: {gem: 1}}}]}\n  large:\n    entries:\n    - {id: in, weight: 900, reward: {pool: nested}}\n")
		for _, pool := range []string{"", "  plain:\n    entries:\n"} {
			b.WriteString(pool)
			for i := range entries + version {
				fmt.Fprintf(&b, "    - {id: e%d, weight: %d, stock: %d, reward: {items: {gem: 1}}}\n", i, 1+(i+version)%5, 1+i%3)
			}
		}
		c, err := catalog.Parse([]byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	next := make([]*catalog.Catalog, versions)
	for i := range next {
		next[i] = yaml(i)
	}
	s, src, pos := New(), rand.NewPCG(1, 2), uint64(0)
	twin := New()
	for _, s := range []*State{s, twin} {
		if err := s.Ready(); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex // the realm's
	twice := func(raw []byte, at At) {
		var back Event
		if _, err := Decode(raw, &back); err != nil {
			t.Error(err)
		} else if err := twin.Apply(&back, raw, at); err != nil {
			t.Error(err)
		}
	}
	commit := func(ev *Event) {
		raw := AppendEvent(nil, ev)
		pos++
		at := At{Position: pos, Time: int64(pos)}
		if err := s.Apply(ev, raw, at); err != nil {
			t.Error(err)
		}
		twice(raw, at)
	}
	done := make(chan struct{})
	var others sync.WaitGroup
	begun := sync.OnceFunc(func() {
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				player, pool := fmt.Sprint("p", i%7), []string{"large", "plain", "plain", "nested", "small"}[i%5]
				mu.Lock()
				q := Draw{Player: player, Pool: pool, Count: 1}
				at := At{Position: pos + 1, Time: int64(pos + 1)}
				raw, _, ok, err := s.DrawPlain(&q, s.HashIDs("", player), src, &at, nil)
				if err != nil {
					t.Error(err)
				}
				if ok {
					pos++
					twice(raw, at)
				} else {
					commit(s.Decide(&Command{Kind: KindDraw, Player: player, Pool: pool, Count: 1}, int64(pos), src))
				}
				mu.Unlock()
			}
		})
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				v, ok := s.Pool([]string{"large", "plain"}[i%2])
				for _, e := range v.Entries {
					if ok && !e.Unlimited && e.Left+e.Drawn > 3 {
						t.Errorf("%s: %d left and %d drawn", e.ID, e.Left, e.Drawn)
						return
					}
				}
			}
		})
	})
	caughtUp := 0
	for i := range next {
		p, err := s.Prepare(next[i])
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		changes := s.Watch(p)
		mu.Unlock()
		if !changes {
			t.Fatal("a catalog is said to change no pool")
		}
		s.Stage(p)
		mu.Lock()
		for n := 0; n < 16 && s.Lags(p); n++ {
			mu.Unlock()
			p.CatchUp()
			caughtUp++
			mu.Lock()
		}
		ev, err := s.DecideCatalog(p)
		if err != nil {
			t.Fatal(err)
		}
		commit(ev)
		if err := s.Check(); err != nil {
			t.Errorf("catalog %d: %v", i, err)
		}
		if s.Hash() != twin.Hash() {
			t.Errorf("catalog %d: the state is not the one that its log gives", i)
		}
		mu.Unlock()
		begun()
		mu.Lock()
		planner := s.Planner()
		mu.Unlock()
		plan, err := planner.Plan(next[(i+1)%versions])
		if err != nil {
			t.Fatal(err)
		}
		planned := 0
		for _, ch := range plan.Changes {
			if ch.Entry == "" || ch.UnlimitedBefore || ch.Kind == ChangeEntryAdded {
				continue
			}
			if planned++; ch.LeftBefore+ch.Drawn != ch.StockBefore {
				t.Errorf("catalog %d is planned with %s/%s, of which there were %d, with %d left and %d drawn", i+1, ch.ID, ch.Entry, ch.StockBefore, ch.LeftBefore, ch.Drawn)
				break
			}
		}
		if planned < 2*entries {
			t.Errorf("catalog %d is planned with %d entries", i+1, planned)
		}
	}
	close(done)
	others.Wait()
	t.Logf("caught up %d times, as of position %d", caughtUp, pos)
}
