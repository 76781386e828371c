package enginetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

func snapshotFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/realms/test/snapshots/*")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// drawSome makes n draws with ids by several players.
func drawSome(t testing.TB, r *kuji.Realm, tag string, n int) {
	t.Helper()
	for i := range n {
		do(t, r, kuji.Draw{ID: fmt.Sprint(tag, i), Player: fmt.Sprint("p", i%7), Pool: "free"})
	}
}

func snapshot(t testing.TB, r *kuji.Realm) kuji.Snapshot {
	t.Helper()
	s, err := r.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// oneSnapshot makes a realm of some draws that was closed behind its only snapshot,
// which it returns with the file's name.
func oneSnapshot(t testing.TB, draws int) (dir, name string, content []byte) {
	t.Helper()
	dir = t.TempDir()
	e, r := open(t, dir, worldOptions{})
	drawSome(t, r, "a", draws)
	snapshot(t, r)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	name = snapshotFiles(t, dir)[0]
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return dir, name, content
}

// trimmedRealm makes a realm that was closed with snapshots, and without the log before them.
func trimmedRealm(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	e, r := open(t, dir, worldOptions{TrimLog: true, SegmentSize: 4096})
	for round := range 3 {
		drawSome(t, r, fmt.Sprint(round, "-"), 40*(round+1))
		snapshot(t, r)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSnapshots takes snapshots of a realm that goes on, and opens it again
// from each, with the same answers and the same state as from the whole log.
func TestSnapshots(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	if got := snapshot(t, r); got.Base != 0 {
		t.Errorf("the first snapshot builds on %d", got.Base)
	}
	first := do(t, r, kuji.Draw{ID: "first", Player: "p0", Pool: "free"})
	for round := range 40 {
		before := r.Stats()
		drawSome(t, r, fmt.Sprint("a", round, "-"), 10)
		s := snapshot(t, r)
		if s.Position != before.Position+10 {
			t.Errorf("a snapshot of position %d, want %d", s.Position, before.Position+10)
		}
		if s.Base != 0 && s.Base != before.Snapshot {
			t.Errorf("it builds on %d, want %d", s.Base, before.Snapshot)
		}
		if again := snapshot(t, r); again != s {
			t.Errorf("nothing happened, and %+v was taken after %+v", again, s)
		}
		if n := len(snapshotFiles(t, dir)); n > 34 { // two chains of 17
			t.Fatalf("%d files of snapshots", n)
		}
		if round%10 != 9 {
			continue
		}
		drawSome(t, r, fmt.Sprint("b", round, "-"), 3) // beyond the snapshot
		held := items(t, r, "p1")
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e, r = open(t, dir, worldOptions{})
		if got := r.Stats(); got.RecoveredEvents != 3 || got.Snapshot != s.Position {
			t.Errorf("%d events were replayed from the snapshot of %d; want 3 from %d", got.RecoveredEvents, got.Snapshot, s.Position)
		}
		if got := fmt.Sprint(items(t, r, "p1")); got != fmt.Sprint(held) {
			t.Errorf("p1 holds %s after reopening, had %v", got, held)
		}
		again := do(t, r, kuji.Draw{ID: "first", Player: "p0", Pool: "free"})
		if again.Replayed = false; fmt.Sprint(again) != fmt.Sprint(first) || again.Receipt != first.Receipt {
			t.Errorf("the first request answers %+v, did %+v", again, first)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := verify.Dir(dir, "test", verify.Options{})
	if err != nil || rep.Snapshots == 0 || rep.From != 0 {
		t.Errorf("%d snapshots verified, from position %d: %v", rep.Snapshots, rep.From, err)
	}
}

// TestSnapshotFsyncs: a snapshot that makes none before it superfluous asks the disk twice,
// for its file and for its name, as each time the log's own fsyncs have to wait; and one
// that failed, as somebody removed the directory, is followed by one that makes it anew and
// builds on none.
func TestSnapshotFsyncs(t *testing.T) {
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk})
	drawSome(t, r, "a", 40)
	snapshot(t, r)
	drawSome(t, r, "b", 2)
	var synced []string
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir {
			synced = append(synced, path.Base(op.Path))
		}
		return vfs.Fault{}
	})
	if s := snapshot(t, r); s.Base == 0 {
		t.Error("it builds on none before it")
	}
	disk.SetHook(nil)
	if want := []string{"2.tmp", "snapshots"}; !slices.Equal(synced, want) {
		t.Errorf("fsynced were %q, want %q", synced, want)
	}

	const dir = "data/realms/test/snapshots"
	names, err := disk.List(dir)
	for _, name := range names {
		err = errors.Join(err, disk.Remove(dir+"/"+name))
	}
	if err := errors.Join(err, disk.Remove(dir)); err != nil {
		t.Fatal(err)
	}
	drawSome(t, r, "c", 2)
	if _, err := r.Snapshot(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a snapshot where there is no directory: %v", err)
	}
	s := snapshot(t, r)
	if names, err := disk.List(dir); err != nil || len(names) != 1 || s.Base != 0 {
		t.Errorf("in the directory are %q, which build on %d: %v", names, s.Base, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, r = open(t, "data", worldOptions{FS: disk}); r.Stats().Snapshot != s.Position {
		t.Errorf("the realm was opened from the snapshot of %d, want %d", r.Stats().Snapshot, s.Position)
	}
}

// TestSnapshotBehindAFailedOne: what changed before a snapshot that could not be written is in
// the next one, which builds on the one before it.
func TestSnapshotBehindAFailedOne(t *testing.T) {
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk})
	drawSome(t, r, "a", 40)
	first := snapshot(t, r)
	sword := []kuji.Stack{{Item: "sword", Quantity: 1}}
	do(t, r, kuji.Grant{Player: "before", Items: sword})
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync && path.Ext(op.Path) == ".tmp" {
			return vfs.Fault{Err: syscall.EIO}
		}
		return vfs.Fault{}
	})
	if _, err := r.Snapshot(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Errorf("a snapshot that could not be made durable: %v", err)
	}
	disk.SetHook(nil)
	do(t, r, kuji.Grant{Player: "behind", Items: sword})
	if s := snapshot(t, r); s.Base != first.Position {
		t.Errorf("it builds on %d, want %d", s.Base, first.Position)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := verifyIn(disk, "data", "test", nil); err != nil || rep.Snapshots != 2 {
		t.Errorf("%d snapshots hold what the log gives, want 2: %v", rep.Snapshots, err)
	}
}

// unlinkFS is a file system that removes in two parts, and writes down what is done.
type unlinkFS struct {
	vfs.FS
	fail    bool // the fsync of a directory in which something was removed
	removed bool
	done    []string // repetitions left out
}

func (u *unlinkFS) note(what string) {
	if n := len(u.done); n == 0 || u.done[n-1] != what {
		u.done = append(u.done, what)
	}
}

func (u *unlinkFS) Unlink(name string) (func(stop func() bool), error) {
	u.note("removed")
	u.removed = true
	return func(stop func() bool) {
		if stop() {
			u.note("closed")
			return
		}
		u.note("freed")
	}, u.Remove(name)
}

func (u *unlinkFS) SyncDir(dir string) error {
	if !strings.HasSuffix(dir, "/snapshots") || !u.removed {
		return u.FS.SyncDir(dir)
	}
	u.removed = false
	if u.fail {
		u.note("failed")
		return syscall.EIO
	}
	u.note("fsynced")
	return u.FS.SyncDir(dir)
}

// TestSnapshotsRemoved: what is in an old snapshot is cut only when its name is gone for good.
func TestSnapshotsRemoved(t *testing.T) {
	for _, c := range []struct {
		fail bool
		want string
	}{
		{false, "[removed fsynced freed"},
		{true, "[removed failed closed"},
	} {
		u := &unlinkFS{FS: vfs.OS(), fail: c.fail}
		e, r := open(t, t.TempDir(), worldOptions{FS: u})
		for round := range 40 {
			drawSome(t, r, fmt.Sprint(round, "-"), 40)
			snapshot(t, r)
			if len(u.done) > 0 {
				break
			}
		}
		if got := fmt.Sprint(u.done); !strings.HasPrefix(got, c.want) {
			t.Errorf("fsync fails: %v: %s, want %s ...", c.fail, got, c.want)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSnapshotsByThemselves lets the realm take them, with many writers.
func TestSnapshotsByThemselves(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{SnapshotEvery: 20_000, TrimLog: true, SegmentSize: 8 << 10})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() { drawSome(t, r, fmt.Sprint("w", w, "-"), 600) })
	}
	wg.Wait()
	s := snapshot(t, r)
	drawSome(t, r, "last", 5)
	stats := r.Stats()
	if stats.Snapshots < 3 || stats.SnapshotErr != nil {
		t.Errorf("%d snapshots, %v", stats.Snapshots, stats.SnapshotErr)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := verify.Dir(dir, "test", verify.Options{})
	if err != nil || rep.From == 0 || rep.Snapshots == 0 || !rep.Epochs[0].Revealed {
		t.Fatalf("verified from position %d, with %d snapshots: %v", rep.From, rep.Snapshots, err)
	}
	_, r = open(t, dir, worldOptions{})
	if got := r.Stats().RecoveredEvents; got != 5 {
		t.Errorf("%d events replayed after the snapshot of %d, want 5", got, s.Position)
	}
	for w := range 8 {
		for i := range 600 {
			res := do(t, r, kuji.Draw{ID: fmt.Sprint("w", w, "-", i), Player: fmt.Sprint("p", i%7), Pool: "free"})
			if !res.Replayed {
				t.Fatalf("w%d-%d was carried out again", w, i)
			}
		}
	}
}

// TestDamagedSnapshots flips bits of snapshots and cuts them short: the realm
// opens from an older one or from the log, with the same state, and says what
// is wrong; when the log was trimmed and none is whole, it refuses.
func TestDamagedSnapshots(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{Sync: kuji.SyncNone})
	for round := range 4 {
		drawSome(t, r, fmt.Sprint(round, "-"), 4)
		snapshot(t, r)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := verify.Dir(dir, "test", verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files := snapshotFiles(t, dir)
	for _, name := range files {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, damaged []byte) {
			t.Helper()
			if err := os.WriteFile(name, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			rep, err := verify.Dir(dir, "test", verify.Options{})
			if err == nil || rep.StateHash != want.StateHash || !strings.Contains(err.Error(), filepath.Base(name)) {
				t.Errorf("%s, %s: verification says %v", filepath.Base(name), what, err)
			}
		}
		step := max(1, len(whole)/40)
		for at := 0; at < len(whole); at += step {
			flipped := []byte(string(whole))
			flipped[at] ^= 1 << (at % 8)
			check(fmt.Sprint("bit flipped in byte ", at), flipped)
			check(fmt.Sprint("cut at byte ", at), whole[:at])
		}
		check("grown", append([]byte(string(whole)), 0))
		if err := os.WriteFile(name, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// All damaged: the log has everything.
	for _, name := range files {
		if err := os.Truncate(name, 100); err != nil {
			t.Fatal(err)
		}
	}
	e, r = open(t, dir, worldOptions{Sync: kuji.SyncNone, TrimLog: true, SegmentSize: 4096})
	if s := r.Stats(); s.RecoveredEvents != 17 || s.SnapshotErr == nil {
		t.Errorf("%d events replayed, %v", s.RecoveredEvents, s.SnapshotErr)
	}
	for round := range 6 {
		drawSome(t, r, fmt.Sprint("more", round, "-"), 40)
		snapshot(t, r)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is still there", filepath.Base(name))
		}
	}
	if rep, err := verify.Dir(dir, "test", verify.Options{}); err != nil || rep.From == 0 {
		t.Fatalf("verified from %d: %v", rep.From, err)
	}
	// The newest damaged: the one before it serves, with the log from there.
	files = snapshotFiles(t, dir)
	if err := os.Truncate(files[len(files)-1], 100); err != nil {
		t.Fatal(err)
	}
	e, r = open(t, dir, worldOptions{Sync: kuji.SyncNone})
	if s := r.Stats(); s.RecoveredEvents != 40 || s.SnapshotErr == nil {
		t.Errorf("%d events replayed, want 40; %v", s.RecoveredEvents, s.SnapshotErr)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if err := os.Truncate(name, 100); err != nil {
			t.Fatal(err)
		}
	}
	e, err = openWorld(dir, worldOptions{Sync: kuji.SyncNone})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, err = e.Realm("test")
	wantCode(t, err, kuji.CodeCorrupt)
}

// TestSnapshotOfAnotherLog puts a realm's snapshots next to the log of a realm of
// the same name that went another way, and a log that is shorter.
func TestSnapshotOfAnotherLog(t *testing.T) {
	make := func(draws int) string {
		dir := t.TempDir()
		e, r := open(t, dir, worldOptions{})
		drawSome(t, r, "a", draws)
		snapshot(t, r)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for _, draws := range []int{8, 2} {
		snapshots, log := make(8), make(draws)
		if err := os.RemoveAll(log + "/realms/test/snapshots"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(snapshots+"/realms/test/snapshots", log+"/realms/test/snapshots"); err != nil {
			t.Fatal(err)
		}
		e, err := openWorld(log, worldOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		_, err = e.Realm("test")
		wantCode(t, err, kuji.CodeCorrupt)
	}
}

// TestSizes: the log that is kept becomes shorter when it is trimmed, while what was appended adds up, and
// snapshots have a size.
func TestSizes(t *testing.T) {
	_, r := open(t, t.TempDir(), worldOptions{TrimLog: true, SegmentSize: 4096})
	if s := r.Stats(); s.LogKept < s.LogBytes || s.SnapshotBytes != 0 {
		t.Errorf("before anything was trimmed: %+v", s)
	}
	for round := range 5 {
		drawSome(t, r, fmt.Sprint(round, "-"), 200)
		snapshot(t, r)
	}
	if s := r.Stats(); s.LogKept == 0 || s.LogKept >= s.LogBytes || s.SnapshotBytes == 0 {
		t.Errorf("after it was trimmed: %+v", s)
	}
}
