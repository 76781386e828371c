package wal_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

var crashSeeds = flag.Int("crashseeds", 8, "how many workloads the crash tests cut at every operation")

// workload drives a log through everything it can do until it is done or the
// power is cut, and returns what was promised.
type promise struct {
	first   uint64 // everything below was asked to be trimmed
	durable uint64 // everything below was said to be durable
	next    uint64 // nothing at or above was appended
}

func workload(m *vfs.Mem, seed uint64) promise {
	r := rand.New(rand.NewPCG(seed, 1))
	var p promise
	for range 3 {
		o := small4K
		if seed%4 == 3 {
			o.SegmentSize = 64 << 10 // room for zeros ahead
		}
		o = on(m, o)
		o.SyncEvery = []uint64{0, 0, 3}[r.IntN(3)]
		l, err := wal.Open(memDir, o)
		if err != nil {
			return p
		}
		p.durable = max(p.durable, l.Durable())
		err = work(l, r, &p)
		p.durable = max(p.durable, l.Durable())
		if err == nil {
			p.next = l.Next()
		}
		if err = errors.Join(err, l.Close()); err != nil {
			return p
		}
		p.durable = p.next
	}
	return p
}

// work does some operations on an open log. Nothing is appended that p.next
// does not cover.
func work(l *wal.Log, r *rand.Rand, p *promise) error {
	for range 12 {
		var err error
		n := uint64(1 + r.IntN(6))
		p.next = l.Next() + n
		switch r.IntN(8) {
		case 0, 1:
			err = l.Sync()
		case 2:
			err = l.Flush()
		case 3:
			var batch [][]byte
			for i := range n {
				batch = append(batch, record(l.Next()+i))
			}
			_, err = l.AppendBatch(batch)
		case 4:
			var off uint64
			if off, err = l.AppendSync(context.Background(), record(l.Next())); err == nil {
				p.durable = max(p.durable, off+1)
			}
		case 5:
			if to := l.Durable() / 2; to > p.first {
				p.first = to
				err = l.TrimBefore(to)
			}
		default:
			for range n {
				if _, err = l.Append(record(l.Next())); err != nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkRecovered opens a log after a crash and checks it against what was
// promised; then that it goes on, and that what is said to be durable then
// survives the next crash.
func checkRecovered(m *vfs.Mem, p promise) error {
	o := small4KOn(m)
	before, verifyErr := wal.Verify(context.Background(), memDir, o)
	if errors.Is(verifyErr, fs.ErrNotExist) {
		verifyErr = nil // so early that there is no directory
	}
	l, err := wal.Open(memDir, o)
	if err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	defer l.Close()
	before.Damage = slices.DeleteFunc(before.Damage, func(d *wal.CorruptionError) bool {
		return d.What == "index" && d.File == before.Segments[len(before.Segments)-1].File // of a log that was being closed
	})
	if verifyErr != nil || len(before.Damage) > 0 || before.Next != l.Next() {
		return fmt.Errorf("before recovery to %d Verify says %+v, %w", l.Next(), before, verifyErr)
	}
	if l.Next() < p.durable || l.Next() > p.next || l.First() > p.first {
		return fmt.Errorf("recovered %d to %d, promised %+v", l.First(), l.Next(), p)
	}
	if l.Durable() != l.Next() {
		return fmt.Errorf("Durable is %d after recovery, want Next, %d", l.Durable(), l.Next())
	}
	if err := holds(l, l.Next()); err != nil {
		return err
	}
	// What recovery says is durable survives a crash right after it.
	if err := survives(m.CrashClone(vfs.Crash{}), l.First(), l.Durable()); err != nil {
		return fmt.Errorf("crash after recovery: %w", err)
	}
	next := l.Next() + 3
	for l.Next() < next {
		if _, err := l.Append(record(l.Next())); err != nil {
			return err
		}
	}
	if err := l.Sync(); err != nil {
		return err
	}
	again := m.CrashClone(vfs.Crash{})
	o = on(again, o)
	l2, err := wal.Open(memDir, o)
	if err != nil {
		return fmt.Errorf("second recovery: %w", err)
	}
	defer l2.Close()
	if l2.Next() != next {
		return fmt.Errorf("second recovery found %d records, want %d", l2.Next(), next)
	}
	if err := holds(l2, next); err != nil {
		return err
	}
	report, err := wal.Verify(context.Background(), memDir, o)
	if err != nil || len(report.Damage) > 0 || report.Torn > 0 || report.Next != next {
		return fmt.Errorf("after recovery Verify says %+v, %w", report, err)
	}
	return nil
}

// survives checks that a disk holds the records from first to durable at least.
func survives(m *vfs.Mem, first, durable uint64) error {
	o := small4KOn(m)
	o.ReadOnly = true
	l, err := wal.Open(memDir, o)
	if err != nil {
		return err
	}
	defer l.Close()
	if l.First() > first || l.Next() < durable {
		return fmt.Errorf("%d to %d are left of %d to %d", l.First(), l.Next(), first, durable)
	}
	return holds(l, l.Next())
}

// TestCrashInTrim cuts the power within a trim of many segments, with removals
// that reach the disk in any order: no gap may come of it. After the trim, they
// are gone for good. What was not synced before may be lost, but the trim must
// not leave a directory that nothing can be made of.
func TestCrashInTrim(t *testing.T) {
	for _, synced := range []bool{true, false} {
		t.Run(fmt.Sprintf("synced=%v", synced), func(t *testing.T) {
			cut := int64(0)
			for !crashInTrim(t, synced, cut) {
				cut++
			}
			if cut < 4 {
				t.Fatalf("a trim makes only %d changes", cut)
			}
		})
	}
}

// crashInTrim reports whether the trim was over before the power was cut.
func crashInTrim(t *testing.T, synced bool, cut int64) (over bool) {
	m, l := openMem(t, small4K)
	defer l.Close()
	appendTo(t, l, 300)
	p := promise{next: 300}
	if synced {
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
		p.durable = 300
	}
	m.CutPowerAfter(cut)
	err := l.TrimBefore(300)
	first := l.First()
	p.first, p.durable = first, max(p.durable, l.Durable())
	if err == nil && first < 200 {
		t.Fatalf("trimmed to %d of 300", first)
	}
	for after := range m.CrashSamples(12, uint64(cut), true) {
		if err == nil {
			r, openErr := wal.Open(memDir, on(after, wal.Options{ReadOnly: true}))
			if openErr != nil || r.First() != first {
				t.Fatalf("trimmed to %d, and then: %d, %v", first, r.First(), openErr)
			}
			r.Close()
		}
		if err := checkRecovered(after, p); err != nil {
			t.Fatalf("power cut after %d changes of a trim: %v", cut, err)
		}
	}
	return err == nil
}

// TestCrashUnsynced crashes logs that went on for many segments without an
// fsync: their files, names, headers and records reach the disk in any order.
func TestCrashUnsynced(t *testing.T) {
	for seed := range uint64(2 * *crashSeeds) {
		m, l := openMem(t, small4K)
		// What is on disk stays as it is from here on, but for the background.
		m.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir {
				return vfs.Fault{Err: syscall.EIO}
			}
			return vfs.Fault{}
		})
		for {
			if _, err := l.Append(record(l.Next())); err != nil || l.Next() > 60+10*seed {
				break // the background has met the error
			}
		}
		lost := 0
		for after := range m.CrashSamples(40, seed, true) {
			if err := checkRecovered(after, promise{next: l.Next()}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			lost++
		}
		l.Close()
	}
}

// holds checks that a log has the right record at every offset.
func holds(l *wal.Log, next uint64) error {
	want := l.First()
	for rec, err := range l.Records(want) {
		if err != nil {
			return fmt.Errorf("record %d: %w", want, err)
		}
		if rec.Offset != want || !bytes.Equal(rec.Data, record(want)) {
			return fmt.Errorf("record %d: got offset %d with %d bytes, which differ", want, rec.Offset, len(rec.Data))
		}
		want++
	}
	if want != next {
		return fmt.Errorf("records end at %d, want %d", want, next)
	}
	return nil
}

// TestCrashAtEveryOperation cuts the power before every operation that changes
// the disk, and looks at many of the disks that the cut can leave.
func TestCrashAtEveryOperation(t *testing.T) {
	for seed := range uint64(*crashSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			states := 0
			for cut := int64(0); ; cut++ {
				m := vfs.NewMem()
				m.CutPowerAfter(cut)
				p := workload(m, seed)
				_, changes := m.Ops()
				for after := range m.CrashStates(6, seed+uint64(cut), true) {
					states++
					if err := checkRecovered(after, p); err != nil {
						t.Fatalf("power cut after %d changes: %v", cut, err)
					}
				}
				if changes <= cut {
					t.Logf("%d cuts, %d disks", cut, states)
					break
				}
			}
		})
	}
}

// TestKillAtEveryOperation kills the process instead: what was written stays
// readable but is not durable, and another crash may follow.
func TestKillAtEveryOperation(t *testing.T) {
	for cut := int64(0); ; cut++ {
		m := vfs.NewMem()
		m.CutPowerAfter(cut)
		p := workload(m, 77)
		_, changes := m.Ops()
		if err := checkRecovered(m.KillClone(), p); err != nil {
			t.Fatalf("killed after %d changes: %v", cut, err)
		}
		if changes <= cut {
			break
		}
	}
}

// TestCrashInRecoveryAfterKill kills a process that goes on with a log that was closed, and
// cuts the power while the next one recovers: what the first one wrote, and cut off, may be
// on the disk or not.
func TestCrashInRecoveryAfterKill(t *testing.T) {
	closed := vfs.NewMem()
	l, err := wal.Open(memDir, small4KOn(closed))
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, l, 40)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(segments(t, closed)); n < 2 {
		t.Fatalf("%d segments", n)
	}
	p := promise{durable: 40, next: 60}
	goOn := func(m *vfs.Mem) { // errors mean that the power is off
		if l, err := wal.Open(memDir, small4KOn(m)); err == nil {
			for n := uint64(40); n < 60; n++ {
				if _, err := l.Append(record(n)); err != nil {
					return
				}
				if n%7 == 0 && l.Flush() != nil {
					return
				}
			}
			l.Close()
		}
	}
	for kill := int64(0); ; kill++ {
		m := closed.CrashClone(vfs.Crash{})
		m.CutPowerAfter(kill)
		goOn(m)
		_, all := m.Ops()
		for cut := int64(0); ; cut++ {
			again := m.KillClone()
			again.CutPowerAfter(cut)
			if l, err := wal.Open(memDir, small4KOn(again)); err == nil {
				l.Close()
			}
			_, changes := again.Ops()
			for after := range again.CrashSamples(4, uint64(kill*100+cut), true) {
				if err := checkRecovered(after, p); err != nil {
					t.Fatalf("killed after %d changes, power cut in recovery after %d: %v", kill, cut, err)
				}
			}
			if changes <= cut {
				break
			}
		}
		if all <= kill {
			break
		}
	}
}

