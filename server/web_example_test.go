package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// webExample opens the page in examples/web in a real browser, from another origin than the servers'.
type webExample struct {
	browser string
	pages   *httptest.Server
	shown   chan string // what pages have sent of themselves
	keyFile string
	keys    *access.Keys
	tokens  *tokens
}

func newWebExample(t *testing.T) *webExample {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here, so examples/web was not tried: apt-get install chromium")
	}
	w := &webExample{browser: browser, shown: make(chan string, 1), tokens: newTokens(t)}
	w.pages = httptest.NewServer(trying(http.FileServer(http.Dir("../examples/web")), w.shown))
	t.Cleanup(w.pages.Close)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "players.json"), w.tokens.public, 0o600); err != nil {
		t.Fatal(err)
	}
	w.keyFile = filepath.Join(dir, "keys")
	writeKeys(t, w.keyFile, "read,draw jwks=players.json players algs=EdDSA issuer=https://id.example audience=kuji")
	if w.keys, err = access.LoadKeys(w.keyFile); err != nil {
		t.Fatal(err)
	}
	return w
}

// start serves a catalog to the page. Commits are fsynced: the feed shows only that.
func (w *webExample) start(t *testing.T, source string) *fixture {
	t.Helper()
	f := startWith(t, kuji.Options{}, server.Options{Keys: w.keys, Origins: []string{w.pages.URL}})
	if source != "" {
		applyTo(t, f, "default", source)
	}
	return f
}

