package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server"
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
