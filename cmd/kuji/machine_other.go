//go:build !linux

package main

// filesystem is not known where there is no statfs(2) of Linux.
func filesystem(string) string { return "" }