// open returns what the page shows in the end, after it has pressed its button once, if it could.
func (w *webExample) open(t *testing.T, page, at, pool, player, token string) string {
	t.Helper()
	given := url.Values{"server": {at}, "pool": {pool}, "player": {player}, "token": {token}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, w.browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=10000", "--dump-dom", w.pages.URL+page+"#"+given.Encode()).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, body, _ := strings.Cut(string(out), "<main ")
	body, _, _ = strings.Cut(body, "</main>")
	return body
}

// webCatalog has a pool for each way in which a draw can end.
const webCatalog = `
kuji: 1
name: {en: Shop, de: Laden}
rarities: {common: {name: {en: Common, de: Gewöhnlich}}, epic: {name: {en: Epic, de: Episch}}}
items:
  gem: {kind: currency, name: {en: Gem, de: Edelstein}, rarity: common}
  sword: {name: {en: Long sword, de: Langschwert}, rarity: epic, icon: /sword.png, description: {en: It sings., de: Es singt.}}
pools:
  wheel: {name: {en: Wheel, de: Glücksrad}, description: {en: Turn it., de: Dreh es.}, entries: [{id: x, weight: 1, reward: {items: {gem: 5, sword: 1}}}]}
  once: {limits: [{per: forever, draws: 1}], entries: [{id: x, weight: 1, reward: {items: {sword: 1}}}]}
  daily: {price: {gem: 1000000}, free: {per: day}, entries: [{id: x, weight: 1, reward: {items: {sword: 1}}}]}
  dear: {price: {gem: 1000}, entries: [{id: x, weight: 1, reward: {items: {sword: 1}}}]}
  last: {mode: raffle, entries: [{id: only, stock: 1, reward: {items: {sword: 1}}}]}
  future: {starts: 2100-01-01T00:00:00Z, entries: [{id: x, weight: 1}]}
  past: {ends: 2001-01-01T00:00:00Z, entries: [{id: x, weight: 1}]}
  vip: {when: {holds: {sword: 1000}}, entries: [{id: x, weight: 1}]}
  blank: {entries: [{id: x, weight: 1}]}
start: {gem: 100}
`

// TestWebExample: the page draws with a player's token, and has a state for every answer.
func TestWebExample(t *testing.T) {
	w := newWebExample(t)
	f := w.start(t, webCatalog)
	ann := w.tokens.of("ann")
	for _, tt := range []struct {
		name, pool, player, token string
		want                      []string
	}{
		{"a draw", "once", "ann", ann, []string{`data-state="STATUS_OK"`, "You got 1 × Long sword.", "0 of 1 draws left", `class="draw STATUS_OK"`, "once: 1 × Long sword", `<small>Epic</small>`, "A draw: Free"}},
		{"the limit", "once", "ann", ann, []string{`data-state="STATUS_LIMIT_REACHED"`, "That was all for now.", "There are no more draws for you here.", `class="draw STATUS_LIMIT_REACHED"`}},
		{"a free draw", "daily", "ann", ann, []string{`data-state="STATUS_OK"`, "free again ", "A draw: 1,000,000 × Gem"}},
		{"no free draw left", "daily", "ann", ann, []string{`data-state="STATUS_INSUFFICIENT_ITEMS"`, "you need 1,000,000 × Gem, and have 100", "free again "}},
		{"too poor", "dear", "ann", ann, []string{`data-state="STATUS_INSUFFICIENT_ITEMS"`, "you need 1,000 × Gem, and have 100"}},
		{"the last one", "last", "ann", ann, []string{`data-state="STATUS_OK"`}},
		{"sold out", "last", "ann", ann, []string{`data-state="STATUS_SOLD_OUT"`, "Sold out.", "Nothing was taken from you."}},
		{"not started", "future", "ann", ann, []string{`data-state="STATUS_NOT_STARTED"`, "Not yet.", "It begins "}},
		{"ended", "past", "ann", ann, []string{`data-state="STATUS_ENDED"`, "It is over.", "It ended "}},
		{"not eligible", "vip", "ann", ann, []string{`data-state="STATUS_NOT_ELIGIBLE"`, "This is not for you yet."}},
		{"nothing", "blank", "ann", ann, []string{`data-state="STATUS_OK"`, "You got nothing this time."}},
		{"no such pool", "none", "ann", ann, []string{`data-state="not-found"`, "There is no such pool."}},
		{"another player's token", "once", "ann", w.tokens.of("bob"), []string{`data-state="signed-out"`, "Your sign-in does not allow this."}},
		{"a bad token", "once", "ann", "x", []string{`data-state="signed-out"`, "Your sign-in is not valid any more."}},
		{"no parameters", "once", "", "", []string{`data-state="no-parameters"`, "After the #, the address of this page needs player, token."}},
	} {
		dom := w.open(t, "/try.html?lang=en", f.url, tt.pool, tt.player, tt.token)
		for _, want := range tt.want {
			if !strings.Contains(dom, want) {
				t.Errorf("%s: the page has no %q:\n%s", tt.name, want, dom)
			}
		}
		if strings.Contains(dom, "undefined") || strings.Contains(dom, "{0}") || strings.Contains(dom, "NaN") {
			t.Errorf("%s: a text lacks something:\n%s", tt.name, dom)
		}
	}
	if dom := w.open(t, "/try.html?lang=en", w.pages.URL, "once", "ann", ann); !strings.Contains(dom, `data-state="foreign"`) || !strings.Contains(dom, "does not answer as Kuji does") {
		t.Errorf("a page of another server:\n%s", dom)
	}
	closed := start(t, server.Options{Keys: w.keys, Origins: []string{"https://shop.example"}})
	if dom := w.open(t, "/try.html?lang=en", closed.url, "free", "ann", ann); strings.Contains(dom, "STATUS_OK") || !strings.Contains(dom, `data-state="offline"`) {
		t.Errorf("a page of another site draws:\n%s", dom)
	}
}

// TestWebExampleLanguages: names and words come in the language of ?lang, the rarest first, and so do the odds.
func TestWebExampleLanguages(t *testing.T) {
	w := newWebExample(t)
	f := w.start(t, webCatalog)
	for lang, want := range map[string][]string{
		"de":    {"Glücksrad", "Dreh es.", "Du erhältst 5 × Edelstein und 1 × Langschwert.", "<small>Episch</small>", `title="Es singt."`, `src="/sword.png"`, "Eine Ziehung: Gratis"},
		"de-AT": {"Du erhältst 5 × Edelstein und 1 × Langschwert."},
		"ja":    {"Wheel", "5 × Gem、1 × Long sword を手に入れました。", "持ち物"},
		"fr":    {"You got 5 × Gem and 1 × Long sword."},
	} {
		dom := w.open(t, "/try.html?lang="+lang, f.url, "wheel", "ann", w.tokens.of("ann"))
		for _, text := range want {
			if !strings.Contains(dom, text) {
				t.Errorf("in %s the page has no %q:\n%s", lang, text, dom)
			}
		}
		if got := regexp.MustCompile(`(?s)id="got".*?</div>`).FindString(dom); strings.Index(got, "sword.png") > strings.LastIndex(got, "r1") {
			t.Errorf("in %s the common comes before the rare: %s", lang, got)
		}
	}
	if dom := w.open(t, "/odds.html?lang=de", f.url, "wheel", "ann", w.tokens.of("ann")); !strings.Contains(dom, `<section class="kuji-odds" lang="de">`) || !strings.Contains(dom, "Edelstein ×5 + Langschwert") {
		t.Errorf("the odds:\n%s", dom)
	}
}

// TestWebExampleRetries: a draw whose answers are lost, and one of a server that is away for a while, are sent again
// under the same id, and happen once.
func TestWebExampleRetries(t *testing.T) {
	w := newWebExample(t)
	f := w.start(t, webCatalog)
	var mu sync.Mutex
	ids, answers := map[string]int{}, 0
	// The way to the server loses the first two answers to draws, and says after that once that the server is away.
	way := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/Draw") {
			body := peek(t, r)
			mu.Lock()
			ids[regexp.MustCompile(`"requestId":"([^"]*)"`).FindString(body)]++
			answers++
			n := answers
			mu.Unlock()
			switch {
			case n <= 2:
				f.server.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			case n == 3:
				rw.Header().Set("Access-Control-Allow-Origin", w.pages.URL)
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(http.StatusServiceUnavailable)
				_, _ = rw.Write([]byte(`{"code":"unavailable","message":"the server ends"}`))
				return
			}
		}
		f.server.ServeHTTP(rw, r)
	}))
	defer way.Close()
	dom := w.open(t, "/try.html?lang=en", way.URL, "once", "ann", w.tokens.of("ann"))
	if !strings.Contains(dom, `data-state="STATUS_OK"`) || !strings.Contains(dom, "You got 1 × Long sword.") {
		t.Errorf("after lost answers:\n%s", dom)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ids) != 1 || answers != 4 {
		t.Errorf("%d draws sent under %v", answers, ids)
	}
	if v, err := f.engine.Realm("default"); err != nil {
		t.Fatal(err)
	} else if p, err := v.Player(t.Context(), "ann"); err != nil || p.Items[1].Quantity != 1 {
		t.Errorf("the player has %v, %v", p.Items, err)
	}
	for page, want := range map[string]string{"/away.html?lang=en": "No connection.", "/away.html?lang=de": "Keine Verbindung."} {
		dom := w.open(t, page, way.URL, "once", "bob", w.tokens.of("bob"))
		if !strings.Contains(dom, `data-state="offline"`) || !strings.Contains(dom, want) {
			t.Errorf("offline:\n%s", dom)
		}
	}
}

