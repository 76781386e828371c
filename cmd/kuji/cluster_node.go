package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/server"
)

const (
	// leaseTTL is how long a leader that says nothing stays one, by the other nodes' clocks.
	leaseTTL = 3 * time.Second
	// renewEvery is the time between two looks at the lease, by leader and others.
	renewEvery = leaseTTL / 3
	// closeTimeout bounds how long a term that ends may take to write what it began. Without a
	// majority of nodes that never happens.
	closeTimeout = 10 * time.Second
)

// node is one process of a cluster. One node leads all realms: the one that holds the lease. The others
// follow: they carry out what it logs, and answer reads that may be stale. What keeps two leaders
// from writing is the log; what keeps reads fresh is the lease.
//
//	follow:    open the engine, follow every realm; ask for the lease every second, until it is held
//	take over: begin an epoch in every realm; renew the lease meanwhile
//	lead:      serve while the lease is fresh, renew it
//	step down: serve no more, close the engine; follow with a new one
//
// A node that leads no more, or whose log was trimmed before it was read, has to open the engine
// again. One that finds damage follows no more, says so, and never leads.
type node struct {
	name    string
	f       *clusterFlags
	key     clusterKey
	engine  kuji.Options
	server  server.Options
	history string // --history
	data    string // --data
	log     *slog.Logger
	nats    *embedded.Server // nil: the log is kept elsewhere, by --nats
	pass    *passer
	readers chan struct{}   // one for each who reads the log through this node
	stopped context.Context // ends when the process is told to stop

	mu   sync.Mutex
	view view
}

// view is what a node knows of who leads.
type view struct {
	leader  string        // "": nobody, or nobody knows
	term    *tenure       // nil: this node is opening the realms
	changed chan struct{} // closed when the next view is there
}

// look returns the view of now.
func (n *node) look() view {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view
}

// set replaces the view.
func (n *node) set(leader string, t *tenure) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.view.leader == leader && n.view.term == t {
		return
	}
	if n.view.leader != leader {
		n.log.Info("cluster: the leader changes", "node", n.name, "leader", leader)
	}
	close(n.view.changed)
	n.view = view{leader, t, make(chan struct{})}
}

// renewed notes that the lease was asked for at some time, and given. Requests that wait for that go on.
func (n *node) renewed(t *tenure, asked time.Time) {
	until := asked.Add(leaseTTL) // the others count from when they see it, which is later
	n.mu.Lock()
	defer n.mu.Unlock()
	held := t.holds()
	t.until.Store(&until)
	if !held {
		close(n.view.changed)
		n.view.changed = make(chan struct{})
	}
}

// tenure is the time in which this node has the realms open. It follows, then perhaps leads.
type tenure struct {
	engine     *kuji.Engine
	driver     *jetstream.Driver
	server     *server.Server
	chronicles *historian
	unwatch    func()
	leads      atomic.Bool // it has taken every realm over
	asking     atomic.Bool // it asks the leader how far that has come

	// until is when another node may lead, unless this one renews the lease. Then others may have
	// written, so this node answers nothing: a read from it could be old.
	until atomic.Pointer[time.Time]
}

// holds reports whether this node leads, and no other node can have begun to.
func (t *tenure) holds() bool { return t != nil && time.Now().Before(*t.until.Load()) }

// damaged returns why this node must not lead.
func (t *tenure) damaged() error {
	var found []error
	for _, err := range t.server.Stopped() {
		if kuji.CodeOf(err) == kuji.CodeCorrupt {
			found = append(found, err)
		}
	}
	return errors.Join(found...)
}

// stopped returns why the realms must be opened again. Damage would only be found again.
func (t *tenure) stopped() error {
	for _, err := range t.server.Stopped() {
		if kuji.CodeOf(err) != kuji.CodeCorrupt {
			return err
		}
	}
	return nil
}

// behind returns by how many positions the realm that is furthest behind is so.
func (t *tenure) behind() (most uint64) {
	for _, r := range t.server.Realms() {
		most = max(most, r.Stats().Behind)
	}
	return most
}

// connect connects to what keeps the log.
func (n *node) connect(ctx context.Context) (*jetstream.Driver, error) {
	replicas := 3
	if len(n.f.hosts) == 1 {
		replicas = 1
	}
	o := jetstream.Options{Cluster: n.f.name, Replicas: replicas, Logger: n.log}
	if n.nats != nil {
		o.Connect = append(o.Connect, n.nats.Connect())
	} else {
		n.f.nats.lead(&o)
	}
	return jetstream.Connect(ctx, o)
}

