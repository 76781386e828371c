package sink

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/vfs"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// hook returns a webhook to a receiver, with its position in a file system in memory.
func hook(t *testing.T, receive http.HandlerFunc, change func(*Webhook)) Target {
	t.Helper()
	s := httptest.NewServer(receive)
	t.Cleanup(s.Close)
	o := Webhook{URL: s.URL + "/kuji", Secrets: testSecret, Position: "at", Feed: Feed{Realm: "default"}, AllowPrivate: true, Log: quiet, fs: vfs.NewMem()}
	o.wait = func(context.Context, time.Duration) {}
	if change != nil {
		change(&o)
	}
	w, err := NewWebhook(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// posted is what a receiver reads of a post.
type posted struct {
	Type string
	Data struct {
		Realm  string
		Events []kuji.Record
	}
}

func parsePost(t *testing.T, r *http.Request) (posted, []byte) {
	var p posted
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	if err != nil {
		t.Error(err)
	}
	return p, body
}

// TestSignature: the signature is that of the example that the standard publishes.
func TestSignature(t *testing.T) {
	secrets, err := parseSecrets(testSecret + "\n")
	if err != nil {
		t.Fatal(err)
	}
	w := &webhook{secrets: secrets}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := w.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, bad := range []string{"", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_short", "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)), strings.Repeat(testSecret+" ", 5)} {
		if _, err := parseSecrets(bad); kuji.CodeOf(err) != kuji.CodeInvalid {
			t.Errorf("%q: %v", bad, err)
		} else if len(bad) > 8 && strings.Contains(err.Error(), bad[6:]) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

// TestPosts: what a receiver gets is signed by each secret, over the id and the time that stand in the
// headers, and a repeat has the same id.
func TestPosts(t *testing.T) {
	steps, all := feedOf(3, 30)
	second := "whsec_" + base64.StdEncoding.EncodeToString([]byte("another secret, of 30 bytes..."))
	ids, tries := map[string]int{}, 0
	var got []kuji.Record
	w := hook(t, func(rw http.ResponseWriter, r *http.Request) {
		tries++
		p, body := parsePost(t, r)
		id, at := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
		for i, text := range []string{testSecret, second} {
			secret, err := parseSecrets(text)
			if err != nil {
				t.Error(err)
			}
			if got, want := strings.Fields(r.Header.Get("webhook-signature"))[i], (&webhook{secrets: secret}).sign(id, at, body); got != want {
				t.Errorf("signature %s, want %s", got, want)
			}
		}
		if r.Method != "POST" || r.URL.Path != "/kuji" || p.Type != "kuji.events" || p.Data.Realm != "default" || r.Header.Get("content-type") != "application/json" {
			t.Errorf("%s %s: %s", r.Method, r.URL, body)
		}
		if ids[id]++; ids[id] < 3 {
			rw.WriteHeader(500)
			return
		}
		got = append(got, p.Data.Events...)
		rw.WriteHeader(204)
	}, func(o *Webhook) { o.Secrets = testSecret + "\n" + second })
	done, err := Run(t.Context(), sourceOf(steps), w, 1, quiet)
	if !errors.Is(err, errEnd) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Error(diff)
	}
	if tries != 3*len(ids) || done.Events != uint64(len(all)) {
		t.Errorf("%d attempts of %d messages, %d events; want 3 each, and %d", tries, len(ids), done.Events, len(all))
	}
}

// TestAnswers: what is tried again, after which pause, and what ends the feed.
func TestAnswers(t *testing.T) {
	redirected := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer redirected.Close()
	for _, c := range []struct {
		status     int
		retryAfter string
		again      bool
		least      time.Duration
	}{
		{500, "", true, firstWait / 2}, {503, "7", true, 7 * time.Second}, {429, "999999", true, mostAskedWait}, {408, "", true, 0}, {425, "", true, 0},
		{502, "never", true, firstWait / 2},
		{301, "", false, 0}, {302, "", false, 0}, {307, "", false, 0}, {308, "", false, 0},
		{400, "", false, 0}, {401, "", false, 0}, {404, "", false, 0}, {410, "", false, 0}, {413, "", false, 0},
	} {
		t.Run(fmt.Sprint(c.status, c.retryAfter), func(t *testing.T) {
			tries := 0
			var waits []time.Duration
			w := hook(t, func(rw http.ResponseWriter, _ *http.Request) {
				if tries++; tries > 1 {
					return
				}
				if c.retryAfter != "" {
					rw.Header().Set("Retry-After", c.retryAfter)
				}
				rw.Header().Set("Location", redirected.URL)
				rw.WriteHeader(c.status)
			}, func(o *Webhook) { o.wait = func(_ context.Context, d time.Duration) { waits = append(waits, d) } })
			err := w.Deliver(t.Context(), &Batch{Events: []kuji.Record{{Position: 1, Last: true}}, From: Place{1, 0}, To: Place{2, 0}})
			at, errAt := w.Place(t.Context())
			if errAt != nil {
				t.Fatal(errAt)
			}
			if !c.again {
				if kuji.CodeOf(err) != kuji.CodeConflict || !strings.Contains(err.Error(), fmt.Sprint("answered ", c.status)) || tries != 1 || at != (Place{}) {
					t.Errorf("%v after %d attempts, at %v", err, tries, at)
				}
				return
			}
			if err != nil || tries != 2 || len(waits) != 1 || waits[0] < c.least || waits[0] > max(c.least, firstWait) || at != (Place{2, 0}) {
				t.Errorf("%v after %d attempts and %v, at %v", err, tries, waits, at)
			}
		})
	}
}

// TestBackoff: pauses double up to a bound, and each is a random part of that.
func TestBackoff(t *testing.T) {
	var waits []time.Duration
	w := hook(t, func(rw http.ResponseWriter, _ *http.Request) {
		if len(waits) < 14 {
			rw.WriteHeader(503)
		}
	}, func(o *Webhook) { o.wait = func(_ context.Context, d time.Duration) { waits = append(waits, d) } })
	if err := w.Deliver(t.Context(), &Batch{Events: []kuji.Record{{Position: 1}}, To: Place{1, 1}}); err != nil {
		t.Fatal(err)
	}
	for i, d := range waits {
		if full := min(firstWait<<i, lastWait); d < full/2 || d > full {
			t.Errorf("pause %d is %v, want %v to %v", i, d, full/2, full)
		}
	}
}

// TestEndless: an answer without end is not read to its end.
func TestEndless(t *testing.T) {
	w := hook(t, func(rw http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<16)
		for r.Context().Err() == nil {
			if _, err := rw.Write(chunk); err != nil {
				return
			}
		}
	}, nil)
	if err := w.Deliver(t.Context(), &Batch{Events: []kuji.Record{{Position: 1}}, To: Place{1, 1}}); err != nil {
		t.Fatal(err)
	}
}

