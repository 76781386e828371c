//go:build unix

package cli

import (
	"context"
	"encoding/hex"
	"encoding/json"
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
func followed(t *testing.T, shared *drivertest.Shared, peers map[string]peer) (leader *kuji.Realm, n *node, own *seat) {
	t.Helper()
	e, err := kuji.Open("", kuji.Options{Driver: shared.Node(2), Key: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() }) // a test may have spoilt it
	if leader, err = e.Realm(server.DefaultRealm); err != nil {
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
	n = joined(t, shared.Node(1), peers)
	own = &seat{realm: server.DefaultRealm}
	n.mu.Lock()
	n.here.seats[server.DefaultRealm] = own
	n.here.found = time.Now().Add(time.Hour)
	n.mu.Unlock()
	n.comesTo(t, own, seatFollows)
	n.says(ledBy("n2", server.DefaultRealm))
	if err := own.open.Await(t.Context(), leader.Stats().Position); err != nil {
		t.Fatal(err)
	}
	return leader, n, own
}

// comesTo tends a node's seats until one has a state.
func (n *node) comesTo(t *testing.T, s *seat, want seatState) {
	t.Helper()
	for {
		n.mu.Lock()
		n.tend(time.Now())
		is := s.state
		n.mu.Unlock()
		if is == want {
			return
		}
		select {
		case <-n.wake:
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("a seat is in state %d, and never comes to %d", is, want)
		}
	}
}

// TestFollowingNode: a node that follows answers reads that may be stale, and metrics, though nobody
// leads. It says how far behind the leader it is. One that leads without a lease answers nothing.
func TestFollowingNode(t *testing.T) {
	shared := drivertest.NewShared(drivertest.SharedOptions{})
	conf, err := clusterKeys{{1}}.tls("shop", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	var position atomic.Uint64
	leader, n, own := followed(t, shared, map[string]peer{"n2": startPeer(t, conf, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(nodeJSON{Node: "n2", Positions: map[string]uint64{"default": position.Load()}})
	})})
	path := kujiv1connect.RewardServiceGetPlayerProcedure
	stale := func(want int, text string) {
		t.Helper()
		wantAnswer(t, requestOf(t.Context(), n.serveClient, path, `{"player":"ann","stale":true}`), want, text)
	}
	stale(http.StatusOK, `"hat"`)
	if d := n.describe(); d.State != stateServes || !d.Ready || d.Behind != "" || d.Lag != 0 || len(d.Leads) != 0 || d.Leaders["default"] != "n2" || d.Positions["default"] != leader.Stats().Position {
		t.Errorf("it says %+v", d)
	}

	position.Store(leader.Stats().Position + 7)
	for n.describe().Lag != 7 { // it asks each second, and may get no answer in time
		n.compare(t.Context())
	}

	// It leads, but has no lease: another node may lead, so what it has may be old, or undone.
	n.mu.Lock()
	own.held, n.until = true, time.Now().Add(-time.Second)
	n.takeSeat(own)
	n.mu.Unlock()
	n.comesTo(t, own, seatLeads)
	over, end := context.WithCancel(t.Context())
	end()
	n.over = over
	n.says(board{})
	stale(http.StatusServiceUnavailable, "n1 stops")
	n.mu.Lock()
	n.until = time.Now().Add(time.Hour)
	n.mu.Unlock()
	n.says(ledBy("n1", server.DefaultRealm))
	stale(http.StatusOK, `"hat"`)
	if d := n.describe(); len(d.Leads) != 1 {
		t.Errorf("it says %+v", d)
	}
	if err := leader.Err(); err != nil { // it does not know yet
		t.Error(err)
	}
}

// TestDamagedNode: a node whose realm met damage says so, must not lead it, and gains nothing by opening it
// again.
func TestDamagedNode(t *testing.T) {
	shared := drivertest.NewShared(drivertest.SharedOptions{})
	leader, n, own := followed(t, shared, nil)
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
	if err := own.open.Await(t.Context(), leader.Stats().Position); kuji.CodeOf(err) != kuji.CodeCorrupt {
		t.Fatalf("it follows over damage: %v", err)
	}
	n.comesTo(t, own, seatDamaged)
	n.wantDamaged(t, own, "default")
}

// wantDamaged checks what a node does about a realm that met damage: it says so, and never leads it.
func (n *node) wantDamaged(t *testing.T, own *seat, why string) {
	t.Helper()
	if d := n.describe(); !d.Ready || !strings.Contains(d.Why, why) { // others lead the realm
		t.Errorf("it says %+v", d)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	later := time.Now().Add(time.Hour)
	n.tend(later)
	if own.state != seatDamaged || n.bearings(later)["default"] != (bearing{}) {
		t.Errorf("later the seat is in state %d, %+v", own.state, n.bearings(later))
	}
}

// TestDeposedNode: a realm that was deposed is closed and opened again, and then follows. It is not taken over
// at once. The node's other realm goes on to lead.
func TestDeposedNode(t *testing.T) {
	shared := drivertest.NewShared(drivertest.SharedOptions{})
	leader, n, own := followed(t, shared, nil)
	other := &seat{realm: "other", state: seatAbsent, held: true}
	n.mu.Lock()
	n.here.seats["other"], n.until = other, time.Now().Add(time.Hour)
	own.held = true
	n.takeSeat(own)
	n.takeSeat(other)
	n.mu.Unlock()
	n.comesTo(t, own, seatLeads)
	n.comesTo(t, other, seatLeads)

	if _, err := leader.Do(t.Context(), kuji.Draw{ID: "1", Player: "ann", Pool: "hats"}); kuji.CodeOf(err) == 0 {
		t.Fatal("two nodes lead")
	}
	e, err := kuji.Open("", kuji.Options{Driver: shared.Node(3), Key: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	third, err := e.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.open.Do(t.Context(), kuji.Draw{ID: "2", Player: "ann", Pool: "hats"}); kuji.CodeOf(err) == 0 {
		t.Fatal("two nodes lead")
	}
	n.comesTo(t, own, seatFollows)
	if err := own.open.Await(t.Context(), third.Stats().Position); err != nil {
		t.Error(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if own.rest.IsZero() {
		t.Error("a realm that was deposed just now is not left to others")
	}
	if b := n.bearings(own.rest.Add(-1))["default"]; b != (bearing{close: true}) {
		t.Errorf("a realm that was deposed just now is %+v", b)
	}
	if b := n.bearings(own.rest)["default"]; !b.ready {
		t.Errorf("and later it is %+v", b)
	}
	if b := n.bearings(time.Now())["other"]; b != (bearing{held: true, leads: true}) {
		t.Errorf("the other realm is %+v", b)
	}
}

// TestDifferentNode: a node whose chain is not the leader's says so, and must not lead the realm.
func TestDifferentNode(t *testing.T) {
	conf, err := clusterKeys{{1}}.tls("shop", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	var position, asked atomic.Uint64
	var chain atomic.Value
	chain.Store("")
	leader, n, own := followed(t, drivertest.NewShared(drivertest.SharedOptions{}), map[string]peer{"n2": startPeer(t, conf, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(nodeJSON{Node: "n2", Positions: map[string]uint64{"default": position.Load()}, Chains: map[string]string{"default": chain.Load().(string)}})
		asked.Add(1)
	})})
	st := leader.Stats()
	position.Store(st.Position)
	chain.Store(hex.EncodeToString(st.Chain[:]))
	compare := func() { // the leader may not answer in time
		for was := asked.Load(); asked.Load() == was; n.work.Wait() {
			n.compare(t.Context())
		}
	}
	compare()
	if d := n.describe(); !d.Ready || d.Chains["default"] != chain.Load() {
		t.Fatalf("with the leader's chain it says %+v", d)
	}
	chain.Store(strings.Repeat("17", 32))
	for own.open.Err() == nil {
		compare()
	}
	n.comesTo(t, own, seatDamaged)
	n.wantDamaged(t, own, "at node n2")
	w := httptest.NewRecorder()
	n.serveClient(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	wantAnswer(t, w, http.StatusOK, `kuji_realm_chain_differs{realm="default"} 1`)
}
