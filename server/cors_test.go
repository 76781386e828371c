package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

// TestCrossOrigin: pages of allowed sites may call, others may not, and neither gets in without a key.
func TestCrossOrigin(t *testing.T) {
	const shop, evil = "https://shop.example", "https://shop.example.evil"
	f := newServer(t, server.Options{Keys: keyFile(t), Origins: []string{shop, "http://localhost:3000"}})
	bare := newServer(t, server.Options{Keys: keyFile(t)})
	const path = "/kuji.v1.RewardService/Draw"
	ask := func(f *fixture, method, path, origin, key string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(`{"player": "ann", "pool": "free"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", origin)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		f.server.ServeHTTP(w, r)
		return w
	}
	allowed := func(w *httptest.ResponseRecorder) string { return w.Header().Get("Access-Control-Allow-Origin") }
	question := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type"}
	for _, origin := range []string{shop, "http://localhost:3000"} {
		w := ask(f, "OPTIONS", path, origin, "", question...)
		h := w.Header()
		if w.Code != 204 || allowed(w) != origin || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") ||
			!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization") || h.Get("Access-Control-Max-Age") == "" || h.Get("Vary") != "Origin" {
			t.Errorf("preflight of %s: HTTP %d %v", origin, w.Code, h)
		}
		if w := ask(f, "POST", path, origin, writeKey); w.Code != 200 || allowed(w) != origin || !strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "Grpc-Status") {
			t.Errorf("a draw from %s: HTTP %d %v", origin, w.Code, w.Header())
		}
		if w := ask(f, "POST", path, origin, ""); w.Code != 401 || allowed(w) != origin {
			t.Errorf("a draw from %s without a key: HTTP %d %v, want 401 that the page can read", origin, w.Code, w.Header())
		}
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"preflight of another site":         ask(f, "OPTIONS", path, evil, "", question...),
		"preflight of null":                 ask(f, "OPTIONS", path, "null", "", question...),
		"preflight in other letters":        ask(f, "OPTIONS", path, "https://SHOP.example", "", question...),
		"preflight with a port":             ask(f, "OPTIONS", path, shop+":8443", "", question...),
		"preflight of metrics":              ask(f, "OPTIONS", "/metrics", shop, "", question...),
		"preflight of nothing":              ask(f, "OPTIONS", "/nothing", shop, "", question...),
		"preflight without allowed origins": ask(bare, "OPTIONS", path, shop, "", question...),
		"no preflight":                      ask(f, "OPTIONS", path, shop+"x", ""),
	} {
		if w.Code < 400 || allowed(w) != "" {
			t.Errorf("%s: HTTP %d %v", name, w.Code, w.Header())
		}
	}
	if w := ask(f, "POST", path, evil, writeKey); allowed(w) != "" || w.Header().Get("Vary") != "Origin" {
		t.Errorf("a draw from another site: %v", w.Header())
	}
	if w := ask(f, "GET", "/metrics", shop, readKey); w.Code != 200 || allowed(w) != "" {
		t.Errorf("metrics for a page: HTTP %d %v", w.Code, w.Header())
	}
	engine := newEngine(t, kuji.Options{})
	for _, origin := range []string{"*", "shop.example", "https://shop.example/", "https://shop.example/x", "https://*.example", "HTTPS://shop.example", "null", "",
		"https://shop.example:443", "http://shop.example:80", "https://shop.example:", "https://shop.example:08443", "https://shop.example:0", "https://shop.example:65536",
		"https://Shop.example", "https://büro.example", "https://[0:0::1]:8443", "https://ann@shop.example", "https://:8443"} {
		if _, err := server.New(engine, server.Options{Keys: keyFile(t), Origins: []string{origin}}); err == nil {
			t.Errorf("origin %q is taken", origin)
		}
	}
	for _, origin := range []string{"https://shop.example:80", "http://shop.example:443", "https://shop.example:8443", "http://[::1]:3000", "https://xn--bro-hoa.example"} {
		if _, err := server.New(engine, server.Options{Keys: keyFile(t), Origins: []string{origin}}); err != nil {
			t.Error(err)
		}
	}
	if _, err := server.New(engine, server.Options{Origins: []string{shop}}); err == nil {
		t.Error("pages of a site may do everything on a server without keys")
	}
}

// TestWebExample: the page in examples/web draws with a player's token in a real browser, from
// another origin.
func TestWebExample(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here, so examples/web was not tried: apt-get install chromium")
	}
	pages := httptest.NewServer(http.FileServer(http.Dir("../examples/web")))
	defer pages.Close()
	dir, k := t.TempDir(), newTokens(t)
	if err := os.WriteFile(filepath.Join(dir, "players.json"), k.public, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "keys")
	writeKeys(t, path, "read,draw jwks=players.json players algs=EdDSA issuer=https://id.example audience=kuji")
	keys, err := access.LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	open := func(f *fixture, player, pool, token string) string {
		t.Helper()
		given := url.Values{"server": {f.url}, "pool": {pool}, "player": {player}, "token": {token}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		page := pages.URL + "/try.html#" + given.Encode()
		out, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
			"--user-data-dir="+t.TempDir(), "--virtual-time-budget=10000", "--dump-dom", page).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, body, _ := strings.Cut(string(out), "<h1>")
		body, _, _ = strings.Cut(body, "<script")
		return body
	}
	pages.Config.Handler = trying(pages.Config.Handler)
	f := startWith(t, kuji.Options{}, server.Options{Keys: keys, Origins: []string{pages.URL}}) // fsynced: the feed shows only that
	for _, tt := range []struct {
		name, player, pool, token string
		want                      []string
	}{
		{"a draw", "ann", "once", k.of("ann"), []string{`<li class="STATUS_OK">You got`, "0 of 1 draws left.", "<li>100 Gem</li>", "<li>draw: ", `<p id="error" role="alert"></p>`}},
		{"the limit", "ann", "once", k.of("ann"), []string{`<li class="STATUS_LIMIT_REACHED">That was all for now`, `<li>draw: STATUS_LIMIT_REACHED`}},
		{"too poor", "ann", "dear", k.of("ann"), []string{`You need 1000 Gem and have 100`}},
		{"another player's token", "ann", "once", k.of("bob"), []string{`permission_denied: `}},
		{"a bad token", "ann", "once", "x", []string{`unauthenticated: `}},
		{"no parameters", "", "once", "", []string{`The address of this page lacks player, token behind its #`}},
	} {
		dom := open(f, tt.player, tt.pool, tt.token)
		for _, want := range tt.want {
			if !strings.Contains(dom, want) {
				t.Errorf("%s: the page has no %q:\n%s", tt.name, want, dom)
			}
		}
	}
	elsewhere := *f
	elsewhere.url = pages.URL // answers, but not as Kuji does
	if dom := open(&elsewhere, "ann", "once", k.of("ann")); !strings.Contains(dom, "does not answer as Kuji does") || strings.Contains(dom, "Unexpected token") {
		t.Errorf("a page of another server:\n%s", dom)
	}
	closed := start(t, server.Options{Keys: keys, Origins: []string{"https://shop.example"}})
	if dom := open(closed, "ann", "free", k.of("ann")); strings.Contains(dom, "STATUS_OK") || !strings.Contains(dom, "Failed to fetch") {
		t.Errorf("a page of another site draws:\n%s", dom)
	}
}

// trying serves, as /try.html, the page with a script behind it that presses the button.
func trying(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/try.html" {
			next.ServeHTTP(w, r)
			return
		}
		page, err := os.ReadFile("../examples/web/index.html")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(append(page, `<script>
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
		</script>`...))
	})
}