// TestPrivate: only public addresses are dialled, whatever a name leads to.
func TestPrivate(t *testing.T) {
	for address, public := range map[string]bool{
		"1.1.1.1:443": true, "[2606:4700::1111]:443": true, "8.8.8.8:80": true,
		"127.0.0.1:443": false, "127.9.9.9:443": false, "[::1]:443": false, "0.0.0.0:80": false, "[::]:80": false, "10.1.2.3:443": false,
		"172.16.0.1:443": false, "172.31.255.255:443": false, "192.168.0.1:443": false, "169.254.169.254:80": false, "[fe80::1%eth0]:443": false, "[fd00::1]:443": false,
		"100.64.0.1:443": false, "[::ffff:127.0.0.1]:443": false, "[::ffff:10.0.0.1]:443": false, "[64:ff9b::7f00:1]:443": false, "[2002:7f00:1::]:443": false,
		"224.0.0.1:443": false, "255.255.255.255:443": false, "240.0.0.1:443": false, "198.18.0.1:443": false, "[ff02::1]:443": false,
	} {
		if err := publicOnly("tcp", address, nil); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
	hits := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer s.Close()
	for _, host := range []string{"127.0.0.1", "localhost"} { // a name is looked up before its address is refused
		w, err := NewWebhook(Webhook{URL: strings.Replace(s.URL, "127.0.0.1", host, 1), Secrets: testSecret, Position: "at", Log: quiet, fs: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Deliver(t.Context(), &Batch{Events: []kuji.Record{{Position: 1}}, To: Place{1, 1}})
		if _, ok := errors.AsType[privateError](err); !ok || kuji.CodeOf(err) != kuji.CodeConflict || hits != 0 {
			t.Errorf("%s: %v, %d requests", host, err, hits)
		}
	}
}

// TestDistrusted: a certificate that is not trusted ends the feed at once.
func TestDistrusted(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came") }))
	defer s.Close()
	s.Config.ErrorLog = nil
	w := hook(t, nil, func(o *Webhook) { o.URL = s.URL })
	if err := w.Deliver(t.Context(), &Batch{Events: []kuji.Record{{Position: 1}}, To: Place{1, 1}}); kuji.CodeOf(err) != kuji.CodeConflict || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
}

func TestBadURL(t *testing.T) {
	for _, bad := range []string{"https://", "http://example.com", "https://user:word@example.com", "ftp://example.com", "https://ex ample"} {
		if _, err := NewWebhook(Webhook{URL: bad, Secrets: testSecret}); kuji.CodeOf(err) != kuji.CodeInvalid || strings.Contains(err.Error(), "word@") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestInterrupted: the end of ctx does not break off the post under way. When it has arrived, that is
// noted.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := hook(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
	}, nil)
	steps, _ := feedOf(5, 1000)
	done, err := Run(ctx, sourceOf(steps), w, 1, quiet)
	at, errAt := w.Place(t.Context())
	if !errors.Is(err, context.Canceled) || errAt != nil || at == (Place{}) || at != done.To || done.Events == 0 {
		t.Errorf("%v, %v: at %v, %d events up to %v", err, errAt, at, done.Events, done.To)
	}
}

// TestCrash: whenever the power is cut, the file has a place that the receiver has reached, and never
// one before what was noted.
func TestCrash(t *testing.T) {
	steps, all := feedOf(7, 60)
	disk := vfs.NewMem()
	var reached, noted Place // what the receiver has; what Deliver has returned
	states := 0
	check := func() {
		for state := range disk.CrashStates(64, 1, true) {
			states++
			p := positionFile{state, "at", Feed{Realm: "default"}}
			got, err := p.load()
			if err != nil {
				t.Fatal(err)
			}
			if reached.before(got) || got.before(noted) {
				t.Fatalf("after a crash the file has %v; the receiver has all before %v, and %v was noted", got, reached, noted)
			}
		}
	}
	w := hook(t, func(_ http.ResponseWriter, r *http.Request) {
		p, _ := parsePost(t, r)
		last := p.Data.Events[len(p.Data.Events)-1]
		if reached = (Place{last.Position, last.Index + 1}); last.Last {
			reached = Place{Position: last.Position + 1}
		}
	}, func(o *Webhook) { o.fs = disk })
	disk.SetHook(func(op vfs.Op) vfs.Fault {
		if op.Kind.Changes() {
			check()
		}
		return vfs.Fault{}
	})
	for _, s := range steps {
		b := &Batch{From: noted, To: noted}
		b.add(s)
		if err := w.Deliver(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if noted = b.To; reached.before(noted) {
			reached = noted // a sign of life moves on without events
		}
		check()
	}
	if noted != (Place{Position: all[len(all)-1].Position + 1}) || states < 1000 {
		t.Errorf("ended at %v after %d states", noted, states)
	}
}

// TestPositionFile: a file that is damaged, of another feed, or that cannot be written is refused.
func TestPositionFile(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		code kuji.Code
	}{
		"empty": {"", kuji.CodeCorrupt}, "text": {"17", kuji.CodeCorrupt}, "format": {`{"format":2,"next":{"position":1,"index":0}}`, kuji.CodeCorrupt},
		"no place": {`{"format":1,"feed":{"realm":"default"}}`, kuji.CodeCorrupt},
		"another":  {`{"format":1,"feed":{"realm":"b"},"next":{"position":1,"index":0}}`, kuji.CodeConflict},
		"large":    {strings.Repeat(" ", maxPositionFile) + `{"format":1,"feed":{"realm":"default"},"next":{"position":1,"index":0}}`, kuji.CodeCorrupt},
	} {
		disk := vfs.NewMem()
		f, err := disk.Create("at")
		if err == nil {
			_, err = f.WriteAt([]byte(c.text), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		w := hook(t, nil, func(o *Webhook) { o.fs = disk })
		if _, err := w.Place(t.Context()); kuji.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := hook(t, nil, func(o *Webhook) { o.Position = "missing/at" })
	if _, err := w.Place(t.Context()); kuji.CodeOf(err) != kuji.CodeFailed {
		t.Errorf("no directory: %v", err)
	}
}
