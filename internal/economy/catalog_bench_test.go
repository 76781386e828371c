package economy

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/catalog"
)

// BenchmarkCatalog is what a catalog costs a realm that has one of the same size in force:
// beside commands (plan, prepare, stage), and while none is carried out (locked). "At once" is
// all that recovery does behind prepare.
func BenchmarkCatalog(b *testing.B) {
	for _, size := range []struct{ pools, entries int }{{100, 1000}, {1000, 100}, {1, 800_000}} {
		for _, changed := range []string{"all", "one"} { // of the pools
			b.Run(fmt.Sprintf("pools=%d/entries=%d/changed=%s", size.pools, size.entries, changed), func(b *testing.B) {
				benchmarkCatalog(b, size.pools, size.entries, changed)
			})
		}
	}
}

func benchmarkCatalog(b *testing.B, pools, entries int, changed string) {
	parse := func(version int) *catalog.Catalog {
		var y strings.Builder
		fmt.Fprintf(&y, "kuji: 1\nname: v%d\nitems: {gem: {}, sword: {}}\npools:\n  small: {entries: [{id: a, weight: %d}]}\n", version, 1+version)
		if changed == "one" {
			version = 0
		}
		for p := range pools {
			fmt.Fprintf(&y, "  p%d:\n    entries:\n", p)
			for i := range entries {
				fmt.Fprintf(&y, "    - {id: e%s,weight: %d,stock: %d}\n", strconv.FormatInt(int64(i), 36), 1+i%7, 8+version)
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
	run("stage", func(b *testing.B, w *windowState, c *catalog.Catalog) {
		b.StopTimer()
		p := prepare(b, w, c)
		b.StartTimer()
		w.Watch(p)
		w.Stage(p)
		b.StopTimer()
		put(b, w, p)
		b.StartTimer()
	})
	run("apply/locked", func(b *testing.B, w *windowState, c *catalog.Catalog) {
		b.StopTimer()
		p := prepare(b, w, c)
		w.Watch(p)
		w.Stage(p)
		b.StartTimer()
		put(b, w, p)
	})
	run("apply/at-once", func(b *testing.B, w *windowState, c *catalog.Catalog) {
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

// put puts a catalog in force. The event is encoded with the timer stopped.
func put(b *testing.B, w *windowState, p *Prepared) {
	b.StopTimer()
	raw := p.AppendEvent(nil)
	b.StartTimer()
	ev, err := w.DecideCatalog(p)
	if err != nil {
		b.Fatal(err)
	}
	w.pos++
	if err := w.Apply(ev, raw, At{Position: w.pos, Time: w.at}); err != nil {
		b.Fatal(err)
	}
}
