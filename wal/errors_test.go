package wal_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// TestDamageInWords: what a person reads when a directory is not as it must be.
func TestDamageInWords(t *testing.T) {
	made := func(t *testing.T) *vfs.Mem {
		m, l := openMem(t, small4K)
		appendTo(t, l, 200)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		name string
		harm func(t *testing.T, m *vfs.Mem)
		want []string
	}{
		{"a file that is no segment", func(t *testing.T, m *vfs.Mem) {
			f, err := m.Create(path.Join(memDir, "old.wal"))
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}, []string{"/log/old.wal", "not the name of a segment, which is an offset of 20 digits, at most 4611686018427387904, and .wal"}},
		{"a segment is missing", func(t *testing.T, m *vfs.Mem) {
			if err := m.Remove(segments(t, m)[2]); err != nil {
				t.Fatal(err)
			}
		}, []string{"the segment that follows is missing: the next one is 0000000000000000", "first offset: got ", ", want "}},
		{"the first segment is missing its header", func(t *testing.T, m *vfs.Mem) {
			f, err := m.OpenWrite(segments(t, m)[0])
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteAt(make([]byte, 64), 0)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}, []string{"header of the first segment is missing: got 0x0, want 0x14c4157494a554b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := made(t)
			c.harm(t, m)
			_, err := wal.Open(memDir, small4KOn(m))
			if !errors.Is(err, wal.ErrCorrupt) {
				t.Fatalf("Open: %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Open says %q, want %q in it", err, want)
				}
			}
			r, err := wal.Verify(context.Background(), memDir, small4KOn(m))
			if err != nil || len(r.Damage) == 0 {
				t.Errorf("Verify: %+v, %v", r, err)
			}
		})
	}
	if e := (&wal.CorruptionError{File: "f", What: "size of a segment", Got: 10, Want: 4096}); !strings.HasSuffix(e.Error(), "got 10, want 4096") {
		t.Errorf("numbers: %v", e)
	}
	if e := (&wal.CorruptionError{File: "f", What: "sum", Got: 10, Want: 4096, Bits: true}); !strings.HasSuffix(e.Error(), "got 0xa, want 0x1000") {
		t.Errorf("patterns of bits: %v", e)
	}
	if e := (&wal.CorruptionError{File: "f", What: "page cannot be read"}); strings.Contains(e.Error(), "got") {
		t.Errorf("no values: %v", e)
	}
}

// TestNoDirectory: an empty path is a mistake, not the current directory.
func TestNoDirectory(t *testing.T) {
	if _, err := wal.Open("", wal.Options{}); !errors.Is(err, wal.ErrOptions) {
		t.Errorf("Open: %v", err)
	}
	if _, err := wal.Verify(context.Background(), "", wal.Options{}); !errors.Is(err, wal.ErrOptions) {
		t.Errorf("Verify: %v", err)
	}
	for _, err := range wal.Groups("", wal.Options{}) {
		if !errors.Is(err, wal.ErrOptions) {
			t.Errorf("Groups: %v", err)
		}
	}
}
