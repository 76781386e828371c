package economy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// BenchmarkCatalog is what a catalog of 100 000 entries costs a realm that has
// one of the same size: what is done under the realm's lock, and what is not.
func BenchmarkCatalog(b *testing.B) {
	parse := func(version int) *catalog.Catalog {
		var y strings.Builder
		fmt.Fprintf(&y, "kuji: 1\nname: v%d\nitems: {gem: {}, sword: {}}\npools:\n", version)
		for p := range 100 {
			fmt.Fprintf(&y, "  p%d:\n    entries:\n", p)
			for i := range 1000 {
				fmt.Fprintf(&y, "      - {id: entry%d, weight: %d, stock: %d, reward: {items: {gem: 1, sword: {min: 1, max: 3}}}}\n", i, 1+i%7, 1000+version)
			}
		}
		c, err := catalog.Parse([]byte(y.String()))
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	catalogs := []*catalog.Catalog{parse(0), parse(1)}
	run := func(name string, timed func(b *testing.B, w *windowState, c *catalog.Catalog)) {
		b.Run(name, func(b *testing.B) {
			w := newWindow(b, "{kuji: 1, items: {gem: {}}}")
			put(b, w, prepare(b, w, catalogs[1]))
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				timed(b, w, catalogs[i%2])
			}
		})
	}
	run("plan", func(b *testing.B, w *windowState, _ *catalog.Catalog) {
		b.StopTimer()
		p := w.Planner()
		b.StartTimer()
		if _, err := p.Plan(catalogs[0]); err != nil {
			b.Fatal(err)
		}
	})
	run("plan/locked", func(_ *testing.B, w *windowState, _ *catalog.Catalog) { w.Planner() })
	run("prepare", func(b *testing.B, w *windowState, _ *catalog.Catalog) { prepare(b, w, catalogs[0]) })
	run("apply/locked", func(b *testing.B, w *windowState, c *catalog.Catalog) {
		b.StopTimer()
		p := prepare(b, w, c)
		b.StartTimer()
		put(b, w, p)
	})
}

func prepare(b *testing.B, w *windowState, c *catalog.Catalog) *Prepared {
	p, err := w.Prepare(c)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func put(b *testing.B, w *windowState, p *Prepared) {
	ev, err := w.DecideCatalog(p)
	if err != nil {
		b.Fatal(err)
	}
	raw := AppendEvent(nil, ev)
	w.pos++
	if err := w.Apply(ev, raw, At{Position: w.pos, Time: w.at}); err != nil {
		b.Fatal(err)
	}
}
