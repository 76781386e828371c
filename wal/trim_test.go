package wal_test

import (
	"bytes"
	"errors"
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
