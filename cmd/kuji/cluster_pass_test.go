package main

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// loneNode returns a node that knows its peers and nothing of who leads.
func loneNode(t *testing.T, peers map[string]peer) *node {
	t.Helper()
	conf, err := clusterKey{1}.tls("shop", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return &node{
		name: "n1", f: &clusterFlags{name: "shop", hosts: peers}, log: slog.New(slog.DiscardHandler), stopped: t.Context(),
		pass: newPasser(conf, server.Limits{InFlight: 1}), view: view{changed: make(chan struct{})},
	}
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := peer{"127.0.0.1", l.Addr().(*net.TCPAddr).Port - 1}
	l.Close() // nobody listens there
	n := loneNode(t, map[string]peer{"n1": {"127.0.0.1", 1}, "n2": dead})
	path := kujiv1connect.RewardServiceGetPlayerProcedure
	ended, end := context.WithCancel(t.Context())
	end()
	wantAnswer(t, request(ended, n.serveClient, path), http.StatusServiceUnavailable, "nobody has led")
	wantAnswer(t, request(t.Context(), n.servePeer, path), http.StatusServiceUnavailable, "n1 does not lead")
	wantAnswer(t, request(t.Context(), n.serveClient, "/readyz"), http.StatusServiceUnavailable, "nobody leads")
	wantAnswer(t, request(t.Context(), n.serveClient, "/healthz"), http.StatusOK, "ok")
	wantAnswer(t, request(t.Context(), n.serveClient, "/metrics"), http.StatusServiceUnavailable, "is opening the realms")
	n.pass.places <- struct{}{}
	wantAnswer(t, request(t.Context(), n.serveClient, path), http.StatusServiceUnavailable, "try again later")
	<-n.pass.places

	alone := loneNode(t, n.f.hosts)
	alone.stopped = ended
	wantAnswer(t, request(t.Context(), alone.serveClient, path), http.StatusServiceUnavailable, "n1 stops")
	alone.set("n2", nil)
	wantAnswer(t, request(t.Context(), alone.serveClient, path), http.StatusServiceUnavailable, "n2, which leads, cannot be reached")

	n.set("n2", nil)
	wantAnswer(t, request(t.Context(), n.serveClient, "/readyz"), http.StatusOK, "ready")
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("{}"))
	if n.passOn(w, r, dead) {
		t.Errorf("a leader that is dead was reached: %d %s", w.Code, w.Body)
	}
	if left, err := io.ReadAll(r.Body); err != nil || string(left) != "{}" {
		t.Errorf("of the body %q is left, %v; want all", left, err)
	}
}

// TestLostLeader: a request whose connection is lost has an outcome that nobody knows.
func TestLostLeader(t *testing.T) {
	conf, err := clusterKey{1}.tls("shop", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	to := startPeer(t, conf, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	n := loneNode(t, map[string]peer{"n2": to})
	n.set("n2", nil)
	w := request(t.Context(), n.serveClient, kujiv1connect.RewardServiceDrawProcedure)
	wantAnswer(t, w, http.StatusInternalServerError, `"unknown"`)
	wantAnswer(t, w, http.StatusInternalServerError, "send the same request id again")
}

// startPeer starts what answers requests that are passed on.
func startPeer(t *testing.T, conf *tls.Config, h http.HandlerFunc) peer {
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
	return peer{"127.0.0.1", l.Addr().(*net.TCPAddr).Port - 1}
}

// TestStrangers: who does not know the key, or knows that of another cluster, is not let in, and is not
// believed.
func TestStrangers(t *testing.T) {
	config := func(key clusterKey, cluster string) *tls.Config {
		conf, err := key.tls(cluster, "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		return conf
	}
	to := startPeer(t, config(clusterKey{1}, "shop"), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for name, c := range map[string]struct {
		conf *tls.Config
		ok   bool
	}{
		"member":          {config(clusterKey{1}, "shop"), true},
		"another key":     {config(clusterKey{2}, "shop"), false},
		"another cluster": {config(clusterKey{1}, "game"), false},
		"no certificate":  {&tls.Config{InsecureSkipVerify: true}, false},
		"believes all": {func() *tls.Config {
			c := config(clusterKey{2}, "shop")
			c.InsecureSkipVerify = true
			return c
		}(), false},
	} {
		client := &http.Client{Transport: peerTransport(c.conf)}
		resp, err := client.Get("https://" + to.requests() + nodePath)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v, want it let in: %v", name, err, c.ok)
		}
		if err == nil {
			resp.Body.Close()
		}
	}
}
