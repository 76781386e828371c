//go:build !unix

package loadtest

import "time"

// processCPU is unknown on systems without getrusage(2).
func processCPU() time.Duration { return 0 }
