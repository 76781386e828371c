//go:build unix

package cli

import (
	"context"
	"slices"
	"strings"
	"syscall"
)

// widened waits until each of five nodes has a copy of every stream.
func (c *trio) widened(ctx context.Context) {
	c.t.Helper()
	for i, name := range c.flags.Names() {
		for {
			n := c.peers.Survey(ctx)[i]
			if n.Health != nil && n.Health.Groups == 1+3 && len(n.Health.Behind) == 0 { // the list, leases, log and files
				break
			}
			if ctx.Err() != nil {
				c.t.Fatalf("node %s: %+v", name, n.Health)
			}
			moment()
		}
	}
}

// shrink makes three nodes of five: two hand over what they lead, the others are told to do without them, and
// the two are stopped and removed.
func (c *trio) shrink(ctx context.Context, draws func(stage string)) {
	t := c.t
	t.Helper()
	five := strings.Join(c.flags.peers, ",")
	leave := []string{"n4", "n5"}
	cluster := func(peers string, args ...string) (said string, code int) {
		return c.kuji(ctx, append(append([]string{"cluster"}, args...), "--cluster", "shop", "--peers", peers, "--cluster-key", c.flags.keyFile)...)
	}
	for _, name := range leave {
		if said, code := cluster(five, "drain", name); code != 0 {
			t.Fatalf("drain %s: exit %d: %s", name, code, said)
		}
	}
	stay := c.flags.Names()[:3]
	c.leadersOf(ctx, []string{"default"}, func(_, node string) bool { return slices.Contains(stay, node) })
	c.flags.peers = c.flags.peers[:3]
	if err := c.flags.checkMember(); err != nil {
		t.Fatal(err)
	}
	stop := func(name string) {
		if err := c.running[name].Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := c.running[name].wait(); err != nil {
			t.Errorf("node %s: %v", name, err)
		}
		delete(c.running, name)
	}
	three := strings.Join(c.flags.peers, ",")
	for _, name := range stay {
		stop(name)
		c.start(name)
		c.settled(ctx)
	}
	draws("two are drained")
	if said, code := cluster(five, "remove", "n3"); code != int(exitUsage) {
		t.Errorf("remove one of --peers: exit %d: %s", code, said)
	}
	for _, name := range leave {
		stop(name)
	}
	if said, code := cluster(three, "remove", leave[0], leave[1]); code != 0 {
		t.Fatalf("remove: exit %d: %s", code, said)
	}
	c.widened(ctx) // the same on three
	leader := c.settled(ctx)
	if err := c.running[leader].Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.running[leader].wait()
	draws("one of three is lost")
	c.start(leader)
	c.settled(ctx)
}
