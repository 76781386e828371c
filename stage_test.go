package kuji

import (
	"context"
	"runtime"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// stagedRealm returns a realm with a catalog, another for it, and what draws from the pool that it changes.
func stagedRealm(t *testing.T) (r *Realm, next *catalog.Catalog, draws func(int)) {
	t.Helper()
	parse := func(yaml string) *catalog.Catalog {
		c, err := catalog.Parse([]byte(yaml))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	e, err := Open("", Options{Sync: SyncOff})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if r, err = e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(`{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}, {id: b, weight: 9}, {id: c, weight: 1000000, stock: 50}]}}}`)); err != nil {
		t.Fatal(err)
	}
	var draw Request = Draw{Player: "ann", Pool: "p"}
	done := func(_ Result, err error) {
		if err != nil {
			t.Error(err)
		}
	}
	draws = func(n int) {
		for range n {
			r.Submit(draw, done)
		}
		r.mu.Lock()
		r.carryOut()
		r.mu.Unlock()
	}
	draws(1)
	return r, parse(`{kuji: 1, items: {gem: {}}, pools: {p: {entries: [{id: a, weight: 2, reward: {items: {gem: 1}}}, {id: b, weight: 9}, {id: c, weight: 1000000, stock: 50}]}}}`), draws
}

// TestCatalogGivenUp: of a catalog that is not put in force nothing is left that draws would put down.
func TestCatalogGivenUp(t *testing.T) {
	r, next, draws := stagedRealm(t)
	for name, give := range map[string]func() error{
		"refused": func() error { _, err := r.ApplyOver(t.Context(), next, 99); return err },
		"canceled": func() error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := r.Apply(ctx, next)
			return err
		},
	} {
		if err := give(); err == nil {
			t.Fatalf("%s: it is put in force", name)
		}
		const n = 50_000
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		draws(n)
		runtime.ReadMemStats(&after)
		if b := after.TotalAlloc - before.TotalAlloc; b > 4*n {
			t.Errorf("%s: %d draws take %d bytes", name, n, b)
		}
	}
}

// TestCatalogCatchesUp: what was drawn while a catalog was made ready is caught up with before the realm's lock
// is taken for good, in as many rounds as it needs, and nothing of it is forgotten: of one entry all are drawn in the first.
func TestCatalogCatchesUp(t *testing.T) {
	r, next, draws := stagedRealm(t)
	p, err := r.state.Prepare(next)
	if err != nil {
		t.Fatal(err)
	}
	r.stage(p)
	const rounds, n = 3, 10_000
	for range rounds {
		draws(n)
		if err := r.lockCaughtUp(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		lags := r.state.Lags(p)
		r.mu.Unlock()
		if lags {
			t.Fatal("draws are left to catch up with under the lock")
		}
	}
	r.mu.Lock()
	_, conflict, err := r.decideCatalog(p, nil, nil, nil, new(Result))
	r.mu.Unlock()
	if conflict != nil || err != nil {
		t.Fatal(conflict, err)
	}
	v, err := r.Pool(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	drawn := uint64(0)
	for _, e := range v.Entries {
		drawn += e.Drawn
	}
	if want := uint64(1 + rounds*n); drawn != want {
		t.Errorf("%d are drawn, want %d", drawn, want)
	}
	if err := r.state.Check(); err != nil {
		t.Error(err)
	}
}
