//go:build unix

package enginetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
	"github.com/kuji-dev/kuji/verify"
)

// shortFS is the operating system's, and tells when a file could not be opened because there are no
// descriptors left.
type shortFS struct {
	vfs.FS
	short chan struct{}
}

func (f shortFS) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	if vfs.Short(err) && filepath.Ext(name) == ".wal" {
		select {
		case f.short <- struct{}{}:
		default:
		}
	}
	return file, err
}

const noFiles = "KUJI_TEST_NO_FILES" // in the environment of the process that has no descriptors left

// TestNoDescriptors runs an engine in a process of its own that has no descriptor left, for many
// segments.
func TestNoDescriptors(t *testing.T) {
	if os.Getenv(noFiles) != "" {
		noDescriptors(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoDescriptors$", "-test.v")
	cmd.Env = append(os.Environ(), noFiles+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func noDescriptors(t *testing.T) {
	dir := t.TempDir()
	fs := shortFS{vfs.OS(), make(chan struct{}, 1)}
	e, r := open(t, dir, worldOptions{FS: fs, SegmentSize: 4 << 10})
	if _, err := e.Realm("other"); err != nil {
		t.Fatal(err)
	}
	limit := syscall.Rlimit{}
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = 100
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	var taken []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			if !errors.Is(err, syscall.EMFILE) {
				t.Fatal(err)
			}
			break
		}
		taken = append(taken, f)
	}
	// Within its segment the realm goes on, fsyncs included.
	do(t, r, kuji.Draw{ID: "within", Player: "ann", Pool: "free"})
	if _, err := e.Realm("new"); kuji.CodeOf(err) != kuji.CodeFailed || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("a new realm: %v", err)
	}
	// Beyond it, it waits.
	const draws = 2000
	results := make(chan error, draws)
	go func() {
		for i := range draws {
			_, err := r.Do(t.Context(), kuji.Draw{ID: fmt.Sprint(i), Player: "ann", Pool: "free"})
			results <- err
		}
	}()
	<-fs.short
	if _, err := r.Player(t.Context(), "nobody"); kuji.CodeOf(err) != kuji.CodeNotFound {
		t.Errorf("a read meanwhile: %v", err)
	}
	if err := r.Err(); err != nil {
		t.Errorf("the realm stopped: %v", err)
	}
	for _, f := range taken {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range draws {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Realm("new"); err != nil {
		t.Errorf("a new realm, again: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := verify.Dir(dir, "test", verify.Options{}); err != nil || rep.Draws != draws+1 {
		t.Errorf("%d draws in the log, %v; want %d", rep.Draws, err, draws+1)
	}
}
