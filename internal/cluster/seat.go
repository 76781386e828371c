package cluster

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/internal/election"
	"github.com/kuji-dev/kuji/server"
)

const (
	// closeTimeout bounds how long a realm may take to write what it began: without a majority that never ends.
	closeTimeout = 10 * time.Second
	// opensAtOnce and takesAtOnce are how many realms are opened and made to lead at a time.
	opensAtOnce, takesAtOnce = 4, 16
	// discoverEvery is how often a node asks which realms there are.
	discoverEvery = 5 * time.Second
	// hurryEvery is the least time between two looks at the board that somebody asked for.
	hurryEvery = 20 * time.Millisecond
	// lookPath is where a node asks another one to look at the board.
	lookPath = "/cluster/look"
)

// seating runs a node's part in the election: it opens, leads and closes realms, and shows who leads what.
type seating struct {
	conf    *Config
	waits   Waits
	address string // where the other nodes find this one
	log     *slog.Logger
	client  *Client
	clocks  clocks

	wake chan struct{} // a look at the board is asked for
	work sync.WaitGroup
	at   underWay
	view atomic.Pointer[view] // the newest

	mu    sync.Mutex
	core  *election.Node
	here  realmsHere
	board election.Board // the last one; empty if that look failed
	clock string         // why this node's clock keeps it from leading; "": it is good
}

// clocks are the clocks that a node goes by.
type clocks struct {
	now  func() time.Time // monotonic
	wall func() time.Time
}

// underWay says what a node does in the background, once at a time.
type underWay struct {
	finding  atomic.Bool // it asks which realms there are
	asking   atomic.Bool // it asks leaders how far they have come
	widening atomic.Bool // it looks for streams that are not on all nodes
}

// once does something in the background, unless it is under way.
func (n *seating) once(busy *atomic.Bool, do func()) {
	if busy.CompareAndSwap(false, true) {
		n.work.Go(func() {
			defer busy.Store(false)
			do()
		})
	}
}

// realmsHere are a node's realms, and what opens and closes them.
type realmsHere struct {
	ctx     context.Context // ends when the node gives up
	server  *server.Server
	log     Log
	open    map[string]*kuji.Realm
	opening chan struct{} // one for each realm that is being opened
	taking  chan struct{} // and one for each that is made to lead
	found   time.Time     // when the node last asked which realms there are
	exists  func() ([]string, error)
}

// view is what requests and realms need to know of the cluster. It never changes.
type view struct {
	serves  *server.Server    // nil: the node is not ready for requests
	leaders map[string]string // by realm
	living  []string          // nodes that can take realms, in order
	known   map[string]bool   // realms that exist, or are about to
	holding *election.Holding // what this node leads
	left    bool              // it stops, and has given up everything
	nodes   map[string]string // where nodes are, by the last board that could be read
	level   uint8             // the newest format level that every node on the board knows, by the last board that could be read
	changed chan struct{}     // closed when the next view is there
}

// look returns the view of now.
func (n *seating) look() *view { return n.view.Load() }

// nodes returns where nodes are, by name.
func (n *seating) nodes() map[string]string { return n.look().nodes }

// Holds implements [server.Cluster].
func (n *seating) Holds(realm string) bool { return n.look().holding.Holds(realm, n.clocks.now()) }

