//go:build unix

package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

var (
	clusterPlayers = flag.Int("players", 0, "so many players have something before TestClusterFailover begins")
	clusterLag     = flag.Duration("lag", 0, "how long TestClusterLag draws, and measures how far a follower is behind")
)

// fill gives players something, in batches.
func (c *trio) fill(ctx context.Context, players int) {
	c.t.Helper()
	leader := c.client(c.settled(ctx))
	const most = 1000
	for from := 0; from < players; from += most {
		req := &kujiv1.BatchRequest{}
		for i := from; i < min(from+most, players); i++ {
			req.Commands = append(req.Commands, &kujiv1.Command{Command: &kujiv1.Command_Grant{Grant: &kujiv1.Grant{
				Player: fmt.Sprintf("player-%08d", i), Items: []*kujiv1.Stack{{Item: "crown", Quantity: 1}},
			}}})
		}
		if _, err := leader.rewards.Batch(ctx, req); err != nil {
			c.t.Fatal(err)
		}
	}
}

// followers waits until each node says of itself what it is, and checks that every node answers a stale
// read by itself, which comes to what the leader says. A realm may go back to its first node meanwhile.
func (c *trio) followers(ctx context.Context) {
	c.t.Helper()
	for {
		err := c.askFollowers(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatal(err)
		}
		moment()
	}
}

// askFollowers asks once, and returns what is not as it should be.
func (c *trio) askFollowers(ctx context.Context) error {
	leader := c.settled(ctx)
	fresh, err := c.client(leader).rewards.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: "ann"})
	if err != nil {
		return err
	}
	for _, name := range c.flags.Names() {
		for {
			resp, err := c.client(name).rewards.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: "ann", Stale: true})
			if err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
			if resp.GetPlayer().GetPosition() >= fresh.GetPlayer().GetPosition() {
				break
			}
			moment()
		}
		leads, calls := 0, 0
		for line := range strings.SplitSeq(c.metrics(ctx, name), "\n") {
			switch {
			case line == `kuji_realm_leads{realm="default"} 1`:
				leads++
			case strings.HasPrefix(line, `kuji_rpc_requests_total{code="ok",rpc="kuji.v1.RewardService/GetPlayer"}`):
				calls++
			}
		}
		if want := map[bool]int{true: 1}[name == leader]; leads != want || calls != 1 {
			return fmt.Errorf("node %s leads %d realms, want %d, and answered reads: %d", name, leads, want, calls)
		}
		n := c.peers.Ask(ctx, name)
		if n.Positions["default"] == 0 {
			return fmt.Errorf("node %s says %+v", name, n)
		}
	}
	return nil
}

// metrics returns a node's metrics.
func (c *trio) metrics(ctx context.Context, name string) string {
	c.t.Helper()
	c.mu.Lock()
	url := c.urls[name]
	c.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("metrics of node %s: %s, %v\n%s", name, resp.Status, err, text)
	}
	return string(text)
}

// TestClusterLag draws in batches at the leader, and measures from each answer until a follower shows it.
func TestClusterLag(t *testing.T) {
	if *clusterLag == 0 {
		t.Skip("measures: -lag 10s")
	}
	c := newTrio(t)
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience+*clusterLag)
	defer cancel()
	c.settled(ctx)
	if _, err := c.client("n1").admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(clusterCatalog)}); err != nil {
		t.Fatal(err)
	}
	leader := c.settled(ctx)
	follower := c.flags.Names()[0]
	if follower == leader {
		follower = c.flags.Names()[1]
	}
	var mu sync.Mutex
	var lags []time.Duration
	draws := 0
	began := time.Now()
	var workers sync.WaitGroup
	for w := range 2 {
		workers.Go(func() {
			drawer, reader := c.client(leader).rewards, c.client(follower).rewards
			player := fmt.Sprint("lag-", w)
			for time.Since(began) < *clusterLag && ctx.Err() == nil {
				const most = 100
				req := &kujiv1.BatchRequest{}
				for range most {
					req.Commands = append(req.Commands, &kujiv1.Command{Command: &kujiv1.Command_Draw{Draw: &kujiv1.Draw{Player: player, Pool: "hats"}}})
				}
				resp, err := drawer.Batch(ctx, req)
				if err != nil {
					t.Error(err)
					return
				}
				answered, position := time.Now(), resp.GetReceipts()[len(resp.GetReceipts())-1].GetPosition()
				for {
					got, err := reader.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: player, Stale: true})
					if err != nil {
						t.Error(err)
						return
					}
					if got.GetPlayer().GetPosition() >= position {
						break
					}
				}
				mu.Lock()
				lags = append(lags, time.Since(answered))
				draws += most
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	took := time.Since(began)
	slices.Sort(lags)
	at := func(p int) time.Duration { return lags[min(len(lags)*p/100, len(lags)-1)].Round(10 * time.Microsecond) }
	t.Logf("%.0f draws a second; a follower shows an answer after: median %v, p99 %v, worst %v", float64(draws)/took.Seconds(), at(50), at(99), at(100))
	c.stopAll()
}
