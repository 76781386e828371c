package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/driver/drivertest"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/proto/kuji/v1/kujiv1connect"
	"github.com/kuji-dev/kuji/server"
)

// shared is a cluster of which a test says what it leads.
type shared struct {
	holds sync.Map // realm → true
	call  func(*server.Call) (*http.Response, error)
}

func (c *shared) Holds(realm string) bool {
	_, ok := c.holds.Load(realm)
	return ok
}

// Status says that another server leads realm "far".
func (c *shared) Status(context.Context) []*kujiv1.RealmStatus {
	return []*kujiv1.RealmStatus{{Realm: "far", Position: 7}}
}

// Nodes says that another node leads realm "far".
func (c *shared) Nodes(context.Context) *kujiv1.ListNodesResponse {
	return &kujiv1.ListNodesResponse{
		Cluster: "shop", Nodes: []*kujiv1.Node{{Node: "n1", State: kujiv1.NodeState_NODE_STATE_SERVES, Ready: true}},
		Realms: []*kujiv1.RealmLeader{{Realm: "far", Leader: "n1"}},
	}
}

func (c *shared) Call(out *server.Call) (*http.Response, error) { return c.call(out) }

func (c *shared) Created(string) {}

// over returns what has a server answer calls, over the network.
func over(t *testing.T, s *server.Server) func(*http.Request) (*http.Response, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }() // until the test ends it
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return func(r *http.Request) (*http.Response, error) {
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.RequestURI = "http", l.Addr().String(), ""
		return transport.RoundTrip(out)
	}
}