// round looks at the board once, and begins what follows from that.
func (n *seating) round(ctx context.Context, update func(context.Context, func([]byte) ([]byte, error)) error) {
	n.mu.Lock()
	n.tend()
	n.mu.Unlock()
	once, cancel := context.WithTimeout(ctx, n.waits.Lease)
	defer cancel()
	err := update(once, func(old []byte) ([]byte, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.core.Look(old, n.clocks.now(), n.clocks.wall()), nil
	})
	if err != nil && ctx.Err() == nil {
		n.log.Warn("cluster: nobody knows who leads", "node", n.conf.Node, "error", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := n.core.Looked(n.clocks.now(), err)
	n.board = n.core.Board()
	n.noteClock()
	n.carryOut()
	n.publish()
	v := n.look()
	if slices.ContainsFunc(slices.Collect(maps.Keys(v.leaders)), func(realm string) bool { return !v.known[realm] }) {
		n.discover()
	}
	if changed {
		n.poke()
	}
}

// tend begins what is due for each realm. Its caller holds mu.
func (n *seating) tend() {
	n.core.Tick(n.clocks.now(), func(realm string) election.Health {
		r := n.here.open[realm]
		h := election.Health{Err: r.Err(), Behind: r.Stats().Behind}
		if h.Damaged = kuji.CodeOf(h.Err) == kuji.CodeCorrupt; h.Damaged {
			n.damaged(realm, h.Err)
		}
		return h
	})
	n.carryOut()
	if n.clocks.now().Sub(n.here.found) >= discoverEvery {
		n.discover()
	}
}

func (n *seating) damaged(realm string, err error) {
	recall{n}.spread(realm, err)
	n.log.Error("cluster: a realm is damaged: this node follows it no more, and does not lead it", "node", n.conf.Node, "realm", realm, "error", err)
}

// carryOut begins what the election asks for. Its caller holds mu.
func (n *seating) carryOut() {
	todo := n.core.Todo()
	if len(todo) > 0 {
		n.publish() // requests about a realm that is closed go elsewhere from now on
	}
	for _, d := range todo {
		if d.Act == election.Close {
			n.log.Info("cluster: a realm is closed", "node", n.conf.Node, "realm", d.Realm, "led", d.Led, "why", d.Why)
		}
		n.work.Go(func() {
			began := time.Now()
			r, err := n.act(d)
			n.mu.Lock()
			defer n.mu.Unlock()
			out := outcomeOf(err)
			if !n.core.Done(d, n.clocks.now(), out, err) {
				return
			}
			n.note(d, out, err, time.Since(began))
			if n.here.open[d.Realm] = r; r == nil {
				delete(n.here.open, d.Realm)
			}
			n.carryOut() // a realm that cannot lead is closed
			n.publish()
			if d.Act != election.Lead {
				n.hurry()
			}
		})
	}
}

// act carries one act out. It returns the realm if that is open afterwards.
func (n *seating) act(d election.Do) (*kuji.Realm, error) {
	switch d.Act {
	case election.Open:
		n.here.opening <- struct{}{}
		defer func() { <-n.here.opening }()
		return n.here.server.Open(d.Realm)
	case election.Lead:
		n.here.taking <- struct{}{}
		defer func() { <-n.here.taking }()
		recall{n}.consult(n.here.ctx, d.Realm)
		return n.here.server.Lead(n.here.ctx, d.Realm)
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return nil, n.here.server.CloseRealm(ctx, d.Realm)
}

func outcomeOf(err error) election.Outcome {
	switch code := kuji.CodeOf(err); {
	case err == nil:
		return election.Fine
	case code == kuji.CodeNotFound:
		return election.Missing
	case code == kuji.CodeCorrupt:
		return election.Damaged
	}
	return election.Failed
}

// note logs how an act ended.
func (n *seating) note(d election.Do, out election.Outcome, err error, took time.Duration) {
	switch log := n.log.With("node", n.conf.Node, "realm", d.Realm); {
	case d.Act == election.Close && err != nil && d.Why == nil:
		log.Warn("cluster: a realm did not end in order; the next leader recovers", "error", err)
	case d.Act == election.Lead && err == nil:
		log.Info("cluster: this node leads", "took", took)
	case d.Act == election.Open && out == election.Damaged:
		n.damaged(d.Realm, err)
	case d.Act == election.Open && out == election.Failed:
		log.Warn("cluster: a realm cannot be opened yet", "error", err)
	}
}

// discover looks for realms that others have created. The caller holds mu.
func (n *seating) discover() {
	n.here.found = n.clocks.now()
	n.once(&n.at.finding, func() {
		names, err := n.here.exists()
		if err != nil {
			n.log.Warn("cluster: nobody says which realms there are", "node", n.conf.Node, "error", err)
			return
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.core.Find(names...)
		n.hurry()
	})
}

// publish shows requests who leads what. The caller holds mu.
func (n *seating) publish() {
	was := n.look()
	v := &view{
		serves: n.here.server, leaders: n.board.Leaders(), living: n.board.Living(), known: map[string]bool{server.DefaultRealm: true},
		holding: n.core.Holding(), left: n.core.Left(), nodes: was.nodes, level: was.level, changed: make(chan struct{}),
	}
	for _, s := range n.core.Seats() {
		v.known[s.Realm] = true
	}
	if len(n.board.Nodes) > 0 {
		v.nodes = n.conf.peers()
		addAddresses(v.nodes, n.board)
		v.level = n.board.Level(kuji.FormatLevel())
	}
	for realm, leader := range v.leaders {
		if was := was.leaders[realm]; was != leader {
			n.log.Info("cluster: the leader of a realm changes", "node", n.conf.Node, "realm", realm, "leader", leader, "was", was)
		}
	}
	n.view.Store(v)
	close(was.changed)
}

// noteClock notes whether this node's clock is off, and logs it. Its caller holds mu.
func (n *seating) noteClock() {
	was := n.clock
	n.clock = ""
	if ahead, off := n.core.ClockOff(); off {
		way := "ahead of"
		if ahead < 0 {
			way = "behind"
		}
		n.clock = fmt.Sprintf("its clock is about %v %s the other nodes': it leads no realm until that is less than %v",
			ahead.Abs().Round(time.Second), way, election.MaxApart/2)
	}
	switch {
	case was == "" && n.clock != "":
		n.log.Error("cluster: this node's clock is off, so it leads nothing: set it", "node", n.conf.Node, "why", n.clock)
	case was != "" && n.clock == "":
		n.log.Info("cluster: this node's clock is good again", "node", n.conf.Node)
	}
}

// hurry asks for a look at the board at once.
func (n *seating) hurry() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// poke makes the other nodes look at the board: this one has taken realms, or given some up.
func (n *seating) poke() {
	for name := range n.nodes() {
		if name == n.conf.Node {
			continue
		}
		n.work.Go(func() {
			ctx, cancel := context.WithTimeout(n.here.ctx, election.RenewEvery)
			defer cancel()
			if resp, err := n.client.send(ctx, http.MethodPost, name, lookPath, nil); err == nil {
				_ = resp.Body.Close() // if it was not reached, it looks by itself within a second
			}
		})
	}
}

// compare asks each leader how far its realms are, and compares chains there. A different chain is damage.
func (n *seating) compare(ctx context.Context) {
	leads := map[string][]string{}
	v := n.look()
	for realm, leader := range v.leaders {
		if _, ok := v.nodes[leader]; ok && leader != n.conf.Node {
			leads[leader] = append(leads[leader], realm)
		}
	}
	if len(leads) == 0 {
		return
	}
	n.once(&n.at.asking, func() {
		ctx, cancel := context.WithTimeout(ctx, 2*election.RenewEvery)
		defer cancel()
		for leader, realms := range leads {
			said := n.client.Ask(ctx, leader)
			for _, realm := range realms {
				n.compareRealm(ctx, realm, &said)
			}
		}
	})
}

// compareRealm compares a realm that follows with what its leader says of it.
func (n *seating) compareRealm(ctx context.Context, realm string, leader *Status) {
	n.mu.Lock()
	r := n.here.open[realm]
	n.mu.Unlock()
	position := leader.Positions[realm]
	if r == nil || r.Replica().Leads() || r.Replica().Await(ctx, position) != nil {
		return // Stats says by how much it is behind
	}
	hash, err := hex.DecodeString(leader.Chains[realm])
	if err != nil || len(hash) != 32 {
		return // it has moved on, or gave no answer
	}
	if err := r.Replica().Compare(leader.Node, position, [32]byte(hash)); err != nil {
		n.log.Error("cluster: nodes differ", "node", n.conf.Node, "leader", leader.Node, "realm", realm, "error", err)
	}
}

// Created implements [server.Cluster]: the node takes a seat at a realm that was created here.
func (n *seating) Created(realm string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.look().known[realm] {
		n.core.Find(realm)
		n.publish()
		n.hurry()
	}
}
