package main

import (
	"cmp"
	"context"
	"crypto/tls"
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

// node is one process of a cluster. One node leads all realms: the one that holds the lease. It
// opens the engine, which begins an epoch in every realm, and serves until another node holds the
// lease, or a realm says that another node writes it. What
// keeps two leaders from writing is the log; what keeps reads fresh is the lease.
//
//	stand by:  ask for the lease every second, until this node has it
//	take over: connect to the log, open every realm; renew the lease meanwhile
//	lead:      serve while the lease is fresh, renew it
//	step down: serve no more, close the engine, stand by
type node struct {
	name    string
	f       *clusterFlags
	key     clusterKey
	engine  kuji.Options
	server  server.Options
	log     *slog.Logger
	nats    *embedded.Server
	pass    *passer
	stopped context.Context // ends when the process is told to stop

	mu   sync.Mutex
	view view
}

// view is what a node knows of who leads.
type view struct {
	leader  string        // "": nobody, or nobody knows
	term    *tenure       // nil: this node does not lead, or has not opened the realms
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

// tenure is the time in which this node leads.
type tenure struct {
	engine  *kuji.Engine
	driver  *jetstream.Driver
	server  *server.Server
	unwatch func()

	// until is when another node may lead, unless this one renews the lease. Then others may have
	// written, so this node answers nothing: a read from it could be old.
	until atomic.Pointer[time.Time]
}

// holds reports whether no other node can have begun to lead.
func (t *tenure) holds() bool { return t != nil && time.Now().Before(*t.until.Load()) }

// connect connects to the embedded server.
func (n *node) connect(ctx context.Context) (*jetstream.Driver, error) {
	replicas := 3
	if len(n.f.hosts) == 1 {
		replicas = 1
	}
	o := jetstream.Options{Cluster: n.f.name, Replicas: replicas, Logger: n.log}
	o.Connect = append(o.Connect, n.nats.Connect())
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
	if err := n.nats.Ready(ctx); err != nil {
		return err
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
	failed := false
	for ctx.Err() == nil {
		asked := time.Now()
		holder, err := n.ask(ctx, lease, failed)
		if failed = err != nil; failed {
			n.log.Warn("cluster: nobody knows who leads", "error", err)
			holder = ""
		}
		if holder == n.name {
			n.lead(ctx, lease, asked)
			continue
		}
		n.set(holder, nil)
		pause(ctx, renewEvery)
	}
	return nil
}

// ask asks for the lease. Only after a failure does it first look who has it: the holder could not
// renew it either, and comes first.
func (n *node) ask(ctx context.Context, lease driver.Lease, failed bool) (holder string, err error) {
	if failed {
		holder, _, err = lease.Holder(ctx)
		return holder, err
	}
	holder, _, err = lease.Hold(ctx, n.name, leaseTTL)
	return holder, err
}

// lead takes over and serves, until ctx ends or another node has to. The lease was asked for at held.
func (n *node) lead(ctx context.Context, lease driver.Lease, held time.Time) {
	n.set(n.name, nil)
	opening, give := context.WithCancel(ctx)
	defer give()
	type opened struct {
		t   *tenure
		err error
	}
	done := make(chan opened, 1)
	go func() {
		t, err := n.open(opening)
		done <- opened{t, err}
	}()
	var t *tenure
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	why := error(nil)
	for why == nil {
		select {
		case <-ctx.Done():
			why = ctx.Err()
		case o := <-done:
			done = nil
			if why = o.err; why == nil {
				t = o.t
				n.renewed(t, held)
				n.set(n.name, t)
			}
		case <-tick.C:
			asked := time.Now()
			holds := false
			if holds, why = n.keep(ctx, lease, t); holds {
				held = asked
				if t != nil {
					n.renewed(t, held)
				}
			}
		}
	}
	n.log.Info("cluster: stepping down", "node", n.name, "why", why)
	n.set("", nil)
	give()
	if done != nil {
		t = (<-done).t
	}
	if t != nil {
		if err := t.close(); err != nil {
			n.log.Warn("cluster: a term did not end in order; the next one recovers", "error", err)
		}
	}
	// Another node should not wait. After a failure, give it the time to be first.
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
	if t != nil {
		for _, err := range t.server.Stopped() {
			if kuji.CodeOf(err) != kuji.CodeCorrupt { // another node would find the same damage
				return false, err
			}
		}
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

// open opens the engine, and every realm of it. It gives up when ctx ends.
func (n *node) open(ctx context.Context) (*tenure, error) {
	d, err := n.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = d.Close() })() // ends every call of the driver
	o := n.engine
	o.Driver, o.Key = d, n.key.derive(n.f.name, "seeds")
	engine, err := kuji.Open("", o)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	srv, err := server.New(engine, n.server)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	if err := noteOpened(engine, n.log); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	t := &tenure{engine: engine, driver: d, server: srv, unwatch: srv.Watch()}
	t.until.Store(new(time.Time))
	return t, nil
}

// close ends a term: calls under way are answered, epochs end. What takes too long is cut.
func (t *tenure) close() error {
	t.unwatch()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = t.driver.Close()
		}
	})()
	return errors.Join(t.server.Shutdown(ctx), t.engine.Close())
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
		o.Listen, o.TLS, o.Peers = own.log(), conf, map[string]string{}
		for name, p := range f.hosts {
			o.Peers[name] = p.log()
		}
	}
	return embedded.Start(o)
}

// serveCluster is serve for a node of a cluster.
func (p *process) serveCluster(ctx context.Context, eo kuji.Options, so server.Options) (err error) {
	f, c := p.f, &p.f.cluster
	key, err := p.readClusterKey(c.keyFile)
	if err != nil {
		return err
	}
	n := &node{name: c.node, f: c, key: key, engine: eo, server: so, log: so.Logger, view: view{changed: make(chan struct{})}}
	var stop context.CancelFunc
	n.stopped, stop = context.WithCancel(context.Background())
	defer stop()
	conf, err := key.tls(c.name, c.hosts[c.node].host)
	if err != nil {
		return err
	}
	n.pass = newPasser(conf, so.Limits)
	if n.nats, err = c.startNATS(f.data, key, quieter(so.Logger)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.nats.Close()) }()
	ends, err := n.listen(f.listen, conf)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	lives, leave := context.WithCancel(context.Background())
	defer running.Wait()
	defer leave()
	running.Go(func() { n.run(lives) })

	scheme, served := "http", make(chan error, len(ends))
	for _, e := range ends {
		go func() { served <- e.serve() }()
	}
	if so.TLS != nil {
		scheme = "https"
	}
	address := ends[0].listener.Addr().String()
	ready := readyJSON{"ready", scheme + "://" + address, address, os.Getpid(), f.data, kuji.SyncAlways.String(), p.pprof}
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
	own := n.f.hosts[n.name].requests()
	theirs, err := net.Listen(network(own), own)
	if err != nil {
		return nil, refusedError{fmt.Sprintf("--peers: address %s of node %s, for requests that other nodes pass on: %v", own, n.name, err)}
	}
	mine, err := net.Listen(network(address), address)
	if err != nil {
		return nil, errors.Join(listenError(address, err), theirs.Close())
	}
	return []end{{clients, bounded(mine, cmp.Or(n.server.Limits.Connections, maxConnections))}, {peers, bounded(theirs, maxPeerConnections)}}, nil
}

// quieter returns a logger that keeps NATS's notices to those who ask for them.
func quieter(log *slog.Logger) *slog.Logger { return slog.New(warnings{log.Handler()}) }

// warnings drops what is less than a warning.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}
