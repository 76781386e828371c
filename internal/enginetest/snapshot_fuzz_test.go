package enginetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

// reframe makes the checksums of a snapshot's frames right, and the digest in
// its footer, so that what comes after them is reached.
func reframe(b []byte) []byte { return checksummed(b, true) }

// checksummed makes the checksums of a snapshot's frames right, and, if digested,
// the digest in its footer.
func checksummed(b []byte, digested bool) []byte {
	const head, footer = 9, 255
	table := crc32.MakeTable(crc32.Castagnoli)
	for number, at := uint64(0), 0; at+head <= len(b); number++ {
		n := int(binary.LittleEndian.Uint32(b[at:]))
		if n < 0 || n > len(b)-at-head {
			return b
		}
		kind, data := b[at+8], b[at+head:at+head+n]
		if digested && kind == footer && n >= 32 {
			digest := sha256.Sum256(b[:at])
			copy(data[n-32:], digest[:])
		}
		place := append(binary.LittleEndian.AppendUint64(nil, number), kind)
		binary.LittleEndian.PutUint32(b[at+4:], crc32.Update(crc32.Checksum(place, table), table, data))
		at += head + n
	}
	return b
}

// FuzzSnapshot puts any bytes in the place of a snapshot. The log is whole, so
// that opening finds the right state, from the log or from the snapshot: never
// another one, unless somebody has written a snapshot on purpose; and nothing
// panics.
func FuzzSnapshot(f *testing.F) {
	disk := vfs.NewMem()
	e, err := openWorld("data", worldOptions{FS: disk, SegmentSize: 64 << 10, SnapshotEvery: -1})
	if err != nil {
		f.Fatal(err)
	}
	r, err := e.Realm("test")
	if err != nil {
		f.Fatal(err)
	}
	if _, err := r.Apply(f.Context(), parse(f, testCatalog)); err != nil {
		f.Fatal(err)
	}
	drawSome(f, r, "a", 30)
	snapshot(f, r)
	if err := e.Close(); err != nil {
		f.Fatal(err)
	}
	const dir = "data/realms/test/snapshots"
	names, err := disk.List(dir)
	if err != nil || len(names) != 1 {
		f.Fatalf("snapshots %v, %v", names, err)
	}
	sound := contents(f, disk, dir+"/"+names[0])
	want, err := verifyIn(disk, "data", "test", nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sound, false)
	for _, at := range []int{0, 9, 60, len(sound) / 2, len(sound) - 40, len(sound) - 1} {
		b := bytes.Clone(sound)
		b[at] ^= 1
		f.Add(b, true)
		f.Add(sound[:at], false)
	}
	f.Fuzz(func(t *testing.T, b []byte, right bool) {
		if b = bytes.Clone(b); right {
			b = reframe(b)
		}
		disk := disk.KillClone()
		if err := disk.Remove(dir + "/" + names[0]); err != nil {
			t.Fatal(err)
		}
		file, err := disk.Create(dir + "/" + names[0])
		if err == nil {
			_, err = file.WriteAt(b, 0)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		rep, verifyErr := verifyIn(disk, "data", "test", func(kuji.Record) {})
		if verifyErr == nil && rep.StateHash != want.StateHash {
			t.Errorf("Verify gives state %x, want %x", rep.StateHash, want.StateHash)
		}
		e, err := openWorld("data", worldOptions{FS: disk, SegmentSize: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Realm("test")
		switch {
		case err != nil && kuji.CodeOf(err) == 0:
			t.Errorf("an error of another package: %v", err)
		case err == nil && !right:
			if hash, _, err := r.StateHash(t.Context()); err != nil || hash != want.StateHash {
				t.Errorf("opened with state %x, want %x: %v", hash, want.StateHash, err)
			}
		}
		if err := e.Close(); err != nil && kuji.CodeOf(err) == 0 {
			t.Error(err)
		}
	})
}

// contents reads a file.
func contents(t testing.TB, disk *vfs.Mem, name string) []byte {
	t.Helper()
	file, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := file.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSnapshotWithoutEpochs: a footer that does not name the epoch in force is
// refused, also where nothing but the snapshot knows of it.
func TestSnapshotWithoutEpochs(t *testing.T) {
	dir := trimmedRealm(t)
	const epochs, size, digest = 6*8 + 16 + 32 + 32 + 1 + 1, 125, 32 // place of the count in a footer, and sizes
	for _, name := range snapshotFiles(t, dir) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		footer := len(b) - (epochs + 4 + size + digest) // of one epoch
		if n := binary.LittleEndian.Uint32(b[footer+epochs:]); n != 1 {
			t.Fatalf("%d epochs in the footer", n)
		}
		binary.LittleEndian.PutUint32(b[footer+epochs:], 0)
		b = append(b[:footer+epochs+4], make([]byte, digest)...)
		binary.LittleEndian.PutUint32(b[footer-9:], epochs+4+digest)
		if err := os.WriteFile(name, reframe(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := verify.Dir(dir, "test", verify.Options{}); err == nil || !strings.Contains(err.Error(), "in force") {
		t.Errorf("verification says %v", err)
	}
}

// TestSnapshotWithoutABlock: a snapshot that lacks a block that it announced is
// not used, though every checksum in it is right.
func TestSnapshotWithoutABlock(t *testing.T) {
	for _, kind := range []byte{2, 4, 5, 7, 8, 9} { // items, pools, entries, catalog, players, requests
		dir, name, b := oneSnapshot(t, 20)
		if err := os.WriteFile(name, reframe(withoutBlocks(t, b, kind)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, r := open(t, dir, worldOptions{Sync: kuji.SyncNone})
		if s := r.Stats(); s.RecoveredEvents != 21 || s.SnapshotErr == nil {
			t.Errorf("without the blocks of kind %d: %d events replayed, want 21; %v", kind, s.RecoveredEvents, s.SnapshotErr)
		}
	}
}

// TestSnapshotWithoutItsCounters: a block that nothing else in a snapshot announces
// is missed by the digest in the footer.
func TestSnapshotWithoutItsCounters(t *testing.T) {
	dir, name, b := oneSnapshot(t, 20)
	if err := os.WriteFile(name, checksummed(withoutBlocks(t, b, 6), false), 0o600); err != nil {
		t.Fatal(err)
	}
	_, r := open(t, dir, worldOptions{})
	if s := r.Stats(); s.RecoveredEvents != 21 || s.SnapshotErr == nil || !strings.Contains(s.SnapshotErr.Error(), "footer") {
		t.Errorf("%d events replayed, want 21; %v", s.RecoveredEvents, s.SnapshotErr)
	}
}

// withoutBlocks returns a snapshot without its blocks of a kind, of which there are some.
func withoutBlocks(t *testing.T, b []byte, kind byte) []byte {
	t.Helper()
	var without []byte
	for at := 0; at < len(b); {
		end := at + 9 + int(binary.LittleEndian.Uint32(b[at:]))
		if b[at+8] != kind {
			without = append(without, b[at:end]...)
		}
		at = end
	}
	if len(without) == len(b) {
		t.Fatalf("no block of kind %d", kind)
	}
	return without
}

// TestSnapshotOnAnotherBase puts a snapshot of another realm's state, of the same
// position, in the place of the one that the newest builds on.
func TestSnapshotOnAnotherBase(t *testing.T) {
	make := func() string {
		dir := t.TempDir()
		e, r := open(t, dir, worldOptions{})
		drawSome(t, r, "a", 30)
		snapshot(t, r)
		drawSome(t, r, "b", 2)
		if s := snapshot(t, r); s.Base == 0 {
			t.Fatal("the second snapshot holds everything")
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	other, dir := make(), make() // the older one, so that nothing in it is too young
	if err := os.Rename(snapshotFiles(t, other)[0], snapshotFiles(t, dir)[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := verify.Dir(dir, "test", verify.Options{}); err == nil {
		t.Error("verification finds nothing wrong")
	}
	e, err := openWorld(dir, worldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, err = e.Realm("test") // the base by itself is whole, and of another log
	wantCode(t, err, kuji.CodeCorrupt)
	if !strings.Contains(fmt.Sprint(err), "position 32") {
		t.Errorf("not of the base: %v", err)
	}
}
