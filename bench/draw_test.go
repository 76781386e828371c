package bench_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/bench/baselines/stores"
)

// submit makes n requests with Submit and waits until the last is acknowledged. If the log has
// fallen behind, it makes the next one with Do, which waits, as a caller must.
func submit[R kuji.Request](b *testing.B, r *kuji.Realm, n int, next func(i int) R) {
	var behind bool
	var failed error
	done := func(res kuji.Result, err error) {
		if kuji.CodeOf(err) == kuji.CodeOverloaded { // known before Submit returns, because there is room for all ids
			behind = true
		} else if err != nil {
			failed = err
		} else if res.Status != kuji.OK {
			failed = fmt.Errorf("status %v", res)
		}
	}
	for i := range n - 1 {
		req := next(i)
		if r.Submit(req, done); behind {
			behind = false
			if _, err := r.Do(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	}
	_, err := r.Do(b.Context(), next(n-1)) // in order, so that all are acknowledged
	must(b, err)
	must(b, failed)
}

// hot returns draws for players in turn, without request ids.
func (f *fixture) hot() func(int) *kuji.Draw {
	req := &kuji.Draw{Pool: "bench", Count: 1}
	return func(i int) *kuji.Draw {
		req.Player = f.players[i%len(f.players)]
		return req
	}
}

// wide returns draws for random players, with a new request id each time.
func (f *fixture) wide() func(int) *kuji.Draw {
	req := &kuji.Draw{Pool: "bench", Count: 1}
	ids := f.fresh()
	return func(int) *kuji.Draw {
		req.ID, req.Player = ids.next()
		return req
	}
}

// baselines are the stores to compare with.
var baselines = []struct {
	name string
	open func(tb testing.TB, weights []uint64) stores.Store
}{
	{"locked", func(_ testing.TB, w []uint64) stores.Store { return stores.NewLocked(w) }},
	{"actor", func(_ testing.TB, w []uint64) stores.Store { return stores.NewActor(w) }},
	{"sharded", func(_ testing.TB, w []uint64) stores.Store { return stores.NewSharded(w, runtime.GOMAXPROCS(0)) }},
	{"jsonlines", func(tb testing.TB, w []uint64) stores.Store {
		j, err := stores.OpenJSONLines(filepath.Join(scratch(tb), "log"), w)
		must(tb, err)
		return j
	}},
}

// store opens a baseline with its players, until tb ends.
func store(tb testing.TB, open func(testing.TB, []uint64) stores.Store, players []string) stores.Store {
	tb.Helper()
	s := open(tb, weightsOf(100))
	tb.Cleanup(func() { must(tb, s.Close()) })
	for _, p := range players {
		s.Draw("", p)
	}
	return s
}

// logged returns how many bytes a store has written.
func logged(s stores.Store) int64 {
	if j, ok := s.(*stores.JSONLines); ok {
		return j.Bytes()
	}
	return 0
}

// BenchmarkDrawHot: 1000 players, 100 entries, no request id, one goroutine, Submit. The baselines
// are stores as people write them.
func BenchmarkDrawHot(b *testing.B) { oneByOne(b, 1000, false) }

// BenchmarkDrawWide: a million players at random, a new request id each time.
func BenchmarkDrawWide(b *testing.B) { oneByOne(b, size(1_000_000), true) }

func oneByOne(top *testing.B, players int, wide bool) {
	for _, l := range logs {
		var f *fixture
		top.Run("store=kuji/log="+l.name, func(b *testing.B) {
			if f == nil {
				f = open(top, l.o, catalogOf(top, "weighted", 100), players)
			}
			next := f.hot()
			if wide {
				next = f.wide()
			}
			m := start(b, f.realm)
			submit(b, f.realm, b.N, next)
			m.stop(b.N, 0)
		})
	}
	ids := &fixture{players: playerIDs(players)}
	for _, base := range baselines {
		var s stores.Store
		log := "off"
		if base.name == "jsonlines" {
			log = "buffered"
		}
		top.Run("store="+base.name+"/log="+log, func(b *testing.B) {
			if s == nil {
				s = store(top, base.open, ids.players)
			}
			next := ids.hot()
			if wide {
				next = ids.wide()
			}
			before := logged(s)
			m := start(b, nil)
			for i := range b.N {
				req := next(i)
				s.Draw(req.ID, req.Player)
			}
			m.stop(b.N, logged(s)-before)
		})
	}
}

// BenchmarkDrawWindow: hot draws with Submit, log buffered, from a goroutine that leaves a number
// of them unanswered and then waits for one.
func BenchmarkDrawWindow(top *testing.B) {
	var f *fixture
	for _, ahead := range []int{4, 16, 64, 256, 1024} {
		top.Run(fmt.Sprintf("store=kuji/ahead=%d", ahead), func(b *testing.B) {
			if f == nil {
				f = open(top, kuji.Options{Sync: kuji.SyncNone}, catalogOf(top, "weighted", 100), 1000)
			}
			next, free := f.hot(), make(chan struct{}, ahead)
			var failed error
			done := func(_ kuji.Result, err error) {
				if err != nil {
					failed = err
				}
				<-free
			}
			m := start(b, f.realm)
			for i := range b.N {
				free <- struct{}{}
				f.realm.Submit(next(i), done)
			}
			for range ahead { // wait until all are answered
				free <- struct{}{}
			}
			m.stop(b.N, 0)
			must(b, failed)
		})
	}
}

// BenchmarkDrawParallel: the same hot draws from one goroutine and from one per processor, with
// Submit, log buffered.
func BenchmarkDrawParallel(top *testing.B) {
	var f *fixture
	for _, goroutines := range []int{1, runtime.GOMAXPROCS(0)} {
		top.Run(fmt.Sprintf("store=kuji/goroutines=%d", goroutines), func(b *testing.B) {
			if f == nil {
				f = open(top, kuji.Options{Sync: kuji.SyncNone}, catalogOf(top, "weighted", 100), 1000)
			}
			m := start(b, f.realm)
			var wg sync.WaitGroup
			for g := range goroutines {
				n := (b.N + g) / goroutines
				if n > 0 {
					wg.Go(func() { submit(b, f.realm, n, f.hot()) })
				}
			}
			wg.Wait()
			m.stop(b.N, 0)
		})
	}
	for _, base := range baselines[:3] {
		var s stores.Store
		for _, goroutines := range []int{1, runtime.GOMAXPROCS(0)} {
			top.Run(fmt.Sprintf("store=%s/goroutines=%d", base.name, goroutines), func(b *testing.B) {
				players := playerIDs(1000)
				if s == nil {
					s = store(top, base.open, players)
				}
				m := start(b, nil)
				var wg sync.WaitGroup
				for g := range goroutines {
					wg.Go(func() {
						for i := range (b.N + g) / goroutines {
							s.Draw("", players[i%len(players)])
						}
					})
				}
				wg.Wait()
				m.stop(b.N, 0)
			})
		}
	}
}

// BenchmarkDraw covers all forms of call, policies of the log, and modes and sizes of pools: 1000
// players, no request ids.
func BenchmarkDraw(top *testing.B) {
	for _, mode := range []string{"weighted", "raffle"} {
		for _, entries := range []int{10, 1000, 900_000} { // a raffle of a million does not fit into a catalog
			for _, l := range logs {
				var f *fixture
				for _, form := range forms {
					top.Run(fmt.Sprintf("mode=%s/entries=%d/log=%s/form=%s", mode, entries, l.name, form.name), func(b *testing.B) {
						if f == nil {
							f = open(top, l.o, catalogOf(top, mode, size(entries)), 1000)
						}
						m := start(b, f.realm)
						form.draw(b, f, b.N)
						m.stop(b.N, 0)
					})
				}
			}
		}
	}
}

// forms are the ways to call the engine.
var forms = []struct {
	name string
	draw func(b *testing.B, f *fixture, n int)
}{
	{"blocking", func(b *testing.B, f *fixture, n int) {
		next := f.hot()
		for i := range n {
			_, err := f.realm.Do(b.Context(), next(i))
			must(b, err)
		}
	}},
	{"callback", func(b *testing.B, f *fixture, n int) { submit(b, f.realm, n, f.hot()) }},
	{"batch", func(b *testing.B, f *fixture, n int) { doAll(b, f, n, false) }},
}
