package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
)

// populated returns a realm of n players of ten items each, which takes snapshots only when told
// to.
func populated(tb testing.TB, n int, o kuji.Options) (f *fixture, dir string) {
	tb.Helper()
	o.SnapshotEvery = -1
	dir = scratch(tb)
	f = &fixture{players: playerIDs(n)}
	e, err := kuji.Open(dir, o)
	must(tb, err)
	tb.Cleanup(func() { must(tb, e.Close()) })
	f.realm, err = e.Realm("bench")
	must(tb, err)
	_, err = f.realm.Apply(tb.Context(), catalogOf(tb, "weighted", 100))
	must(tb, err)
	grantTen(tb, f.realm, n)
	return f, dir
}

// BenchmarkSnapshot writes snapshots: whole ones, and ones of what changed since the last, by the
// amount of change. An operation is one snapshot.
func BenchmarkSnapshot(top *testing.B) {
	n := size(1_000_000)
	if *largeFlag {
		n = size(10_000_000)
	}
	var f *fixture
	for _, share := range []int{100, 10, 1, 0} {
		top.Run(fmt.Sprintf("players=%d/changed=%d%%", n, share), func(b *testing.B) {
			if f == nil {
				f, _ = populated(top, n, kuji.Options{Sync: kuji.SyncNone})
				_, err := f.realm.Snapshot(b.Context())
				must(b, err)
			}
			var bytes int64
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				touch(b, f, max(1, n*share/100))
				b.StartTimer()
				s, err := f.realm.Snapshot(b.Context())
				must(b, err)
				bytes += s.Bytes
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes/snapshot")
			b.ReportMetric(float64(bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
		})
	}
}

// touch changes k players, spread evenly.
func touch(b *testing.B, f *fixture, k int) {
	reqs := make([]kuji.Request, 0, batchSize)
	for i := range k {
		reqs = append(reqs, kuji.Draw{Player: f.players[i*(len(f.players)/k)], Pool: "bench"})
		if len(reqs) == batchSize || i == k-1 {
			_, err := f.realm.DoAll(b.Context(), reqs)
			must(b, err)
			reqs = reqs[:0]
		}
	}
}

// BenchmarkRestore opens a realm from its snapshot. An operation is one opening, in a process that
// must first get memory. It also reports the time to read the file. In the cold case the file is
// read from the disk, otherwise the operating system has it in memory.
func BenchmarkRestore(top *testing.B) {
	n := size(1_000_000)
	if *largeFlag {
		n = size(10_000_000)
	}
	dir := ""
	prepare := func(b *testing.B) string {
		if dir == "" {
			dir = scratch(top)
			e, err := kuji.Open(dir, kuji.Options{Sync: kuji.SyncNone, SnapshotEvery: -1})
			must(b, err)
			r, err := e.Realm("bench")
			must(b, err)
			_, err = r.Apply(b.Context(), catalogOf(b, "weighted", 100))
			must(b, err)
			grantTen(b, r, n)
			_, err = r.Snapshot(b.Context())
			must(b, err)
			must(b, e.Close())
			runtime.GC()
		}
		return dir
	}
	file := func(b *testing.B) string {
		names, err := filepath.Glob(prepare(b) + "/realms/bench/snapshots/*.snapshot")
		must(b, err)
		return names[0]
	}
	for _, cold := range []bool{false, true} {
		kind := ""
		if cold {
			kind = "-cold"
		}
		each := func(b *testing.B, name string, operation func()) {
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				if cold {
					forgetPages(b, name)
				}
				likeNew(b)
				operation()
			}
		}
		top.Run(fmt.Sprintf("players=%d/store=kuji%s", n, kind), func(b *testing.B) {
			name := file(b)
			info, err := os.Stat(name)
			must(b, err)
			each(b, name, func() {
				e, err := kuji.Open(dir, kuji.Options{Sync: kuji.SyncNone})
				must(b, err)
				r, err := e.Realm("bench")
				must(b, err)
				b.StopTimer()
				if got := r.Stats().RecoveredEvents; got != 0 {
					b.Fatalf("%d events were replayed", got)
				}
				b.ReportMetric(resident(b)/1e6, "resident-MB")
				must(b, e.Close())
				runtime.GC()
				b.StartTimer()
			})
			b.ReportMetric(float64(info.Size())*float64(b.N)/1e6/b.Elapsed().Seconds(), "MB/s")
		})
		top.Run(fmt.Sprintf("players=%d/store=file%s", n, kind), func(b *testing.B) {
			name := file(b)
			var bytes int
			each(b, name, func() {
				data, err := os.ReadFile(name)
				must(b, err)
				bytes += len(data)
			})
			b.ReportMetric(float64(bytes)/1e6/b.Elapsed().Seconds(), "MB/s")
		})
	}
}

// resident returns the size of the heap in use, in bytes.
func resident(b *testing.B) float64 {
	b.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse)
}

