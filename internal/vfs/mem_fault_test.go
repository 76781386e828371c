package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/vfs"
)

var errInjected = errors.New("injected")

// noError is must for goroutines other than the test's.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// failing returns a hook that gives the fault to every operation of a kind.
func failing(kind vfs.OpKind, f vfs.Fault) vfs.Hook {
	return func(op vfs.Op) vfs.Fault {
		if op.Kind == kind {
			return f
		}
		return vfs.Fault{}
	}
}

func TestHookFailsEveryKind(t *testing.T) {
	for _, c := range []struct {
		kind vfs.OpKind
		run  func(m *vfs.Mem, f vfs.File, l io.Closer) error
	}{
		{vfs.OpCreate, func(m *vfs.Mem, _ vfs.File, _ io.Closer) error { return second(m.Create("x")) }},
		{vfs.OpOpen, func(m *vfs.Mem, _ vfs.File, _ io.Closer) error { return second(m.Open("f")) }},
		{vfs.OpOpenWrite, func(m *vfs.Mem, _ vfs.File, _ io.Closer) error { return second(m.OpenWrite("f")) }},
		{vfs.OpRemove, func(m *vfs.Mem, _ vfs.File, _ io.Closer) error { return m.Remove("f") }},
		{vfs.OpRename, func(m *vfs.Mem, _ vfs.File, _ io.Closer) error { return m.Rename("f", "g") }},
		{vfs.OpMkdir, func(m *vfs.Mem, _ vfs.File, _ io.Closer) error { return m.MkdirAll("d") }},
		{vfs.OpList, func(m *vfs.Mem, _ vfs.File, _ io.Closer) error { return second(m.List("/")) }},
		{vfs.OpStat, func(m *vfs.Mem, _ vfs.File, _ io.Closer) error { return second(m.Stat("f")) }},
		{vfs.OpSyncDir, func(m *vfs.Mem, _ vfs.File, _ io.Closer) error { return m.SyncDir("/") }},
		{vfs.OpLock, func(m *vfs.Mem, _ vfs.File, _ io.Closer) error { return second(m.Lock("other")) }},
		{vfs.OpUnlock, func(_ *vfs.Mem, _ vfs.File, l io.Closer) error { return l.Close() }},
		{vfs.OpRead, func(_ *vfs.Mem, f vfs.File, _ io.Closer) error { return second(f.ReadAt(make([]byte, 3), 0)) }},
		{vfs.OpWrite, func(_ *vfs.Mem, f vfs.File, _ io.Closer) error { return second(f.WriteAt([]byte("new"), 0)) }},
		{vfs.OpSync, func(_ *vfs.Mem, f vfs.File, _ io.Closer) error { return f.Sync() }},
		{vfs.OpTruncate, func(_ *vfs.Mem, f vfs.File, _ io.Closer) error { return f.Truncate(0) }},
		{vfs.OpAllocate, func(_ *vfs.Mem, f vfs.File, _ io.Closer) error { return f.(vfs.Allocator).Allocate(1 << 20) }},
		{vfs.OpSize, func(_ *vfs.Mem, f vfs.File, _ io.Closer) error { return second(f.Size()) }},
		{vfs.OpMap, func(_ *vfs.Mem, f vfs.File, _ io.Closer) error { return second(f.Map(1)) }},
		{vfs.OpClose, func(_ *vfs.Mem, f vfs.File, _ io.Closer) error { return f.Close() }},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			m, f := durable(t, 10)
			must(t, m.MkdirAll("other"))
			l, err := m.Lock("/")
			must(t, err)
			write(t, f, "x", 0)
			file(t, m, "unsynced")
			before, used := dump(t, m), m.Used()
			open := sorted(states(t, m, false))

			m.SetHook(failing(c.kind, vfs.Fault{Err: errInjected}))
			m.ResetCounts()
			err = c.run(m, f, l)
			wantErr(t, "with the fault", err, errInjected)
			if perr := new(fs.PathError); !errors.As(err, &perr) || perr.Path == "" {
				t.Errorf("got %#v, want an error that names the path", err)
			}
			if got := m.Count(c.kind); got != 1 {
				t.Errorf("Count(%v): got %d, want 1", c.kind, got)
			}
			m.SetHook(nil)

			if after := dump(t, m); after != before || m.Used() != used {
				t.Errorf("a failed operation changed\n%s (%d bytes) into\n%s (%d bytes)", before, used, after, m.Used())
			}
			if got := sorted(states(t, m, false)); strings.Join(got, "|") != strings.Join(open, "|") {
				t.Errorf("a failed operation changed the crash states from\n%q to\n%q", open, got)
			}
			must(t, c.run(m, f, l))
		})
	}
}

