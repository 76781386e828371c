package enginetest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

const (
	testRealm = "data/realms/test"
	testLog   = testRealm + "/log"
)

// segmentNames returns the log's segments, oldest first.
func segmentNames(t testing.TB, disk *vfs.Mem) []string {
	t.Helper()
	names, err := disk.List(testLog)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".wal") })
}

// removeFiles removes files durably.
func removeFiles(t testing.TB, disk *vfs.Mem, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := disk.Remove(dir + "/" + name); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
}

// zeroSectors overwrites the last n sectors of a file, as many bytes as are in them.
func zeroSectors(t testing.TB, disk *vfs.Mem, name string, n int64) {
	t.Helper()
	info, err := disk.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	from := max(0, (info.Size()-1)/512*512-(n-1)*512)
	if err := disk.Overwrite(name, from, make([]byte, info.Size()-from)); err != nil {
		t.Fatal(err)
	}
}

// openTest opens the realm "test", which may fail, and closes the engine.
func openTest(disk *vfs.Mem, o worldOptions) error {
	o.FS = disk
	e, err := openWorld("data", o)
	if err != nil {
		return err
	}
	_, err = e.Realm("test")
	return errors.Join(err, e.Close())
}

// segmentsOf returns the log's segments with what is in them.
func segmentsOf(t testing.TB, disk *vfs.Mem) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range segmentNames(t, disk) {
		info, err := disk.Stat(testLog + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(bytesAt(t, disk, testLog+"/"+name, 0, info.Size()))
	}
	return all
}

// closedLog is the disk of a realm whose log has several segments and was closed.
func closedLog(t testing.TB) *vfs.Mem {
	t.Helper()
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk, SegmentSize: 4096})
	drawSome(t, r, "a", 120)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(segmentNames(t, disk)); n < 4 {
		t.Fatalf("%d segments", n)
	}
	return disk
}

// lostTails are ways in which a log loses its end. Each begins with the whole log.
var lostTails = []struct {
	name string
	lose func(t testing.TB, disk *vfs.Mem)
}{
	{"the last sectors are zero", func(t testing.TB, disk *vfs.Mem) {
		names := segmentNames(t, disk)
		zeroSectors(t, disk, testLog+"/"+names[len(names)-1], 3) // the footer has less than two
	}},
	{"the last segment is zero", func(t testing.TB, disk *vfs.Mem) {
		names := segmentNames(t, disk)
		zeroSectors(t, disk, testLog+"/"+names[len(names)-1], 1<<20)
	}},
	{"the last segment is missing", func(t testing.TB, disk *vfs.Mem) {
		names := segmentNames(t, disk)
		removeFiles(t, disk, testLog, names[len(names)-1])
	}},
	{"two segments are missing", func(t testing.TB, disk *vfs.Mem) {
		names := segmentNames(t, disk)
		removeFiles(t, disk, testLog, names[len(names)-2:]...)
	}},
	{"all segments are missing", func(t testing.TB, disk *vfs.Mem) {
		removeFiles(t, disk, testLog, segmentNames(t, disk)...)
	}},
	{"the directory is missing", func(t testing.TB, disk *vfs.Mem) {
		all, err := disk.List(testLog) // a life that crashed may leave more than segments
		if err != nil {
			t.Fatal(err)
		}
		removeFiles(t, disk, testLog, all...)
		removeFiles(t, disk, testRealm, "log")
	}},
}

// TestLostTail: a log that was closed and has lost its end is refused with the place, as often as
// it is opened, and not changed; and so is one that lost its end in a later life, which crashed.
func TestLostTail(t *testing.T) {
	sound := closedLog(t)
	want, err := verifyIn(sound, "data", "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	crashed := sound.CrashClone(vfs.Crash{})
	for crashing := false; ; crashing = true {
		disk := sound
		if crashing {
			// A life that crashes before it appends more than its epoch's begin.
			if _, err := openLife(t, crashed); err != nil {
				t.Fatal(err)
			}
			disk = crashed.CrashClone(vfs.Crash{})
			if err := openTest(disk.CrashClone(vfs.Crash{}), worldOptions{}); err != nil {
				t.Fatalf("a sound log after a crash: %v", err)
			}
		}
		for _, tail := range lostTails {
			name := fmt.Sprintf("%s, after a crash %v", tail.name, crashing)
			c := disk.CrashClone(vfs.Crash{})
			tail.lose(t, c)
			if crashing && tail.name == "the last sectors are zero" {
				continue // they may be those of the later life
			}
			rep, err := verifyIn(c, "data", "test", nil)
			if wrong, ok := errors.AsType[*verify.Error](err); !ok || wrong.Position != 0 && wrong.Position != rep.Position+1 || rep.Position >= want.Position {
				t.Errorf("%s: Verify reached %d of %d and says %v", name, rep.Position, want.Position, err)
			}
			gone := strings.HasPrefix(tail.name, "the directory")
			var was map[string]string
			if !gone {
				was = segmentsOf(t, c)
			}
			for range 2 {
				err := openTest(c, worldOptions{})
				wantCode(t, err, kuji.CodeCorrupt)
				if err == nil || !strings.Contains(err.Error(), testLog) {
					t.Errorf("%s: the place is not named: %v", name, err)
				}
			}
			if gone {
				if _, err := c.Stat(testLog); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: it was made anew: %v", name, err)
				}
			} else if is := segmentsOf(t, c); fmt.Sprint(is) != fmt.Sprint(was) {
				t.Errorf("%s: a refused log was changed", name)
			}
		}
		if crashing {
			break
		}
	}
}

