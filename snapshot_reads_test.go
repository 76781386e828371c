package kuji_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestSnapshotWithoutLog: with SyncOff nothing is written, and a snapshot is refused.
func TestSnapshotWithoutLog(t *testing.T) {
	_, r := open(t, "", kuji.Options{Sync: kuji.SyncOff})
	drawSome(t, r, "a", 3)
	_, err := r.Snapshot(t.Context())
	wantCode(t, err, kuji.CodeInvalid)
}

// TestCatalogReceiptAfterSnapshots: the catalog in force answers with the epoch that applied it.
func TestCatalogReceiptAfterSnapshots(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, kuji.Options{})
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
		e, r = open(t, dir, kuji.Options{})
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
	o := kuji.Options{TrimLog: true, SegmentSize: 4096}
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
	name := fmt.Sprintf("/realms/test/snapshots/%020d-%020d.snapshot", last.Position, 0)
	if err := os.Rename(dir+name, short+name); err != nil {
		t.Fatal(err)
	}
	if rep, err := kuji.Verify(short, "test", nil); err == nil {
		t.Errorf("verification finds nothing wrong: %+v", rep)
	}
	e, err := kuji.Open(short, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, err = e.Realm("test")
	wantCode(t, err, kuji.CodeCorrupt)
}

// TestVerifyDamagedOldest: a damaged snapshot is reported where the log was trimmed, too.
func TestVerifyDamagedOldest(t *testing.T) {
	dir := t.TempDir()
	e, r := open(t, dir, kuji.Options{TrimLog: true, SegmentSize: 4096})
	for round := range 3 {
		drawSome(t, r, fmt.Sprint(round, "-"), 40*(round+1))
		snapshot(t, r)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	files := snapshotFiles(t, dir)
	for _, f := range files {
		whole, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(f, 100); err != nil {
			t.Fatal(err)
		}
		if _, err := kuji.Verify(dir, "test", nil); err == nil || !strings.Contains(err.Error(), filepath.Base(f)) {
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
	_, r := open(t, "data", kuji.Options{FS: disk, SnapshotEvery: -1})
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
	if _, err := r.StaleBalance("p", "crown"); err != nil {
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