// TestFollower: a follower answers reads that say stale from its own state, in every protocol. What else it
// is asked, and what it does not know, the leader answers, as if it had been asked itself. When the
// follower leads, it answers everything.
func TestFollower(t *testing.T) {
	log := drivertest.NewShared(drivertest.SharedOptions{})
	cluster := &shared{}
	open := func(node int, c server.Cluster) (*kuji.Engine, *server.Server) {
		engine, err := kuji.Open("", kuji.Options{Driver: log.Node(node), Key: [32]byte{1}, Follow: c != nil})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { engine.Close() }) // the test does not care how
		return engine, newServerOn(t, engine, server.Options{Keys: keyFile(t), Origins: []string{"https://shop.example"}, Cluster: c}).server
	}
	engine, leader := open(1, nil)
	realm, err := engine.Realm(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse([]byte(testCatalog))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Do(t.Context(), kuji.Draw{ID: "1", Player: "ann", Pool: "free"}); err != nil {
		t.Fatal(err)
	}
	_, follower := open(2, cluster)
	mine, err := follower.Open(server.DefaultRealm)
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.Replica().Await(t.Context(), realm.Stats().Position); err != nil {
		t.Fatal(err)
	}
	log.Partition(2, true) // it learns nothing more
	if _, err := realm.Do(t.Context(), kuji.Draw{ID: "2", Player: "bob", Pool: "free"}); err != nil {
		t.Fatal(err)
	}

	var handed atomic.Int64
	send := over(t, leader)
	cluster.call = func(out *server.Call) (*http.Response, error) {
		handed.Add(1)
		if out.Realm != server.DefaultRealm {
			t.Errorf("a request about realm %q is handed over", out.Realm)
		}
		return send(out.Request)
	}
	serve := func(f http.HandlerFunc) (url string) {
		h, err := server.NewHTTP(f, server.Limits{}, nil, quiet())
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = h.Serve(l) }() // until it is closed
		t.Cleanup(func() { _ = h.Close() })
		return "http://" + l.Addr().String()
	}
	url := serve(follower.ServeHTTP)

	long := strings.Repeat("x", 5000)
	for name, o := range map[string][]connect.ClientOption{
		"connect": {}, "json": {connect.WithProtoJSON()}, "get": {connect.WithHTTPGet()}, "gzip": {connect.WithSendGzip()},
		"grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()},
	} {
		client := kujiv1connect.NewRewardServiceClient(h2c(t), url, append(o, withKey(writeKey))...)
		ask := func(player string, stale bool) (code connect.Code, asked int64) {
			was := handed.Load()
			resp, err := client.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: player, Stale: stale})
			if err == nil && resp.GetPlayer().GetId() != player {
				t.Errorf("%s: player %q is %v", name, player, resp)
			}
			if err != nil {
				code = connect.CodeOf(err)
			}
			return code, handed.Load() - was
		}
		for _, tt := range []struct {
			player string
			stale  bool
			code   connect.Code
			handed int64
		}{
			{"ann", true, 0, 0},
			{"ann", false, 0, 1},
			{"bob", false, 0, 1},
			{"bob", true, 0, 1}, // the follower has not seen bob
			{"eve", true, connect.CodeNotFound, 1},
			{long, true, connect.CodeNotFound, 1},
		} {
			if code, asked := ask(tt.player, tt.stale); code != tt.code || asked != tt.handed {
				t.Errorf("%s: player %.9s, stale %v: code %v, handed over %d times; want %v, %d", name, tt.player, tt.stale, code, asked, tt.code, tt.handed)
			}
		}
		was := handed.Load()
		pool, err := client.GetPool(t.Context(), &kujiv1.GetPoolRequest{Pool: "free", Stale: true})
		if err != nil || pool.GetPool().GetPosition() == 0 {
			t.Errorf("%s: %v, %v", name, pool, err)
		}
		res, err := client.GetResult(t.Context(), &kujiv1.GetResultRequest{RequestId: "1", Player: "ann", Stale: true})
		if err != nil || res.GetSeen() != kujiv1.Seen_SEEN_ANSWERED || handed.Load() != was {
			t.Errorf("%s: %v, %v, handed over %d times", name, res, err, handed.Load()-was)
		}
		if _, err := client.GetOdds(t.Context(), &kujiv1.GetOddsRequest{Pool: "free", Stale: true}); err != nil || handed.Load() != was+1 {
			t.Errorf("%s: odds: %v, handed over %d times", name, err, handed.Load()-was)
		}
		if _, err := client.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: "d" + name, Player: "ann", Pool: "free"}); err != nil || handed.Load() != was+2 {
			t.Errorf("%s: a draw: %v, handed over %d times", name, err, handed.Load()-was)
		}
		bad := kujiv1connect.NewRewardServiceClient(h2c(t), url, append(o, withKey("nobody's"))...)
		if _, err := bad.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: "ann", Stale: true}); connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Errorf("%s: without a key: %v", name, err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/kuji.v1.RewardService/GetPlayer", strings.NewReader(`{"player": "ann"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", "https://shop.example")
	req.Header.Set("Authorization", "Bearer "+writeKey)
	resp, err := h1(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Values("Access-Control-Allow-Origin"); resp.StatusCode != 200 || !slices.Equal(got, []string{"https://shop.example"}) {
		t.Errorf("a page's read: HTTP %d, allowed for %q", resp.StatusCode, got)
	}

	log.Partition(2, false)
	if _, err := follower.Lead(t.Context(), server.DefaultRealm); err != nil {
		t.Fatal(err)
	}
	own := kujiv1connect.NewRewardServiceClient(h1(t), url, withKey(writeKey))
	was := handed.Load()
	if _, err := own.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: "ann", Stale: true}); err != nil || handed.Load() != was+1 {
		t.Errorf("who leads, and has no lease, answers by itself: %v", err) // what it has may be undone
	}
	cluster.holds.Store(server.DefaultRealm, true)
	was = handed.Load()
	if got, err := own.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: "bob"}); err != nil || got.GetPlayer().GetId() != "bob" {
		t.Errorf("who leads answers %v, %v", got, err)
	}
	if got, err := own.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: "2", Player: "bob", Pool: "free"}); err != nil || !got.GetResult().GetReplayed() {
		t.Errorf("who leads answers %v, %v", got, err)
	}
	if _, err := own.GetPlayer(t.Context(), &kujiv1.GetPlayerRequest{Player: "nobody"}); connect.CodeOf(err) != connect.CodeNotFound || handed.Load() != was {
		t.Errorf("what who leads does not know: %v, handed over %d times", err, handed.Load()-was)
	}
	cluster.call = func(out *server.Call) (*http.Response, error) {
		handed.Add(1)
		cluster.holds.Delete(server.DefaultRealm)
		if _, err := follower.Lead(t.Context(), server.DefaultRealm); err != nil {
			t.Error(err)
		}
		cluster.holds.Store(server.DefaultRealm, true)
		return nil, server.ErrHere
	}
	if err := follower.CloseRealm(t.Context(), server.DefaultRealm); err != nil { // it follows when it is asked for
		t.Fatal(err)
	}
	if got, err := own.Draw(t.Context(), &kujiv1.DrawRequest{RequestId: "2", Player: "bob", Pool: "free"}); err != nil || !got.GetResult().GetReplayed() || handed.Load() != was+1 {
		t.Errorf("a realm that stopped before anything happened: %v, %v, handed over %d times", got, err, handed.Load()-was)
	}
}

