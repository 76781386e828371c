package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/kuji-dev/kuji"
)

// festive opens a site where something has happened.
func festive(t *testing.T, withKeys bool) *site {
	t.Helper()
	s := open(t, withKeys, festival)
	if _, err := s.realm().Codes().Import(t.Context(), "ten-percent", []string{"AAA-1", "AAA-2", "AAA-3", "AAA-4"}); err != nil {
		t.Fatal(err)
	}
	s.do(kuji.Grant{ID: "welcome-1", Player: "ann", Items: []kuji.Stack{{Item: "starlight", Quantity: 4800}, {Item: "stardust", Quantity: 50}}, Note: kuji.Note{By: "ops", Reason: "the outage of Friday"}})
	for i := range 20 {
		s.do(kuji.Draw{ID: fmt.Sprintf("banner-%d", i), Player: "ann", Pool: "banner", Count: 1})
	}
	for i := range 40 {
		player := fmt.Sprintf("player-%02d", i)
		s.do(kuji.Draw{ID: "daily-" + player, Player: player, Pool: "daily", Count: 1}, kuji.Draw{ID: "box-" + player, Player: player, Pool: "box", Count: 3},
			kuji.Draw{ID: "splash-" + player, Player: player, Pool: "splash", Count: 1})
	}
	return s
}

// shows are the pages, and what each has when it is complete.
var shows = []struct{ name, path, selector, text string }{
	{"players", "/players", "main", "player-03"},
	{"player", "/players/ann", "#why", "the outage of Friday"},
	{"pools", "/pools", "[data-pool=box]", "left"},
	{"pool", "/pools/box", "#odds-seen", "Moon Rabbit"},
	{"odds", "/pools/banner", "#odds-seen", "Reed Spear"},
	{"catalog", "/catalog", "#catalog", "Lantern Festival"},
	{"versions", "/catalog/versions", "main", "items: 17"},
	{"disclosure", "/disclosure", "main", "Reed Spear"},
	{"operations", "/operations", "[data-realm=default]", "Request ids"},
	{"proof", "/proof/4/0", "#steps", "grant"},
	{"contract", "/contract", "main", "STATUS_SOLD_OUT"},
	{"call", "/contract/call/kuji.v1.RewardService%2FGetPool", "main", "entryOffset"},
}

// TestPages: each page is complete, fits in 360 px, and has nothing that axe-core finds, in light and dark.
func TestPages(t *testing.T) {
	t.Parallel()
	s := festive(t, false)
	for _, dark := range []bool{false, true} {
		for _, v := range []view{{360, 800, dark, "Europe/Berlin"}, {768, 1000, dark, "Europe/Berlin"}, {1280, 900, dark, "Europe/Berlin"}} {
			theme := map[bool]string{false: "light", true: "dark"}[dark]
			if v.width == 768 && *looks == "" {
				continue // for eyes
			}
			p := browse(t, s.address, v, "/players")
			for _, one := range shows {
				p.visit(one.path)
				p.has(one.selector, one.text)
				what := fmt.Sprintf("%s-%d-%s", one.name, v.width, theme)
				p.fits(what)
				if v.width != 768 && (v.width == 1280) == !dark { // each page once in each colour
					p.accessible(what)
				}
				p.look(what)
			}
		}
	}
}

// TestSpelling: no browser underlines ids, keys and YAML, nor sends them to be checked. Preact sets the property,
// so the attribute of the templates is not what counts.
func TestSpelling(t *testing.T) {
	t.Parallel()
	s := festive(t, true)
	p := browse(t, s.address, wide, "/players")
	unchecked := func(selector string) {
		t.Helper()
		p.until(fmt.Sprintf("document.querySelector(%s)", quote(selector)))
		if wrong := eval[string](p, "[...document.querySelectorAll('[spellcheck]')].filter((e) => e.spellcheck || e.getAttribute('spellcheck') !== 'false').map((e) => e.outerHTML).join()"); wrong != "" {
			t.Errorf("checked for spelling: %s", wrong)
		}
		if !eval[bool](p, fmt.Sprintf("document.querySelector(%s).spellcheck === false", quote(selector))) {
			t.Errorf("%s is checked for spelling", selector)
		}
	}
	unchecked("input[name=key]")
	p.enter("ops")
	for path, selector := range map[string]string{"/players": "input[name=player]", "/catalog/new": "textarea[name=yaml]", "/proof": "textarea[name=receipt]",
		"/operations": "textarea[name=report]", "/contract/call/kuji.v1.RewardService%2FGetPool": "textarea[name=body]"} {
		p.visit(path)
		unchecked(selector)
	}
	p.visit("/players/ann")
	p.press("[data-act=merge]")
	unchecked("dialog input[name=from]")
}

// TestScreenshots writes the pictures of docs/console.md: those of what a window shows, while people draw.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no -screenshots")
	}
	s := festive(t, true)
	drawing(t, s, []string{"daily", "daily", "daily", "banner", "splash", "box"}, 4, 60*time.Millisecond)
	for i, one := range shows {
		p := browse(t, s.address, view{1280, 900, i%2 == 1, "Europe/Berlin"}, one.path)
		p.enter("ops")
		p.has(one.selector, one.text)
		if one.name == "pools" {
			p.until("document.querySelectorAll('#newest .feedline').length === 30 && document.querySelector('.spark path')?.getAttribute('d').split(' ').length > 14")
		}
		png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*screenshots, one.name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
