package conformance

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/kuji-dev/kuji/internal/proxy"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// scenarios are what every client must do. Each names the section of docs/clients.md that it holds clients to.
var scenarios = []struct {
	name string
	play func(t *testing.T, w *world, p *program)
}{
	{"a draw", aDraw},
	{"names in any script", anyScript},
	{"ids carry their time", ids},
	{"every status is a value", statuses},
	{"typed errors", typedErrors},
	{"keys and tokens", keys},
	{"what is malformed goes out once", malformed},
	{"an answer is lost", answerLost},
	{"the answer to a read is lost", readLost},
	{"a connection breaks before the server has it", connectionBroken},
	{"503, then good", busyThenGood},
	{"garbage, then good", garbage},
	{"Retry-After of the server", retryAfter},
	{"Retry-After of something between", retryAfterBetween},
	{"Retry-After beyond the deadline", retryAfterTooLong},
	{"a rate limit", rateLimit},
	{"kill -9 in the middle of draws", killed},
	{"the first of two servers is dead", firstDead},
	{"the first of two servers does not lead", firstFollows},
	{"the first of two servers is silent", firstSilent},
	{"a connection falls silent", connectionSilent},
	{"nobody there", nobody},
	{"a deadline: unknown, and sent again", deadline},
	{"cancelled by the caller", cancelled},
	{"a defect of the server is not repeated", defect},
	{"64-bit numbers", numbers},
	{"a batch of all kinds", batch},
	{"a batch whose answer is lost", batchLost},
	{"a stream of draws that breaks", draws},
	{"a stream of draws that is refused", drawsRefused},
	{"a feed that breaks", feed},
	{"a feed repeats events", feedRepeats},
	{"a feed falls silent", feedSilent},
	{"a feed that is refused", feedRefused},
}

// TestClients plays all scenarios against all clients that can run here.
func TestClients(t *testing.T) {
	w := newWorld(t)
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			p := start(t, l)
			t.Run("plays", func(t *testing.T) {
				for _, s := range scenarios {
					t.Run(s.name, func(t *testing.T) {
						t.Parallel()
						s.play(t, w, p)
					})
				}
			})
		})
	}
}

// who returns a player of a scenario's own.
func who(t *testing.T, name string) string {
	return fmt.Sprintf("%s-%x", name, hash(t.Name()))
}

func hash(text string) (h uint32) {
	for _, c := range []byte(text) {
		h = h*16777619 ^ uint32(c)
	}
	return h
}

// hats returns how many hats a player has, by a client without faults.
func hats(t *testing.T, s *server, key, player string) uint64 {
	t.Helper()
	res, err := s.asks(t, key).GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: player})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range res.GetPlayer().GetItems() {
		if item.GetItem() == "hat" {
			return item.GetQuantity()
		}
	}
	return 0
}

// once checks that a player has drawn one hat, and that the request id has its answer.
func once(t *testing.T, s *server, player, id string) {
	t.Helper()
	if n := hats(t, s, "", player); n != 1 {
		t.Errorf("the player has %d hats, want 1", n)
	}
	res, err := s.asks(t, "").GetResult(t.Context(), &kujiv1.GetResultRequest{RequestId: id, Player: player})
	if err != nil || res.GetSeen() != kujiv1.Seen_SEEN_ANSWERED {
		t.Errorf("%s: %v, %v, want answered", id, res.GetSeen(), err)
	}
}

