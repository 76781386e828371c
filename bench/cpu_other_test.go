//go:build !unix

package bench_test

import "time"

// cpuTime is the processor time that this process has used so far: not known here.
func cpuTime() time.Duration { return 0 }
