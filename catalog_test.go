package kuji_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// TestCatalogsBesideDraws applies and plans catalogs while others draw, read
// and ask again for what older catalogs gave.
func TestCatalogsBesideDraws(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, kuji.Options{Sync: kuji.SyncNone}) // which has a catalog: version 1
	yaml := func(version int) string {
		return fmt.Sprintf(`
kuji: 1
name: v%d
items: {gem: {kind: currency}, sword: {}, item%d: {}}
pools:
  p:
    limits: [{per: window, window: %dm, draws: 100000}]
    entries:
      - {id: a, weight: 1, stock: 100000, reward: {items: {sword: %d}}}
      - {id: e%d, weight: 1, reward: {pool: q%d}}
  q%d: {entries: [{id: x, weight: 1, reward: {items: {item%d: {min: 1, max: 9}}}}]}
`, version, version, 1+version, 1+version, version, version%3, version%3, version)
	}
	if _, err := r.Apply(t.Context(), parse(t, yaml(0))); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for g := range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				req := kuji.Draw{ID: fmt.Sprintf("%d-%d", g, i), Player: fmt.Sprint("p", i%5), Pool: "p", Count: 2}
				first := do(t, r, req)
				again := do(t, r, req)
				if first.Status != kuji.OK || !again.Replayed || fmt.Sprint(first.Outcomes) != fmt.Sprint(again.Outcomes) {
					t.Errorf("%v, and again %v", first, again)
					return
				}
				if _, err := r.Pool(t.Context(), "p"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for version := 1; version < 25; version++ {
		next := parse(t, yaml(version))
		plan, err := r.Plan(t.Context(), next)
		if err != nil || plan.Unchanged || len(plan.Changes) == 0 {
			t.Errorf("plan of version %d: %+v, %v", version, plan, err)
		}
		res, err := r.Apply(t.Context(), next)
		if err != nil || res.Receipt.CatalogVersion != uint64(version+2) {
			t.Errorf("version %d: %v, %v", version, res, err)
		}
		if again, err := r.Apply(t.Context(), next); err != nil || again.Receipt.Position != res.Receipt.Position {
			t.Errorf("version %d once more: %v, %v", version, again, err)
		}
	}
	close(stop)
	wg.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := kuji.Verify(dir, r.Name(), nil); err != nil || rep.Catalog != 26 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// TestCatalogAgain: a catalog that is in force is answered with the receipt of
// the call that applied it, wherever that stands in its batch, however late it
// is asked for, and whether the log or a snapshot was recovered.
func TestCatalogAgain(t *testing.T) {
	dir, s := t.TempDir(), newSteps()
	e, r := open(t, dir, kuji.Options{Steps: s, Now: s.Now})
	for i := range 3 {
		r.Submit(kuji.Draw{Player: fmt.Sprint("p", i), Pool: "free"}, func(kuji.Result, error) {})
	}
	next := parse(t, testCatalog+"name: next\n")
	first, err := r.Apply(t.Context(), next)
	if err != nil || first.Receipt.Index != 3 || first.Receipt.Time != s.now.UnixMilli() || first.Receipt.CatalogVersion != 2 {
		t.Fatalf("applied behind three draws: %+v, %v", first.Receipt, err)
	}
	s.now = s.now.Add(time.Hour)
	again := func(when string) {
		t.Helper()
		do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
		if res, err := r.Apply(t.Context(), next); err != nil || res.Receipt != first.Receipt {
			t.Errorf("%s: %+v, %v; want %+v", when, res.Receipt, err, first.Receipt)
		}
	}
	reopen := func() {
		t.Helper()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if e, err = kuji.Open(dir, kuji.Options{Steps: s, Now: s.Now}); err != nil {
			t.Fatal(err)
		}
		if r, err = e.Realm("test"); err != nil {
			t.Fatal(err)
		}
	}
	again("at once")
	reopen()
	again("from the log")
	snapshot(t, r)
	reopen()
	if got := r.Stats().RecoveredEvents; got != 0 {
		t.Fatalf("%d events replayed, want the snapshot alone", got)
	}
	again("from a snapshot")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	found := false
	if _, err := kuji.Verify(dir, "test", func(rec kuji.Record) {
		rc := first.Receipt
		found = found || rec.Kind == "catalog" && rec.Position == rc.Position && rec.Index == rc.Index && rec.Time == rc.Time
	}); err != nil || !found {
		t.Errorf("the log has a catalog at %+v: %v, %v", first.Receipt, found, err)
	}
}