func aDraw(t *testing.T, w *world, p *program) {
	c, ann := p.open(t, options{}, w.open.url()), who(t, "ann")
	var res kujiv1.DrawResponse
	c.call(t, "Draw", &kujiv1.DrawRequest{RequestId: "id-" + ann, Player: ann, Pool: "hats", Count: 3}, &res)
	r := res.GetResult()
	if r.GetStatus() != kujiv1.Status_STATUS_OK || len(r.GetOutcomes()) != 3 || r.GetOutcomes()[0].GetItems()[0].GetItem() != "hat" ||
		r.GetReceipt().GetPosition() == 0 || len(r.GetReceipt().GetCommitment()) != 32 || r.GetReplayed() {
		t.Errorf("got %v, want 3 hats and a receipt", r)
	}
	var again kujiv1.DrawResponse
	c.call(t, "Draw", &kujiv1.DrawRequest{RequestId: "id-" + ann, Player: ann, Pool: "hats", Count: 3}, &again)
	if !again.GetResult().GetReplayed() || again.GetResult().GetReceipt().GetPosition() != r.GetReceipt().GetPosition() {
		t.Errorf("again: %v, want the first answer", again.GetResult())
	}
	var player kujiv1.GetPlayerResponse
	c.call(t, "GetPlayer", &kujiv1.GetPlayerRequest{Player: ann}, &player)
	if items := player.GetPlayer().GetItems(); len(items) != 1 || items[0].GetQuantity() != 3 {
		t.Errorf("holds %v, want 3 hats", items)
	}
	c.call(t, "AdminService/GetStatus", &kujiv1.GetStatusRequest{}, &kujiv1.GetStatusResponse{})
}

func anyScript(t *testing.T, w *world, p *program) {
	c, name := p.open(t, options{}, w.open.url()), who(t, "アン Ünï 🎉")
	c.call(t, "Draw", &kujiv1.DrawRequest{RequestId: "籤-" + name[len(name)-8:], Player: name, Pool: "hats"}, nil)
	var res kujiv1.GetResultResponse
	c.call(t, "GetResult", &kujiv1.GetResultRequest{RequestId: "籤-" + name[len(name)-8:]}, &res)
	if res.GetPlayer() != name || hats(t, w.open, "", name) != 1 {
		t.Errorf("the answer is that of %q, want %q", res.GetPlayer(), name)
	}
}

// ids reads the time in an id: a ULID or a UUID of version 7.
func ids(t *testing.T, _ *world, p *program) {
	s := &script{draw: func(context.Context, int, *kujiv1.DrawRequest) (*kujiv1.Result, error) {
		return &kujiv1.Result{Status: kujiv1.Status_STATUS_OK}, nil
	}}
	c := p.open(t, options{}, s.serve(t))
	all := map[string]bool{}
	for range 20 {
		l := p.do(t, "id", nil).next(t)
		_, id, _ := strings.Cut(string(l.Result), `:"`)
		if id == "" {
			_, id, _ = strings.Cut(string(l.Result), `: "`)
		}
		all[strings.TrimSuffix(id, `"}`)] = true
		c.call(t, "Draw", &kujiv1.DrawRequest{Player: "ann", Pool: "hats"}, nil)
	}
	sent, _ := s.sent()
	for _, id := range sent {
		all[id] = true
	}
	if len(all) != 40 {
		t.Errorf("%d different ids, want 40: %v", len(all), all)
	}
	for id := range all {
		if at, ok := timeIn(id); !ok || time.Since(at).Abs() > time.Hour {
			t.Errorf("the id %q says %s", id, at)
		}
	}
}

func timeIn(id string) (time.Time, bool) {
	ms := int64(0)
	digits, base := "0123456789ABCDEFGHJKMNPQRSTVWXYZ", int64(32)
	text, want := strings.ToUpper(id), 26
	if len(id) == 36 && id[14] == '7' {
		text, digits, base, want = strings.ReplaceAll(text, "-", "")[:12], "0123456789ABCDEF", 16, 12
	}
	if len(text) != want {
		return time.Time{}, false
	}
	for _, c := range text[:min(want, 12)][:map[bool]int{true: 10, false: 12}[want == 26]] {
		at := strings.IndexRune(digits, c)
		if at < 0 {
			return time.Time{}, false
		}
		ms = ms*base + int64(at)
	}
	return time.UnixMilli(ms), true
}

