package peers

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	dirFlag     = flag.String("dir", "", "directory for the logs, on the disk to measure; default is the system's for temporary files")
	recordsFlag = flag.Int("records", 1_000_000, "records in the logs that are read and opened")
)

// recordSize is that of all workloads that do not say another.
const recordSize = 256

// clock is what a workload needs of a *testing.B.
type clock interface {
	ResetTimer()
	StopTimer()
	StartTimer()
	ReportMetric(value float64, unit string)
	ReportAllocs()
	Elapsed() time.Duration
}

// run is one execution of a workload: n operations on logs of records records.
type run struct {
	testing.TB
	clock
	n       int
	records int
}

func (r *run) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// workload is a benchmark's body, which the tests run, too.
type workload struct {
	name string
	body func(r *run)
}

func benchmark(b *testing.B, all []workload) {
	for _, w := range all {
		b.Run(w.name, func(b *testing.B) {
			w.body(&run{TB: b, clock: b, n: b.N, records: *recordsFlag})
		})
	}
}

// still is a clock for the tests, which measure nothing.
type still struct{}

func (still) ResetTimer()                  {}
func (still) StopTimer()                   {}
func (still) StartTimer()                  {}
func (still) ReportMetric(float64, string) {}
func (still) ReportAllocs()                {}
func (still) Elapsed() time.Duration       { return 0 }

// TestWorkloads runs each benchmark's body once, small.
func TestWorkloads(t *testing.T) {
	for _, group := range []struct {
		name string
		all  []workload
		n    int
	}{
		{"Append", appendWorkloads(), 300},
		{"Durable", durableWorkloads(), 300},
		{"Read", readWorkloads(), 2},
		{"CrashOpen", openWorkloads(), 1},
		{"Sampler", samplerWorkloads(), 300},
		{"Player", playerWorkloads(), 300},
	} {
		for _, w := range group.all {
			t.Run(group.name+"/"+w.name, func(t *testing.T) {
				w.body(&run{TB: t, clock: still{}, n: group.n, records: 700})
			})
		}
	}
}

// scratch makes an empty directory that is gone when the run is over.
func (r *run) scratch() string {
	r.Helper()
	dir, err := os.MkdirTemp(*dirFlag, "kuji-peers-")
	r.check(err)
	r.Cleanup(func() { r.check(os.RemoveAll(dir)) })
	return filepath.Join(dir, "log")
}

// payload is incompressible, and the same in every run.
var payload = func() []byte {
	p := make([]byte, 1<<16)
	r := rand.NewChaCha8([32]byte{1})
	if _, err := r.Read(p); err != nil {
		panic(err)
	}
	return p
}()

// newRecord returns a record to stamp.
func newRecord(size int) []byte { return append([]byte(nil), payload[:size]...) }

// stamp makes a record tell its number.
func stamp(rec []byte, i int) { binary.LittleEndian.PutUint64(rec, uint64(i)) }

func mkdir(dir string) error { return os.MkdirAll(dir, 0o755) }

// stamped checks that a record is the i-th, at the price of a load.
func stamped(rec []byte, i int) error {
	if len(rec) < 8 || binary.LittleEndian.Uint64(rec) != uint64(i) {
		return fmt.Errorf("record %d: got %d bytes, stamped otherwise", i, len(rec))
	}
	return nil
}

// contestant is a log under test. What it cannot do is nil.
type contestant struct {
	name string
	// buffered opens a log whose appends may stay in memory; its Append may
	// be called by several goroutines.
	buffered func(dir string) (appender, error)
	// durable opens a log whose Append is durable on return; it may be called
	// by several goroutines.
	durable func(dir string) (appender, error)
	// source opens a closed log that buffered has written, to be read.
	source func(dir string) (source, error)
	// reopen opens a log after a crash until it can take appends, and tells
	// how many records it found; -1 when it does not look.
	reopen func(dir string) (found int, l appender, err error)
}

type appender interface {
	Append(rec []byte) error
	// Sync makes everything appended durable.
	Sync() error
	Close() error
}

// flusher is an appender that keeps what it has been given in memory, and can
// hand it to the system. What is still in memory is work that is not done yet:
// it is part of what is timed.
type flusher interface {
	// Flush returns when no more than a buffer is left to be written.
	Flush() error
}

// source reads a log. What it cannot do returns errUnsupported.
type source interface {
	// Read appends record i to dst.
	Read(i int, dst []byte) ([]byte, error)
	// Scan calls f with records from the first on, until f returns false or
	// they end. The bytes are valid until f returns.
	Scan(f func(rec []byte) bool) error
	Close() error
}

var errUnsupported = errors.New("not supported")

func contestants() []contestant {
	return []contestant{
		floor, kuji, kujiOne, pebbleRecord, pebbleDB, etcd, etcdGrouped, raftWAL, raftWALGrouped,
		rosedb, rosedbGrouped, tidwall, tidwallGrouped,
	}
}
