//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kuji-dev/kuji/internal/election"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

var plannedStops = flag.Int("stops", 1, "how often TestClusterRealms stops a node and starts it again; with -v it says how long clients waited")

// TestClusterRealms: realms come to different nodes, and every node answers about all of them. A node that stops
// hands over what it leads, and gets it back when it has come back and caught up. Clients of the other
// nodes, which send nothing twice, see no error meanwhile, those of the Redis protocol either.
func TestClusterRealms(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three processes")
	}
	t.Parallel()
	c := designTrio(t)
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience*time.Duration(*plannedStops))
	defer cancel()
	nodes := c.flags.Names()
	for _, name := range nodes {
		c.more[name] = []string{"--redis-listen", "127.0.0.1:0"}
		c.start(name)
	}
	c.settled(ctx)
	var realms []string
	for i := range 6 {
		realm := fmt.Sprint("realm-", i)
		admin := c.client(nodes[i%3]).admin
		for _, want := range []bool{true, false} {
			resp, err := admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: realm})
			if err != nil || resp.GetCreated() != want {
				t.Fatalf("%s is created: %v, %v, want %v", realm, resp, err, want)
			}
		}
		if _, err := admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: realm, Yaml: []byte(clusterCatalog)}); err != nil {
			t.Fatal(err)
		}
		realms = append(realms, realm)
	}
	leaders := c.leadersOf(ctx, realms, func(realm, node string) bool { return election.First(nodes, realm) == node })

	u := &unbroken{trio: c, realms: realms}
	for i := range *plannedStops {
		u.restart(ctx, leaders[realms[i%len(realms)]])
		c.leadersOf(ctx, realms, func(realm, node string) bool { return node == leaders[realm] })
		u.halt()
	}
	t.Logf("%d planned stops, %d draws, the slowest took %v", *plannedStops, u.draws.Load(), time.Duration(u.slowest.Load()).Round(time.Millisecond))

	held := int64(0)
	for _, realm := range realms {
		resp, err := c.client(nodes[0]).rewards.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Realm: realm, Player: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range resp.GetPlayer().GetItems() {
			if s.GetItem() == "hat" {
				held += int64(s.GetQuantity())
			}
		}
	}
	if held != u.draws.Load() || u.ofRedis.Load() == 0 {
		t.Errorf("%d draws were answered, %d of them to Redis clients, and %d hats are held", u.draws.Load(), u.ofRedis.Load(), held)
	}
	c.status(ctx, leaders)
	c.stopAll()
}

// unbroken are clients that send nothing twice, and must see no error while another node than theirs is
// stopped and started again.
type unbroken struct {
	*trio
	realms         []string
	stop           context.CancelFunc
	workers        sync.WaitGroup
	sent           int          // loads so far
	draws, ofRedis atomic.Int64 // that were answered
	slowest        atomic.Int64 // in nanoseconds
}

// restart stops a node while clients draw at the others, waits until those lead all realms, and starts it
// again. The clients go on.
func (u *unbroken) restart(ctx context.Context, name string) {
	u.t.Helper()
	nodes := u.flags.Names()
	others := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return node == name })
	load, stop := context.WithCancel(ctx)
	u.stop, u.sent = stop, u.sent+1
	for w := range 4 {
		u.workers.Go(func() { u.draw(ctx, load, w, others) })
	}
	for w, node := range others {
		u.workers.Go(func() { u.drawRedis(ctx, load, w, node) })
	}
	if err := u.running[name].Signal(syscall.SIGTERM); err != nil {
		u.t.Fatal(err)
	}
	if err := u.running[name].wait(); err != nil {
		u.t.Errorf("node %s: %v", name, err)
	}
	u.leadersOf(ctx, u.realms, func(realm, node string) bool { return election.First(others, realm) == node })
	u.start(name)
}

// halt ends the clients.
func (u *unbroken) halt() {
	u.stop()
	u.workers.Wait()
}

func (u *unbroken) draw(ctx, load context.Context, w int, nodes []string) {
	for i := 0; load.Err() == nil; i++ {
		realm, cl, began := u.realms[(w+i)%len(u.realms)], u.client(nodes[(w+i)%2]), time.Now()
		resp, err := cl.rewards.Draw(ctx, &kujiv1.DrawRequest{Realm: realm, RequestId: fmt.Sprint(u.sent, "-", w, "-", i), Player: "ann", Pool: "hats"})
		if err != nil || resp.GetResult().GetReplayed() {
			u.t.Errorf("draw %d of client %d in %s: %v, %v", i, w, realm, resp, err)
			return
		}
		u.draws.Add(1)
		u.took(time.Since(began))
		moment()
	}
}

// took notes how long something took.
func (u *unbroken) took(d time.Duration) {
	for old := u.slowest.Load(); int64(d) > old && !u.slowest.CompareAndSwap(old, int64(d)); old = u.slowest.Load() {
	}
}