func statuses(t *testing.T, w *world, p *program) {
	var order []kujiv1.Status
	for number := range kujiv1.Status_name {
		order = append(order, kujiv1.Status(number))
	}
	slices.Sort(order)
	s := &script{draw: func(_ context.Context, _ int, req *kujiv1.DrawRequest) (*kujiv1.Result, error) {
		return &kujiv1.Result{Status: order[req.GetCount()], Subject: "about " + req.GetPlayer()}, nil
	}}
	c := p.open(t, options{}, s.serve(t))
	for i, status := range order {
		var res kujiv1.DrawResponse
		c.call(t, "Draw", &kujiv1.DrawRequest{Player: "ann", Pool: "p", Count: uint32(i)}, &res)
		if got := res.GetResult(); got.GetStatus() != status || got.GetSubject() != "about ann" {
			t.Errorf("got %v, want %v", got, status)
		}
	}
	if sent, _ := s.sent(); len(sent) != len(order) {
		t.Errorf("%d requests for %d statuses", len(sent), len(order))
	}
	var res kujiv1.DrawResponse
	p.open(t, options{}, w.open.url()).call(t, "Draw", &kujiv1.DrawRequest{Player: who(t, "ann"), Pool: "shop"}, &res)
	if res.GetResult().GetStatus() != kujiv1.Status_STATUS_INSUFFICIENT_ITEMS || res.GetResult().GetSubject() != "gem" {
		t.Errorf("who has no gems: %v", res.GetResult())
	}
}

// want checks an error.
func want(t *testing.T, f *failure, kind, code, reason string) {
	t.Helper()
	if f == nil || f.Kind != kind || f.Code != code || f.Reason != reason {
		t.Errorf("got %v, want %s: %s %s", f, kind, code, reason)
	}
}

func typedErrors(t *testing.T, w *world, p *program) {
	c, ann := p.open(t, options{}, w.open.url()), who(t, "ann")
	f := c.fails(t, "Draw", &kujiv1.DrawRequest{RequestId: "id-" + ann, Pool: "hats"})
	want(t, f, "server", "invalid_argument", "REASON_INVALID")
	if !slices.Equal(f.Fields, []string{"player"}) {
		t.Errorf("fields %q, want player", f.Fields)
	}
	want(t, c.fails(t, "Draw", &kujiv1.DrawRequest{RequestId: "id-" + ann, Player: ann, Pool: "no-such-pool"}), "server", "not_found", "REASON_NOT_FOUND")
	want(t, c.fails(t, "GetPlayer", &kujiv1.GetPlayerRequest{Player: ann}), "server", "not_found", "REASON_NOT_FOUND")
	c.call(t, "Draw", &kujiv1.DrawRequest{RequestId: "id-" + ann, Player: ann, Pool: "hats"}, nil)
	want(t, c.fails(t, "Draw", &kujiv1.DrawRequest{RequestId: "id-" + ann, Player: ann, Pool: "hats", Count: 2}), "server", "already_exists", "REASON_ID_REUSED")
	if n := hats(t, w.open, "", ann); n != 1 {
		t.Errorf("%d hats, want 1", n)
	}
}

func keys(t *testing.T, w *world, p *program) {
	url, ann := w.keyed.url(), who(t, "ann")
	req := &kujiv1.DrawRequest{RequestId: "id-" + ann, Player: ann, Pool: "hats"}
	want(t, p.open(t, options{}, url).fails(t, "Draw", req), "server", "unauthenticated", "REASON_UNAUTHENTICATED")
	want(t, p.open(t, options{key: "wrong"}, url).fails(t, "Draw", req), "server", "unauthenticated", "REASON_UNAUTHENTICATED")
	shop := p.open(t, options{key: w.draw}, url)
	want(t, shop.fails(t, "Grant", &kujiv1.GrantRequest{Player: ann, Items: []*kujiv1.Stack{{Item: "gem", Quantity: 1}}}), "server", "permission_denied", "REASON_FORBIDDEN")
	shop.call(t, "Draw", req, nil)

	token := p.open(t, options{key: w.token(t, ann)}, url)
	token.call(t, "Draw", &kujiv1.DrawRequest{Player: ann, Pool: "hats"}, nil)
	want(t, token.fails(t, "Draw", &kujiv1.DrawRequest{Player: who(t, "bob"), Pool: "hats"}), "server", "permission_denied", "REASON_FORBIDDEN")
	var mine kujiv1.GetPlayerResponse
	token.call(t, "GetPlayer", &kujiv1.GetPlayerRequest{Player: ann}, &mine)
	if items := mine.GetPlayer().GetItems(); len(items) != 1 || items[0].GetQuantity() != 2 {
		t.Errorf("holds %v, want 2 hats", items)
	}
	came := events(t, token.do(t, "events", map[string]any{"client": token.name, "events": 2, "request": &kujiv1.StreamEventsRequest{From: proto.Uint64(1), Player: ann}}))
	if len(came) != 2 || came[0].GetPlayer() != ann {
		t.Errorf("the player's feed has %v", came)
	}
}

