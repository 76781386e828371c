//go:build unix

package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/drivertest"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// followed opens a realm that node "n2" leads and node "n1" follows.
func followed(t *testing.T, shared *drivertest.Shared) (leader *kuji.Realm, own *tenure) {
	t.Helper()
	open := func(node int, follow bool) *kuji.Engine {
		e, err := kuji.Open("", kuji.Options{Driver: shared.Node(node), Key: [32]byte{1}, Follow: follow})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() }) // a test may have spoilt it
		return e
	}
	leader, err := open(2, false).Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(clusterCatalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leader.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := leader.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "hats"}); err != nil {
		t.Fatal(err)
	}
	own = &tenure{engine: open(1, true)}
	own.until.Store(new(time.Time))
	if own.server, err = server.New(own.engine, server.Options{Hosts: []string{"example.com"}, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	if err := own.server.Realms()[0].Await(t.Context(), leader.Stats().Position); err != nil {
		t.Fatal(err)
	}
	return leader, own
}

// TestFollowingNode: a node that follows answers reads that may be stale, and metrics, though nobody
// leads. It says how far behind the leader it is. One that leads without a lease answers nothing.
func TestFollowingNode(t *testing.T) {
	shared := drivertest.NewShared(drivertest.SharedOptions{})
	leader, own := followed(t, shared)
	conf, err := clusterKey{1}.tls("shop", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	var position atomic.Uint64
	n := loneNode(t, nil)
	n.f.hosts = map[string]peer{"n2": startPeer(t, conf, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(nodeJSON{Node: "n2", Positions: map[string]uint64{"default": position.Load()}})
	})}
	n.set("n2", own)
	path := kujiv1connect.RewardServiceGetPlayerProcedure
	stale := func(want int, text string) {
		t.Helper()
		wantAnswer(t, requestOf(t.Context(), n.serveClient, path, `{"player":"ann","stale":true}`), want, text)
	}
	stale(http.StatusOK, `"hat"`)
	if d := n.describe(); d.State != stateFollows || !d.Ready || d.Behind != "" || d.Lag != 0 || d.Positions["default"] != leader.Stats().Position {
		t.Errorf("it says %+v", d)
	}

	position.Store(leader.Stats().Position + 7)
	n.compare(t.Context(), own, "n2")
	for n.describe().Lag != 7 && !t.Failed() {
		if t.Context().Err() != nil {
			t.Fatal("it never says that it is behind")
		}
	}

	own.leads.Store(true)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	n.stopped = stopped
	n.set("", own)
	stale(http.StatusServiceUnavailable, "n1 stops")
}

// TestDamagedNode: a node whose realm met damage says so, is not ready, must not lead, and gains nothing by
// opening the realms again.
func TestDamagedNode(t *testing.T) {
	shared := drivertest.NewShared(drivertest.SharedOptions{})
	leader, own := followed(t, shared)
	if own.damaged() != nil || own.stopped() != nil {
		t.Fatalf("a sound node: %v, %v", own.damaged(), own.stopped())
	}
	shared.Partition(1, true)
	if _, err := leader.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "hats"}); err != nil {
		t.Fatal(err)
	}
	kept, err := shared.Node(3).Open(t.Context(), server.DefaultRealm, driver.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	last, err := kept.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.Damage(server.DefaultRealm, last); err != nil {
		t.Fatal(err)
	}
	shared.Partition(1, false)
	if err := own.server.Realms()[0].Await(t.Context(), leader.Stats().Position); kuji.CodeOf(err) != kuji.CodeCorrupt {
		t.Fatalf("it follows over damage: %v", err)
	}
	n := loneNode(t, nil)
	n.set("n2", own)
	if d := n.describe(); d.Ready || d.Why == "" || own.damaged() == nil || own.stopped() != nil {
		t.Errorf("it says %+v; damaged: %v, to be opened again: %v", d, own.damaged(), own.stopped())
	}
}

// TestDifferentNode: a node whose chain is not the leader's says so, is not ready and must not lead.
func TestDifferentNode(t *testing.T) {
	leader, own := followed(t, drivertest.NewShared(drivertest.SharedOptions{}))
	conf, err := clusterKey{1}.tls("shop", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	st := leader.Stats()
	var chain atomic.Value
	chain.Store(hex.EncodeToString(st.Chain[:]))
	n := loneNode(t, nil)
	n.f.hosts = map[string]peer{"n2": startPeer(t, conf, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(nodeJSON{Node: "n2", Positions: map[string]uint64{"default": st.Position}, Chains: map[string]string{"default": chain.Load().(string)}})
	})}
	n.set("n2", own)
	compare := func() {
		n.compare(t.Context(), own, "n2")
		for own.asking.Load() {
			pause(t.Context(), time.Millisecond)
		}
	}
	compare()
	if d := n.describe(); !d.Ready || d.Chains["default"] != chain.Load() {
		t.Fatalf("with the leader's chain it says %+v", d)
	}
	chain.Store(strings.Repeat("17", 32))
	compare()
	if d := n.describe(); d.Ready || !strings.Contains(d.Why, "at node n2") || own.damaged() == nil || own.stopped() != nil {
		t.Errorf("with another chain it says %+v; damaged: %v, to be opened again: %v", d, own.damaged(), own.stopped())
	}
	wantAnswer(t, requestOf(t.Context(), n.serveClient, "/readyz", ""), http.StatusServiceUnavailable, "comparing chains")
	w := httptest.NewRecorder()
	n.serveClient(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	wantAnswer(t, w, http.StatusOK, `kuji_realm_chain_differs{realm="default"} 1`)
}