// run leads and stands by until ctx ends.
func (n *node) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := n.join(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("cluster: not joined yet; trying again", "error", err)
			pause(ctx, renewEvery)
		}
	}
}

// join takes part until ctx ends, or fails before it could begin.
func (n *node) join(ctx context.Context) (err error) {
	if n.nats != nil {
		if err := n.nats.Ready(ctx); err != nil {
			return err
		}
	}
	d, err := n.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	lease, err := d.Lease(ctx)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		t, held, why := n.follow(ctx, lease)
		led := why == nil
		if led {
			why = n.lead(ctx, lease, t, held)
		}
		level := slog.LevelInfo
		if !led && ctx.Err() == nil {
			level = slog.LevelWarn
		}
		n.log.Log(ctx, level, "cluster: closing the realms", "node", n.name, "led", led, "why", why)
		n.set("", nil)
		if t != nil {
			if err := t.close(); err != nil {
				n.log.Warn("cluster: a term did not end in order; the next one recovers", "error", err)
			}
		}
		if led {
			n.release(ctx, lease)
		} else {
			pause(ctx, renewEvery)
		}
	}
	return nil
}

// follow opens the realms and follows until this node holds the lease, which it asked for at held. With
// an error, t is to be closed, if it is not nil.
func (n *node) follow(ctx context.Context, lease driver.Lease) (t *tenure, held time.Time, why error) {
	opening, give := context.WithCancel(ctx)
	defer give()
	done := n.opening(opening)
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	failed, told := false, false
	for why == nil {
		asked := time.Now()
		holder, err := n.ask(ctx, lease, failed || t == nil || told)
		if failed = err != nil; failed {
			n.log.Warn("cluster: nobody knows who leads", "error", err)
			holder = ""
		}
		if holder == n.name && t != nil && !told {
			return t, asked, nil
		}
		n.set(holder, t)
		n.compare(ctx, t, holder)
		select {
		case <-ctx.Done():
			why = ctx.Err()
		case o := <-done:
			done, t, why = nil, o.t, o.err
		case <-tick.C:
		}
		if t != nil && why == nil {
			why = t.stopped()
			if err := t.damaged(); err != nil && !told {
				told = true
				n.log.Error("cluster: a realm is damaged: this node follows it no more, and does not lead", "node", n.name, "error", err)
			}
		}
	}
	give()
	if done != nil {
		t = (<-done).t
	}
	return t, held, why
}

// compare asks the leader how far it has come, for those who want to know how far this node is behind,
// and compares chains there. A realm whose chain differs stops, as at damage.
func (n *node) compare(ctx context.Context, t *tenure, leader string) {
	p, ok := n.f.hosts[leader]
	if t == nil || !ok || leader == n.name || !t.asking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer t.asking.Store(false)
		ctx, cancel := context.WithTimeout(ctx, 2*renewEvery)
		defer cancel()
		d := askNode(ctx, &http.Client{Transport: n.pass.transport}, leader, p)
		for _, r := range t.server.Realms() {
			position := d.Positions[r.Name()]
			if r.Await(ctx, position) != nil {
				continue // Stats says by how much it is behind
			}
			hash, err := hex.DecodeString(d.Chains[r.Name()])
			if err != nil || len(hash) != 32 {
				continue // an older build, or no answer
			}
			if err := r.Compare(leader, position, [32]byte(hash)); err != nil {
				n.log.Error("cluster: nodes differ", "node", n.name, "leader", leader, "realm", r.Name(), "error", err)
			}
		}
	}()
}

// ask asks for the lease, or only looks who has it. After a failure it looks first: the holder could
// not renew it either, and comes first.
func (n *node) ask(ctx context.Context, lease driver.Lease, look bool) (holder string, err error) {
	if look {
		holder, _, err = lease.Holder(ctx)
		return holder, err
	}
	holder, _, err = lease.Hold(ctx, n.name, leaseTTL)
	return holder, err
}

