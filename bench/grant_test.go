package bench_test

import (
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji"
)

// reportBytes reports the log's bytes for each operation.
func reportBytes(b *testing.B, r *kuji.Realm, before kuji.Stats) {
	b.StopTimer()
	b.ReportMetric(float64(r.Stats().LogBytes-before.LogBytes)/float64(b.N), "wal_bytes/op")
}

// BenchmarkGrant: 1, 10 and 25 items to one of 1000 players, together in one grant and each in its
// own. An operation is all of them. Log buffered.
func BenchmarkGrant(top *testing.B) {
	var f *fixture
	for _, n := range []int{1, 10, 25} {
		items := make([]kuji.Stack, n)
		for i := range items {
			items[i] = kuji.Stack{Item: fmt.Sprint("item", i), Quantity: 1}
		}
		for _, form := range []struct {
			name string
			each int // items in a grant
		}{{"together", n}, {"one-by-one", 1}} {
			if n == 1 && form.name != "together" {
				continue
			}
			top.Run(fmt.Sprintf("items=%d/%s", n, form.name), func(b *testing.B) {
				if f == nil {
					f = open(top, kuji.Options{Sync: kuji.SyncNone}, catalogOf(top, "weighted", 100), 1000)
				}
				grants := n / form.each
				var req kuji.Grant
				before := f.realm.Stats()
				b.ReportAllocs()
				b.ResetTimer()
				submit(b, f.realm, b.N*grants, func(i int) *kuji.Grant {
					from := i % grants * form.each
					req.Player, req.Items = f.players[i/grants%1000], items[from:from+form.each]
					return &req
				})
				reportBytes(b, f.realm, before)
			})
		}
	}
}

// BenchmarkAtomic: a group of five players who draw five times each, one request for each player,
// and the same 25 draws as single requests in one batch. An operation is all of them. Log
// buffered.
func BenchmarkAtomic(top *testing.B) {
	const players, draws = 5, 5
	var f *fixture
	fill := func(b *testing.B) {
		if f == nil {
			f = open(top, kuji.Options{Sync: kuji.SyncNone}, catalogOf(top, "weighted", 100), 1000)
		}
		b.ReportAllocs()
	}
	top.Run("players=5/draws=25/form=group", func(b *testing.B) {
		fill(b)
		members := make([]kuji.Draw, players)
		group := kuji.Atomic{Members: make([]kuji.Request, players)}
		for i := range members {
			members[i] = kuji.Draw{Pool: "bench", Count: draws}
			group.Members[i] = &members[i]
		}
		before := f.realm.Stats()
		b.ResetTimer()
		submit(b, f.realm, b.N, func(i int) *kuji.Atomic {
			for j := range members {
				members[j].Player = f.players[(i*players+j)%1000]
			}
			return &group
		})
		reportBytes(b, f.realm, before)
	})
	top.Run("players=5/draws=25/form=single", func(b *testing.B) {
		fill(b)
		req := kuji.Draw{Pool: "bench", Count: 1}
		before := f.realm.Stats()
		b.ResetTimer()
		submit(b, f.realm, b.N*players*draws, func(i int) *kuji.Draw {
			req.Player = f.players[i/draws%1000]
			return &req
		})
		reportBytes(b, f.realm, before)
	})
}