// TestCrashInRecovery cuts the power again while the log recovers.
func TestCrashInRecovery(t *testing.T) {
	for seed := range uint64(*crashSeeds) {
		m := vfs.NewMem()
		m.CutPowerAfter(int64(20 + 7*seed))
		p := workload(m, seed)
		for torn := range m.CrashSamples(8, seed, true) {
			for cut := int64(0); ; cut++ {
				again := torn.CrashClone(vfs.Crash{})
				again.CutPowerAfter(cut)
				l, err := wal.Open(memDir, small4KOn(again))
				if err == nil {
					l.Close()
				}
				_, changes := again.Ops()
				for after := range again.CrashSamples(3, uint64(cut), true) {
					if err := checkRecovered(after, p); err != nil {
						t.Fatalf("seed %d, power cut in recovery after %d changes: %v", seed, cut, err)
					}
				}
				if changes <= cut {
					break
				}
			}
		}
	}
}

// TestFailingOperation fails every write, fsync, create and directory fsync in
// turn, once: the log must refuse everything from then on, although the file
// system is well again, and lose nothing that was durable.
func TestFailingOperation(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpWrite, vfs.OpSync, vfs.OpCreate, vfs.OpRename, vfs.OpTruncate, vfs.OpSyncDir, vfs.OpMap} {
		t.Run(kind.String(), func(t *testing.T) { failEach(t, kind, small4K) })
	}
	zeroed := small4K
	zeroed.SegmentSize = 64 << 10
	t.Run("write of zeros", func(t *testing.T) { failEach(t, vfs.OpWrite, zeroed) })
}

