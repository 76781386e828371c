package cli

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kuji-dev/kuji"
	"github.com/kuji-dev/kuji/server"
)

// seatState is what a node does about a realm.
type seatState int

const (
	seatClosed  seatState = iota // it is to be opened
	seatAbsent                   // it does not exist yet
	seatOpens                    // it is being opened
	seatFollows                  // it follows
	seatTakes                    // it is being taken over
	seatLeads                    // it leads
	seatLeaves                   // it is being closed, to follow again
	seatDamaged                  // it met damage: it is never opened again, and never leads
)

const (
	// closeTimeout bounds how long a realm that is closed may take to write what it began. Without a
	// majority of nodes that never happens.
	closeTimeout = 10 * time.Second
	// opensAtOnce and takesAtOnce are how many realms are opened and taken over at a time.
	opensAtOnce, takesAtOnce = 4, 16
	// longestRest is the most that a realm which could not be taken over is left to others.
	longestRest = 5 * time.Minute
	// closeEnough is how many positions behind its leader a realm may be that could take over.
	closeEnough = 100
	// discoverEvery is the time between two looks at which realms there are.
	discoverEvery = 5 * time.Second
	// hurryEvery is the least time between two looks at the board that somebody asked for.
	hurryEvery = 20 * time.Millisecond
)

// seat is a node's place at one realm. The node's mu guards it.
type seat struct {
	realm string
	state seatState
	open  *kuji.Realm // nil: it is not
	held  bool        // the board says that this node leads the realm
	turn  int         // counts what was begun: an older one's end changes nothing
	rest  time.Time   // it is not taken over before
	again time.Time   // it is not opened before
	fails int         // to take it over, one after another
	why   error       // it does not follow
}

// ready reports whether the realm could be taken over now.
func (s *seat) ready(now time.Time) bool {
	return (s.state == seatFollows || s.state == seatAbsent) && !now.Before(s.rest)
}

// seating is a node's seats at all realms, and what it knows of who leads them.
type seating struct {
	name string
	f    *clusterFlags
	log  *slog.Logger
	pass *passer

	wake     chan struct{} // a look at the board is asked for
	work     sync.WaitGroup
	asking   atomic.Bool // it asks leaders how far they have come
	widening atomic.Bool // it has looked for streams that are not on all nodes
	retired  func()      // called when it leads nothing any more, and the board says so
	held     atomic.Pointer[holding]
	wall     func() time.Time // the wall clock
	level    atomic.Uint32    // see formatLevel

	mu    sync.Mutex
	here  realmsHere
	board board     // the last one; none if that failed
	until time.Time // other nodes take what it leads no sooner, if it says nothing more
	view  view
	drain bool   // somebody has asked it to lead nothing
	clock string // why this node leads nothing, as clockText says it; "": its clock is good
}

// realmsHere are a node's realms, and what opens and closes them.
type realmsHere struct {
	ctx      context.Context // ends when the node gives up
	server   *server.Server
	seats    map[string]*seat
	opening  chan struct{} // one for each realm that is being opened
	taking   chan struct{} // and taken over
	finding  atomic.Bool   // which realms there are is being asked
	found    time.Time     // when that was asked last
	exists   func() ([]string, error)
	retiring bool // the node leads nothing any more
}

// view is what requests need to know of the cluster.
type view struct {
	serves  *server.Server    // nil: the node is not ready for requests
	leaders map[string]string // by realm
	living  []string          // nodes that can take realms, ascending
	known   map[string]bool   // realms that exist, or are about to
	changed chan struct{}     // closed when the next view is there
}

// holding is what this node leads, and until when no other node can.
type holding struct {
	realms map[string]bool
	until  time.Time
}

// look returns the view of now.
func (n *seating) look() view {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view
}

// Holds implements [server.Cluster].
func (n *seating) Holds(realm string) bool {
	h := n.held.Load()
	return h.realms[realm] && time.Now().Before(h.until)
}

