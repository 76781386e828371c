package wal_test

import (
	"hash/crc32"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/wal"
)

// BenchmarkReadBeside reads at random on 4 goroutines: by themselves, next to
// one that appends as fast as it can, and next to one that only computes, which
// is what sharing the processors costs when nothing else is shared. The three
// take turns, in a fresh log each time, so that neither the machine's other
// work nor memory that it has to find for the files decides the ratios. What
// beside=writing and beside=computing report is the part of the readers' speed
// that is left, the median of the rounds:
//
//	go test ./wal -run - -bench ReadBeside -benchtime 20x
func BenchmarkReadBeside(b *testing.B) {
	var alone, writing, computing, appends []float64
	for b.Loop() {
		l, remove := freshLog(b)
		data := payload(256)
		write := func() {
			if _, err := l.Append(data); err != nil {
				panic(err)
			}
		}
		sum := uint32(0)
		compute := func() { sum ^= crc32.Checksum(data, castagnoli) }
		readTurn(l, nil) // faults the pages in

		speed, _ := readTurn(l, nil)
		beside, appended := readTurn(l, write)
		if err := l.Sync(); err != nil {
			b.Fatal(err)
		}
		idle, _ := readTurn(l, compute)
		remove()
		alone = append(alone, 1e9/speed)
		writing = append(writing, beside/speed)
		computing = append(computing, idle/speed)
		appends = append(appends, appended)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(alone), "ns/read")
	b.ReportMetric(median(writing), "beside=writing")
	b.ReportMetric(median(computing), "beside=computing")
	b.ReportMetric(median(appends), "appends/s")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}

// freshLog is a log of readRecords durable records, and what removes it.
func freshLog(b *testing.B) (l *wal.Log, remove func()) {
	b.Helper()
	dir, err := os.MkdirTemp(b.TempDir(), "")
	if err != nil {
		b.Fatal(err)
	}
	if l, err = wal.Open(dir, wal.Options{SegmentSize: 512 << 20}); err != nil {
		b.Fatal(err)
	}
	data := payload(256)
	for range readRecords {
		if _, err := l.Append(data); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Sync(); err != nil {
		b.Fatal(err)
	}
	return l, func() {
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
}

// readTurn has 4 goroutines read for a while, next to another one that does
// something else unless that is nil, and returns how many reads and how many
// of the other were done a second.
func readTurn(l *wal.Log, other func()) (reads, others float64) {
	// Some thirty turns of the scheduler on each processor.
	const turn = 300 * time.Millisecond
	var stop atomic.Bool
	var read, done atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for seed := range uint64(4) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			buf := make([]byte, 0, 512)
			n := repeat(&stop, func() {
				var err error
				if buf, err = l.Read(r.Uint64N(readRecords), buf[:0]); err != nil {
					panic(err)
				}
			})
			read.Add(n)
		})
	}
	if other != nil {
		all.Go(func() { done.Add(repeat(&stop, other)) })
	}
	<-time.After(turn)
	took := time.Since(start).Seconds()
	stop.Store(true)
	all.Wait()
	return float64(read.Load()) / took, float64(done.Load()) / took
}

// repeat calls op until it is told to stop, and returns how often.
func repeat(stop *atomic.Bool, op func()) (n int64) {
	for ; !stop.Load(); n += 64 {
		for range 64 {
			op()
		}
	}
	return n
}
