//go:build !linux

package bench_test

import "testing"

// forgetPages makes the next reader of a file wait for the disk.
func forgetPages(b *testing.B, _ string) {
	b.Skip("no way is known to take a file out of this system's cache")
}
