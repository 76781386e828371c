package enginetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// BenchmarkFeed is a writer, in calls of 1,000 draws, next to readers of the feed. Ten readers at its
// end read as much as they get processor time for. Ten that pause are those of a dashboard: each
// takes an event, then lets 10 ms pass.
func BenchmarkFeed(b *testing.B) {
	for _, c := range []struct {
		name    string
		readers int
		pause   time.Duration
	}{{"readers=0", 0, 0}, {"readers=1", 1, 0}, {"readers=10", 10, 0}, {"slow=10", 10, 10 * time.Millisecond}} {
		b.Run(c.name, func(b *testing.B) { benchmarkFeed(b, c.readers, c.pause) })
	}
}

func benchmarkFeed(b *testing.B, n int, pause time.Duration) {
	e, err := kuji.Open(b.TempDir(), kuji.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	}()
	r, err := e.Realm("test")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := r.Apply(b.Context(), parse(b, testCatalog)); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var readers sync.WaitGroup
	var read atomic.Int64
	for range n {
		readers.Go(func() {
			pauses := time.NewTicker(max(pause, 1))
			defer pauses.Stop()
			for _, err := range r.Feed().Events(ctx, r.Stats().Position+1) {
				if err != nil {
					return
				}
				read.Add(1)
				if pause > 0 {
					<-pauses.C
				}
			}
		})
	}
	reqs := make([]kuji.Request, 1000)
	call := 0
	for b.Loop() {
		for i := range reqs {
			reqs[i] = kuji.Draw{ID: fmt.Sprint(call, "-", i), Player: fmt.Sprint("p", (call*1000+i)%20_000), Pool: "free"}
		}
		if _, err := r.DoAll(ctx, reqs); err != nil {
			b.Fatal(err)
		}
		call++
	}
	took := b.Elapsed()
	b.ReportMetric(float64(call*len(reqs))/took.Seconds(), "draws/s")
	b.ReportMetric(float64(read.Load())/took.Seconds(), "read/s")
	cancel()
	readers.Wait()
}
