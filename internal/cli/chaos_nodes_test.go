//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/internal/proxy"
	"github.com/kuji-dev/kuji/internal/step"
)

// nodesStore is a log that the nodes keep themselves.
type nodesStore struct {
	small bool // each node has a small disk of its own, which can be filled
}

func (s *nodesStore) open(c *chaos) {
	c.connect()
	s.small = c.mount()
}

func (s *nodesStore) faults() []fault {
	if s.small {
		return slices.Concat(commonFaults, nodesFaults, fullFaults)
	}
	return slices.Concat(commonFaults, nodesFaults)
}

// connect puts proxies between the nodes. What a node knows as its own address leads nowhere, so that
// no node learns from another how to get around them.
func (c *chaos) connect() {
	c.t.Helper()
	for i, from := range c.flags.Names() {
		peers := []string{fmt.Sprintf("%s=127.0.0.1:%d", from, 1+2*i)}
		for _, to := range c.flags.Names() {
			if from != to {
				at, real := cluster.Peer{Host: "127.0.0.1", Port: c.port()}, c.flags.Peers[to]
				w := wire{c.passAt(at.Log(), real.Log()), c.passAt(at.Requests(), real.Requests())}
				c.wires[[2]string{from, to}] = w
				peers = append(peers, to+"="+at.Log())
			}
		}
		c.sees[from] = strings.Join(peers, ",")
		c.more[from] = []string{"--peer-listen", c.flags.Peers[from].Log()}
	}
}

// smallDisk is how much a node's disk holds, in bytes.
const smallDisk = 192 << 20

// mount gives each node a disk of its own, in memory, and reports whether that could be done.
func (c *chaos) mount() bool {
	c.t.Helper()
	if os.Geteuid() != 0 {
		c.t.Log("disks are not filled: mounting one for each node needs root")
		return false
	}
	for _, name := range c.flags.Names() {
		dir := filepath.Join(c.dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			c.t.Fatal(err)
		}
		out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=700", smallDisk), "kuji-chaos", dir).CombinedOutput()
		if err != nil {
			c.t.Logf("disks are not filled: none can be mounted here: %s", out)
			return false
		}
		c.t.Cleanup(func() {
			for name := range c.running {
				c.kill(name)
			}
			if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
				c.t.Errorf("%v: %s", err, out)
			}
		})
	}
	return true
}

// hold holds all that one node sends another, on the connections of both.
func (c *chaos) hold(from, to string) {
	c.wires[[2]string{from, to}].each(func(p *proxy.Proxy) { p.Hold(proxy.ToServer) })
	c.wires[[2]string{to, from}].each(func(p *proxy.Proxy) { p.Hold(proxy.ToClient) })
}

// apart holds what two nodes send each other.
func (c *chaos) apart(a, b string) { c.hold(a, b); c.hold(b, a) }

// refuse cuts all connections of two nodes, and lets no new ones come up.
func (c *chaos) refuse(a, b string) {
	for _, w := range []wire{c.wires[[2]string{a, b}], c.wires[[2]string{b, a}]} {
		w.each(func(p *proxy.Proxy) { p.Refuse(true); p.Cut() })
	}
}

// nodesFaults are what goes wrong between nodes that keep the log themselves.
var nodesFaults = []fault{
	{name: "cut-off-leader", strike: func(c *chaos) {
		leader, followers := c.some()
		for _, f := range followers {
			c.apart(leader, f)
		}
		c.flows()
	}},
	{name: "cut-off-follower", strike: func(c *chaos) {
		leader, followers := c.some()
		c.refuse(followers[0], leader)
		c.refuse(followers[0], followers[1])
		c.flows()
		c.lasts()
	}},
	{name: "cut-off-all", strike: func(c *chaos) {
		leader, followers := c.some()
		c.apart(leader, followers[0])
		c.apart(leader, followers[1])
		c.apart(followers[0], followers[1])
		c.lasts()
	}},
	{name: "deaf-leader", strike: func(c *chaos) {
		leader, followers := c.some()
		for _, f := range followers {
			c.hold(f, leader)
		}
		c.lasts()
	}},
	{name: "mute-leader", strike: func(c *chaos) {
		leader, followers := c.some()
		for _, f := range followers {
			c.hold(leader, f)
		}
		c.lasts()
	}},
	{name: "half-cut", strike: func(c *chaos) { // two nodes do not see each other, and both see the third
		leader, followers := c.some()
		c.apart(leader, followers[0])
		c.lasts()
	}},
}