// openLife opens the realm "test" on a disk and leaves it open until the test ends.
func openLife(t testing.TB, disk *vfs.Mem) (*kuji.Realm, error) {
	t.Helper()
	e, err := openWorld("data", worldOptions{FS: disk, SegmentSize: 4096})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { e.Close() }) // its disk is no longer looked at
	return e.Realm("test")
}

// TestOtherLog: the log of another life of the realm, whole and longer, is not the one that was
// closed.
func TestOtherLog(t *testing.T) {
	closed := contents(t, closedLog(t), testRealm+"/closed")
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk, SegmentSize: 4096})
	drawSome(t, r, "b", 200)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	replace(t, disk, testRealm+"/closed", closed)
	_, err := verifyIn(disk, "data", "test", nil)
	if got := wrongPosition(err); got != 123 { // a catalog, 120 draws, an epoch's begin and end
		t.Errorf("Verify names position %d: %v", got, err)
	}
	wantCode(t, openTest(disk, worldOptions{}), kuji.CodeCorrupt)
}

// replace gives a file other contents, durably.
func replace(t testing.TB, disk *vfs.Mem, name string, b []byte) {
	t.Helper()
	if err := disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	f, err := disk.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, 0)
	if err := errors.Join(err, f.Sync(), f.Close(), disk.SyncDir(testRealm)); err != nil {
		t.Fatal(err)
	}
}

// TestLogGone: no log is made where something says that there was one.
func TestLogGone(t *testing.T) {
	disk := vfs.NewMem()
	e, r := open(t, "data", worldOptions{FS: disk})
	drawSome(t, r, "a", 5)
	snapshot(t, r)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	relics := []string{"closed", "snapshots"}
	for _, kept := range append(relics, "") {
		c := disk.CrashClone(vfs.Crash{})
		removeFiles(t, c, testLog, segmentNames(t, c)...)
		for _, name := range relics {
			switch {
			case name == kept:
			case name == "snapshots":
				names, err := c.List(testRealm + "/snapshots")
				if err != nil {
					t.Fatal(err)
				}
				removeFiles(t, c, testRealm+"/snapshots", names...)
			default:
				removeFiles(t, c, testRealm, name)
			}
		}
		err := openTest(c.CrashClone(vfs.Crash{}), worldOptions{})
		if kept == "" {
			if err != nil {
				t.Errorf("nothing says that there was a log: %v", err)
			}
			wantCode(t, openTest(c, worldOptions{MustExist: true}), kuji.CodeNotFound)
			continue
		}
		wantCode(t, err, kuji.CodeCorrupt)
		if err == nil || !strings.Contains(err.Error(), kept) {
			t.Errorf("%s is there: %v", kept, err)
		}
		if _, err := verifyIn(c, "data", "test", nil); err == nil || !strings.Contains(err.Error(), kept) {
			t.Errorf("%s is there, and Verify says %v", kept, err)
		}
		wantCode(t, openTest(c, worldOptions{MustExist: true}), kuji.CodeCorrupt)
		if n := len(segmentNames(t, c)); n != 0 {
			t.Errorf("%s is there, and a log was made next to it", kept)
		}
	}
}

// TestDamagedClosed: whichever bit of what says where the log was closed is damaged, the realm is
// refused and the file named; without it, the realm opens. A disk that cannot read it is no damage.
func TestDamagedClosed(t *testing.T) {
	disk := closedLog(t)
	const name = testRealm + "/closed"
	says := contents(t, disk, name)
	refused := func(what string, b []byte) {
		t.Helper()
		c := disk.CrashClone(vfs.Crash{})
		replace(t, c, name, b)
		err := openTest(c, worldOptions{})
		wantCode(t, err, kuji.CodeCorrupt)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: opening says %v", what, err)
		}
		if rep, err := verifyIn(c, "data", "test", nil); err == nil || !strings.Contains(err.Error(), name) || rep.Position != 123 {
			t.Errorf("%s: Verify reached %d and says %v", what, rep.Position, err)
		}
	}
	for at := range 8 * len(says) {
		if at%13 > 0 && testing.Short() {
			continue
		}
		b := bytes.Clone(says)
		b[at/8] ^= 1 << (at % 8)
		refused(fmt.Sprint("bit ", at), b)
	}
	refused("empty", nil)
	refused("cut", says[:len(says)-1])
	refused("grown", append(bytes.Clone(says), '\n'))
	refused("padded", bytes.Replace(says, []byte("offset "), []byte("offset  "), 1))

	c := disk.CrashClone(vfs.Crash{})
	c.SetHook(func(op vfs.Op) vfs.Fault {
		if strings.HasSuffix(op.Path, name) && op.Kind == vfs.OpRead {
			return vfs.Fault{Err: syscall.EIO}
		}
		return vfs.Fault{}
	})
	wantCode(t, openTest(c, worldOptions{}), kuji.CodeFailed)
	if _, err := verifyIn(c, "data", "test", nil); kuji.CodeOf(err) != kuji.CodeFailed || !errors.Is(err, syscall.EIO) {
		t.Errorf("Verify of what cannot be read: %v", err)
	}
	c.SetHook(nil)
	removeFiles(t, c, testRealm, "closed")
	if err := openTest(c, worldOptions{}); err != nil {
		t.Errorf("without the file: %v", err)
	}
	if got := contents(t, c, name); bytes.Equal(got, says) {
		t.Error("the next close did not say where it was")
	}
}

