package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// testCatalog has a pool for every way in which a draw can end.
const testCatalog = `
kuji: 1
guesses: {per: forever, count: 1}
name: Test
counters: {hits: {}, misses: {}}
quests: {first: {needs: {hits: 1}}, last: {needs: {misses: 9}}}
items:
  gem: {kind: currency, name: Gem}
  sword: {name: Sword}
  shield: {name: Shield}
  pass: {name: Pass, lasts: 30d, extend: true}
pools:
  standard:
    name: Standard banner
    price: {gem: 1}
    max_count: 10
    entries:
      - {id: sword, weight: 0.25, reward: {items: {sword: 1}}}
      - {id: shield, weight: 0.75, stock: 1000, reward: {items: {shield: 2}}}
  free:
    entries:
      - {id: sword, weight: 1, reward: {items: {sword: 1}}}
  last:
    mode: raffle
    entries:
      - {id: only, stock: 1, reward: {items: {sword: 1}}}
  chest:
    rolls: {min: 1, max: 3}
    entries: [{id: sword, weight: 1, reward: {items: {sword: 1}}}, {id: blank, weight: 1}]
  caps:
    redeem: [{code: caps}, {code: old, until: 2020-01-01T00:00:00Z}]
    entries: [{id: sword, weight: 1, reward: {items: {sword: 1}}}]
  vip:
    when: {holds: {gem: 100000000}}
    price: [{gem: 1}, {shield: 1}]
    entries: [{id: sword, weight: 1}]
  choice:
    price: [{gem: 1}, {shield: 1}]
    entries: [{id: sword, weight: 1}]
  once:
    limits:
      - {per: forever, draws: 1}
    entries:
      - {id: sword, weight: 1, reward: {items: {sword: 1}}}
  dear:
    price: {gem: 1000}
    entries:
      - {id: sword, weight: 1, reward: {items: {sword: 1}}}
  future:
    starts: 2100-01-01T00:00:00Z
    entries:
      - {id: sword, weight: 1, reward: {items: {sword: 1}}}
  past:
    ends: 2001-01-01T00:00:00Z
    entries:
      - {id: sword, weight: 1, reward: {items: {sword: 1}}}
start: {gem: 100}
`

// fixture is a running server with an engine of its own.
type fixture struct {
	engine *kuji.Engine
	server *server.Server
	url    string
	addr   string
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// newEngine opens an engine whose realm default has testCatalog.
func newEngine(t testing.TB, o kuji.Options) *kuji.Engine {
	t.Helper()
	engine, err := kuji.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	realm, err := engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(testCatalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	return engine
}

func newServer(t testing.TB, o server.Options) *fixture {
	t.Helper()
	return newServerWith(t, kuji.Options{Sync: kuji.SyncNone}, o)
}

func newServerWith(t testing.TB, eo kuji.Options, o server.Options) *fixture {
	t.Helper()
	return newServerOn(t, newEngine(t, eo), o)
}

func newServerOn(t testing.TB, engine *kuji.Engine, o server.Options) *fixture {
	t.Helper()
	if o.Logger == nil {
		o.Logger = quiet()
	}
	s, err := server.New(engine, o)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{engine: engine, server: s}
}

// start serves on a loopback port until the test ends.
func start(t testing.TB, o server.Options) *fixture {
	t.Helper()
	return startWith(t, kuji.Options{Sync: kuji.SyncNone}, o)
}

func startWith(t testing.TB, eo kuji.Options, o server.Options) *fixture {
	t.Helper()
	return startEngine(t, newEngine(t, eo), o)
}

func startEngine(t testing.TB, engine *kuji.Engine, o server.Options) *fixture {
	t.Helper()
	f := newServerOn(t, engine, o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	f.url = "http://" + f.addr
	if o.TLS != nil {
		f.url = "https://" + f.addr
	}
	served := make(chan error, 1)
	go func() { served <- f.server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // whatever a test left open is cut
		_ = f.server.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return f
}

// client is one way of calling the API.
type client struct {
	name   string
	http   *http.Client
	reward kujiv1connect.RewardServiceClient
	admin  kujiv1connect.AdminServiceClient
}

func h2c(t testing.TB) *http.Client {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: p}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func h1(t testing.TB) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// withKey presents an API key with every call.
func withKey(key string) connect.ClientOption {
	return connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			req.Header().Set("Authorization", "Bearer "+key)
			return next(ctx, req)
		}
	}))
}

