package enginetest

import (
	"sync/atomic"
	"time"
)

// hand is a clock that stands still until a test moves it. The engine may read it at any time.
type hand struct{ at atomic.Pointer[time.Time] }

func handAt(at time.Time) *hand {
	h := new(hand)
	h.Set(at)
	return h
}

func (h *hand) Now() time.Time      { return *h.at.Load() }
func (h *hand) Set(at time.Time)    { h.at.Store(&at) }
func (h *hand) Add(d time.Duration) { h.Set(h.Now().Add(d)) }
