package console_test

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/console"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/history"
	"github.com/kuji-dev/kuji/internal/cli"
	"github.com/kuji-dev/kuji/internal/historian"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
	"github.com/kuji-dev/kuji/server/access"
)

var (
	screenshots = flag.String("screenshots", "", "write the pictures of docs/console.md into this `folder`: docs/console")
	looks       = flag.String("looks", "", "write pictures of all pages, at three widths, light and dark, into this `folder`")
)

//go:embed testdata/festival.yaml
var festival []byte

// patience is how long a test waits for a page to become what it should be.
const patience = 20 * time.Second

// site is a server with the console, as kuji serve has it.
type site struct {
	t       *testing.T
	dir     string
	keys    *access.Keys
	address string
	cluster server.Cluster // nil: a server on its own
	engine  *kuji.Engine
	server  *server.Server
	history *historian.Historian
	served  chan error
}

// keyed are the keys of a site, by name; the name is the key.
var keyed = []string{"admin ops", "admin lead", "read,propose,simulate designer", "read,grant,consume support", "read watcher", "draw kiosk", "read,draw stall pools=box"}

// open starts a site with the catalog of the tests. With keys, it asks for one.
func open(t *testing.T, withKeys bool, yaml []byte) *site { return openIn(t, nil, withKeys, yaml) }

// openIn is open in a cluster.
func openIn(t *testing.T, cluster server.Cluster, withKeys bool, yaml []byte) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), address: "127.0.0.1:0", cluster: cluster}
	if withKeys {
		s.keyFile(keyed...)
		keys, err := access.LoadKeys(filepath.Join(s.dir, "keys"))
		if err != nil {
			t.Fatal(err)
		}
		s.keys = keys
	}
	s.start()
	t.Cleanup(s.stop)
	if cluster != nil {
		if _, err := s.server.Lead(t.Context(), server.DefaultRealm); err != nil {
			t.Fatal(err)
		}
	}
	if yaml != nil {
		c, err := catalog.Parse(yaml)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.realm().Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// keyFile writes the file of keys, and has it read again.
func (s *site) keyFile(keys ...string) {
	s.t.Helper()
	var lines []string
	for _, k := range keys {
		can, name, _ := strings.Cut(k, " ")
		name, options, _ := strings.Cut(name, " ")
		lines = append(lines, fmt.Sprintf("%s %x %s %s", can, sha256.Sum256([]byte("key-of-"+name)), name, options))
	}
	if err := os.WriteFile(filepath.Join(s.dir, "keys"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if s.keys != nil {
		if err := s.keys.Reload(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// start starts the server; again at the same address, after stop.
func (s *site) start() {
	s.t.Helper()
	var err error
	dir, o := filepath.Join(s.dir, "data"), kuji.Options{}
	if s.cluster != nil {
		dir, o = "", kuji.Options{Driver: drivertest.NewShared(drivertest.SharedOptions{}).Node(1), Key: [32]byte{1}, Follow: true}
	}
	if s.engine, err = kuji.Open(dir, o); err != nil {
		s.t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	s.history = historian.New(quiet, func(realm string) string { return filepath.Join(s.dir, realm+".db") }, history.Options{})
	s.server, err = server.New(s.engine, server.Options{Keys: s.keys, Console: handler(), History: s.history, Cluster: s.cluster, Version: "test", Logger: quiet})
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = l.Addr().String()
	s.served = make(chan error, 1)
	go func() { s.served <- s.server.Serve(l) }()
}

func (s *site) stop() {
	if s.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := errors.Join(s.server.Shutdown(ctx), <-s.served, s.history.Close(), s.engine.Close()); err != nil {
		s.t.Error(err)
	}
	s.server = nil
}

func (s *site) realm() *kuji.Realm {
	s.t.Helper()
	r, err := s.engine.Lookup(server.DefaultRealm)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *site) do(requests ...kuji.Request) []kuji.Result {
	s.t.Helper()
	var all []kuji.Result
	for _, r := range requests {
		res, err := s.realm().Do(s.t.Context(), r)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, res)
	}
	return all
}

// client calls the site as the holder of a key.
func (s *site) client(name string) kujiv1connect.AdminServiceClient {
	return kujiv1connect.NewAdminServiceClient(&http.Client{Transport: bearer("key-of-" + name)}, "http://"+s.address)
}

func (s *site) rewards(name string) kujiv1connect.RewardServiceClient {
	return kujiv1connect.NewRewardServiceClient(&http.Client{Transport: bearer("key-of-" + name)}, "http://"+s.address, connect.WithProtoJSON())
}

// bearer sends a key with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// chromium is the browser of all tests, started by the first one.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	ctx, _ := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("lang", "en-US"))...)
	ctx, endBrowser = chromedp.NewContext(ctx)
	_, err = chromedp.Run(ctx, chromedp.Title())
	return ctx, err
})

var endBrowser = func() {}

// asKuji makes the test's program the binary kuji, with these arguments.
const asKuji = "KUJI_CONSOLE_TEST_ARGS"

func TestMain(m *testing.M) {
	if args := os.Getenv(asKuji); args != "" {
		os.Args = append(os.Args[:1], strings.Split(args, " ")...)
		cli.Main(time.Now)
		return
	}
	m.Run() // its result is the process's exit code
	endBrowser()
}

// page is a tab of the browser. What goes wrong in it fails the test: errors on its console, exceptions,
// and what the policy of content forbids.
type page struct {
	t     *testing.T
	ctx   context.Context
	site  string
	close func() // the tab

	mu    sync.Mutex
	wrong []string
}

// look of a page: how wide it is, which colours and which zone the viewer has.
type view struct {
	width, height int64
	dark          bool
	zone          string
}

var wide = view{1280, 900, false, "Asia/Tokyo"}

// browse opens a tab at the console of a site, at a path after the #.
func browse(t *testing.T, address string, v view, path string) *page {
	t.Helper()
	browser, err := chromium()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("no chromium here, so the console was not tried: apt-get install chromium")
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, site: "http://" + address}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.heard))
	p.ctx, p.close = ctx, cancel
	t.Cleanup(func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, w := range p.wrong {
			t.Errorf("in the page: %s", w)
		}
	})
	scheme := map[bool]string{false: "light", true: "dark"}[v.dark]
	p.do(
		send(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: v.width, Height: v.height, DeviceScaleFactor: 1, Mobile: v.width < 500}),
		send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}),
		send(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}), // tests run beside each other
		send(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: v.zone}),
		chromedp.Navigate(p.site+console.Path+"#"+path))
	return p
}