func newClient(name string, h *http.Client, url string, o ...connect.ClientOption) client {
	return client{name, h, kujiv1connect.NewRewardServiceClient(h, url, o...), kujiv1connect.NewAdminServiceClient(h, url, o...)}
}

// clients returns every protocol, encoding and HTTP version that clients use.
func clients(t testing.TB, url string, o ...connect.ClientOption) []client {
	with := func(more ...connect.ClientOption) []connect.ClientOption { return append(more, o...) }
	return []client{
		newClient("connect", h1(t), url, with()...),
		newClient("connect json", h1(t), url, with(connect.WithProtoJSON())...),
		newClient("connect h2c gzip", h2c(t), url, with(connect.WithSendGzip())...),
		newClient("connect get", h1(t), url, with(connect.WithHTTPGet())...),
		newClient("grpc", h2c(t), url, with(connect.WithGRPC())...),
		newClient("grpc json", h2c(t), url, with(connect.WithGRPC(), connect.WithProtoJSON())...),
		newClient("grpc-web", h1(t), url, with(connect.WithGRPCWeb())...),
	}
}

// detail returns the ErrorDetail of an error.
func detail(t testing.TB, err error) *kujiv1.ErrorDetail {
	t.Helper()
	if d := detailOf(err); d != nil {
		return d
	}
	t.Fatalf("no ErrorDetail in %v", err)
	return nil
}

func detailOf(err error) *kujiv1.ErrorDetail {
	var ce *connect.Error
	if !asConnect(err, &ce) {
		return nil
	}
	for _, d := range ce.Details() {
		m, err := d.Value()
		if err != nil {
			continue
		}
		if ed, ok := m.(*kujiv1.ErrorDetail); ok {
			return ed
		}
	}
	return nil
}

func diff(want, got proto.Message) string { return cmp.Diff(want, got, protocmp.Transform()) }

func TestEveryProtocolGivesTheSameAnswers(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	all := clients(t, f.url)
	req := &kujiv1.DrawRequest{RequestId: "draw-1", Player: "ann", Pool: "standard", Count: 5}
	first, err := all[0].reward.Draw(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	res := first.GetResult()
	if res.GetStatus() != kujiv1.Status_STATUS_OK || len(res.GetOutcomes()) != 5 || res.GetReplayed() {
		t.Fatalf("first answer %v, want OK, 5 outcomes, not replayed", res)
	}
	rc := res.GetReceipt()
	if rc.GetRealm() != "default" || rc.GetPosition() == 0 || rc.GetTimeUnixMs() == 0 || rc.GetCatalogVersion() != 1 ||
		rc.GetEpoch() == 0 || len(rc.GetCommitment()) != 32 || bytes.Equal(rc.GetCommitment(), make([]byte, 32)) {
		t.Errorf("receipt %v lacks something", rc)
	}
	again := proto.Clone(res).(*kujiv1.Result)
	again.Replayed = true

	player, err := all[0].reward.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if got := player.GetPlayer().GetItems()[0]; got.GetItem() != "gem" || got.GetQuantity() != 95 {
		t.Errorf("after 5 draws for 1 gem each the player holds %v, want 95 gems first", got)
	}
	pool, err := all[0].reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "standard"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.reward.Draw(ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(again, got.GetResult()); d != "" {
				t.Errorf("the same id gives another answer:\n%s", d)
			}
			other := proto.Clone(req).(*kujiv1.DrawRequest)
			other.Count = 6
			_, err = c.reward.Draw(ctx, other)
			if connect.CodeOf(err) != connect.CodeAlreadyExists || detail(t, err).GetReason() != kujiv1.Reason_REASON_ID_REUSED {
				t.Errorf("the same id with other arguments: %v, want already_exists", err)
			}
			gotPlayer, err := c.reward.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(player, gotPlayer); d != "" {
				t.Errorf("player differs:\n%s", d)
			}
			gotPool, err := c.reward.GetPool(ctx, &kujiv1.GetPoolRequest{Pool: "standard"})
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(pool, gotPool); d != "" {
				t.Errorf("pool differs:\n%s", d)
			}
			late, err := c.reward.Draw(ctx, &kujiv1.DrawRequest{RequestId: "late-1", Player: "bob", Pool: "past"})
			if err != nil || late.GetResult().GetStatus() != kujiv1.Status_STATUS_ENDED || late.GetResult().GetReceipt().GetPosition() == 0 {
				t.Errorf("draw from a pool that has ended: %v, %v; want the status and a receipt", late, err)
			}
		})
	}
}

