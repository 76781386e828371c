package bench_test

import (
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
)

const gambleYAML = `
kuji: 1
items: {coin: {kind: currency}, gem: {}, sword: {}, box: {}}
pools: {boxes: {price: {box: 1}, entries: [{id: coins, weight: 95, reward: {items: {coin: {min: 5, max: 20}}}}, {id: sword, weight: 5, reward: {items: {sword: 1}}}]}}
rounds: {gamble: {stake: {item: box, count: 5}, opens: stakes, winner: {by: {value: {coin: 1, sword: 250}}, gets: everything}}}
`

// BenchmarkGamble settles gambles of five entrants who stake five boxes each: 25 boxes are opened, and who got the most
// takes all of it. An operation is 900 settlements in one call. Rounds are opened and joined outside the measurement.
// cpu-ns/settlement does not count waiting for processors that others use.
func BenchmarkGamble(b *testing.B) {
	const entrants, each, groups = 5, 90, 10 // each player is in 90 rounds
	c, err := catalog.Parse([]byte(gambleYAML))
	must(b, err)
	f := open(b, kuji.Options{Sync: kuji.SyncNone, SnapshotEvery: -1}, c, entrants*groups)
	carryOut := func(reqs []kuji.Request) {
		all, err := f.realm.DoAll(b.Context(), reqs)
		must(b, err)
		for _, res := range all {
			if res.Status != kuji.OK {
				b.Fatal(res)
			}
		}
	}
	boxes := func(n uint64) []kuji.Stack { return []kuji.Stack{{Item: "box", Quantity: n}} }
	for _, p := range f.players {
		carryOut([]kuji.Request{kuji.Grant{Player: p, Items: boxes(1 << 40)}})
	}
	number, spent := uint64(0), time.Duration(0)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		var settle []kuji.Request
		for round := range each * groups {
			number++
			of := f.players[round/each*entrants:][:entrants]
			reqs := []kuji.Request{kuji.OpenRound{Player: of[0], Round: "gamble", Stake: boxes(5)}}
			for _, p := range of[1:] {
				reqs = append(reqs, kuji.Join{Player: p, Round: "gamble", Number: number, Stake: boxes(5)})
			}
			carryOut(reqs)
			settle = append(settle, kuji.Settle{Round: "gamble", Number: number})
		}
		began := cpuTime()
		b.StartTimer()
		carryOut(settle)
		spent += cpuTime() - began
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(number), "ns/settlement")
	b.ReportMetric(float64(spent.Nanoseconds())/float64(number), "cpu-ns/settlement")
}
