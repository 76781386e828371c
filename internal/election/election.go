// Package election decides which node of a cluster leads which realm: see decideToLead in watch.go.
// docs/internals/decisions/0010-a-leader-for-each-realm.md says why it works in this way.
//
// The package is a pure core. A [Node] hears what its node sees and how its work ends, always with the
// time. It answers with what to write on the board, and what to do about each realm:
//
//	each second          Tick; read the board; Look; write what it returns; Looked
//	when a [Do] has ended  Done
//	after each of these  carry out what Todo returns
//
// The package has no goroutines, timers, locks or I/O, and imports nothing of the project. Package
// cluster runs it with real clocks, NATS and realms; internal/sim runs whole clusters of it.
//
// A lease does not keep two leaders from writing: epochs in the log do that. It says who should
// lead, and for how long that node may answer reads without asking the log.
package election

import (
	"errors"
	"maps"
	"slices"
	"time"
)

const (
	// TTL is the least time for which the other nodes wait for a silent node, by their clocks, before they
	// take its realms. A node may ask for more: see [Config].
	TTL = 3 * time.Second
	// RenewEvery is the time between two looks at the board.
	RenewEvery = TTL / 3
	// closeEnough is how many positions a realm that could take over may be behind its leader.
	closeEnough = 100
	// longestRest is the longest time for which a node leaves a realm to others after failing to lead it.
	longestRest = 5 * time.Minute
)

// Config says which node this is.
type Config struct {
	Node    string // its name
	Life    string // of this process. No other process has the same
	Nodes   int    // how many nodes the cluster has; 0: those on the board
	Address string // where the other nodes find it; "": they know
	// TTL is how long the others wait for this node when it is silent. At least the constant TTL.
	TTL     time.Duration
	Level   uint8  // the newest format level that this build knows
	Default string // a realm that the cluster creates when nobody has
}

// Hold is how long a node leads after it began to write the board, of the time for which others wait.
// Clocks may run apart: it is less.
func Hold(ttl time.Duration) time.Duration { return ttl * 9 / 10 }

// Act is something that a node does about a realm.
type Act int

// The acts.
const (
	Open  Act = iota + 1 // open the realm, to follow its leader
	Lead                 // make it lead
	Close                // answer what it accepted, end its epoch and close it. Open follows
)

// Do is one act to carry out. [Node.Done] says how it ended.
type Do struct {
	Act   Act
	Realm string
	Led   bool  // of Close: the node led the realm
	Why   error // of Close: what was wrong; nil: another node is to lead

	turn int
}

// Outcome is how an act ended.
type Outcome int

// The outcomes.
const (
	Fine    Outcome = iota
	Failed          // it may work later
	Missing         // of Open: there is no such realm
	Damaged         // the realm is damaged here
)

// Health is how an open realm is.
type Health struct {
	Err     error  // why it has stopped; nil: it has not
	Damaged bool   // it has met damage
	Behind  uint64 // positions that it is behind its leader
}

// Node is one node's part in the election. Only one goroutine may use it at a time.
type Node struct {
	watch watcher
	seats map[string]*Seat
	first string // Config.Default
	todo  []Do

	asked   time.Time // the last Look
	verdict verdict   // what it decided
	board   Board     // as the last Look left it; empty if it failed
	until   time.Time // when this node's leases end, unless it renews them

	stops   bool // it gives up everything
	leaving bool // and did so at the last Tick
	left    bool // it has given up everything
}

// New returns a node that knows nothing yet.
func New(c Config) *Node {
	c.TTL = max(c.TTL, TTL)
	return &Node{watch: newWatcher(c), seats: map[string]*Seat{}, first: c.Default}
}

// Find tells the node which realms exist.
func (n *Node) Find(realms ...string) {
	for _, name := range append(realms, n.first) {
		switch s := n.seats[name]; {
		case s == nil:
			n.seats[name] = &Seat{Realm: name}
		case s.State == Absent && slices.Contains(realms, name):
			s.State = Closed
		}
	}
}

// Tick begins what is due for each realm. health tells how a realm is that is open.
func (n *Node) Tick(now time.Time, health func(realm string) Health) {
	n.leaving = n.stops
	for _, s := range n.sorted() {
		switch s.State {
		case Closed:
			if !n.stops && !now.Before(s.again) {
				n.begin(s, Open, nil)
			}
		case Following, Leading:
			h := health(s.Realm)
			s.close = h.Behind <= closeEnough
			switch {
			case h.Damaged:
				s.damage(h.Err)
			case h.Err != nil, n.stops:
				n.leave(s, now, h.Err)
			}
		}
	}
}