// TestSharedStream: a stream of draws is handed on with its first batch, as it came. A later batch about a
// realm of another server ends it.
func TestSharedStream(t *testing.T) {
	cluster := &shared{}
	log := drivertest.NewShared(drivertest.SharedOptions{})
	open := func(node int, c server.Cluster) *server.Server {
		engine, err := kuji.Open("", kuji.Options{Driver: log.Node(node), Key: [32]byte{1}, Follow: c != nil})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { engine.Close() }) // the test does not care how
		return newServerOn(t, engine, server.Options{Cluster: c}).server
	}
	other, own := open(1, nil), open(2, cluster)
	c, err := catalog.Parse([]byte(testCatalog))
	if err != nil {
		t.Fatal(err)
	}
	mine, err := own.Lead(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*kuji.Realm{mine, other.Realms()[0]} {
		if _, err := r.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	cluster.holds.Store("mine", true)
	var handed atomic.Int64
	send := over(t, other)
	cluster.call = func(out *server.Call) (*http.Response, error) {
		handed.Add(1)
		return send(out.Request)
	}
	h, err := server.NewHTTP(own, server.Limits{}, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.Serve(l) }() // until it is closed
	t.Cleanup(func() { _ = h.Close() })
	admin := kujiv1connect.NewAdminServiceClient(h2c(t), "http://"+l.Addr().String())
	status, err := admin.GetStatus(t.Context(), &kujiv1.GetStatusRequest{})
	if err != nil || len(status.GetRealms()) != 2 || status.GetRealms()[0].GetPosition() != 7 || status.GetRealms()[1].GetRealm() != "mine" || status.GetRealms()[1].GetEpoch() != 1 {
		t.Errorf("the status of all realms is %v, %v", status, err)
	}
	for name, options := range map[string][]connect.ClientOption{"connect": {}, "grpc": {connect.WithGRPC()}} {
		client := kujiv1connect.NewRewardServiceClient(h2c(t), "http://"+l.Addr().String(), options...)
		stream := func(realms ...string) (answers int, err error) {
			st, err := client.StreamDraws(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer st.CloseResponse() // it has ended
			for _, realm := range realms {
				if err := st.Send(&kujiv1.StreamDrawsRequest{Realm: realm, Players: []string{"ann"}, Pools: []string{"free"}}); err != nil {
					return answers, err
				}
				if _, err := st.Receive(); err != nil {
					return answers, err
				}
				answers++
			}
			if err := st.CloseRequest(); err != nil {
				t.Error(err)
			}
			_, err = st.Receive()
			return answers, err
		}
		was := handed.Load()
		if n, err := stream("mine", "mine"); n != 2 || !errors.Is(err, io.EOF) || handed.Load() != was {
			t.Errorf("%s: a stream about the own realm: %d answers, %v, handed on %d times", name, n, err, handed.Load()-was)
		}
		if n, err := stream("", "default", ""); n != 3 || !errors.Is(err, io.EOF) || handed.Load() != was+1 {
			t.Errorf("%s: a stream about another server's realm: %d answers, %v, handed on %d times", name, n, err, handed.Load()-was)
		}
		if n, err := stream("mine", ""); n != 1 || connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "another stream") {
			t.Errorf("%s: a stream about both: %d answers, %v", name, n, err)
		}
	}
}

// TestListNodes: a server of a cluster says what the cluster says; a server on its own has no nodes.
func TestListNodes(t *testing.T) {
	engine, err := kuji.Open("", kuji.Options{Driver: drivertest.NewShared(drivertest.SharedOptions{}).Node(1), Key: [32]byte{1}, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() }) // the test does not care how
	ask := func(f *fixture) *kujiv1.ListNodesResponse {
		got, err := kujiv1connect.NewAdminServiceClient(direct{f.server}, "http://localhost").ListNodes(t.Context(), &kujiv1.ListNodesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ask(newServerOn(t, engine, server.Options{Cluster: &shared{}})); got.GetCluster() != "shop" || len(got.GetNodes()) != 1 || got.GetRealms()[0].GetLeader() != "n1" {
		t.Errorf("%v", got)
	}
	if got := ask(newServer(t, server.Options{})); len(got.GetNodes()) > 0 || got.GetCluster() != "" {
		t.Errorf("a server on its own: %v", got)
	}
}
