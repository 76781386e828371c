package wal_test

import (
	"bytes"
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// TestTrimFails lets each operation of a trim fail once: later trims leave no
// gap behind the file that stayed, appends go on, and what is left opens again,
// and can be trimmed then, whether the log was closed, killed or lost its power.
func TestTrimFails(t *testing.T) {
	failed := 0
	for ; trimFails(t, failed); failed++ {
	}
	if failed < 4 {
		t.Errorf("a trim has only %d operations that can fail", failed)
	}
}

// trimFails lets an operation fail, and reports whether the trim had so many.
func trimFails(t *testing.T, at int) bool {
	m, l := openMem(t, small4K)
	defer l.Close()
	appendTo(t, l, 300)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	hit, n := "", 0
	m.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind != vfs.OpRemove && op.Kind != vfs.OpSyncDir {
			return vfs.Fault{}
		}
		if n++; n-1 != at {
			return vfs.Fault{}
		}
		hit = op.String()
		return vfs.Fault{Err: syscall.EIO}
	})
	err := l.TrimBefore(150)
	m.SetHook(nil)
	if (err != nil) != (hit != "") || err != nil && !errors.Is(err, syscall.EIO) {
		t.Fatalf("%s failed, and the trim says %v", hit, err)
	}
	if hit == "" {
		return false
	}
	for _, offset := range []uint64{150, 200, 300} {
		if err := l.TrimBefore(offset); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s failed, and then trimming before %d: %v", hit, offset, err)
		}
	}
	appendTo(t, l, 350)
	if err := l.Sync(); err != nil {
		t.Fatalf("%s failed, and then syncing: %v", hit, err)
	}
	p := promise{first: 150, next: 350, durable: 350}
	for after := range m.CrashSamples(6, uint64(at), true) {
		if err := checkRecovered(after, p); err != nil {
			t.Errorf("%s failed, then the power: %v", hit, err)
		}
	}
	if err := checkRecovered(m.KillClone(), p); err != nil {
		t.Errorf("%s failed, then a kill: %v", hit, err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("%s failed, then closing: %v", hit, err)
	}
	if l, err = wal.Open(memDir, small4KOn(m)); err != nil {
		t.Fatalf("%s failed, then opening: %v", hit, err)
	}
	defer l.Close()
	if err := errors.Join(l.TrimBefore(150), holds(l, 350)); err != nil || l.First() > 150 {
		t.Errorf("%s failed, and after opening the log begins at %d: %v", hit, l.First(), err)
	}
	return true
}

// TestTrimUnderReaders: views stay as they are, of the log that is trimmed and of
// another opener's, whatever is done to free the space of the files they are in.
func TestTrimUnderReaders(t *testing.T) {
	dir := t.TempDir()
	o := wal.Options{SegmentSize: 4 << 20, LogID: 42}
	l := open(t, dir, o)
	big := func(i uint64) []byte { return bytes.Repeat([]byte{byte(i + 1)}, 1<<20) }
	for i := range uint64(16) {
		if _, err := l.Append(big(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	o.ReadOnly = true
	views := map[uint64]wal.View{}
	for i, from := range []*wal.Log{l, open(t, dir, o)} {
		v, err := from.View(uint64(4 * i)) // in two segments
		if err != nil {
			t.Fatal(err)
		}
		views[uint64(4*i)] = v
	}
	if err := l.TrimBefore(12); err != nil {
		t.Fatal(err)
	}
	if first := l.First(); first < 8 {
		t.Fatalf("First is %d: too little was trimmed for this test", first)
	}
	for offset, v := range views {
		if !bytes.Equal(v.Data, big(offset)) {
			t.Errorf("record %d is another one after the trim", offset)
		}
		v.Release()
	}
}

// unlinkFS is a file system that removes in two parts, and counts.
type unlinkFS struct {
	vfs.FS
	syncDir error         // what an fsync of the directory fails with
	begun   chan string   // who frees in pieces tells so
	freed   chan struct{} // and waits for it

	mu            sync.Mutex
	removed, held int
}

func (u *unlinkFS) Lock(dir string) (vfs.Dir, error) {
	d, err := u.FS.Lock(dir)
	return unlinkDir{d, u}, err
}

type unlinkDir struct {
	vfs.Dir
	u *unlinkFS
}

func (d unlinkDir) Sync() error { return errors.Join(d.u.syncDir, d.Dir.Sync()) }

func (u *unlinkFS) Unlink(name string) (func(stop func() bool), error) {
	if err := u.Remove(name); err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.removed++
	u.held++
	return func(stop func() bool) {
		if !stop() {
			u.begun <- name
			<-u.freed
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		u.held--
	}, nil
}

func (u *unlinkFS) counts() (removed, held int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.removed, u.held
}

func openUnlink(t *testing.T) (*unlinkFS, *wal.Log) {
	m, l := openMem(t, small4K)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	u := &unlinkFS{FS: m, begun: make(chan string, 1000), freed: make(chan struct{})}
	o := small4K
	o = on(u, o)
	l, err := wal.Open(memDir, o)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, l, 3000)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	return u, l
}

// TestTrimHolds: however many segments are trimmed at once, and however slowly their space
// is freed, few files wait for that, and none when the log is closed.
func TestTrimHolds(t *testing.T) {
	u, l := openUnlink(t)
	if err := l.TrimBefore(100); err != nil {
		t.Fatal(err)
	}
	<-u.begun
	if err := l.TrimBefore(3000); err != nil {
		t.Fatal(err)
	}
	const most = 10
	removed, held := u.counts()
	if removed < 3*most || held > most {
		t.Errorf("%d of %d removed files are held, want at most %d of many", held, removed, most)
	}
	close(u.freed)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, held := u.counts(); held > 0 {
		t.Errorf("%d removed files are held by a log that is closed", held)
	}
}

// TestTrimNotForGood: a file whose removal may not be for good is not cut.
func TestTrimNotForGood(t *testing.T) {
	u, l := openUnlink(t)
	close(u.freed)
	u.syncDir = syscall.EIO
	if err := l.TrimBefore(3000); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if removed, held := u.counts(); removed != 1 || held > 0 || len(u.begun) > 0 {
		t.Errorf("%d files removed, %d held, %d freed in pieces", removed, held, len(u.begun))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
