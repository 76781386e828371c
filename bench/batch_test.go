package bench_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/bench/baselines/stores"
	"github.com/kuji-dev/kuji/wal"
)

const batchSize = 1000

// doAll makes n draws in batches of 1000.
func doAll(b *testing.B, f *fixture, n int, wide bool) {
	draws := make([]kuji.Draw, batchSize)
	reqs := make([]kuji.Request, batchSize)
	for i := range draws {
		draws[i] = kuji.Draw{Pool: "bench", Count: 1}
		reqs[i] = &draws[i]
	}
	ids := f.fresh()
	for n > 0 {
		some := min(n, batchSize)
		for i := range draws[:some] {
			if wide {
				draws[i].ID, draws[i].Player = ids.next()
			} else {
				draws[i].Player = f.players[i%len(f.players)]
			}
		}
		_, err := f.realm.DoAll(b.Context(), reqs[:some])
		must(b, err)
		n -= some
	}
}

// BenchmarkDoAll: batches of 1000 durable draws: hot as in BenchmarkDrawHot, and wide. An
// operation is one draw. Each caller sends its next batch when it has the answers to the last one.
// With several callers, some batches are decided while others become durable. The baseline is a
// store with a log of JSON lines, fsynced after every 1000 draws.
func BenchmarkDoAll(top *testing.B) {
	for _, wide := range []bool{false, true} {
		name, players := "hot", 1000
		if wide {
			name, players = "wide", size(1_000_000)
		}
		var f *fixture
		for _, callers := range []int{1, 4} {
			top.Run(fmt.Sprintf("%s/store=kuji/callers=%d", name, callers), func(b *testing.B) {
				if f == nil {
					f = open(top, kuji.Options{}, catalogOf(top, "weighted", 100), players)
				}
				m := start(b, f.realm)
				var wg sync.WaitGroup
				for c := range callers {
					wg.Go(func() { doAll(b, f, (b.N+c)/callers, wide) })
				}
				wg.Wait()
				m.stop(b.N, 0)
			})
		}
		var s stores.Store
		ids := &fixture{players: playerIDs(players)}
		top.Run(name+"/store=jsonlines", func(b *testing.B) {
			if s == nil {
				s = store(top, baselines[3].open, ids.players)
			}
			j := s.(*stores.JSONLines)
			fresh := ids.fresh()
			before := j.Bytes()
			m := start(b, nil)
			for i := range b.N {
				id, player := "", ids.players[i%len(ids.players)]
				if wide {
					id, player = fresh.next()
				}
				j.Draw(id, player)
				if i%batchSize == batchSize-1 || i == b.N-1 {
					must(b, j.Sync())
				}
			}
			m.stop(b.N, j.Bytes()-before)
		})
	}
}

// durableCallers is the number of goroutines that each wait for their own draw.
const durableCallers = 64

// BenchmarkDoDurable: durable draws from 64 goroutines that wait for each one. The baseline is the
// log alone, with records as large as a batch of one draw.
func BenchmarkDoDurable(top *testing.B) {
	var f *fixture
	top.Run("store=kuji", func(b *testing.B) {
		if f == nil {
			f = open(top, kuji.Options{}, catalogOf(top, "weighted", 100), 1000)
		}
		m := start(b, f.realm)
		fromMany(b, func(i int) error {
			_, err := f.realm.Do(context.Background(), &kuji.Draw{Player: f.players[i%1000], Pool: "bench"})
			return err
		})
		m.stop(b.N, 0)
	})
	var l *wal.Log
	top.Run("store=wal", func(b *testing.B) {
		if l == nil {
			var err error
			l, err = wal.Open(filepath.Join(scratch(top), "log"), wal.Options{})
			must(top, err)
			top.Cleanup(func() { must(top, l.Close()) })
		}
		m := start(b, nil)
		fromMany(b, func(int) error {
			var record [128]byte
			_, err := l.AppendSync(context.Background(), record[:])
			return err
		})
		m.stop(b.N, 0)
	})
}

// fromMany makes b.N calls from durableCallers goroutines.
func fromMany(b *testing.B, call func(i int) error) {
	var wg sync.WaitGroup
	for g := range durableCallers {
		wg.Go(func() {
			for i := range (b.N + g) / durableCallers {
				if err := call(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
