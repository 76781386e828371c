//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kuji-dev/kuji/client"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/internal/cluster"
	"github.com/kuji-dev/kuji/internal/election"
	kujiv1 "github.com/kuji-dev/kuji/proto/kuji/v1"
	"github.com/kuji-dev/kuji/server"
)

var failovers = flag.Int("failovers", 1, "how often TestClusterFailover kills the leader; with -v it says how long each took")

// clusterPatience is how long the test waits for anything before it fails.
const clusterPatience = 2 * time.Minute

// clusterCatalog gives a hat for every draw, and at most 100 crowns.
const clusterCatalog = `kuji: 1
items: {hat: {}, crown: {}}
pools:
  hats:
    entries:
      - {id: plain, weight: 9, reward: {items: {hat: 1}}}
      - {id: royal, weight: 1, stock: 100, reward: {items: {hat: 1, crown: 1}}}
`

// trio is a cluster of three processes on this machine.
type trio struct {
	t     *testing.T
	dir   string
	flags clusterFlags
	peers *cluster.Client

	ports   []int               // free, each with the next one
	program string              // runs a node: kuji, or one whose clock can jump
	build   map[string]string   // runs a node in place of program: another build of kuji
	listen  map[string]string   // addresses for clients, by node; a node comes back at its own
	sees    map[string]string   // the --peers of a node that finds the others elsewhere
	more    map[string][]string // more flags of a node
	store   map[string]string   // what keeps the log, as each node reaches it; nil: the nodes do
	secret  string              // which no node may say, if any

	mu      sync.Mutex
	urls    map[string]string
	redis   map[string]string // addresses for Redis clients
	running map[string]*nodeProcess
}

// nodeProcess is a node that runs, or has run.
type nodeProcess struct {
	*os.Process
	ended chan struct{}
	err   error // how it ended
}

// wait waits until a process has ended.
func (p *nodeProcess) wait() error {
	<-p.ended
	return p.err
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	c := designTrio(t)
	for _, name := range c.flags.Names() {
		c.start(name)
	}
	return c
}

// givenPorts are the ports of all clusters so far. Tests of clusters run in parallel.
var givenPorts struct {
	sync.Mutex
	ports []int
}

// newPairs is freePairs without ports that another cluster has, even if it does not use them now.
func newPairs(n int) (ports []int, err error) {
	givenPorts.Lock()
	defer givenPorts.Unlock()
	for len(ports) < n {
		more, err := freePairs(n-len(ports), pairsFrom+pairPorts)
		if err != nil {
			return nil, err
		}
		for _, port := range more {
			if !slices.Contains(givenPorts.ports, port) {
				ports, givenPorts.ports = append(ports, port), append(givenPorts.ports, port)
			}
		}
	}
	return ports, nil
}

// designTrio returns a cluster that does not run yet.
func designTrio(t *testing.T) *trio {
	t.Helper()
	c := &trio{t: t, dir: t.TempDir(), program: "kuji", listen: map[string]string{}, sees: map[string]string{}, more: map[string][]string{}, build: map[string]string{}, urls: map[string]string{}, redis: map[string]string{}, running: map[string]*nodeProcess{}}
	c.flags = clusterFlags{keyFile: filepath.Join(c.dir, "key")}
	c.flags.Name = "shop"
	if err := writeClusterKey(c.flags.keyFile); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.ports, err = newPairs(3 + 3 + 6); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		c.flags.peers = append(c.flags.peers, fmt.Sprintf("%s=127.0.0.1:%d", name, c.port()))
		c.listen[name] = fmt.Sprintf("127.0.0.1:%d", c.port())
	}
	c.meet()
	t.Cleanup(func() {
		for _, p := range c.running {
			_ = p.Kill() // fails only when it has ended already
			_ = p.wait()
		}
	})
	return c
}

// meet makes the client of the nodes, with the key that is in the file.
func (c *trio) meet() {
	c.t.Helper()
	var err error
	if c.peers, err = (&app{}).clusterClient(c.t.Context(), &c.flags); err != nil {
		c.t.Fatal(err)
	}
}

// port takes one of the ports that were free.
func (c *trio) port() (port int) {
	port, c.ports = c.ports[0], c.ports[1:]
	return port
}

