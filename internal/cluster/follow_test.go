//go:build unix

package cluster

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
	"github.com/kuji-dev/kuji/internal/election"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// played is a node whose board and clock a test plays.
type played struct {
	*Node
	posts []byte       // the board
	ahead atomic.Int64 // nanoseconds
}

// look makes the node look at the board once, a time after it did so before.
func (p *played) look(t *testing.T, after time.Duration) {
	t.Helper()
	p.ahead.Add(int64(after))
	p.round(t.Context(), func(_ context.Context, change func([]byte) ([]byte, error)) (err error) {
		p.posts, err = change(p.posts)
		return err
	})
}

func (p *played) realm(name string) *kuji.Realm {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.here.open[name]
}

func (p *played) state(realm string) election.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.core.Seats() {
		if s.Realm == realm {
			return s.State
		}
	}
	return -1
}

// comesTo tends a node's seats until one has a state.
func (p *played) comesTo(t *testing.T, realm string, want election.State) {
	t.Helper()
	for {
		p.mu.Lock()
		p.tend()
		p.mu.Unlock()
		if p.state(realm) == want {
			return
		}
		select {
		case <-p.wake:
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("a seat is in state %d, and never comes to %d", p.state(realm), want)
		}
	}
}

// followed opens realms that node "n2" leads and node "n1" follows: the default one, and others.
func followed(t *testing.T, shared *drivertest.Shared, peers map[string]Peer, others ...string) (leader *kuji.Realm, n *played) {
	t.Helper()
	realms := append(others, server.DefaultRealm)
	e, err := kuji.Open("", kuji.Options{Driver: shared.Node(2), Key: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() }) // a test may have spoilt it
	if leader, err = e.Realm(server.DefaultRealm); err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte("kuji: 1\nitems: {hat: {}}\npools: {hats: {entries: [{id: plain, weight: 1, reward: {items: {hat: 1}}}]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leader.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := leader.Do(t.Context(), kuji.Draw{Player: "ann", Pool: "hats"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range others {
		if _, err := e.Realm(name); err != nil {
			t.Fatal(err)
		}
	}
	n = &played{Node: joined(t, shared.Node(1), peers)}
	n.clocks.now = func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }
	n.mu.Lock()
	n.core.Find(realms...)
	n.here.found = time.Now().Add(time.Hour)
	n.mu.Unlock()
	for _, realm := range realms {
		n.comesTo(t, realm, election.Following)
	}
	n.says(ledBy("n2", realms...))
	if err := n.realm(server.DefaultRealm).Replica().Await(t.Context(), leader.Stats().Position); err != nil {
		t.Fatal(err)
	}
	return leader, n
}

// TestFollowingNode: a node that follows answers reads that may be stale, and metrics, though nobody
// leads. It says how far behind the leader it is. One that leads without a lease answers nothing.
func TestFollowingNode(t *testing.T) {
	shared := drivertest.NewShared(drivertest.SharedOptions{})
	var position atomic.Uint64
	leader, n := followed(t, shared, map[string]Peer{"n2": startPeer(t, config(t, Keys{{1}}, "shop"), func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(Status{Node: "n2", Positions: map[string]uint64{"default": position.Load()}})
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

	// It leads, but its lease has ended: another node may lead, so what it has may be old, or undone.
	n.look(t, 0)
	n.comesTo(t, "default", election.Leading)
	over, end := context.WithCancel(t.Context())
	end()
	n.over = over
	n.ahead.Add(int64(time.Hour))
	n.says(election.Board{})
	stale(http.StatusServiceUnavailable, "n1 stops")
	n.look(t, 0)
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
	leader, n := followed(t, shared, nil)
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
	if err := n.realm("default").Replica().Await(t.Context(), leader.Stats().Position); kuji.CodeOf(err) != kuji.CodeCorrupt {
		t.Fatalf("it follows over damage: %v", err)
	}
	n.comesTo(t, "default", election.Broken)
	n.wantDamaged(t, "default")
}

// wantDamaged checks what a node does about a realm that met damage: it says so, and never leads it.
func (p *played) wantDamaged(t *testing.T, why string) {
	t.Helper()
	if d := p.describe(); !d.Ready || !strings.Contains(d.Why, why) { // others lead the realm
		t.Errorf("it says %+v", d)
	}
	for range 2 {
		p.look(t, time.Hour)
	}
	if is := p.state("default"); is != election.Broken {
		t.Errorf("later the seat is in state %d", is)
	}
}

// TestDeposedNode: a realm that was deposed is closed and opened again, and then follows. It is not taken over
// at once. The node's other realm goes on to lead.
func TestDeposedNode(t *testing.T) {
	shared := drivertest.NewShared(drivertest.SharedOptions{})
	leader, n := followed(t, shared, nil, "other")
	n.look(t, 0)
	n.comesTo(t, "default", election.Leading)
	n.comesTo(t, "other", election.Leading)

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
	if _, err := n.realm("default").Do(t.Context(), kuji.Draw{ID: "2", Player: "ann", Pool: "hats"}); kuji.CodeOf(err) == 0 {
		t.Fatal("two nodes lead")
	}
	n.comesTo(t, "default", election.Following)
	if err := n.realm("default").Replica().Await(t.Context(), third.Stats().Position); err != nil {
		t.Error(err)
	}
	n.look(t, 0)
	if d, o := n.state("default"), n.state("other"); d != election.Following || o != election.Leading {
		t.Errorf("a realm that was deposed just now is in state %d, the other one in state %d", d, o)
	}
	n.look(t, election.TTL)
	n.comesTo(t, "default", election.Leading)
}

// TestDifferentNode: a node whose chain is not the leader's says so, and must not lead the realm.
func TestDifferentNode(t *testing.T) {
	var position, asked atomic.Uint64
	var chain atomic.Value
	chain.Store("")
	leader, n := followed(t, drivertest.NewShared(drivertest.SharedOptions{}), map[string]Peer{"n2": startPeer(t, config(t, Keys{{1}}, "shop"), func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(Status{Node: "n2", Positions: map[string]uint64{"default": position.Load()}, Chains: map[string]string{"default": chain.Load().(string)}})
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
	for n.realm("default").Err() == nil {
		compare()
	}
	n.comesTo(t, "default", election.Broken)
	n.wantDamaged(t, "at node n2")
	w := httptest.NewRecorder()
	n.serveClient(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	wantAnswer(t, w, http.StatusOK, `kuji_realm_chain_differs{realm="default"} 1`)
}