func TestHookSeesOperations(t *testing.T) {
	m := vfs.NewMem()
	var seen []string
	m.SetHook(func(op vfs.Op) vfs.Fault {
		seen = append(seen, op.String())
		return vfs.Fault{}
	})
	m.TraceLast(4)
	must(t, m.MkdirAll("a/b"))
	f := file(t, m, "a/b/../f")
	write(t, f, "hello", 3)
	must(t, f.Sync())
	must(t, m.Rename("a/f", "/g"))
	_, err := f.ReadAt(make([]byte, 8), 0)
	must(t, err)
	must(t, f.Truncate(2))
	wantErr(t, "Remove", m.Remove("h"), fs.ErrNotExist)
	want := `#1/1 mkdir /a
#2/2 mkdir /a/b
#3 stat /a/b
#4/3 create /a/f
#5/4 write /a/f [3, 8)
#6/5 sync /a/f
#7/6 rename /a/f → /g
#8 read /a/f [0, 8)
#9/7 truncate /a/f 2
#10/8 remove /h`
	if got := strings.Join(seen, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	lines := strings.Split(want, "\n")
	trace := strings.Join(lines[6:], "\n") + ": remove /h: file does not exist\n"
	trace = strings.Replace(trace, "remove /h: remove /h:", "remove /h:", 1)
	if got := m.Trace(); got != trace {
		t.Errorf("trace: got\n%s\nwant\n%s", got, trace)
	}
	if all, changes := m.Ops(); all != 10 || changes != 8 {
		t.Errorf("Ops: got %d, %d, want 10, 8", all, changes)
	}
}

func TestShortTransfers(t *testing.T) {
	m, f := durable(t, 2000)
	m.SetHook(failing(vfs.OpWrite, vfs.Fault{Err: syscall.EIO, Short: 600}))
	n, err := f.WriteAt([]byte(strings.Repeat("n", 1000)), 0)
	wantErr(t, "WriteAt", err, syscall.EIO)
	if n != 600 {
		t.Errorf("WriteAt: got %d bytes, want 600", n)
	}
	wantContents(t, f, strings.Repeat("n", 600)+strings.Repeat("o", 1400))

	m.SetHook(failing(vfs.OpRead, vfs.Fault{Err: syscall.EIO, Short: 3}))
	p := make([]byte, 10)
	n, err = f.ReadAt(p, 599)
	wantErr(t, "ReadAt", err, syscall.EIO)
	if n != 3 || string(p) != "noo\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("ReadAt: got %d bytes, %q", n, p)
	}
}

// After a Sync that failed and dropped, reads see the data, the next Sync
// succeeds, and the data is not on the disk.
func TestSyncDrops(t *testing.T) {
	m, f := durable(t, 1024)
	write(t, f, strings.Repeat("1", 1536), 0)
	m.SetHook(failing(vfs.OpSync, vfs.Fault{Err: syscall.EIO, Drop: true}))
	wantErr(t, "Sync", f.Sync(), syscall.EIO)
	m.SetHook(nil)
	must(t, f.Sync())
	wantContents(t, f, strings.Repeat("1", 1536))
	for disk := range m.CrashStates(100, 1, false) {
		wantFile(t, disk, "f", strings.Repeat("o", 1024))
	}
	// A sector that is written again is whole again, and so is the size.
	write(t, f, "2", 1000)
	must(t, f.Sync())
	for disk := range m.CrashStates(100, 1, false) {
		wantFile(t, disk, "f", strings.Repeat("o", 512)+strings.Repeat("1", 488)+"2"+strings.Repeat("1", 23)+strings.Repeat("\x00", 512))
	}
}

// A Sync that failed and dropped may have reached some sectors before.
func TestSyncDropsSome(t *testing.T) {
	m, f := durable(t, 1024)
	write(t, f, strings.Repeat("1", 1536), 0)
	m.SetHook(failing(vfs.OpSync, vfs.Fault{Err: syscall.EIO, Drop: true, Reached: func(sector int64) bool { return sector == 1 }}))
	wantErr(t, "Sync", f.Sync(), syscall.EIO)
	m.SetHook(nil)
	must(t, f.Sync())
	wantContents(t, f, strings.Repeat("1", 1536))
	for disk := range m.CrashStates(100, 1, false) {
		wantFile(t, disk, "f", strings.Repeat("o", 512)+strings.Repeat("1", 512)+strings.Repeat("\x00", 512))
	}
}

// A Sync that fails without dropping leaves everything open.
func TestSyncFails(t *testing.T) {
	m, f := durable(t, 512)
	write(t, f, "n", 0)
	m.SetHook(failing(vfs.OpSync, vfs.Fault{Err: syscall.EIO}))
	wantErr(t, "Sync", f.Sync(), syscall.EIO)
	m.SetHook(nil)
	if got := len(states(t, m, false)); got != 2 {
		t.Errorf("got %d crash states, want 2", got)
	}
	must(t, f.Sync())
	if got := len(states(t, m, false)); got != 1 {
		t.Errorf("got %d crash states, want 1", got)
	}
}

