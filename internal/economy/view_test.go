package economy_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/internal/economy"
)

// TestPoolPages: pages of a pool are what the whole pool shows, its total
// included, while draws empty pools, nested ones too, and catalogs change them.
func TestPoolPages(t *testing.T) {
	nested := func(stock int) string {
		return fmt.Sprintf(`{kuji: 1, items: {prize: {}}, pools: {
			top: {entries: [{id: a, weight: 9, reward: {pool: middle}}, {id: b, weight: 4, reward: {pool: bottom}}, {id: c, weight: 1}]},
			middle: {mode: raffle, entries: [{id: down, stock: 50, reward: {pool: bottom}}, {id: own, stock: 3, reward: {items: {prize: 2}}}]},
			bottom: {entries: [{id: x, weight: 1, stock: %d, reward: {items: {prize: 1}}}, {id: y, weight: 5, stock: 2, reward: {items: {prize: 1}}}]}}}`, stock)
	}
	m, r := newMachine(t, 1), rand.New(rand.NewPCG(1, 6))
	spent := 0
	for n := range 400 {
		if n%40 == 0 {
			m.apply(nested(3 + n/40))
		}
		m.do(economy.Command{Kind: economy.KindDraw, Player: "p", Pool: []string{"top", "middle", "bottom"}[r.IntN(3)], Count: 1})
		replaying := m.s
		if n%20 == 19 {
			replaying = m.replay() // keeps no samplers
		}
		for _, s := range []*economy.State{m.s, replaying} {
			for _, id := range []string{"top", "middle", "bottom"} {
				whole, _ := s.Pool(id)
				if whole.Total == 0 {
					spent++
				}
				pages := whole
				pages.Entries = nil
				for from := 0; from < 5; from += 2 {
					v, ok := s.PoolPage(id, from, 2)
					if !ok || v.Total != whole.Total || v.Last != whole.Last || v.Version != whole.Version || v.Config != whole.Config {
						t.Fatalf("after %d draws, page from %d of %s: %+v, the whole: %+v", n, from, id, v, whole)
					}
					pages.Entries = append(pages.Entries, v.Entries...)
				}
				if !reflect.DeepEqual(pages, whole) {
					t.Fatalf("after %d draws, pages of %s: %+v, the whole: %+v", n, id, pages, whole)
				}
			}
		}
	}
	if spent < 20 {
		t.Errorf("a pool was empty only %d times", spent)
	}
	if _, ok := m.s.PoolPage("nosuch", 0, 1); ok {
		t.Error("a page of a pool that is not there")
	}
}

