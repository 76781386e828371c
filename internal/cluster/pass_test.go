package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/internal/election"
	"github.com/kuji-dev/kuji/internal/proxy"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// loneNode returns node n1, which knows where others are and nothing of who leads.
func loneNode(t *testing.T, peers map[string]Peer) *Node {
	t.Helper()
	n, err := newNode(Options{
		Config: Config{Name: "shop", Node: "n1", Peers: peers, Keys: Keys{{1}}}, Log: slog.New(slog.DiscardHandler),
		Server: server.Options{Limits: server.Limits{InFlight: 1}},
	}, "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	n.here.ctx = t.Context()
	t.Cleanup(n.stop)
	t.Cleanup(n.forget)
	return n
}

// joined returns a lone node that has joined a cluster without realms, whose board a test writes.
func joined(t *testing.T, d driver.Driver, peers map[string]Peer) *Node {
	t.Helper()
	n := loneNode(t, peers)
	engine, err := kuji.Open("", kuji.Options{Driver: d, Key: [32]byte{1}, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() }) // a test may have spoilt it
	n.here.exists = engine.Realms
	if n.here.server, err = server.New(engine, server.Options{Cluster: n, Hosts: []string{"example.com"}, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.work.Wait)
	n.says(election.Board{})
	return n
}

// says makes requests at a node see a board.
func (n *Node) says(b election.Board) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.board = b
	n.publish()
}

// ledBy is a board on which a node leads realms.
func ledBy(node string, realms ...string) election.Board {
	return election.Board{Nodes: map[string]election.Post{node: {Leads: realms}}}
}

func request(ctx context.Context, h http.HandlerFunc, path string) *httptest.ResponseRecorder {
	return requestOf(ctx, h, path, `{"player":"ann"}`)
}

func requestOf(ctx context.Context, h http.HandlerFunc, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h(w, r)
	return w
}

func wantAnswer(t *testing.T, w *httptest.ResponseRecorder, code int, text string) {
	t.Helper()
	if w.Code != code || !strings.Contains(w.Body.String(), text) {
		t.Errorf("answered %d %s, want %d with %q", w.Code, w.Body, code, text)
	}
}

// TestNobodyLeads: a request that cannot be passed on ends with an answer that says so, a request that
// was passed on already is not passed on again, and there are only so many at a time.
func TestNobodyLeads(t *testing.T) {
	nobody, err := proxy.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := ParsePeer(nobody[0]) // nor at the next port
	if err != nil {
		t.Fatal(err)
	}
	peers := map[string]Peer{"n1": {"127.0.0.1", 1}, "n2": dead}
	path := kujiv1connect.RewardServiceGetPlayerProcedure
	ended, end := context.WithCancel(t.Context())
	end()
	early := loneNode(t, peers)
	wantAnswer(t, request(ended, early.serveClient, path), http.StatusServiceUnavailable, "has not joined")
	wantAnswer(t, request(t.Context(), early.serveClient, "/readyz"), http.StatusServiceUnavailable, "has not joined")
	wantAnswer(t, request(t.Context(), early.serveClient, "/metrics"), http.StatusServiceUnavailable, "has not joined")

	n := joined(t, drivertest.NewShared(drivertest.SharedOptions{}).Node(1), peers)
	wantAnswer(t, request(ended, n.serveClient, path), http.StatusServiceUnavailable, "nobody has led realm \\\"default\\\"")
	wantAnswer(t, request(t.Context(), n.serveClient, "/readyz"), http.StatusServiceUnavailable, "does not know who leads")
	wantAnswer(t, request(t.Context(), n.serveClient, "/healthz"), http.StatusOK, "ok")
	n.places <- struct{}{}
	wantAnswer(t, request(t.Context(), n.serveClient, path), http.StatusServiceUnavailable, "try again later")
	<-n.places

	n.says(election.Board{Nodes: map[string]election.Post{"n2": {}}})
	wantAnswer(t, request(t.Context(), n.serveClient, "/readyz"), http.StatusServiceUnavailable, "nobody leads")
	n.says(ledBy("n2", "default"))
	wantAnswer(t, request(t.Context(), n.serveClient, "/readyz"), http.StatusOK, "ready")
	passed := request(t.Context(), n.servePeer, path)
	wantAnswer(t, passed, http.StatusServiceUnavailable, "node n2 does")
	if passed.Header().Get(elsewhereHeader) == "" {
		t.Error("a node that does not lead does not say that another one may be asked")
	}
	n.over = ended
	wantAnswer(t, request(t.Context(), n.serveClient, path), http.StatusServiceUnavailable, "n2, which leads realm \\\"default\\\", does not answer")
	n.says(election.Board{})
	wantAnswer(t, request(t.Context(), n.serveClient, path), http.StatusServiceUnavailable, "n1 stops")

	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("{}"))
	if resp, err := n.passOn(&server.Call{Request: r}, dead.Requests()); !errors.Is(err, errElsewhere) {
		t.Errorf("a leader that is dead answered %v, %v", resp, err)
	}
	if left, err := io.ReadAll(r.Body); err != nil || string(left) != "{}" {
		t.Errorf("of the body %q is left, %v; want all", left, err)
	}
}

