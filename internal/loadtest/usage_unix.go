//go:build unix

package loadtest

import (
	"time"

	"golang.org/x/sys/unix"
)

// processCPU is the processor time that this process has used so far.
func processCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
