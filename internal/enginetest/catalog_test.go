package enginetest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/verify"
)

// TestCatalogsBesideDraws applies and plans catalogs while others draw, read
// and ask again for what older catalogs gave.
func TestCatalogsBesideDraws(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{Sync: kuji.SyncNone}) // which has a catalog: version 1
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
		plan, err := r.Catalogs().Plan(t.Context(), next)
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
	if rep, err := verify.Dir(dir, r.Name(), verify.Options{}); err != nil || rep.Catalog != 26 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// TestCatalogAgain: a catalog that is in force is answered with the receipt of
// the call that applied it, wherever that stands in its batch, however late it
// is asked for, and whether the log or a snapshot was recovered.
func TestCatalogAgain(t *testing.T) {
	dir, s := t.TempDir(), newSteps()
	e, r := open(t, dir, worldOptions{Steps: s, Now: s.Now})
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
		if e, err = openWorld(dir, worldOptions{Steps: s, Now: s.Now}); err != nil {
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
	if _, err := verify.Dir(dir, "test", verify.Options{Seen: func(rec kuji.Record) {
		rc := first.Receipt
		found = found || rec.Kind == "catalog" && rec.Position == rc.Position && rec.Index == rc.Index && rec.Time == rc.Time
	}}); err != nil || !found {
		t.Errorf("the log has a catalog at %+v: %v, %v", first.Receipt, found, err)
	}
}

// TestApplyOver: of several who apply catalogs over the version that they have
// seen, one succeeds; a catalog in force is answered again, whatever was expected.
func TestApplyOver(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{}) // version 1
	next := func(name string) *catalog.Catalog { return parse(t, testCatalog+"name: "+name+"\n") }
	for _, version := range []uint64{0, 2, 1<<64 - 1} {
		_, err := r.Catalogs().Apply(t.Context(), next("a"), kuji.ApplyOptions{Over: new(version)})
		wantCode(t, err, kuji.CodeConflict)
	}
	var wg sync.WaitGroup
	var won atomic.Int32
	for g := range 8 {
		wg.Go(func() {
			c := next(fmt.Sprint("operator", g))
			switch res, err := r.Catalogs().Apply(t.Context(), c, kuji.ApplyOptions{Over: new(uint64(1))}); kuji.CodeOf(err) {
			case 0:
				won.Add(1)
				again, err := r.Catalogs().Apply(t.Context(), c, kuji.ApplyOptions{Over: new(uint64(1))})
				if err != nil || again.Receipt != res.Receipt || res.Receipt.CatalogVersion != 2 {
					t.Errorf("%+v, and asked again %+v, %v", res.Receipt, again.Receipt, err)
				}
			case kuji.CodeConflict:
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	v, err := r.Catalogs().InForce(t.Context())
	if err != nil || won.Load() != 1 || v.Version != 2 {
		t.Errorf("%d of 8 applied theirs over version 1; version %d is in force, %v", won.Load(), v.Version, err)
	}
	// Which version is in force comes before what else is wrong with a catalog.
	other := parse(t, strings.Replace(testCatalog, "sword: {}", "sword: {kind: currency}", 1))
	_, err = r.Catalogs().Apply(t.Context(), other, kuji.ApplyOptions{Over: new(uint64(1))})
	if wantCode(t, err, kuji.CodeConflict); !strings.Contains(fmt.Sprint(err), "version 2 is in force, not 1") {
		t.Error(err)
	}
	_, err = r.Catalogs().Apply(t.Context(), other, kuji.ApplyOptions{Over: new(uint64(2))})
	if wantCode(t, err, kuji.CodeConflict); !strings.Contains(fmt.Sprint(err), "sword") {
		t.Error(err)
	}
	if res, err := r.Catalogs().Apply(t.Context(), next("b"), kuji.ApplyOptions{Over: new(uint64(2))}); err != nil || res.Receipt.CatalogVersion != 3 {
		t.Errorf("over version 2: %+v, %v", res.Receipt, err)
	}
	_, err = r.Catalogs().Apply(t.Context(), nil, kuji.ApplyOptions{Over: new(uint64(3))})
	wantCode(t, err, kuji.CodeInvalid)
}

// largeCatalog is a catalog with a pool of so many entries.
func largeCatalog(t testing.TB, entries, version int) *catalog.Catalog {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "kuji: 1\nitems: {gem: {kind: currency}, sword: {}}\npools:\n  small: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}]}\n  large:\n    entries:\n")
	for i := range entries {
		fmt.Fprintf(&b, "    - {id: e%d, weight: %d}\n", i, 1+(i+version)%9)
	}
	return parse(t, b.String())
}

// verifiesAs closes an engine and says whether the log of its realm "test" gives the state that the realm had.
func verifiesAs(t *testing.T, e *kuji.Engine, r *kuji.Realm, dir string) error {
	t.Helper()
	want, _, err := r.StateHash(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := verify.Dir(dir, "test", verify.Options{}); err != nil || rep.StateHash != want {
		return fmt.Errorf("verified as %x, %v, want %x", rep.StateHash[:4], err, want[:4])
	}
	return nil
}

// TestLargeCatalogInItsBatch: what a batch has before and behind a catalog is there whether the catalog
// is large or small, and whether or not there is much before it.
func TestLargeCatalogInItsBatch(t *testing.T) {
	for _, entries := range []int{1, 100, 20_000} {
		for _, before := range []int{0, 1, 3, 30_000} {
			dir, s := t.TempDir(), newSteps()
			e, r := open(t, dir, worldOptions{Steps: s, Now: s.Now})
			submit := func(n int) {
				for i := range n {
					r.Submit(kuji.Grant{ID: fmt.Sprint(n, "/", i), Player: fmt.Sprint("player", i%10), Items: []kuji.Stack{{Item: "gem", Quantity: 1}}}, func(_ kuji.Result, err error) {
						if err != nil {
							t.Error(err)
						}
					})
				}
			}
			submit(before)
			res, err := r.Apply(t.Context(), largeCatalog(t, entries, 1))
			if err != nil || res.Receipt.Index != before {
				t.Fatalf("%d entries behind %d grants: %+v, %v", entries, before, res.Receipt, err)
			}
			submit(7)
			do(t, r, kuji.Draw{Player: "ann", Pool: "large"})
			if err := verifiesAs(t, e, r, dir); err != nil {
				t.Errorf("%d entries behind %d grants: %v", entries, before, err)
			}
		}
	}
}

// TestPlanIsOfNow: a plan goes by the time at which the catalog would be applied, however long ago
// the realm's last event was.
func TestPlanIsOfNow(t *testing.T) {
	s := newSteps()
	e, r := open(t, t.TempDir(), worldOptions{Steps: s, Now: s.Now})
	closing := fmt.Sprintf(`{kuji: 1, items: {gem: {kind: currency}}, pools: {p: {ends: %q, entries: [{id: a, weight: 1}]}}}`, s.now.Add(time.Hour).UTC().Format(time.RFC3339))
	warned := func(r *kuji.Realm) bool {
		plan, err := r.Catalogs().Plan(t.Context(), parse(t, closing))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(fmt.Sprint(plan.Changes), "it has ended")
	}
	if warned(r) {
		t.Error("a pool that is open for an hour: it has ended")
	}
	s.now = s.now.Add(2 * time.Hour)
	if !warned(r) {
		t.Error("no warning of a pool that has ended since the last event")
	}
	fresh, err := e.Realm("fresh") // of which the log has no event
	if err != nil {
		t.Fatal(err)
	}
	if !warned(fresh) {
		t.Error("no warning of a pool that has ended, in a realm without events")
	}
}