// While the hook holds a Sync, writes go on, and are not made durable by it.
func TestHookHoldsSync(t *testing.T) {
	m, f := durable(t, 512)
	held, release := make(chan struct{}), make(chan struct{})
	m.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir {
			held <- struct{}{}
			<-release
		}
		return vfs.Fault{}
	})
	write(t, f, strings.Repeat("1", 512), 0)
	var wg sync.WaitGroup
	wg.Go(func() { noError(t, f.Sync()) })
	<-held
	write(t, f, strings.Repeat("2", 512), 0)
	write(t, f, strings.Repeat("2", 512), 512)
	if got := len(states(t, m, false)); got != 3+3*2 { // a sector with three states, and one with two if the size reaches it
		t.Errorf("while the Sync is held: got %d crash states, want 9", got)
	}
	release <- struct{}{}
	wg.Wait()
	wantFile(t, m.CrashClone(vfs.Crash{}), "f", strings.Repeat("1", 512))

	file(t, m, "a")
	wg.Go(func() { noError(t, m.SyncDir("/")) })
	<-held
	file(t, m, "b")
	release <- struct{}{}
	wg.Wait()
	wantList(t, m.CrashClone(vfs.Crash{}), "/", "a", "f")
	wantList(t, m.CrashClone(vfs.Crash{Choose: vfs.Newest}), "/", "a", "b", "f")
}

func TestPowerCut(t *testing.T) {
	m, f := durable(t, 512)
	m.CutPowerAfter(2)
	write(t, f, "1", 0)
	wantContents(t, f, "1"+strings.Repeat("o", 511)) // no change, not counted
	write(t, f, "2", 1)
	wantErr(t, "the third change", f.Sync(), vfs.ErrCrashed)
	wantErr(t, "later", second(f.Size()), vfs.ErrCrashed)
	if got := len(states(t, m, false)); got != 3 {
		t.Errorf("got %d crash states, want 3: the Sync must not have happened", got)
	}

	m, f = durable(t, 512)
	m.CutPowerAfter(0)
	wantErr(t, "the first change", second(f.WriteAt([]byte("x"), 0)), vfs.ErrCrashed)

	m, f = durable(t, 512)
	m.CutPowerAfter(0)
	m.CutPowerAfter(-1)
	write(t, f, "x", 0)
	m.SetHook(failing(vfs.OpSync, vfs.Fault{PowerCut: true}))
	wantErr(t, "cut by the hook", f.Sync(), vfs.ErrCrashed)
	wantErr(t, "after it", second(m.List("/")), vfs.ErrCrashed)
}

// A power cut while the hook holds an operation undoes it.
func TestPowerOffMeanwhile(t *testing.T) {
	m, f := durable(t, 512)
	write(t, f, strings.Repeat("n", 512), 0)
	m.SetHook(func(op vfs.Op) vfs.Fault {
		m.PowerOff()
		return vfs.Fault{}
	})
	wantErr(t, "Sync", f.Sync(), vfs.ErrCrashed)
	wantFile(t, m.CrashClone(vfs.Crash{}), "f", strings.Repeat("o", 512))
}

func TestLimit(t *testing.T) {
	m := vfs.NewMem()
	m.Limit(3 * 4096)
	f := file(t, m, "f")
	must(t, f.Truncate(1<<20)) // a hole takes nothing
	write(t, f, strings.Repeat("x", 5000), 100)
	if got := m.Used(); got != 2*4096 {
		t.Fatalf("Used: got %d, want %d", got, 2*4096)
	}
	n, err := f.WriteAt(make([]byte, 10_000), 8000)
	wantErr(t, "WriteAt", err, syscall.ENOSPC)
	if want := 3*4096 - 8000; n != want {
		t.Errorf("WriteAt: got %d bytes, want %d", n, want)
	}
	g := file(t, m, "g")
	_, err = g.WriteAt([]byte("x"), 0)
	wantErr(t, "WriteAt to another file", err, syscall.ENOSPC)
	write(t, f, strings.Repeat("y", 12_000), 0) // over what is there

	must(t, m.Remove("f"))
	_, err = g.WriteAt([]byte("x"), 0)
	wantErr(t, "while the removed file is open", err, syscall.ENOSPC)
	must(t, f.Close())
	write(t, g, "x", 0)
	if got := m.Used(); got != 4096 {
		t.Errorf("Used: got %d, want 4096", got)
	}
	wantErr(t, "Allocate", g.(vfs.Allocator).Allocate(4*4096), syscall.ENOSPC)
	must(t, g.(vfs.Allocator).Allocate(3*4096))
	h := file(t, m, "h")
	_, err = h.WriteAt([]byte("x"), 0)
	wantErr(t, "next to what is reserved", err, syscall.ENOSPC)
	write(t, g, strings.Repeat("z", 3*4096), 0)
	must(t, g.Truncate(1))
	write(t, h, "x", 0)
	must(t, m.Rename("g", "h")) // replaced, and open still
	if got := m.Used(); got != 2*4096 {
		t.Errorf("Used: got %d, want %d", got, 2*4096)
	}
	must(t, h.Close())
	if got := m.Used(); got != 4096 {
		t.Errorf("Used after the replaced file was closed: got %d, want 4096", got)
	}
	m.Limit(0)
	write(t, g, strings.Repeat("z", 100_000), 0)
	must(t, g.Sync())
	must(t, m.SyncDir("/"))
	if got, want := m.CrashClone(vfs.Crash{}).Used(), m.Used(); got != want {
		t.Errorf("Used after a crash: got %d, want %d", got, want)
	}
}

