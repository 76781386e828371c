package bench_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

const lastingYAML = `
kuji: 1
items: {gem: {}, ticket: {lasts: 1h}}
pools: {bench: {entries: [{id: a, weight: 1, reward: {items: {gem: 1}}}, {id: b, weight: 9}]}}
`

// BenchmarkSweep makes draws of players of whom nothing is due, first when nothing is, then while a
// ticket of each of a million others is. An operation is a whole sweep. It reports how long draws took
// in both, in µs, and how many tickets went in a second. Afterwards nobody has a ticket.
func BenchmarkSweep(top *testing.B) {
	for _, policy := range []kuji.SyncPolicy{kuji.SyncAlways, kuji.SyncNone} {
		for _, callers := range []int{0, 1, 8} {
			top.Run(fmt.Sprintf("players=%d/sync=%v/callers=%d", size(1_000_000), policy, callers), func(b *testing.B) {
				for range b.N {
					sweep(b, size(1_000_000), callers, policy)
				}
			})
		}
	}
}

func sweep(b *testing.B, players, callers int, policy kuji.SyncPolicy) {
	var ahead atomic.Int64
	e, err := kuji.Open(filepath.Join(scratch(b), "data"), kuji.Options{Sync: policy, SnapshotEvery: -1, Now: func() time.Time {
		return time.Now().Round(0).Add(time.Duration(ahead.Load()))
	}})
	must(b, err)
	defer func() { must(b, e.Close()) }()
	r, err := e.Realm("bench")
	must(b, err)
	c, err := catalog.Parse([]byte(lastingYAML))
	must(b, err)
	_, err = r.Apply(context.Background(), c)
	must(b, err)
	for from := 0; from < players; from += kuji.MaxBatch {
		var reqs []kuji.Request
		for i := from; i < min(players, from+kuji.MaxBatch); i++ {
			reqs = append(reqs, kuji.Grant{Player: fmt.Sprint("p", i), Items: []kuji.Stack{{Item: "ticket", Quantity: 1}}})
		}
		_, err := r.DoAll(context.Background(), reqs)
		must(b, err)
	}
	left := func() (n uint64) {
		for i := range players {
			q, err := r.Balance(context.Background(), fmt.Sprint("p", i), "ticket")
			must(b, err)
			n += q
		}
		return n
	}
	if got := left(); got != uint64(players) {
		b.Fatalf("%d tickets, want %d", got, players)
	}
	draws := func(going func() bool) (took []time.Duration) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for g := range callers {
			wg.Go(func() {
				var mine []time.Duration
				for i := 0; going(); i++ {
					began := time.Now()
					_, err := r.Do(context.Background(), &kuji.Draw{Player: fmt.Sprint("d", g, "-", i%1000), Pool: "bench"})
					must(b, err)
					mine = append(mine, time.Since(began))
				}
				mu.Lock()
				took = append(took, mine...)
				mu.Unlock()
			})
		}
		wg.Wait()
		return took
	}
	until := time.Now().Add(time.Duration(players) * 5 * time.Microsecond)
	without := draws(func() bool { return time.Now().Before(until) })
	// What is due last is gone once the sweep is over.
	last := func() bool {
		q, err := r.Balance(context.Background(), fmt.Sprint("p", players-1), "ticket")
		must(b, err)
		return q > 0
	}
	var over atomic.Bool
	b.StartTimer()
	ahead.Store(int64(2 * time.Hour))
	began := time.Now()
	_, err = r.Do(context.Background(), &kuji.Draw{Player: "first", Pool: "bench"}) // an idle realm would notice a little later
	must(b, err)
	var watch sync.WaitGroup
	watch.Go(func() {
		for at := r.Stats().Position; last(); at++ {
			must(b, r.Replica().Await(context.Background(), at+1))
		}
		over.Store(true)
	})
	with := draws(func() bool { return !over.Load() })
	watch.Wait()
	b.ReportMetric(float64(players)/time.Since(began).Seconds(), "expiries/s")
	b.StopTimer()
	if got := left(); got != 0 {
		b.Fatalf("%d tickets are left", got)
	}
	if callers == 0 {
		return
	}
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		x, y := quantile(without, q.at), quantile(with, q.at)
		b.ReportMetric(float64(x.Microseconds()), q.name+"-without-µs")
		b.ReportMetric(float64(y.Microseconds()), q.name+"-with-µs")
		b.ReportMetric(float64(y)/float64(x), q.name+"-ratio")
	}
}
