package wal_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

const firstSegment = memDir + "/00000000000000000000.wal"

// FuzzOpen gives recovery a file of any content: it may refuse it or find
// records in it, but must not panic, and must agree with Verify and with
// itself.
func FuzzOpen(f *testing.F) {
	for _, closed := range []bool{false, true} {
		m := vfs.NewMem()
		small(f, m, closed)
		f.Add(contentOf(f, m, firstSegment))
	}
	f.Add([]byte{})
	f.Add(make([]byte, 200))
	f.Fuzz(func(t *testing.T, content []byte) {
		m := vfs.NewMem()
		put(t, m, firstSegment, content)
		o := on(m, wal.Options{SegmentSize: wal.MinSegmentSize})
		report, err := wal.Verify(context.Background(), memDir, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range wal.Groups(memDir, o) {
			if err != nil && !errors.Is(err, wal.ErrCorrupt) {
				t.Fatal(err)
			}
		}
		l, err := wal.Open(memDir, o)
		if err != nil {
			if !errors.Is(err, wal.ErrCorrupt) {
				t.Fatal(err)
			}
			if len(report.Damage) == 0 {
				t.Fatalf("Open refuses (%v) what Verify finds sound: %+v", err, report)
			}
			return
		}
		sound := readable(t, l)
		if len(report.Damage) == 0 && report.Next != l.Next() {
			t.Fatalf("Open finds %d records, Verify %d", l.Next(), report.Next)
		}
		if _, err := l.Append([]byte("more")); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l, err = wal.Open(memDir, o)
		if err != nil {
			t.Fatalf("what was recovered does not open: %v", err)
		}
		defer l.Close()
		again := readable(t, l)
		if len(again) != len(sound)+1 || !bytes.Equal(again[len(sound)], []byte("more")) {
			t.Fatalf("%d records, had %d and appended one", len(again), len(sound))
		}
		for i := range sound {
			if !bytes.Equal(sound[i], again[i]) {
				t.Fatalf("record %d changed", i)
			}
		}
	})
}

// readable returns the records of a log, nil where they are damaged.
func readable(t *testing.T, l *wal.Log) (records [][]byte) {
	t.Helper()
	for off := l.First(); off < l.Next(); off++ {
		data, err := l.Read(off, nil)
		if err != nil && !errors.Is(err, wal.ErrCorrupt) {
			t.Fatal(err)
		}
		records = append(records, data)
	}
	return records
}

func put(t testing.TB, m *vfs.Mem, file string, content []byte) {
	t.Helper()
	if err := m.MkdirAll(memDir); err != nil {
		t.Fatal(err)
	}
	f, err := m.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > 0 {
		if _, err := f.WriteAt(content, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Sync(), f.Close(), m.SyncDir(memDir)); err != nil {
		t.Fatal(err)
	}
}

// FuzzDamage changes bytes of a sound log: a record that is served is the one
// that was appended.
func FuzzDamage(f *testing.F) {
	whole := vfs.NewMem()
	durable, next := small(f, whole, false)
	whole = whole.CrashClone(vfs.Crash{Choose: vfs.Newest})
	files := segments(f, whole)
	f.Add(uint8(0), uint16(70), []byte{1, 2, 3})
	f.Add(uint8(1), uint16(0), []byte("KUJIWAL"))
	f.Fuzz(func(t *testing.T, which uint8, at uint16, with []byte) {
		file := files[int(which)%len(files)]
		size := sizeOf(t, whole, file)
		from := int64(at) % size
		with = with[:min(int64(len(with)), size-from)]
		m := whole.CrashClone(vfs.Crash{})
		overwrite(t, m, file, from, with)
		want := durable
		if len(with) > 1 {
			want = 0 // several bytes can take away all that was known
		}
		if _, verdict := judge(m, at%2 == 0, file, want, next); verdict != nil {
			t.Fatal(verdict)
		}
	})
}