func TestUnaryCommands(t *testing.T) {
	ctx := context.Background()
	f := start(t, server.Options{})
	c := clients(t, f.url)[0].reward
	stacks := func(item string, n uint64) []*kujiv1.Stack { return []*kujiv1.Stack{{Item: item, Quantity: n}} }
	check := func(what string, res *kujiv1.Result, err error) {
		t.Helper()
		if err != nil || res.GetStatus() != kujiv1.Status_STATUS_OK || res.GetReceipt().GetPosition() == 0 {
			t.Fatalf("%s: %v, %v", what, res, err)
		}
	}
	g, err := c.Grant(ctx, &kujiv1.GrantRequest{RequestId: "g", Player: "ann", Items: stacks("sword", 3)})
	check("grant", g.GetResult(), err)
	u, err := c.Consume(ctx, &kujiv1.ConsumeRequest{RequestId: "c", Player: "ann", Items: stacks("sword", 1)})
	check("consume", u.GetResult(), err)
	x, err := c.Transfer(ctx, &kujiv1.TransferRequest{RequestId: "t", From: "ann", To: "bob", Items: stacks("sword", 1)})
	check("transfer", x.GetResult(), err)
	b, err := c.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: "bob"})
	if d := cmp.Diff(stacks("sword", 1), b.GetPlayer().GetItems(), protocmp.Transform()); d != "" || err != nil {
		t.Errorf("before he comes bob holds (%v):\n%s", err, d)
	}
	r, err := c.Register(ctx, &kujiv1.RegisterRequest{RequestId: "r", Player: "bob", Reason: "signed up"})
	check("register", r.GetResult(), err)
	a, err := c.Atomic(ctx, &kujiv1.AtomicRequest{RequestId: "a", Members: []*kujiv1.Member{
		{Command: &kujiv1.Member_Consume{Consume: &kujiv1.Consume{Player: "ann", Items: stacks("sword", 1)}}},
		{Command: &kujiv1.Member_Draw{Draw: &kujiv1.Draw{Player: "ann", Pool: "free"}}},
		{Command: &kujiv1.Member_Grant{Grant: &kujiv1.Grant{Player: "ann", Items: stacks("shield", 4)}}},
		{Command: &kujiv1.Member_Transfer{Transfer: &kujiv1.Transfer{From: "ann", To: "bob", Items: stacks("shield", 4)}}},
		{Command: &kujiv1.Member_Register{Register: &kujiv1.Register{Player: "bob"}}},
	}})
	check("atomic", a.GetResult(), err)
	if m := a.GetResult().GetMembers(); len(m) != 5 || len(m[1].GetOutcomes()) != 1 || m[1].GetOutcomes()[0].GetEntry() != "sword" || m[0].GetReceipt() != nil {
		t.Errorf("members %v, want 5, the second with a sword, none with a receipt of its own", m)
	}
	for player, want := range map[string][]*kujiv1.Stack{
		"ann": append(stacks("gem", 100), stacks("sword", 1)...),
		"bob": append(append(stacks("gem", 100), stacks("sword", 1)...), stacks("shield", 4)...),
	} {
		for _, stale := range []bool{false, true} {
			got, err := c.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: player, Stale: stale})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got.GetPlayer().GetItems(), protocmp.Transform()); d != "" {
				t.Errorf("%s holds (stale %v):\n%s", player, stale, d)
			}
		}
	}
	// A group that fails in the middle names the member and undoes the others.
	failed, err := c.Atomic(ctx, &kujiv1.AtomicRequest{RequestId: "b", Members: []*kujiv1.Member{
		{Command: &kujiv1.Member_Grant{Grant: &kujiv1.Grant{Player: "ann", Items: stacks("sword", 1)}}},
		{Command: &kujiv1.Member_Draw{Draw: &kujiv1.Draw{Player: "ann", Pool: "dear"}}},
	}})
	res := failed.GetResult()
	if err != nil || res.GetStatus() != kujiv1.Status_STATUS_INSUFFICIENT_ITEMS || res.GetSubject() != "gem" || len(res.GetMembers()) != 2 ||
		res.GetMembers()[0].GetStatus() != kujiv1.Status_STATUS_ABORTED {
		t.Errorf("group with a draw that is too dear: %v", res)
	}
}

