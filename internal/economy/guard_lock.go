//go:build !amd64 || race

package economy

import (
	"sync"
	"sync/atomic"
)

const glances = false

// guard lets readers copy what the one writer changes: here, a lock. See
// guard_version.go for what it is elsewhere, and what its methods mean.
type guard struct{ mu sync.Mutex }

func (g *guard) open()                   { g.mu.Lock() }
func (g *guard) close()                  { g.mu.Unlock() }
func (g *guard) look(*reading)           { g.mu.Lock() }
func (g *guard) unchanged(*reading) bool { return true }
func (g *guard) quit(*reading)           { g.mu.Unlock() }
func (g *guard) done(r *reading) bool {
	g.quit(r)
	return true
}

func openBoth(a, b *guard) {
	a.open()
	b.open()
}

func closeBoth(a, b *guard) {
	a.close()
	b.close()
}

type reading struct{}

func hasty() reading { return reading{} }

func publish(word *atomic.Uint64, value uint64) { word.Store(value) }
