package rules_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// BenchmarkSettle is the settlement of a gamble of five entrants who stake five boxes each, decided and applied: 25
// boxes are opened, and who drew the most gets all of it.
func BenchmarkSettle(b *testing.B) {
	r, src := newRealm(b, 1), rand.NewPCG(1, 1)
	r.put(`{kuji: 1, items: {gold: {}, sword: {}, box: {}}, idempotency: {count: 1000},
pools: {boxes: {price: {box: 1}, entries: [{id: gold, weight: 9, reward: {items: {gold: {min: 1, max: 9}}}}, {id: sword, weight: 1, reward: {items: {sword: 1}}}]}},
rounds: {gamble: {stake: {item: box, count: 5}, opens: stakes, winner: {by: {value: {gold: 1, sword: 250}}, gets: everything}}}}`)
	w, ev, n := store.Writer{}, store.Event{}, uint64(len(r.log))
	carry := func(cmd *rules.Command) {
		w.Buf = w.Buf[:0]
		if err := r.rules.Resolve(cmd); err != nil {
			b.Fatal(err)
		}
		if s := r.rules.Decide(cmd, r.now, src, &w); s != rules.OK {
			b.Fatal(s)
		}
		if _, err := store.Decode(w.Buf, &ev); err != nil {
			b.Fatal(err)
		}
		n++
		if err := r.state.Apply(&ev, store.At{Position: n, Time: r.now}, nil); err != nil {
			b.Fatal(err)
		}
	}
	const rounds, entrants = 90, 5
	settle := ofRound(rules.KindSettle, "gamble", 0)
	for p := range entrants {
		cmd := grant(fmt.Sprint("p", p), of("box", 1<<40))
		carry(&cmd)
	}
	b.ReportAllocs()
	left, bytes := 0, 0
	for b.Loop() {
		if left == 0 {
			b.StopTimer()
			r.now += 25 * 3600 * 1000 // those before are forgotten
			for d := (rules.Due{}); r.rules.Sweep(r.now, 64, &d); {
				w.Buf = w.Buf[:0]
				r.rules.DecideDue(&d, r.now, src, &w)
				if _, err := store.Decode(w.Buf, &ev); err != nil {
					b.Fatal(err)
				}
				n++
				if err := r.state.Apply(&ev, store.At{Position: n, Time: r.now}, nil); err != nil {
					b.Fatal(err)
				}
			}
			for ; left < rounds; left++ {
				for p := range entrants {
					cmd := joined(fmt.Sprint("p", p), "gamble", 0, 0, of("box", 5))
					if p == 0 {
						cmd = opened("p0", "gamble", of("box", 5))
					}
					carry(&cmd)
				}
			}
			b.StartTimer()
		}
		left--
		carry(&settle)
		bytes += len(w.Buf)
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "bytes/op")
}
