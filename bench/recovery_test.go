package bench_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/bench/baselines/stores"
)

// history writes a log of n hot or wide draws, including their players' first appearance. It
// returns the directory and the number of events.
func history(tb testing.TB, n int, wide bool) (dir string, events uint64) {
	tb.Helper()
	dir = scratch(tb)
	e, err := kuji.Open(dir, kuji.Options{Sync: kuji.SyncNone, SnapshotEvery: -1})
	must(tb, err)
	r, err := e.Realm("bench")
	must(tb, err)
	_, err = r.Apply(tb.Context(), catalogOf(tb, "weighted", 100))
	must(tb, err)
	f := &fixture{realm: r, players: playerIDs(1000)}
	if wide {
		f.players = playerIDs(n)
	}
	draws := make([]kuji.Draw, batchSize)
	reqs := make([]kuji.Request, batchSize)
	ids := f.fresh()
	for from := 0; from < n; from += batchSize {
		for i := range draws {
			draws[i] = kuji.Draw{Player: f.players[(from+i)%len(f.players)], Pool: "bench"}
			if wide {
				draws[i].ID, draws[i].Player = ids.next()
			}
			reqs[i] = &draws[i]
		}
		_, err := r.DoAll(tb.Context(), reqs[:min(batchSize, n-from)])
		must(tb, err)
	}
	events = r.Stats().Events
	must(tb, e.Close())
	return dir, events
}

// BenchmarkRecovery opens a realm that was closed, by the number of events in its log. An
// operation is one opening, in a process that must first get memory. There are no snapshots, so
// every event is replayed. The baseline is a log of JSON lines.
func BenchmarkRecovery(top *testing.B) {
	for _, wide := range []bool{false, true} {
		name := map[bool]string{false: "hot", true: "wide"}[wide]
		for _, n := range []int{100_000, 1_000_000} {
			var dir string
			var events uint64
			top.Run(fmt.Sprintf("%s/events=%d/store=kuji", name, n), func(b *testing.B) {
				if dir == "" {
					dir, events = history(top, size(n), wide)
					b.ResetTimer()
				}
				b.ReportAllocs()
				for range b.N {
					likeNew(b)
					e, err := kuji.Open(dir, kuji.Options{Sync: kuji.SyncNone, SnapshotEvery: -1})
					must(b, err)
					r, err := e.Realm("bench")
					must(b, err)
					b.StopTimer()
					if got := r.Stats().RecoveredEvents; got < events || got > events+2 {
						b.Fatalf("%d events recovered, %d were written", got, events)
					}
					must(b, e.Close())
					b.StartTimer()
				}
				b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
			var file string
			top.Run(fmt.Sprintf("%s/events=%d/store=jsonlines", name, n), func(b *testing.B) {
				if file == "" {
					file = jsonHistory(top, size(n), wide)
					b.ResetTimer()
				}
				b.ReportAllocs()
				for range b.N {
					likeNew(b)
					s, err := stores.OpenJSONLines(file, weightsOf(100))
					must(b, err)
					b.StopTimer()
					must(b, s.Close())
					b.StartTimer()
				}
				b.ReportMetric(float64(size(n))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}

// likeNew returns free memory to the operating system, so that the process has as little as a new
// one, and starts the timer.
func likeNew(b *testing.B) {
	b.StopTimer()
	debug.FreeOSMemory()
	b.StartTimer()
}

// jsonHistory is history for a log of JSON lines.
func jsonHistory(tb testing.TB, n int, wide bool) string {
	tb.Helper()
	file := filepath.Join(scratch(tb), "log")
	s, err := stores.OpenJSONLines(file, weightsOf(100))
	must(tb, err)
	f := &fixture{players: playerIDs(1000)}
	if wide {
		f.players = playerIDs(n)
	}
	ids := f.fresh()
	for i := range n {
		if wide {
			id, player := ids.next()
			s.Draw(id, strings.Clone(player)) // the store keeps the string
		} else {
			s.Draw("", f.players[i%1000])
		}
	}
	must(tb, s.Close())
	return file
}

// BenchmarkCollect: a full garbage collection with a realm of many players of ten items each in
// memory, and with maps of the same content. cpu-ms/gc is the collector's processor time for one
// cycle. An operation is one cycle.
func BenchmarkCollect(top *testing.B) {
	catalogs.Clear() // otherwise the collector also scans those of other benchmarks
	n := size(1_000_000)
	if *largeFlag {
		n = size(10_000_000)
	}
	var f *fixture
	top.Run(fmt.Sprintf("players=%d/store=kuji", n), func(b *testing.B) {
		if f == nil {
			f = open(top, kuji.Options{Sync: kuji.SyncNone}, catalogOf(top, "weighted", 100), 1)
			grantTen(top, f.realm, n)
		}
		collect(b, &f)
	})
	f = nil
	var held map[string]map[int]int
	top.Run(fmt.Sprintf("players=%d/store=maps", n), func(b *testing.B) {
		if held == nil {
			held = make(map[string]map[int]int)
			for i := range n {
				items := make(map[int]int)
				for j := range 10 {
					items[j] = i
				}
				held[fmt.Sprint("p", i)] = items
			}
		}
		collect(b, &held)
	})
}

// grantTen gives ten items each to n players.
func grantTen(tb testing.TB, r *kuji.Realm, n int) {
	tb.Helper()
	items := make([]kuji.Stack, 10)
	for i := range items {
		items[i] = kuji.Stack{Item: fmt.Sprint("item", i), Quantity: uint64(i + 1)}
	}
	reqs := make([]kuji.Request, 0, kuji.MaxBatch)
	for i := range n {
		reqs = append(reqs, kuji.Grant{Player: fmt.Sprint("p", i), Items: items})
		if len(reqs) == kuji.MaxBatch || i == n-1 {
			_, err := r.DoAll(tb.Context(), reqs)
			must(tb, err)
			reqs = reqs[:0]
		}
	}
}

func collect(b *testing.B, alive any) {
	runtime.GC() // the garbage of the setup
	before := gcTime()
	b.ResetTimer()
	for range b.N {
		runtime.GC()
	}
	b.StopTimer()
	b.ReportMetric(float64(gcTime()-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/gc")
	runtime.KeepAlive(alive)
}

// gcTime returns the processor time that the collector has used so far.
func gcTime() time.Duration {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return time.Duration(sample[0].Value.Float64() * float64(time.Second))
}
