//go:build unix

package backends

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kuji-dev/kuji/internal/loadtest"
)

// used returns what all processes that this one has started, and those that they have started, have used.
// The kernel counts a page as written when it gets dirty, and again if it gets dirty after it was written.
// Processes that have ended count with those that waited for them. Where the system does not say, it is 0.
func used() (all loadtest.Usage, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return all, err
	}
	children, cpu := map[int][]int{}, map[int]time.Duration{}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// 17 (postgres: a (b)) S 1 ...: what follows the name is fields 3 and so on of proc(5).
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(f) < 15 {
			return all, fmt.Errorf("%s: %d fields after the name, want 15 and more", name, len(f))
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parent, err2 := strconv.Atoi(f[1])
		if err := errors.Join(err, err2); err != nil {
			return all, err
		}
		children[parent] = append(children[parent], pid)
		for _, ticks := range f[11:15] { // its own in user mode and in the kernel, and of those that ended
			n, err := strconv.Atoi(ticks)
			if err != nil {
				return all, err
			}
			cpu[pid] += time.Duration(n) * time.Second / 100
		}
	}
	for next := children[os.Getpid()]; len(next) > 0; {
		pid := next[0]
		next = append(next[1:], children[pid]...)
		all.CPU += cpu[pid]
		io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		if err != nil {
			continue // it has ended, or is another user's
		}
		for line := range strings.Lines(string(io)) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "write_bytes: "); ok {
				written, err := strconv.ParseUint(n, 10, 64)
				if err != nil {
					return all, fmt.Errorf("/proc/%d/io: %w", pid, err)
				}
				all.Written += written
			}
		}
	}
	return all, nil
}
