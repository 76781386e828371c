//go:build !linux

package cli

// filesystem is unknown on systems without the statfs(2) of Linux.
func filesystem(string) string { return "" }

// freeSpace is unknown there, too.
func freeSpace(string) (bytes uint64, ok bool) { return 0, false }