func malformed(t *testing.T, w *world, p *program) {
	for name, req := range map[string]*kujiv1.DrawRequest{
		"no player":       {Pool: "hats"},
		"no such pool":    {Player: "ann", Pool: "no-such-pool"},
		"too many":        {Player: "ann", Pool: "hats", Count: 1001},
		"no such realm":   {Realm: "no-such-realm", Player: "ann", Pool: "hats"},
		"too long a name": {Player: strings.Repeat("a", 65), Pool: "hats"},
	} {
		f := inFront(t, w.open)
		got := p.open(t, options{}, f.url).fails(t, "Draw", req)
		if got.Kind != "server" {
			t.Errorf("%s: %v, want an error of the server", name, got)
		}
		if sent, _ := f.sent(); len(sent) != 1 {
			t.Errorf("%s: sent %d times, want once", name, len(sent))
		}
	}
}

// faulty draws through faults, and checks that it happened once, under one id in all requests.
func faulty(t *testing.T, w *world, p *program, requests int, next ...fault) {
	t.Helper()
	f, ann := inFront(t, w.open, next...), who(t, "ann")
	id := "id-" + ann
	var res kujiv1.DrawResponse
	p.open(t, options{}, f.url).call(t, "Draw", &kujiv1.DrawRequest{RequestId: id, Player: ann, Pool: "hats"}, &res)
	if res.GetResult().GetStatus() != kujiv1.Status_STATUS_OK {
		t.Errorf("got %v, want OK", res.GetResult())
	}
	sent, _ := f.sent()
	if len(sent) != requests {
		t.Errorf("%d requests, want %d", len(sent), requests)
	}
	for _, body := range sent {
		if !bytes.Contains(body, []byte(id)) {
			t.Errorf("a request has another id than %s: %q", id, body)
		}
	}
	once(t, w.open, ann, id)
}

func answerLost(t *testing.T, w *world, p *program) {
	faulty(t, w, p, 3, lost, lost)

	// Without an id of the caller's: the client makes one and keeps it.
	f, bob := inFront(t, w.open, lost), who(t, "bob")
	var res kujiv1.DrawResponse
	p.open(t, options{}, f.url).call(t, "Draw", &kujiv1.DrawRequest{Player: bob, Pool: "hats"}, &res)
	sent, _ := f.sent()
	if len(sent) != 2 || !bytes.Equal(sent[0], sent[1]) || !res.GetResult().GetReplayed() {
		t.Errorf("%d requests %q, answer %v: want the same twice, and the first answer", len(sent), sent, res.GetResult())
	}
	if n := hats(t, w.open, "", bob); n != 1 {
		t.Errorf("%d hats, want 1", n)
	}
}

func readLost(t *testing.T, w *world, p *program) {
	f := inFront(t, w.open, lost, broken)
	var res kujiv1.GetPoolResponse
	p.open(t, options{}, f.url).call(t, "GetPool", &kujiv1.GetPoolRequest{Pool: "hats"}, &res)
	if sent, _ := f.sent(); len(sent) != 3 || res.GetPool().GetId() != "hats" {
		t.Errorf("%d requests, answer %v", len(sent), &res)
	}
}

func connectionBroken(t *testing.T, w *world, p *program) { faulty(t, w, p, 3, broken, broken) }

func busyThenGood(t *testing.T, w *world, p *program) {
	busy := says(503, "text/html", "<html>no server</html>")
	faulty(t, w, p, 4, busy, says(502, "text/plain", "bad gateway"), busy)
}

func garbage(t *testing.T, w *world, p *program) {
	faulty(t, w, p, 3, says(200, "text/html", "<html>welcome to our hotel</html>"), says(200, "application/proto", "\xff\xff\xffgarbage"))
}

