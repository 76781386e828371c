package vfs_test

import (
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/kuji-dev/kuji/internal/vfs"
)

func TestAsideConforms(t *testing.T) {
	testConformance(t, func(t *testing.T) (vfs.FS, string) {
		return vfs.Aside(vfs.OS()), filepath.ToSlash(t.TempDir())
	})
}

// TestAsideGivesWay: on one processor, a goroutine that can run runs before a call that
// may wait for the disk. Now and then the scheduler prefers who gives way (once in 61
// times), so that each call has several rounds to show it.
func TestAsideGivesWay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds = 6
	gave := map[string]int{} // how often, by call
	for range rounds {
		m := vfs.NewMem()
		fsys := vfs.Aside(m)
		var f vfs.File
		for _, c := range []struct {
			op   string
			call func() error
		}{
			{"MkdirAll", func() error { return fsys.MkdirAll("/d") }},
			{"Create", func() (err error) { f, err = fsys.Create("/d/file"); return err }},
			{"WriteAt", func() error { _, err := f.WriteAt([]byte("kuji"), 0); return err }},
			{"Truncate", func() error { return f.Truncate(2) }},
			{"Sync", func() error { return f.Sync() }},
			{"Open", func() error { return closed(fsys.Open("/d/file")) }},
			{"OpenWrite", func() error { return closed(fsys.OpenWrite("/d/file")) }},
			{"SyncDir", func() error { return fsys.SyncDir("/d") }},
			{"Rename", func() error { return fsys.Rename("/d/file", "/d/other") }},
			{"Unlink", func() error { _, err := vfs.Unlink(fsys, "/d/other"); return err }},
			{"Close", func() error { return f.Close() }},
			{"Remove", func() error { return fsys.Remove("/d") }},
		} {
			var ran atomic.Bool
			first, asked := false, false
			m.SetHook(func(vfs.Op) vfs.Fault {
				if !asked {
					asked, first = true, ran.Load()
				}
				return vfs.Fault{}
			})
			go ran.Store(true)
			must(t, c.call())
			gave[c.op] += 0
			if first {
				gave[c.op]++
			}
			for !ran.Load() {
				runtime.Gosched()
			}
			m.SetHook(nil)
		}
	}
	for op, n := range gave {
		if n == 0 {
			t.Errorf("%s: in %d rounds the disk was always asked before whoever could run ran", op, rounds)
		}
	}
}

// closed closes a file that was opened.
func closed(f vfs.File, err error) error {
	if err != nil {
		return err
	}
	return f.Close()
}
