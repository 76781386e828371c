//go:build !unix

package main

import "syscall"

// ownGroup does nothing on systems without process groups.
func ownGroup() *syscall.SysProcAttr { return nil }
