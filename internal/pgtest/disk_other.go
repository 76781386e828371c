//go:build unix && !linux

package pgtest

import (
	"os/exec"
	"syscall"
)

// bind makes a command a process that no ^C of a terminal reaches.
func bind(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

func mount(string, int64) error { return ErrNoDisk }

func unmount(string) error { return nil }
