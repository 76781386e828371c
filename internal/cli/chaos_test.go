//go:build unix

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/internal/proxy"
	"github.com/kuji-dev/kuji/internal/step"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/verify"
)

var (
	chaosFor   = flag.Duration("chaos", 0, "how long TestChaos goes on with new faults")
	chaosSeed  = flag.Uint64("chaosseed", 1, "what TestChaos draws its faults from")
	chaosFault = flag.String("chaosfault", "", "the only fault that TestChaos draws, by its name")
)

// chaos is a cluster of three processes, between which everything passes through proxies.
type chaos struct {
	*trio
	ctx   context.Context
	rng   *rand.Rand
	book  *chaosBook
	wires map[[2]string]wire // by who dials and who is dialed
	round int
	realm string // whose leader faults are about
	// filled are the nodes whose disks were full since they were started.
	filled map[string]bool
	small  bool // each node has a small disk of its own, which can be filled
}

// wire is the way of one node to another.
type wire struct{ log, requests *proxy.Proxy }

func (w wire) both(f func(*proxy.Proxy)) { f(w.log); f(w.requests) }

// TestChaos: three real processes, of which one, two or all are killed, paused, cut off, filled, wiped
// or led astray by their clocks, again and again, while clients draw and read at every node and send the
// same ids until they are answered. Afterwards
//
//   - every answer is there once, and the same at every node;
//   - each round's history is linearizable: every draw and every read took effect at one moment between
//     its call and its return;
//   - what each node has stored gives the same state;
//   - the verifier proves every epoch.
func TestChaos(t *testing.T) {
	if *chaosFor == 0 {
		t.Skip("goes on for as long as -chaos says: see make chaos")
	}
	seed := *chaosSeed
	t.Logf("to repeat this: go test ./internal/cli -run 'TestChaos$' -v -chaos %v -chaosseed %d", *chaosFor, seed)
	c := newChaos(t, seed)
	began := time.Now()
	var order []fault
	for time.Since(began) < *chaosFor && c.round < chaosRounds && !t.Failed() {
		if len(order) == 0 { // each fault once before any comes again
			for _, i := range c.rng.Perm(len(faults)) {
				if f := faults[i]; (*chaosFault == "" || f.name == *chaosFault) && (c.small || !f.fills) {
					order = append(order, f)
				}
			}
			if len(order) == 0 {
				t.Skipf("no fault is called %q, or it cannot be done here", *chaosFault)
			}
		}
		c.play(order[0], seed)
		order, c.round = order[1:], c.round+1
	}
	if t.Failed() {
		return
	}
	c.auditChaos(c.ctx, c.book, c.round)
	c.stopAll()
	c.verifyChaos()
	t.Logf("%d rounds, %d draws", c.round, len(c.book.results))
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), *chaosFor+4*time.Minute)
	t.Cleanup(cancel)
	c := &chaos{trio: designTrio(t), ctx: ctx, rng: rand.New(rand.NewPCG(seed, 0)), wires: map[[2]string]wire{}, filled: map[string]bool{},
		book: &chaosBook{results: map[string]*kujiv1.Result{}, asked: map[string]chaosPlace{}, more: make(chan struct{})}}
	c.program = jumpingKuji
	c.connect()
	c.small = c.mount()
	for _, name := range c.flags.Names() {
		c.start(name)
	}
	for _, realm := range chaosRealms {
		cl := c.anyNode(0)
		if _, err := cl.Admin.CreateRealm(ctx, &kujiv1.CreateRealmRequest{Realm: realm}); err != nil {
			t.Fatal(err)
		}
		if _, err := cl.Admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Realm: realm, Yaml: chaosCatalog()}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// connect puts proxies between the nodes. What a node knows as its own address leads nowhere, so that
