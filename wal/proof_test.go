package wal_test

import (
	"context"
	"errors"
	"path"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// untilSealed waits until a segment has a footer. It reads next to the writer, so
// that the test is left out under the race detector.
func untilSealed(t *testing.T, m *vfs.Mem, segment int) {
	t.Helper()
	if raced {
		t.Skip("reads of a mapping next to the writer")
	}
	for {
		r, err := wal.Verify(context.Background(), memDir, small4KOn(m))
		if err != nil {
			t.Fatal(err)
		}
		if segment < len(r.Segments) && !r.Segments[segment].Sealed.IsZero() {
			return
		}
		runtime.Gosched()
	}
}

// grown returns a log of more segments than that, grown without an fsync or with
// one for each record.
func grown(t *testing.T, segments int, synced bool) (*vfs.Mem, *wal.Log) {
	t.Helper()
	m, l := openMem(t, small4K)
	for l.Stat().Segments <= segments {
		_, err := l.Append(record(l.Next()))
		if synced {
			err = errors.Join(err, l.Sync())
		} else {
			err = errors.Join(err, l.Flush())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m, l
}

// damageTrailer flips a bit in the trailer of a segment, whose path it returns.
func damageTrailer(t *testing.T, m *vfs.Mem, n int) string {
	t.Helper()
	name := segments(t, m)[n]
	info, err := m.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	flip(t, m, name, info.Size()-10, 1)
	return name
}

// TestVerifyDamagedFooter: the trailer of a full segment is damaged, and nothing
// behind says more than that its records were durable. Verify reports it, and goes
// on behind it, as Open does.
func TestVerifyDamagedFooter(t *testing.T) {
	m, l := grown(t, 3, false)
	untilSealed(t, m, 2)
	disk := m.KillClone()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := damageTrailer(t, disk, 1)
	r, err := wal.Verify(context.Background(), memDir, small4KOn(disk))
	if err != nil || len(r.Damage) != 1 || r.Damage[0].File != damaged || r.Torn > 0 {
		t.Errorf("Verify of a damaged trailer: %d bytes torn, damage %v, %v", r.Torn, r.Damage, err)
	}
	again, err := wal.Open(memDir, small4KOn(disk))
	if err != nil {
		t.Fatal(err)
	}
	if r.Next != again.Next() {
		t.Errorf("Verify ends at %d, Open at %d", r.Next, again.Next())
	}
	if err := errors.Join(holds(again, again.Next()), again.Close()); err != nil {
		t.Error(err)
	}
}

// TestVerifyTornFooter: the power goes while records and footer of the first full
// segment are fsynced at once, and the name of the second one is lost. What is
// left of the footer is no damage.
func TestVerifyTornFooter(t *testing.T) {
	m, l := openMem(t, small4K)
	first := segments(t, m)[0]
	m.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync && op.Path == first {
			return vfs.Fault{Err: syscall.EIO} // so that nothing comes after it
		}
		return vfs.Fault{}
	})
	for {
		if _, err := l.Append(tiny(l.Next())); err != nil {
			break
		}
	}
	for disk := range m.CrashSamples(10_000, 1, true) {
		r, err := wal.Verify(context.Background(), memDir, small4KOn(disk))
		if err != nil || len(r.Damage) > 0 {
			t.Fatalf("Verify after a power cut: %v, %v", r.Damage, err)
		}
	}
	if err := l.Close(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
}

// TestFootersBehind: where the disk takes rounds but no footers, appends wait in
// the end: each segment without a footer is an open file.
func TestFootersBehind(t *testing.T) {
	const most = 8 + 2 // wait, with the one that is written to, and one for a record that was let in before
	for name, add := range map[string]func(*wal.Log) error{
		"AppendSync": func(l *wal.Log) error {
			_, err := l.AppendSync(context.Background(), record(0))
			return err
		},
		"AppendBatch": func(l *wal.Log) error {
			_, err := l.AppendBatch([][]byte{record(0)})
			return errors.Join(err, l.Sync())
		},
		"Flush": func(l *wal.Log) error {
			_, err := l.Append(record(0))
			return errors.Join(err, l.Flush())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, l := openMem(t, small4K)
				first := segments(t, m)[0]
				release := make(chan struct{})
				m.SetHook(func(op vfs.Op) vfs.Fault {
					if op.Kind == vfs.OpWrite && op.Path == first && len(segments(t, m)) > 1 {
						<-release
					}
					return vfs.Fault{}
				})
				done := make(chan error)
				go func() {
					var err error
					for err == nil && l.Stat().Segments <= 3*most {
						err = add(l)
					}
					done <- err
				}()
				synctest.Wait()
				if n := l.Stat().Segments; n < most/2 || n > most {
					t.Errorf("%d segments while no footer can be written, want %d to %d", n, most/2, most)
				}
				close(release)
				if err := errors.Join(<-done, l.Close()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestReaderBesideRepair: who reads a log sees what it found in it, while a writer
// opens the log and writes footers again, and records in the place of others.
func TestReaderBesideRepair(t *testing.T) {
	killed, l := grown(t, 1, true)
	untilSealed(t, killed, 0)
	killed = killed.KillClone()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	closed, l := grown(t, 1, true)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*vfs.Mem{"killed": killed, "closed": closed} {
		for _, mapped := range []bool{false, true} {
			disk := m.KillClone()
			o := small4KOn(disk)
			o.ReadOnly = true
			r, err := wal.Open(memDir, o)
			if err != nil {
				t.Fatal(err)
			}
			if mapped {
				if err := holds(r, r.Next()); err != nil {
					t.Fatal(err)
				}
			}
			disk.SetHook(func(op vfs.Op) vfs.Fault {
				if op.Kind == vfs.OpSync || op.Kind == vfs.OpWrite {
					if err := holds(r, r.Next()); err != nil {
						t.Errorf("%s, mapped before: %v: at %v: %v", name, mapped, op, err)
					}
				}
				return vfs.Fault{}
			})
			w, err := wal.Open(memDir, small4KOn(disk))
			if err != nil {
				t.Fatal(err)
			}
			appendTo(t, w, w.Next()+10)
			err = w.Close()
			disk.SetHook(nil)
			if err := errors.Join(err, holds(r, r.Next()), r.Close()); err != nil {
				t.Errorf("%s, mapped before: %v: %v", name, mapped, err)
			}
		}
	}
}

// TestRepairOfAProvenFooter cuts the power while Open writes a damaged footer again
// that stands before others: its trailer must not be on disk before its index,
// which later trailers would prove.
func TestRepairOfAProvenFooter(t *testing.T) {
	const records = 1100
	m, l := openMem(t, small4K)
	if err := errors.Join(growTiny(l, records), l.Close()); err != nil {
		t.Fatal(err)
	}
	damageTrailer(t, m, 1)
	for cut := int64(0); ; cut++ {
		disk := m.CrashClone(vfs.Crash{})
		disk.CutPowerAfter(cut)
		if l, err := wal.Open(memDir, small4KOn(disk)); err == nil {
			_ = l.Close() // as far as it gets
		}
		_, changes := disk.Ops()
		for after := range disk.CrashStates(200, uint64(cut), true) {
			if err := holdsTiny(after, records); err != nil {
				t.Fatalf("power cut after %d changes: %v", cut, err)
			}
		}
		if changes <= cut {
			return
		}
	}
}

// TestTrimAsFarAsItCan: the newest full segment waits for its footer; those before
// it are dropped all the same, at once.
func TestTrimAsFarAsItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := openMem(t, small4K)
		newest := ""
		release := make(chan struct{})
		m.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind == vfs.OpCreate && path.Base(op.Path) == "spare" {
				return vfs.Fault{Err: syscall.EIO} // so that files are made by their names
			}
			if op.Kind == vfs.OpWrite && op.Path == newest && len(segments(t, m)) > 4 {
				<-release
			}
			return vfs.Fault{}
		})
		for l.Stat().Segments <= 4 {
			if _, err := l.AppendSync(context.Background(), record(l.Next())); err != nil {
				t.Fatal(err)
			}
			if synctest.Wait(); l.Stat().Segments == 4 {
				newest = segments(t, m)[3]
			}
		}
		trimmed := make(chan error)
		go func() { trimmed <- l.TrimToSize(0) }()
		synctest.Wait()
		if n := l.Stat().Segments; n != 2 {
			t.Errorf("%d segments while the newest full one waits for its footer, want 2", n)
		}
		close(release)
		if err := <-trimmed; err != nil {
			t.Fatal(err)
		}
		if n := l.Stat().Segments; n != 1 {
			t.Errorf("%d segments are left, want 1", n)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRetentionInTurn: segments become full while retention waits for a footer:
// one goroutine does it for all of them.
func TestRetentionInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small4K
		o.RetainBytes = 1
		m, l := openMem(t, o)
		first := segments(t, m)[0]
		release := make(chan struct{})
		m.SetHook(func(op vfs.Op) vfs.Fault {
			if op.Kind == vfs.OpWrite && op.Path == first && len(segments(t, m)) > 1 {
				<-release
			}
			return vfs.Fault{}
		})
		before := runtime.NumGoroutine()
		for l.Stat().Segments < 8 {
			if _, err := l.AppendSync(context.Background(), record(l.Next())); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 3 {
			t.Errorf("%d goroutines for one footer and retention, want 2", n)
		}
		close(release)
		synctest.Wait()
		if n := l.Stat().Segments; n != 1 {
			t.Errorf("%d segments are left, want 1", n)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestReadersBesideAWriter opens a log again and again while it is written to: what
// became durable while its end was looked for is no damage.
func TestReadersBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, wal.Options{})
	if _, err := w.AppendSync(t.Context(), make([]byte, 1<<20)); err != nil { // a long search: the file is made longer by as much
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := w.AppendSync(context.Background(), record(w.Next())); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 100 {
		r, err := wal.Open(dir, wal.Options{ReadOnly: true})
		if err != nil {
			t.Errorf("Open next to a writer: %v", err)
			break
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}