// start starts a node, and returns when it listens.
func (c *trio) start(name string) {
	c.t.Helper()
	path, err := exec.LookPath(cmp.Or(c.build[name], c.program))
	if err != nil {
		c.t.Fatal(err)
	}
	args := []string{"serve", "--json", "--listen", c.listen[name], "--data", filepath.Join(c.dir, name), "--node", name,
		"--cluster", c.flags.Name, "--cluster-key", c.flags.keyFile, "--snapshot-every", fmt.Sprint(max(1<<16, 100**clusterPlayers))}
	if c.store == nil {
		args = append(args, "--peers", cmp.Or(c.sees[name], strings.Join(c.flags.peers, ",")))
	} else { // they find each other on its board
		args = append(args, "--store", c.store[name], "--peer-listen", c.flags.Peers[name].Requests())
	}
	cmd := exec.Command(path, append(args, c.more[name]...)...)
	said := newLines()
	cmd.Stderr = said
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	p := &nodeProcess{Process: cmd.Process, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	var ready readyJSON
	if err != nil || json.Unmarshal(line, &ready) != nil {
		c.t.Fatalf("node %s: %v\n%s", name, p.wait(), said)
	}
	c.t.Cleanup(func() {
		if c.secret != "" && strings.Contains(said.String(), c.secret) {
			c.t.Errorf("node %s says %q", name, c.secret)
		}
		if c.t.Failed() {
			c.t.Logf("node %s said:\n%s", name, said)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[name], c.urls[name], c.redis[name] = p, ready.URL, ready.Redis
}

// client returns a client of a node.
func (c *trio) client(name string) *rawClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	return newClient(http.DefaultClient, c.urls[name], "")
}

// settled waits until all nodes are ready and have caught up, and returns who leads.
func (c *trio) settled(ctx context.Context) string {
	c.t.Helper()
	for {
		leader, ready := "", 0
		for _, name := range c.flags.Names() {
			n := c.peers.Ask(ctx, name)
			if slices.Contains(n.Leads, server.DefaultRealm) {
				leader = name
			}
			if n.Ready && n.Behind == "" {
				ready++
			}
		}
		if leader != "" && ready == len(c.flags.Peers) {
			return leader
		}
		if ctx.Err() != nil {
			c.t.Fatal("the cluster did not settle")
		}
		moment()
	}
}

// moment leaves the processor to what a test waits for, before the test asks again.
func moment() { <-time.After(10 * time.Millisecond) }

// answered is what clients know: the receipts of draws by request id, each answered once.
type answered struct {
	mu      sync.Mutex
	answers map[string]*kujiv1.Result
	crowns  int
	newest  time.Time // when the newest draw was sent that was answered at once
	more    chan struct{}
}

func (b *answered) write(id string, r *kujiv1.Result, sent time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[id] = r
	if r.GetOutcomes()[0].GetEntry() == "royal" {
		b.crowns++
	}
	if sent.After(b.newest) {
		b.newest = sent
	}
	close(b.more)
	b.more = make(chan struct{})
}

// until waits until what the book says is good.
func (b *answered) until(ctx context.Context, t *testing.T, good func() bool) {
	t.Helper()
	for {
		b.mu.Lock()
		ok, more := good(), b.more
		b.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatal("draws are not answered")
		}
	}
}

// draw sends one draw until it is answered, to one node after the other, beginning with the one at.
func (c *trio) draw(ctx context.Context, id string, at int) (*kujiv1.Result, error) {
	var urls []string
	c.mu.Lock()
	for _, name := range c.flags.Names() {
		urls = append(urls, c.urls[name])
	}
	c.mu.Unlock()
	at %= len(urls)
	cl, err := client.New(slices.Concat(urls[at:], urls[:at]), client.Options{Transport: http.DefaultTransport, Timeout: -1, Attempt: 20 * time.Second})
	if err != nil {
		return nil, err
	}
	resp, err := cl.Draw(ctx, &kujiv1.DrawRequest{RequestId: id, Player: "ann", Pool: "hats"})
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", id, err)
	}
	return resp.GetResult(), nil
}

// load lets clients draw at all nodes in turn until stop is called. They draw slowly: many draws take
// long to check.
func (c *trio) load(ctx context.Context, b *answered, clients int) (stop func()) {
	drawing, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	for w := range clients {
		working.Go(func() {
			for i := 0; drawing.Err() == nil; i++ {
				id, sent := fmt.Sprintf("w%d-%d", w, i), time.Now()
				r, err := c.draw(ctx, id, w+i)
				if err != nil {
					c.t.Error(err)
					return
				}
				b.write(id, r, sent)
				moment()
			}
		})
	}
	stop = func() { cancel(); working.Wait() }
	c.t.Cleanup(stop)
	return stop
}

// TestClusterFailover: three processes answer draws at every node. The leader is killed with SIGKILL,
// and comes back, while clients go on and send the same ids until they are answered. Afterwards
// every answer is there once, and the verifier proves every epoch.
func TestClusterFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three processes")
	}
	t.Parallel()
	c := designTrio(t)
	c.keepIn(*failoverStore)
	for _, name := range c.flags.Names() {
		c.start(name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience*time.Duration(*failovers))
	defer cancel()
	c.settled(ctx)
	if _, err := c.client("n1").admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(clusterCatalog)}); err != nil {
		t.Fatal(err)
	}
	c.fill(ctx, *clusterPlayers)
	nodes := c.flags.Names()
	c.leadersOf(ctx, []string{server.DefaultRealm}, func(realm, node string) bool { return election.First(nodes, realm) == node }) // it stays there
	c.streams(ctx)

	b := &answered{answers: map[string]*kujiv1.Result{}, more: make(chan struct{})}
	stop := c.load(ctx, b, 3)
	var took []time.Duration
	for range *failovers {
		have := 0
		b.until(ctx, t, func() bool { have = len(b.answers); return true })
		b.until(ctx, t, func() bool { return len(b.answers) >= have+100 })
		leader := c.settled(ctx)
		if err := c.running[leader].Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.running[leader].wait()
		dead := time.Now()
		b.until(ctx, t, func() bool { return b.newest.After(dead) })
		took = append(took, time.Since(dead))
		t.Logf("writes are back %v after the death of %s", took[len(took)-1].Round(time.Millisecond), leader)
		c.start(leader) // another node answered: the log has an epoch of its own
		c.settled(ctx)
	}
	slices.Sort(took)
	t.Logf("%d times: median %v, worst %v", len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	stop()
	c.freeze(ctx, b)
	c.audit(ctx, b)
	c.followers(ctx)
	if c.store == nil {
		c.verifyRunning(ctx, uint64(len(b.answers)))
	}
	c.stopAll()
	c.verify(ctx, uint64(len(b.answers)))
}

