package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

const memDir = "/log"

// small is a log of several segments that fits into a few kilobytes.
func small(t testing.TB, m *vfs.Mem, closed bool) (durableUpto, next uint64) {
	t.Helper()
	l, err := wal.Open(memDir, on(m, wal.Options{SegmentSize: wal.MinSegmentSize, LogID: 42}))
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
	l, err := wal.Open(memDir, on(m, wal.Options{SegmentSize: wal.MinSegmentSize, ReadOnly: readOnly}))
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

// TestTailChecked: with CheckTail, what Open would refuse after a crash it refuses after
// a clean close, too, and what it accepts it accepts after the next crash: nothing is
// appended behind damage.
func TestTailChecked(t *testing.T) {
	m := vfs.NewMem()
	_, next := small(t, m, true)
	files := segments(t, m)
	last := files[len(files)-1]
	o := on(m, wal.Options{SegmentSize: wal.MinSegmentSize})
	end := int64(0) // of the groups
	for g, err := range wal.Groups(memDir, o) {
		if err != nil {
			t.Fatal(err)
		}
		if g.File == last {
			end = g.Pos + g.Bytes
		}
	}
	for at := int64(0); at < sizeOf(t, m, last); at++ {
		c := m.CrashClone(vfs.Crash{})
		flip(t, c, last, at, 0x10)
		o = on(c, o)
		o.CheckTail = true
		l, err := wal.Open(memDir, o)
		if err != nil {
			if err := named(err, last); err != nil || at >= end {
				t.Fatalf("byte %d flipped: %v", at, err)
			}
			continue
		}
		if at >= 64 && at < end {
			t.Fatalf("byte %d flipped, of groups that end at %d, and the log was opened", at, end)
		}
		appendTo(t, l, next+3)
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
		o = on(c.KillClone(), o)
		again, err := wal.Open(memDir, o)
		if err != nil {
			t.Fatalf("byte %d flipped, opened, appended to, killed: %v", at, err)
		}
		if err := holds(again, next+3); err != nil {
			t.Fatalf("byte %d flipped: %v", at, err)
		}
		if err := errors.Join(again.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSalvage: of a log that is damaged, all is read that stands before the damage, and
// nothing that differs.
func TestSalvage(t *testing.T) {
	for _, closed := range []bool{false, true} {
		m := vfs.NewMem()
		_, next := small(t, m, closed)
		m = m.CrashClone(vfs.Crash{Choose: vfs.Newest})
		salvaged := func(when string) (n uint64) {
			first, records, err := wal.Salvage(memDir, on(m, wal.Options{}))
			if err != nil || first != 0 {
				t.Fatalf("%s: %d, %v", when, first, err)
			}
			for rec, err := range records {
				if err != nil || rec.Offset != n || !bytes.Equal(rec.Data, record(n)) {
					t.Fatalf("%s: record %d: offset %d, %d bytes, %v", when, n, rec.Offset, len(rec.Data), err)
				}
				n++
			}
			return n
		}
		if n := salvaged("undamaged"); n != next {
			t.Errorf("%d records of %d", n, next)
		}
		var groups []wal.Group
		for g, err := range wal.Groups(memDir, on(m, wal.Options{})) {
			if err == nil {
				groups = append(groups, g)
			}
		}
		for _, g := range groups {
			for at := g.Pos; at < g.Pos+g.Bytes; at++ {
				flip(t, m, g.File, at, 0x10)
				want := g.First
				for end := g.Pos + 48; at >= g.Pos+48 && want < g.First+uint64(g.Count); want++ {
					if end += 8 + int64(len(record(want))); at < end {
						break // in this one
					}
				}
				if n := salvaged(fmt.Sprintf("byte %d of %s", at, g.File)); n != want {
					t.Fatalf("byte %d of %s flipped: %d records are read, want %d", at, g.File, n, want)
				}
				flip(t, m, g.File, at, 0x10)
			}
		}
		for _, file := range segments(t, m) {
			flip(t, m, file, 20, 0x10) // in its header
			n := salvaged("header of " + file)
			if i := slices.IndexFunc(groups, func(g wal.Group) bool { return g.File == file }); i < 0 || n != groups[i].First {
				t.Errorf("%s has no header, and %d records are read", file, n)
			}
			flip(t, m, file, 20, 0x10)
		}
	}
	m := vfs.NewMem()
	small(t, m, true)
	files := segments(t, m)
	if err := m.Remove(files[1]); err != nil {
		t.Fatal(err)
	}
	_, records, err := wal.Salvage(memDir, on(m, wal.Options{}))
	n := uint64(0)
	for range records {
		n++
	}
	var missing uint64
	if _, serr := fmt.Sscanf(path.Base(files[1]), "%d.wal", &missing); err != nil || serr != nil || n != missing {
		t.Errorf("without the segment of record %d, %d records are read: %v, %v", missing, n, err, serr)
	}
	if _, _, err := wal.Salvage("/nothing", on(vfs.NewMem(), wal.Options{})); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
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
	for g, err := range wal.Groups(memDir, on(m, wal.Options{})) {
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
		for g, err := range wal.Groups(memDir, on(m, wal.Options{})) {
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
			l, err := wal.Open(memDir, on(c, wal.Options{ReadOnly: true}))
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
