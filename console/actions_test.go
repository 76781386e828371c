package console_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/proxy"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// act carries out an action on the player of the page: the form, the preview, the confirmation.
func (p *page) act(kind string, fields map[string]string, preview string) {
	p.t.Helper()
	p.press("[data-act=" + kind + "]")
	for name, value := range fields {
		p.set("dialog [name="+name+"]", value)
	}
	p.set("dialog [name=reason]", "why "+kind)
	p.press("dialog [name=preview]")
	p.has("dialog", preview)
	if from := fields["from"]; from != "" {
		p.set("dialog [name=final]", from)
	}
	p.press("dialog [name=confirm]")
}

// done waits until an action was carried out, and closes its dialog.
func (p *page) done() {
	p.t.Helper()
	p.has("dialog .chip.good", "OK")
	p.press("dialog footer button")
	p.until("!document.querySelector('dialog')")
}

// holdings of a player, by item.
func (s *site) holdings(player string) map[string]uint64 {
	s.t.Helper()
	v, err := s.realm().Player(s.t.Context(), player)
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]uint64{}
	for _, i := range v.Items {
		all[i.Item] = i.Quantity
	}
	return all
}

// TestActions: each action does what it says, with the reason and the name of the key in the log.
func TestActions(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	s.do(kuji.Draw{ID: "first", Player: "ann", Pool: "banner", Count: 3}, kuji.Grant{ID: "other", Player: "bob", Items: []kuji.Stack{{Item: "plush", Quantity: 4}}})
	p := browse(t, s.address, wide, "/players/ann")
	p.enter("ops")
	p.act("grant", map[string]string{"item": "plush", "quantity": "9007199254740000"}, "ann gets 9,007,199,254,740,000 × Plush rabbit.")
	p.done()
	p.has("#player ~ .cards", "9,007,199,254,740,000")
	p.act("take", map[string]string{"item": "plush", "quantity": "9007199254739999"}, "ann loses")
	p.done()
	p.act("track", map[string]string{"track": "character-five-star", "draws": "88"}, "character-five-star")
	p.done()
	p.has("#player ~ .cards", "character-five-star 88 2")
	p.act("counter", map[string]string{"counter": "draws", "value": "10"}, "Draws from the festival of ann is set to 10")
	p.done()
	p.act("block", nil, "ann is blocked.")
	p.done()
	p.has("#player", "why block")
	p.act("unblock", nil, "no longer blocked")
	p.done()
	p.act("merge", map[string]string{"from": "bob"}, "bob becomes part of ann.")
	p.done()
	p.has("#player", "merged")
	p.press("#why button.quiet") // the newest that can be reversed is bob's grant
	p.set("dialog [name=request]", "other")
	p.set("dialog [name=reason]", "why reverse")
	p.press("dialog [name=preview]")
	p.has("dialog", "What other gave ann is taken back.")
	p.press("dialog [name=confirm]")
	p.done()

	if got := s.holdings("ann"); got["plush"] != 1 {
		t.Errorf("ann holds %v, want one plush", got)
	}
	v, err := s.realm().Player(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	if v.Blocked != "" || len(v.Aliases) != 1 || v.Tracks[0].Draws != 88 {
		t.Errorf("ann is %+v", v)
	}
	var who []string
	for r, err := range s.realm().Feed().Events(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Reason != "" {
			who = append(who, fmt.Sprintf("%s: %s by %s", r.Kind, r.Reason, r.By))
		}
		if r.Kind == "reverse" {
			break
		}
	}
	if want := []string{"grant: why grant by ops", "consume: why take by ops", "set_track: why track by ops", "set_counter: why counter by ops",
		"block: why block by ops", "block: why unblock by ops", "merge: why merge by ops", "reverse: why reverse by ops"}; !slices.Equal(who, want) {
		t.Errorf("the log has %q", who)
	}
}

// TestActionOnce: an action whose answer is lost is sent again with its request id, and happens once.
func TestActionOnce(t *testing.T) {
	t.Parallel()
	s := open(t, false, festival)
	s.do(kuji.Register{ID: "r", Player: "ann"})
	between, err := proxy.Listen("127.0.0.1:0", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := between.Close(); err != nil {
			t.Error(err)
		}
	})
	p := browse(t, between.Addr(), wide, "/players/ann")
	p.press("[data-act=grant]")
	p.set("dialog [name=item]", "plate")
	p.set("dialog [name=quantity]", "7")
	p.press("dialog [name=preview]")
	p.has("dialog", "Give a reason.") // there is none yet
	p.set("dialog [name=reason]", "lost")
	p.press("dialog [name=preview]")
	p.has("dialog", "ann gets 7 × Small plate.")
	caught := between.Hold(proxy.ToClient)
	p.press("dialog [name=confirm]")
	<-caught
	between.Cut()
	between.Release(proxy.ToClient)
	p.done()
	if got := s.holdings("ann")["plate"]; got != 7 {
		t.Errorf("ann got %d plates, want 7", got)
	}
}

