package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

const memDir = "/log"

// small is a log of several segments that fits into a few kilobytes.
func small(t testing.TB, m *vfs.Mem, closed bool) (durableUpto, next uint64) {
	t.Helper()
	l, err := wal.Open(memDir, wal.Options{FS: m, SegmentSize: wal.MinSegmentSize, LogID: 42})
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		durableUpto = l.Durable()
		appendTo(t, l, l.Next()+5)
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	next = l.Next()
	if closed {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return next, next
	}
	return durableUpto, next
}

func segments(t testing.TB, m *vfs.Mem) []string {
	t.Helper()
	names, err := m.List(memDir)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range names {
		if path.Ext(name) == ".wal" {
			paths = append(paths, path.Join(memDir, name))
		}
	}
	return paths
}

func sizeOf(t testing.TB, m *vfs.Mem, name string) int64 {
	t.Helper()
	info, err := m.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// judge opens a log that has been damaged in one file and checks that damage
// is reported or cut above what was known to be durable, never served.
func judge(m *vfs.Mem, readOnly bool, damaged string, durableUpto, next uint64) (errs int, verdict error) {
	l, err := wal.Open(memDir, wal.Options{FS: m, SegmentSize: wal.MinSegmentSize, ReadOnly: readOnly})
	if err != nil {
		return 1, named(err, damaged)
	}
	defer l.Close()
	if l.First() != 0 {
		return 0, fmt.Errorf("First is %d", l.First())
	}
	if l.Next() > next || l.Next() < durableUpto {
		return 0, fmt.Errorf("log holds %d records, had %d of which %d were durable", l.Next(), next, durableUpto)
	}
	for off := range l.Next() {
		data, err := l.Read(off, nil)
		if err != nil {
			if err := named(err, damaged); err != nil {
				return errs, err
			}
			errs++
			continue
		}
		if !bytes.Equal(data, record(off)) {
			return errs, fmt.Errorf("wrong data served for record %d", off)
		}
	}
	return errs, nil
}

// named checks that an error says in which file the damage is.
func named(err error, damaged string) error {
	var c *wal.CorruptionError
	if !errors.As(err, &c) || !errors.Is(err, wal.ErrCorrupt) {
		return fmt.Errorf("damage reported as %T: %w", err, err)
	}
	if c.File != damaged {
		return fmt.Errorf("damage is in %s, reported: %w", damaged, err)
	}
	return nil
}

func TestEveryBitFlipped(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			t.Parallel()
			m := vfs.NewMem()
			durable, next := small(t, m, closed)
			m = m.CrashClone(vfs.Crash{Choose: vfs.Newest})
			flips, noticed := 0, 0
			for _, file := range segments(t, m) {
				for at := int64(0); at < sizeOf(t, m, file); at += everyByte {
					for bit := range 8 {
						flip(t, m, file, at, 1<<bit)
						errs, verdict := judge(m, true, file, durable, next)
						if verdict != nil {
							t.Fatalf("bit %d of byte %d of %s flipped: %v", bit, at, file, verdict)
						}
						flip(t, m, file, at, 1<<bit)
						flips++
						noticed += min(errs, 1)
					}
				}
			}
			t.Logf("%d flips, %d of them reported", flips, noticed)
			if noticed < flips/2 {
				t.Errorf("only %d of %d flips were reported", noticed, flips)
			}
		})
	}
}

func flip(t testing.TB, m *vfs.Mem, file string, at int64, mask byte) {
	t.Helper()
	if err := m.Flip(file, at, 1, mask); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedOpenedForWriting checks that recovery, which changes files, goes
// by the same rules as looking on.
func TestDamagedOpenedForWriting(t *testing.T) {
	for _, closed := range []bool{false, true} {
		m := vfs.NewMem()
		durable, next := small(t, m, closed)
		m = m.CrashClone(vfs.Crash{Choose: vfs.Newest})
		for _, file := range segments(t, m) {
			for at := int64(0); at < sizeOf(t, m, file); at += 7 {
				c := m.CrashClone(vfs.Crash{})
				flip(t, c, file, at, 0x10)
				if _, verdict := judge(c, false, file, durable, next); verdict != nil {
					t.Fatalf("closed=%v: byte %d of %s flipped: %v", closed, at, file, verdict)
				}
			}
		}
	}
}

func TestEveryTruncation(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			m := vfs.NewMem()
			durable, next := small(t, m, closed)
			m = m.CrashClone(vfs.Crash{Choose: vfs.Newest})
			files := segments(t, m)
			for i, file := range files {
				for size := sizeOf(t, m, file) - 1; size >= 0; size-- {
					c := m.CrashClone(vfs.Crash{})
					truncate(t, c, file, size)
					// What is known of the last file stands in the last file.
					want := durable
					if i == len(files)-1 {
						want = knownDurable(c)
					}
					if _, verdict := judge(c, size%3 > 0, file, want, next); verdict != nil {
						t.Fatalf("%s cut to %d bytes: %v", file, size, verdict)
					}
				}
			}
		})
	}
}

