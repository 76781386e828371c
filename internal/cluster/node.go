package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/driver/jetstream"
	"github.com/kuji-dev/kuji/driver/jetstream/embedded"
	"github.com/kuji-dev/kuji/server"
)

// node is one process of a cluster. It has a seat at every realm: it leads those whose lease it holds, and
// follows the others: it carries out what their leaders log, and answers reads that may be stale. What keeps
// two leaders from writing is the log; what keeps reads fresh is the lease. Leases are on the board.
//
//	each second:  read the board, and write it with this node's beat, and what it leads and wants
//	a realm:      open it, follow; when the board says so, take it over, lead, step down, open it again
//	a request:    answer it if its realm is held here, or pass it on to who holds it
//
// A realm that leads no more, or whose log was trimmed before it was read, is closed and opened again,
// alone. One that met damage is followed no more, and never led.
type node struct {
	seating
	keys      clusterKeys
	engine    kuji.Options
	server    server.Options
	historian func(*slog.Logger) *historian // see serveFlags
	redis     net.Listener                  // for Redis clients; nil without --redis-listen
	served    chan error                    // gets what ends those who accept connections
	dir       string                        // of its data
	nats      *embedded.Server              // nil: the log is kept elsewhere, by --nats
	readers   chan struct{}                 // one for each who reads the log through this node
	stopped   context.Context               // ends when the process is told to stop
	over      context.Context               // ends when nobody needs to wait for a leader any more
}

// newNode returns a node that does nothing yet.
func newNode(name string, f *clusterFlags, keys clusterKeys, log *slog.Logger) *node {
	n := &node{keys: keys, readers: make(chan struct{}, maxLogReaders), served: make(chan error, 4)} // clients, nodes, Redis, watch
	n.name, n.f, n.log, n.wake, n.retired = name, f, log, make(chan struct{}, 1), func() {}
	n.here = realmsHere{seats: map[string]*seat{}, opening: make(chan struct{}, opensAtOnce), taking: make(chan struct{}, takesAtOnce)}
	n.wall = time.Now
	n.view = view{known: map[string]bool{server.DefaultRealm: true}, changed: make(chan struct{})}
	n.held.Store(&holding{})
	return n
}

// connect connects to what keeps the log.
func (n *node) connect(ctx context.Context) (*jetstream.Driver, error) {
	o := jetstream.Options{Cluster: n.f.name, Replicas: n.f.replicas(), Logger: n.log}
	if n.nats != nil {
		o.Connect = append(o.Connect, n.nats.Connect())
	} else {
		n.f.nats.lead(&o)
	}
	return jetstream.Connect(ctx, o)
}

// run takes part until ctx ends.
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
	o := n.engine
	o.Driver, o.Follow, o.FormatLevel = d, true, n.formatLevel
	o.Key, o.OldKeys = n.keys.seals(n.f.name)
	engine, err := kuji.Open("", o)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	chronicles := n.historian(n.log)
	so := chronicles.attach(n.server)
	so.Cluster = n
	so.DrainDelay = 0 // the node waits before it gives up what it leads
	srv, err := server.New(engine, so)
	if err != nil {
		return errors.Join(err, chronicles.Close(), engine.Close())
	}
	if n.redis != nil {
		go func() { n.served <- srv.ServeRedis(n.redis) }()
	}
	unwatch := srv.Watch()
	living, give := context.WithCancel(context.Background())
	defer give()
	n.mu.Lock()
	n.here.ctx, n.here.server, n.here.exists = living, srv, engine.Realms
	n.publish()
	n.mu.Unlock()
	n.sit(ctx, d)
	unwatch()
	give()
	return n.end(d, engine, chronicles)
}

// sit looks at the board every second, and when somebody asks for it, until ctx ends.
func (n *node) sit(ctx context.Context, d *jetstream.Driver) {
	w := newWatcher(n.name, rand.Text(), len(n.f.hosts))
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		n.round(ctx, w, d.Update)
		n.compare(ctx)
		n.widen(ctx, d)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-n.wake:
			pause(ctx, hurryEvery)
		}
	}
	gone, cancel := context.WithTimeout(context.Background(), leaseTTL)
	defer cancel()
	if err := d.Update(gone, func(old []byte) ([]byte, error) {
		b := readBoard(old)
		delete(b.Nodes, n.name)
		return b.data(), nil
	}); err != nil {
		n.log.Warn("cluster: the leases are not given up; they end by themselves", "node", n.name, "error", err)
	}
}

// end closes what join opened. What takes too long is cut.
func (n *node) end(d *jetstream.Driver, engine *kuji.Engine, chronicles *historian) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = d.Close()
		}
	})()
	err := errors.Join(chronicles.Close(), engine.Close())
	n.work.Wait()
	return err
}

// retire gives up all that this node leads, to others if there are any, while it goes on to pass requests on.
func (n *node) retire() {
	retired, done := context.WithTimeout(context.Background(), closeTimeout+leaseTTL)
	defer done()
	n.mu.Lock()
	joined, led := n.here.server, maps.Clone(n.held.Load().realms)
	n.here.retiring, n.retired = true, done
	n.mu.Unlock()
	if joined == nil {
		return
	}
	n.hurry()
	<-retired.Done()
	n.awaitLeaders(led)
	ending, cancel := context.WithTimeout(context.Background(), leaseTTL)
	defer cancel()
	if err := joined.Shutdown(ending); err != nil { // ends streams
		n.log.Warn("cluster: streams did not end in order", "node", n.name, "error", err)
	}
}

