package wal_test

import (
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// BenchmarkTrim drops segments of 8 MiB while a writer appends 256 B at a time,
// some hundred MB/s, and tells how long its appends took meanwhile. For as long
// as dropping 9 takes, segments=0 drops nothing: what the appends take then is
// the machine's doing. So it is in BenchmarkTrimFloor, where nobody appends.
func BenchmarkTrim(b *testing.B) {
	for _, files := range []int{0, 4, 9} {
		b.Run(fmt.Sprintf("segments=%d", files), func(b *testing.B) {
			data := payload(256)
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				l := open(b, b.TempDir(), wal.Options{SegmentSize: 8 << 20})
				for l.Stat().Segments <= 9 {
					if _, err := l.Append(data); err != nil {
						b.Fatal(err)
					}
				}
				if err := l.Sync(); err != nil {
					b.Fatal(err)
				}
				before := uint64(files) * l.Next() / 9
				b.StartTimer()
				took = append(took, beside(b, func() {
					if _, err := l.Append(data); err != nil {
						panic(err)
					}
				}, func() {
					if err := l.TrimBefore(before); err != nil {
						b.Fatal(err)
					}
				})...)
				if files == 0 {
					took = append(took, beside(b, func() {
						if _, err := l.Append(data); err != nil {
							panic(err)
						}
					}, func() { <-time.After(10 * time.Millisecond) })...)
				}
				b.StopTimer()
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			reportWorst(b, took)
		})
	}
}

// BenchmarkTrimBesideDurable drops segments of 64 MiB, one every 200 ms, next to a
// goroutine whose appends wait until they are durable, and does nothing for as long
// before that. It writes more than half a gigabyte each time: -benchtime 5x.
func BenchmarkTrimBesideDurable(b *testing.B) {
	const files, size, every = 8, 64 << 20, 200 * time.Millisecond
	data := payload(256)
	var without, with []time.Duration
	for b.Loop() {
		b.StopTimer()
		l := open(b, b.TempDir(), wal.Options{SegmentSize: size})
		for l.Stat().Segments <= files {
			if _, err := l.Append(data); err != nil {
				b.Fatal(err)
			}
		}
		if err := l.Sync(); err != nil {
			b.Fatal(err)
		}
		each := l.Next() / files
		appends := func() {
			if _, err := l.AppendSync(b.Context(), data); err != nil {
				panic(err)
			}
		}
		b.StartTimer()
		without = append(without, beside(b, appends, func() { <-time.After(files * every) })...)
		with = append(with, beside(b, appends, func() {
			for i := range uint64(files) {
				if err := l.TrimBefore((i + 1) * each); err != nil {
					b.Fatal(err)
				}
				<-time.After(every)
			}
		})...)
		b.StopTimer()
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	for _, of := range []struct {
		name string
		took []time.Duration
	}{{"without", without}, {"with", with}} {
		slices.Sort(of.took)
		n := len(of.took)
		b.ReportMetric(float64(of.took[n*999/1000].Microseconds()), "p99.9-"+of.name+"-µs")
		b.ReportMetric(float64(of.took[n-1].Microseconds()), "max-"+of.name+"-µs")
	}
}

// BenchmarkTrimFloor removes as many files of the same size by themselves, each
// for good, next to a goroutine that does next to nothing and is timed.
func BenchmarkTrimFloor(b *testing.B) {
	const files = 9
	data := payload(1 << 20)
	sum := uint32(0)
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		for i := range files {
			f, err := vfs.OS().Create(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				b.Fatal(err)
			}
			for at := range int64(8) {
				writeSync(b, f, data, at<<20)
			}
			f.Close()
		}
		b.StartTimer()
		took = append(took, beside(b, func() { sum ^= crc32.Checksum(data[:256], castagnoli) }, func() {
			for i := range files {
				if err := vfs.OS().Remove(filepath.Join(dir, fmt.Sprint(i))); err != nil {
					b.Fatal(err)
				}
				if err := vfs.OS().SyncDir(dir); err != nil {
					b.Fatal(err)
				}
			}
		})...)
	}
	reportWorst(b, took)
}

// beside runs op again and again, timed, with a pause after each hundred,
// while other runs. Only other is on the benchmark's clock.
func beside(b *testing.B, op, other func()) []time.Duration {
	stop := make(chan struct{})
	done := make(chan []time.Duration)
	go func() {
		var took []time.Duration
		for {
			for range 100 {
				start := time.Now()
				op()
				took = append(took, time.Since(start))
			}
			select {
			case <-stop:
				done <- took
				return
			default:
				<-time.After(50 * time.Microsecond)
			}
		}
	}()
	other()
	b.StopTimer()
	close(stop)
	took := <-done
	b.StartTimer()
	return took
}

func reportWorst(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	n := len(took)
	b.ReportMetric(float64(took[n*999/1000].Nanoseconds()), "append-p99.9-ns")
	b.ReportMetric(float64(took[n*9999/10000].Nanoseconds()), "append-p99.99-ns")
	b.ReportMetric(float64(took[n-1].Nanoseconds()), "append-max-ns")
}