// TestWebExampleWaits: with a rate that is lower than what the page and a draw ask for at once, the page waits as it is
// told, becomes ready and draws. It asks for no more than it shows.
func TestWebExampleWaits(t *testing.T) {
	for _, rate := range []int{2, 5} {
		w := newWebExample(t)
		writeKeys(t, w.keyFile, fmt.Sprintf("read,draw jwks=players.json players algs=EdDSA issuer=https://id.example audience=kuji rate=%d", rate))
		if err := w.keys.Reload(); err != nil {
			t.Fatal(err)
		}
		f := w.start(t, webCatalog)
		var mu sync.Mutex
		good, busy := map[string]int{}, 0
		way := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			answer := &statusWriter{ResponseWriter: rw}
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				if answer.status == http.StatusServiceUnavailable {
					busy++
				} else if r.Method != http.MethodOptions {
					good[path.Base(r.URL.Path)]++
				}
			}()
			f.server.ServeHTTP(answer, r)
		}))
		dom := w.openUntil(t, "/shown.html?lang=en", way.URL, "once", "ann", w.tokens.of("ann"))
		for _, want := range []string{`data-state="STATUS_OK"`, "You got 1 × Long sword.", "0 of 1 draws left", `class="draw STATUS_OK"`, `<b dir="auto">Long sword</b>`} {
			if !strings.Contains(dom, want) {
				t.Errorf("with rate=%d the page has no %q:\n%s", rate, want, dom)
			}
		}
		way.CloseClientConnections() // the feed
		way.Close()
		mu.Lock()
		if got := good["GetPool"] + good["GetPlayer"]; good["ListDisplays"] != 1 || good["Draw"] != 1 || got > 4 || rate == 2 && busy == 0 {
			t.Errorf("with rate=%d the page asks for %v, and %d times too soon", rate, good, busy)
		}
		mu.Unlock()
	}
}

