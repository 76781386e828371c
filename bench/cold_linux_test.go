package bench_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// forgetPages makes the next reader of a file wait for the disk.
func forgetPages(b *testing.B, name string) {
	b.Helper()
	f, err := os.Open(name)
	must(b, err)
	must(b, f.Sync())
	must(b, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	must(b, f.Close())
}

// datasync is fsync without the times of the file, as the engine's log has it.
func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
