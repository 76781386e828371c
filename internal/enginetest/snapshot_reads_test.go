package enginetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

// TestCatalogReceiptAfterSnapshots: the catalog in force answers with the epoch that applied it.
func TestCatalogReceiptAfterSnapshots(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	first, err := r.Apply(t.Context(), parse(t, testCatalog))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		do(t, r, kuji.Draw{Player: "p", Pool: "free"})
		snapshot(t, r)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e, r = open(t, dir, worldOptions{})
		again, err := r.Apply(t.Context(), parse(t, testCatalog))
		if err != nil {
			t.Fatal(err)
		}
		if again.Receipt.Epoch != first.Receipt.Epoch || again.Receipt.Commitment != first.Receipt.Commitment {
			t.Errorf("reopening %d: %+v, was %+v", i, again.Receipt, first.Receipt)
		}
	}
}

// TestTrimmedLogThatIsTooShort: a log that was trimmed, and ends just before the
// entry that the only snapshot is of, is refused.
func TestTrimmedLogThatIsTooShort(t *testing.T) {
	dir, copies := t.TempDir(), t.TempDir()
	o := worldOptions{TrimLog: true, SegmentSize: 4096}
	e, r := open(t, dir, o)
	for round := range 4 {
		drawSome(t, r, fmt.Sprint(round, "-"), 40)
		snapshot(t, r)
	}
	short, last := "", kuji.Snapshot{Base: 1}
	for i := 0; last.Base != 0; i++ {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		short = fmt.Sprint(copies, "/", i)
		if err := os.CopyFS(short, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		e, r = open(t, dir, o)
		last = snapshot(t, r) // of the epoch's begin, which the copy's log does not have
	}
	for _, name := range snapshotFiles(t, short) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	names, err := filepath.Glob(fmt.Sprintf("%s/realms/test/snapshots/%020d-%020d-*.snapshot", dir, last.Position, 0))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := os.Rename(names[0], short+"/realms/test/snapshots/"+filepath.Base(names[0])); err != nil {
		t.Fatal(err)
	}
	if rep, err := verify.Dir(short, "test", verify.Options{}); err == nil {
		t.Errorf("verification finds nothing wrong: %+v", rep)
	}
	e, err = openWorld(short, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, err = e.Realm("test")
	wantCode(t, err, kuji.CodeCorrupt)
}

// TestVerifyDamagedOldest: a damaged snapshot is reported where the log was trimmed, too.
func TestVerifyDamagedOldest(t *testing.T) {
	dir := trimmedRealm(t)
	files := snapshotFiles(t, dir)
	for _, f := range files {
		whole, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(f, 100); err != nil {
			t.Fatal(err)
		}
		if _, err := verify.Dir(dir, "test", verify.Options{}); err == nil || !strings.Contains(err.Error(), filepath.Base(f)) {
			t.Errorf("%s is damaged, and verification says %v", filepath.Base(f), err)
		}
		if err := os.WriteFile(f, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBalanceOfANewItem: a balance rests on the catalog that has the item, and
// waits for it.
func TestBalanceOfANewItem(t *testing.T) {
	disk := vfs.NewMem()
	_, r := open(t, "data", worldOptions{FS: disk, SnapshotEvery: -1})
	do(t, r, kuji.Draw{Player: "p", Pool: "free"})
	gate, entered := make(chan struct{}), make(chan struct{}, 1000)
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync {
			entered <- struct{}{}
			<-gate
		}
		return vfs.Fault{}
	})
	applied := make(chan error)
	go func() {
		_, err := r.Apply(t.Context(), parse(t, strings.Replace(testCatalog, "  sword: {}", "  sword: {}\n  crown: {}", 1)))
		applied <- err
	}()
	<-entered
	if _, err := r.Balance(kuji.Stale(t.Context()), "p", "crown"); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Balance(ctx, "p", "crown")
	wantCode(t, err, kuji.CodeCanceled)
	close(gate)
	if err := <-applied; err != nil {
		t.Error(err)
	}
	if n, err := r.Balance(t.Context(), "p", "crown"); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestSnapshotSurvivesPowerCut: a snapshot that was announced is found after a
// power cut, and so is the log that it is of, whatever the sync policy.
func TestSnapshotSurvivesPowerCut(t *testing.T) {
	for _, policy := range []kuji.SyncPolicy{kuji.SyncAlways, kuji.SyncInterval, kuji.SyncNone} {
		disk := vfs.NewMem()
		o := worldOptions{FS: disk, Sync: policy, SyncEvery: time.Hour, TrimLog: true, SegmentSize: 64 << 10}
		_, r := open(t, "data", o)
		for round := range 3 {
			drawSome(t, r, fmt.Sprint(round, "-"), 400)
			s := snapshot(t, r)
			want, _, err := r.StateHash(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			o.FS = disk.CrashClone(vfs.Crash{})
			e, err := openWorld("data", o)
			if err != nil {
				t.Fatal(err)
			}
			after, err := e.Realm("test")
			if err != nil {
				t.Fatalf("policy %v, round %d: %v", policy, round, err)
			}
			if got := after.Stats(); got.Snapshot != s.Position || got.RecoveredEvents != 0 {
				t.Errorf("policy %v, round %d: the snapshot of %d is found after a power cut, and %d events behind it; want that of %d", policy, round, got.Snapshot, got.RecoveredEvents, s.Position)
			}
			if got, _, err := after.StateHash(t.Context()); got != want || err != nil {
				t.Errorf("policy %v, round %d: another state after a power cut: %v", policy, round, err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestSnapshotChainIsShort: however little changes, some snapshot holds all of
// the state, so that few files must be whole.
func TestSnapshotChainIsShort(t *testing.T) {
	_, r := open(t, "data", worldOptions{FS: vfs.NewMem(), SnapshotEvery: -1})
	drawSome(t, r, "large", 300)
	chain := 0
	for i := range 40 {
		do(t, r, kuji.Draw{Player: fmt.Sprint(i), Pool: "free"})
		if chain++; snapshot(t, r).Base == 0 {
			chain = 0
		}
		if chain > 16 {
			t.Fatalf("%d snapshots build on one", chain)
		}
	}
}

// TestSnapshotAskedForMeanwhile: while one is being written another is asked for,
// and begins when the first ends, though nothing happens any more.
func TestSnapshotAskedForMeanwhile(t *testing.T) {
	disk := vfs.NewMem()
	_, r := open(t, "data", worldOptions{FS: disk, SnapshotEvery: -1})
	gate, entered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpCreate && strings.HasSuffix(op.Path, ".tmp") {
			once.Do(func() {
				close(entered)
				<-gate
			})
		}
		return vfs.Fault{}
	})
	first := make(chan kuji.Snapshot)
	go func() {
		s, err := r.Snapshot(t.Context())
		if err != nil {
			t.Error(err)
		}
		first <- s
	}()
	<-entered
	res := do(t, r, kuji.Draw{Player: "p", Pool: "free"})
	second, err := r.Snapshot(lateContext{t.Context(), sync.OnceFunc(func() { close(gate) })}) // once it waits
	if one := <-first; err != nil || one.Position >= res.Receipt.Position || second.Position != res.Receipt.Position || second.Base != one.Position {
		t.Errorf("%+v, then %+v: %v", one, second, err)
	}
}

// TestAnswerOfAnOlderCatalogAfterSnapshots: a request that was answered before a
// snapshot gives what it gave, when the catalog changed before the next one.
func TestAnswerOfAnOlderCatalogAfterSnapshots(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, worldOptions{})
	draw := kuji.Draw{ID: "first", Player: "p", Pool: "box", Count: 100}
	first := do(t, r, draw)
	snapshot(t, r)
	changed := parse(t, strings.ReplaceAll(testCatalog, "sword: 1}}", "sword: 2}}"))
	if _, err := r.Apply(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if s := snapshot(t, r); s.Base == 0 {
		t.Fatal("the second snapshot holds everything")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := openWorld(dir, worldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if r, err = e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	if again := do(t, r, draw); !again.Replayed || fmt.Sprint(again.Outcomes) != fmt.Sprint(first.Outcomes) {
		t.Errorf("answers %v, did %v", again.Outcomes, first.Outcomes)
	}
}