// openUntil opens the page in the browser's own time, and returns what it shows once its script has sent it.
func (w *webExample) openUntil(t *testing.T, page, at, pool, player, token string) string {
	t.Helper()
	given := url.Values{"server": {at}, "pool": {pool}, "player": {player}, "token": {token}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	browser := exec.CommandContext(ctx, w.browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-port=0", w.pages.URL+page+"#"+given.Encode())
	browser.Cancel = func() error { return browser.Process.Signal(os.Interrupt) }
	browser.WaitDelay = 10 * time.Second
	if err := browser.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = browser.Wait() // it was ended
	}()
	select {
	case dom := <-w.shown:
		return dom
	case <-ctx.Done():
		t.Error("the page did not come so far")
		return ""
	}
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// trying serves, as /try.html, the page with a script that presses the button; as /odds.html with one that opens the
// odds; as /away.html with one that loses each draw; as /shown.html with one that presses the button and sends what the
// page shows in the end.
func trying(next http.Handler, shown chan<- string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		script := map[string]string{"/try.html": pressing, "/odds.html": opening, "/away.html": pressing + losing, "/shown.html": showing}[r.URL.Path]
		if r.Method == http.MethodPost && r.URL.Path == "/shown" {
			dom, _ := io.ReadAll(r.Body)
			select {
			case shown <- string(dom):
			default: // one is enough
			}
			return
		}
		if script == "" {
			next.ServeHTTP(w, r)
			return
		}
		page, err := os.ReadFile("../examples/web/index.html")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(strings.Replace(string(page), "</html>", "<script>"+script+"</script></html>", 1)))
	})
}

const pressing = `
	const button = document.getElementById("draw");
	new MutationObserver((_, observer) => {
		if (button.disabled) return;
		observer.disconnect();
		button.click();
	}).observe(button, {attributes: true});
	// The first read after a draw fails: the draw has worked all the same.
	const fetched = fetch;
	let drawn = false;
	fetch = (url, ...rest) => {
		if (drawn && url.endsWith("/GetPool")) {
			drawn = false;
			return Promise.reject(new Error("lost"));
		}
		drawn ||= url.endsWith("/Draw");
		return fetched(url, ...rest);
	};
	// The browser prints the page once nothing is loaded any more: close the feed when it has the draw.
	const Source = EventSource;
	EventSource = function (...args) {
		const feed = new Source(...args);
		feed.addEventListener("message", () => feed.close());
		return feed;
	};
`

const showing = `
	const button = document.getElementById("draw"), main = document.querySelector("main");
	let pressed = false;
	setInterval(() => {
		if (!pressed && !button.disabled) {
			pressed = true;
			button.click();
		}
		const all = main.outerHTML;
		if (pressed && main.dataset.state.startsWith("STATUS_") && all.includes("0 of 1 draws left") && all.includes('class="draw ')) setTimeout(() => navigator.sendBeacon("/shown", main.outerHTML), 1000);
	}, 100);
`

const opening = `
	const odds = document.getElementById("published");
	new MutationObserver((_, observer) => {
		if (odds.hidden) return;
		observer.disconnect();
		odds.open = true;
	}).observe(odds, {attributes: true});
	EventSource = function () {
		const none = new EventTarget();
		setTimeout(() => none.dispatchEvent(new Event("open")));
		return none;
	};
`

const losing = `
	const asked = fetch;
	fetch = (url, ...rest) => url.endsWith("/Draw") ? Promise.reject(new TypeError("Failed to fetch")) : asked(url, ...rest);
	EventSource = function () {
		const none = new EventTarget();
		setTimeout(() => none.dispatchEvent(new Event("open")));
		return none;
	};
`

// peek returns the body of a request, which can be read again.
func peek(t *testing.T, r *http.Request) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}