// awaitLeaders waits until other nodes lead realms, and answer about them. Until then they may need this
// node's part of the log, and requests that are here have nowhere to go.
func (n *seating) awaitLeaders(realms map[string]bool) {
	ctx, cancel := context.WithTimeout(context.Background(), handTime)
	defer cancel()
	client := &http.Client{Transport: n.pass.transport}
	for len(realms) > 0 && ctx.Err() == nil {
		v := n.look()
		if len(v.living) == 0 {
			return
		}
		for _, name := range v.living {
			for _, realm := range askNode(ctx, client, name, n.f.hosts[name]).Leads {
				delete(realms, realm)
			}
		}
		for realm, leader := range v.leaders {
			if _, known := n.f.hosts[leader]; !known {
				delete(realms, realm) // nobody told this node where that one is
			}
		}
		if len(realms) > 0 {
			n.again(ctx, v)
		}
	}
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
func (f *clusterFlags) startNATS(data string, keys clusterKeys, log *slog.Logger) (*embedded.Server, error) {
	if err := f.settle(data); err != nil {
		return nil, err
	}
	o := embedded.Options{Dir: clusterDir(data), Cluster: f.name, Node: f.node, Logger: log}
	passwords := keys.passwords(f.name)
	o.Secret, o.Accepted = passwords[0], passwords[1:]
	if len(f.hosts) > 1 {
		own := f.hosts[f.node]
		conf, err := keys.tls(f.name, own.host)
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
	keys, err := p.readClusterKeys(c.keyFile)
	if err != nil {
		return err
	}
	n := newNode(c.node, c, keys, so.Logger)
	n.engine, n.server, n.historian, n.dir = eo, so, f.historian, f.data
	if eo.Now != nil {
		n.wall = eo.Now
	}
	var stop, forget context.CancelFunc
	n.stopped, stop = context.WithCancel(context.Background())
	n.over, forget = context.WithCancel(context.Background())
	defer stop()
	defer forget()
	conf, err := keys.tls(c.name, c.hosts[c.node].host)
	if err != nil {
		return err
	}
	n.pass = newPasser(conf, so.Limits)
	if !c.nats.external() {
		if n.nats, err = c.startNATS(f.data, keys, quieter(so.Logger)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.nats.Close()) }()
	}
	ends, err := n.listen(f.listen, conf)
	if err != nil {
		return err
	}
	redis, err := n.listenRedis(f.redisListen)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	lives, leave := context.WithCancel(context.Background())
	defer running.Wait()
	defer leave()
	running.Go(func() { n.run(lives) })

	scheme, served := "http", n.served
	running.Go(func() { n.watch(lives, served) })
	for _, e := range ends {
		go func() { served <- e.serve() }()
	}
	if so.TLS != nil {
		scheme = "https"
	}
	address := ends[0].listener.Addr().String()
	ready := readyJSON{"ready", scheme + "://" + address, address, redis, os.Getpid(), f.data, kuji.SyncAlways.String(), p.pprof}
	p.life.serving(&ready)
	err = p.print(ready, func(w io.Writer) {
		fprintf(w, "kuji: node %s of cluster %s on %s\n", n.name, c.name, ready.URL)
		ready.printMore(w)
	})
	if err == nil {
		err = p.untilStopped(ctx, served)
	}
	uncatch()
	stop()
	pause(context.Background(), so.DrainDelay)
	if err == nil { // otherwise it can write nothing any more
		n.retire()
	}
	if len(n.look().living) == 0 {
		forget()
	}
	defer time.AfterFunc(handTime, forget).Stop()
	down, cancel := context.WithTimeout(context.Background(), f.drainTimeout)
	defer cancel()
	for _, e := range ends {
		err = errors.Join(err, e.http.Shutdown(down), e.http.Close())
	}
	leave()
	running.Wait()
	return err
}

// handTime is how long a node that stops waits for other nodes to lead what it led: first with its part of
// the log, and once more for requests that it has.
const handTime = 15 * time.Second

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

// listenRedis listens for Redis clients if there is an address for them, and returns that which they use.
// They are served as soon as the node has joined.
func (n *node) listenRedis(address string) (string, error) {
	if address == "" {
		return "", nil
	}
	l, err := listen("redis-listen", address)
	if err != nil {
		return "", err
	}
	n.redis = l
	return l.Addr().String(), nil
}

// watch ends the node when it can keep no part of the log any more: others see that it is gone, and
// whoever started it can start it again. Copies of streams that are damaged are made again.
func (n *node) watch(ctx context.Context, ended chan<- error) {
	said := ""
	for ctx.Err() == nil && n.nats != nil {
		healed, err := n.nats.Heal()
		if len(healed) > 0 {
			n.log.Warn("cluster: copies of streams were damaged: this node fetches them from the others", "node", n.name, "streams", healed)
		} else if err != nil && err.Error() != said {
			said = err.Error()
			n.log.Warn("cluster: a damaged copy", "node", n.name, "error", err)
		}
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
