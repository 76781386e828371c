package enginetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/backup"
	"github.com/kuji-dev/kuji/internal/hook"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// backedUp is an open realm on a disk of its own, and its client.
func backedUp(t *testing.T, snapshots bool) (*vfs.Mem, *kuji.Realm, *client) {
	t.Helper()
	disk, c := vfs.NewMem(), newClient()
	c.snapshots = snapshots
	e, err := openWorld("data", c.options(disk))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() }) // some tests cut its power
	r, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), parse(t, testCatalog)); err != nil {
		t.Fatal(err)
	}
	return disk, r, c
}

// draws makes draws, with snapshots if the client wants them.
func (c *client) draws(t *testing.T, r *kuji.Realm, tag string, n int) {
	t.Helper()
	for i := range n {
		if err := c.do(r, kuji.Draw{ID: fmt.Sprint(tag, i), Player: fmt.Sprint("p", i%3), Pool: "box", Count: 1 + i%2}); err != nil {
			t.Fatal(err)
		}
		if c.snapshots && i%3 == 2 {
			if _, err := r.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// restored restores a backup and checks what is there: it verifies, and a server on it gives the
// answers that the client had by the time of the backup.
func (c *client) restored(disk *vfs.Mem, to string) error {
	if err := hook.Restore(disk, "backup", to); err != nil {
		return err
	}
	return c.serves(disk, to)
}

func (c *client) serves(disk *vfs.Mem, dir string) error {
	if _, err := verifyIn(disk, dir, "test", nil); err != nil {
		return err
	}
	e, err := openWorld(dir, worldOptions{FS: disk, SegmentSize: 8 << 10})
	if err != nil {
		return err
	}
	r, err := e.Realm("test")
	if err == nil {
		before := r.Stats().Epoch
		if err = c.checkRealm(r); err == nil && before < 2 {
			err = fmt.Errorf("the restored realm goes on in epoch %d", before)
		}
	}
	return errors.Join(err, e.Close())
}

// TestBackupUnderLoad backs up a realm that is drawn from, whose log was trimmed. What was acknowledged
// before is in each backup, once.
func TestBackupUnderLoad(t *testing.T) {
	_, r, c := backedUp(t, true)
	c.draws(t, r, "trimmed", 150)
	dst := vfs.NewMem()
	for round := range 8 {
		had := newClient()
		c.mu.Lock()
		maps.Copy(had.acked, c.acked)
		for id := range had.acked {
			had.asked[id] = c.asked[id]
		}
		c.mu.Unlock()
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for i := range 40 {
					if err := c.do(r, kuji.Draw{ID: fmt.Sprint(round, w, "-", i), Player: fmt.Sprint("p", w), Pool: "box", Count: 1 + i%2}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		err := hook.Backup(dst, "backup", "test", backup.Of(r))
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
		to := fmt.Sprint("restored", round)
		if err := hook.Restore(dst, "backup", to); err != nil {
			t.Fatal(err)
		}
		e, err := openWorld(to, worldOptions{FS: dst, SegmentSize: 8 << 10})
		if err != nil {
			t.Fatal(err)
		}
		restored, err := e.Realm("test")
		if err != nil {
			t.Fatal(err)
		}
		for id := range had.acked {
			before := restored.Stats().Events
			if err := had.do(restored, had.asked[id].(kuji.Draw)); err != nil || restored.Stats().Events != before {
				t.Fatalf("round %d: id %s, acknowledged before the backup: %v, or carried out again", round, id, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := verifyIn(dst, to, "test", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// upTo is a source as it was when the log ended at a cursor.
func upTo(r *kuji.Realm, last uint64) backup.Source {
	return func(ctx context.Context, from uint64) iter.Seq2[backup.Part, error] {
		return func(yield func(backup.Part, error) bool) {
			next := from
			for part, err := range backup.Of(r)(ctx, from) {
				if part.Begin != nil {
					next = max(from, part.Begin.First)
					part.Begin.Through = last
				}
				if part.Entry != nil {
					if next++; next-1 > last {
						return
					}
				}
				if !yield(part, err) {
					return
				}
			}
		}
	}
}

// TestBackupCrash cuts the power before each operation that changes the disk of a backup: of a first
// one, with and without a trimmed log, and of one that goes on with it. The next backup goes on, and
// ends up the same.
func TestBackupCrash(t *testing.T) {
	for _, trimmed := range []bool{false, true} {
		t.Run(fmt.Sprint("trimmed ", trimmed), func(t *testing.T) {
			src, r, c := backedUp(t, trimmed)
			c.draws(t, r, "a", map[bool]int{false: 40, true: 150}[trimmed])
			var first, half, last uint64
			for part, err := range backup.Of(r)(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if part.Begin != nil {
					first, half = part.Begin.First, part.Begin.Through
				}
			}
			if (first > 1) != trimmed {
				t.Fatalf("the log begins at %d", first)
			}
			c.snapshots = false // nothing is trimmed behind the first backup
			c.draws(t, r, "b", 15)
			want, err := verifyIn(src.KillClone(), "data", "test", nil)
			if err != nil {
				t.Fatal(err)
			}
			last = uint64(want.Position)
			both := func(disk *vfs.Mem) error {
				if err := hook.Backup(disk, "backup", "test", upTo(r, half)); err != nil {
					return err
				}
				return hook.Backup(disk, "backup", "test", backup.Of(r))
			}
			dry := vfs.NewMem()
			if err := both(dry); err != nil {
				t.Fatal(err)
			}
			_, steps := dry.Ops()
			t.Logf("%d steps, entries %d to %d to %d", steps, first, half, last)
			for step := range steps {
				disk := vfs.NewMem()
				disk.CutPowerAfter(step)
				if err := both(disk); err == nil {
					t.Fatalf("step %d: nothing happened", step)
				}
				for crashed := range disk.CrashSamples(2, uint64(step), false) {
					err := hook.Backup(crashed, "backup", "test", backup.Of(r))
					if err != nil {
						t.Fatalf("power cut before step %d: the next backup: %v", step, err)
					}
					got, err := verifyIn(crashed, "backup", "test", nil)
					if err != nil || got.StateHash != want.StateHash || got.ChainHash != want.ChainHash || got.Snapshots > want.Snapshots {
						t.Fatalf("power cut before step %d: %v, %+v, want %+v", step, err, got, want)
					}
					if step%10 == 0 {
						if err := c.restored(crashed, "again"); err != nil {
							t.Fatalf("power cut before step %d: restored: %v", step, err)
						}
					}
				}
			}
		})
	}
}

// TestRestoreCrash cuts the power before each operation of a restore that changes the disk. Either
// nothing has the name, and the next restore goes on, or all of it is there.
func TestRestoreCrash(t *testing.T) {
	_, r, c := backedUp(t, true)
	c.draws(t, r, "a", 40)
	base := vfs.NewMem()
	if err := hook.Backup(base, "backup", "test", backup.Of(r)); err != nil {
		t.Fatal(err)
	}
	dry := base.KillClone()
	dry.ResetCounts()
	if err := hook.Restore(dry, "backup", "data"); err != nil {
		t.Fatal(err)
	}
	_, steps := dry.Ops()
	for step := range steps {
		disk := base.KillClone()
		disk.CutPowerAfter(step)
		if err := hook.Restore(disk, "backup", "data"); err == nil {
			continue
		}
		for crashed := range disk.CrashSamples(2, uint64(step), false) {
			if _, err := crashed.Stat("data"); err != nil {
				if err := hook.Restore(crashed, "backup", "data"); err != nil {
					t.Fatalf("power cut before step %d: the next restore: %v", step, err)
				}
			}
			if err := c.serves(crashed, "data"); err != nil {
				t.Fatalf("power cut before step %d: %v", step, err)
			}
		}
	}
}

// TestBackupRefused: what is no backup of this log, one that was never completed, and directories that
// are there.
func TestBackupRefused(t *testing.T) {
	_, r, c := backedUp(t, true)
	_, other, _ := backedUp(t, false)
	disk := vfs.NewMem()
	copyTo := func(r *kuji.Realm) error {
		return hook.Backup(disk, "backup", "test", backup.Of(r))
	}
	cut := func(ctx context.Context, from uint64) iter.Seq2[backup.Part, error] {
		return func(yield func(backup.Part, error) bool) {
			for part, err := range backup.Of(r)(ctx, from) {
				if part.Entry != nil && part.Entry[8] == 2 || !yield(part, err) { // the first batch
					return
				}
			}
		}
	}
	if err := hook.Backup(disk, "backup", "test", backup.Source(cut)); err == nil {
		t.Fatal("a backup that broke off passes for good")
	}
	wantCode(t, hook.Restore(disk, "backup", "data"), kuji.CodeConflict) // never completed
	if err := copyTo(r); err != nil {
		t.Fatal(err)
	}
	if err := copyTo(r); err != nil {
		t.Errorf("nothing new: %v", err)
	}
	wantCode(t, copyTo(other), kuji.CodeConflict) // its log is as long
	if err := hook.Restore(disk, "backup", "data"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, hook.Restore(disk, "backup", "data"), kuji.CodeConflict)   // there already
	wantCode(t, hook.Restore(disk, "nowhere", "new"), kuji.CodeNotFound)   // no backup
	e, err := openWorld("backup", worldOptions{FS: disk, MustExist: true}) // who serves a backup makes another log of it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, copyTo(r), kuji.CodeLocked)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	c.draws(t, r, "a", 3)
	wantCode(t, copyTo(r), kuji.CodeConflict)

	// A backup that was not gone on with before the log was trimmed.
	disk = vfs.NewMem()
	if err := copyTo(r); err != nil {
		t.Fatal(err)
	}
	c.draws(t, r, "b", 60)
	if err := copyTo(r); kuji.CodeOf(err) != kuji.CodeConflict || !strings.Contains(err.Error(), "begin a new backup") {
		t.Errorf("behind a trimmed log: %v", err)
	}
	e, err = kuji.OpenMemory([32]byte{}, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	inMemory, err := e.Realm("test")
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, copyTo(inMemory), kuji.CodeConflict) // it keeps no log
	if _, err := backup.Write(t.Context(), t.TempDir(), "no/realm", backup.Of(r)); kuji.CodeOf(err) != kuji.CodeInvalid {
		t.Errorf("a bad name: %v", err)
	}
}

// TestBackupHolds: while a backup is under way, nothing that it needs is trimmed.
func TestBackupHolds(t *testing.T) {
	_, r, c := backedUp(t, true)
	c.draws(t, r, "a", 40)
	disk, began := vfs.NewMem(), false
	slow := func(ctx context.Context, from uint64) iter.Seq2[backup.Part, error] {
		return func(yield func(backup.Part, error) bool) {
			for part, err := range backup.Of(r)(ctx, from) {
				if !yield(part, err) {
					return
				}
				if part.Begin != nil { // much happens before the first file is read
					c.draws(t, r, "b", 60)
					began = true
				}
			}
		}
	}
	if err := hook.Backup(disk, "backup", "test", backup.Source(slow)); err != nil || !began {
		t.Fatal(err)
	}
	if err := hook.Restore(disk, "backup", "data"); err != nil {
		t.Fatal(err)
	}
	first := func() (n uint64) {
		for part := range backup.Of(r)(t.Context(), 0) {
			if part.Begin != nil {
				return part.Begin.First
			}
		}
		return 0
	}
	before := first()
	c.draws(t, r, "c", 60)
	if after := first(); after <= before {
		t.Errorf("the log begins at %d, as during the backup: it is never trimmed again", after)
	}
}