// freeze stops the leader until another node leads, as a pause of its machine does. What it is asked
// meanwhile it answers when it goes on, with what the other node has written.
func (c *trio) freeze(ctx context.Context, b *answered) {
	c.t.Helper()
	names := c.flags.Names()
	old := slices.Index(names, c.settled(ctx))
	process := c.running[names[old]]
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
	sent := time.Now()
	r, err := c.draw(ctx, "frozen", old+1)
	if err != nil {
		c.t.Fatal(err)
	}
	b.write("frozen", r, sent)
	asked := make(chan struct{})
	read := make(chan error, 1)
	go func() {
		ctx := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(asked) }})
		resp, err := c.client(names[old]).rewards.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: "ann"})
		if held := resp.GetPlayer().GetItems(); err == nil && held[0].GetQuantity() != uint64(len(b.answers)) {
			err = fmt.Errorf("it reads %v, want %d hats", held, len(b.answers))
		}
		read <- err
	}()
	<-asked
	if err := process.Signal(syscall.SIGCONT); err != nil {
		c.t.Fatal(err)
	}
	if err := <-read; err != nil {
		c.t.Errorf("a leader that slept through its time: %v", err)
	}
}

// streams draws on a stream through every node. A node that has not seen yet who leads may refuse a stream:
// the client then opens another.
func (c *trio) streams(ctx context.Context) {
	c.t.Helper()
	for _, name := range c.flags.Names() {
		c.mu.Lock()
		cl, err := client.New([]string{c.urls[name]}, client.Options{Timeout: clusterPatience})
		c.mu.Unlock()
		if err != nil {
			c.t.Fatal(err)
		}
		s := cl.Draws(ctx)
		for i := range 3 {
			if err := s.Send(&kujiv1.StreamDrawsRequest{Players: []string{"bob", "eve"}, Pools: []string{"hats"}}); err != nil {
				c.t.Fatalf("node %s, batch %d: %v", name, i, err)
			}
			resp, err := s.Receive()
			if err != nil || len(resp.GetOutcomeIndexes()) != 2 {
				c.t.Fatalf("node %s, batch %d: %v, %v", name, i, resp, err)
			}
		}
		s.CloseSend()
		if _, err := s.Receive(); !errors.Is(err, io.EOF) {
			c.t.Fatalf("node %s: the stream ends with %v", name, err)
		}
		s.Close()
	}
}