// lead takes over and serves, until ctx ends or another node has to; it returns why. The lease was
// asked for at held.
func (n *node) lead(ctx context.Context, lease driver.Lease, t *tenure, held time.Time) (why error) {
	n.set(n.name, t)
	taking, give := context.WithCancel(ctx)
	began, led := time.Now(), make(chan error, 1)
	go func() { led <- t.server.Lead(taking) }()
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	renew := func() {
		asked := time.Now()
		holds := false
		if holds, why = n.keep(ctx, lease, t); holds {
			held = asked
		}
	}
	for why == nil {
		select {
		case <-ctx.Done():
			why = ctx.Err()
		case why = <-led:
			if led = nil; why != nil {
				break
			}
			n.log.Info("cluster: this node leads", "node", n.name, "took", time.Since(began))
			t.leads.Store(true)
			if time.Since(held) > renewEvery { // during an election the lease is given late
				renew()
			}
		case <-tick.C:
			renew()
		}
		if t.leads.Load() {
			n.renewed(t, held)
		}
	}
	give()
	if led != nil {
		<-led
	}
	return why
}

// release gives the lease up: another node should not wait. After a failure, it gives that one the time to be
// first.
func (n *node) release(ctx context.Context, lease driver.Lease) {
	after, cancel := context.WithTimeout(context.Background(), leaseTTL)
	defer cancel()
	if err := lease.Release(after, n.name); err != nil {
		n.log.Warn("cluster: the lease is not released; it ends by itself", "error", err)
	}
	pause(ctx, 2*renewEvery)
}

// keep renews the lease, or says why this node cannot go on leading. Without an answer it does neither:
// the other nodes have none either, or this one is cut off from them, and answers nothing.
func (n *node) keep(ctx context.Context, lease driver.Lease, t *tenure) (holds bool, why error) {
	if err := t.stopped(); err != nil {
		return false, err
	}
	once, cancel := context.WithTimeout(ctx, leaseTTL)
	defer cancel()
	holder, _, err := lease.Hold(once, n.name, leaseTTL)
	switch {
	case err != nil:
		n.log.Warn("cluster: the lease is not renewed", "error", err)
		return false, nil
	case holder != n.name:
		return false, fmt.Errorf("node %q holds the lease", holder)
	}
	return true, nil
}

// opened is what opening came to.
type opened struct {
	t   *tenure
	err error
}

// opening opens the realms.
func (n *node) opening(ctx context.Context) <-chan opened {
	done := make(chan opened, 1)
	go func() {
		t, err := n.open(ctx)
		done <- opened{t, err}
	}()
	return done
}

// open opens the engine, which follows, and every realm of it. It gives up when ctx ends.
func (n *node) open(ctx context.Context) (*tenure, error) {
	d, err := n.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = d.Close() })() // ends every call of the driver
	o := n.engine
	o.Driver, o.Key, o.Follow = d, n.key.derive(n.f.name, "seeds"), true
	engine, err := kuji.Open("", o)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	so := n.server
	so.DrainDelay = 0 // the node waits before it steps down
	chronicles := newHistorian(n.history, n.data, n.log)
	srv, err := server.New(engine, chronicles.attach(so))
	if err == nil {
		err = noteOpened(engine, n.log)
	}
	if err != nil {
		return nil, errors.Join(err, chronicles.Close(), engine.Close())
	}
	t := &tenure{engine: engine, driver: d, server: srv, chronicles: chronicles, unwatch: srv.Watch()}
	t.until.Store(new(time.Time))
	return t, nil
}

// close closes the realms: calls under way are answered, epochs end. What takes too long is cut.
func (t *tenure) close() error {
	t.unwatch()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = t.driver.Close()
		}
	})()
	return errors.Join(t.server.Shutdown(ctx), t.chronicles.Close(), t.engine.Close())
}

// pause waits.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// startNATS starts the server that keeps this node's part of the log.
func (f *clusterFlags) startNATS(data string, key clusterKey, log *slog.Logger) (*embedded.Server, error) {
	o := embedded.Options{Dir: clusterDir(data), Cluster: f.name, Node: f.node, Secret: key.password(f.name), Logger: log}
	if len(f.hosts) > 1 {
		own := f.hosts[f.node]
		conf, err := key.tls(f.name, own.host)
		if err != nil {
			return nil, err
		}
		o.Listen, o.Advertise, o.TLS, o.Peers = f.own().log(), own.log(), conf, map[string]string{}
		for name, p := range f.hosts {
			o.Peers[name] = p.log()
		}
	}
	return embedded.Start(o)
}

