package wal_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// Each benchmark has its floor next to it, named Floor: the least that anyone
// could do for the same bytes with the same system calls. Compare them within
// one run only:
//
//	go test ./wal -run - -bench 'Append$' -count 6 | benchstat -row /size,/writers -col .name -

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func payload(size int) []byte {
	data := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(data)
	return data
}

// inTurn runs n operations on several goroutines.
func inTurn(b *testing.B, writers int, op func()) {
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			// Shares are taken in blocks, to measure op and not the counter.
			for {
				n := min(left.Add(-256)+256, 256)
				if n <= 0 {
					return
				}
				for range n {
					op()
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{64, 256} {
		for _, writers := range []int{1, 8} {
			b.Run(fmt.Sprintf("size=%d/writers=%d", size, writers), func(b *testing.B) {
				l := open(b, b.TempDir(), wal.Options{RetainBytes: 256 << 20})
				data := payload(size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				inTurn(b, writers, func() {
					if _, err := l.Append(data); err != nil {
						panic(err)
					}
				})
				b.StopTimer()
			})
		}
	}
}

// floorFile is a file that starts again at every 64 MiB.
type floorFile struct {
	*os.File
	dir  string
	at   int64
	made int
}

func (f *floorFile) write(p []byte) error {
	if f.File == nil || f.at+int64(len(p)) > 64<<20 {
		if f.File != nil {
			f.Close()
		}
		if f.made >= 4 {
			os.Remove(filepath.Join(f.dir, fmt.Sprint(f.made-4)))
		}
		var err error
		if f.File, err = os.Create(filepath.Join(f.dir, fmt.Sprint(f.made))); err != nil {
			return err
		}
		f.made++
		f.at = 0
	}
	_, err := f.WriteAt(p, f.at)
	f.at += int64(len(p))
	return err
}

func BenchmarkAppendFloor(b *testing.B) {
	for _, size := range []int{64, 256} {
		b.Run(fmt.Sprintf("size=%d/writers=1", size), func(b *testing.B) {
			f := floorFile{dir: b.TempDir()}
			var mu sync.Mutex
			buf := make([]byte, 0, 128<<10)
			data := payload(size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				mu.Lock()
				var head [8]byte
				binary.LittleEndian.PutUint32(head[:], crc32.Checksum(data, castagnoli))
				binary.LittleEndian.PutUint32(head[4:], uint32(len(data)))
				buf = append(buf, head[:]...)
				buf = append(buf, data...)
				if len(buf) >= 64<<10 {
					if err := f.write(buf); err != nil {
						b.Fatal(err)
					}
					buf = buf[:0]
				}
				mu.Unlock()
			}
		})
	}
}

func BenchmarkAppendSync(b *testing.B) {
	for _, writers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l := open(b, b.TempDir(), wal.Options{RetainBytes: 256 << 20})
			data := payload(256)
			var next atomic.Int64
			took := make([]time.Duration, b.N)
			inTurnSingly(b, writers, func() {
				start := time.Now()
				if _, err := l.AppendSync(context.Background(), data); err != nil {
					panic(err)
				}
				took[next.Add(1)-1] = time.Since(start)
			})
			b.StopTimer()
			reportTimes(b, took)
		})
	}
}

// inTurnSingly is inTurn without blocks, for operations that wait.
func inTurnSingly(b *testing.B, writers int, op func()) {
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				op()
			}
		})
	}
	wg.Wait()
}

func reportTimes(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// BenchmarkAppendSyncFloor is one pwrite and one fdatasync at a time.
func BenchmarkAppendSyncFloor(b *testing.B) {
	for _, size := range []int{264, 4096, 16384} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			f := createOS(b)
			data := payload(size)
			took := make([]time.Duration, 0, 1<<16)
			at := int64(0)
			for b.Loop() {
				start := time.Now()
				writeSync(b, f, data, at)
				at += int64(size)
				took = append(took, time.Since(start))
			}
			reportTimes(b, took)
		})
	}
}