// TestOtherSites checks that pages of other web sites cannot use a server that
// asks for no key, neither directly nor by a name that they point at loopback.
func TestOtherSites(t *testing.T) {
	open := newServer(t, server.Options{Hosts: []string{"Kuji.internal"}})
	keys := newServer(t, server.Options{Keys: keyFile(t)})
	const body = `{"player":"ann","pool":"free"}`
	for _, tt := range []struct {
		name   string
		f      *fixture
		host   string
		header []string
		want   int
	}{
		{"loopback", open, "127.0.0.1:7700", nil, 200},
		{"loopback name", open, "localhost:7700", nil, 200},
		{"loopback IPv6", open, "[::1]:7700", nil, 200},
		{"loopback IPv6 without port", open, "[::1]", nil, 200},
		{"allowed host", open, "kuji.INTERNAL:7700", nil, 200},
		{"rebound name", open, "evil.example.com:7700", nil, 403},
		{"no host", open, "", nil, 403},
		{"same origin", open, "127.0.0.1:7700", []string{"Origin", "http://127.0.0.1:7700", "Sec-Fetch-Site", "same-origin"}, 200},
		{"another site", open, "127.0.0.1:7700", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another origin", open, "127.0.0.1:7700", []string{"Origin", "https://evil.example.com"}, 403},
		{"any host with a key", keys, "kuji.example.com", []string{"Authorization", "Bearer " + writeKey}, 200},
		{"another site without a key", keys, "kuji.example.com", []string{"Sec-Fetch-Site", "cross-site"}, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/kuji.v1.RewardService/Draw", strings.NewReader(body))
			r.Host = tt.host
			r.Header.Set("Content-Type", "application/json")
			for i := 0; i < len(tt.header); i += 2 {
				r.Header.Set(tt.header[i], tt.header[i+1])
			}
			w := httptest.NewRecorder()
			tt.f.server.ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("%d %s, want %d", w.Code, w.Body, tt.want)
			}
		})
	}
}
