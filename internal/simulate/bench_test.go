package simulate

import (
	"fmt"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// tenEntries is a banner of ten entries with two tracks.
const tenEntries = `
kuji: 1
items: {gem: {}, hero: {}, a: {}, b: {}, c: {}, d: {}, e: {}, f: {}, g: {}, h: {}, i: {}}
pools:
  banner:
    price: {gem: 160}
    pity:
      five-star: {certain: 90, rising: {from: 74, by: 6}}
      four-star: {certain: 10}
    entries:
      - {id: five-star, weight: 0.6, reward: {items: {hero: 1}}}
      - {id: a, weight: 2.1, group: four-star, reward: {items: {a: 1}}}
      - {id: b, weight: 2, group: four-star, reward: {items: {b: 1}}}
      - {id: c, weight: 1, group: four-star, reward: {items: {c: 1}}}
      - {id: d, weight: 20, reward: {items: {d: 1}}}
      - {id: e, weight: 20, reward: {items: {e: 1}}}
      - {id: f, weight: 20, reward: {items: {f: 1}}}
      - {id: g, weight: 20, reward: {items: {g: 1}}}
      - {id: h, weight: 10, reward: {items: {h: 1}}}
      - {id: i, weight: 4.3, reward: {items: {i: 1}}}
`

// BenchmarkDraws makes b.N draws.
func BenchmarkDraws(b *testing.B) {
	c, err := catalog.Parse([]byte(tenEntries))
	if err != nil {
		b.Fatal(err)
	}
	for _, count := range []int{1, 10} {
		b.Run(fmt.Sprintf("count=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			each := 100
			if _, err := Run(b.Context(), c, Config{Pool: "banner", Players: max(1, b.N/each), Draws: each, Count: count}); err != nil {
				b.Fatal(err)
			}
		})
	}
}
