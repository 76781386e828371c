//go:build unix

package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

const benchCatalog = `
kuji: 1
items:
  gem: {kind: currency}
  i0: {}
  i1: {}
  i2: {}
  i3: {}
  i4: {}
  i5: {}
  i6: {}
  i7: {}
pools:
  paid:
    price: {gem: 1}
    entries:
      - {id: e0, weight: 1, reward: {items: {i0: 1}}}
      - {id: e1, weight: 1, reward: {items: {i1: 1}}}
      - {id: e2, weight: 1, reward: {items: {i2: 1}}}
      - {id: e3, weight: 1, reward: {items: {i3: 1}}}
      - {id: e4, weight: 1, reward: {items: {i4: 1}}}
      - {id: e5, weight: 1, reward: {items: {i5: 1}}}
      - {id: e6, weight: 1, reward: {items: {i6: 1}}}
      - {id: e7, weight: 1, reward: {items: {i7: 1}}}
start: {gem: 1000000}
`

// BenchmarkFollow measures how fast a history in SQLite catches up with a realm: b.N draws by so many
// players, each a request of its own with an id, a price and one item. It works on two cores: cpu-ns
// is of both, and of the realm's reading.
func BenchmarkFollow(b *testing.B) {
	for _, players := range []int{20_000, 1_000_000} {
		b.Run(fmt.Sprint("players=", players), func(b *testing.B) {
			e, err := kuji.Open(b.TempDir(), kuji.Options{Sync: kuji.SyncInterval})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			r, err := e.Realm("test")
			if err != nil {
				b.Fatal(err)
			}
			c, err := catalog.Parse([]byte(benchCatalog))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := r.Apply(b.Context(), c); err != nil {
				b.Fatal(err)
			}
			reqs := make([]kuji.Request, 1000)
			for done := 0; done < b.N; done += len(reqs) {
				reqs = reqs[:min(len(reqs), b.N-done)]
				for i := range reqs {
					reqs[i] = kuji.Draw{ID: fmt.Sprintf("0192d3f0-7c1a-7000-8000-%012x", done+i), Player: fmt.Sprint("player-", rand.IntN(players)), Pool: "paid"}
				}
				if _, err := r.DoAll(b.Context(), reqs); err != nil {
					b.Fatal(err)
				}
			}
			file := filepath.Join(b.TempDir(), "h.db")
			h, err := Open(b.Context(), file, "test", Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer h.Close()
			feed := through(r.Feed().Events, r.Stats().LastEvent)
			used := cpu(b)
			b.ResetTimer()
			if err := h.Run(b.Context(), feed); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(cpu(b)-used)/float64(b.N), "cpu-ns/draw")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "draws/s")
			if err := h.Close(); err != nil {
				b.Fatal(err)
			}
			info, err := os.Stat(file)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/float64(b.N), "bytes/draw")
		})
	}
}

// cpu returns the processor time that the process has taken, in nanoseconds.
func cpu(tb testing.TB) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