// pause checks that the last of n requests came at least so long after the one before.
func pause(t *testing.T, came []time.Time, n int, least time.Duration) {
	t.Helper()
	if len(came) != n {
		t.Fatalf("%d requests, want %d", len(came), n)
	}
	if got := came[n-1].Sub(came[n-2]); got < least {
		t.Errorf("sent again after %s, the server wants %s", got, least)
	}
}

func retryAfter(t *testing.T, _ *world, p *program) {
	s := &script{draw: func(_ context.Context, try int, _ *kujiv1.DrawRequest) (*kujiv1.Result, error) {
		if try == 1 {
			return nil, refuses(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED, "Retry-After", "2")
		}
		return &kujiv1.Result{Status: kujiv1.Status_STATUS_OK}, nil
	}}
	p.open(t, options{}, s.serve(t)).call(t, "Draw", &kujiv1.DrawRequest{Player: "ann", Pool: "p"}, nil)
	_, came := s.sent()
	pause(t, came, 2, 2*time.Second)
}

func retryAfterBetween(t *testing.T, w *world, p *program) {
	f := inFront(t, w.open, says(503, "text/html", "<html>later</html>", "Retry-After", "2"))
	p.open(t, options{}, f.url).call(t, "Draw", &kujiv1.DrawRequest{Player: who(t, "ann"), Pool: "hats"}, nil)
	if strings.HasPrefix(p.name, "python") {
		return // grpcio does not show the header of an answer that is not gRPC: docs/clients.md
	}
	_, came := f.sent()
	pause(t, came, 2, 2*time.Second)
}

func retryAfterTooLong(t *testing.T, _ *world, p *program) {
	s := &script{draw: func(context.Context, int, *kujiv1.DrawRequest) (*kujiv1.Result, error) {
		return nil, refuses(connect.CodeUnavailable, kujiv1.Reason_REASON_OVERLOADED, "Retry-After", "600")
	}}
	f := p.open(t, options{timeout: 20 * time.Second}, s.serve(t)).fails(t, "Draw", &kujiv1.DrawRequest{Player: "ann", Pool: "p"})
	want(t, f, "server", "unavailable", "REASON_OVERLOADED")
	if sent, _ := s.sent(); len(sent) != 1 {
		t.Errorf("sent %d times, want once", len(sent))
	}
}

// rateLimit: a key that may draw twice a second draws five times, and all are carried out.
func rateLimit(t *testing.T, w *world, p *program) {
	c, ann := p.open(t, options{key: w.slow}, w.keyed.url()), who(t, "ann")
	for range 5 {
		c.call(t, "Draw", &kujiv1.DrawRequest{Player: ann, Pool: "hats"}, nil)
	}
	if n := hats(t, w.keyed, w.admin, ann); n != 5 {
		t.Errorf("%d hats, want 5", n)
	}
}

func killed(t *testing.T, _ *world, p *program) {
	const all, before = 200, 60
	s := serve(t)
	c := p.open(t, options{timeout: -time.Millisecond}, s.url())
	// 16 are under way at a time.
	var under []*task
	next := func(i int) *task {
		return c.begin(t, "Draw", &kujiv1.DrawRequest{RequestId: fmt.Sprintf("k-%d", i), Player: "ann", Pool: "box"})
	}
	for i := range 16 {
		under = append(under, next(i))
	}
	places := map[string]bool{}
	for i := range all {
		var res kujiv1.DrawResponse
		if f := under[i].end(t, &res); f != nil {
			t.Fatal(f)
		}
		r := res.GetResult()
		if r.GetStatus() != kujiv1.Status_STATUS_OK {
			t.Errorf("got %v", r)
		}
		places[fmt.Sprint(r.GetReceipt().GetPosition(), ".", r.GetReceipt().GetIndex())] = true
		if i == before {
			s.kill()
			s.start(t)
		}
		if len(under) < all {
			under = append(under, next(len(under)))
		}
	}
	pool, err := s.asks(t, "").GetPool(t.Context(), &kujiv1.GetPoolRequest{Pool: "box"})
	if err != nil || pool.GetPool().GetEntries()[0].GetLeft() != 500-all || len(places) != all {
		t.Errorf("%v, %v, %d events: want %d of 500 drawn", pool, err, len(places), all)
	}
	drawn := map[string]int{}
	for _, e := range logged(t, s, &kujiv1.StreamEventsRequest{From: proto.Uint64(1), Pool: "box"}, all, isDraw) {
		drawn[e.GetRequestId()]++
	}
	for id, n := range drawn {
		if n != 1 {
			t.Errorf("%s stands %d times in the log", id, n)
		}
	}
}

