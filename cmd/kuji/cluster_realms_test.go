//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

// TestClusterRealms: realms come to different nodes, and every node answers about all of them. A node that stops
// hands over what it leads, and gets it back when it has come back and caught up. Clients of the other
// nodes, which send nothing twice, see no error meanwhile, those of the Redis protocol either.
func TestClusterRealms(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three processes")
	}
	t.Parallel()
	c := designTrio(t)
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
	defer cancel()
	nodes := c.flags.names()
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
	leaders := c.leadersOf(ctx, realms, func(realm, node string) bool { return rankOf(nodes, node, realm) == 0 })

	stops := leaders[realms[0]]
	others := slices.DeleteFunc(slices.Clone(nodes), func(name string) bool { return name == stops })
	load, stop := context.WithCancel(ctx)
	defer stop()
	var draws, ofRedis atomic.Int64
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := 0; load.Err() == nil; i++ {
				realm, cl := realms[(w+i)%len(realms)], c.client(others[(w+i)%2])
				resp, err := cl.rewards.Draw(ctx, &kujiv1.DrawRequest{Realm: realm, RequestId: fmt.Sprint(w, "-", i), Player: "ann", Pool: "hats"})
				if err != nil || resp.GetResult().GetReplayed() {
					t.Errorf("draw %d of client %d in %s: %v, %v", i, w, realm, resp, err)
					return
				}
				draws.Add(1)
			}
		})
	}
	for w, node := range others {
		rdb := redis.NewClient(&redis.Options{Addr: c.redis[node], Protocol: 3, MaxRetries: -1})
		defer rdb.Close()
		workers.Go(func() {
			for i := 0; load.Err() == nil; i++ {
				cmds, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
					for j := range 2 {
						p.Do(ctx, "REALM", realms[(w+i+j)%len(realms)])
						p.Do(ctx, "DRAW", "ann", "hats", "ID", fmt.Sprint("redis-", w, "-", i))
					}
					return nil
				})
				for _, cmd := range cmds {
					got, isDraw := cmd.(*redis.Cmd).Val().(map[any]any)
					if isDraw && got["status"] == "ok" && got["replayed"] == nil {
						draws.Add(1)
						ofRedis.Add(1)
					} else if isDraw || err != nil {
						t.Errorf("draw %d of Redis client %d: %v, %v", i, w, got, err)
						return
					}
				}
			}
		})
	}
	if err := c.running[stops].Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.running[stops].wait(); err != nil {
		t.Errorf("node %s: %v", stops, err)
	}
	c.leadersOf(ctx, realms, func(realm, node string) bool { return rankOf(others, node, realm) == 0 })
	c.start(stops)
	c.leadersOf(ctx, realms, func(realm, node string) bool { return node == leaders[realm] })
	stop()
	workers.Wait()

	held := int64(0)
	for _, realm := range realms {
		resp, err := c.client(stops).rewards.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Realm: realm, Player: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range resp.GetPlayer().GetItems() {
			if s.GetItem() == "hat" {
				held += int64(s.GetQuantity())
			}
		}
	}
	if held != draws.Load() || ofRedis.Load() == 0 {
		t.Errorf("%d draws were answered, %d of them to Redis clients, and %d hats are held", draws.Load(), ofRedis.Load(), held)
	}
	c.status(ctx, leaders)
	c.stopAll()
}

// leadersOf waits until each realm is led by a node that is good for it, and all nodes that run are ready.
func (c *trio) leadersOf(ctx context.Context, realms []string, good func(realm, node string) bool) map[string]string {
	c.t.Helper()
	for {
		led := map[string]string{}
		for _, name := range c.flags.names() {
			for _, realm := range askNode(ctx, c.peers, name, c.flags.hosts[name]).Leads {
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
	}
}

// status checks what the command line and the API say of a cluster's realms.
func (c *trio) status(ctx context.Context, leaders map[string]string) {
	c.t.Helper()
	path, err := exec.LookPath(c.program)
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, path, "cluster", "status", "--json", "--cluster", "shop", "--peers", strings.Join(c.flags.peers, ","), "--cluster-key", c.flags.keyFile).Output()
	var said clusterJSON
	if jsonErr := json.Unmarshal(out, &said); err != nil || jsonErr != nil || len(said.Realms) != 7 {
		c.t.Errorf("kuji cluster status: %v, %v, %s", err, jsonErr, out)
	}
	for _, r := range said.Realms {
		if want := leaders[r.Realm]; r.Leader == "" || want != "" && r.Leader != want {
			c.t.Errorf("kuji cluster status: realm %s is led by %q, want %q", r.Realm, r.Leader, want)
		}
	}
	for _, name := range c.flags.names() {
		resp, err := c.client(name).admin.GetStatus(ctx, &kujiv1.GetStatusRequest{})
		if err != nil || len(resp.GetRealms()) != 7 {
			c.t.Fatalf("node %s: %v, %v", name, resp, err)
		}
		for _, r := range resp.GetRealms() {
			if r.GetEpoch() == 0 || r.GetError() != "" { // it is the leader who says it
				c.t.Errorf("node %s says of realm %s: %v", name, r.GetRealm(), r)
			}
			if leads := strings.Contains(c.metrics(ctx, name), fmt.Sprintf("kuji_realm_leads{realm=%q} 1\n", r.GetRealm())); leaders[r.GetRealm()] != "" && leads != (leaders[r.GetRealm()] == name) {
				c.t.Errorf("the metrics of node %s say that it leads %s: %v", name, r.GetRealm(), leads)
			}
		}
	}
}
