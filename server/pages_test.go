package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/server"
)

// TestPagesOfTheConsole: without a key, the pages and the contract are there, and nothing else, whatever a path
// looks like. A server without keys answers to loopback names only, with pages and calls alike, and no page of
// another site makes it work.
func TestPagesOfTheConsole(t *testing.T) {
	const call = "/kuji.v1.RewardService/GetAccess"
	ask := func(f *fixture, method, host, path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://localhost/", nil)
		if method == http.MethodPost {
			r = httptest.NewRequest(method, "http://localhost/", strings.NewReader("{}"))
		}
		r.Host, r.URL.Path, r.RequestURI = host, path, path
		if at := strings.IndexByte(path, '?'); at > 0 {
			r.URL.Path, r.URL.RawQuery = path[:at], path[at+1:]
		}
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		f.server.ServeHTTP(w, r)
		return w
	}
	files := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // as the console's: by whole names
		if name := strings.TrimPrefix(r.URL.Path, server.ConsolePath); name != "" && name != "main.js" {
			http.NotFound(w, r)
		}
	})
	keyed := newServer(t, server.Options{Keys: keyFile(t), Console: files})
	open := newServer(t, server.Options{Console: files})
	for path, want := range map[string]int{
		"/": 302, "/console": 302, "/console/": 200, "/console/main.js": 200, "/openapi.json": 200,
		"/console/../metrics": 404, "/console//main.js": 404, "/console/%2e%2e/metrics": 404, "/console/vendor": 404,
		"//console/": 501, "/console.": 501, "/consoles/": 501, "/openapi.json/": 501, "/metrics": 401, "/events": 401, call: 401,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if path == call {
				continue
			}
			if w := ask(keyed, method, "localhost", path); w.Code != want || method == http.MethodHead && want == 200 && w.Body.Len() > 0 && path != "/openapi.json" {
				t.Errorf("%s %s: HTTP %d with %d bytes, want %d", method, path, w.Code, w.Body.Len(), want)
			}
		}
		if w := ask(keyed, http.MethodPost, "localhost", path); w.Code < 400 {
			t.Errorf("POST %s: HTTP %d", path, w.Code)
		}
		if w := ask(open, http.MethodGet, "evil.example", path); w.Code != 403 {
			t.Errorf("GET %s of evil.example: HTTP %d, want 403: its name leads to this machine", path, w.Code)
		}
	}
	if w := ask(open, http.MethodPost, "evil.example", call); w.Code != 403 {
		t.Errorf("a call to evil.example: HTTP %d", w.Code)
	}
	if w := ask(open, http.MethodPost, "localhost", call); w.Code != 200 {
		t.Errorf("a call: HTTP %d", w.Code)
	}
	const work = "/kuji.v1.AdminService/Simulate?connect=v1&encoding=json&message=%7B%7D"
	if w := ask(open, http.MethodGet, "localhost", work, "Sec-Fetch-Site", "cross-site"); w.Code < 400 {
		t.Errorf("a page of another site simulates: HTTP %d", w.Code)
	}
	const read = "/kuji.v1.RewardService/GetDisclosure?connect=v1&encoding=json&message=%7B%7D"
	if w := ask(open, http.MethodGet, "localhost", read, "Sec-Fetch-Site", "cross-site"); w.Code != 403 {
		t.Errorf("a page of another site has odds computed: HTTP %d %s", w.Code, w.Body)
	}
	if w := ask(open, http.MethodGet, "localhost", read, "Sec-Fetch-Site", "same-origin"); w.Code == 403 {
		t.Errorf("a page of this site reads: HTTP %d %s", w.Code, w.Body)
	}
	if w := ask(open, http.MethodGet, "localhost", "/console/", "Sec-Fetch-Site", "cross-site"); w.Code != 200 {
		t.Errorf("a link of another site to the console: HTTP %d", w.Code)
	}
}