// alone draws twice by a client whose second server must answer.
func alone(t *testing.T, w *world, p *program, first string, o options) {
	t.Helper()
	c, ann := p.open(t, o, first, w.open.url()), who(t, "ann")
	for i := range 2 {
		c.call(t, "Draw", &kujiv1.DrawRequest{RequestId: fmt.Sprintf("%s-%d", ann, i), Player: ann, Pool: "hats"}, nil)
	}
	if n := hats(t, w.open, "", ann); n != 2 {
		t.Errorf("%d hats, want 2", n)
	}
}

// away returns the URL of a server that nobody serves.
func away(t *testing.T) string {
	t.Helper()
	addresses, err := proxy.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + addresses[0]
}

func firstDead(t *testing.T, w *world, p *program) { alone(t, w, p, away(t), options{}) }

func firstFollows(t *testing.T, w *world, p *program) {
	for _, reason := range []kujiv1.Reason{kujiv1.Reason_REASON_CLOSED, kujiv1.Reason_REASON_UNKNOWN_OUTCOME, kujiv1.Reason_REASON_FAILED} {
		t.Run(reason.String(), func(t *testing.T) {
			s := &script{draw: func(context.Context, int, *kujiv1.DrawRequest) (*kujiv1.Result, error) {
				return nil, refuses(connect.CodeUnavailable, reason)
			}}
			alone(t, w, p, s.serve(t), options{})
			if sent, _ := s.sent(); len(sent) != 1 {
				t.Errorf("the first server was asked %d times, want once: the next call begins with the one that works", len(sent))
			}
		})
	}
}

