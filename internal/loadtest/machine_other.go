//go:build !linux

package loadtest

// filesystem is unknown on systems without the statfs(2) of Linux.
func filesystem(string) string { return "" }