// TestKeys: without a key nothing is shown, a wrong one is refused, one that may not do something is told
// so, and the key goes away with the page unless it is to stay.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	s.do(kuji.Register{ID: "r", Player: "ann"})
	p := browse(t, s.address, wide, "/players/ann")
	p.has("main", "This server asks for a key")
	p.accessible("enter")
	p.fits("enter")
	p.set("input[name=key]", "key-of-nobody")
	p.press("form .button.primary")
	p.has("[role=alert]", "does not know this key")
	p.enter("support")
	p.has("main", "Starlight")
	p.act("grant", map[string]string{"item": "plate", "quantity": "1"}, "ann gets")
	p.done()
	stored := `JSON.stringify([Object.values(sessionStorage), Object.values(localStorage), document.cookie]).includes("key-of")`
	if eval[bool](p, stored) {
		t.Error("the key is stored, and nobody asked for that")
	}
	p.do(chromedp.Reload())
	p.has("main", "This server asks for a key")
	p.press("input[name=keep]")
	p.enter("watcher")
	p.has("main", "Starlight")
	p.do(chromedp.Reload())
	p.has("main", "Starlight")
	if !eval[bool](p, stored+` && !JSON.stringify([Object.values(localStorage), document.cookie]).includes("key-of")`) {
		t.Error("the key does not stay in the tab alone")
	}
	p.has("main", "ann")
	p.has("#player", "This key can read, but change nothing.")
	if eval[bool](p, "Boolean(document.querySelector('[data-act]'))") {
		t.Error("an action is offered that the key may not")
	}
	// If the key loses a right while the page is open, the server's answer says so.
	p = browse(t, s.address, wide, "/players/ann")
	p.enter("support")
	p.has("main", "Starlight")
	if n := eval[int](p, "document.querySelectorAll('[data-act]').length"); n != 2 {
		t.Errorf("%d actions are offered, want grant and take", n)
	}
	s.keyFile("read support")
	p.act("grant", map[string]string{"item": "plate", "quantity": "1"}, "ann gets")
	p.has("dialog [role=alert]", "This key cannot do that.")
	s.keyFile(keyed...)
	if got := s.holdings("ann")["plate"]; got != 1 {
		t.Errorf("ann has %d plates, want 1", got)
	}
	for path, want := range map[string]string{"/players": "This key cannot list players", "/pools": "Harvest Moon, box 1", "/operations": "This key cannot do that."} {
		p := browse(t, s.address, wide, path)
		p.enter("stall")
		p.has("main", want)
	}
}

// tab presses Tab until the focus is where it should be.
func (p *page) tab(selector string) {
	p.t.Helper()
	p.until("document.querySelector(" + quote(selector) + ")")
	for range 80 {
		p.do(chromedp.KeyEvent(kb.Tab))
		if eval[bool](p, "document.activeElement.matches("+quote(selector)+")") {
			return
		}
	}
	p.t.Fatalf("Tab never comes to %s", selector)
}

// TestKeyboard: a player is found, and given something, with the keyboard alone.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s := open(t, false, festival)
	s.do(kuji.Register{ID: "r", Player: "ann"})
	p := browse(t, s.address, wide, "/catalog")
	p.has("main", "Lantern Festival")
	p.tab(".skip")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("document.activeElement.id === 'main'")
	p.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(8))) // back into the navigation
	p.until("document.activeElement.closest('nav.tabs')")
	p.tab("a[href^='#/players']")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("document.activeElement.matches('h1')")
	p.tab("input[name=player]")
	p.do(chromedp.KeyEvent("ann" + kb.Enter))
	p.tab("[data-act=grant]")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("document.activeElement.matches('dialog [name=item]')")
	p.do(chromedp.KeyEvent("plate"))
	p.tab("dialog [name=quantity]")
	p.do(chromedp.KeyEvent("2"))
	p.tab("dialog [name=reason]")
	p.do(chromedp.KeyEvent("by hand" + kb.Enter))
	p.has("dialog", "ann gets 2 × Small plate.")
	p.tab("dialog [name=confirm]")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.has("dialog .chip.good", "OK")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("!document.querySelector('dialog')")
	if got := s.holdings("ann")["plate"]; got != 2 {
		t.Errorf("ann has %d plates, want 2", got)
	}
}

