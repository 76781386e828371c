//go:build !linux

package cli

// freeSpace is unknown on systems without the statfs(2) of Linux.
func freeSpace(string) (bytes uint64, ok bool) { return 0, false }
