//go:build !linux

package postgres

import (
	"syscall"
	"time"
)

// giveUpAfter does nothing here: keepalive and the bound of a statement find a peer that is gone.
func giveUpAfter(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
