package sim_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

var injections = flag.Int("injections", 6, "how many lives of a kuji serve TestInjectedErrors runs under strace, which lets system calls fail")

// faulty is a kind of system call that fails, as the kernel would let it.
type faulty struct {
	calls, errno string
	reads        bool // what the process finds when it starts; otherwise what it writes, at any time
}

var faulties = []faulty{
	{calls: "fdatasync,fsync", errno: "EIO"},
	{calls: "pwrite64", errno: "ENOSPC"},
	{calls: "pwrite64", errno: "EIO"},
	{calls: "pread64,mmap", errno: "EIO", reads: true},
	{calls: "openat,renameat,unlinkat,ftruncate", errno: "EIO", reads: true},
	{calls: "fallocate,sync_file_range", errno: "ENOSPC"},
}

// TestInjectedErrors lets system calls of the real binary fail when it starts, under load, and when it
// ends. Every answer stays true. A log that cannot be written stops the realm. The next start recovers.
func TestInjectedErrors(t *testing.T) {
	if *injections == 0 {
		t.Skip("runs no life of a server under strace: -injections 0")
	}
	mustTrace(t)
	binary := filepath.Join(t.TempDir(), "kuji")
	build := exec.Command("go", "build", "-pgo=off", "-o", binary, "./cmd/kuji") // without the profile, which takes minutes
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := rand.New(rand.NewPCG(1, 6))
	var met, unstarted, stopped, asked int
	for n := 0; n < *injections; {
		s := &traced{binary: binary, child: child{dir: filepath.Join(t.TempDir(), "data"), held: true}, book: newBook()}
		s.mustRun(t, func() {
			if err := s.apply(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
		for range min(100, *injections-n) { // then another directory: the window of ids is limited
			f := faulties[n%len(faulties)]
			if s.suffer(t, n, f, r); t.Failed() {
				t.Fatalf("life %d, %+v, strace %q", n, f, s.inject)
			}
			n++
		}
		s.mustRun(t, func() { s.book.settle(t, &s.child) })
		mustVerify(t, s.dir)
		met, unstarted, stopped, asked = met+s.met, unstarted+s.unstarted, stopped+s.stopped, asked+len(s.book.asked)
	}
	t.Logf("%d lives, %d of them met an error: %d did not start, %d stopped; %d requests", *injections, met, unstarted, stopped, asked)
	if met < *injections/2 || stopped == 0 {
		t.Error("too few errors were met: this shows nothing")
	}
}

// mustTrace skips where strace does not work.
func mustTrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skipf("lets system calls fail by strace: %v", err)
	}
	if out, err := exec.Command("strace", "-D", "-f", "--seccomp-bpf", "-o", os.DevNull, "-e", "inject=fsync:error=EIO", "true").CombinedOutput(); err != nil {
		t.Skipf("strace is not allowed to trace here: %v\n%s", err, out)
	}
}

// traced is a kuji serve under strace.
type traced struct {
	child
	binary string
	book   *book
	inject []string // the arguments of the last strace

	met, unstarted, stopped int
}

func (s *traced) serve() []string {
	return []string{s.binary, "serve", "--data", s.dir, "--listen", "127.0.0.1:0", "--until-eof",
		"--history", "off", // its errors stop nothing
		"--segment-size", "16384", "--snapshot-every", "8192", "--trim-log"}
}

// mustRun starts the server without faults, and ends it after f.
func (s *traced) mustRun(t *testing.T, f func()) {
	t.Helper()
	args := s.serve()
	if err := s.run(exec.Command(args[0], args[1:]...)); err != nil {
		t.Fatal(err)
	}
	f()
	if !s.stop() {
		t.Error("the server did not close well")
	}
}

// suffer runs a life in which a kind of system call fails: from some time on, or once in each thread.
func (s *traced) suffer(t *testing.T, n int, f faulty, r *rand.Rand) {
	t.Helper()
	traces := filepath.Join(t.TempDir(), "strace")
	latest := 30
	if f.reads {
		latest = 10 // there is less to read than to write
	}
	when := fmt.Sprint(1 + r.IntN(latest))
	if r.IntN(2) == 0 {
		when += "+"
	}
	// With -D the server is this process's child, and strace is not.
	s.inject = []string{"-D", "-f", "--seccomp-bpf", "-y", "-qq", "-o", traces,
		"-e", "trace=" + f.calls, "-e", "signal=none", "-e", fmt.Sprintf("inject=%s:error=%s:when=%s", f.calls, f.errno, when)}
	if f.reads { // only of the realm's files: the runtime and the sockets need the same calls
		for _, path := range s.files(t) {
			s.inject = append(s.inject, "-P", path)
		}
	}
	err := s.run(exec.Command("strace", append(s.inject, s.serve()...)...))
	if err != nil {
		s.unstarted++
		if s.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(err.Error(), said[f.errno]) {
			t.Errorf("it did not start, with exit code %d, want 1 and %q: %v", s.cmd.ProcessState.ExitCode(), said[f.errno], err)
		}
	} else {
		s.work(t, n)
	}
	trace, err := os.ReadFile(traces)
	if err != nil {
		t.Fatal(err)
	}
	met, log := false, false
	for line := range bytes.Lines(trace) {
		if bytes.Contains(line, []byte("(INJECTED)")) {
			met = true
			// The log writes zeros to make room ahead. On a full disk it does without.
			room := f.errno == "ENOSPC" && bytes.Contains(line, []byte(`"\0\0\0\0\0\0\0\0`))
			log = log || bytes.Contains(line, []byte("/log/0")) && !room
		}
	}
	if met {
		s.met++
	} else if s.url == "" || s.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the server ended with code %d, and no system call failed", s.cmd.ProcessState.ExitCode())
	}
	if log && (f.calls == "pwrite64" || f.errno == "EIO" && !f.reads) && s.url != "" && s.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the log could not be written, and the server ended with code %d, want 1", s.cmd.ProcessState.ExitCode())
	}
}