func TestFlip(t *testing.T) {
	m, f := durable(t, 1000)
	clone := m.KillClone()
	mp, err := f.Map(1000)
	must(t, err)
	write(t, f, strings.Repeat("n", 600), 400)
	before := strings.Join(sorted(states(t, m, false)), "|")
	twin := m.KillClone()

	must(t, m.Flip("f", 998, 2, 0xFF))
	must(t, m.Flip("f", 0, 1, 'o'^'X'))
	want := "X" + strings.Repeat("o", 399) + strings.Repeat("n", 598) + "\x91\x91"
	wantContents(t, f, want)
	if got := string(mp.Bytes()); got != want {
		t.Errorf("mapping: got %s", runs(got))
	}
	for disk := range m.CrashStates(100, 1, false) { // whatever survives is rotten
		got := dump(t, disk)
		if !strings.HasPrefix(got, "/f: X*1 o*") || !strings.HasSuffix(got, "\x90*2\n") && !strings.HasSuffix(got, "\x91*2\n") {
			t.Errorf("after a crash: %s", got)
		}
	}
	wantFile(t, clone, "f", strings.Repeat("o", 1000))
	if got := strings.Join(sorted(states(t, twin, false)), "|"); got != before {
		t.Errorf("a clone has rotted too: %s", got)
	}

	must(t, m.Flip("f", 998, 2, 0xFF)) // twice is nothing
	must(t, m.Flip("f", 0, 1, 'o'^'X'))
	if got := strings.Join(sorted(states(t, m, false)), "|"); got != before {
		t.Errorf("flipped back: got %s, want %s", got, before)
	}
	must(t, m.Overwrite("f", 10, []byte("over")))
	wantContents(t, f, strings.Repeat("o", 10)+"over"+strings.Repeat("o", 386)+strings.Repeat("n", 600))
	for _, r := range [][2]int64{{-1, 1}, {1000, 1}, {999, 2}, {0, -1}, {1, 1<<63 - 1}} {
		if err := m.Flip("f", r[0], r[1], 1); err == nil {
			t.Errorf("Flip of %d bytes at %d: no error", r[1], r[0])
		}
	}
	wantErr(t, "Flip of nothing", m.Flip("g", 0, 0, 1), fs.ErrNotExist)
}

func TestUnmappedBytesAreOverwritten(t *testing.T) {
	_, f := durable(t, 100)
	mp, err := f.Map(4096)
	must(t, err)
	late := mp.Bytes()
	must(t, mp.Unmap())
	if got := runs(string(late[:101])); got != "\xdb*100 0*1" {
		t.Errorf("got %q", got)
	}
	write(t, f, "unseen", 0)
	if late[0] != 0xDB {
		t.Error("a write reached a mapping that was released")
	}
}

func TestClock(t *testing.T) {
	m := vfs.NewMem()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m.SetClock(func() time.Time { return now })
	f := file(t, m, "f")
	now = now.Add(time.Hour)
	write(t, f, "x", 0)
	must(t, f.Sync())
	must(t, m.SyncDir("/"))
	written := now
	now = now.Add(time.Hour)
	disk := m.CrashClone(vfs.Crash{})
	info, err := disk.Stat("f")
	must(t, err)
	if !info.ModTime().Equal(written) {
		t.Errorf("ModTime: got %v, want %v", info.ModTime(), written)
	}
}

func TestOpKindNames(t *testing.T) {
	seen := map[string]bool{}
	k := vfs.OpKind(0)
	for ; !strings.HasPrefix(k.String(), "OpKind("); k++ {
		if k.String() == "" || seen[k.String()] {
			t.Errorf("kind %d is called %q", uint8(k), k)
		}
		seen[k.String()] = true
	}
	if k != vfs.OpClose+1 {
		t.Errorf("names for %d kinds, want %d", k, vfs.OpClose+1)
	}
}