func createOS(b *testing.B) vfs.File {
	f, err := vfs.OS().Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

func writeSync(b *testing.B, f vfs.File, data []byte, at int64) {
	if _, err := f.WriteAt(data, at); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
}

var cadences = []int{1, 10, 100, 1000}

// BenchmarkSyncEvery appends and fsyncs at a cadence, in turn with its floor: a
// write of the bytes that a group of so many records has, and an fsync. They
// change places every few fsyncs, because a disk that others use is not the
// same one a second later.
func BenchmarkSyncEvery(b *testing.B) {
	const turns = 16
	for _, every := range cadences {
		b.Run(fmt.Sprintf("every=%d", every), func(b *testing.B) {
			l := open(b, b.TempDir(), wal.Options{SyncEvery: uint64(every), RetainBytes: 256 << 20})
			data := payload(256)
			floor := syncFloor{b: b, group: payload(48 + every*264)}
			var took, least time.Duration
			n := 0
			for b.Loop() {
				start := time.Now()
				for range turns * every {
					if _, err := l.Append(data); err != nil {
						b.Fatal(err)
					}
				}
				took += time.Since(start)
				least += floor.run(turns)
				n += turns * every
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took.Nanoseconds())/float64(n), "ns/record")
			b.ReportMetric(float64(least.Nanoseconds())/float64(n), "floor-ns/record")
			b.ReportMetric(float64(took)/float64(least), "of-floor")
		})
	}
}

// syncFloor writes groups to files of 64 MiB and fsyncs each.
type syncFloor struct {
	b     *testing.B
	group []byte
	file  vfs.File
	at    int64
}

func (f *syncFloor) run(groups int) time.Duration {
	if f.file == nil || f.at > 64<<20 {
		f.file, f.at = createOS(f.b), 0
	}
	start := time.Now()
	for range groups {
		writeSync(f.b, f.file, f.group, f.at)
		f.at += int64(len(f.group))
	}
	return time.Since(start)
}

// readRecords is how many records of 256 bytes the read benchmarks go through:
// more than the processor caches hold.
const readRecords = 1 << 20

// filled makes a log of readRecords records. Sealed: all in a segment that is
// not written to any more; else all in the one that is.
func filled(b *testing.B, sealed bool) *wal.Log {
	b.Helper()
	l := open(b, b.TempDir(), wal.Options{SegmentSize: 512 << 20})
	data := payload(256)
	for range readRecords {
		if _, err := l.Append(data); err != nil {
			b.Fatal(err)
		}
	}
	for sealed {
		if _, err := l.Append(make([]byte, 8<<20)); err != nil {
			b.Fatal(err)
		}
		sealed = l.Stat().Segments == 1
	}
	if err := l.Sync(); err != nil {
		b.Fatal(err)
	}
	return l
}

// pattern returns the offsets that a benchmark reads.
func pattern(random bool) func() uint64 {
	i := uint64(0)
	if !random {
		return func() uint64 { i++; return i % readRecords }
	}
	r := rand.New(rand.NewPCG(1, 2))
	return func() uint64 { return r.Uint64N(readRecords) }
}