// heard notes what goes wrong in the page.
func (p *page) heard(event any) {
	var what string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		what = e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning {
			return
		}
		for _, a := range e.Args {
			what += fmt.Sprintf("%s %s ", a.Value, a.Description)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level != cdplog.EntryLevelError && e.Entry.Level != cdplog.EntryLevelWarning {
			return
		}
		if u := strings.TrimPrefix(e.Entry.URL, p.site); e.Entry.Source == cdplog.EntrySourceNetwork && !strings.HasPrefix(u, console.Path) {
			return // the API has refused something: the page says so
		}
		what = fmt.Sprintf("%s %s", e.Entry.Text, e.Entry.URL)
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, what)
}

// send makes a command of the browser's protocol an action.
func send[P any](command cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// eval evaluates an expression in a page, and waits for its promise.
func eval[T any](p *page, js string) T {
	p.t.Helper()
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// until waits until an expression of JavaScript holds in the page.
func (p *page) until(js string) {
	p.t.Helper()
	end := time.Now().Add(patience)
	for {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("(() => { try { return Boolean("+js+") } catch { return false } })()"))
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			body, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText")) // the test has failed anyway
			p.t.Fatalf("never true: %s (%v)\nthe page:\n%.3000s", js, err, body)
		}
		select {
		case <-time.After(15 * time.Millisecond):
		case <-p.ctx.Done():
			p.t.Fatal(p.ctx.Err())
		}
	}
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // never: a string
	}
	return string(b)
}

// has waits until the page, or what a selector finds, has a text.
func (p *page) has(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("[...document.querySelectorAll(%s)].some((e) => e.innerText.replace(/\\s+/g, ' ').includes(%s))", quote(selector), quote(text)))
}

// press waits for a control that can be used, and clicks it.
func (p *page) press(selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%s) && !document.querySelector(%[1]s).disabled", quote(selector)))
	eval[any](p, fmt.Sprintf("document.querySelector(%s).click()", quote(selector)))
}

// set waits for a field, and gives it a value as typing does.
func (p *page) set(selector, value string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%s)", quote(selector)))
	eval[any](p, fmt.Sprintf(`(() => {
		const e = document.querySelector(%s);
		Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), "value").set.call(e, %s);
		e.dispatchEvent(new Event("input", {bubbles: true}));
		e.dispatchEvent(new Event("change", {bubbles: true}));
	})()`, quote(selector), quote(value)))
}

// visit goes to another page of the console, as a link does.
func (p *page) visit(path string) {
	p.t.Helper()
	eval[any](p, "location.hash = "+quote("#"+path))
}

// enter gives the page a key.
func (p *page) enter(name string) {
	p.t.Helper()
	p.set("input[name=key]", "key-of-"+name)
	p.press("form .button.primary")
	p.until("!document.querySelector('input[name=key]')")
}

//go:embed testdata/axe/axe.min.js
var axe string

// accessible runs axe-core, with the rules of WCAG 2.2 AA and its best practices.
func (p *page) accessible(what string) {
	p.t.Helper()
	eval[any](p, axe+`; 0`)
	found := eval[string](p, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]}).then((r) =>
		r.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 4).map((n) => "    " + n.html.slice(0, 200) + "\n      " + n.failureSummary.replaceAll("\n", " ")).join("\n")).join("\n"))`)
	if found != "" {
		p.t.Errorf("%s: axe-core says\n%s", what, found)
	}
}

// fits checks that a page scrolls down only.
func (p *page) fits(what string) {
	p.t.Helper()
	beyond := eval[string](p, `(() => { const w = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= w) return "";
		return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > w + 1 && !e.closest(".table, .diff, .at-fault, pre")).slice(0, 5).map((e) => e.outerHTML.slice(0, 160)).join("\n") || "something is wider than " + w; })()`)
	if beyond != "" {
		p.t.Errorf("%s: scrolls sideways:\n%s", what, beyond)
	}
}

// look writes a picture of the whole page, if those are wanted.
func (p *page) look(name string) {
	p.t.Helper()
	if *looks == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*looks, name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
