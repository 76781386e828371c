//go:build unix

package admission

import "syscall"

// openFiles returns how many files the process may have open, 0 if that is unknown.
func openFiles() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return uint64(l.Cur)
}
