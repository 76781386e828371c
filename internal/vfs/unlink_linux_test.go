package vfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kuji-dev/kuji/internal/vfs"
)

// TestUnlink: the space of a removed file is freed step by step, unless somebody else
// can still see what is in it.
func TestUnlink(t *testing.T) {
	const size = 9<<20 + 6
	content := bytes.Repeat([]byte("kujiku"), size/6)
	for _, c := range []struct {
		name  string
		keep  func(t *testing.T, name string) (left func() []byte) // nil: nobody
		stop  int                                                  // from which question on
		steps int
	}{
		{"nobody else", nil, 100, 4},
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
			m := mapFile(t, name, len(content))
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
			free := unlink(t, name)
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
}

// unlink begins to remove a large file, where space is freed in steps.
func unlink(t *testing.T, name string) (free func(stop func() bool)) {
	t.Helper()
	var system unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(name), &system); err != nil {
		t.Fatal(err)
	}
	free, err := vfs.Unlink(vfs.OS(), name)
	if err != nil {
		t.Fatal(err)
	}
	if free == nil {
		if (system.Type == unix.EXT4_SUPER_MAGIC || system.Type == unix.TMPFS_MAGIC) && uint64(system.Bavail)*uint64(system.Bsize) > 1<<30 {
			t.Error("there is nothing to be freed in steps")
		}
		t.Skip("in no steps on this file system")
	}
	return free
}

// TestUnlinkAtOnce: what is not freed in steps is removed all the same.
func TestUnlinkAtOnce(t *testing.T) {
	dir := t.TempDir()
	name := func(s string) string { return filepath.Join(dir, s) }
	if _, err := vfs.Unlink(vfs.OS(), name("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Unlink of a file that is not there: %v", err)
	}
	large := make([]byte, 5<<20)
	if err := errors.Join(
		os.Mkdir(name("directory"), 0o700),
		os.WriteFile(name("small"), []byte("kuji"), 0o600),
		os.WriteFile(name("target"), large, 0o600),
		os.Symlink(name("target"), name("link")),
		unix.Mkfifo(name("pipe"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"directory", "small", "link", "pipe"} {
		free, err := vfs.Unlink(vfs.OS(), name(s))
		if err != nil || free != nil {
			t.Errorf("%s: %v, with space left to free: %v", s, err, free != nil)
		}
	}
	if b, err := os.ReadFile(name("target")); err != nil || len(b) != len(large) {
		t.Errorf("%d bytes are left of what a link led to: %v", len(b), err)
	}
	if names, err := vfs.OS().List(dir); err != nil || !slices.Equal(names, []string{"target"}) {
		t.Errorf("left: %v, %v", names, err)
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

// TestUnlinkSpliced: pages on their way through a pipe, as sendfile puts them, stay as they
// are, though nobody has the file open any more.
func TestUnlinkSpliced(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	content := bytes.Repeat([]byte("kuji"), 1<<20+777)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const page = 4096
	var want []byte
	for _, at := range []int{len(content) - 1<<20, len(content) - 2<<20, 1 << 20, 2 << 20, 3 << 20} {
		from := int64(at / page * page)
		n, err := unix.Splice(int(f.Fd()), &from, int(w.Fd()), nil, page, 0)
		if err != nil || n != page {
			t.Fatalf("splice: %d bytes, %v", n, err)
		}
		want = append(want, content[from-page:from]...)
	}
	if err := errors.Join(f.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	unlink(t, name)(func() bool { return false })
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the bytes in the pipe are others: %v", err)
	}
}

// TestUnlinkWaitedFor: who comes for the file by way of /proc ends the freeing, and no
// signal that may end the process is sent.
func TestUnlinkWaitedFor(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, make([]byte, 9<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, unix.SIGIO, unix.SIGURG) // which also comes from the runtime
	defer signal.Stop(signals)
	asked := 0
	unlink(t, name)(func() bool {
		asked++
		fds, err := filepath.Glob("/proc/self/fd/*")
		for _, fd := range fds {
			if to, _ := os.Readlink(fd); to == name+" (deleted)" {
				_, err = unix.Open(fd, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			}
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("the file is not found, or not leased: %v", err)
		}
		return false
	})
	if asked != 1 {
		t.Errorf("%d steps while one waits, want 1", asked)
	}
	if s := <-signals; s == unix.SIGIO {
		t.Error("a signal was sent that ends programs")
	}
}

// TestUnlinkBelowOverlay: a file that is mapped through a stack of file systems stays as
// it is for who has mapped it.
func TestUnlinkBelowOverlay(t *testing.T) {
	const key = "KUJI_TEST_OVERLAY"
	if dir := os.Getenv(key); dir != "" {
		unlinkMapped(t, dir, dir)
		unlinkMapped(t, dir, filepath.Join(filepath.Dir(dir), "upper"))
		return
	}
	dir := t.TempDir()
	for _, s := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, s), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mounted(t, dir, "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged", key+"="+filepath.Join(dir, "merged"))
}

// TestUnlinkOnAFullDisk: where there is little room the space is free at once.
func TestUnlinkOnAFullDisk(t *testing.T) {
	const key = "KUJI_TEST_FULL"
	dir := os.Getenv(key)
	if dir == "" {
		mounted(t, t.TempDir(), "mount -t tmpfs -o size=64m tmpfs .", key+"=.")
		return
	}
	name, content := filepath.Join(dir, "file"), make([]byte, 3<<20)
	for _, full := range []bool{false, true} {
		if full {
			if err := os.WriteFile(filepath.Join(dir, "other"), make([]byte, 20<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		free, err := vfs.Unlink(vfs.OS(), name)
		if err != nil {
			t.Fatal(err)
		}
		if inSteps := free != nil; inSteps == full {
			t.Errorf("with a third of the disk taken %v: freed in steps %v", full, inSteps)
		}
		if free != nil {
			free(func() bool { return false })
		}
	}
}

// TestUnlinkWaitsForNobody: a file on which somebody else has a lease is removed as
// others are, and whoever has the lease is not waited for.
func TestUnlinkWaitsForNobody(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGURG)); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}
	free, err := vfs.Unlink(vfs.OS(), name)
	if err != nil || free != nil {
		t.Errorf("%v, and something to free: %v; want neither, as the file cannot be opened without waiting", err, free != nil)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the name is still there: %v", err)
	}
}

// mounted runs the test once more where a command has mounted a file system, which
// only the process sees that runs it.
func mounted(t *testing.T, dir, mount, env string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", mount+` || exit 77
cd . && exec "$0" -test.run "^$1\$"`, os.Args[0], t.Name())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 77 {
		t.Skipf("nothing can be mounted here: %v\n%s", err, out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// mapFile maps a file that nobody has open then.
func mapFile(t *testing.T, name string, size int) vfs.Mapping {
	f, err := vfs.OS().Open(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Map(int64(size))
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return m
}

// unlinkMapped maps a file in one directory and removes it from another, which shows the same.
func unlinkMapped(t *testing.T, mapped, removed string) {
	content := bytes.Repeat([]byte("kuji"), 9<<18)
	name := filepath.Join(mapped, "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	m := mapFile(t, name, len(content))
	free, err := vfs.Unlink(vfs.OS(), filepath.Join(removed, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if free != nil {
		free(func() bool { return false })
	}
	if !bytes.Equal(m.Bytes(), content) { // or a fault, which ends the process
		t.Error("who has mapped the file sees other bytes")
	}
	if err := m.Unmap(); err != nil {
		t.Error(err)
	}
}
