package kuji_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
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

// TestApplyOver: of several who apply catalogs over the version that they have
// seen, one succeeds; a catalog in force is answered again, whatever was expected.
func TestApplyOver(t *testing.T) {
	_, r := open(t, t.TempDir(), kuji.Options{}) // version 1
	next := func(name string) *catalog.Catalog { return parse(t, testCatalog+"name: "+name+"\n") }
	for _, version := range []uint64{0, 2, 1<<64 - 1} {
		_, err := r.ApplyOver(t.Context(), next("a"), version)
		wantCode(t, err, kuji.CodeConflict)
	}
	var wg sync.WaitGroup
	var won atomic.Int32
	for g := range 8 {
		wg.Go(func() {
			c := next(fmt.Sprint("operator", g))
			switch res, err := r.ApplyOver(t.Context(), c, 1); kuji.CodeOf(err) {
			case 0:
				won.Add(1)
				again, err := r.ApplyOver(t.Context(), c, 1)
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
	v, err := r.Catalog(t.Context())
	if err != nil || won.Load() != 1 || v.Version != 2 {
		t.Errorf("%d of 8 applied theirs over version 1; version %d is in force, %v", won.Load(), v.Version, err)
	}
	// Which version is in force comes before what else is wrong with a catalog.
	other := parse(t, strings.Replace(testCatalog, "sword: {}", "sword: {kind: currency}", 1))
	_, err = r.ApplyOver(t.Context(), other, 1)
	if wantCode(t, err, kuji.CodeConflict); !strings.Contains(fmt.Sprint(err), "version 2 is in force, not 1") {
		t.Error(err)
	}
	_, err = r.ApplyOver(t.Context(), other, 2)
	if wantCode(t, err, kuji.CodeConflict); !strings.Contains(fmt.Sprint(err), "sword") {
		t.Error(err)
	}
	if res, err := r.ApplyOver(t.Context(), next("b"), 2); err != nil || res.Receipt.CatalogVersion != 3 {
		t.Errorf("over version 2: %+v, %v", res.Receipt, err)
	}
	_, err = r.ApplyOver(t.Context(), nil, 3)
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

// TestCatalogMadeReadyBesideRequests: what a catalog makes of a large pool that it changes is computed, and encoded,
// before the realm's lock is taken. What takes long there takes memory, too.
func TestCatalogMadeReadyBesideRequests(t *testing.T) {
	const entries, most = 100_000, 100_000 // most bytes; what is left of each entry alone takes 8
	var stats runtime.MemStats
	allocated := func() uint64 {
		runtime.ReadMemStats(&stats)
		return stats.TotalAlloc
	}
	locked := uint64(0) // what had been allocated when the clock was asked, which is under the lock
	e, err := kuji.Open("", kuji.Options{Sync: kuji.SyncOff, Now: func() time.Time {
		locked = allocated()
		return time.UnixMilli(1_800_000_000_000)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	for version := range 3 {
		c := largeCatalog(t, entries+version, version)
		locked = 0
		if _, err := r.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if n := allocated() - locked; locked == 0 || n > most {
			t.Errorf("version %d: from when the clock was asked on, %d bytes are allocated, want at most %d", version+1, n, most)
		}
	}
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
	if rep, err := kuji.Verify(dir, "test", nil); err != nil || rep.StateHash != want {
		return fmt.Errorf("verified as %x, %v, want %x", rep.StateHash[:4], err, want[:4])
	}
	return nil
}

// TestLargeCatalogInItsBatch: what a batch has before and behind a catalog is there whether the catalog
// is large or small, and whether or not there is much before it.
func TestLargeCatalogInItsBatch(t *testing.T) {
	for _, entries := range []int{1, 100, 20_000} {
		for _, before := range []int{0, 1, 3, 60_000} {
			dir, s := t.TempDir(), newSteps()
			e, r := open(t, dir, kuji.Options{Steps: s, Now: s.Now})
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

// TestLargeCatalogLeavesNoMemory: the room for an open batch in front of a large catalog is let go behind it.
func TestLargeCatalogLeavesNoMemory(t *testing.T) {
	t.Run("log", func(t *testing.T) { largeCatalogLeavesNoMemory(t, kuji.SyncNone) })
	t.Run("off", func(t *testing.T) { largeCatalogLeavesNoMemory(t, kuji.SyncOff) })
}

func largeCatalogLeavesNoMemory(t *testing.T, policy kuji.SyncPolicy) {
	const realms, most = 24, 3 << 19 // most bytes for each
	yaml := func(version int) *catalog.Catalog {
		var b strings.Builder
		b.WriteString("kuji: 1\nitems: {gem: {}}\npools:\n  one:\n    entries:\n")
		for i := range 1000 {
			fmt.Fprintf(&b, "    - {id: %064d, weight: %d, reward: {items: {gem: 1}}}\n", i, 1+(i+version)%5)
		}
		return parse(t, strings.ReplaceAll(b.String(), "id: 0", "id: e"))
	}
	e, err := kuji.Open(t.TempDir(), kuji.Options{Sync: policy})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	rs := make([]*kuji.Realm, realms)
	for i := range rs {
		if rs[i], err = e.Realm(fmt.Sprint("r", i)); err != nil {
			t.Fatal(err)
		}
		for version := range 2 {
			if _, err := rs[i].Apply(t.Context(), yaml(version)); err != nil {
				t.Fatal(err)
			}
		}
		do(t, rs[i], kuji.Draw{Player: "ann", Pool: "one"})
		do(t, rs[i], kuji.Draw{Player: "ann", Pool: "one"})
	}
	if n := (heap() - before) / realms; n > most {
		t.Errorf("%d bytes are kept for each realm, want at most %d", n, most)
	} else {
		t.Logf("%d bytes are kept for each realm", n)
	}
}

// TestCatalogBesideDraws: of draws beside large catalogs none is forgotten.
func TestCatalogBesideDraws(t *testing.T) {
	const entries = 20_000
	dir := t.TempDir()
	e, r := open(t, dir, kuji.Options{Sync: kuji.SyncNone})
	if _, err := r.Apply(t.Context(), largeCatalog(t, entries, 0)); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var n atomic.Uint64
	var wg sync.WaitGroup
	wg.Go(func() {
		reqs := make([]kuji.Request, 100)
		for i := range reqs {
			reqs[i] = kuji.Draw{Player: fmt.Sprint("p", i%7), Pool: "large"}
		}
		for !done.Load() {
			if _, err := r.DoAll(context.Background(), reqs); err != nil {
				t.Error(err)
				return
			}
			n.Add(100)
		}
	})
	for v := range 4 {
		if _, err := r.Apply(t.Context(), largeCatalog(t, entries, v+1)); err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	wg.Wait()
	v, err := r.Pool(t.Context(), "large")
	if err != nil {
		t.Fatal(err)
	}
	drawn := uint64(0)
	for _, en := range v.Entries {
		drawn += en.Drawn
	}
	if drawn != n.Load() {
		t.Errorf("%d are drawn, of %d", drawn, n.Load())
	}
	if err := verifiesAs(t, e, r, dir); err != nil {
		t.Error(err)
	}
}
