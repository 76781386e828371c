package vfs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestUnlink: the space of a removed file is freed step by step, unless somebody else
// can still see what is in it.
func TestUnlink(t *testing.T) {
	const megabytes = 5
	content := bytes.Repeat([]byte("kuji"), megabytes<<18)
	for _, c := range []struct {
		name  string
		keep  func(t *testing.T, name string) (left func() []byte) // nil: nobody
		stop  int                                                  // from which question on
		steps int
	}{
		{"nobody else", nil, 100, megabytes - 1},
		{"until stopped", nil, 2, 2},
		{"open elsewhere", func(t *testing.T, name string) func() []byte {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			return func() []byte {
				defer f.Close()
				b := make([]byte, len(content))
				if _, err := f.ReadAt(b, 0); err != nil {
					t.Error(err)
				}
				return b
			}
		}, 100, 0},
		{"mapped elsewhere", func(t *testing.T, name string) func() []byte {
			f, err := vfs.OS().Open(name)
			if err != nil {
				t.Fatal(err)
			}
			m, err := f.Map(int64(len(content)))
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { m.Unmap() })
			return m.Bytes
		}, 100, 0},
		{"another name", func(t *testing.T, name string) func() []byte {
			if err := os.Link(name, name+".backup"); err != nil {
				t.Fatal(err)
			}
			return func() []byte {
				b, err := os.ReadFile(name + ".backup")
				if err != nil {
					t.Error(err)
				}
				return b
			}
		}, 100, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
			left := func() []byte { return content }
			if c.keep != nil {
				left = c.keep(t, name)
			}
			free, err := vfs.Unlink(vfs.OS(), name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the name is still there: %v", err)
			}
			steps := 0
			free(func() bool {
				if steps == c.stop {
					return true
				}
				steps++
				return false
			})
			if steps != c.steps {
				t.Errorf("freed in %d steps, want %d", steps, c.steps)
			}
			if !bytes.Equal(left(), content) {
				t.Error("who can still see the file sees other bytes")
			}
		})
	}
	if _, err := vfs.Unlink(vfs.OS(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Unlink of a file that is not there: %v", err)
	}
	m := vfs.NewMem() // which cannot do it by halves
	if err := m.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	f, err := m.Create("/d/file")
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	free, err := vfs.Unlink(m, "/d/file")
	if err != nil {
		t.Fatal(err)
	}
	if free != nil {
		t.Error("an in-memory file system has something left to free")
	}
	if names, err := m.List("/d"); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}
