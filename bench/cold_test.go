//go:build !linux

package bench_test

import (
	"os"
	"testing"
)

// forgetPages makes the next reader of a file wait for the disk.
func forgetPages(b *testing.B, _ string) {
	b.Skip("no way is known to take a file out of this system's cache")
}

// datasync is fsync without the times of the file, where the system has it.
func datasync(f *os.File) error { return f.Sync() }