// serveCluster is serve for a node of a cluster.
func (p *process) serveCluster(ctx context.Context, eo kuji.Options, so server.Options) (err error) {
	f, c := p.f, &p.f.cluster
	so.Failover = true
	key, err := p.readClusterKey(c.keyFile)
	if err != nil {
		return err
	}
	n := &node{name: c.node, f: c, key: key, engine: eo, server: so, history: f.history, data: f.data, log: so.Logger, view: view{changed: make(chan struct{})}, readers: make(chan struct{}, maxLogReaders)}
	var stop context.CancelFunc
	n.stopped, stop = context.WithCancel(context.Background())
	defer stop()
	conf, err := key.tls(c.name, c.hosts[c.node].host)
	if err != nil {
		return err
	}
	n.pass = newPasser(conf, so.Limits)
	if !c.nats.external() {
		if n.nats, err = c.startNATS(f.data, key, quieter(so.Logger)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.nats.Close()) }()
	}
	ends, err := n.listen(f.listen, conf)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	lives, leave := context.WithCancel(context.Background())
	defer running.Wait()
	defer leave()
	running.Go(func() { n.run(lives) })

	scheme, served := "http", make(chan error, len(ends)+1)
	running.Go(func() { n.watch(lives, served) })
	for _, e := range ends {
		go func() { served <- e.serve() }()
	}
	if so.TLS != nil {
		scheme = "https"
	}
	address := ends[0].listener.Addr().String()
	ready := readyJSON{"ready", scheme + "://" + address, address, "", os.Getpid(), f.data, kuji.SyncAlways.String(), p.pprof}
	p.life.serving(&ready)
	err = p.print(ready, func(w io.Writer) {
		fprintf(w, "kuji: node %s of cluster %s on %s\n", n.name, c.name, ready.URL)
		if p.pprof != "" {
			fprintf(w, "kuji: profiles on %s\n", p.pprof)
		}
	})
	if err == nil {
		err = p.untilStopped(ctx, served)
	}
	uncatch()
	stop()
	pause(context.Background(), so.DrainDelay)
	leave() // steps down: streams end, calls under way are answered
	running.Wait()
	down, cancel := context.WithTimeout(context.Background(), f.drainTimeout)
	defer cancel()
	for _, e := range ends {
		err = errors.Join(err, e.http.Shutdown(down), e.http.Close())
	}
	return err
}

// end is one of the two addresses at which a node takes requests.
type end struct {
	http     *http.Server
	listener net.Listener
}

func (e end) serve() error {
	if e.http.TLSConfig != nil {
		return e.http.ServeTLS(e.listener, "", "")
	}
	return e.http.Serve(e.listener)
}

// listen listens for clients and for the other nodes.
func (n *node) listen(address string, conf *tls.Config) ([]end, error) {
	limits := n.server.Limits
	clients, err := server.NewHTTP(http.HandlerFunc(n.serveClient), limits, n.server.TLS, n.log)
	if err != nil {
		return nil, usageError{err}
	}
	limits.Streams = maxPassed // another node's requests come on one connection
	peers, err := server.NewHTTP(http.HandlerFunc(n.servePeer), limits, conf, n.log)
	if err != nil {
		return nil, usageError{err}
	}
	own := n.f.own().requests()
	theirs, err := net.Listen(network(own), own)
	if err != nil {
		return nil, refusedError{fmt.Sprintf("address %s of node %s, for requests that other nodes pass on: %v; see --peers and --peer-listen", own, n.name, err)}
	}
	mine, err := net.Listen(network(address), address)
	if err != nil {
		return nil, errors.Join(listenError("listen", address, err), theirs.Close())
	}
	return []end{{clients, bounded(mine, cmp.Or(n.server.Limits.Connections, maxConnections))}, {peers, bounded(theirs, maxPeerConnections)}}, nil
}

// watch ends the node when it can keep no part of the log any more: others see that it is gone, and
// whoever started it can start it again.
func (n *node) watch(ctx context.Context, ended chan<- error) {
	for ctx.Err() == nil && n.nats != nil {
		if err := n.nats.Failed(); err != nil {
			ended <- fmt.Errorf("node %s: %w", n.name, err)
			return
		}
		pause(ctx, renewEvery)
	}
}

// quieter returns a logger that keeps NATS's notices to those who ask for them.
func quieter(log *slog.Logger) *slog.Logger { return slog.New(warnings{log.Handler()}) }

// warnings drops what is less than a warning.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}