// BenchmarkSnapshotLatency makes durable draws from 8 goroutines, in turns without snapshots and
// with snapshots all the time. An operation is one draw. It reports p99.9 of both in µs. The
// baseline is the disk without Kuji: 4 KiB overwritten and fdatasynced, alone and while a file is
// written and fsynced in pieces of 1 MiB. On a shared disk only the comparison of the two means
// anything, with 100,000 operations or more and in several runs. With -dir on a tmpfs the disk has
// no part in it.
func BenchmarkSnapshotLatency(top *testing.B) {
	n := size(1_000_000)
	var f *fixture
	top.Run(fmt.Sprintf("players=%d/store=kuji", n), func(b *testing.B) {
		if f == nil {
			f, _ = populated(top, n, kuji.Options{})
		}
		interleave(b, func(n int) []time.Duration { return latencies(b, f, n) }, func() {
			_, err := f.realm.Snapshot(context.Background())
			must(b, err)
		})
	})
	top.Run(fmt.Sprintf("players=%d/store=disk", n), func(b *testing.B) {
		dir := scratch(b)
		log, err := os.Create(filepath.Join(dir, "log"))
		must(b, err)
		defer func() { must(b, log.Close()) }()
		const blocks = 2048
		for i := range blocks {
			_, err := log.WriteAt(make([]byte, 4096), int64(i)*4096)
			must(b, err)
		}
		must(b, datasync(log))
		writes := func(n int) (took []time.Duration) {
			for i := range n {
				start := time.Now()
				_, err := log.WriteAt(make([]byte, 4096), int64(i%blocks)*4096)
				must(b, err)
				must(b, datasync(log))
				took = append(took, time.Since(start))
			}
			return took
		}
		interleave(b, writes, func() {
			file, err := os.Create(filepath.Join(dir, "snapshot"))
			must(b, err)
			defer func() { must(b, file.Close()) }()
			piece := make([]byte, 1<<20)
			for range max(1, n/10_000) { // about as large as a snapshot of n players
				_, err := file.Write(piece)
				must(b, err)
				must(b, file.Sync())
			}
		})
	})
}

// interleave takes the latencies of b.N operations, half of them while work runs again and again, in
// turns, and reports both.
func interleave(b *testing.B, operations func(n int) []time.Duration, work func()) {
	const turns = 16
	var quiet, busy []time.Duration
	done := 0
	b.ResetTimer()
	for range turns {
		quiet = append(quiet, operations(b.N/turns/2+1)...)
		var stop atomic.Bool
		var worker sync.WaitGroup
		worker.Go(func() {
			for !stop.Load() {
				work()
				done++
			}
		})
		busy = append(busy, operations(b.N/turns/2+1)...)
		stop.Store(true)
		worker.Wait()
	}
	b.StopTimer()
	b.ReportMetric(float64(done), "snapshots")
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} {
		without, with := quantile(quiet, q.at), quantile(busy, q.at)
		b.ReportMetric(float64(without.Microseconds()), q.name+"-without-µs")
		b.ReportMetric(float64(with.Microseconds()), q.name+"-with-µs")
		b.ReportMetric(float64(with)/float64(without), q.name+"-ratio")
	}
}

// latencies makes n draws in total from 8 goroutines.
func latencies(b *testing.B, f *fixture, n int) []time.Duration {
	var all []time.Duration
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			took := make([]time.Duration, 0, n/8+1)
			for i := range n/8 + 1 {
				player := f.players[(uint64(i*8+g)*0x9E3779B97F4A7C15>>20)%uint64(len(f.players))]
				start := time.Now()
				_, err := f.realm.Do(context.Background(), &kuji.Draw{Player: player, Pool: "bench"})
				must(b, err)
				took = append(took, time.Since(start))
			}
			mu.Lock()
			all = append(all, took...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return all
}

func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[int(float64(len(d)-1)*q)]
}
