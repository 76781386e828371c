//go:build !linux

package cli

// filesystem is unknown on systems without the statfs(2) of Linux.
func filesystem(string) string { return "" }