// send makes an HTTP request with pairs of header names and values.
func send(t testing.TB, h *http.Client, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// post sends JSON as curl would.
func post(t testing.TB, h *http.Client, url, path, body string, header ...string) (int, string) {
	t.Helper()
	return send(t, h, http.MethodPost, url+path, body, append([]string{"Content-Type", "application/json"}, header...)...)
}

func get(t testing.TB, h *http.Client, url string, header ...string) (int, string) {
	t.Helper()
	return send(t, h, http.MethodGet, url, "", header...)
}

func TestPlainJSON(t *testing.T) {
	f := start(t, server.Options{})
	h := h1(t)
	code, text := post(t, h, f.url, "/kuji.v1.RewardService/Draw", `{"requestId":"r1","player":"ann","pool":"free"}`)
	var got struct {
		Result struct {
			Status   string
			Outcomes []struct {
				Entry string
				Items []struct{ Item, Quantity string }
			}
			Receipt struct{ Realm, Position, Commitment string }
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if code != 200 || got.Result.Status != "STATUS_OK" || got.Result.Outcomes[0].Entry != "sword" ||
		got.Result.Outcomes[0].Items[0].Quantity != "1" || got.Result.Receipt.Realm != "default" {
		t.Errorf("draw by JSON: %d %s", code, text)
	}
	for _, tt := range []struct {
		name, path, body string
		header           []string
		code             int
		want             string
	}{
		{"snake case, charset", "Draw", `{"request_id":"r1","player":"ann","pool":"free"}`,
			[]string{"Content-Type", "application/json; charset=utf-8"}, 200, `"replayed":true`},
		{"unknown field", "Draw", `{"player":"ann","pool":"free","cuont":10}`, nil, 400, "cuont"},
		{"unknown field, charset", "Draw", `{"player":"ann","pool":"free","cuont":10}`,
			[]string{"Content-Type", "application/json; charset=utf-8"}, 400, "cuont"},
		{"not JSON", "Draw", `{"player":`, nil, 400, "invalid_argument"},
		{"empty body", "Draw", ``, nil, 400, "want a JSON object"},
		{"wrong type", "Draw", `{"player":7}`, nil, 400, "invalid_argument"},
		{"duplicate field", "Draw", `{"player":"ann","player":"bob","pool":"free"}`, nil, 400, "duplicate"},
		{"negative count", "Draw", `{"player":"ann","pool":"free","count":-1}`, nil, 400, "invalid_argument"},
		{"no player", "Draw", `{"pool":"free"}`, nil, 400, "player"},
		{"unknown realm", "Draw", `{"realm":"nope","player":"ann","pool":"free"}`, nil, 404, "REASON_NOT_FOUND"},
		{"bad realm name", "Draw", `{"realm":"../x","player":"ann","pool":"free"}`, nil, 400, "REASON_INVALID"},
		{"sold out carries its receipt", "Draw", `{"player":"ann","pool":"past"}`, nil, 200, `"status":"STATUS_ENDED"`},
		{"never seen player", "GetPlayer", `{"player":"nobody"}`, nil, 404, "not_found"},
		{"unknown pool", "GetPool", `{"pool":"nope"}`, nil, 404, "not_found"},
		{"unknown RPC", "Darw", `{}`, nil, 501, "unimplemented"},
		{"other content type", "Draw", `player=ann`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "want one of application/json"},
		{"unknown compression", "Draw", `{}`, []string{"Content-Encoding", "zstd"}, 501, "zstd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, text := post(t, h, f.url, "/kuji.v1.RewardService/"+tt.path, tt.body, tt.header...)
			if code != tt.code || !strings.Contains(strings.ReplaceAll(text, `": `, `":`), tt.want) {
				t.Errorf("%d %s\nwant %d with %q", code, text, tt.code, tt.want)
			}
		})
	}
}
