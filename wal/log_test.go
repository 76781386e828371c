package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// record returns the data that test records have at an offset: every offset
// has other bytes, and lengths vary.
func record(offset uint64) []byte {
	r := rand.New(rand.NewPCG(offset, 7))
	data := make([]byte, r.IntN(300))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

func open(t testing.TB, dir string, o wal.Options) *wal.Log {
	t.Helper()
	l, err := wal.Open(dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, wal.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

// on puts a log on a file system.
func on(fs vfs.FS, o wal.Options) wal.Options {
	hook.WAL(&o, fs, nil)
	return o
}

// openMem opens a new log on a file system in memory that can crash.
func openMem(t testing.TB, o wal.Options) (*vfs.Mem, *wal.Log) {
	t.Helper()
	m := vfs.NewMem()
	l, err := wal.Open(memDir, on(m, o))
	if err != nil {
		t.Fatal(err)
	}
	return m, l
}

// small4K are options for logs of the smallest segments.
var small4K = wal.Options{SegmentSize: wal.MinSegmentSize, LogID: 42}

// small4KOn are the same for a log that is on m already.
func small4KOn(m *vfs.Mem) wal.Options {
	return on(m, small4K)
}

func appendTo(t testing.TB, l *wal.Log, until uint64) {
	t.Helper()
	for want := l.Next(); want < until; want++ {
		got, err := l.Append(record(want))
		if err != nil || got != want {
			t.Fatalf("Append: offset %d, %v; want %d", got, err, want)
		}
	}
}

// checkRange reads every record of a log in every way there is.
func checkRange(t testing.TB, l *wal.Log, first, next uint64) {
	t.Helper()
	if l.First() != first || l.Next() != next {
		t.Fatalf("log holds %d to %d, want %d to %d", l.First(), l.Next(), first, next)
	}
	var buf []byte
	for off := first; off < next; off++ {
		var err error
		if buf, err = l.Read(off, buf[:0]); err != nil || !bytes.Equal(buf, record(off)) {
			t.Fatalf("Read(%d): %d bytes, %v", off, len(buf), err)
		}
		v, err := l.View(off)
		if err != nil || !bytes.Equal(v.Data, record(off)) {
			t.Fatalf("View(%d): %d bytes, %v", off, len(v.Data), err)
		}
		v.Release()
	}
	for name, seq := range map[string]func(uint64) func(func(wal.Record, error) bool){
		"Records": func(o uint64) func(func(wal.Record, error) bool) { return l.Records(o) },
		"Views":   func(o uint64) func(func(wal.Record, error) bool) { return l.Views(o) },
	} {
		want := first
		for rec, err := range seq(first) {
			if err != nil || rec.Offset != want || !bytes.Equal(rec.Data, record(want)) {
				t.Fatalf("%s at %d: offset %d, %d bytes, %v", name, want, rec.Offset, len(rec.Data), err)
			}
			want++
		}
		if want != next {
			t.Fatalf("%s ended at %d, want %d", name, want, next)
		}
	}
}

func TestAppendReadReopen(t *testing.T) {
	for _, size := range []int64{wal.MinSegmentSize, 64 << 10, 0} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			dir := t.TempDir()
			next := uint64(0)
			for range 4 {
				l := open(t, dir, wal.Options{SegmentSize: size})
				if l.Durable() != next {
					t.Fatalf("Durable %d after opening, want %d", l.Durable(), next)
				}
				checkRange(t, l, 0, next)
				next += 1000
				appendTo(t, l, next)
				checkRange(t, l, 0, next)
				if err := l.Sync(); err != nil || l.Durable() != next {
					t.Fatalf("Sync: durable %d, %v; want %d", l.Durable(), err, next)
				}
				checkRange(t, l, 0, next)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestAppendSyncShared(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{SegmentSize: 64 << 10})
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 200 {
				data := fmt.Appendf(nil, "writer %d record %d", w, i)
				off, err := l.AppendSync(context.Background(), data)
				if err != nil || l.Durable() <= off {
					t.Errorf("AppendSync: offset %d, durable %d, %v", off, l.Durable(), err)
					return
				}
				if got, err := l.Read(off, nil); err != nil || !bytes.Equal(got, data) {
					t.Errorf("Read(%d) = %q, %v; want %q", off, got, err, data)
				}
			}
		})
	}
	wg.Wait()
	if l.Next() != 3200 {
		t.Errorf("Next is %d, want 3200", l.Next())
	}
}