// failEach fails the operations of a kind in turn.
func failEach(t *testing.T, kind vfs.OpKind, o wal.Options) {
	for n := int64(1); ; n++ {
		m, l := openMem(t, o)
		var mu sync.Mutex
		seen := int64(0)
		m.SetHook(func(op vfs.Op) vfs.Fault {
			mu.Lock()
			defer mu.Unlock()
			if op.Kind == vfs.OpCreate && path.Base(op.Path) == "spare" && kind != vfs.OpRename {
				return vfs.Fault{Err: syscall.EIO} // so that segments are created
			}
			if op.Kind != kind {
				return vfs.Fault{}
			}
			if seen++; seen != n {
				return vfs.Fault{}
			}
			return vfs.Fault{Err: syscall.EIO, Short: op.Length / 2, Drop: true, Reached: some(n)}
		})
		err := appendSynced(l, 40)
		durable := l.Durable()
		if err == nil {
			l.Close()
			if n == 1 && kind != vfs.OpRename { // a spare may not be ready in time
				t.Fatalf("no %v was ever asked for", kind)
			}
			return
		}
		checkPoisoned(t, l, err)
		for after := range m.CrashSamples(4, uint64(n), true) {
			if err := checkRecovered(after, promise{durable: durable, next: l.Next()}); err != nil {
				t.Fatalf("%v number %d failed: %v", kind, n, err)
			}
		}
	}
}

// some are about half of the sectors that a failing fsync was to bring to the
// disk; for every fourth seed none, and not the size.
func some(seed int64) func(sector int64) bool {
	if seed%4 == 0 {
		return nil
	}
	return func(sector int64) bool { return rand.New(rand.NewPCG(uint64(seed), uint64(sector))).IntN(2) == 0 }
}

