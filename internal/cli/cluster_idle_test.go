//go:build linux

package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/internal/election"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
)

var (
	idleFor    = flag.Duration("idle", 0, "how long TestClusterIdle measures what a cluster costs that nobody asks anything")
	idleRealms = flag.Int("idle-realms", 1, "how many realms it has")
)

// TestClusterIdle measures processor time and memory of three nodes at rest.
func TestClusterIdle(t *testing.T) {
	if *idleFor == 0 {
		t.Skip("measures: -idle 30s -idle-realms 50")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*clusterPatience+2**idleFor)
	defer cancel()
	c := newTrio(t)
	leader := c.settled(ctx)
	var realms []string
	for i := range *idleRealms - 1 { // with the default realm
		realm := fmt.Sprint("realm-", i)
		if _, err := c.client(leader).admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: realm}); err != nil {
			t.Fatal(err)
		}
		realms = append(realms, realm)
	}
	nodes := c.flags.Names()
	c.leadersOf(ctx, realms, func(realm, node string) bool { return election.First(nodes, realm) == node })
	c.settled(ctx)
	rest := func() {
		select {
		case <-ctx.Done():
		case <-time.After(*idleFor):
		}
	}
	rest()
	before := c.processorTime()
	rest()
	used := c.processorTime() - before
	t.Logf("%d realms: three nodes take %.1f %% of a core and %d MB", *idleRealms, 100*used.Seconds()/idleFor.Seconds(), c.memory()>>20)
	c.stopAll()
}

// processorTime returns how long processors have worked for all nodes.
func (c *trio) processorTime() (sum time.Duration) {
	for _, p := range c.running {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			c.t.Fatal(err)
		}
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		for _, i := range []int{11, 12} { // utime and stime, in hundredths of a second
			n, err := strconv.Atoi(string(fields[i]))
			if err != nil {
				c.t.Fatal(err)
			}
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}

// memory returns how many bytes of memory all nodes have.
func (c *trio) memory() (sum int) {
	for _, p := range c.running {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.Pid))
		if err != nil {
			c.t.Fatal(err)
		}
		pages, err := strconv.Atoi(string(bytes.Fields(data)[1]))
		if err != nil {
			c.t.Fatal(err)
		}
		sum += pages * os.Getpagesize()
	}
	return sum
}
