package console_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
)

// views are the widths that a page is looked at in.
func views(t *testing.T, f func(t *testing.T, v view, what string)) {
	for _, v := range []view{{360, 800, true, "Europe/Berlin"}, {768, 1000, false, "Europe/Berlin"}, {1280, 900, false, "Europe/Berlin"}, {1280, 900, true, "Europe/Berlin"}} {
		if *looks == "" && v.width == 1280 && v.dark {
			continue // for eyes
		}
		f(t, v, fmt.Sprintf("%d-%s", v.width, map[bool]string{false: "light", true: "dark"}[v.dark]))
	}
}

// TestFirstCatalog: where no catalog is in force, the page leads to a new one, which can start from an
// example, and mistakes are marked where they are.
func TestFirstCatalog(t *testing.T) {
	t.Parallel()
	s := open(t, false, nil)
	views(t, func(t *testing.T, v view, what string) {
		p := browse(t, s.address, v, "/catalog")
		p.has("#no-catalog", "No catalog is in force yet.")
		p.accessible("no catalog " + what)
		p.look("catalog-none-" + what)
		p.press("#no-catalog a.primary")
		p.until("document.querySelector('[name=load]').disabled")
		p.set("[name=example]", "gacha-banner")
		p.press("[name=use-example]")
		p.until("document.querySelector('[name=yaml]').value.includes('Lantern Festival')")
		// A line of the text and its number stand at the same height, also further down.
		p.until(`(() => { const box = document.querySelector(".editor textarea"), lines = box.value.split("\n").length;
			box.scrollTop = 400;
			const gutter = document.querySelector(".gutter > div");
			return gutter.innerText.trim().split("\n").length === lines && gutter.style.transform === "translateY(-400px)" &&
				Math.abs(gutter.getBoundingClientRect().height - box.scrollHeight + 2 * parseFloat(getComputedStyle(box).paddingTop)) < 25; })()`)
		p.look("catalog-new-" + what)
		p.fits("new " + what)
		p.set("[name=yaml]", "kuji: 1\nitems:\n  gem: {kind: diamond, name: Gem}\n  魚: {kind: \"a fish, big\"}\n")
		p.press("[name=check]")
		p.until(`[...document.querySelectorAll("#faults mark")].map((m) => m.innerText).join("|").startsWith("diamond|")`)
		p.until(`[...document.querySelectorAll(".gutter b")].map((m) => m.innerText).join()  === "3,4"`)
		p.until(`(() => { const box = document.activeElement; return box.value?.slice(box.selectionStart, box.selectionEnd) === "diamond"; })()`) // the first mistake
		p.press("#faults li:nth-child(2) button")
		p.until(`document.activeElement.selectionStart > document.activeElement.value.indexOf("Gem")`)
		p.press("#faults button")
		p.until(`(() => { const box = document.activeElement; return box.value.slice(box.selectionStart, box.selectionEnd) === "diamond"; })()`)
		p.accessible("faults " + what)
		p.fits("faults " + what)
		p.look("catalog-faults-" + what)
		// A button that replaces the text can be undone.
		p.press("[name=use-example]")
		p.until("document.querySelector('[name=yaml]').value.includes('Lantern Festival')")
		p.press("[name=bring-back]")
		p.until("document.querySelector('[name=yaml]').value.includes('diamond')")
	})
}

// treasure is a catalog with little stock, below a pool that players draw from.
//
//go:embed testdata/treasure.yaml
var treasure string