// no node learns from another how to get around them.
func (c *chaos) connect() {
	c.t.Helper()
	listen := func(at, target string) *proxy.Proxy {
		p, err := proxy.Listen(at, target)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { p.Close() })
		return p
	}
	for i, from := range c.flags.Names() {
		peers := []string{fmt.Sprintf("%s=127.0.0.1:%d", from, 1+2*i)}
		for _, to := range c.flags.Names() {
			if from != to {
				at, real := cluster.Peer{Host: "127.0.0.1", Port: c.port()}, c.flags.Peers[to]
				w := wire{listen(at.Log(), real.Log()), listen(at.Requests(), real.Requests())}
				c.wires[[2]string{from, to}] = w
				peers = append(peers, to+"="+w.log.Addr())
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

// play lets clients loose, lets a fault happen, and checks what the clients saw.
func (c *chaos) play(f fault, seed uint64) {
	c.t.Helper()
	began := time.Now()
	c.realm = chaosRealms[c.rng.IntN(len(chaosRealms))]
	stop, errs := make(chan struct{}), make(chan error, chaosClients)
	var clients sync.WaitGroup
	for n := range chaosClients {
		clients.Go(func() {
			if err := c.book.drive(c.ctx, c.anyNode(n), seed, c.round, n, stop); err != nil {
				errs <- err
			}
		})
	}
	c.flows()
	f.strike(c)
	c.heal()
	c.settled()
	c.flows()
	close(stop)
	clients.Wait()
	close(errs)
	for err := range errs {
		c.t.Error(err)
	}
	n := c.book.linearizable(c.t)
	c.t.Logf("round %d: %s, %d operations, %v", c.round, f.name, n, time.Since(began).Round(time.Millisecond))
	if c.t.Failed() {
		c.t.Fatalf("in round %d: %s", c.round, f.name)
	}
}

// flows waits until a draw of each realm is answered that is sent from now on.
func (c *chaos) flows() {
	c.t.Helper()
	now := time.Now()
	for {
		c.book.mu.Lock()
		newest, more := c.book.newest, c.book.more
		c.book.mu.Unlock()
		if !slices.ContainsFunc(newest[:], func(sent time.Time) bool { return !sent.After(now) }) {
			return
		}
		select {
		case <-more:
		case <-time.After(clusterPatience):
			c.t.Fatal("draws are not answered")
		}
	}
}

// lasts lets a fault last, for longer than a lease and than a log's leader may be silent, or not.
func (c *chaos) lasts() {
	step.Pause(c.ctx, time.Second+time.Duration(c.rng.Int64N(int64(7*time.Second))))
}

// kill ends a node as kill -9 does.
func (c *chaos) kill(name string) {
	p := c.running[name]
	_ = p.Kill() // fails only when it has ended already
	_ = p.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, name)
}

func (c *chaos) signal(name string, s os.Signal) {
	c.t.Helper()
	if err := c.running[name].Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// some returns the leader, and the followers in an order by chance.
func (c *chaos) some() (leader string, followers []string) {
	c.t.Helper()
	leader = c.settled()
	followers = slices.DeleteFunc(c.flags.Names(), func(name string) bool { return name == leader })
	c.rng.Shuffle(2, func(i, j int) { followers[i], followers[j] = followers[j], followers[i] })
	return leader, followers
}

// hold holds all that one node sends another, on the connections of both.
func (c *chaos) hold(from, to string) {
	c.wires[[2]string{from, to}].both(func(p *proxy.Proxy) { p.Hold(proxy.ToServer) })
	c.wires[[2]string{to, from}].both(func(p *proxy.Proxy) { p.Hold(proxy.ToClient) })
}

// apart holds what two nodes send each other.
func (c *chaos) apart(a, b string) { c.hold(a, b); c.hold(b, a) }

// refuse cuts all connections of two nodes, and lets no new ones come up.
func (c *chaos) refuse(a, b string) {
	for _, w := range []wire{c.wires[[2]string{a, b}], c.wires[[2]string{b, a}]} {
		w.both(func(p *proxy.Proxy) { p.Refuse(true); p.Cut() })
	}
}

// heal lets everything pass at once. What was held arrives late, or never.
func (c *chaos) heal() {
	lost := c.rng.IntN(2) == 0
	for _, w := range c.wires {
		w.both(func(p *proxy.Proxy) {
			if lost {
				p.Cut()
			}
			p.Refuse(false)
			for _, way := range []proxy.Way{proxy.ToServer, proxy.ToClient} {
				p.Delay(way, 0)
				p.Release(way)
			}
		})
	}
}

// fault is something that goes wrong, and is over when strike returns. Connections heal afterwards.
type fault struct {
	name   string
	fills  bool // disks
	strike func(c *chaos)
}

var faults = []fault{
	{name: "kill-leader", strike: func(c *chaos) {
		leader, _ := c.some()
		c.kill(leader)
		c.flows()
		c.start(leader)
	}},
	{name: "kill-all", strike: func(c *chaos) {
		for _, name := range c.flags.Names() {
			c.kill(name)
		}
		for _, name := range c.flags.Names() {
			c.start(name)
		}
	}},
	{name: "kill-rolling", strike: func(c *chaos) {
		for _, name := range c.flags.Names() {
			c.kill(name)
			c.start(name)
		}
	}},
	{name: "pause-leader", strike: func(c *chaos) {
		leader, _ := c.some()
		c.signal(leader, syscall.SIGSTOP)
		c.flows() // another node leads: it was longer than the lease
		c.signal(leader, syscall.SIGCONT)
	}},
	{name: "pause-majority", strike: func(c *chaos) {
		leader, followers := c.some()
		paused := [][]string{{leader, followers[0]}, followers}[c.rng.IntN(2)]
		for _, name := range paused {
			c.signal(name, syscall.SIGSTOP)
		}
		c.lasts()
		for _, name := range paused {
			c.signal(name, syscall.SIGCONT)
		}
	}},
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
	{name: "slow", strike: func(c *chaos) {
		leader, _ := c.some()
		for _, w := range c.wires {
			late := time.Duration(c.rng.Int64N(int64(50 * time.Millisecond)))
			w.both(func(p *proxy.Proxy) { p.Delay(proxy.ToServer, late); p.Delay(proxy.ToClient, late) })
		}
		c.flows()
		c.kill(leader)
		c.flows()
		c.start(leader)
	}},
	{name: "clocks", strike: func(c *chaos) {
		for range 2 {
			leader, _ := c.some()
			for _, name := range c.flags.Names() {
				c.jump(name, time.Duration(c.rng.Int64N(int64(4*time.Hour))-int64(2*time.Hour)).Truncate(time.Second))
			}
			c.flows()
			c.kill(leader) // the next one goes by its own clock
			c.flows()
			c.start(leader)
		}
	}},
	{name: "full-leader", fills: true, strike: func(c *chaos) {
		leader, _ := c.some()
		c.fill(leader)
		c.ends(leader)
		c.flows()
		c.drain(leader)
	}},
	{name: "full-follower", fills: true, strike: func(c *chaos) {
		_, followers := c.some()
		c.fill(followers[0])
		c.ends(followers[0])
		c.flows()
		c.drain(followers[0])
	}},
	{name: "full-majority", fills: true, strike: func(c *chaos) {
		leader, followers := c.some()
		full := [][]string{{leader, followers[0]}, followers}[c.rng.IntN(2)]
		for _, name := range full {
			c.fill(name)
		}
		c.lasts()
		c.drain(full...)
	}},
	{name: "wipe", strike: func(c *chaos) {
		leader, followers := c.some()
		wiped := []string{leader, followers[0]}[c.rng.IntN(2)]
		c.kill(wiped)
		c.flows()
		c.settledBut(wiped)
		if err := os.RemoveAll(cluster.Dir(filepath.Join(c.dir, wiped))); err != nil {
			c.t.Fatal(err)
		}
		c.start(wiped)
	}},
}

// settledBut waits until all nodes but one have caught up: only then a node may come back empty.
func (c *chaos) settledBut(gone string) {
	c.t.Helper()
	for {
		current := 0
		for _, name := range c.flags.Names() {
			if name != gone {
				if n := c.peers.Ask(c.ctx, name); n.Ready && n.Behind == "" {
					current++
				}
			}
		}
		if current == 2 {
			return
		}
		if c.ctx.Err() != nil {
			c.t.Fatal("the other nodes did not catch up")
		}
	}
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

// settled waits until all nodes are ready and have caught up, and each realm has a leader. It returns who leads
// the round's realm. A node whose disk
// was full may have ended, as it should: then it is started again.
func (c *chaos) settled() (leader string) {
	c.t.Helper()
	for {
		for name := range c.filled {
			select {
			case <-c.running[name].ended:
				delete(c.filled, name)
				c.start(name)
			default:
			}
		}
		leaders, ready := map[string]string{}, 0
		for _, name := range c.flags.Names() {
			n := c.peers.Ask(c.ctx, name)
			for _, realm := range n.Leads {
				leaders[realm] = name
			}
			if n.Ready && n.Behind == "" {
				ready++
			}
		}
		if len(leaders) == len(chaosRealms) && ready == 3 {
			return leaders[c.realm]
		}
		if c.ctx.Err() != nil {
			c.t.Fatal("the cluster did not settle")
		}
	}
}

// jumpingKuji is the program kuji with a wall clock that a file next to the data directory moves.
const jumpingKuji = "kuji-jumping"

// clockFile returns the name of that file, which has the seconds by which the clock is wrong.
func clockFile(data string) string { return data + ".clock" }

// mainJumping is main of such a program.
func mainJumping() {
	data := os.Args[slices.Index(os.Args, "--data")+1]
	os.Exit(Main(func() time.Time {
		now := time.Now()
		text, err := os.ReadFile(clockFile(data))
		if err != nil {
			return now // the clock has not been moved
		}
		seconds, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			panic(err)
		}
		return jumped(now, seconds)
	}))
}

// jumped moves the wall clock's reading in a time, and leaves the monotonic clock's alone, as setting a
// machine's clock does. A time with both has the seconds of the wall clock in its first word, above 30
// bits of nanoseconds.
func jumped(now time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&now)) += uint64(seconds) << 30
	return now
}

func TestJumped(t *testing.T) {
	now := time.Now()
	for _, seconds := range []int64{3600, -3600} {
		then := jumped(now, seconds)
		if wall := then.Unix() - now.Unix(); wall != seconds || then.Sub(now) != 0 {
			t.Errorf("%d s: the wall clock moved by %d s, the monotonic one by %v", seconds, wall, then.Sub(now))
		}
	}
}

// jump sets a node's wall clock so far from the machine's.
func (c *chaos) jump(name string, d time.Duration) {
	c.t.Helper()
	file := clockFile(filepath.Join(c.dir, name))
	if err := errors.Join(os.WriteFile(file+".new", fmt.Appendf(nil, "%d", d/time.Second), 0o600), os.Rename(file+".new", file)); err != nil {
		c.t.Fatal(err)
	}
}

// verifyChaos runs the verifier over what each node has stored.
func (c *chaos) verifyChaos() {
	c.t.Helper()
	var servers []*embedded.Server
	for _, name := range c.flags.Names() {
		f := c.flags
		f.Node = name
		s, err := f.StartNATS(filepath.Join(c.dir, name), slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err != nil {
			c.t.Fatal(err)
		}
		defer s.Close()
		servers = append(servers, s)
	}
	for realm, name := range chaosRealms {
		draws := uint64(0)
		for id, r := range c.book.results {
			if r.GetStatus() == kujiv1.Status_STATUS_OK && c.book.asked[id].realm == realm {
				draws++
			}
		}
		c.verifyRealm(name, draws, servers)
	}
}

// verifyRealm runs the verifier over one realm as each node has it.
func (c *chaos) verifyRealm(realm string, draws uint64, servers []*embedded.Server) {
	c.t.Helper()
	var first verify.Report
	key, _ := c.flags.Seals()
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
		defer d.Close()
		conn, err := nats.Connect("", s.Connect())
		if err != nil {
			c.t.Fatal(err)
		}
		defer conn.Close()
		report, err := verify.Driver(&replica{d, c, c.flags.Names()[i], conn}, realm, verify.Options{Keys: [][32]byte{key}})
		if err != nil {
			c.t.Fatalf("realm %s at node %s: %v", realm, c.flags.Names()[i], err)
		}
		if i == 0 {
			first = report
		}
		if report.StateHash != first.StateHash || report.ChainHash != first.ChainHash || report.Position != first.Position {
			c.t.Errorf("realm %s: node %s has state %x at %d, and node %s %x at %d", realm, c.flags.Names()[i], report.StateHash, report.Position,
				c.flags.Names()[0], first.StateHash, first.Position)
		}
		if report.Draws != draws {
			c.t.Errorf("the log of realm %s at node %s has %d draws, want %d", realm, c.flags.Names()[i], report.Draws, draws)
		}
		for i, e := range report.Epochs {
			if !e.Revealed && (e.Lost || i < len(report.Epochs)-1) {
				c.t.Errorf("epoch %d of realm %s is not proven: %+v", e.Epoch, realm, e)
			}
		}
	}
	c.t.Logf("realm %s: %d entries, %d of them void, %d epochs, %d snapshots, state %x", realm, first.Position+first.Void, first.Void, len(first.Epochs), first.Snapshots, first.StateHash[:4])
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