// streamed is how many draws streams makes.
const streamed = 3 * 3 * 2

// audit asks for every answer again, at every node in turn, and counts what the player holds.
func (c *trio) audit(ctx context.Context, b *answered) {
	c.t.Helper()
	i := 0
	for id, want := range b.answers {
		got, err := c.draw(ctx, id, i)
		if err != nil {
			c.t.Fatal(err)
		}
		if !got.GetReplayed() || got.GetReceipt().GetPosition() != want.GetReceipt().GetPosition() ||
			got.GetOutcomes()[0].GetEntry() != want.GetOutcomes()[0].GetEntry() {
			c.t.Errorf("draw %s: answered with %v, and now %v", id, want, got)
		}
		i++
	}
	for _, name := range c.flags.Names() {
		resp, err := c.client(name).rewards.GetPlayer(ctx, &kujiv1.GetPlayerRequest{Player: "ann"})
		if err != nil {
			c.t.Fatal(err)
		}
		held := map[string]uint64{}
		for _, s := range resp.GetPlayer().GetItems() {
			held[s.GetItem()] = s.GetQuantity()
		}
		if held["hat"] != uint64(len(b.answers)) || held["crown"] != uint64(b.crowns) {
			c.t.Errorf("at node %s the player holds %v, want %d hats and %d crowns", name, held, len(b.answers), b.crowns)
		}
	}
}

// TestClusterGrows: two nodes join a cluster of three that goes on meanwhile. Then the others are told
// of them, one after the other. Everything is on all five then, which go on without the one that leads and
// another one. Meanwhile the key of the cluster is changed: each node that starts accepts the next key too,
// and then uses it. Nobody loses a proof. In the end they are three again.
func TestClusterGrows(t *testing.T) {
	if testing.Short() {
		t.Skip("starts five processes")
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	c := newTrio(t)
	leader := c.settled(ctx)
	if _, err := c.client(leader).admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(clusterCatalog)}); err != nil {
		t.Fatal(err)
	}
	answers := map[string]uint64{}
	draws := func(stage string) {
		t.Helper()
		for i := range 10 {
			answers[fmt.Sprint(stage, " ", i)] = 0
		}
		for id, was := range answers {
			got, err := c.draw(ctx, id, len(id))
			if err != nil {
				t.Fatal(err)
			}
			if at := got.GetReceipt().GetPosition(); was != 0 && at != was {
				t.Errorf("%s: draw %s was answered at %d, and now at %d", stage, id, was, at)
			}
			answers[id] = got.GetReceipt().GetPosition()
		}
	}
	draws("three")

	old := c.flags.Names()
	for _, name := range []string{"n4", "n5"} {
		c.flags.peers = append(c.flags.peers, fmt.Sprintf("%s=127.0.0.1:%d", name, c.port()))
		c.listen[name] = fmt.Sprintf("127.0.0.1:%d", c.port())
	}
	if err := c.flags.checkMember(); err != nil {
		t.Fatal(err)
	}
	c.acceptNextKey()
	for _, name := range []string{"n4", "n5"} {
		c.start(name)
	}
	c.settled(ctx)
	draws("two joined")
	for _, name := range old {
		if err := c.running[name].Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := c.running[name].wait(); err != nil {
			t.Errorf("node %s: %v", name, err)
		}
		c.start(name)
		c.settled(ctx)
	}
	draws("all know")
	c.widened(ctx)
	c.useNextKey()
	leader = c.settled(ctx)
	other := old[0]
	if leader == other {
		other = old[1]
	}
	for _, name := range []string{leader, other} {
		if err := c.running[name].Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.running[name].wait()
	}
	draws("without two")
	for _, name := range []string{leader, other} {
		c.start(name)
	}
	c.settled(ctx)
	out, code := c.kuji(ctx, "verify", "--strict", "--cluster", "shop", "--peers", strings.Join(c.flags.peers, ","), "--cluster-key", c.flags.keyFile)
	if code != 0 || strings.Contains(out, "cannot be proven") {
		t.Errorf("verify: exit %d\n%s", code, out)
	}
	c.shrink(ctx, draws)
	c.stopAll()
}

