package pgtest

import (
	"fmt"
	"os/exec"
	"syscall"
)

// bind makes a command a process that no ^C of a terminal reaches, and that ends with this one.
func bind(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
}

// mount makes a directory a disk of its own, of so many bytes.
func mount(dir string, size int64) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("mode=0700,size=", size)); err != nil {
		return fmt.Errorf("%w: %w", ErrNoDisk, err)
	}
	return nil
}

// unmount undoes mount, if it was done.
func unmount(dir string) error {
	if err := syscall.Unmount(dir, 0); err != nil && err != syscall.EINVAL && err != syscall.ENOENT {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}
