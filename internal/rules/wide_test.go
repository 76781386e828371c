package rules_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// wide returns a catalog in which one draw takes from many pools, each with tracks of its own.
func wide(pools, tracks int) string {
	var pity, inner []string
	for i := range tracks {
		pity = append(pity, fmt.Sprintf("t%d: {of: [x], certain: 1000}", i))
	}
	var b strings.Builder
	for i := range pools {
		fmt.Fprintf(&b, "  p%d: {internal: true, pity: {%s}, entries: [{id: x, weight: 0.000001}, {id: y, weight: 1}]}\n", i, strings.Join(pity, ", "))
		inner = append(inner, fmt.Sprintf("{pool: p%d, times: %d}", i, 3))
	}
	groups := 0
	for ; len(inner) > 0; groups++ {
		n := min(catalog.MaxInner, len(inner))
		fmt.Fprintf(&b, "  g%d: {internal: true, entries: [{id: x, weight: 1, reward: [%s]}]}\n", groups, strings.Join(inner[:n], ", "))
		inner = inner[n:]
	}
	for i := range groups {
		inner = append(inner, fmt.Sprintf("{pool: g%d}", i))
	}
	return fmt.Sprintf("kuji: 1\nitems: {gem: {}}\npools:\n  p: {max_count: 1, entries: [{id: x, weight: 1, reward: [%s]}]}\n%s", strings.Join(inner, ", "), b.String())
}

// BenchmarkTouchedTracks is one draw that counts in many tracks.
func BenchmarkTouchedTracks(b *testing.B) {
	for _, pools := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(8*pools), func(b *testing.B) {
			r := newRealm(b, 1)
			r.put(wide(pools, 8))
			cmd, src, w := draw("ann", "p", 1), rand.NewPCG(1, 1), store.Writer{}
			for b.Loop() {
				w.Buf = w.Buf[:0]
				if s := r.rules.Decide(&cmd, r.now, src, &w); s != rules.OK {
					b.Fatal(s)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pools*3), "ns/pick")
		})
	}
}
