package peers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/puzpuzpuz/xsync/v4"

	engine "github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// holdings is what a realm's player is compared with: a small struct in a map.
type holdings struct {
	gems  uint64
	_     [6]uint64 // other balances
	extra uint64
}

// state is a store of a million players that are read and written.
type state interface {
	// read returns what a player holds of one item.
	read(id string) (uint64, error)
	// write gives a player one more.
	write(id string) error
}

// realmState reads and writes a realm: reads of what may not be durable yet,
// as a map's are, and grants that are acknowledged when they are buffered.
type realmState struct {
	realm  *engine.Realm
	wait   bool // reads wait until what they read is durable
	failed atomic.Pointer[error]
}

func (s *realmState) read(id string) (uint64, error) {
	if s.wait {
		return s.realm.Balance(context.Background(), id, "gem")
	}
	return s.realm.Balance(stale, id, "gem")
}

// stale has reads not wait for what they read to become durable.
var stale = engine.Stale(context.Background())

var oneGem = []engine.Stack{{Item: "gem", Quantity: 1}}

func (s *realmState) write(id string) error {
	behind := false
	s.realm.Submit(&engine.Grant{Player: id, Items: oneGem}, func(_ engine.Result, err error) {
		if engine.CodeOf(err) == engine.CodeOverloaded { // before Submit returns
			behind = true
		} else if err != nil {
			first := err
			s.failed.Store(&first)
		}
	})
	if behind {
		_, err := s.realm.Do(context.Background(), &engine.Grant{Player: id, Items: oneGem})
		return err
	}
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// xsyncState keeps structs, as a service that needs no log would.
type xsyncState struct {
	m *xsync.Map[string, holdings]
}

func (s *xsyncState) read(id string) (uint64, error) {
	h, ok := s.m.Load(id)
	if !ok {
		return 0, fmt.Errorf("player %s was not found", id)
	}
	return h.gems, nil
}

func (s *xsyncState) write(id string) error {
	s.m.Compute(id, func(h holdings, _ bool) (holdings, xsync.ComputeOp) {
		h.gems++
		return h, xsync.UpdateOp
	})
	return nil
}

// openRealm makes a realm whose players hold a gem each, until tb ends.
func openRealm(tb testing.TB, players int) *engine.Realm {
	tb.Helper()
	check := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp(*dirFlag, "kuji-peers-")
	check(err)
	tb.Cleanup(func() { check(os.RemoveAll(dir)) })
	e, err := engine.Open(dir, engine.Options{Sync: engine.SyncNone})
	check(err)
	tb.Cleanup(func() { check(e.Close()) })
	r, err := e.Realm("state")
	check(err)
	c, err := catalog.Parse([]byte("kuji: 1\nitems: {gem: {kind: currency}}\n"))
	check(err)
	_, err = r.Apply(tb.Context(), c)
	check(err)
	reqs := make([]engine.Request, 0, engine.MaxBatch)
	for i := range players {
		reqs = append(reqs, engine.Grant{Player: playerID(i), Items: oneGem})
		if len(reqs) == engine.MaxBatch || i == players-1 {
			_, err := r.DoAll(tb.Context(), reqs)
			check(err)
			reqs = reqs[:0]
		}
	}
	return r
}

// stateWorkloads are reads and writes of one of many players, by as many
// goroutines as there are processors. skewed: 80 % of the operations ask for
// 20 % of the players.
var stateWorkloads = []struct {
	name   string
	skewed bool
	writes int // of a hundred operations
	beside bool
}{
	{"keys=skewed/writes=0", true, 0, false},
	{"keys=uniform/writes=0", false, 0, false},
	{"keys=uniform/writes=30", false, 30, false},
	{"keys=uniform/writes=100", false, 100, false},
	{"keys=uniform/writes=beside", false, 0, true}, // another goroutine writes all the time
}

// BenchmarkState compares reads and writes of a realm's players with those of
// an xsync map of small structs, which keeps no log.
func BenchmarkState(b *testing.B) { compareStates(b, *recordsFlag) }

func compareStates(b *testing.B, players int) {
	var all [3]state
	open := func(i int) state {
		if all[i] != nil {
			return all[i]
		}
		if i == 2 {
			m := xsync.NewMap[string, holdings](xsync.WithPresize(players))
			for i := range players {
				m.Store(playerID(i), holdings{gems: 1})
			}
			all[2] = &xsyncState{m}
			return all[2]
		}
		r := openRealm(b, players)
		all[0], all[1] = &realmState{realm: r}, &realmState{realm: r, wait: true}
		return all[i]
	}
	// The stores stand next to each other, so that a busy minute of the machine meets all of them.
	for _, w := range stateWorkloads {
		for i, store := range []string{"kuji-stale", "kuji", "xsync"} {
			if i == 1 && w.writes > 0 { // it would measure the log: a read waits for the write before it
				continue
			}
			b.Run(w.name+"/store="+store, func(b *testing.B) {
				s := open(i)
				b.ReportAllocs()
				b.ResetTimer()
				if err := useState(b.N, s, players, w.skewed, w.writes, w.beside); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// playerID returns the id of a player, the first, second and so on.
func playerID(n int) string { return string(appendPlayerID(nil, n)) }

func appendPlayerID(b []byte, n int) []byte {
	return strconv.AppendInt(append(b, "player-"...), int64(n), 10)
}

// scatter spreads numbers below n among them, each to one: players who are asked for
// often were not the first ones.
func scatter(i, n int) int { return int(uint64(i) * 2654435761 % uint64(n)) } // a prime, beyond any n

// useState makes n operations, counting those of goroutines that are measured. An id
// is written when it is asked for, as one that has just arrived: to take it
// from a list of a million would be two cache misses more, and a map whose keys are
// the same memory as what is looked up need not look at them.
func useState(n int, s state, players int, skewed bool, writes int, beside bool) error {
	var failed atomic.Pointer[error]
	var over atomic.Bool
	work := func(seed uint64, n, writes int) {
		rng := rand.New(rand.NewPCG(seed, 9))
		few := max(1, players/5)
		var text []byte
		for i := 0; i < n && !over.Load(); i++ {
			player := 0
			switch {
			case !skewed:
				player = rng.IntN(players)
			case rng.IntN(100) < 80:
				player = rng.IntN(few)
			default:
				player = few + rng.IntN(players-few)
			}
			text = appendPlayerID(text[:0], scatter(player, players))
			var err error
			if writes > 0 && rng.IntN(100) < writes {
				err = s.write(string(text)) // which a map may keep
			} else {
				_, err = s.read(unsafe.String(&text[0], len(text)))
			}
			if err != nil {
				first := err // err itself stays on the stack
				failed.Store(&first)
				return
			}
		}
	}
	readers := runtime.GOMAXPROCS(0)
	var writer, reading sync.WaitGroup
	if beside {
		readers = max(1, readers-1)
		writer.Go(func() { work(99, 1<<62, 100) })
	}
	for g := range readers {
		reading.Go(func() { work(uint64(g), (n+g)/readers, writes) })
	}
	reading.Wait()
	over.Store(true)
	writer.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// TestState runs the benchmark once, small.
func TestState(t *testing.T) {
	const players = 5
	r := openRealm(t, players)
	m := xsync.NewMap[string, holdings]()
	for i := range players {
		m.Store(playerID(i), holdings{gems: 1})
	}
	for name, s := range map[string]state{"kuji": &realmState{realm: r, wait: true}, "kuji-stale": &realmState{realm: r}, "xsync": &xsyncState{m}} {
		before, err := s.read(playerID(0))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.write(playerID(0)); err != nil {
			t.Fatal(err)
		}
		if after, err := s.read(playerID(0)); err != nil || after != before+1 {
			t.Errorf("%s: a gem more: %d, %v, want %d", name, after, err, before+1)
		}
		if _, err := s.read("nobody"); err == nil {
			t.Errorf("%s: nobody holds something", name)
		}
		for _, w := range stateWorkloads {
			if err := useState(300, s, players, w.skewed, w.writes, w.beside); err != nil {
				t.Errorf("%s: %s: %v", name, w.name, err)
			}
		}
	}
}
