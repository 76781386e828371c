package rules_test

import (
	"math/rand/v2"
	"testing"

	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/store"
)

// BenchmarkDecide is one draw, decided and applied, from pools that ask different rules.
func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct{ name, yaml string }{
		{"plain", plain + `  p: {entries: [{id: x, weight: 1, reward: {items: {a: 1}}}, {id: y, weight: 9, reward: {items: {b: 1}}}, {id: z, weight: 90}]}`},
		{"raffle", plain + `  p: {mode: raffle, entries: [{id: x, stock: 1000000000, reward: {items: {a: 1}}}, {id: y, stock: 9000000000, reward: {items: {b: 1}}}]}`},
		{"nested", plain + `
  p: {entries: [{id: x, weight: 1, reward: {pool: q}}, {id: y, weight: 9, reward: {pool: r}}]}
  q: {entries: [{id: x, weight: 1, reward: {items: {a: 1}}}, {id: y, weight: 9}]}
  r: {entries: [{id: x, weight: 1, stock: 1000000000, reward: {items: {a: 1}}}, {id: y, weight: 9}]}`},
		{"pity", banner},
		{"conditions", plain + `
  p:
    entries:
      - {id: rich, weight: 1, when: {holds: {a: 3}}}
      - {id: poor, weight: 1, when: {lacks: [b]}, reward: {items: {c: 1}}}
      - {id: first, weight: 1, unique: true, reward: {items: {b: 1}}}
      - {id: lucky, weight: 1, luck: {item: c, weights: [{from: 3, weight: 2}, {from: 6, weight: 9}]}, reward: {items: {a: 1}}}
      - {id: rest, weight: 2}`},
		{"budget", plain + `
  p:
    budget: {per: day, of: {a: 1000000000}}
    entries: [{id: x, weight: 1, reward: {items: {a: {min: 1, max: 5}}}}, {id: y, weight: 9, reward: {items: {a: 1}}}, {id: z, weight: 90}]`},
		{"drops", plain + `
  p:
    mode: each
    entries: [{id: x, chance: 10, reward: {items: {a: 1}}}, {id: y, chance: 50, when: {holds: {a: 1}}, reward: {items: {b: 1}}}, {id: sure, chance: 100}]`},
		{"distinct", plain + `
  p: {rolls: {min: 2, max: 2, distinct: true}, entries: [{id: x, weight: 5, reward: {items: {a: 1}}}, {id: y, weight: 2}, {id: z, weight: 1}]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			r, src, pool := newRealm(b, 1), rand.NewPCG(1, 1), "p"
			r.put(c.yaml)
			if c.name == "pity" {
				pool = "banner"
			}
			cmd, w, ev, n := draw("ann", pool, 1), store.Writer{}, store.Event{}, uint64(len(r.log))
			b.ReportAllocs()
			for b.Loop() {
				w.Buf = w.Buf[:0]
				if s := r.rules.Decide(&cmd, r.now, src, &w); s != rules.OK {
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
		})
	}
}
