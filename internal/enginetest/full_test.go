package enginetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

// fill grants until the disk is full, and returns the players whose grants were acknowledged.
func fill(t *testing.T, r *kuji.Realm, disk *vfs.Mem) (acked []string) {
	t.Helper()
	disk.Limit(disk.Used() + 8<<10)
	for i := range 10_000 {
		player := fmt.Sprintf("p%d", i)
		_, err := r.Do(t.Context(), kuji.Grant{Player: player, Items: []kuji.Stack{{Item: "gem", Quantity: uint64(i) + 1}}})
		if err != nil {
			wantCode(t, err, kuji.CodeUnknownOutcome)
			return acked
		}
		acked = append(acked, player)
	}
	t.Fatal("the disk did not become full")
	return nil
}

// wantReads reads what is durable, and checks that writes are refused.
func wantReads(t *testing.T, r *kuji.Realm, acked []string) {
	t.Helper()
	for i, player := range acked {
		if n, err := r.Balance(t.Context(), player, "gem"); err != nil || n != uint64(i)+26 {
			t.Fatalf("%s has %d gems, %v", player, n, err)
		}
		if got := items(t, r, player); !reflect.DeepEqual(got, map[string]uint64{"gem": uint64(i) + 26}) {
			t.Fatalf("%s has %v", player, got)
		}
	}
	if p, err := r.Pool(t.Context(), "box"); err != nil || len(p.Entries) != 2 {
		t.Errorf("a pool: %v, %v", p, err)
	}
	if c, err := r.Catalogs().InForce(t.Context()); err != nil || c.Version != 1 {
		t.Errorf("the catalog: %d, %v", c.Version, err)
	}
	_, err := r.Player(t.Context(), "nobody")
	wantCode(t, err, kuji.CodeNotFound)
	_, err = r.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "free"})
	wantCode(t, err, kuji.CodeFailed)
	if !errors.Is(err, syscall.ENOSPC) || !errors.Is(r.Err(), syscall.ENOSPC) {
		t.Errorf("%v; %v; want both to say that the disk is full", err, r.Err())
	}
	_, err = r.Snapshot(t.Context())
	wantCode(t, err, kuji.CodeFailed)
}

// TestFullDisk: a realm that a full disk stopped answers reads of what is durable, and no others.
// It opens on the full disk as often as one tries, for reading, and goes on when there is room.
func TestFullDisk(t *testing.T) {
	for name, next := range map[string]func(*vfs.Mem, *kuji.Engine) *vfs.Mem{
		"closed": func(m *vfs.Mem, e *kuji.Engine) *vfs.Mem { _ = e.Close(); return m },
		"killed": func(m *vfs.Mem, e *kuji.Engine) *vfs.Mem { return m.KillClone() },
		"power":  func(m *vfs.Mem, e *kuji.Engine) *vfs.Mem { return m.CrashClone(vfs.Crash{}) },
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			e, r := open(t, "data", worldOptions{FS: disk, SegmentSize: 8 << 10})
			acked := fill(t, r, disk)
			last := fmt.Sprintf("p%d", len(acked))
			for _, ctx := range []context.Context{t.Context(), kuji.Stale(t.Context())} {
				_, err := r.Player(ctx, last)
				wantCode(t, err, kuji.CodeFailed)
			}
			wantReads(t, r, acked)
			stopped := false
			for range 5 {
				disk = next(disk, e)
				disk.Limit(max(1, disk.Used()))
				var err error
				if e, err = openWorld("data", worldOptions{FS: disk, SegmentSize: 8 << 10}); err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				if r, err = e.Realm("test"); err != nil {
					t.Fatal(err)
				}
				if stopped = r.Err() != nil; !stopped { // there was room for an epoch's begin
					_, err := r.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "free"})
					wantCode(t, err, kuji.CodeUnknownOutcome)
				}
				wantReads(t, r, acked)
				if !stopped {
					continue
				}
				if _, _, err := r.StateHash(t.Context()); err != nil {
					t.Errorf("the hash of the recovered state: %v", err)
				}
				if o, err := r.Pools().Odds(t.Context(), "box", "", 1); err != nil || len(o.Outcomes) != 2 {
					t.Errorf("odds: %v, %v", o, err)
				}
				if _, _, err := r.Codes().Given(t.Context(), "none", 0, 1); kuji.CodeOf(err) != kuji.CodeNotFound {
					t.Errorf("codes: %v, want that there is no such list", err)
				}
				if _, err := r.Catalogs().Plan(t.Context(), parse(t, testCatalog)); err != nil {
					t.Errorf("a plan: %v", err)
				}
			}
			if !stopped {
				t.Error("no realm was opened for reading only")
			}
			disk = next(disk, e)
			disk.Limit(0)
			e, r = open(t, "data", worldOptions{FS: disk})
			do(t, r, kuji.Draw{Player: "ann", Pool: "free"})
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			rep, err := verifyIn(disk, "data", "test", nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range rep.Epochs {
				if !e.Revealed {
					t.Errorf("the seed of epoch %d is lost", e.Epoch)
				}
			}
		})
	}
}

// TestFullDiskCannotRepair: where not even the end of the log can be repaired, a realm opens with
// what is known to be durable.
func TestFullDiskCannotRepair(t *testing.T) {
	disk := vfs.NewMem()
	_, r := open(t, "data", worldOptions{FS: disk})
	for i := range 3 {
		do(t, r, kuji.Grant{Player: fmt.Sprintf("p%d", i), Items: []kuji.Stack{{Item: "gem", Quantity: uint64(i) + 1}}})
	}
	disk = disk.KillClone()
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		switch op.Kind {
		case vfs.OpCreate, vfs.OpWrite, vfs.OpTruncate, vfs.OpAllocate:
			return vfs.Fault{Err: syscall.ENOSPC}
		}
		return vfs.Fault{}
	})
	e, err := openWorld("data", worldOptions{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if r, err = e.Realm("test"); err != nil {
		t.Fatal(err)
	}
	wantReads(t, r, []string{"p0", "p1"})
	_, err = r.Player(t.Context(), "p2") // written last: whether it was fsynced is not known
	wantCode(t, err, kuji.CodeFailed)
	if _, err = e.Realm("new"); kuji.CodeOf(err) != kuji.CodeFailed || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a new realm: %v", err)
	}
}

// TestStoppedShowsDurable: under a relaxed policy, a realm whose fsync failed no longer shows what
// it had acknowledged and may have lost.
func TestStoppedShowsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		_, r := open(t, "data", worldOptions{FS: disk, Sync: kuji.SyncInterval})
		gem := []kuji.Stack{{Item: "gem", Quantity: 1}}
		do(t, r, kuji.Grant{Player: "safe", Items: gem})
		time.Sleep(time.Second) // of the test's clock
		synctest.Wait()
		disk.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind == vfs.OpSync && strings.HasSuffix(op.Path, ".wal") {
				return vfs.Fault{Err: syscall.EIO, Drop: true}
			}
			return vfs.Fault{}
		})
		do(t, r, kuji.Grant{Player: "lost", Items: gem})
		time.Sleep(time.Second)
		synctest.Wait()
		_, err := r.Do(t.Context(), kuji.Grant{Player: "next", Items: gem})
		wantCode(t, err, kuji.CodeUnknownOutcome)
		if n, err := r.Balance(t.Context(), "safe", "gem"); err != nil || n != 26 {
			t.Errorf("what was durable: %d, %v", n, err)
		}
		_, err = r.Balance(t.Context(), "lost", "gem")
		wantCode(t, err, kuji.CodeFailed)
	})
}
