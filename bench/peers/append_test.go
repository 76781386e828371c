package peers

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// roundRecords is after how many records a buffered log is thrown away and
// begun anew, files and all, so that a long run measures the log, and neither
// the disk's writeback of gigabytes nor memory that the page cache takes for the
// first time, which in a virtual machine the host may have to find.
const roundRecords = 1 << 20

func BenchmarkAppend(b *testing.B)  { benchmark(b, appendWorkloads()) }
func BenchmarkDurable(b *testing.B) { benchmark(b, durableWorkloads()) }

// appendWorkloads: appends that may be lost.
func appendWorkloads() []workload {
	var all []workload
	for _, size := range []int{64, recordSize} {
		for _, writers := range []int{1, 8} {
			for _, c := range contestants() {
				if c.buffered == nil || c.name == kujiOne.name {
					continue
				}
				all = append(all, workload{
					fmt.Sprintf("size=%d/writers=%d/log=%s", size, writers, c.name),
					func(r *run) { appendBuffered(r, c, size, writers) },
				})
			}
		}
	}
	return all
}

func appendBuffered(r *run, c contestant, size, writers int) {
	r.ReportAllocs()
	r.StopTimer()
	r.ResetTimer()
	for done := 0; done < r.n; {
		n := min(r.n-done, roundRecords)
		dir := r.scratch()
		l, err := c.buffered(dir)
		r.check(err)
		r.StartTimer()
		spread(r, l, n, size, writers, nil)
		if f, ok := l.(flusher); ok {
			r.check(f.Flush())
		}
		r.StopTimer()
		r.check(l.Close())
		r.check(os.RemoveAll(dir))
		done += n
	}
}

// spread appends n records by some goroutines. took gets the duration of each
// append unless it is nil.
func spread(r *run, l appender, n, size, writers int, took []time.Duration) {
	var next atomic.Int64
	work := func() {
		rec := newRecord(size)
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			stamp(rec, i)
			if took == nil {
				if err := l.Append(rec); err != nil {
					r.Errorf("record %d: %v", i, err)
					return
				}
				continue
			}
			start := time.Now()
			if err := l.Append(rec); err != nil {
				r.Errorf("record %d: %v", i, err)
				return
			}
			took[i] = time.Since(start)
		}
	}
	if writers == 1 {
		work()
		return
	}
	var wg sync.WaitGroup
	for range writers {
		wg.Go(work)
	}
	wg.Wait()
}

// durableWorkloads: appends that have reached the disk on return.
func durableWorkloads() []workload {
	var all []workload
	for _, writers := range []int{1, 64, 256} {
		for _, c := range contestants() {
			if c.durable == nil || c.name == floor.name && writers > 1 {
				continue // the floor is one write and one fdatasync
			}
			all = append(all, workload{
				fmt.Sprintf("writers=%d/log=%s", writers, c.name),
				func(r *run) { appendDurable(r, c, writers) },
			})
		}
	}
	return all
}

func appendDurable(r *run, c contestant, writers int) {
	l, err := c.durable(r.scratch())
	r.check(err)
	took := make([]time.Duration, r.n)
	r.ReportAllocs()
	r.ResetTimer()
	spread(r, l, r.n, recordSize, writers, took)
	r.StopTimer()
	slices.Sort(took)
	r.ReportMetric(float64(took[len(took)*50/100]), "p50-ns")
	r.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
	r.check(l.Close())
}