// knownDurable returns what the groups that are left say.
func knownDurable(m *vfs.Mem) (durable uint64) {
	for g, err := range wal.Groups(memDir, wal.Options{FS: m}) {
		if err == nil {
			durable = max(durable, g.DurableUpto)
		}
	}
	return durable
}

func truncate(t testing.TB, m *vfs.Mem, file string, size int64) {
	t.Helper()
	f, err := m.OpenWrite(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size), f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestSectorsSwapped(t *testing.T) {
	const sector = 512
	for _, closed := range []bool{false, true} {
		m := vfs.NewMem()
		_, next := small(t, m, closed)
		m = m.CrashClone(vfs.Crash{Choose: vfs.Newest})
		var groups []wal.Group
		for g, err := range wal.Groups(memDir, wal.Options{FS: m}) {
			if err == nil {
				groups = append(groups, g)
			} else if closed { // else a footer may be half written
				t.Fatal(err)
			}
		}
		for _, file := range segments(t, m) {
			content := contentOf(t, m, file)
			for i := range len(content) / sector {
				for j := range i {
					// What the header of a group says is known if it stayed whole.
					known := uint64(0)
					for _, g := range groups {
						from, to := int(g.Pos)/sector, int(g.Pos+47)/sector
						if g.File != file || from != i && from != j && to != i && to != j {
							known = max(known, g.DurableUpto)
						}
					}
					c := m.CrashClone(vfs.Crash{})
					overwrite(t, c, file, int64(i)*sector, content[j*sector:][:sector])
					overwrite(t, c, file, int64(j)*sector, content[i*sector:][:sector])
					if _, verdict := judge(c, j%2 == 0, file, known, next); verdict != nil {
						t.Fatalf("closed=%v: sectors %d and %d of %s swapped: %v", closed, i, j, file, verdict)
					}
				}
			}
		}
	}
}

// TestRecordElsewhere puts each record of equal length in the place of
// another: the bytes are sound, and the place is wrong.
func TestRecordElsewhere(t *testing.T) {
	m, l := openMem(t, wal.Options{})
	for i := range 8 {
		if _, err := l.AppendSync(context.Background(), bytes.Repeat([]byte{byte(i)}, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	file := segments(t, m)[0]
	content := contentOf(t, m, file)
	var at []int
	for i := range 8 {
		at = append(at, bytes.Index(content, bytes.Repeat([]byte{byte(i)}, 100))-8)
	}
	for i := range at {
		for j := range at {
			if i == j || at[i] < 64 || at[j] < 64 {
				continue
			}
			c := m.CrashClone(vfs.Crash{Choose: vfs.Newest})
			overwrite(t, c, file, int64(at[i]), content[at[j]:][:108])
			l, err := wal.Open(memDir, wal.Options{FS: c, ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			if data, err := l.Read(uint64(i), nil); !errors.Is(err, wal.ErrCorrupt) {
				t.Fatalf("record %d in the place of %d was read: %q, %v", j, i, data, err)
			}
			l.Close()
		}
	}
}

func contentOf(t testing.TB, m *vfs.Mem, file string) []byte {
	t.Helper()
	f, err := m.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, sizeOf(t, m, file))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		t.Fatal(n, err)
	}
	return b
}

func overwrite(t testing.TB, m *vfs.Mem, file string, at int64, p []byte) {
	t.Helper()
	if err := m.Overwrite(file, at, p); err != nil {
		t.Fatal(err)
	}
}