func BenchmarkRead(b *testing.B) {
	for _, state := range []string{"sealed", "active"} {
		l := filled(b, state == "sealed")
		for _, order := range []string{"sequential", "random", "hot"} {
			b.Run("order="+order+"/state="+state, func(b *testing.B) {
				at := pattern(order == "random")
				if order == "hot" {
					at = func() uint64 { return 77 }
				}
				buf := make([]byte, 0, 512)
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if buf, err = l.Read(at(), buf[:0]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run("order=views/state="+state, func(b *testing.B) {
			n := 0
			for n < b.N {
				for _, err := range l.Views(0) {
					if n++; err != nil {
						b.Fatal(err)
					}
					if n >= b.N || n%readRecords == 0 {
						break
					}
				}
			}
		})
		b.Run("order=records/state="+state, func(b *testing.B) {
			n := 0
			for n < b.N {
				for _, err := range l.Records(0) {
					if n++; err != nil {
						b.Fatal(err)
					}
					if n >= b.N || n%readRecords == 0 {
						break
					}
				}
			}
		})
		l.Close()
	}
}

// BenchmarkReadFloor copies and checks records whose positions it knows from a
// mapping.
func BenchmarkReadFloor(b *testing.B) {
	f := createOS(b)
	const stride = 264
	data := payload(stride)
	binary.LittleEndian.PutUint32(data, crc32.Checksum(data[4:], castagnoli))
	block := slices.Repeat(data, 1024)
	for at := range int64(readRecords / 1024) {
		if _, err := f.WriteAt(block, at*int64(len(block))); err != nil {
			b.Fatal(err)
		}
	}
	m, err := f.Map(stride * readRecords)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Unmap()
	for _, order := range []string{"sequential", "random", "hot"} {
		b.Run("order="+order+"/state=sealed", func(b *testing.B) {
			at := pattern(order == "random")
			if order == "hot" {
				at = func() uint64 { return 77 }
			}
			buf := make([]byte, 0, 512)
			for b.Loop() {
				rec := m.Bytes()[at()*stride:][:stride]
				buf = append(buf[:0], rec[8:]...)
				if crc32.Checksum(rec[4:], castagnoli) != binary.LittleEndian.Uint32(rec) {
					b.Fatal("checksum")
				}
			}
		})
	}
}

var big = flag.Bool("big", false, "open benchmarks with 10 M records too: needs 6 GB of disk")

func openSizes() []int {
	if *big {
		return []int{1e6, 10e6}
	}
	return []int{1e6}
}

// crashed makes a log of n records that was not closed, in segments of a size,
// and returns its last segment's file. Of what is in that, nothing is known to be
// durable but by what syncEvery asks for.
func crashed(b *testing.B, n, syncEvery int, segmentSize int64) (dir, last string, size int64) {
	b.Helper()
	made := filepath.Join(b.TempDir(), "made")
	l := open(b, made, wal.Options{SegmentSize: segmentSize})
	data := payload(256)
	for i := range n {
		if _, err := l.Append(data); err != nil {
			b.Fatal(err)
		}
		if syncEvery > 0 && i%syncEvery == syncEvery-1 && i < n-syncEvery/2 {
			if err := l.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := l.Flush(); err != nil {
		b.Fatal(err)
	}
	size = l.Stat().Bytes
	if err := l.Close(); err != nil { // adds a footer to the last segment
		b.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(made, "*.wal"))
	if err != nil {
		b.Fatal(err)
	}
	last = segments[len(segments)-1]
	for _, full := range segments[:len(segments)-1] {
		info, err := os.Stat(full)
		if err != nil {
			b.Fatal(err)
		}
		size -= info.Size()
	}
	return made, last, size
}

// BenchmarkOpenAfterCrash opens a log that was not closed. With segments=one, every
// record is in the last segment and so checked; those of full segments are not, as
// their footers are on disk: segments=66MiB is about the default, with a last one
// that is nine tenths full, of a million records. A crash leaves what was fsynced
// and a little more; synced=never is a log of which the process died and nobody
// ever asked for an fsync: there, all of the last segment is written once more and
// fsynced.
func BenchmarkOpenAfterCrash(b *testing.B) {
	for _, n := range openSizes() {
		benchmarkOpenAfterCrash(b, n, "one", wal.MaxSegmentSize, 5000)
		benchmarkOpenAfterCrash(b, n, "one", wal.MaxSegmentSize, 0)
		benchmarkOpenAfterCrash(b, n, "66MiB", 66<<20, 5000)
		benchmarkOpenAfterCrash(b, n, "66MiB", 66<<20, 0)
	}
}

func benchmarkOpenAfterCrash(b *testing.B, n int, segments string, segmentSize int64, syncEvery int) {
	name := "never"
	if syncEvery > 0 {
		name = fmt.Sprint("every-", syncEvery)
	}
	b.Run(fmt.Sprintf("records=%d/segments=%s/synced=%s", n, segments, name), func(b *testing.B) {
		dir, last, size := crashed(b, n, syncEvery, segmentSize)
		for b.Loop() {
			b.StopTimer()
			if err := os.Truncate(last, size); err != nil { // the footer that Close writes
				b.Fatal(err)
			}
			b.StartTimer()
			l, err := wal.Open(dir, wal.Options{})
			if err != nil || l.Next() != uint64(n) {
				b.Fatal(l.Next(), err)
			}
			b.StopTimer()
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	})
}

// BenchmarkOpenAfterCrashFloor computes the CRC32C of every record's data from
// a mapping of the same file, on one processor.
func BenchmarkOpenAfterCrashFloor(b *testing.B) {
	for _, n := range openSizes() {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			_, file, size := crashed(b, n, 0, wal.MaxSegmentSize)
			sum := uint32(0)
			for b.Loop() {
				f, err := vfs.OS().Open(file)
				if err != nil {
					b.Fatal(err)
				}
				m, err := f.Map(size)
				if err != nil {
					b.Fatal(err)
				}
				for rest := m.Bytes(); len(rest) >= 264; rest = rest[264:] {
					sum ^= crc32.Checksum(rest[8:264], castagnoli)
				}
				m.Unmap()
				f.Close()
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			if sum == 1 {
				b.Log(sum)
			}
		})
	}
}

func BenchmarkOpenAfterClose(b *testing.B) {
	dir := b.TempDir()
	l := open(b, dir, wal.Options{})
	data := payload(256)
	for range 1000000 {
		if _, err := l.Append(data); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		var err error
		if l, err = wal.Open(dir, wal.Options{}); err != nil || l.Next() != 1000000 {
			b.Fatal(err)
		}
	}
	l.Close()
}
