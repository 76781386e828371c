//go:build !unix

package cli

import "time"

// processCPU is unknown on systems without getrusage(2).
func processCPU() time.Duration { return 0 }
