package console_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/console"
	"github.com/kuji-dev/kuji/internal/proxy"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// TestRestart: a page says since when the server does not answer, and goes on by itself.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := open(t, false, festival)
	p := browse(t, s.address, wide, "/operations")
	p.has("[data-realm=default]", "Epoch 1")
	s.stop()
	p.has("#lost", "The server has not answered since")
	s.start()
	p.until("!document.querySelector('#lost')")
	p.has("[data-realm=default]", "Epoch 2")
}

// TestFeedBreaks: the page of pools says since when it has heard nothing, comes back by itself, and
// misses no draw of that time.
func TestFeedBreaks(t *testing.T) {
	t.Parallel()
	s := open(t, false, festival)
	between, err := proxy.Listen("127.0.0.1:0", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := between.Close(); err != nil {
			t.Error(err)
		}
	})
	p := browse(t, between.Addr(), wide, "/pools")
	p.has("main [role=status] .chip.good", "Live")
	s.do(kuji.Draw{ID: "before", Player: "before", Pool: "daily", Count: 1})
	p.has("#newest", "before Daily bonus")
	between.Refuse(true)
	between.Cut()
	p.has("#feed-lost", "No connection since")
	s.do(kuji.Draw{ID: "meanwhile", Player: "meanwhile", Pool: "daily", Count: 1})
	between.Refuse(false)
	p.has("main [role=status] .chip.good", "Live")
	p.has("#newest", "meanwhile Daily bonus")
	if n := eval[int](p, "[...document.querySelectorAll('#newest .feedline')].length"); n != 2 {
		t.Errorf("%d draws are shown, want 2", n)
	}
}

// fifty is a catalog of fifty pools.
func fifty() []byte {
	var yaml strings.Builder
	yaml.WriteString("kuji: 1\nname: Fifty\nitems: {gem: {name: Gem}, dust: {name: Dust}}\npools:\n")
	for i := range 50 {
		fmt.Fprintf(&yaml, "  pool-%02d: {name: Pool %d, entries: [{id: gem, weight: 1, stock: 1000000, reward: {items: {gem: 1}}}, {id: dust, weight: 9, reward: {items: {dust: 1}}}]}\n", i, i)
	}
	return []byte(yaml.String())
}

// pools50 are the pools of fifty.
func pools50() (all []string) {
	for i := range 50 {
		all = append(all, fmt.Sprintf("pool-%02d", i))
	}
	return all
}