// said is what messages call the errors.
var said = map[string]string{"EIO": "input/output error", "ENOSPC": "no space left on device"}

// files returns the paths of all of a realm's files, and of its directories.
func (s *traced) files(t *testing.T) []string {
	var paths []string
	err := filepath.WalkDir(filepath.Join(s.dir, "realms"), func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// work lets clients make requests until each has enough answers or was refused, and ends the server. A
// realm that has stopped refuses everything.
func (s *traced) work(t *testing.T, n int) {
	t.Helper()
	var running sync.WaitGroup
	var late atomic.Bool
	refused := make([]error, 4)
	for w := range refused {
		running.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), uint64(w)))
			for i := 0; i < 40 && refused[w] == nil; i++ {
				refused[w] = s.book.ask(t.Context(), &s.child, fmt.Sprintf("%d-%d-%d", n, w, i), someRequest(r, i%2, 1+i%mostActs), &late)
			}
		})
	}
	running.Wait()
	stopped := slices.ContainsFunc(refused, func(err error) bool { return err != nil })
	for _, err := range refused {
		if reason := detailOf(err).GetReason(); err != nil && reason != kujiv1.Reason_REASON_UNKNOWN_OUTCOME && reason != kujiv1.Reason_REASON_FAILED {
			t.Errorf("a client was refused with %v, want that the realm failed or that the outcome is not known: %v", reason, err)
		}
	}
	if stopped {
		s.stopped++
		r, err := s.ask(t.Context(), fmt.Sprint(n, "-after"), drawing(3, 1))
		if reason := detailOf(err).GetReason(); reason != kujiv1.Reason_REASON_FAILED {
			t.Errorf("a request to a realm that has stopped got %+v, %v, want that it failed", r, err)
		}
	}
	if well := s.stop(); stopped && s.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the realm had stopped; the process ended %v: %v", well, s.cmd.ProcessState)
	}
}
