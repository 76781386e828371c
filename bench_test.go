package kuji_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

// benchCatalog has one pool of n entries without stock, each giving an item.
func benchCatalog(tb testing.TB, n int) *catalog.Catalog {
	tb.Helper()
	var b strings.Builder
	b.WriteString("kuji: 1\nitems: {gem: {kind: currency}")
	for i := range 25 {
		fmt.Fprintf(&b, ", item%d: {}", i)
	}
	b.WriteString("}\npools:\n  bench:\n    entries:\n")
	for i := range n {
		fmt.Fprintf(&b, "      - {id: e%d, weight: %d, reward: {items: {item%d: 1}}}\n", i, 1+i%100, i%25)
	}
	return parse(tb, b.String())
}

func benchRealm(b *testing.B, o kuji.Options) *kuji.Realm {
	b.Helper()
	e, err := kuji.Open(b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	r, err := e.Realm("bench")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := r.Apply(b.Context(), benchCatalog(b, 100)); err != nil {
		b.Fatal(err)
	}
	return r
}

// players returns ids "p0", "p1" …
func players(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("p", i)
	}
	return ids
}

// seePlayers makes every player known, so that a benchmark measures draws.
func seePlayers(b *testing.B, r *kuji.Realm, ids []string) {
	b.Helper()
	var reqs []kuji.Request
	for i, id := range ids {
		reqs = append(reqs, kuji.Grant{Player: id, Items: []kuji.Stack{{Item: "gem", Quantity: 1}}})
		if len(reqs) == kuji.MaxBatch || i == len(ids)-1 {
			if _, err := r.DoAll(b.Context(), reqs); err != nil {
				b.Fatal(err)
			}
			reqs = reqs[:0]
		}
	}
}

// requestID writes n into a 16-byte id.
func requestID(buf []byte, n uint64) string {
	binary.LittleEndian.PutUint64(buf, n)
	binary.LittleEndian.PutUint64(buf[8:], n*0x9E3779B97F4A7C15)
	return string(buf[:16])
}

func reportLog(b *testing.B, r *kuji.Realm, before kuji.Stats) {
	after := r.Stats()
	if draws := after.Draws - before.Draws; draws > 0 {
		b.ReportMetric(float64(after.LogBytes-before.LogBytes)/float64(draws), "wal_bytes/draw")
		b.ReportMetric(float64(draws)/b.Elapsed().Seconds(), "draws/s")
	}
}

// submit drives draws by the callback form; when the log has fallen behind it
// waits for what it submitted, as a caller must.
func submit(b *testing.B, r *kuji.Realm, next func(i int) *kuji.Draw) {
	var wg sync.WaitGroup
	done := func(_ kuji.Result, err error) {
		if err != nil && kuji.CodeOf(err) != kuji.CodeOverloaded {
			b.Error(err)
		}
	}
	before := r.Stats()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		r.Submit(next(i), done)
	}
	wg.Add(1)
	for {
		ok := true
		r.Submit(next(b.N), func(_ kuji.Result, err error) {
			if ok = err == nil; ok {
				wg.Done()
			}
		})
		if ok {
			break
		}
	}
	wg.Wait()
	b.StopTimer()
	reportLog(b, r, before)
}

func BenchmarkDrawHot(b *testing.B) {
	for _, o := range []kuji.Options{{Sync: kuji.SyncNone}, {Sync: kuji.SyncAlways}} {
		b.Run("sync="+o.Sync.String(), func(b *testing.B) {
			r := benchRealm(b, o)
			ids := players(1000)
			seePlayers(b, r, ids)
			req := kuji.Draw{Pool: "bench", Count: 1}
			submit(b, r, func(i int) *kuji.Draw {
				req.Player = ids[i%1000]
				return &req
			})
		})
	}
}

func BenchmarkDrawWide(b *testing.B) {
	r := benchRealm(b, kuji.Options{Sync: kuji.SyncNone})
	ids := players(1_000_000)
	seePlayers(b, r, ids)
	req := kuji.Draw{Pool: "bench", Count: 1}
	var buf [16]byte
	n := uint64(0)
	submit(b, r, func(int) *kuji.Draw {
		n++
		req.ID = requestID(buf[:], n)
		req.Player = ids[n*0x9E3779B97F4A7C15>>32%1_000_000]
		return &req
	})
}

func BenchmarkDoAll(b *testing.B) {
	for _, wide := range []bool{false, true} {
		b.Run(map[bool]string{false: "hot", true: "wide"}[wide], func(b *testing.B) {
			r := benchRealm(b, kuji.Options{})
			ids := players(map[bool]int{false: 1000, true: 1_000_000}[wide])
			seePlayers(b, r, ids)
			draws := make([]kuji.Draw, 1000)
			reqs := make([]kuji.Request, len(draws))
			for i := range draws {
				draws[i] = kuji.Draw{Pool: "bench", Count: 1}
				reqs[i] = &draws[i]
			}
			var buf [16]byte
			n := uint64(0)
			before := r.Stats()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				for i := range draws {
					n++
					if wide {
						draws[i].ID = requestID(buf[:], n)
					}
					draws[i].Player = ids[n*0x9E3779B97F4A7C15>>32%uint64(len(ids))]
				}
				if _, err := r.DoAll(b.Context(), reqs); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			reportLog(b, r, before)
		})
	}
}

func BenchmarkDoParallel(b *testing.B) {
	for _, o := range []kuji.Options{{Sync: kuji.SyncNone}, {Sync: kuji.SyncAlways}} {
		b.Run("sync="+o.Sync.String(), func(b *testing.B) {
			r := benchRealm(b, o)
			ids := players(1000)
			seePlayers(b, r, ids)
			before := r.Stats()
			b.SetParallelism(32) // 64 goroutines on 2 cores
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if _, err := r.Do(b.Context(), &kuji.Draw{Player: ids[i%1000], Pool: "bench"}); err != nil {
						b.Error(err)
					}
				}
			})
			b.StopTimer()
			reportLog(b, r, before)
		})
	}
}

func BenchmarkGrant(b *testing.B) {
	for _, n := range []int{1, 10, 25} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			r := benchRealm(b, kuji.Options{Sync: kuji.SyncNone})
			ids := players(1000)
			seePlayers(b, r, ids)
			req := kuji.Grant{}
			for i := range n {
				req.Items = append(req.Items, kuji.Stack{Item: fmt.Sprint("item", i), Quantity: 1})
			}
			done := func(_ kuji.Result, err error) {
				if err != nil && kuji.CodeOf(err) != kuji.CodeOverloaded {
					b.Error(err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				req.Player = ids[i%1000]
				r.Submit(&req, done)
			}
		})
	}
}
