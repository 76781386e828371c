//go:build unix

package enginetest

import (
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
	"github.com/kuji-dev/kuji/wal"
)

// badPage is a file system one page of one file of which cannot be read.
type badPage struct {
	vfs.FS
	file string
	at   int64
}

type badPageFile struct {
	vfs.File
	at int64
}

const pageSize = 4096

func (b *badPage) Open(name string) (vfs.File, error) {
	f, err := b.FS.Open(name)
	if err != nil || path.Base(name) != b.file {
		return f, err
	}
	return &badPageFile{f, b.at}, nil
}

func (f *badPageFile) ReadAt(p []byte, off int64) (int, error) {
	if off < f.at+pageSize && off+int64(len(p)) > f.at {
		return 0, syscall.EIO
	}
	return f.File.ReadAt(p, off)
}

func (f *badPageFile) Map(n int64) (vfs.Mapping, error) {
	m, err := f.File.Map(n)
	if err != nil || f.at >= int64(len(m.Bytes())) {
		return m, err
	}
	page := unsafe.Slice(&m.Bytes()[f.at], min(pageSize, len(m.Bytes())-int(f.at)))
	return m, syscall.Mprotect(page, syscall.PROT_NONE)
}

// segmented is a closed log of some segments, one entry to a group, in a data directory.
func segmented(t *testing.T, o worldOptions, snapshots bool) (rep verify.Report, groups []wal.Group, log string) {
	t.Helper()
	o.SegmentSize, o.SnapshotEvery = 8192, -1
	if snapshots {
		o.SnapshotEvery, o.TrimLog = 1<<20, true
	}
	dir := t.TempDir()
	if o.FS != vfs.OS() {
		dir = "data"
	}
	log = dir + "/realms/test/log"
	e, r := open(t, dir, o)
	for i := range 150 {
		do(t, r, kuji.Draw{Player: fmt.Sprint("p", i%9), Pool: "free"})
		if snapshots && i%20 == 19 {
			if _, err := r.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := verifyIn(o.FS, dir, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	for g, err := range wal.Groups(log, on(o.FS, wal.Options{})) {
		if err != nil || g.Count != 1 {
			t.Fatal(g, err)
		}
		groups = append(groups, g)
	}
	if first, last := groups[0], groups[len(groups)-1]; first.File == last.File || snapshots == (first.First == 0) {
		t.Fatalf("groups from record %d in %s to %d in %s", first.First, first.File, last.First, last.File)
	}
	return rep, groups, log
}

// TestUnreadablePage: of a page that the disk does not give any more, the first entry in it
// or behind it is named.
func TestUnreadablePage(t *testing.T) {
	if n := syscall.Getpagesize(); n != pageSize {
		t.Skipf("pages have %d bytes here", n)
	}
	_, groups, log := segmented(t, worldOptions{FS: vfs.OS()}, false)
	tried := 0
	for i, g := range groups {
		at := g.Pos / pageSize * pageSize
		if i > 0 && groups[i-1].File == g.File && groups[i-1].Pos+groups[i-1].Bytes > at {
			continue // not the first of its page
		}
		tried++
		fsys := &badPage{vfs.OS(), path.Base(g.File), at}
		rep, err := verifyIn(fsys, strings.TrimSuffix(log, "/realms/test/log"), "test", nil)
		want := g.First + 1
		if got := wrongPosition(err); got > want || got+1 < want || rep.Position != got-1 { // or the one before, which reaches into the page
			t.Errorf("page at byte %d of %s: position %d is named, %d reached, want %d: %v", at, g.File, got, rep.Position, want, err)
		}
	}
	if tried < 4 {
		t.Errorf("only %d pages", tried)
	}
}

// TestDamageAmongSegments: what is wrong with a log of several segments is named where
// it stands, and what belongs to no entry as such.
func TestDamageAmongSegments(t *testing.T) {
	disk := vfs.NewMem()
	rep, groups, log := segmented(t, worldOptions{FS: disk}, false)
	end := rep.Position
	t.Run("index", func(t *testing.T) {
		second := groups[0]
		for _, g := range groups {
			if g.File != groups[0].File {
				second = g
				break
			}
		}
		info, err := disk.Stat(groups[0].File)
		if err != nil {
			t.Fatal(err)
		}
		for record := uint64(0); record < second.First; record++ { // each has 4 bytes, from the end of the groups on
			last := groups[second.First-1]
			at := last.Pos + last.Bytes + 4*int64(record)
			c := disk.CrashClone(vfs.Crash{})
			if at >= info.Size() {
				t.Fatal("no index")
			}
			if err := c.Flip(groups[0].File, at, 1, 1); err != nil {
				t.Fatal(err)
			}
			if _, err := verifyIn(c, "data", "test", nil); wrongPosition(err) != record+1 {
				t.Fatalf("the index of record %d is damaged: %v", record, err)
			}
		}
	})
	t.Run("no segment", func(t *testing.T) {
		c := disk.CrashClone(vfs.Crash{})
		f, err := c.Create(log + "/copy.wal")
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		rep, err := verifyIn(c, "data", "test", nil)
		if wrongPosition(err) != 0 || err == nil || !strings.Contains(err.Error(), "copy.wal") || rep.Position != end {
			t.Errorf("position %d of %d reached: %v", rep.Position, end, err)
		}
	})
	t.Run("where the snapshot ends", func(t *testing.T) {
		disk := vfs.NewMem()
		rep, groups, _ := segmented(t, worldOptions{FS: disk}, true)
		for i, g := range groups {
			c := disk.CrashClone(vfs.Crash{})
			if err := c.Flip(g.File, g.Pos+50, 1, 1); err != nil {
				t.Fatal(err)
			}
			want := g.First + 1
			if want < rep.From {
				want = 0
			}
			if _, err := verifyIn(c, "data", "test", nil); err == nil || wrongPosition(err) != want {
				t.Errorf("entry %d of %d, verified from position %d: position %d is named, want %d: %v", i, len(groups), rep.From, wrongPosition(err), want, err)
			}
		}
	})
}