// tend begins what is to be done about each realm. The caller holds mu.
func (n *seating) tend(now time.Time) {
	for _, s := range n.here.seats {
		switch s.state {
		case seatClosed:
			if !n.here.retiring && !now.Before(s.again) {
				n.openSeat(s)
			}
		case seatFollows, seatLeads:
			err := s.open.Err()
			switch {
			case err != nil && kuji.CodeOf(err) == kuji.CodeCorrupt:
				n.damaged(s, err)
			case err != nil:
				n.leaveSeat(s, err)
			case n.here.retiring:
				n.leaveSeat(s, nil)
			}
		}
	}
	if now.Sub(n.here.found) >= discoverEvery {
		n.discover(now)
	}
}

// damaged gives a realm up for ever. Opened again, it would meet the damage again.
func (n *seating) damaged(s *seat, err error) {
	s.state, s.held, s.why = seatDamaged, false, err
	n.log.Error("cluster: a realm is damaged: this node follows it no more, and does not lead it", "node", n.name, "realm", s.realm, "error", err)
}

// discover looks for realms that others have created. The caller holds mu.
func (n *seating) discover(now time.Time) {
	if n.here.retiring || !n.here.finding.CompareAndSwap(false, true) {
		return
	}
	n.here.found = now
	n.work.Go(func() {
		defer n.here.finding.Store(false)
		names, err := n.here.exists()
		if err != nil {
			n.log.Warn("cluster: nobody says which realms there are", "node", n.name, "error", err)
			return
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, name := range append(names, server.DefaultRealm) {
			switch s := n.here.seats[name]; {
			case s == nil:
				n.here.seats[name] = &seat{realm: name}
			case s.state == seatAbsent && slices.Contains(names, name):
				s.state = seatClosed
			}
		}
		n.hurry()
	})
}

// openSeat opens a realm, to follow. The caller holds mu.
func (n *seating) openSeat(s *seat) {
	s.state, s.turn = seatOpens, s.turn+1
	turn := s.turn
	n.work.Go(func() {
		n.here.opening <- struct{}{}
		r, err := n.here.server.Open(s.realm)
		<-n.here.opening
		n.mu.Lock()
		defer n.mu.Unlock()
		if s.turn != turn {
			return
		}
		switch code := kuji.CodeOf(err); {
		case err == nil:
			s.state, s.open, s.why = seatFollows, r, nil
		case code == kuji.CodeNotFound && s.realm == server.DefaultRealm:
			s.state, s.open = seatAbsent, nil
		case code == kuji.CodeNotFound:
			delete(n.here.seats, s.realm)
		case code == kuji.CodeCorrupt:
			n.damaged(s, err)
		default:
			s.state, s.open, s.why, s.again = seatClosed, nil, err, time.Now().Add(renewEvery)
			n.log.Warn("cluster: a realm cannot be opened yet", "node", n.name, "realm", s.realm, "error", err)
		}
		n.publish()
		n.hurry()
	})
}

// takeSeat makes a realm lead. The caller holds mu.
func (n *seating) takeSeat(s *seat) {
	s.state, s.turn = seatTakes, s.turn+1
	turn, began := s.turn, time.Now()
	n.work.Go(func() {
		n.here.taking <- struct{}{}
		r, err := n.here.server.Lead(n.here.ctx, s.realm)
		<-n.here.taking
		n.mu.Lock()
		defer n.mu.Unlock()
		if s.turn != turn {
			return
		}
		if err != nil {
			n.leaveSeat(s, err)
			return
		}
		n.log.Info("cluster: this node leads", "node", n.name, "realm", s.realm, "took", time.Since(began))
		s.state, s.open, s.fails = seatLeads, r, 0
		n.publish()
	})
}

// leaveSeat makes a realm follow again: it answers what it accepted, ends its epoch, is closed and opened.
// Why is nil if another node is to lead it. The caller holds mu.
func (n *seating) leaveSeat(s *seat, why error) {
	n.log.Info("cluster: a realm is closed", "node", n.name, "realm", s.realm, "led", s.state == seatLeads, "why", why)
	if why != nil && s.state != seatFollows {
		s.fails++
		s.rest = time.Now().Add(min(leaseTTL<<min(s.fails-1, 10), longestRest))
	}
	s.state, s.turn, s.why = seatLeaves, s.turn+1, why
	n.publish() // requests go elsewhere from now on
	n.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := n.here.server.CloseRealm(ctx, s.realm); err != nil && why == nil {
			n.log.Warn("cluster: a realm did not end in order; the next leader recovers", "node", n.name, "realm", s.realm, "error", err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		s.state, s.open, s.held = seatClosed, nil, false
		n.hurry()
	})
}

// bearings says what this node is to each realm. The caller holds mu.
func (n *seating) bearings(now time.Time) map[string]bearing {
	all := make(map[string]bearing, len(n.here.seats))
	for name, s := range n.here.seats {
		b := bearing{held: s.held, leads: s.state == seatLeads, ready: s.ready(now)}
		if s.state == seatFollows {
			b.close = s.open.Stats().Behind <= closeEnough
		}
		all[name] = b
	}
	return all
}

// round looks at the board once, and does what follows from it.
func (n *seating) round(ctx context.Context, w *watcher, update func(context.Context, func([]byte) ([]byte, error)) error) {
	n.mu.Lock()
	now := time.Now()
	n.tend(now)
	bearings, retiring, drained := n.bearings(now), n.here.retiring, n.drain
	n.mu.Unlock()

	once, cancel := context.WithTimeout(ctx, leaseTTL)
	defer cancel()
	var v verdict
	var asked time.Time
	err := update(once, func(old []byte) ([]byte, error) {
		asked = time.Now() // the others count from when they see what is written, which is later
		w.drained = drained
		v = w.look(readBoard(old), bearings, retiring, asked, n.wall())
		return v.board.data(), nil
	})
	w.blind = err != nil

	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			n.log.Warn("cluster: nobody knows who leads", "node", n.name, "error", err)
		}
		n.board = board{}
		n.publish()
		n.mayRetire(retiring)
		return
	}
	n.board, n.until = v.board, asked.Add(leaseTTL)
	n.noteClock(&w.clocks)
	for _, realm := range v.lost {
		s := n.here.seats[realm]
		s.held = false
		if s.state == seatTakes || s.state == seatLeads {
			n.leaveSeat(s, errors.New("this node was silent for too long, and lost its lease"))
		}
	}
	for _, realm := range v.taken {
		if s := n.here.seats[realm]; s != nil && s.ready(now) {
			s.held = true
			n.takeSeat(s)
		}
	}
	for _, realm := range v.handing {
		if s := n.here.seats[realm]; s.state == seatLeads {
			n.leaveSeat(s, nil)
		}
	}
	for realm := range v.board.leaders() {
		if n.here.seats[realm] == nil {
			n.discover(now)
		}
	}
	n.publish()
	n.mayRetire(retiring)
	if v.changed {
		n.poke()
	}
}

