//go:build unix

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/kuji-dev/kuji/driver"
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
	chaosOn    = flag.String("chaosstore", "", "what keeps the log of TestChaos: nats or postgres; nothing: the nodes")
)

// chaos is a cluster of three processes, between which everything passes through proxies.
type chaos struct {
	*trio
	on    chaosStore
	ctx   context.Context
	rng   *rand.Rand
	book  *chaosBook
	wires map[[2]string]wire // by who dials and who is dialed
	round int
	realm string // whose leader faults are about
	// filled are the nodes whose disks were full since they were started.
	filled map[string]bool
}

// chaosStore is what keeps the log of a cluster under chaos.
type chaosStore interface {
	// open prepares it and says how nodes reach it, before they are started.
	open(c *chaos)
	// faults returns what can go wrong.
	faults() []fault
	// kept returns what is kept in the end, when no node runs: a copy, or several that must be the same.
	kept(c *chaos) []keptLog
}

// keptLog is a copy of the cluster's logs.
type keptLog struct {
	at string
	driver.Driver
}

// wire is the way of one process to another.
type wire []*proxy.Proxy

func (w wire) each(f func(*proxy.Proxy)) {
	for _, p := range w {
		f(p)
	}
}

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
	t.Logf("to repeat this: go test ./internal/cli -run 'TestChaos$' -v -chaos %v -chaosseed %d -chaosstore %q", *chaosFor, seed, *chaosOn)
	c := newChaos(t, seed)
	began := time.Now()
	var order []fault
	faults := c.on.faults()
	for time.Since(began) < *chaosFor && c.round < chaosRounds && !t.Failed() {
		if len(order) == 0 { // each fault once before any comes again
			for _, i := range c.rng.Perm(len(faults)) {
				if f := faults[i]; *chaosFault == "" || f.name == *chaosFault {
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
	on, known := map[string]chaosStore{"": &nodesStore{}, "nats": &natsStore{}, "postgres": &postgresStore{}}[*chaosOn]
	if !known {
		t.Fatalf("-chaosstore %q: want nats or postgres", *chaosOn)
	}
	c.program, c.on = jumpingKuji, on
	c.on.open(c)
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

// heal lets everything pass at once. What was held arrives late, or never.
func (c *chaos) heal() {
	lost := c.rng.IntN(2) == 0
	for _, w := range c.wires {
		w.each(func(p *proxy.Proxy) {
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
	strike func(c *chaos)
}

// commonFaults are what goes wrong with nodes, whatever keeps the log.
var commonFaults = []fault{
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
	{name: "slow", strike: func(c *chaos) {
		leader, _ := c.some()
		for _, w := range c.wires {
			late := time.Duration(c.rng.Int64N(int64(50 * time.Millisecond)))
			w.each(func(p *proxy.Proxy) { p.Delay(proxy.ToServer, late); p.Delay(proxy.ToClient, late) })
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
		for name, p := range c.running {
			select {
			case <-p.ended:
				if !c.filled[name] {
					c.t.Fatalf("node %s ended by itself: %v", name, p.err)
				}
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

// passTo starts a proxy to a server, for as long as the test takes.
func (c *chaos) passTo(target string) *proxy.Proxy {
	c.t.Helper()
	return c.passAt("127.0.0.1:0", target)
}

// passAt is passTo at an address.
func (c *chaos) passAt(address, target string) *proxy.Proxy {
	c.t.Helper()
	p, err := proxy.Listen(address, target)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { p.Close() })
	return p
}

// verifyChaos runs the verifier over what is kept.
func (c *chaos) verifyChaos() {
	c.t.Helper()
	kept := c.on.kept(c)
	for realm, name := range chaosRealms {
		draws := uint64(0)
		for id, r := range c.book.results {
			if r.GetStatus() == kujiv1.Status_STATUS_OK && c.book.asked[id].realm == realm {
				draws++
			}
		}
		c.verifyRealm(name, draws, kept)
	}
}

// verifyRealm runs the verifier over one realm in each copy.
func (c *chaos) verifyRealm(realm string, draws uint64, kept []keptLog) {
	c.t.Helper()
	var first verify.Report
	key, _ := c.flags.Seals()
	for i, copied := range kept {
		report, err := verify.Driver(copied.Driver, realm, verify.Options{Keys: [][32]byte{key}})
		if err != nil {
			c.t.Fatalf("realm %s at %s: %v", realm, copied.at, err)
		}
		if i == 0 {
			first = report
		}
		if report.StateHash != first.StateHash || report.ChainHash != first.ChainHash || report.Position != first.Position {
			c.t.Errorf("realm %s: %s has state %x at %d, and %s %x at %d", realm, copied.at, report.StateHash, report.Position,
				kept[0].at, first.StateHash, first.Position)
		}
		if report.Draws != draws {
			c.t.Errorf("the log of realm %s at %s has %d draws, want %d", realm, copied.at, report.Draws, draws)
		}
		for i, e := range report.Epochs {
			if !e.Revealed && (e.Lost || i < len(report.Epochs)-1) {
				c.t.Errorf("epoch %d of realm %s is not proven: %+v", e.Epoch, realm, e)
			}
		}
	}
	c.t.Logf("realm %s: %d entries, %d of them void, %d epochs, %d snapshots, state %x", realm, first.Position+first.Void, first.Void, len(first.Epochs), first.Snapshots, first.StateHash[:4])
}