// drawRedis does so with a client of the Redis protocol with its own time-outs, and without its retries.
func (u *unbroken) drawRedis(ctx, load context.Context, w int, node string) {
	rdb := redis.NewClient(&redis.Options{Addr: u.trio.redis[node], Protocol: 3, MaxRetries: -1})
	defer rdb.Close()
	for i := 0; load.Err() == nil; i++ {
		began := time.Now()
		cmds, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for j := range 2 {
				p.Do(ctx, "REALM", u.realms[(w+i+j)%len(u.realms)])
				p.Do(ctx, "DRAW", "ann", "hats", "ID", fmt.Sprint("redis-", u.sent, "-", w, "-", i))
			}
			return nil
		})
		u.took(time.Since(began))
		for _, cmd := range cmds {
			got, isDraw := cmd.(*redis.Cmd).Val().(map[any]any)
			if isDraw && got["status"] == "ok" && got["replayed"] == nil {
				u.draws.Add(1)
				u.ofRedis.Add(1)
			} else if isDraw || err != nil {
				u.t.Errorf("draw %d of Redis client %d: %v, %v after %v", i, w, got, err, time.Since(began))
				return
			}
		}
		moment()
	}
}

// leadersOf waits until each realm is led by a node that is good for it, and all nodes that run are ready.
func (c *trio) leadersOf(ctx context.Context, realms []string, good func(realm, node string) bool) map[string]string {
	c.t.Helper()
	for {
		led := map[string]string{}
		for _, name := range c.flags.Names() {
			for _, realm := range c.peers.Ask(ctx, name).Leads {
				if good(realm, name) {
					led[realm] = name
				}
			}
		}
		if !slices.ContainsFunc(realms, func(realm string) bool { return led[realm] == "" }) {
			return led
		}
		if ctx.Err() != nil {
			c.t.Fatalf("realms are led by %v", led)
		}
		moment()
	}
}

// status waits until the command line, the API and the metrics say of a cluster's realms who leads them.
func (c *trio) status(ctx context.Context, leaders map[string]string) {
	c.t.Helper()
	path, err := exec.LookPath(c.program)
	if err != nil {
		c.t.Fatal(err)
	}
	for {
		err := c.askStatus(ctx, path, leaders)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatal(err)
		}
		moment()
	}
}

// askStatus asks once, and returns what is not as it should be.
func (c *trio) askStatus(ctx context.Context, path string, leaders map[string]string) error {
	out, err := exec.CommandContext(ctx, path, "cluster", "status", "--json", "--cluster", "shop", "--peers", strings.Join(c.flags.peers, ","), "--cluster-key", c.flags.keyFile).Output()
	var said clusterJSON
	if jsonErr := json.Unmarshal(out, &said); err != nil || jsonErr != nil || len(said.Realms) != 7 {
		return fmt.Errorf("kuji cluster status: %w, %w, %s", err, jsonErr, out)
	}
	for _, n := range said.Nodes {
		if h := n.Health; h == nil || h.Stored == 0 || h.Most == 0 || h.Meta == "" || h.Groups < 14 || n.Version == "" || n.ClockMS == nil || time.Duration(*n.ClockMS)*time.Millisecond > election.MaxApart {
			c.t.Errorf("kuji cluster status: node %s: %+v, %+v", n.Node, n, h)
		}
	}
	for _, r := range said.Realms {
		if want := leaders[r.Realm]; r.Leader == "" || want != "" && r.Leader != want {
			return fmt.Errorf("kuji cluster status: realm %s is led by %q, want %q", r.Realm, r.Leader, want)
		}
	}
	for _, name := range c.flags.Names() {
		nodes, err := c.client(name).admin.ListNodes(ctx, &kujiv1.ListNodesRequest{})
		if err != nil || nodes.GetCluster() != "shop" || len(nodes.GetNodes()) != 3 || len(nodes.GetRealms()) != 7 {
			return fmt.Errorf("node %s lists %v, %w", name, nodes, err)
		}
		for _, r := range nodes.GetRealms() {
			if want := leaders[r.GetRealm()]; r.GetLeader() == "" || want != "" && r.GetLeader() != want {
				return fmt.Errorf("node %s says that %q leads %s, want %q", name, r.GetLeader(), r.GetRealm(), want)
			}
		}
		resp, err := c.client(name).admin.GetStatus(ctx, &kujiv1.GetStatusRequest{})
		if err != nil || len(resp.GetRealms()) != 7 {
			return fmt.Errorf("node %s: %v, %w", name, resp, err)
		}
		for _, r := range resp.GetRealms() {
			if r.GetEpoch() == 0 || r.GetError() != "" { // it is the leader who says it
				return fmt.Errorf("node %s says of realm %s: %v", name, r.GetRealm(), r)
			}
			if leads := strings.Contains(c.metrics(ctx, name), fmt.Sprintf("kuji_realm_leads{realm=%q} 1\n", r.GetRealm())); leaders[r.GetRealm()] != "" && leads != (leaders[r.GetRealm()] == name) {
				return fmt.Errorf("the metrics of node %s say that it leads %s: %v", name, r.GetRealm(), leads)
			}
		}
	}
	return nil
}