func appendSynced(l *wal.Log, n uint64) error {
	for range n {
		if _, err := l.AppendSync(context.Background(), record(l.Next())); err != nil {
			return err
		}
	}
	return l.Close()
}

// checkPoisoned checks that a log that has failed accepts nothing, serves what
// is durable and nothing else, and closes.
func checkPoisoned(t *testing.T, l *wal.Log, err error) {
	t.Helper()
	if !errors.Is(err, wal.ErrFailed) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("the failure arrived as %v", err)
	}
	_, appendErr := l.Append(nil)
	_, syncedErr := l.AppendSync(context.Background(), nil)
	for name, err := range map[string]error{"Append": appendErr, "AppendSync": syncedErr, "Sync": l.Sync(), "Flush": l.Flush()} {
		if !errors.Is(err, wal.ErrFailed) && !errors.Is(err, wal.ErrClosed) {
			t.Fatalf("%s after a failure: %v", name, err)
		}
	}
	if durable := l.Durable(); l.First() < durable {
		if _, err := l.Read(durable-1, nil); err != nil && !errors.Is(err, wal.ErrClosed) {
			t.Fatalf("what is durable cannot be read after a failure: %v", err)
		}
		if l.Next() > durable {
			if _, err := l.Read(durable, nil); !errors.Is(err, wal.ErrFailed) && !errors.Is(err, wal.ErrClosed) {
				t.Fatalf("what is not durable can be read after a failure: %v", err)
			}
		}
	}
	if err := l.Close(); !errors.Is(err, wal.ErrFailed) && !errors.Is(err, wal.ErrClosed) {
		t.Fatalf("Close after a failure: %v", err)
	}
}

// TestFailureBesideSync: a write fails while an fsync of what stands before it is
// under way, which then succeeds. What that has made durable, and said so, can be
// read and followed to the end.
func TestFailureBesideSync(t *testing.T) {
	m, l := openMem(t, small4K)
	var fail atomic.Bool
	held, release := make(chan struct{}), make(chan struct{})
	m.SetHook(func(op vfs.Op) vfs.Fault {
		switch {
		case op.Kind == vfs.OpSync && !fail.Load():
			close(held)
			<-release
		case op.Kind == vfs.OpWrite && fail.Load():
			return vfs.Fault{Err: syscall.EIO}
		}
		return vfs.Fault{}
	})
	answer := make(chan error, 1)
	go func() {
		_, err := l.AppendSync(t.Context(), record(0))
		answer <- err
	}()
	<-held
	fail.Store(true)
	if _, err := l.Append(record(1)); err != nil {
		t.Fatal(err)
	}
	failure := l.Flush()
	close(release)
	if err := <-answer; err != nil {
		t.Fatalf("the fsync that succeeds: %v", err)
	}
	if l.Durable() != 1 {
		t.Fatalf("%d records durable, want 1", l.Durable())
	}
	var followed uint64
	for r, err := range l.Follow(t.Context(), 0, wal.UpToDurable) {
		if err != nil {
			if !errors.Is(err, wal.ErrFailed) {
				t.Errorf("Follow ended with %v", err)
			}
			break
		}
		followed = r.Offset + 1
	}
	if followed != 1 {
		t.Errorf("%d records followed, want 1", followed)
	}
	checkPoisoned(t, l, failure)
}

func TestDiskFull(t *testing.T) {
	m, l := openMem(t, small4K)
	m.Limit(40 << 10)
	var err error
	for err == nil {
		_, err = l.AppendSync(context.Background(), record(l.Next()))
	}
	if !errors.Is(err, wal.ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("disk full arrived as %v", err)
	}
	durable, next := l.Durable(), l.Next()
	if durable < 50 {
		t.Fatalf("only %d records fitted", durable)
	}
	if err := l.Close(); !errors.Is(err, wal.ErrFailed) {
		t.Fatalf("Close: %v", err)
	}
	// Reading needs no space, nor does opening where no full segment waits for its footer.
	l, err = wal.Open(memDir, small4KOn(m))
	if err != nil {
		t.Fatalf("Open on a full disk: %v", err)
	}
	if l.Next() < durable || l.Next() > next {
		t.Fatalf("%d records left, want %d to %d", l.Next(), durable, next)
	}
	if err := holds(l, l.Next()); err != nil {
		t.Fatal(err)
	}
	if err := l.TrimBefore(durable / 2); err != nil {
		t.Fatalf("trimming on a full disk: %v", err)
	}
	appendTo(t, l, l.Next()+20)
	if err := l.Close(); err != nil {
		t.Fatalf("after trimming: %v", err)
	}
}
