//go:build unix

package cli

import "syscall"

// ownGroup puts a child into a process group of its own: the terminal's Ctrl-C reaches the parent only.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
