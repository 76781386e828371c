//go:build !unix

package main

import "time"

// processCPU is not known where there is no getrusage(2).
func processCPU() time.Duration { return 0 }