// TestSimulation: the pools and items of the catalog that was pasted can be chosen by name, the report explains
// itself, and small numbers are not 0.
func TestSimulation(t *testing.T) {
	t.Parallel()
	address := serve(t)
	views(t, func(t *testing.T, v view, what string) {
		p := browse(t, address, v, "/catalog/new")
		p.set("[name=yaml]", treasure)
		p.press("[name=check]")
		p.until(`[...document.querySelectorAll("[name=sim-pool] option")].map((o) => o.innerText).join("|") === "The shore (shore)"`)
		p.until(`[...document.querySelectorAll("[name=sim-until] option")].map((o) => o.innerText).join("|") === "Nobody stops early|Trident of the sea (trident)|Old chest (chest)|Shell (shell)"`)
		p.set("[name=sim-until]", "trident")
		p.press("[name=simulate]")
		p.has("#simulated", "What it costs: Trident of the sea")
		p.has("#got", "4 of 1,000 players got it. The others count as more than all of these; “–” depends on them.")
		p.has("#simulated td", "0.00004008")
		p.has("#simulated", "All players share the stock")
		p.has("#simulated", "Wanted: base odds, at full stock")
		p.has("#simulated", "The wreck")
		p.has("#simulated td", "99.99%")
		p.until("document.querySelectorAll('#simulated .plot canvas').length === 2")
		p.accessible("simulation " + what)
		p.fits("simulation " + what)
		p.look("treasure-" + what)
	})
}

// TestFirstPlan: the plan of a first catalog shows what it has, with odds; to decide needs no scrolling past it.
func TestFirstPlan(t *testing.T) {
	t.Parallel()
	s := open(t, false, nil)
	views(t, func(t *testing.T, v view, what string) {
		p := browse(t, s.address, v, "/catalog/new")
		p.set("[name=example]", "gacha-banner")
		p.press("[name=use-example]")
		p.until("document.querySelector('[name=yaml]').value.includes('Lantern Festival')")
		p.press("[name=check]")
		p.has("#plan", "This is the first catalog.")
		p.has("#plan", "A new player gets: ")
		p.has("#plan tbody tr", "five-star 1 draw from Five stars 0.6%")
		p.press("[data-planned=four-star] summary")
		p.has("[data-planned=four-star] tbody tr", "20%")
		p.has("#decide", "It becomes version 1.")
		p.until("!document.querySelector('#plan').innerText.includes('→')")
		if high := eval[float64](p, "document.querySelector('#decide').getBoundingClientRect().top - document.querySelector('#plan').getBoundingClientRect().top"); high > 2000 {
			t.Errorf("%s: the plan is %v px high", what, high)
		}
		p.accessible("first plan " + what)
		p.fits("first plan " + what)
		p.look("plan-first-" + what)
		// The box raffle has tickets instead of weights, and drop tables have chances.
		p.set("[name=example]", "box-raffle")
		p.press("[name=use-example]")
		p.until("document.querySelector('[name=yaml]').value.includes('Harvest Moon')")
		p.press("[name=check]")
		p.has("#plan tbody tr", "35%")
	})
}

// TestPlanOfChange: a plan has what differs once, and sentences only for more.
func TestPlanOfChange(t *testing.T) {
	t.Parallel()
	s := open(t, false, festival)
	changed := strings.Replace(strings.Replace(string(festival), "weight: 80", "weight: 60", 1), "stock: 60", "stock: 90", 1)
	views(t, func(t *testing.T, v view, what string) {
		p := browse(t, s.address, v, "/catalog/new")
		p.set("[name=yaml]", changed)
		p.press("[name=check]")
		p.has("#plan", "80% → 75%")
		p.has("#plan", "60 of 60 left before, 90 of 90 after")
		if text := eval[string](p, "document.querySelector('#plan').innerText"); strings.Contains(text, "instead of") || strings.Contains(text, "more") {
			t.Errorf("%s: the plan repeats itself:\n%s", what, text)
		}
		p.until("new Set([...document.querySelectorAll('#plan .to')].map((e) => Math.round(e.getBoundingClientRect().left))).size === 1")
		p.until("document.querySelector('#decide').compareDocumentPosition(document.querySelector('#simulation')) === Node.DOCUMENT_POSITION_FOLLOWING")
		p.accessible("plan " + what)
		p.fits("plan " + what)
		p.look("plan-change-" + what)
	})
}
