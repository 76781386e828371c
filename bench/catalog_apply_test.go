package bench_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// BenchmarkCatalogApply puts catalogs in force while draws go on: catalogs of which every weight is
// another than in the one before, or every entry is new. An operation is one Apply. Also
// reported is the longest that a draw took meanwhile: median and most of the operations. A draw ends when
// it is carried out, which tells how long the realm was held up, or when it is durable as
// SyncNone says.
func BenchmarkCatalogApply(top *testing.B) {
	for _, entries := range []int{1000, size(100_000)} {
		for _, changed := range []string{"weights", "entries"} {
			for _, end := range []string{"carried-out", "durable"} {
				top.Run(fmt.Sprintf("entries=%d/changed=%s/draws=%s", entries, changed, end), func(b *testing.B) {
					applyBesideDraws(b, entries, changed == "entries", end == "durable")
				})
			}
		}
	}
}

func applyBesideDraws(b *testing.B, entries int, fresh, durable bool) {
	e, err := kuji.Open(scratch(b), kuji.Options{Sync: kuji.SyncNone, SnapshotEvery: -1})
	must(b, err)
	defer func() { must(b, e.Close()) }()
	r, err := e.Realm("bench")
	must(b, err)
	_, err = r.Apply(b.Context(), otherCatalog(b, entries, 0, fresh))
	must(b, err)
	var longest []time.Duration
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		c := otherCatalog(b, entries, i+1, fresh)
		runtime.GC() // of what the catalog before has left
		var over atomic.Bool
		var drawing sync.WaitGroup
		begun := make(chan struct{})
		drawing.Go(func() { longest = append(longest, longestDraw(b, r, durable, &over, begun)) })
		<-begun
		b.StartTimer()
		_, err := r.Apply(b.Context(), c)
		b.StopTimer()
		over.Store(true)
		drawing.Wait()
		must(b, err)
		b.StartTimer()
	}
	b.StopTimer()
	b.ReportMetric(quantile(longest, 0.5).Seconds()*1e3, "longest-draw-ms")
	b.ReportMetric(slices.Max(longest).Seconds()*1e3, "longest-of-all-ms")
}

// longestDraw draws, one after the other, until it is over, and returns how long the longest
// took.
func longestDraw(b *testing.B, r *kuji.Realm, durable bool, over *atomic.Bool, begun chan<- struct{}) (longest time.Duration) {
	reqs := []kuji.Request{kuji.Draw{Player: "ann", Pool: "bench"}}
	results := make([]kuji.Result, 1)
	for n := 0; n == 0 || !over.Load(); n++ {
		start := time.Now()
		c, err := r.StartAll(b.Context(), reqs, results)
		if err == nil && durable {
			err = c.Wait(b.Context())
		}
		if err != nil {
			b.Error(err)
		}
		if n > 0 {
			longest = max(longest, time.Since(start))
		} else {
			close(begun)
		}
	}
	return longest
}

// otherCatalog is catalogOf with other weights for each i, or with other entries.
func otherCatalog(tb testing.TB, entries, i int, fresh bool) *catalog.Catalog {
	c := *catalogOf(tb, "weighted", entries)
	c.Pools = slices.Clone(c.Pools)
	all := slices.Clone(c.Pools[0].Entries)
	for j := range all {
		if all[j].Weight += uint64(i); fresh {
			all[j].ID = fmt.Sprintf("e%d-%d", i, j)
		}
	}
	c.Pools[0].Entries = all
	return &c
}