// acceptNextKey makes nodes that start from now on accept another key as well, and useNextKey makes them use
// that one.
func (c *trio) acceptNextKey() {
	c.t.Helper()
	next := filepath.Join(c.dir, "next")
	if err := writeClusterKey(next); err != nil {
		c.t.Fatal(err)
	}
	c.changeKey(c.flags.keyFile, next)
}

func (c *trio) useNextKey() {
	c.t.Helper()
	c.changeKey(filepath.Join(c.dir, "next"), filepath.Join(c.dir, "key"))
}

// changeKey makes a file with two keys, for nodes that start from now on.
func (c *trio) changeKey(used, accepted string) {
	c.t.Helper()
	var both []byte
	for _, file := range []string{used, accepted} {
		data, err := os.ReadFile(file)
		if err != nil {
			c.t.Fatal(err)
		}
		both = append(both, data...)
	}
	c.flags.keyFile = used + "-and-" + filepath.Base(accepted)
	if err := os.WriteFile(c.flags.keyFile, both, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.meet()
}

// TestExternalNATS: a cluster whose log is kept by NATS servers of the user's takes over like any
// other, goes on without one of the servers, and is verified there.
func TestExternalNATS(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three processes")
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := designTrio(t)
	const secret = "the servers' own secret"
	listen := map[string]string{}
	for i := range 3 {
		listen[fmt.Sprintf("s%d", i)] = fmt.Sprintf("127.0.0.1:%d", c.port())
	}
	var addresses []string
	var servers []*embedded.Server
	for name, address := range listen {
		s, err := embedded.Start(embedded.Options{
			Dir: filepath.Join(c.dir, name), Cluster: "nats", Node: name, Listen: address, Peers: listen, Secret: secret,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		servers = append(servers, s)
		addresses = append(addresses, s.Clients())
	}
	store := fmt.Sprintf("nats://kuji:%s@%s", url.PathEscape(secret), strings.Join(addresses, ","))
	c.store = map[string]string{}
	for _, s := range servers {
		if err := s.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range c.flags.Names() {
		c.store[name], c.more[name] = store, []string{"--history-age", "1ms"}
		c.start(name)
	}
	c.secret = url.PathEscape(secret)
	leader := c.settled(ctx)
	if _, err := c.client(leader).admin.ApplyCatalog(ctx, &kujiv1.ApplyCatalogRequest{Yaml: []byte(clusterCatalog)}); err != nil {
		t.Fatal(err)
	}
	answers := map[string]uint64{}
	draw := func(id string) {
		t.Helper()
		got, err := c.draw(ctx, id, len(answers))
		if err != nil {
			t.Fatal(err)
		}
		if was, ok := answers[id]; ok && was != got.GetReceipt().GetPosition() {
			t.Errorf("draw %s was answered at %d, and now at %d", id, was, got.GetReceipt().GetPosition())
		}
		answers[id] = got.GetReceipt().GetPosition()
	}
	for i := range 20 {
		draw(fmt.Sprint("before-", i))
	}
	if err := c.running[leader].Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.running[leader].wait()
	delete(c.running, leader)
	for i := range 20 {
		draw(fmt.Sprint("after-", i))
	}
	if err := servers[0].Close(); err != nil {
		t.Fatal(err)
	}
	for id := range answers {
		draw(id)
	}
	path, err := exec.LookPath(c.program)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, path, "verify", "--json", "--strict", "--cluster", "shop", "--cluster-key", c.flags.keyFile, "--store", store).Output()
	var report verifyJSON
	if jsonErr := json.Unmarshal(out, &report); err != nil || jsonErr != nil || len(report.Realms) != 1 || report.Realms[0].Draws != 40 {
		t.Errorf("verify: %v, %v, %s", err, jsonErr, out)
	}
	names := slices.Sorted(maps.Keys(c.running))
	var state *kujiv1.HistoryState
	for i := 0; state.GetKeptFrom() == 0 && ctx.Err() == nil; i++ { // what is written later removes what is too old by then
		draw(fmt.Sprint("late-", i))
		got, err := c.client(names[0]).rewards.GetHistory(ctx, &kujiv1.GetHistoryRequest{Pool: "hats", Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		state = got.GetState()
	}
	if state.GetKeptFrom() == 0 {
		t.Errorf("a history of 1 ms: %v, want that it is kept from a position on", state)
	}
	// Another cluster at the same servers is restored without a node that runs.
	c.mu.Lock()
	nodes := strings.Join(slices.Collect(maps.Values(c.urls)), ",")
	c.mu.Unlock()
	if said, code := c.kuji(ctx, "backup", "--to", filepath.Join(c.dir, "backup"), "--server", nodes); code != 0 {
		t.Fatalf("backup: exit %d: %s", code, said)
	}
	if said, code := c.kuji(ctx, "cluster", "status", "--cluster", "shop", "--cluster-key", c.flags.keyFile, "--store", store); code != 0 || !strings.Contains(said, names[0]) || !strings.Contains(said, c.flags.Peers[names[0]].Requests()) {
		t.Errorf("cluster status: exit %d: %s", code, said)
	}
	other := []string{"--cluster", "other", "--cluster-key", c.flags.keyFile, "--store", store}
	if said, code := c.kuji(ctx, append([]string{"restore", "--from", filepath.Join(c.dir, "backup")}, other...)...); code != 0 {
		t.Errorf("restore: exit %d: %s", code, said)
	}
	if said, code := c.kuji(ctx, append([]string{"verify"}, other...)...); code != 0 || !strings.Contains(said, "cannot be proven: its seed is sealed") {
		t.Errorf("verify what was restored: exit %d: %s", code, said)
	}
	c.stopAll()
}

// stopAll ends all nodes in order.
func (c *trio) stopAll() {
	c.t.Helper()
	for _, p := range c.running {
		if err := p.Signal(syscall.SIGTERM); err != nil {
			c.t.Error(err)
		}
	}
	for name, p := range c.running {
		if err := p.wait(); err != nil {
			c.t.Errorf("node %s: %v", name, err)
		}
	}
	clear(c.running)
}

// verifyRunning runs the verifier over the cluster while it runs, from outside, with two of its nodes
// gone from the list, and with a key that is not the cluster's.
func (c *trio) verifyRunning(ctx context.Context, draws uint64) {
	c.t.Helper()
	path, err := exec.LookPath(c.program)
	if err != nil {
		c.t.Fatal(err)
	}
	_, last, _ := strings.Cut(c.flags.peers[2], "=")
	peers := fmt.Sprintf("n1=127.0.0.1:1,n2=127.0.0.1:1,n3=%s", last)
	run := func(key string, args ...string) (stdout, stderr []byte, code int) {
		cmd := exec.CommandContext(ctx, path, append(args, "--cluster", "shop", "--peers", peers, "--cluster-key", key)...)
		var said, wrong bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &wrong
		_ = cmd.Run() // its exit code says it
		return said.Bytes(), wrong.Bytes(), cmd.ProcessState.ExitCode()
	}
	stdout, stderr, code := run(c.flags.keyFile, "verify", "--json", "--strict")
	var report verifyJSON
	if err := json.Unmarshal(stdout, &report); err != nil || code != 0 {
		c.t.Fatalf("verify: exit %d, %v: %s\n%s", code, err, stdout, stderr)
	}
	if !report.OK || report.Cluster != "shop" || len(report.Realms) != 1 || report.Realms[0].Draws != draws+streamed || len(report.Realms[0].Epochs) < 2 {
		c.t.Errorf("verify says %+v, want %d draws", report, draws+streamed)
	}
	stdout, stderr, code = run(c.flags.keyFile, "log", "events")
	if n := bytes.Count(stdout, []byte("\n")); code != 0 || uint64(n) != report.Realms[0].Events {
		c.t.Errorf("log events: exit %d, %d lines, want %d\n%s", code, n, report.Realms[0].Events, stderr)
	}
	if _, stderr, code = run(c.flags.keyFile, "verify", "--realm", "nowhere"); code != int(exitRefused) {
		c.t.Errorf("a realm that is not there: exit %d\n%s", code, stderr)
	}
	stranger := filepath.Join(c.dir, "stranger")
	if err := writeClusterKey(stranger); err != nil {
		c.t.Fatal(err)
	}
	if stdout, stderr, code = run(stranger, "verify"); code != int(exitUnreachable) || len(stdout) > 0 {
		c.t.Errorf("another key: exit %d, %s\n%s", code, stdout, stderr)
	}
}