// Look decides what the node writes in place of a board. It may be called again with a newer board,
// if another node was faster. now is by the monotonic clock, wall is what the wall clock shows.
func (n *Node) Look(old []byte, now, wall time.Time) []byte {
	n.asked = now // the others count from when they see what is written, which is later
	n.verdict = n.watch.decideToLead(ReadBoard(old), n.sorted(), n.stops, now, wall)
	return n.verdict.board.data()
}

// Looked tells how the last Look ended: err is nil if the board is written. After an error it may be
// written all the same. changed reports whether the other nodes should look as well.
func (n *Node) Looked(now time.Time, err error) (changed bool) {
	v := n.verdict
	n.verdict, n.watch.blind = verdict{}, err != nil
	if err != nil {
		n.board = Board{}
		n.left = n.leaving && !n.busy()
		return false
	}
	n.board, n.until = v.board, n.asked.Add(Hold(n.watch.conf.TTL))
	for _, s := range v.lost {
		s.held = false
		if s.State == Taking || s.State == Leading {
			n.leave(s, now, errSilent)
		}
	}
	for _, s := range v.taken {
		if s.ready(now) {
			s.held = true
			n.begin(s, Lead, nil)
		}
	}
	for _, s := range v.handing {
		if s.State == Leading {
			n.leave(s, now, nil)
		}
	}
	n.left = n.leaving && !n.busy() && len(v.board.Nodes[n.watch.conf.Node].Leads) == 0
	return v.changed
}

var errSilent = errors.New("this node was silent for too long, and lost its lease")

// Todo returns what is to be done, once.
func (n *Node) Todo() []Do {
	todo := n.todo
	n.todo = nil
	return todo
}

// Done tells how an act ended. It reports whether that still matters: the node may have begun something else.
func (n *Node) Done(d Do, now time.Time, out Outcome, err error) bool {
	s := n.seats[d.Realm]
	if s == nil || s.turn != d.turn {
		return false
	}
	switch {
	case d.Act == Close:
		s.State, s.held = Closed, false
	case d.Act == Lead && out == Fine:
		s.State, s.fails = Leading, 0
	case d.Act == Lead:
		n.leave(s, now, err)
	case out == Fine:
		s.State, s.Why = Following, nil
	case out == Missing && d.Realm == n.first:
		s.State = Absent
	case out == Missing:
		delete(n.seats, d.Realm)
	case out == Damaged:
		s.damage(err)
	default:
		s.State, s.Why, s.again = Closed, err, now.Add(RenewEvery)
	}
	return true
}

// Reopen closes a realm, to open it again: what is kept of it is another log than it was. why says what is
// wrong with it now. If that is nil, a realm that met damage is opened, too.
func (n *Node) Reopen(realm string, now time.Time, why error) {
	if s := n.seats[realm]; s != nil && (s.State == Broken && why == nil || s.State == Following || s.State == Leading) {
		n.leave(s, now, why)
	}
}

// Drain makes the node lead nothing, or lead again.
func (n *Node) Drain(on bool) { n.watch.drained = on }

// Drained reports whether the node is to lead nothing.
func (n *Node) Drained() bool { return n.watch.drained }

// Stop makes the node give up everything, for good.
func (n *Node) Stop() { n.stops = true }

// Left reports whether a node that stops has given up everything, and the board says so if it can.
func (n *Node) Left() bool { return n.left }

// Leave returns a board without this node.
func (n *Node) Leave(old []byte) []byte {
	b := ReadBoard(old)
	delete(b.Nodes, n.watch.conf.Node)
	return b.data()
}

// Board returns the board as the last Look left it. It is empty if that failed.
func (n *Node) Board() Board { return n.board }

// ClockOff reports whether this node's clock is too far off to lead, and about how much it is ahead.
func (n *Node) ClockOff() (ahead time.Duration, off bool) {
	return n.watch.clocks.apart(), n.watch.clocks.off
}

// Holding is what a node leads, and until when no other node can.
type Holding struct {
	realms map[string]bool
	until  time.Time
}

// Holding returns what the node leads.
func (n *Node) Holding() *Holding {
	h := &Holding{map[string]bool{}, n.until}
	for name, s := range n.seats {
		if s.held && s.State == Leading {
			h.realms[name] = true
		}
	}
	return h
}

// Holds reports whether the node leads a realm now, and no other node can have begun to.
func (h *Holding) Holds(realm string, now time.Time) bool {
	return h.realms[realm] && now.Before(h.until)
}

// Realms returns the realms that the node leads, or led when its leases ended, in order of their names.
func (h *Holding) Realms() []string { return slices.Sorted(maps.Keys(h.realms)) }
