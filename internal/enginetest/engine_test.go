package enginetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/wal"
)

// TestLookup: a realm that exists is found, whether it was opened or not, also
// when there is room for no other; one that does not exist is not made.
func TestLookup(t *testing.T) {
	disk := vfs.NewMem()
	e, err := openWorld("data", worldOptions{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Lookup("one"); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("a realm that was never made: %v", err)
	}
	if _, err := e.Realm("one"); err != nil {
		t.Fatal(err)
	}
	for i := range kuji.MaxRealms - 1 { // as directories with something in them, which take no time
		if err := disk.MkdirAll(fmt.Sprintf("data/realms/other%d/log", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"two.old", "UPPER"} { // nobody's
		if err := disk.MkdirAll("data/realms/" + name + "/log"); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = openWorld("data", worldOptions{FS: disk}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if names, err := e.Realms(); err != nil || len(names) != kuji.MaxRealms || !slices.IsSorted(names) || !slices.Contains(names, "one") {
		t.Errorf("%d realms, %v", len(names), err)
	}
	for _, open := range []func(string) (*kuji.Realm, error){e.Lookup, e.Realm, e.Lookup} {
		if r, err := open("one"); err != nil || r.Name() != "one" {
			t.Errorf("the realm that there is: %v", err)
		}
		if _, err := open("two.old"); kuji.CodeOf(err) != kuji.CodeInvalid {
			t.Errorf("a name that no realm can have: %v", err)
		}
	}
	if _, err := e.Lookup("two"); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("one that there is not: %v", err)
	}
	if _, err := e.Realm("two"); kuji.CodeOf(err) != kuji.CodeConflict {
		t.Errorf("one more than there may be: %v", err)
	}
}

// TestOpenRefuses: what cannot work is refused when the engine is opened, and
// nothing is made on the disk for it.
func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		dir   string
		o     worldOptions
		field string
	}{
		"no directory":            {"", worldOptions{}, "dir"},
		"no directory, no fsyncs": {"", worldOptions{Sync: kuji.SyncNone}, "dir"},
		"small segments":          {"data", worldOptions{SegmentSize: wal.MinSegmentSize - 1}, "SegmentSize"},
		"large segments":          {"data", worldOptions{SegmentSize: wal.MaxSegmentSize + 1}, "SegmentSize"},
		"negative segments":       {"data", worldOptions{SegmentSize: -1}, "SegmentSize"},
	} {
		disk := vfs.NewMem()
		c.o.FS = disk
		_, err := openWorld(c.dir, c.o)
		if e, ok := errors.AsType[*kuji.Error](err); !ok || e.Code != kuji.CodeInvalid || e.Field != c.field {
			t.Errorf("%s: %v, want %v of %s", name, err, kuji.CodeInvalid, c.field)
		}
		if names, err := disk.List("/"); err != nil || len(names) > 0 {
			t.Errorf("%s: %q was made, %v", name, names, err)
		}
	}
}

// TestStrayRealms: files, and directories whose names no realm can have, are not
// taken for realms.
func TestStrayRealms(t *testing.T) {
	disk := vfs.NewMem()
	e, err := openWorld("data", worldOptions{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Realm("one"); err != nil {
		t.Fatal(err)
	}
	if err := disk.MkdirAll("data/realms/one.old"); err != nil {
		t.Fatal(err)
	}
	file, err := disk.Create("data/realms/notes")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if names, err := e.Realms(); err != nil || !slices.Equal(names, []string{"one"}) {
		t.Errorf("realms %q, %v; want one", names, err)
	}
	if _, err := e.Realm("notes"); kuji.CodeOf(err) != kuji.CodeFailed {
		t.Errorf("a file as a realm: %v, want %v", err, kuji.CodeFailed)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// panicFS panics when a directory of snapshots is listed, unless it is mended:
// it says that somebody is there, and waits for now.
type panicFS struct {
	vfs.FS
	reached, now chan struct{}
	mended       bool
}

func (f *panicFS) List(dir string) ([]string, error) {
	if !f.mended && strings.HasSuffix(dir, "/snapshots") {
		close(f.reached)
		<-f.now
		panic("disk on fire")
	}
	return f.FS.List(dir)
}

// TestPanicWhileOpening: a panic within opening a realm is its caller's; who
// waits for the same realm, or asks for it later, gets an error, other realms go on,
// and Close does not wait for what never comes.
func TestPanicWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &panicFS{FS: vfs.NewMem(), reached: make(chan struct{}), now: make(chan struct{})}
		e, err := openWorld("data", worldOptions{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		panicked := make(chan any)
		go func() {
			defer func() { panicked <- recover() }()
			e.Realm("one")
		}()
		<-disk.reached
		waited := make(chan error)
		go func() {
			_, err := e.Realm("one")
			waited <- err
		}()
		synctest.Wait()
		close(disk.now)
		if p := <-panicked; p != "disk on fire" {
			t.Errorf("the caller's panic: %v", p)
		}
		if err := <-waited; kuji.CodeOf(err) != kuji.CodeFailed || !strings.Contains(err.Error(), "one") {
			t.Errorf("who waited for the realm: %v", err)
		}
		if _, err := e.Realm("one"); kuji.CodeOf(err) != kuji.CodeFailed || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("once more: %v", err)
		}
		disk.mended = true
		if _, err := e.Realm("two"); err != nil {
			t.Errorf("another realm: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestLockHasNoFile: whatever somebody removes next to a running engine's realms and logs, a second
// engine stays out.
func TestLockHasNoFile(t *testing.T) {
	dir := t.TempDir()
	e, err := kuji.Open(dir, kuji.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Realm("r"); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{dir, filepath.Join(dir, "realms", "r", "log")} {
		entries, err := os.ReadDir(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() && filepath.Ext(e.Name()) != ".wal" {
				_ = os.Remove(filepath.Join(in, e.Name())) // refused where a lock needs a file
			}
		}
	}
	if _, err := kuji.Open(dir, kuji.Options{}); kuji.CodeOf(err) != kuji.CodeLocked {
		t.Errorf("a second engine: %v", err)
	}
	if _, err := wal.Open(filepath.Join(dir, "realms", "r", "log"), wal.Options{}); !errors.Is(err, wal.ErrLocked) {
		t.Errorf("a second log: %v", err)
	}
}
