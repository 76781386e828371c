package console_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/console"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// get asks the handler, without a server around it.
func get(t *testing.T, name string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, console.Path+name, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler().ServeHTTP(w, r)
	return w
}

var handler = sync.OnceValue(console.Handler)

// TestHandler: pages have strict headers, come gzipped, and are not sent twice.
func TestHandler(t *testing.T) {
	w := get(t, "")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "<title>Kuji</title>") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q has no %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Content-Type": "text/html; charset=utf-8"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if w.Header().Get("Set-Cookie") != "" {
		t.Error("it sets a cookie")
	}
	tag := w.Header().Get("ETag")
	if w := get(t, "", "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("with the tag %s: %d, %d bytes", tag, w.Code, w.Body.Len())
	}
	if w := get(t, "main.js", "Accept-Encoding", "br, gzip;q=0.8"); w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("gzipped: %v", w.Header())
	}
	if w := get(t, "main.js", "Accept-Encoding", "gzip;q=0"); w.Header().Get("Content-Encoding") != "" {
		t.Errorf("gzipped: %v", w.Header())
	}
	for _, e := range regexp.MustCompile(`"([a-z-]+)"`).FindAllStringSubmatch(regexp.MustCompile(`const EXAMPLES = (.*)`).FindString(sources(t)["pages/catalog.js"]), -1) {
		w := get(t, "examples/"+e[1]+".yaml")
		if _, err := catalog.Parse(w.Body.Bytes()); err != nil || w.Header().Get("Content-Type") != "application/yaml" || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v %v", e[1], w.Code, err, w.Header())
		}
	}
	for _, name := range []string{"examples/examples.go", "examples/web/index.html", "nothing.js", "console.go", "vendor/README.md", "vendor/preact.LICENSE", "../console/main.js", "testdata/festival.yaml", "pages"} {
		if w := get(t, name); w.Code != 404 || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
}

// sources are the scripts of the console, without those of others, and the page.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == "vendor" || name == "testdata" {
			return fs.SkipDir
		}
		if ext := path.Ext(name); ext != ".js" && ext != ".html" {
			return nil
		}
		data, err := os.ReadFile(name)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var imported = regexp.MustCompile(`(?:from|import) "(\.[^"]+)"`)

// TestImports: what scripts import is served, and only by relative paths.
func TestImports(t *testing.T) {
	for name, text := range sources(t) {
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			if w := get(t, path.Join(path.Dir(name), m[1])); w.Code != 200 {
				t.Errorf("%s imports %s: %d", name, m[1], w.Code)
			}
		}
		for _, bad := range []string{"innerHTML", "eval(", "new Function", "document.write", "dangerouslySetInnerHTML", "insertAdjacentHTML", "document.cookie", `spellcheck="`} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
	}
}

var (
	usedText = regexp.MustCompile(`\bt\("([\w.]+)"`)
	usedPart = regexp.MustCompile("\\b(?:t\\(`|word\\(\")([\\w]+(?:\\.[\\w]+)*)[.\"]")
	anyText  = regexp.MustCompile(`"([a-z]+\.[\w.]+)"`)
	holes    = regexp.MustCompile(`\{(\w+)\}`)
)

// TestLanguageFiles: all languages have the same texts with the same places for values, every text that
// the pages use is there, and every one that is there is used.
func TestLanguageFiles(t *testing.T) {
	texts := map[string]map[string]string{}
	for _, language := range []string{"en", "de", "ja"} {
		data, err := os.ReadFile("lang/" + language + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]string
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		texts[language] = all
	}
	places := func(s string) string {
		found := holes.FindAllString(s, -1)
		slices.Sort(found)
		return fmt.Sprint(found)
	}
	en := texts["en"]
	for language, all := range texts {
		for key, text := range all {
			if en[key] == "" || strings.TrimSpace(text) == "" || places(text) != places(en[key]) {
				t.Errorf("%s: %s is %q, and %q in English", language, key, text, en[key])
			}
		}
		if len(all) != len(en) {
			t.Errorf("%s has %d texts, English %d", language, len(all), len(en))
		}
	}
	used, prefixes := map[string]bool{}, map[string]bool{}
	for _, text := range sources(t) {
		for _, m := range usedText.FindAllStringSubmatch(text, -1) {
			used[m[1]] = true
		}
		for _, m := range usedPart.FindAllStringSubmatch(text, -1) {
			prefixes[m[1]] = true
		}
		for _, m := range anyText.FindAllStringSubmatch(text, -1) {
			if en[m[1]] != "" {
				used[m[1]] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(used)) {
		if en[key] == "" {
			t.Errorf("the pages use %s, which is in no language", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(en)) {
		if !used[key] && !prefixes[key[:max(0, strings.LastIndex(key, "."))]] {
			t.Errorf("no page uses %s", key)
		}
	}
}

// TestServed: a server has the console under its path, leads there from /, asks for no key for it, and
// has the protection of a server without keys on it.
func TestServed(t *testing.T) {
	for _, withKeys := range []bool{false, true} {
		s := open(t, withKeys, nil)
		ask := func(method, path, host string, header ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, path, nil)
			r.Host = host
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			w := httptest.NewRecorder()
			s.server.ServeHTTP(w, r)
			return w
		}
		const host = "127.0.0.1:7700"
		for _, path := range []string{"/", "/console"} {
			if w := ask("GET", path, host); w.Code != http.StatusFound || w.Header().Get("Location") != console.Path {
				t.Errorf("keys %v: %s: %d %v", withKeys, path, w.Code, w.Header())
			}
		}
		if w := ask("GET", "/console/", host); w.Code != 200 || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("keys %v: %d %v", withKeys, w.Code, w.Header())
		}
		if w := ask("HEAD", "/console/main.js", host); w.Code != 200 || w.Body.Len() > 0 {
			t.Errorf("keys %v: HEAD: %d, %d bytes", withKeys, w.Code, w.Body.Len())
		}
		if w := ask("POST", "/console/", host); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("keys %v: POST: %d", withKeys, w.Code)
		}
		if w := ask("GET", "/consoles", host); w.Code != http.StatusNotImplemented {
			t.Errorf("keys %v: another path: %d", withKeys, w.Code)
		}
		if w := ask("GET", "/console/", "evil.example:7700"); (w.Code == 200) != withKeys {
			t.Errorf("keys %v: by a name that a foreign page points here: %d", withKeys, w.Code)
		}
	}
}

var (
	called  = regexp.MustCompile(`\b(?:call|send)\("(\w+)"`)
	adminOf = regexp.MustCompile(`(?s)const ADMIN = new Set\(\[(.*?)\]\)`)
	quoted  = regexp.MustCompile(`"(\w+)"`)
)

// TestMethods: what scripts call is in the contract, and in the service that api.js believes.
func TestMethods(t *testing.T) {
	scripts := sources(t)
	admin := map[string]bool{}
	for _, m := range quoted.FindAllStringSubmatch(adminOf.FindStringSubmatch(scripts["api.js"])[1], -1) {
		admin[m[1]] = true
	}
	services := kujiv1.File_kuji_v1_admin_service_proto.Services()
	rewards := kujiv1.File_kuji_v1_reward_service_proto.Services()
	found := 0
	for name, text := range scripts {
		for _, m := range called.FindAllStringSubmatch(text, -1) {
			in := rewards.Get(0)
			if admin[m[1]] {
				in = services.Get(0)
			}
			if found++; in.Methods().ByName(protoreflect.Name(m[1])) == nil {
				t.Errorf("%s calls %s, which %s has not", name, m[1], in.FullName())
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d calls were found", found)
	}
}
