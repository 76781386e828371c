package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver"
	"github.com/kuji-dev/kuji/internal/election"
	"github.com/kuji-dev/kuji/internal/step"
	"github.com/kuji-dev/kuji/server"
)

// Options are what a node is made of.
type Options struct {
	Config
	Data         string // its directory
	Engine       kuji.Options
	Server       server.Options
	History      func(*slog.Logger) History // begins to keep histories; nil: the node keeps none
	Log          *slog.Logger
	DrainTimeout time.Duration // how long calls in flight may take when the node stops
	// Clients, Nodes and Redis listen for clients, for other nodes and, if not nil, for Redis clients.
	Clients, Nodes, Redis func() (net.Listener, error)
}

// History keeps the histories of realms until it is closed.
type History interface {
	server.History
	Close() error
}

// Node is one process of a cluster. It leads the realms whose lease it holds, and follows the others: it
// carries out what their leaders log, and answers reads that may be stale. A request goes to the node that
// leads its realm.
//
// Each second it reads the board and writes its beat there, and what it leads and wants. A realm that no
// longer leads, or whose log was trimmed before it was read, is closed and opened again. A damaged one is
// neither followed nor led.
type Node struct {
	// Address is where clients find the node, and Redis where Redis clients do.
	Address, Redis string

	passer
	o       Options
	backend backend            // what keeps the log
	readers chan struct{}      // one for each who reads the log through this node
	servers []*http.Server     // for other nodes and for clients
	redis   net.Listener       // nil without Options.Redis
	ended   chan error         // gets what ends one of those who accept connections
	leave   context.CancelFunc // ends its part in the cluster; nil: it has not begun
	running sync.WaitGroup
}

// newNode returns a node that does nothing yet. The others find it at an address, as HOST:PORT.
func newNode(o Options, address string) (n *Node, err error) {
	n = &Node{
		o: o, readers: make(chan struct{}, maxLogReaders), ended: make(chan error, 4), // clients, nodes, Redis, watch
	}
	n.places = make(chan struct{}, cmp.Or(o.Server.Limits.InFlight, maxPassed))
	n.stopped, n.stop = context.WithCancel(context.Background())
	n.over, n.forget = context.WithCancel(context.Background())
	n.conf, n.log, n.wake = &n.o.Config, o.Log, make(chan struct{}, 1)
	n.waits, n.address = o.waits(), address
	n.clocks.now, n.clocks.wall = time.Now, time.Now
	if o.Engine.Now != nil {
		n.clocks.wall = o.Engine.Now
	}
	n.core = election.New(election.Config{
		Node: o.Node, Life: rand.Text(), Nodes: len(o.Peers), Level: kuji.FormatLevel(), Default: server.DefaultRealm,
		Address: address, TTL: n.waits.Lease,
	})
	n.here = realmsHere{open: map[string]*kuji.Realm{}, opening: make(chan struct{}, opensAtOnce), taking: make(chan struct{}, takesAtOnce)}
	n.view.Store(&view{nodes: n.conf.peers(), changed: make(chan struct{})})
	n.publish()
	n.client, err = n.conf.client(address, n.nodes)
	return n, err
}

// run takes part until ctx ends.
func (n *Node) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := n.join(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("cluster: not joined yet; trying again", "error", err)
			step.Pause(ctx, election.RenewEvery)
		}
	}
}

// join takes part until ctx ends, or fails before it could begin.
func (n *Node) join(ctx context.Context) (err error) {
	if err := n.backend.ready(ctx); err != nil {
		return err
	}
	d, err := n.backend.connect(ctx, n.log)
	if err != nil {
		return err
	}
	o := n.o.Engine
	o.Driver, o.Follow, o.FormatLevel = d, true, func() uint8 { return n.look().level }
	o.Key, o.OldKeys = n.conf.Seals()
	engine, err := kuji.Open("", o)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	so, endHistory := n.o.Server, func() error { return nil }
	if n.o.History != nil {
		history := n.o.History(n.log)
		so.History, endHistory = history, history.Close
	}
	so.Cluster = n
	so.DrainDelay = 0 // the node waits before it gives up what it leads
	srv, err := server.New(engine, so)
	if err != nil {
		return errors.Join(err, endHistory(), engine.Close())
	}
	if n.redis != nil {
		go func() { n.ended <- srv.ServeRedis(n.redis) }()
	}
	unwatch := srv.Watch()
	living, give := context.WithCancel(context.Background())
	defer give()
	n.mu.Lock()
	n.here.ctx, n.here.server, n.here.log, n.here.exists = living, srv, d, engine.Realms
	n.publish()
	n.mu.Unlock()
	if told, ok := d.(driver.Nudged); ok {
		n.work.Go(func() { recall{&n.seating}.nudge(living, told) })
	}
	n.sit(ctx, d)
	unwatch()
	give()

	closing, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	defer context.AfterFunc(closing, func() {
		if errors.Is(closing.Err(), context.DeadlineExceeded) {
			_ = d.Close() // what takes too long is cut
		}
	})()
	err = errors.Join(endHistory(), engine.Close())
	n.work.Wait()
	return err
}

// sit looks at the board every second, and when somebody asks for it, until ctx ends.
func (n *Node) sit(ctx context.Context, d Log) {
	tick := time.NewTicker(election.RenewEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		n.round(ctx, d.Update)
		n.compare(ctx)
		if h, ok := n.backend.(host); ok {
			h.tend(ctx, d, n)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-n.wake:
			step.Pause(ctx, hurryEvery)
		}
	}
	gone, cancel := context.WithTimeout(context.Background(), n.waits.Lease)
	defer cancel()
	if err := d.Update(gone, func(old []byte) ([]byte, error) { return n.core.Leave(old), nil }); err != nil {
		n.log.Warn("cluster: the leases are not given up; they end by themselves", "node", n.conf.Node, "error", err)
	}
}