// beside calls look over and over from two goroutines, each with its number, until
// look returns false or what beside returns is called, which waits for them.
func beside(look func(i int) bool) (stop func()) {
	over := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 2 {
		readers.Go(func() {
			for look(i) {
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	return func() {
		close(over)
		readers.Wait()
	}
}

// TestPoolPageBesideDraws: a page's total, its position and its entries are of the
// same moment.
func TestPoolPageBesideDraws(t *testing.T) {
	const entries, stock = 50, 100
	m := newMachine(t, 1)
	var y strings.Builder
	y.WriteString("kuji: 1\nitems: {a: {}}\npools:\n  up: {entries: [{id: x, weight: 7, reward: {pool: box}}, {id: y, weight: 1}]}\n  box:\n    mode: raffle\n    entries:\n")
	for i := range entries {
		fmt.Fprintf(&y, "      - {id: e%d, stock: %d, reward: {items: {a: 1}}}\n", i, stock)
	}
	m.apply(y.String())
	stop := beside(func(i int) bool {
		// Version 1 is in force from position 1, and each draw has a position of its own.
		v, _ := m.s.PoolPage("box", i*7, 5)
		if want := entries*stock - (v.Last - 1); v.Total != want || len(v.Entries) != 5 {
			t.Errorf("position %d: %d entries, total %d, want %d", v.Last, len(v.Entries), v.Total, want)
			return false
		}
		up, _ := m.s.PoolPage("up", 0, 1)
		if want := up.Entries[0].Weight + 1; up.Total != want {
			t.Errorf("position %d: weight %d, total %d, want %d", up.Last, up.Entries[0].Weight, up.Total, want)
			return false
		}
		return true
	})
	for range entries * stock {
		if ev := m.do(economy.Command{Kind: economy.KindDraw, Player: "p", Pool: "box", Count: 1}); ev.Status != economy.OK {
			t.Fatal(ev.Status)
		}
	}
	stop()
	if v, _ := m.s.PoolPage("up", 1, 1); v.Total != 1 {
		t.Errorf("when the box is empty, the total is %d, want 1", v.Total)
	}
}

// stockOf is a catalog of pools p0, p1 … with the same stock each.
func stockOf(pools, stock int) string {
	var y strings.Builder
	y.WriteString("kuji: 1\nitems: {a: {}}\npools:\n")
	for i := range pools {
		fmt.Fprintf(&y, "  p%d: {entries: [{id: x, weight: 1, stock: %d, reward: {items: {a: 1}}}]}\n", i, stock)
	}
	return y.String()
}

// TestCatalogBesideReaders: who sees a catalog sees every pool as the catalog
// makes it, and as of its position.
func TestCatalogBesideReaders(t *testing.T) {
	const pools, rounds = 100, 60
	m := newMachine(t, 1)
	stop := beside(func(i int) bool {
		v, ok := m.s.Pool(fmt.Sprint("p", pools-1-i))
		if ok && (v.Last != v.Version || v.Entries[0].Left != v.Version) { // version n is put in force at position n
			t.Errorf("version %d: %d left as of position %d", v.Version, v.Entries[0].Left, v.Last)
			return false
		}
		return true
	})
	for round := range rounds {
		m.apply(stockOf(pools, round+1))
	}
	stop()
}

// TestPoolBesideCommonDraws reads a pool while draws of the commonest kind go on, each
// at a position of its own. A pool that is one part is seen as of one moment: what was
// drawn is as much as there were positions. How many draws come while a view is copied
// is chance; on one processor there may be none.
func TestPoolBesideCommonDraws(t *testing.T) {
	const stock, part, enough = uint64(1 << 40), 4096, 30
	for _, tc := range []struct {
		mode    string
		limited bool
		entries int
	}{
		{"weighted", false, part},
		{"weighted", true, part},
		{"raffle", true, part},
		{"raffle", true, 2*part + 1},
	} {
		t.Run(fmt.Sprintf("%s/limited=%v/entries=%d", tc.mode, tc.limited, tc.entries), func(t *testing.T) {
			m := newMachine(t, 1)
			odds := "weight: 1"
			switch {
			case tc.mode == "raffle":
				odds = fmt.Sprint("stock: ", stock)
			case tc.limited:
				odds += fmt.Sprint(", stock: ", stock)
			}
			var y strings.Builder
			fmt.Fprintf(&y, "kuji: 1\nitems: {a: {}}\nstart: {a: 1}\npools:\n  p:\n    mode: %s\n    entries:\n", tc.mode)
			for i := range tc.entries {
				fmt.Fprintf(&y, "      - {id: e%d, %s, reward: {items: {a: 1}}}\n", i, odds)
			}
			m.apply(y.String())
			m.do(economy.Command{Kind: economy.KindDraw, Player: "somebody", Pool: "p", Count: 1}) // who is known from now on
			first, now := m.s.Position(), m.s.Now()
			var over atomic.Bool
			var writer sync.WaitGroup
			writer.Go(func() {
				src := rand.New(rand.NewPCG(1, 2))
				for pos := first + 1; !over.Load(); pos++ {
					if _, _, ok, err := m.s.DrawPlain(&economy.Draw{Player: "somebody", Pool: "p"}, m.s.HashIDs("", "somebody"), src, &economy.At{Position: pos, Time: now}, nil); !ok || err != nil {
						t.Errorf("the draw at %d is not plain: %v", pos, err)
						return
					}
				}
			})
			defer writer.Wait()
			defer over.Store(true)
			last := first
			for i, later := 0, 0; later < enough; i++ {
				if i == 100*enough {
					t.Fatalf("of %d views %d are later than the one before", i, later)
				}
				runtime.Gosched()
				n := tc.entries - i%2 // of a page the total is the pool's, not a sum
				v, _ := m.s.PoolPage("p", 0, n)
				if v.Last > last {
					later++
				}
				last = v.Last
				drawn := uint64(0)
				for _, e := range v.Entries {
					drawn += e.Drawn
					if tc.limited && e.Left != stock-e.Drawn {
						t.Fatalf("%s: %d drawn and %d left of %d", e.ID, e.Drawn, e.Left, stock)
					}
				}
				positions, whole, total := v.Last-first+1, n == tc.entries, uint64(tc.entries)
				if tc.mode == "raffle" {
					total *= stock
					if whole {
						total -= drawn
					} else {
						total -= positions
					}
				}
				if len(v.Entries) != n || v.Total != total {
					t.Fatalf("%d entries, want %d; a total weight of %d as of position %d, want %d", len(v.Entries), n, v.Total, v.Last, total)
				}
				if whole && n <= part && drawn != positions {
					t.Fatalf("%d drawn as of position %d, want %d", drawn, v.Last, positions)
				}
			}
		})
	}
}

// TestCatalogWaitsForReaders: as long as anybody looks at a pool, wherever it stands
// among the others, a catalog is shown to nobody, and pools are held that it has changed.
func TestCatalogWaitsForReaders(t *testing.T) {
	const pools = 4
	for _, looked := range []int{pools - 1, 1} {
		m := newMachine(t, 1)
		m.apply(stockOf(pools, 1))
		next := m.catalog(stockOf(pools, 2), true)
		release := m.s.HoldPool(fmt.Sprint("p", looked))
		var over atomic.Bool
		var writer sync.WaitGroup
		writer.Go(func() {
			m.commit(next)
			over.Store(true)
		})
		for i := 0; !m.s.PoolHeld(0) && !over.Load() && i < 1e7; i++ {
			runtime.Gosched()
		}
		// From here on the writer has begun with the pools, and cannot end.
		if over.Load() || !m.s.PoolHeld(0) {
			t.Errorf("p%d is being read: the catalog does not wait for it, or lets p0 go before", looked)
		}
		if v := m.s.Catalog().Version; v != 1 {
			t.Errorf("p%d is being read: version %d is shown", looked, v)
		}
		release()
		writer.Wait()
		if v, ok := m.s.Pool("p0"); !ok || v.Version != 2 || v.Entries[0].Left != 2 || v.Last != 2 {
			t.Errorf("afterwards: %+v", v)
		}
	}
}

// TestCatalogWaitsForReadersOfTheSame: a pool that a catalog leaves as it is says that it
// changed before the catalog is shown, or who read it then would not wait for the catalog.
func TestCatalogWaitsForReadersOfTheSame(t *testing.T) {
	m := newMachine(t, 1)
	const yaml = "{kuji: 1, items: {a: {}}, pools: {p0: {entries: [{id: e, weight: 1, stock: %d}]}, p1: {entries: [{id: e, weight: 1}]}}}"
	m.apply(fmt.Sprintf(yaml, 1))
	release := m.s.HoldPool("p1")
	var writer sync.WaitGroup
	writer.Go(func() { m.apply(fmt.Sprintf(yaml, 2)) })
	for i := 0; !m.s.PoolHeld(0) && i < 1e7; i++ {
		runtime.Gosched()
	}
	for i := 0; m.s.Catalog().Version == 1 && i < 1e5; i++ { // it can go as far as it may
		runtime.Gosched()
	}
	if v := m.s.Catalog().Version; v != 1 {
		t.Errorf("p1 is being read: version %d is shown", v)
	}
	release()
	writer.Wait()
	if v, ok := m.s.Pool("p1"); !ok || v.Version != 2 || v.Last != 2 {
		t.Errorf("afterwards: %+v", v)
	}
}

// BenchmarkPoolPage reads a page of 1,000 entries of a pool, by the pool's size.
func BenchmarkPoolPage(b *testing.B) {
	for _, n := range []int{1_000, 30_000} {
		m := newMachine(b, 1)
		var y strings.Builder
		y.WriteString("kuji: 1\nitems: {a: {}}\npools:\n  p:\n    entries:\n")
		for i := range n {
			fmt.Fprintf(&y, "      - {id: e%d, weight: 1, reward: {items: {a: 1}}}\n", i)
		}
		m.apply(y.String())
		b.Run(fmt.Sprint("entries=", n), func(b *testing.B) {
			for range b.N {
				if v, ok := m.s.PoolPage("p", n-1000, 1000); !ok || v.Total != uint64(n) {
					b.Fatal(v.Total)
				}
			}
		})
	}
}
