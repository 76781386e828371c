package enginetest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// soundEntries returns the entries of a small log that was closed.
func soundEntries(f *testing.F) [][]byte {
	f.Helper()
	disk := vfs.NewMem()
	e, err := openWorld("data", worldOptions{FS: disk})
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
	do(f, r, kuji.Draw{ID: "1", Player: "ann", Pool: "paid", Count: 2})
	do(f, r, kuji.Atomic{ID: "2", Members: []kuji.Request{
		kuji.Grant{Player: "bob", Items: []kuji.Stack{{Item: "gem", Quantity: 5}}},
		kuji.Draw{Player: "bob", Pool: "box", Count: 3},
	}})
	if err := e.Close(); err != nil {
		f.Fatal(err)
	}
	l, err := wal.Open("data/realms/test/log", on(disk, wal.Options{ReadOnly: true}))
	if err != nil {
		f.Fatal(err)
	}
	defer l.Close()
	var entries [][]byte
	for rec, err := range l.Records(0) {
		if err != nil {
			f.Fatal(err)
		}
		entries = append(entries, bytes.Clone(rec.Data))
	}
	return entries
}

// FuzzEntry puts any bytes into a log in the place of an entry, with a checksum
// that is right if asked for. Opening and verifying agree on whether the log is
// sound, say so with an error of this package, and never panic.
func FuzzEntry(f *testing.F) {
	entries := soundEntries(f)
	for i, e := range entries {
		f.Add(e, uint8(i), false)
		f.Add(e[:len(e)-1], uint8(i), true)
	}
	f.Fuzz(func(t *testing.T, entry []byte, at uint8, sum bool) {
		entry = bytes.Clone(entry)
		if sum && len(entry) >= 16 { // let what lies behind the checks be reached
			binary.LittleEndian.PutUint32(entry[12:], uint32(max(0, len(entry)-88-len("test"))))
			binary.LittleEndian.PutUint32(entry[4:], crc32.Checksum(entry[8:], crc32.MakeTable(crc32.Castagnoli)))
		}
		all := slices.Clone(entries)
		all[int(at)%len(all)] = entry
		disk := vfs.NewMem()
		l, err := wal.Open("data/realms/test/log", on(disk, wal.Options{SegmentSize: 64 << 10}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.AppendBatch(all); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		rep, verifyErr := verifyIn(disk, "data", "test", func(kuji.Record) {})
		e, err := openWorld("data", worldOptions{FS: disk, SegmentSize: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Realm("test")
		if err != nil {
			if kuji.CodeOf(err) == 0 {
				t.Errorf("an error of another package: %v", err)
			}
			if verifyErr == nil {
				t.Errorf("sound to Verify, refused by Open: %v", err)
			}
		} else {
			hash, _, err := r.StateHash(t.Context())
			if verifyErr == nil && (err != nil || hash != rep.StateHash) {
				t.Errorf("two states of one log: %x, %x, %v", hash, rep.StateHash, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
