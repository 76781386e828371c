package peers

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

func BenchmarkRead(b *testing.B)      { benchmark(b, readWorkloads()) }
func BenchmarkCrashOpen(b *testing.B) { benchmark(b, openWorkloads()) }

// fill writes the records that are read or opened later.
func fill(r *run, l appender) {
	r.Helper()
	rec := newRecord(recordSize)
	for i := range r.records {
		stamp(rec, i)
		r.check(l.Append(rec))
	}
	r.check(l.Sync())
}

// readWorkloads: reads of closed logs that fit into the page cache and not
// into the CPU's, each record copied to the caller's buffer.
func readWorkloads() []workload {
	var all []workload
	for _, c := range contestants() {
		if c.source == nil {
			continue
		}
		all = append(all, workload{"order=sequential/log=" + c.name, func(r *run) { readInOrder(r, c) }})
		if c.name == pebbleRecord.name || c.name == etcd.name {
			continue // they know no reads by position
		}
		all = append(all, workload{"order=random/log=" + c.name, func(r *run) { readAtRandom(r, c) }})
	}
	return all
}

// filledSource opens a closed log of r.records records.
func filledSource(r *run, c contestant) source {
	r.Helper()
	dir := r.scratch()
	l, err := c.buffered(dir)
	r.check(err)
	fill(r, l)
	r.check(l.Close())
	s, err := c.source(dir)
	r.check(err)
	return s
}

// readInOrder reads all records, r.n times. ns/op is of one record, allocations
// are those of a pass.
func readInOrder(r *run, c contestant) {
	s := filledSource(r, c)
	dst := make([]byte, 0, recordSize)
	pass := func() {
		i := 0
		err := s.Scan(func(rec []byte) bool {
			dst = append(dst[:0], rec...)
			if err := stamped(dst, i); err != nil {
				r.Error(err)
				return false
			}
			i++
			return true
		})
		r.check(err)
		if i != r.records {
			r.Fatalf("scan: got %d records, want %d", i, r.records)
		}
	}
	pass() // the first one faults the pages in
	r.ReportAllocs()
	r.ResetTimer()
	for range r.n {
		pass()
	}
	r.StopTimer()
	r.ReportMetric(float64(r.Elapsed().Nanoseconds())/float64(r.n)/float64(r.records), "ns/op")
	r.check(s.Close())
}

func readAtRandom(r *run, c contestant) {
	s := filledSource(r, c)
	dst := make([]byte, 0, recordSize)
	rng := rand.New(rand.NewPCG(1, 2))
	r.check(s.Scan(func([]byte) bool { return true })) // faults the pages in
	r.ReportAllocs()
	r.ResetTimer()
	for range r.n {
		i := rng.IntN(r.records)
		rec, err := s.Read(i, dst)
		r.check(err)
		r.check(stamped(rec, i))
	}
	r.StopTimer()
	r.check(s.Close())
}

// openWorkloads: from the files that a crash left to a log that takes appends.
func openWorkloads() []workload {
	var all []workload
	for _, c := range contestants() {
		if c.reopen != nil {
			all = append(all, workload{"log=" + c.name, func(r *run) { openAfterCrash(r, c) }})
		}
	}
	return all
}

func openAfterCrash(r *run, c contestant) {
	image := r.scratch()
	l, err := c.buffered(image)
	r.check(err)
	fill(r, l) // synced, and not closed until all is measured
	r.StopTimer()
	r.ResetTimer()
	for range r.n {
		disk := filepath.Join(r.scratch(), "log")
		r.check(copyTree(disk, image))
		r.StartTimer()
		found, next, err := c.reopen(disk)
		r.StopTimer()
		r.check(err)
		if found >= 0 && found != r.records {
			r.Fatalf("found %d records, want %d", found, r.records)
		}
		r.check(next.Append(newRecord(recordSize)))
		r.check(next.Close())
		r.check(os.RemoveAll(disk))
	}
	r.ReportMetric(float64(r.records), "records")
	r.check(l.Close())
}

// copyTree copies a file or a directory of files.
func copyTree(to, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := mkdir(filepath.Dir(to)); err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, 0o644); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}