// TestClosedNotNoted: a close that cannot say where it was says so, and the log is good.
func TestClosedNotNoted(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpRename, vfs.OpSyncDir} {
		disk := closedLog(t)
		e, r := open(t, "data", worldOptions{FS: disk, SegmentSize: 4096})
		drawSome(t, r, "more", 3)
		noting := false
		disk.SetHook(func(op vfs.Op) vfs.Fault {
			noting = noting || strings.Contains(op.Path, testRealm+"/closed")
			if noting && op.Kind == kind {
				return vfs.Fault{Err: syscall.EIO}
			}
			return vfs.Fault{}
		})
		err := e.Close()
		if kuji.CodeOf(err) != kuji.CodeFailed || !errors.Is(err, syscall.EIO) {
			t.Errorf("%v fails: %v", kind, err)
		}
		disk.SetHook(nil)
		for crashed := range disk.CrashSamples(4, 1, false) {
			if err := openTest(crashed, worldOptions{}); err != nil {
				t.Errorf("%v failed, and then: %v", kind, err)
			}
			if _, err := verifyIn(crashed, "data", "test", nil); err != nil {
				t.Errorf("%v failed, and then: %v", kind, err)
			}
		}
	}
}

// TestMustExist: nothing is created that is not there.
func TestMustExist(t *testing.T) {
	disk := vfs.NewMem()
	must := worldOptions{FS: disk, MustExist: true}
	wantCode(t, openTest(disk, must), kuji.CodeNotFound)
	if _, err := disk.Stat("data"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory was made: %v", err)
	}
	if err := openTest(disk, worldOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := openTest(disk, must); err != nil {
		t.Errorf("what exists: %v", err)
	}
	e, err := openWorld("data", must)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Realm("other")
	wantCode(t, err, kuji.CodeNotFound)
	if names, err := e.Realms(); err != nil || len(names) != 1 {
		t.Errorf("realms %q, %v", names, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	memory, err := kuji.OpenMemory([32]byte{}, kuji.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := memory.Realm("test"); err != nil {
		t.Error(err)
	}
	if err := memory.Close(); err != nil {
		t.Error(err)
	}
}

// TestLostSeed: an epoch that a crash ended is named when its seed is gone, and only then.
func TestLostSeed(t *testing.T) {
	o := worldOptions{FS: vfs.NewMem(), SegmentSize: 4096, TrimLog: true}
	_, r := open(t, "data", o)
	drawSome(t, r, "a", 20)
	crashed := o.FS.(*vfs.Mem).CrashClone(vfs.Crash{})
	lost := func(disk *vfs.Mem) (epochs []uint64) {
		t.Helper()
		rep, err := verifyIn(disk, "data", "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range rep.Epochs {
			if e.Lost {
				epochs = append(epochs, e.Epoch)
			}
			if e.Lost && e.Revealed {
				t.Errorf("epoch %d is revealed and lost", e.Epoch)
			}
		}
		return epochs
	}
	if got := lost(crashed); got != nil {
		t.Errorf("epochs %d are lost, and their seeds wait in the file", got)
	}
	kept := crashed.CrashClone(vfs.Crash{})
	if err := openTest(kept, worldOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := lost(kept); got != nil {
		t.Errorf("epochs %d are lost after a start that revealed them", got)
	}
	removeFiles(t, crashed, "data", "key")
	if got := fmt.Sprint(lost(crashed)); got != "[1]" {
		t.Errorf("epochs %s are lost, want [1]", got)
	}
	o.FS = crashed
	e, r := open(t, "data", o)
	for round := range 40 { // until the log is trimmed behind it
		drawSome(t, r, fmt.Sprint(round, "-"), 60)
		snapshot(t, r)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := verifyIn(crashed, "data", "test", nil); err != nil || rep.From == 0 {
		t.Fatalf("verified from %d: %v", rep.From, err)
	}
	if got := fmt.Sprint(lost(crashed)); got != "[1]" {
		t.Errorf("epochs %s are lost in a trimmed log, want [1]", got)
	}
}
