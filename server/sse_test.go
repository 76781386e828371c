package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

// sent is a server-sent event, or only an id.
type sent struct {
	id, name, data string
}

// eventSource reads server-sent events as a browser does.
type eventSource struct {
	t     *testing.T
	lines *bufio.Scanner
	last  string // the last id
	end   context.CancelFunc
}

func listen(t *testing.T, f *fixture, query, last string) *eventSource {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("HTTP %d %v", resp.StatusCode, resp.Header)
	}
	s := &eventSource{t: t, lines: bufio.NewScanner(resp.Body), end: cancel}
	s.lines.Buffer(nil, 1<<20)
	return s
}

// next returns the next event or id, and an empty one at the end.
func (s *eventSource) next() (e sent) {
	s.t.Helper()
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "":
			return e
		case "id":
			e.id, s.last = value, value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "retry":
		default:
			s.t.Errorf("a line %q", s.lines.Text())
		}
	}
	return sent{}
}

// event returns the next event that is not only an id.
func (s *eventSource) event() (e map[string]any) {
	s.t.Helper()
	for {
		got := s.next()
		if got == (sent{}) {
			s.t.Fatal("the stream ended: ", s.lines.Err())
		}
		if got.data == "" {
			continue
		}
		if err := json.Unmarshal([]byte(got.data), &e); err != nil {
			s.t.Fatal(err)
		}
		return e
	}
}

// TestServerSentEvents: a browser gets what it asked for, and what comes; connected again with the
// last id, it gets what it has missed.
func TestServerSentEvents(t *testing.T) {
	f := startWith(t, kuji.Options{}, server.Options{})
	c := clients(t, f.url)[0]
	draw := func(id, player string) uint64 {
		t.Helper()
		res, err := c.reward.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: id, Player: player, Pool: "free"})
		if err != nil {
			t.Fatal(err)
		}
		return res.GetResult().GetReceipt().GetPosition()
	}
	live := listen(t, f, "player=ann", "")
	if first := live.next(); first.id == "" || first.data != "" {
		t.Fatalf("it begins with %+v, want the position", first)
	}
	draw("one", "ann")
	draw("two", "bob")
	if e := live.event(); e["requestId"] != "one" || e["kind"] != "draw" || e["status"] != "STATUS_OK" {
		t.Errorf("%v", e)
	}
	live.end()
	draw("three", "bob")
	at := draw("four", "ann")
	again := listen(t, f, "player=ann&from=1", live.last) // the id says more than the address
	if e := again.event(); e["requestId"] != "four" || e["position"] != strconv.FormatUint(at, 10) || again.last != fmt.Sprint(at+1) {
		t.Errorf("%v, id %s", e, again.last)
	}
	all := listen(t, f, "from=1&pool=free", "")
	for _, want := range []string{"one", "two", "three", "four"} {
		if e := all.event(); e["requestId"] != want {
			t.Errorf("%v, want %s", e, want)
		}
	}
	if err := f.server.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	var end sent
	for e := all.next(); e != (sent{}); e = all.next() {
		end = e
	}
	if end.name != "end" || !strings.Contains(end.data, `"unavailable"`) {
		t.Errorf("after the drain: %+v", end)
	}
}

// TestServerSentEventsAccess: who may not read a stream of events does not get it as server-sent
// events. A player's token may stand in the address, a key not.
func TestServerSentEventsAccess(t *testing.T) {
	f, k, _ := accessServer(t)
	ann := k.of("ann")
	for _, tt := range []struct {
		name, method, query, secret string
		want                        int
	}{
		{"nobody", "GET", "player=ann", "", 401},
		{"a key that does not exist", "GET", "", "wrong", 401},
		{"an admin", "GET", "", "admin", 200},
		{"a reader", "GET", "", "only-read", 200},
		{"a key that may only draw", "GET", "", "only-draw", 403},
		{"a key for another realm", "GET", "", "admin-elsewhere", 403},
		{"a key for a pool", "GET", "pool=free", "free-pool", 200},
		{"a key for a pool, all pools", "GET", "", "free-pool", 403},
		{"a key for other pools", "GET", "pool=free", "other-pool", 403},
		{"a key in the address", "GET", "access_token=" + "admin", "", 401},
		{"a player", "GET", "player=ann", ann, 200},
		{"a player, by the address", "GET", "player=ann&access_token=" + ann, "", 200},
		{"a player, about another one", "GET", "player=bob&access_token=" + ann, "", 403},
		{"a player, about all", "GET", "access_token=" + ann, "", 403},
		{"another method", "POST", "", "admin", 405},
		{"a field that there is not", "GET", "players=ann", "admin", 400},
		{"a field twice", "GET", "player=ann&player=bob", "admin", 400},
		{"no position", "GET", "from=-1", "admin", 400},
		{"a position beyond the end", "GET", "from=1000", "admin", 400},
		{"no query", "GET", "%zz", "admin", 400},
		{"a realm that there is not", "GET", "realm=nosuch", "admin", 404},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a stream never ends by itself
		r := httptest.NewRequestWithContext(ctx, tt.method, "/events", nil)
		r.URL.RawQuery = tt.query
		if tt.secret != "" {
			r.Header.Set("Authorization", "Bearer "+tt.secret)
		}
		w := &streamable{httptest.NewRecorder()}
		f.server.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: HTTP %d, want %d: %s", tt.name, w.Code, tt.want, w.Body)
		}
		if stream := w.Header().Get("Content-Type") == "text/event-stream"; stream != (tt.want == 200) {
			t.Errorf("%s: %v", tt.name, w.Header())
		}
	}
}
