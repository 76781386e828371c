package peers

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/puzpuzpuz/xsync/v4"
)

func BenchmarkPlayer(b *testing.B) { benchmark(b, playerWorkloads()) }

// player is a record of the size of a small balance sheet.
type player struct {
	position uint64
	_        [7]int64 // balances, which no workload looks at
}

// players is a concurrent map from ids to records.
type players interface {
	load(id string) (player, bool)
	store(id string, p player)
}

type xsyncPlayers struct{ m *xsync.Map[string, *player] }

func (x xsyncPlayers) load(id string) (player, bool) {
	p, ok := x.m.Load(id)
	if !ok {
		return player{}, false
	}
	return *p, true
}
func (x xsyncPlayers) store(id string, p player) { x.m.Store(id, &p) }

type syncPlayers struct{ m *sync.Map }

func (s syncPlayers) load(id string) (player, bool) {
	p, ok := s.m.Load(id)
	if !ok {
		return player{}, false
	}
	return *p.(*player), true
}
func (s syncPlayers) store(id string, p player) { s.m.Store(id, &p) }

type lockedPlayers struct {
	mu sync.RWMutex
	m  map[string]*player
}

func (l *lockedPlayers) load(id string) (player, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.m[id]
	if !ok {
		return player{}, false
	}
	return *p, true
}

func (l *lockedPlayers) store(id string, p player) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m[id] = &p
}

// playerWorkloads: reads of one of a million players by as many goroutines as
// there are CPUs. skewed: 80 % of the reads ask for 20 % of the players.
// mixed: 30 % of the operations, players drawn uniformly, are writes.
func playerWorkloads() []workload {
	var all []workload
	for _, w := range []struct {
		name   string
		skewed bool
		writes int // of a hundred operations
	}{{"keys=skewed/writes=0", true, 0}, {"keys=uniform/writes=0", false, 0}, {"keys=uniform/writes=30", false, 30}} {
		for _, m := range []struct {
			name string
			make func(n int) players
		}{
			{"xsync", func(n int) players {
				return xsyncPlayers{xsync.NewMap[string, *player](xsync.WithPresize(n))}
			}},
			{"sync", func(int) players { return syncPlayers{new(sync.Map)} }},
			{"rwmutex", func(n int) players { return &lockedPlayers{m: make(map[string]*player, n)} }},
		} {
			all = append(all, workload{w.name + "/map=" + m.name, func(r *run) {
				usePlayers(r, m.make(r.records), w.skewed, w.writes)
			}})
		}
	}
	return all
}

func usePlayers(r *run, m players, skewed bool, writes int) {
	ids := make([]string, r.records)
	for i := range ids {
		ids[i] = "player-" + strconv.Itoa(i)
		m.store(ids[i], player{position: uint64(i)})
	}
	rand.New(rand.NewPCG(7, 8)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var missing atomic.Int64
	work := func(seed uint64, n int) {
		rng := rand.New(rand.NewPCG(seed, 9))
		for range n {
			among := ids
			if few := len(ids) / 5; skewed && rng.IntN(100) < 80 {
				among = ids[:few]
			} else if skewed {
				among = ids[few:]
			}
			id := among[rng.IntN(len(among))]
			if writes > 0 && rng.IntN(100) < writes {
				m.store(id, player{position: seed})
				continue
			}
			if _, ok := m.load(id); !ok {
				missing.Add(1)
			}
		}
	}
	r.ReportAllocs()
	r.ResetTimer()
	var wg sync.WaitGroup
	readers := runtime.GOMAXPROCS(0)
	for g := range readers {
		wg.Go(func() { work(uint64(g), (r.n+g)/readers) })
	}
	wg.Wait()
	r.StopTimer()
	if missing.Load() > 0 {
		r.Fatalf("%d players not found", missing.Load())
	}
}