// silent is a server that never answers.
func silent() *script {
	return &script{draw: func(ctx context.Context, _ int, _ *kujiv1.DrawRequest) (*kujiv1.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
}

func firstSilent(t *testing.T, w *world, p *program) {
	alone(t, w, p, silent().serve(t), options{attempt: 300 * time.Millisecond})
}

// connectionSilent: the other end is gone without a word, and there is no other server.
func connectionSilent(t *testing.T, w *world, p *program) {
	between, ann := cuts(t, w.open), who(t, "ann")
	c := p.open(t, options{attempt: 500 * time.Millisecond}, "http://"+between.Addr())
	c.call(t, "GetPool", &kujiv1.GetPoolRequest{Pool: "hats"}, nil)
	between.Freeze()
	id := "id-" + ann
	c.call(t, "Draw", &kujiv1.DrawRequest{RequestId: id, Player: ann, Pool: "hats"}, nil)
	once(t, w.open, ann, id)
}

func nobody(t *testing.T, _ *world, p *program) {
	f := p.open(t, options{timeout: 500 * time.Millisecond}, away(t)).fails(t, "Draw", &kujiv1.DrawRequest{RequestId: "the-id", Player: "ann", Pool: "hats"})
	if p.name != "go" && p.name != "java" && f.Kind == "unknown" && f.Code == "deadline_exceeded" {
		return // the time was up while it connected: docs/clients.md
	}
	if f.Kind != "unreachable" {
		t.Errorf("got %v, want unreachable: nothing was sent", f)
	}
}

func deadline(t *testing.T, w *world, p *program) {
	s, ann := silent(), who(t, "ann")
	url := s.serve(t)
	req := &kujiv1.DrawRequest{RequestId: "id-" + ann, Player: ann, Pool: "hats"}
	f := p.open(t, options{timeout: 500 * time.Millisecond}, url).fails(t, "Draw", req)
	if f.Kind != "unknown" || !slices.Equal(f.RequestIDs, []string{req.GetRequestId()}) {
		t.Fatalf("got %v, want one that says that it is unknown whether %s happened", f, req.GetRequestId())
	}
	// The id in the error is what is needed to find out.
	again := p.open(t, options{}, w.open.url())
	req.RequestId = f.RequestIDs[0]
	again.call(t, "Draw", req, nil)
	once(t, w.open, ann, req.GetRequestId())

	// An id that the client has made is in the error, too.
	f = p.open(t, options{timeout: 500 * time.Millisecond}, url).fails(t, "Draw", &kujiv1.DrawRequest{Player: ann, Pool: "hats"})
	sent, _ := s.sent()
	if f.Kind != "unknown" || len(f.RequestIDs) != 1 || f.RequestIDs[0] != sent[len(sent)-1] {
		t.Errorf("got %v, want the id that was sent, %s", f, sent[len(sent)-1])
	}
	// A read has nothing that could be unknown.
	f = p.open(t, options{timeout: 500 * time.Millisecond}, url).fails(t, "GetPlayer", &kujiv1.GetPlayerRequest{Player: ann})
	if f.Kind != "server" {
		t.Errorf("a read: %v, want an error of the server", f)
	}
}

func cancelled(t *testing.T, _ *world, p *program) {
	arrived := make(chan struct{}, 1)
	s := silent()
	wait := s.draw
	s.draw = func(ctx context.Context, try int, req *kujiv1.DrawRequest) (*kujiv1.Result, error) {
		arrived <- struct{}{}
		return wait(ctx, try, req)
	}
	c := p.open(t, options{timeout: -time.Millisecond}, s.serve(t))
	call := c.begin(t, "Draw", &kujiv1.DrawRequest{RequestId: "the-id", Player: "ann", Pool: "hats"})
	soon(t, arrived)
	p.do(t, "cancel", map[string]any{"of": call.n}).end(t, nil)
	f := call.end(t, nil)
	if f == nil || f.Kind != "unknown" || f.Code != "canceled" || !slices.Equal(f.RequestIDs, []string{"the-id"}) {
		t.Errorf("got %v, want that it was cancelled and is unknown", f)
	}
	if sent, _ := s.sent(); len(sent) != 1 {
		t.Errorf("sent %d times", len(sent))
	}
}

func defect(t *testing.T, _ *world, p *program) {
	s := &script{draw: func(context.Context, int, *kujiv1.DrawRequest) (*kujiv1.Result, error) {
		return nil, refuses(connect.CodeInternal, kujiv1.Reason_REASON_INTERNAL)
	}}
	f := p.open(t, options{}, s.serve(t)).fails(t, "Draw", &kujiv1.DrawRequest{RequestId: "the-id", Player: "ann", Pool: "hats"})
	want(t, f, "unknown", "internal", "REASON_INTERNAL")
	if sent, _ := s.sent(); len(sent) != 1 {
		t.Errorf("sent %d times, want once", len(sent))
	}
}

func numbers(t *testing.T, w *world, p *program) {
	c, ann := p.open(t, options{}, w.open.url()), who(t, "ann")
	const most = 1<<53 - 1
	c.call(t, "Grant", &kujiv1.GrantRequest{Player: ann, Items: []*kujiv1.Stack{{Item: "gem", Quantity: most}}}, nil)
	var player kujiv1.GetPlayerResponse
	c.call(t, "GetPlayer", &kujiv1.GetPlayerRequest{Player: ann}, &player)
	if got := player.GetPlayer().GetItems()[0].GetQuantity(); got != most {
		t.Errorf("%d gems, want %d", got, uint64(most))
	}
	var res kujiv1.GrantResponse
	c.call(t, "Grant", &kujiv1.GrantRequest{Player: ann, Items: []*kujiv1.Stack{{Item: "gem", Quantity: 1}}}, &res)
	if res.GetResult().GetStatus() != kujiv1.Status_STATUS_BALANCE_OVERFLOW {
		t.Errorf("one more: %v", res.GetResult())
	}

	asked := make(chan uint64, 1)
	s := &script{
		result: func(*kujiv1.GetResultRequest) *kujiv1.GetResultResponse {
			return &kujiv1.GetResultResponse{Result: &kujiv1.Result{Receipt: &kujiv1.Receipt{
				Position: math.MaxUint64, TimeUnixMs: math.MinInt64, CatalogVersion: 1<<53 + 1, Epoch: 1<<63 + 1}}}
		},
		events: func(from *uint64, send func(*kujiv1.StreamEventsResponse) error) error {
			asked <- *from
			return send(&kujiv1.StreamEventsResponse{Events: []*kujiv1.Event{{Position: *from, Changes: []*kujiv1.BalanceChange{{Delta: math.MinInt64}}}}, Next: math.MaxUint64})
		},
	}
	c = p.open(t, options{}, s.serve(t))
	var got kujiv1.GetResultResponse
	c.call(t, "GetResult", &kujiv1.GetResultRequest{RequestId: "x"}, &got)
	if r := got.GetResult().GetReceipt(); r.GetPosition() != math.MaxUint64 || r.GetTimeUnixMs() != math.MinInt64 || r.GetCatalogVersion() != 1<<53+1 || r.GetEpoch() != 1<<63+1 {
		t.Errorf("got %v", r)
	}
	feed := p.do(t, "events", map[string]any{"client": c.name, "events": 1, "request": &kujiv1.StreamEventsRequest{From: proto.Uint64(1<<53 + 3)}})
	e := events(t, feed)
	if from := soon(t, asked); from != 1<<53+3 || len(e) != 1 || e[0].GetPosition() != 1<<53+3 || e[0].GetChanges()[0].GetDelta() != math.MinInt64 {
		t.Errorf("asked from %d, got %v", from, e)
	}
}

// mixed is a batch of which each command ends in another way.
func mixed(player string) *kujiv1.BatchRequest {
	draw := func(pool string) *kujiv1.Command {
		return &kujiv1.Command{Command: &kujiv1.Command_Draw{Draw: &kujiv1.Draw{Player: player, Pool: pool}}}
	}
	return &kujiv1.BatchRequest{Commands: []*kujiv1.Command{draw("hats"), draw("shop"), draw("no-such-pool"), {RequestId: "mine-" + player, Command: &kujiv1.Command_Grant{
		Grant: &kujiv1.Grant{Player: player, Items: []*kujiv1.Stack{{Item: "gem", Quantity: 7}}}}}, draw("hats")}}
}

func wantMixed(t *testing.T, res *kujiv1.BatchResponse) {
	t.Helper()
	var got []string
	for _, r := range res.GetResults() {
		got = append(got, strings.TrimPrefix(r.GetStatus().String(), "STATUS_"))
	}
	if strings.Join(got, " ") != "OK INSUFFICIENT_ITEMS REFUSED OK OK" || res.GetResults()[2].GetError().GetReason() != kujiv1.Reason_REASON_NOT_FOUND {
		t.Errorf("results %q, %v", got, res)
	}
}

func batch(t *testing.T, w *world, p *program) {
	var res kujiv1.BatchResponse
	p.open(t, options{}, w.open.url()).call(t, "Batch", mixed(who(t, "ann")), &res)
	wantMixed(t, &res)
}

func batchLost(t *testing.T, w *world, p *program) {
	f, ann := inFront(t, w.open, lost), who(t, "ann")
	var res kujiv1.BatchResponse
	p.open(t, options{}, f.url).call(t, "Batch", mixed(ann), &res)
	wantMixed(t, &res)
	sent, _ := f.sent()
	if len(sent) != 2 || !bytes.Equal(sent[0], sent[1]) || !res.GetResults()[0].GetReplayed() {
		t.Errorf("%d requests, want the same twice", len(sent))
	}
	if n := hats(t, w.open, "", ann); n != 2 {
		t.Errorf("%d hats, want 2", n)
	}
	// In doubt, the error names all.
	down := inFront(t, w.open, slices.Repeat([]fault{broken}, 1000)...)
	got := p.open(t, options{timeout: 500 * time.Millisecond}, down.url).fails(t, "Batch", mixed(ann))
	if got.Kind != "unknown" || len(got.RequestIDs) != 5 || got.RequestIDs[3] != "mine-"+ann {
		t.Errorf("got %v, want the ids of all five commands", got)
	}
}
