package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// TestEqualRecordsInGroups reads records of one length that were written one to
// a group, a few to a group, and all together: the distance between them is
// constant in the first case too, and not their length.
func TestEqualRecordsInGroups(t *testing.T) {
	for _, length := range []int{0, 1, 7, 8, 100, 117, 256} {
		for _, each := range []int{1, 2, 3, 5, 64, 1000} {
			t.Run(fmt.Sprintf("%d bytes, %d a group", length, each), func(t *testing.T) {
				disk := vfs.NewMem()
				o := on(disk, wal.Options{SegmentSize: 16 << 10})
				l, err := wal.Open("log", o)
				if err != nil {
					t.Fatal(err)
				}
				want := func(i uint64) []byte { return bytes.Repeat([]byte{byte(i)}, length) }
				check := func(l *wal.Log) {
					t.Helper()
					n := uint64(0)
					for r, err := range l.Records(0) {
						if err != nil || r.Offset != n || !bytes.Equal(r.Data, want(n)) {
							t.Fatalf("record %d: %d bytes, %v", n, len(r.Data), err)
						}
						got, err := l.Read(n, nil)
						if err != nil || !bytes.Equal(got, want(n)) {
							t.Fatalf("Read(%d): %d bytes, %v", n, len(got), err)
						}
						n++
					}
					if n != 1000 {
						t.Fatalf("%d records, want 1000", n)
					}
				}
				for i := range 1000 {
					if _, err := l.Append(want(uint64(i))); err != nil {
						t.Fatal(err)
					}
					if (i+1)%each == 0 {
						if err := l.Flush(); err != nil {
							t.Fatal(err)
						}
					}
				}
				check(l)
				if err := l.Flush(); err != nil {
					t.Fatal(err)
				}
				killed, err := wal.Open("log", on(disk.KillClone(), wal.Options{})) // reads by a scan
				if err != nil {
					t.Fatal(err)
				}
				check(killed)
				if err := errors.Join(killed.Close(), l.Close()); err != nil {
					t.Fatal(err)
				}
				if l, err = wal.Open("log", o); err != nil {
					t.Fatal(err)
				}
				check(l)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestUnwritten: appends wait before more than 1 MiB and a record of them is in
// memory only. That is what a killed process loses.
func TestUnwritten(t *testing.T) {
	const most = 1<<20 + 1000 + 8
	m, l := openMem(t, wal.Options{})
	data := make([]byte, 1000)
	// Whoever writes stands still until appends do, too.
	m.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind != vfs.OpWrite {
			return vfs.Fault{}
		}
		next := l.Next()
		for quiet := 0; quiet < 1000; quiet++ {
			runtime.Gosched()
			if now := l.Next(); now != next {
				next, quiet = now, 0
			}
		}
		if ahead := int64(next)*(1000+8) - op.Offset; ahead > most {
			t.Errorf("%d bytes of records are not written, want at most %d", ahead, most)
		}
		return vfs.Fault{}
	})
	for range 10_000 {
		if _, err := l.Append(data); err != nil {
			t.Fatal(err)
		}
	}
	m.SetHook(nil)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