// hostile are texts that would do something in a page that takes them for HTML, a URL or a template.
var hostile = []string{
	`<img src=x onerror=alert(1)>`, `"><script>alert(1)</script>`, `'-alert(1)-'`, `javascript:alert(1)`, "${alert(1)}`", `{{constructor}}`,
	`<svg/onload=alert(1)>`, `%3Cscript%3Ealert(1)`, `</textarea><b>x`, `<a href=javascript:alert(1)>x`, "\u202eevil", `../../x?y#z&amp;`,
	`__proto__`, `constructor`, `<iframe srcdoc=x>`,
}

// TestHostileTexts: ids, names and reasons are texts, whatever they look like.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	named := func(text string) string { return quote(strings.ReplaceAll(text, "\u202e", "")) } // which no catalog takes
	yaml := "kuji: 1\nname: " + quote(hostile[0]) + "\nitems:\n"
	for i, text := range hostile {
		yaml += fmt.Sprintf("  item-%d: {name: %s}\n", i, named(text))
	}
	yaml += "pools:\n"
	for i, text := range hostile {
		yaml += fmt.Sprintf("  pool-%d: {name: %s, entries: [{id: e, weight: 1, reward: {items: {item-%d: 1}}}]}\n", i, named(text), i)
	}
	s := open(t, true, []byte(yaml))
	admin, reward := s.client("ops"), s.rewards("ops")
	for i, text := range hostile {
		if _, err := reward.Grant(t.Context(), &kujiv1.GrantRequest{RequestId: text, Player: text, Items: []*kujiv1.Stack{{Item: fmt.Sprint("item-", i), Quantity: 1}}, Reason: text, Metadata: text}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if _, err := admin.Block(t.Context(), &kujiv1.BlockRequest{RequestId: "block " + text, Player: text, Reason: text}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	p := browse(t, s.address, wide, "/players")
	p.enter("ops")
	eval[any](p, "window.hurt = 0; window.alert = () => { window.hurt++ }; 0")
	harmless := func(what string) {
		t.Helper()
		if bad := eval[string](p, `window.hurt ? "it ran" : [...document.querySelectorAll("#app script, #app iframe, #app img, #app [onerror], #app [onload], #app b.x, #app a[href^='javascript:']")].map((e) => e.outerHTML).join()`); bad != "" {
			t.Errorf("%s: %s", what, bad)
		}
	}
	p.has("main", hostile[1])
	harmless("list")
	for i, text := range hostile {
		eval[any](p, "location.hash = `#/players/${encodeURIComponent("+quote(text)+")}`")
		p.until(fmt.Sprintf("document.querySelector('#player h2')?.innerText === %s && document.querySelector('#why')?.innerText.includes(%[1]s)", quote(text)))
		p.until(fmt.Sprintf("document.querySelector('#why tbody')?.innerText.includes(%s)", quote(text)))
		if i == 0 {
			p.has("#player ~ .cards", text)
		}
		harmless("player " + text)
	}
	for _, path := range []string{"/pools", "/catalog", "/catalog/versions", "/disclosure", "/operations"} {
		p.visit(path)
		p.until("document.querySelector('main').innerText.length > 60 && !document.querySelector('main [aria-busy]')")
		harmless(path)
	}
	p.visit("/pools")
	p.has("main", hostile[2])
}

// TestTurningTexts: a confirmation names what happens, also if an id has a character that turns around what
// follows: it is shown, and turns nothing.
func TestTurningTexts(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	id := "ann\u202emoc"
	if _, err := s.rewards("ops").Grant(t.Context(), &kujiv1.GrantRequest{RequestId: "g", Player: id, Items: []*kujiv1.Stack{{Item: "plate", Quantity: 1}}}); err != nil {
		t.Fatal(err)
	}
	p := browse(t, s.address, wide, "/players/"+url.PathEscape(id))
	p.enter("ops")
	p.press("[data-act=block]")
	p.set("dialog [name=reason]", "test")
	p.press("dialog [name=preview]")
	p.has("dialog", "ann[U+202E]moc")
	p.until("!document.querySelector('dialog').innerText.includes('\\u202e')")
}