// TestLostLeader: a request whose connection is lost has an outcome that nobody knows.
func TestLostLeader(t *testing.T) {
	to := startPeer(t, config(t, Keys{{1}}, "shop"), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	n := joined(t, drivertest.NewShared(drivertest.SharedOptions{}).Node(1), map[string]Peer{"n2": to})
	n.says(ledBy("n2", "default"))
	w := request(t.Context(), n.serveClient, kujiv1connect.RewardServiceDrawProcedure)
	wantAnswer(t, w, http.StatusInternalServerError, `"unknown"`)
	wantAnswer(t, w, http.StatusInternalServerError, "send the same request id again")
}

// TestMovedLeader: a request that a node does not answer, because it leads the realm no more, goes whole to who
// leads it by then. A realm that nobody knows is the business of one node.
func TestMovedLeader(t *testing.T) {
	var n *Node
	old := startPeer(t, config(t, Keys{{1}}, "shop"), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // it is not there to be sent again
		n.says(ledBy("n3", "default"))
		w.Header().Set(elsewhereHeader, "n2")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	now := startPeer(t, config(t, Keys{{1}}, "shop"), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "n3 got %s", body)
	})
	n = joined(t, drivertest.NewShared(drivertest.SharedOptions{}).Node(1), map[string]Peer{"n2": old, "n3": now})
	n.says(ledBy("n2", "default"))
	path := kujiv1connect.RewardServiceDrawProcedure
	wantAnswer(t, request(t.Context(), n.serveClient, path), http.StatusOK, `n3 got {"player":"ann"}`)

	for i := range 20 { // whoever is first for a name
		realm := fmt.Sprint("realm-", i)
		n.says(election.Board{Nodes: map[string]election.Post{"n1": {}, "n3": {}}})
		w := requestOf(t.Context(), n.serveClient, path, fmt.Sprintf(`{"realm":%q,"player":"ann","pool":"hats"}`, realm))
		if election.First([]string{"n1", "n3"}, realm) == "n3" {
			wantAnswer(t, w, http.StatusOK, "n3 got")
		} else {
			wantAnswer(t, w, http.StatusNotFound, "there is no realm")
		}
	}
	created := requestOf(t.Context(), n.servePeer, kujiv1connect.AdminServiceCreateRealmProcedure, `{"realm":"new"}`)
	wantAnswer(t, created, http.StatusOK, `{"created":true}`)
}

// TestRefusedStream: a stream of draws that a node refuses ends at once, although its client goes on.
func TestRefusedStream(t *testing.T) {
	to := startPeer(t, config(t, Keys{{1}}, "shop"), func(w http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1)) // the first batch is there
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		w.Header().Set(elsewhereHeader, "n2")
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("Grpc-Status", "14")
	})
	n := joined(t, drivertest.NewShared(drivertest.SharedOptions{}).Node(1), map[string]Peer{"n2": to})
	n.says(ledBy("n2", "default"))
	front := startPeer(t, config(t, Keys{{1}}, "shop"), n.serveClient)
	transport := &http.Transport{TLSClientConfig: config(t, Keys{{1}}, "shop"), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	c := kujiv1connect.NewRewardServiceClient(&http.Client{Transport: transport}, "https://"+front.Requests(), connect.WithGRPC())
	s, err := c.StreamDraws(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&kujiv1.StreamDrawsRequest{Players: []string{"ann"}, Pools: []string{"hats"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("a stream that another node refused: %v", err)
	}
}

// startPeer starts what answers requests that are passed on.
func startPeer(t *testing.T, conf *tls.Config, h http.HandlerFunc) Peer {
	t.Helper()
	s, err := server.NewHTTP(h, server.Limits{}, conf, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.ServeTLS(l, "", "") }() // ends with Close
	t.Cleanup(func() { s.Close() })
	return Peer{"127.0.0.1", l.Addr().(*net.TCPAddr).Port - 1}
}

// config is what both sides use at 127.0.0.1.
func config(t *testing.T, keys Keys, cluster string) *tls.Config {
	t.Helper()
	conf, err := keys.tls(cluster, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

// TestStrangers: who does not know the key, or knows that of another cluster, is not let in, and is not
// believed.
func TestStrangers(t *testing.T) {
	to := startPeer(t, config(t, Keys{{1}}, "shop"), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for name, c := range map[string]struct {
		conf *tls.Config
		ok   bool
	}{
		"member":          {config(t, Keys{{1}}, "shop"), true},
		"two keys":        {config(t, Keys{{1}, {2}}, "shop"), true},
		"only accepts":    {config(t, Keys{{2}, {1}}, "shop"), false},
		"another key":     {config(t, Keys{{2}}, "shop"), false},
		"another cluster": {config(t, Keys{{1}}, "game"), false},
		"no certificate":  {&tls.Config{InsecureSkipVerify: true}, false},
		"believes all": {func() *tls.Config {
			c := config(t, Keys{{2}}, "shop")
			c.InsecureSkipVerify = true
			return c
		}(), false},
	} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c.conf}}
		resp, err := client.Get("https://" + to.Requests() + nodePath)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v, want it let in: %v", name, err, c.ok)
		}
		if err == nil {
			resp.Body.Close()
		}
	}
}
