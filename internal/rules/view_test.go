package rules_test

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/internal/look"
	"github.com/kuji-dev/kuji/internal/rules"
)

// TestPoolPages: pages of a pool are what the whole pool shows, its total included, while
// draws empty pools and catalogs change them.
func TestPoolPages(t *testing.T) {
	spent := 0
	for seed := range uint64(10) {
		r, pick := newRealm(t, seed), seeded(seed)
		for n := range 100 {
			if n%50 == 0 {
				r.put(randomCatalog(pick))
			}
			r.do(randomCommand(pick))
			for i := range r.rules.Tables().Catalog.Pools {
				id := r.rules.Tables().Catalog.Pools[i].ID
				whole := r.pool(id)
				pages := whole
				pages.Entries = nil
				for from := 0; from < len(whole.Entries); from += 2 {
					v, known, current := look.PoolOf(r.rules.Tables(), r.state, id, from, 2, nil)
					if !known || !current || v.TotalWeight != whole.TotalWeight || v.Position != whole.Position {
						t.Fatalf("page from %d of %s: %+v, the whole: %+v", from, id, v, whole)
					}
					pages.Entries = append(pages.Entries, v.Entries...)
				}
				if !reflect.DeepEqual(pages, whole) {
					t.Fatalf("pages of %s: %+v, the whole: %+v", id, pages, whole)
				}
				if whole.TotalWeight == 0 {
					spent++
				}
			}
		}
		if _, known, current := look.PoolOf(r.rules.Tables(), r.state, "nosuch", 0, 1, nil); known || !current {
			t.Errorf("a page of a pool that is not there: %v, %v", known, current)
		}
	}
	if spent < 20 {
		t.Errorf("a pool was empty only %d times", spent)
	}
}

// TestSpentPoolBesideReaders: that a pool is spent shows in the pools that lead to it
// together with the position of the event that spent it, and never with another catalog.
func TestSpentPoolBesideReaders(t *testing.T) {
	r := newRealm(t, 1)
	var inForce atomic.Pointer[rules.Tables]
	var over atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !over.Load() {
				tables := inForce.Load()
				if tables == nil {
					continue
				}
				v, known, current := look.PoolOf(tables, r.state, "up", 0, 9, nil)
				if !known {
					t.Error("the pool is not known")
					return
				}
				if !current {
					continue
				}
				// Version n is in force from position 2n-1 on, and its one draw is at 2n.
				want := 2*tables.Version - 1
				if v.Entries[0].Weight == 0 {
					want++
				}
				if v.Position != want {
					t.Errorf("version %d: weight %d as of position %d, want %d", tables.Version, v.Entries[0].Weight, v.Position, want)
					return
				}
			}
		})
	}
	for i := range 1000 {
		r.put(fmt.Sprintf(`{kuji: 1, items: {a: {}}, pools: {
			up: {entries: [{id: x, weight: 1, reward: {pool: down}}, {id: y%d, weight: 1, stock: %d}]},
			down: {entries: [{id: x, weight: 1, stock: %d, reward: {items: {a: 1}}}]}}}`, i%2, i+1, i+1))
		inForce.Store(r.rules.Tables())
		r.want(draw("p", "down", 1), rules.OK, "")
	}
	over.Store(true)
	readers.Wait()
}