// mayRetire ends the waiting of a node that gives all up. The caller holds mu.
func (n *seating) mayRetire(retiring bool) {
	for _, s := range n.here.seats {
		retiring = retiring && !s.busy()
	}
	if retiring {
		n.retired()
	}
}

// busy reports whether the node has something of the realm that it must give back.
func (s *seat) busy() bool {
	return s.held || s.state != seatClosed && s.state != seatAbsent && s.state != seatDamaged
}

// publish shows requests who leads what. The caller holds mu.
func (n *seating) publish() {
	v := view{serves: n.here.server, leaders: n.board.leaders(), living: n.board.living(), known: map[string]bool{server.DefaultRealm: true}, changed: make(chan struct{})}
	h := &holding{realms: map[string]bool{}, until: n.until}
	for name, s := range n.here.seats {
		v.known[name] = true
		if s.held && s.state == seatLeads {
			h.realms[name] = true
		}
	}
	n.held.Store(h)
	if len(n.board.Nodes) > 0 {
		n.level.Store(uint32(n.board.level()))
	}
	for realm, leader := range v.leaders {
		if was := n.view.leaders[realm]; was != leader {
			n.log.Info("cluster: the leader of a realm changes", "node", n.name, "realm", realm, "leader", leader, "was", was)
		}
	}
	close(n.view.changed)
	n.view = v
}

