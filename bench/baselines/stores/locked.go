package stores

import (
	"math/rand/v2"
	"sync"

	"github.com/kuji-dev/kuji/bench/baselines/samplers"
)

// Locked is maps under a mutex.
type Locked struct {
	mu      sync.Mutex
	weights *samplers.Prefix
	source  *rand.ChaCha8
	players map[string]map[int]int // player, entry, how often
	ids     map[string]int         // request id, its answer
}

// NewLocked returns an empty store that draws by weights, which are never empty.
func NewLocked(weights []uint64) *Locked { return newLocked(weights, 0) }

func newLocked(weights []uint64, seed byte) *Locked {
	return &Locked{
		weights: samplers.NewPrefix(weights), source: newSource(seed),
		players: make(map[string]map[int]int), ids: make(map[string]int),
	}
}

// Draw implements Store.
func (l *Locked) Draw(id, player string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draw(id, player)
}

// draw needs the lock, or to be alone.
func (l *Locked) draw(id, player string) int {
	if id != "" {
		if entry, ok := l.ids[id]; ok {
			return entry
		}
	}
	entry, _ := l.weights.Draw(l.source)
	held := l.players[player]
	if held == nil {
		held = make(map[int]int)
		l.players[player] = held
	}
	held[entry]++
	if id != "" {
		l.ids[id] = entry
	}
	return entry
}

// Held implements Store.
func (l *Locked) Held(player string, entry int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.players[player][entry]
}

// Close implements Store.
func (l *Locked) Close() error { return nil }