// retire gives up all that this node leads, to others if there are any. Meanwhile it passes requests on.
func (n *Node) retire() {
	n.mu.Lock()
	joined, led := n.here.server, map[string]bool{}
	for _, realm := range n.look().holding.Realms() {
		led[realm] = true
	}
	n.core.Stop()
	n.mu.Unlock()
	if joined == nil {
		return
	}
	n.hurry()
	leaving, cancel := context.WithTimeout(context.Background(), closeTimeout+n.waits.Lease)
	defer cancel()
	n.await(leaving, func(v *view) bool { return v.left })
	n.awaitLeaders(led)
	ending, cancel := context.WithTimeout(context.Background(), n.waits.Lease)
	defer cancel()
	if err := joined.Shutdown(ending); err != nil { // ends streams
		n.log.Warn("cluster: streams did not end in order", "node", n.conf.Node, "error", err)
	}
}

// handTime is how long a node that stops waits for other nodes to lead what it led: first with its part of
// the log, and once more for requests that it has.
const handTime = 15 * time.Second

// awaitLeaders waits until other nodes lead realms and answer: until then they may need this node's log.
func (n *Node) awaitLeaders(realms map[string]bool) {
	ctx, cancel := context.WithTimeout(context.Background(), handTime)
	defer cancel()
	for len(realms) > 0 && ctx.Err() == nil {
		v := n.look()
		if len(v.living) == 0 {
			return
		}
		for _, name := range v.living {
			for _, realm := range n.client.Ask(ctx, name).Leads {
				delete(realms, realm)
			}
		}
		for realm, leader := range v.leaders {
			if _, known := n.nodes()[leader]; !known {
				delete(realms, realm) // nobody told this node where that one is
			}
		}
		if len(realms) > 0 {
			n.again(ctx, v)
		}
	}
}

// Start starts a node. It listens, and joins the others in the background.
func Start(o Options) (_ *Node, err error) {
	nodes, err := o.Nodes()
	if err != nil {
		return nil, err
	}
	o.Node = cmp.Or(o.Node, nameOf(nodes.Addr()))
	address := o.settleAddress(nodes.Addr())
	n, err := newNode(o, address)
	if err == nil {
		n.backend, err = n.conf.start(o.Data, o.Log)
	}
	if err != nil {
		return nil, errors.Join(err, nodes.Close())
	}
	if err := n.listen(nodes); err != nil {
		return nil, errors.Join(err, n.close(context.Background()))
	}
	lives, leave := context.WithCancel(context.Background())
	n.leave = leave
	n.running.Go(func() { n.run(lives) })
	n.running.Go(func() { n.watch(lives) })
	return n, nil
}

// Name returns the node's name.
func (n *Node) Name() string { return n.conf.Node }

// listen listens for nodes, clients and Redis clients. It serves the last as soon as the node has joined.
func (n *Node) listen(nodes net.Listener) error {
	conf, err := n.conf.tls(n.address)
	if err != nil {
		return err
	}
	limits, passed := n.o.Server.Limits, n.o.Server.Limits
	passed.Streams = maxPassed // another node's requests come on one connection
	for _, e := range []struct {
		listen func() (net.Listener, error)
		most   int64 // connections
		serve  http.HandlerFunc
		limits server.Limits
		tls    *tls.Config
	}{
		{func() (net.Listener, error) { return nodes, nil }, maxPeerConnections, n.servePeer, passed, conf},
		{n.o.Clients, int64(cmp.Or(limits.Connections, maxConnections)), n.serveClient, limits, n.o.Server.TLS},
	} {
		h, err := server.NewHTTP(e.serve, e.limits, e.tls, n.log)
		if err != nil {
			return err
		}
		l, err := e.listen()
		if err != nil {
			return err
		}
		bound(h, e.most)
		n.servers, n.Address = append(n.servers, h), l.Addr().String()
		serve := func() error { return h.Serve(l) }
		if e.tls != nil {
			serve = func() error { return h.ServeTLS(l, "", "") }
		}
		go func() { n.ended <- serve() }()
	}
	if n.o.Redis == nil {
		return nil
	}
	if n.redis, err = n.o.Redis(); err == nil {
		n.Redis = n.redis.Addr().String()
	}
	return err
}

// close ends what listens, and the log.
func (n *Node) close(down context.Context) (err error) {
	for _, h := range n.servers {
		err = errors.Join(err, h.Shutdown(down), h.Close())
	}
	if n.leave != nil {
		n.leave()
	}
	n.running.Wait()
	return errors.Join(err, n.backend.stop())
}

// bound closes the connections that a server gets above a limit.
func bound(s *http.Server, most int64) {
	var open atomic.Int64
	s.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > most {
				_ = c.Close() // there is nobody to tell
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}

// Ended gets an error when the node cannot go on.
func (n *Node) Ended() <-chan error { return n.ended }

// Stop ends the node. In order, it first gives up what it leads, and waits for others to lead it.
func (n *Node) Stop(inOrder bool) (err error) {
	n.stop()
	step.Pause(context.Background(), n.o.Server.DrainDelay)
	if inOrder { // otherwise it can write nothing any more
		n.retire()
	}
	if len(n.look().living) == 0 {
		n.forget()
	}
	defer n.forget()
	defer time.AfterFunc(handTime, n.forget).Stop()
	down, cancel := context.WithTimeout(context.Background(), n.o.DrainTimeout)
	defer cancel()
	return n.close(down)
}