// fullFaults are what goes wrong on their disks.
var fullFaults = []fault{
	{name: "full-leader", strike: func(c *chaos) {
		leader, _ := c.some()
		c.fill(leader)
		c.ends(leader)
		c.flows()
		c.drain(leader)
	}},
	{name: "full-follower", strike: func(c *chaos) {
		_, followers := c.some()
		c.fill(followers[0])
		c.ends(followers[0])
		c.flows()
		c.drain(followers[0])
	}},
	{name: "full-majority", strike: func(c *chaos) {
		leader, followers := c.some()
		full := [][]string{{leader, followers[0]}, followers}[c.rng.IntN(2)]
		for _, name := range full {
			c.fill(name)
		}
		c.lasts()
		c.drain(full...)
	}},
}

// fill leaves no room on a node's disk.
func (c *chaos) fill(name string) {
	c.t.Helper()
	f, err := os.Create(filepath.Join(c.dir, name, "ballast"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	c.filled[name] = true
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			c.t.Fatal(err)
		}
	}
}

// ends waits until a node has ended by itself.
func (c *chaos) ends(name string) {
	c.t.Helper()
	select {
	case <-c.running[name].ended:
	case <-time.After(clusterPatience):
		c.t.Fatalf("node %s goes on with a full disk", name)
	}
}

// drain makes room again on the disks of nodes.
func (c *chaos) drain(full ...string) {
	c.t.Helper()
	for _, name := range full {
		if err := os.Remove(filepath.Join(c.dir, name, "ballast")); err != nil {
			c.t.Fatal(err)
		}
	}
}

// kept runs the servers of all nodes, and returns what each of them has on its own disk.
func (s *nodesStore) kept(c *chaos) (all []keptLog) {
	c.t.Helper()
	var servers []*embedded.Server
	for _, name := range c.flags.Names() {
		f := c.flags
		f.Node = name
		s, err := f.StartNATS(filepath.Join(c.dir, name), slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { s.Close() })
		servers = append(servers, s)
	}
	for i, s := range servers {
		if err := s.Ready(c.ctx); err != nil {
			c.t.Fatal(err)
		}
		o := jetstream.Options{Cluster: "shop", Patience: clusterPatience}
		o.Connect = append(o.Connect, s.Connect())
		d, err := jetstream.Connect(c.ctx, o)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { d.Close() })
		conn, err := nats.Connect("", s.Connect())
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(conn.Close)
		name := c.flags.Names()[i]
		all = append(all, keptLog{"node " + name, &replica{d, c, name, conn}})
	}
	return all
}

// replica is a driver that reads a log as one node has it on its own disk: that node is made the leader
// of the log's stream, and asked for one message after the other.
type replica struct {
	driver.Driver
	c    *chaos
	node string
	conn *nats.Conn
}

// Open implements [driver.Driver].
func (r *replica) Open(ctx context.Context, name string, o driver.Options) (driver.Realm, error) {
	realm, err := r.Driver.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	js, err := natsjs.New(r.conn)
	if err != nil {
		return nil, errors.Join(err, realm.Close())
	}
	log := "KUJI_shop_LOG_" + name
	for {
		once, cancel := context.WithTimeout(r.c.ctx, 2*time.Second)
		stream, err := js.Stream(once, log)
		if err == nil && stream.CachedInfo().Cluster.Leader == r.node {
			cancel()
			return &replicaRealm{realm, r, stream}, nil
		}
		_, err = r.conn.RequestWithContext(once, "$JS.API.STREAM.LEADER.STEPDOWN."+log, fmt.Appendf(nil, `{"placement": {"preferred": %q}}`, r.node))
		cancel()
		if r.c.ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("%s does not lead its log: %w", r.node, err), realm.Close())
		}
		step.Pause(r.c.ctx, 100*time.Millisecond)
	}
}

type replicaRealm struct {
	driver.Realm
	*replica
	stream natsjs.Stream
}

// Read implements [driver.Log].
func (r *replicaRealm) Read(ctx context.Context, after, through driver.Cursor) iter.Seq2[driver.Entry, error] {
	return func(yield func(driver.Entry, error) bool) {
		for at := after + 1; at <= through; at++ {
			msg, err := r.stream.GetMsg(ctx, uint64(at))
			if err != nil {
				yield(driver.Entry{}, fmt.Errorf("entry %d of %s: %w", at, r.node, err))
				return
			}
			if !yield(driver.Entry{Cursor: at, Data: msg.Data}, nil) {
				return
			}
		}
		if info, err := r.stream.Info(ctx); err != nil || info.Cluster.Leader != r.node {
			yield(driver.Entry{}, fmt.Errorf("%s no longer leads its log, %w", r.node, err))
		}
	}
}