// formatLevel returns the newest format level that all nodes know which are there, by the last board that
// could be read. It takes no lock: realms ask under their own.
func (n *seating) formatLevel() uint8 { return uint8(n.level.Load()) }

// hurry asks for a look at the board at once.
func (n *seating) hurry() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// poke makes the other nodes look at the board: this one has taken realms, or given some up.
func (n *seating) poke() {
	for name, p := range n.f.hosts {
		if name == n.name {
			continue
		}
		n.work.Go(func() {
			ctx, cancel := context.WithTimeout(n.here.ctx, renewEvery)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+p.requests()+lookPath, http.NoBody)
			if err != nil {
				return // as in askNode
			}
			if resp, err := n.pass.transport.RoundTrip(req); err == nil {
				_ = resp.Body.Close() // it looks by itself within a second
			}
		})
	}
}

// compare asks each leader how far its realms have come, for those who want to know how far this node is
// behind, and compares chains there. A realm whose chain differs stops, as at damage.
func (n *seating) compare(ctx context.Context) {
	leads := map[string][]string{}
	for realm, leader := range n.look().leaders {
		if _, ok := n.f.hosts[leader]; ok && leader != n.name {
			leads[leader] = append(leads[leader], realm)
		}
	}
	if len(leads) == 0 || !n.asking.CompareAndSwap(false, true) {
		return
	}
	n.work.Go(func() {
		defer n.asking.Store(false)
		ctx, cancel := context.WithTimeout(ctx, 2*renewEvery)
		defer cancel()
		for leader, realms := range leads {
			d := askNode(ctx, &http.Client{Transport: n.pass.transport}, leader, n.f.hosts[leader])
			for _, realm := range realms {
				n.compareRealm(ctx, realm, leader, d)
			}
		}
	})
}

// compareRealm compares a realm that follows with what its leader says of it.
func (n *seating) compareRealm(ctx context.Context, realm, leader string, said nodeJSON) {
	n.mu.Lock()
	var r *kuji.Realm
	if s := n.here.seats[realm]; s != nil && s.state == seatFollows {
		r = s.open
	}
	n.mu.Unlock()
	position := said.Positions[realm]
	if r == nil || r.Await(ctx, position) != nil {
		return // Stats says by how much it is behind
	}
	hash, err := hex.DecodeString(said.Chains[realm])
	if err != nil || len(hash) != 32 {
		return // it moved on meanwhile, or gave no answer
	}
	if err := r.Compare(leader, position, [32]byte(hash)); err != nil {
		n.log.Error("cluster: nodes differ", "node", n.name, "leader", leader, "realm", realm, "error", err)
	}
}

// whyNot returns whether a realm is not open here yet, and what is wrong with the others.
func (n *seating) whyNot() (opens string, damaged error) {
	var found []error
	for _, name := range slices.Sorted(maps.Keys(n.here.seats)) {
		switch s := n.here.seats[name]; s.state {
		case seatDamaged:
			found = append(found, fmt.Errorf("realm %s: %w", name, s.why))
		case seatClosed, seatOpens, seatLeaves:
			opens = cmp.Or(opens, "it opens realm "+name)
		}
	}
	return opens, errors.Join(found...)
}