// drawing draws from pools in turn, until the test ends: each time `each` of them, with a pause.
func drawing(t *testing.T, s *site, pools []string, each int, pause time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; {
			var batch []kuji.Request
			for range each {
				batch = append(batch, kuji.Draw{ID: fmt.Sprintf("live-%d-%d", each, n), Player: fmt.Sprintf("visitor-%04d", n%5000), Pool: pools[n%len(pools)], Count: 1})
				n++
			}
			if _, err := s.realm().DoAll(ctx, batch); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

// TestPoolsLive: the page shows how fast fifty pools go and what they give, compares odds, and only
// samples the feed when too much comes.
func TestPoolsLive(t *testing.T) {
	t.Parallel()
	s := open(t, false, fifty())
	drawing(t, s, pools50(), 50, 50*time.Millisecond)
	p := browse(t, s.address, wide, "/pools")
	p.until("Number(document.querySelector('main section strong').innerText.replace(/,/g, '')) > 0")
	p.until("document.querySelectorAll('#newest .feedline').length === 30")
	p.until("[...document.querySelectorAll('[data-pool]')].slice(0, 6).every((e) => Number(e.querySelector('strong').innerText) > 0)")
	p.press("[data-pool=pool-03] a")
	p.has("#odds-seen", "Gem")
	p.until("document.querySelector('#odds-seen .band b')")
	p.visit("/pools")
	drawing(t, s, pools50(), 1000, time.Millisecond)
	p.has("main", "this list is a sample")
	if n := eval[int](p, "document.querySelectorAll('#newest .feedline').length"); n > 30 {
		t.Errorf("%d draws are shown at once", n)
	}
}

// TestAxis: the labels of a plot over time are clocks of the viewer's zone that differ and do not touch, from the
// first second on, on a phone too.
func TestAxis(t *testing.T) {
	t.Parallel()
	s := open(t, false, festival)
	drawing(t, s, []string{"daily"}, 1, 100*time.Millisecond)
	for _, v := range []view{{360, 800, true, "Asia/Kolkata"}, {768, 1000, false, "Asia/Kolkata"}, wide} {
		p := browse(t, s.address, v, "/operations")
		p.has("main", "Server")
		// What is drawn, by canvas: the labels are no text of the page.
		eval[any](p, `(() => {
			const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
			window.drawn = [];
			window.wrong = [];
			window.all = new Set();
			CanvasRenderingContext2D.prototype.clearRect = function (...at) {
				if (window.all.size > 0 && window.drawn.length < 2) window.wrong.push("an axis with " + window.drawn.length + " labels");
				window.drawn = [];
				return clearRect.apply(this, at);
			};
			CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
				const half = this.measureText(text).width / 2;
				if (/:/.test(text)) {
					window.all.add(text);
					for (const d of window.drawn) if (d.text === text || (x - half < d.right + 4 && x + half > d.left - 4)) window.wrong.push(d.text + " and " + text);
					if (x - half < 0 || x + half > this.canvas.width) window.wrong.push(text + " is cut off");
					window.drawn.push({ text, left: x - half, right: x + half });
				}
				return fillText.call(this, text, x, y, ...rest);
			};
		})()`)
		p.visit("/pools")
		p.until("window.drawn.length > 1")
		p.look(fmt.Sprintf("axis-first-%d", v.width))
		p.until("Number(document.querySelector('main section strong').innerText) > 0")
		p.until("window.drawn.length > 1")
		p.look(fmt.Sprintf("axis-%d", v.width))
		if wrong := eval[[]string](p, "window.wrong"); len(wrong) > 0 {
			t.Errorf("%d wide: %q", v.width, wrong)
		}
		if span := eval[int](p, `(() => {
			const [first, last] = [window.drawn[0], window.drawn.at(-1)].map((d) => d.text.split(":").slice(-2).reduce((n, part) => 60 * n + Number(part), 0));
			return (last - first + 3600) % 3600;
		})()`); span < 20 {
			t.Errorf("%d wide: the axis says %d seconds, and should be a minute", v.width, span)
		}
		zone, err := time.LoadLocation(v.zone)
		if err != nil {
			t.Fatal(err)
		}
		labels, now := eval[[]string](p, "[...window.all]"), time.Now().In(zone) // also those before the first number
		for _, label := range labels {
			if !strings.HasPrefix(label, now.Format("3:")) && !strings.HasPrefix(label, now.Add(-2*time.Minute).Format("3:")) {
				t.Errorf("%d wide: the labels are %q, and it is %s", v.width, labels, now)
			}
		}
	}
}

// TestCatalog: mistakes are shown where they are, a plan shows old and new, warnings must be accepted,
// what was applied is in force, versions differ, and an older one comes back as a new one.
func TestCatalog(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	p := browse(t, s.address, wide, "/catalog/new")
	p.enter("ops")
	p.press("[name=load]")
	p.until("document.querySelector('[name=yaml]').value.includes('Lantern Festival')")
	good := eval[string](p, "document.querySelector('[name=yaml]').value")
	p.set("[name=yaml]", "kuji: 1\nitems:\n  gem: {kind: diamond}\n")
	p.press("[name=check]")
	p.has("#faults", "Line 3, column")
	p.has("#faults mark", "diamond")
	p.accessible("faults")
	p.press("#faults button")
	p.until("document.activeElement.name === 'yaml'")

	// Half as many figures as there were, and other odds.
	changed := strings.Replace(strings.Replace(good, "weight: 80", "weight: 60", 1), "stock: 60", "stock: 1", 1)
	if changed == good {
		t.Fatalf("the exported catalog has no weight of 80:\n%s", good)
	}
	s.do(kuji.Draw{ID: "box", Player: "ann", Pool: "box", Count: 20})
	p.set("[name=yaml]", changed)
	p.press("[name=check]")
	p.has("#plan", "odds of daily/few")
	p.has("#plan", "80% → 75%")
	p.has("#plan .note.warn", "")
	p.accessible("plan")
	p.set("[name=reason]", "fewer, and other odds")
	p.until("document.querySelector('[name=apply]').disabled")
	p.press("[name=accept]")
	p.press("[name=apply]")
	p.has("main", "Version 2 is in force.")
	p.visit("/catalog/versions")
	p.has("main", "ops fewer, and other odds")
	p.visit("/catalog/compare/1/2")
	p.has(".diff .plus", "60")
	p.has(".diff .minus", "80")
	p.accessible("compare")
	p.visit("/catalog/versions")
	p.press("[data-back='1']")
	p.until("document.querySelector('[name=yaml]')?.value === " + quote(good))
	p.press("[name=check]")
	p.has("#plan", "75% → 80%")
	p.set("[name=reason]", "back")
	p.press("[name=apply]")
	p.has("main", "Version 3 is in force.")

	// One proposes, and another approves.
	designer := browse(t, s.address, wide, "/catalog/new")
	designer.enter("designer")
	designer.set("[name=yaml]", changed)
	designer.press("[name=check]")
	designer.has("main", "This key cannot see a plan first.")
	designer.set("[name=reason]", "as before")
	designer.press("[name=propose]")
	designer.has("main", "The proposal waits for a second person.")
	p.visit("/catalog/proposals")
	p.has("main", "designer as before")
	p.press("main .list a")
	p.has("#plan", "80% → 75%")
	p.accessible("proposal")
	p.set("[name=reason]", "agreed")
	p.press("[name=approve]")
	p.has("main", "Approved: it is in force.")
	p.visit("/catalog/versions")
	p.has("main", "4 ")
	own, err := s.client("ops").ProposeCatalog(t.Context(), &kujiv1.ProposeCatalogRequest{Yaml: []byte(good), Reason: "my own"})
	if err != nil {
		t.Fatal(err)
	}
	p.visit(fmt.Sprintf("/catalog/proposals/%d", own.GetProposal().GetNumber()))
	p.has("#proposal", "my own")
	p.until("document.querySelector('[name=withdraw]') && !document.querySelector('[name=approve]')")
	p.set("[name=reason]", "no more")
	p.press("[name=withdraw]")
	p.has("main", "Withdrawn.")

	watcher := browse(t, s.address, wide, "/catalog/new")
	watcher.enter("watcher")
	watcher.set("[name=yaml]", changed)
	watcher.press("[name=check]")
	watcher.has("main", "This key cannot do that.")
}

// TestProof: what a client has received is found in the log and compared, and what was changed is not
// what the log says.
func TestProof(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	got, err := s.rewards("ops").Draw(t.Context(), &kujiv1.DrawRequest{RequestId: "prove", Player: "ann", Pool: "banner", Count: 10, Pay: "starlight"})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := protojson.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	p := browse(t, s.address, wide, "/proof")
	p.enter("ops")
	p.set("[name=receipt]", "no JSON")
	p.press("form .button.primary")
	p.has("[role=alert]", "This is not JSON.")
	p.set("[name=receipt]", string(answer))
	p.press("form .button.primary")
	p.has("#steps", "What you pasted is what the log says.")
	p.has("#steps", "The receipt has the same commitment.")
	p.has("#steps", "The epoch is still running, so its seed is secret.")
	p.has("#later", "Come back after it is revealed")
	p.until("!document.querySelector('#steps pre').checkVisibility()") // they would say that nothing can be proven
	p.accessible("proof")
	s.stop()
	s.start() // which reveals the seed
	p.until("!document.querySelector('#lost')")
	p.set("[name=receipt]", string(answer)+" ")
	p.press("form .button.primary")
	p.press("#again")
	p.has("#belongs", "Yes. This page computed it.")
	p.until("!document.querySelector('#later') && document.querySelector('#steps pre').checkVisibility()")
	if eval[string](p, "document.querySelector('#computed').innerText") != fmt.Sprintf("%x", got.GetResult().GetReceipt().GetCommitment()) {
		t.Error("another commitment is shown than that of the receipt")
	}

	differs, commitment, epoch := "What you pasted is not what the log says.", "The receipt has another commitment", "is not of this epoch"
	for _, f := range []struct{ old, forged, want string }{
		{got.GetResult().GetOutcomes()[0].GetEntry(), "another", differs},
		{got.GetResult().GetOutcomes()[0].GetItems()[0].GetItem(), "hoshimi-of-mine", differs},
		{`"quantity":"1"`, `"quantity":"50"`, differs},
		{"STATUS_OK", "STATUS_SOLD_OUT", differs},
		{`"paid":[`, `"paid":[{"item":"plate","quantity":"1"},`, differs},
		{`"catalogVersion":"1"`, `"catalogVersion":"2"`, differs},
		{`"timeUnixMs":"1`, `"timeUnixMs":"2`, differs},
		{`"commitment":"`, `"commitment":"AAAA`, commitment},
		{`"epoch":"1"`, `"epoch":"2"`, epoch},
	} {
		plain := strings.ReplaceAll(string(answer), `": `, `":`) // protojson puts spaces as it likes
		forged := strings.Replace(plain, f.old, f.forged, 1)
		if forged == plain {
			t.Fatalf("there is no %s in %s", f.old, plain)
		}
		p.set("[name=receipt]", plain)
		p.press("form .button.primary")
		p.has("#steps", "What you pasted is what the log says.")
		p.set("[name=receipt]", forged)
		p.press("form .button.primary")
		p.has("#steps .note.bad", f.want)
	}
	// The command line writes the same in other words.
	r := got.GetResult()
	line := `{"result":{"status":"ok","outcomes":[`
	for i, o := range r.GetOutcomes() {
		var items []string
		for _, it := range o.GetItems() {
			items = append(items, fmt.Sprintf(`{"item":%q,"quantity":%d}`, it.GetItem(), it.GetQuantity()))
		}
		via, err := json.Marshal(o.GetVia())
		if err != nil {
			t.Fatal(err)
		}
		line += strings.Repeat(",", min(i, 1)) + fmt.Sprintf(`{"entry":%q,"items":[%s],"via":%s,"draw":%d}`, o.GetEntry(), strings.Join(items, ","), via, o.GetDraw())
	}
	line += fmt.Sprintf(`],"receipt":{"position":%d,"index":%d,"time_unix_ms":%d,"catalog_version":1},"paid":[{"item":%q,"quantity":%d}]}}`,
		r.GetReceipt().GetPosition(), r.GetReceipt().GetIndex(), r.GetReceipt().GetTimeUnixMs(), r.GetPaid()[0].GetItem(), r.GetPaid()[0].GetQuantity())
	p.set("[name=receipt]", line)
	p.press("form .button.primary")
	p.has("#steps", "What you pasted is what the log says.")
	p.set("[name=receipt]", `{"receipt": {"position": "99999"}}`)
	p.press("form .button.primary")
	p.has("#steps", "There is no event 0 at position 99,999")
	for text, want := range map[string]string{"no JSON": "This is not JSON.", "null": "It has no receipt."} {
		p.set("[name=receipt]", string(answer))
		p.press("form .button.primary")
		p.has("#steps", "What you pasted is what the log says.")
		p.set("[name=receipt]", text)
		p.press("form .button.primary")
		p.has("[role=alert]", want)
		p.until("!document.querySelector('#steps')") // they were of what was pasted before
	}

	// Who comes by a link has pasted nothing that a commitment could be compared with.
	receipt := got.GetResult().GetReceipt()
	p = browse(t, s.address, wide, fmt.Sprintf("/proof/%d/%d", receipt.GetPosition(), receipt.GetIndex()))
	p.enter("ops")
	p.has("#steps", fmt.Sprintf("%x", receipt.GetCommitment()))
	p.has("#steps", "You have pasted no commitment")
	if eval[bool](p, "document.querySelector('#steps').innerText.includes('The receipt has the same commitment.')") {
		t.Error("a receipt is said to agree that nobody pasted")
	}

	// A key of some pools may not ask how long the log is. The feed tells it.
	p = browse(t, s.address, wide, "/proof")
	p.enter("stall")
	p.set("[name=receipt]", `{"receipt": {"position": "99999"}}`)
	p.press("form .button.primary")
	p.has("#steps", "There is no event 0 at position 99,999")
}

// TestOperations: keys are named with what they may, and never shown; codes, refusals and slow calls are
// counted; a pool has its budgets and moments.
func TestOperations(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	if _, err := s.realm().Codes().Import(t.Context(), "ten-percent", []string{"AAA-1", "AAA-2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.rewards("ops").Consume(t.Context(), &kujiv1.ConsumeRequest{RequestId: "poor", Player: "ann", Items: []*kujiv1.Stack{{Item: "plate", Quantity: 1}}}); err != nil {
		t.Fatal(err)
	}
	p := browse(t, s.address, wide, "/operations")
	p.enter("ops")
	p.has("#keys", "support read")
	p.has("#keys", "Pools: box")
	p.has("#codes", "ten-percent 2 of 2 left")
	p.has("#refusals", "too few items 1")
	p.until("document.querySelector('#slow tbody, #slow p')")
	for _, k := range keyed {
		name := strings.Fields(k)[1]
		if eval[bool](p, fmt.Sprintf("document.body.innerText.includes(%s) || document.body.innerText.includes(%s)", quote("key-of-"+name), quote(fmt.Sprintf("%x", sha256.Sum256([]byte("key-of-"+name)))[:16]))) {
			t.Errorf("the key %s, or its hash, is shown", name)
		}
	}
	p.set("[name=report]", `{"realms": [{"realm": "default", "ok": true, "position": 14, "draws": 3, "epochs": [{"epoch": 1, "revealed": true}, {"epoch": 2}], "state_hash": "d94a"},
		{"realm": "other", "ok": false, "error": "position 7: <b>chain</b>"}]}`)
	p.has("#verify", "default sound")
	p.has("#verify", "Epochs decided again 1 / 2")
	p.has("#verify", "other something is wrong")
	p.has("#verify", "position 7: <b>chain</b>")
	p.set("[name=report]", "ok")
	p.has("#verify", "This is not a report")
	p.accessible("operations")
	p.visit("/pools/splash")
	p.has("main", "Budget, a day: Cash back 50,000 of 50,000 left")
	p.has("main", "Winning moments")
	p.has("main", "19-23 ×5")
	p.accessible("pool with moments")
}

// trio is a cluster of three nodes, one of which is down. This server leads all realms but one.
type trio struct{}

func (trio) Holds(string) bool                            { return true }
func (trio) Created(string)                               {}
func (trio) Status(context.Context) []*kujiv1.RealmStatus { return nil }
func (trio) Call(*server.Call) (*http.Response, error)    { return nil, server.ErrHere }

func (trio) Nodes(context.Context) *kujiv1.ListNodesResponse {
	late := int64(-1500)
	return &kujiv1.ListNodesResponse{Cluster: "shop", Nodes: []*kujiv1.Node{
		{Node: "n1", Address: "10.0.0.1:6222", State: kujiv1.NodeState_NODE_STATE_SERVES, Ready: true, Version: "v1", Leads: 1, StoredBytes: 3 << 20, FreeBytes: 5 << 30, ClockMs: new(int64)},
		{Node: "n2", Address: "10.0.0.2:6222", State: kujiv1.NodeState_NODE_STATE_SERVES, Version: "v1", Behind: "it opens realm <b>x</b>", Lag: 1234, ClockMs: &late},
		{Node: "n3", Address: "10.0.0.3:6222", State: kujiv1.NodeState_NODE_STATE_UNREACHABLE, Why: "connection refused"},
	}, Realms: []*kujiv1.RealmLeader{{Realm: "default", Leader: "n1", Position: 2}, {Realm: "jp", Position: 9}}}
}

// TestCluster: a node of a cluster shows all nodes, what is wrong with them, and who leads.
func TestCluster(t *testing.T) {
	t.Parallel()
	s := openIn(t, trio{}, true, festival)
	p := browse(t, s.address, view{360, 800, true, "Europe/Berlin"}, "/operations")
	p.enter("watcher")
	p.has("#nodes", "Cluster shop")
	p.has("#nodes", "No node that answered leads the realm jp")
	p.has("#nodes", "it opens realm <b>x</b>")
	p.has("#nodes", "connection refused")
	p.has("#nodes", "unreachable")
	p.has("#nodes", "serving")
	p.has("#nodes", "1,234")
	p.has("#nodes", "-1.5 s")
	p.has("[data-realm=default]", "Leader n1")
	p.accessible("operations of a cluster")
	p.fits("operations of a cluster")
	p.look("cluster-360-dark")
}

// TestBackup: the page says when a backup was last made of this server.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	p := browse(t, s.address, wide, "/operations")
	p.enter("ops")
	p.has("[data-realm=default]", "Last backup none since the start")
	stream, err := s.client("ops").Backup(t.Context(), &kujiv1.BackupRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for stream.Receive() {
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil {
		t.Fatal(err)
	}
	p.until("!document.querySelector('[data-realm=default]').innerText.includes('none since the start')")
}

// TestDisclosure: what is published is shown by version and language, and is there to be embedded.
func TestDisclosure(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	c, err := catalog.Parse([]byte(strings.Replace(string(festival), "weight: 80", "weight: 60", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.realm().Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	p := browse(t, s.address, wide, "/disclosure")
	p.enter("watcher")
	p.has("main", "Hoshimi of the Lanterns")
	p.has("main", "75%")
	p.has("#disclosure", "Version 2")
	p.set("input[name=version]", "1")
	p.has("main", "80%")
	p.set("input[name=disclosure-language]", "ja")
	p.has("main", "灯籠の星見")
	p.has("main", "Copy the HTML") // the page's own language is as it was
	p.accessible("disclosure")
	eval[any](p, "navigator.clipboard.writeText = async (text) => { window.copied = text }")
	p.press("#disclosure .button")
	p.until("window.copied?.includes('灯籠の星見') && !window.copied.includes('<script')")
}

// TestSHA256: the page's own SHA-256 is that of the browser, for every length around its blocks.
func TestSHA256(t *testing.T) {
	t.Parallel()
	s := open(t, false, nil)
	p := browse(t, s.address, wide, "/proof")
	p.has("main", "Proof")
	if wrong := eval[string](p, `import("`+console.Path+`sha256.js").then(async ({ sha256, hex }) => {
		const wrong = [];
		for (let n = 0; n < 200; n++) {
			const data = crypto.getRandomValues(new Uint8Array(n));
			if (hex(sha256(data)) !== hex(new Uint8Array(await crypto.subtle.digest("SHA-256", data)))) wrong.push(n);
		}
		return wrong.join();
	})`); wrong != "" {
		t.Errorf("wrong for lengths %s", wrong)
	}
}

// TestDiff: what a diff takes out and leaves is the one text, what it puts in and leaves the other, and it
// is no longer than it must be.
func TestDiff(t *testing.T) {
	t.Parallel()
	s := open(t, false, nil)
	p := browse(t, s.address, wide, "/proof")
	p.has("main", "Proof")
	if wrong := eval[string](p, `import("`+console.Path+`diff.js").then(({ diff, folded }) => {
		const some = () => Array.from({length: Math.floor(Math.random() * 12)}, () => "abcd"[Math.floor(Math.random() * 4)]);
		const common = (a, b) => { // the longest common part, by the textbook
			const n = a.map(() => b.map(() => 0));
			for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--)
				n[i][j] = a[i] === b[j] ? 1 + (n[i + 1]?.[j + 1] ?? 0) : Math.max(n[i + 1]?.[j] ?? 0, n[i][j + 1] ?? 0);
			return n[0]?.[0] ?? 0;
		};
		for (let i = 0; i < 2000; i++) {
			const a = ["x", ...some()], b = ["y", ...some()];
			const lines = diff(a.join("\n"), b.join("\n"));
			const left = lines.filter((l) => l.sign !== "+").map((l) => l.text).join("\n"), right = lines.filter((l) => l.sign !== "-").map((l) => l.text).join("\n");
			if (left !== a.join("\n") || right !== b.join("\n") || lines.filter((l) => l.sign === " ").length !== common(a, b)) return JSON.stringify([a, b, lines]);
			if (folded(lines).reduce((n, l) => n + (l.skipped ?? 1), 0) !== lines.length) return "folded " + JSON.stringify(lines);
		}
		return "";
	})`); wrong != "" {
		t.Error(wrong)
	}
}

// TestZone: moments are shown in the viewer's zone, in the history with their seconds.
func TestZone(t *testing.T) {
	t.Parallel()
	s := open(t, false, festival)
	done := s.do(kuji.Grant{ID: "g", Player: "ann", Items: []kuji.Stack{{Item: "plate", Quantity: 1}}})[0]
	for _, zone := range []string{"Asia/Tokyo", "America/New_York"} {
		where, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		p := browse(t, s.address, view{1280, 900, false, zone}, "/players/ann")
		p.has("#why", time.UnixMilli(done.Receipt.Time).In(where).Format("Jan 2, 2006, 3:04:05 PM"))
	}
}

// TestRarities: tables and lists of items and entries say a rarity in words, and a mention shows it by a shape too.
func TestRarities(t *testing.T) {
	t.Parallel()
	s := open(t, false, festival)
	s.do(kuji.Grant{ID: "g", Player: "ann", Items: []kuji.Stack{{Item: "plush", Quantity: 2}, {Item: "hoshimi", Quantity: 1}}})
	p := browse(t, s.address, wide, "/players/ann")
	p.has("#player ~ .cards tbody", "Plush rabbit Four stars plush")
	p.has("#player ~ .cards tbody", "Hoshimi of the Lanterns Five stars 0.3%")
	p.has("#why tbody", "+2 Plush rabbit = 2")
	if got := eval[int](p, "new Set([...document.querySelectorAll('#why .rarity, #player ~ .cards .rarity')].map((e) => getComputedStyle(e, '::before').clipPath)).size"); got != 3 {
		t.Errorf("the marks of three rarities have %d shapes", got)
	}
	p.visit("/pools/box")
	p.has("#odds-seen tbody", "Moon Rabbit figure Five stars")
	p.visit("/pools")
	p.has("[data-pool=box]", "Small plate Three stars 400 of 400 left")
	p.visit("/catalog")
	p.has("main tbody", "Tobias Four stars")
	p.press("main details:nth-of-type(1) summary")
	p.has("main details tbody", "1 Hoshimi of the Lanterns Five stars, 10 Stardust")
	p.look("catalog-entries-1280")
}

// TestScale: all rows of odds wanted and seen have one scale: a mark is further right if its chance is greater.
func TestScale(t *testing.T) {
	t.Parallel()
	s := festive(t, false)
	p := browse(t, s.address, wide, "/pools/banner")
	p.has("#odds-seen", "Worn Codex")
	p.has("#odds-seen .ends", "0.1% 100%")
	places := eval[[]float64](p, `[...document.querySelectorAll("#odds-seen .band b")].map((b) => parseFloat(b.style.left))`)
	want := []float64{0.3, 0.3, 2.5, 2.6, 14.3, 20, 20, 20, 20}
	if len(places) != len(want) {
		t.Fatalf("%d marks, want %d", len(places), len(want))
	}
	for i, percent := range want {
		if at := 100 * (math.Log10(percent) + 1) / 3; math.Abs(places[i]-at) > 0.01 {
			t.Errorf("the mark of %g %% is at %g, want %g", percent, places[i], at)
		}
	}
	if wrong := eval[string](p, `import("`+console.Path+`live.js").then(({ decades }) => {
		const wrong = [];
		for (const [chances, ends, lines] of [[[], "0.1,1", 0], [[0], "0.1,1", 0], [[1], "0.1,1", 0], [[0.5, 0.5], "0.1,1", 0], [[0.001, 0.2], "0.001,1", 2], [[0.02, 0.05], "0.01,0.1", 0], [[1e-30, 1], "1e-12,1", 11]]) {
			const s = decades(chances);
			if (s.ends.map((e) => Number(e.toPrecision(6))).join() !== ends || s.lines.length !== lines || s.at(0) !== 0 || s.at(1) !== 1) wrong.push(JSON.stringify([chances, s]));
		}
		return wrong.join();
	})`); wrong != "" {
		t.Error(wrong)
	}
}

// TestNoName: the history says why a draw or a code has no name of a key, and nothing of the kind of a grant.
func TestNoName(t *testing.T) {
	t.Parallel()
	s := open(t, true, festival)
	s.do(kuji.Grant{ID: "g", Player: "ann", Items: []kuji.Stack{{Item: "plate", Quantity: 1}}, Note: kuji.Note{By: "support"}}, kuji.Grant{ID: "h", Player: "ann", Items: []kuji.Stack{{Item: "plate", Quantity: 1}}})
	p := browse(t, s.address, wide, "/players/ann")
	p.enter("ops")
	p.has("#why", "support")
	p.has("#why td .muted", "–") // this grant could have a name
	says := "Draws and codes are the player’s own, so the log has no key’s name for them."
	if eval[bool](p, "document.body.innerText.includes("+quote(says)+")") {
		t.Error("it explains draws, and the player has none")
	}
	s.do(kuji.Draw{ID: "d", Player: "ann", Pool: "daily", Count: 1})
	p.press("#player .button") // reload
	p.has("#why tbody", "the player, by a draw")
	p.has("#why", says)
}

// TestLanguages: every page is complete in every language, and fits in 360 px.
func TestLanguages(t *testing.T) {
	t.Parallel()
	s := festive(t, false)
	for _, language := range []string{"de", "ja"} {
		p := browse(t, s.address, view{360, 800, false, "Europe/Berlin"}, "/players")
		p.set("select[name=language]", language)
		p.until("document.documentElement.lang === " + quote(language))
		for _, one := range shows {
			p.visit(one.path)
			p.until("document.querySelector(" + quote(one.selector) + ")?.innerText.length > 20 && !document.querySelector('main [aria-busy]')")
			p.fits(one.name + " in " + language)
		}
		p.accessible(language)
	}
}

// TestTheme: the button goes from the system's colours to light, to dark, and back, and stays.
func TestTheme(t *testing.T) {
	t.Parallel()
	s := open(t, false, nil)
	p := browse(t, s.address, wide, "/players")
	ground := func() string { return eval[string](p, "getComputedStyle(document.body).backgroundColor") }
	p.until("document.querySelector('.icon-only')")
	light := ground()
	p.press(".icon-only")
	p.press(".icon-only")
	p.until("document.documentElement.dataset.theme === 'dark'")
	if ground() == light {
		t.Errorf("dark is %s, as light", light)
	}
	p.visit("/catalog")
	p.has("main", "No catalog is in force yet.")
	p.press(".icon-only")
	p.until("document.documentElement.dataset.theme === undefined")
}
