package bench_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// BenchmarkHolds is BenchmarkCatalogs in a realm in which nothing is held, and in one with a hundred thousand open holds
// of draws from the same pool.
func BenchmarkHolds(b *testing.B) {
	for _, c := range []struct {
		name  string
		holds int
	}{{"none", 0}, {"open", size(100_000)}} {
		b.Run(c.name, func(b *testing.B) {
			drawAmong(b, chestItems+chestEntries, "chest", "gem", true, func(r *kuji.Realm) { hold(b, r, c.holds) })
		})
	}
}

// hold makes draws of many players that are held for a day.
func hold(b *testing.B, r *kuji.Realm, n int) {
	day := kuji.Holding{For: 24 * time.Hour}
	for from := 0; from < n; from += catalogBatch {
		var reqs []kuji.Request
		for i := from; i < min(n, from+catalogBatch); i++ {
			reqs = append(reqs, &kuji.Draw{ID: fmt.Sprint("hold-", i), Player: fmt.Sprint("holder-", i/50), Pool: "chest", Hold: day})
		}
		results, err := r.DoAll(b.Context(), reqs)
		must(b, err)
		for i := range results {
			if results[i].Status != kuji.OK {
				b.Fatalf("a hold ended as %v: %v", results[i], results[i].Err)
			}
		}
	}
}
