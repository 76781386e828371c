package election

import (
	"maps"
	"slices"
	"time"
)

// State is what a node does about a realm.
type State int

// The states:
//
//	Closed ── Open ──→ Opening ──→ Following ── Lead ──→ Taking ──→ Leading
//	   ↑                   └─→ Absent ─────── Lead ────────↑           │
//	   └─────────────────────── Leaving ←────── Close ─────────────────┘
const (
	Closed    State = iota // it is to be opened
	Absent                 // it does not exist yet, and this node could create it
	Opening                // it is being opened
	Following              // it follows its leader
	Taking                 // it is being made to lead
	Leading                // it leads
	Leaving                // it is being closed, to follow again
	Broken                 // it met damage: it is not opened again, and never leads, until somebody says so
)

// Seat is a node's place at one realm.
type Seat struct {
	Realm string
	State State
	Why   error // why it does not follow

	held  bool      // the board says that this node leads the realm, and the node has not given it up
	close bool      // it is about as far as its leader
	turn  int       // counts what was begun: the end of an older one changes nothing
	rest  time.Time // it does not lead before
	again time.Time // it is not opened before
	fails int       // attempts to lead it in a row
}

// Seats returns the node's seats in order of the realms' names.
func (n *Node) Seats() []Seat {
	all := make([]Seat, 0, len(n.seats))
	for _, s := range n.sorted() {
		all = append(all, *s)
	}
	return all
}

func (n *Node) sorted() []*Seat {
	all := make([]*Seat, 0, len(n.seats))
	for _, name := range slices.Sorted(maps.Keys(n.seats)) {
		all = append(all, n.seats[name])
	}
	return all
}

// ready reports whether the node could take the realm over now.
func (s *Seat) ready(now time.Time) bool {
	return (s.State == Following || s.State == Absent) && !now.Before(s.rest)
}

// damage gives a realm up for good: opened again, it would meet the damage again.
func (s *Seat) damage(err error) { s.State, s.held, s.Why = Broken, false, err }

// begin asks for an act.
func (n *Node) begin(s *Seat, act Act, why error) {
	s.turn++
	n.todo = append(n.todo, Do{Act: act, Realm: s.Realm, Led: s.State == Leading, Why: why, turn: s.turn})
	s.State = map[Act]State{Open: Opening, Lead: Taking, Close: Leaving}[act]
}

// leave closes a realm, to follow it again. Unless why is nil, the node leaves it to others for a while.
func (n *Node) leave(s *Seat, now time.Time, why error) {
	if why != nil && s.State != Following {
		s.fails++
		s.rest = now.Add(min(TTL<<min(s.fails-1, 10), longestRest))
	}
	s.Why = why
	n.begin(s, Close, why)
}

// busy reports whether the node still has something that it must give back.
func (n *Node) busy() bool {
	for _, s := range n.seats {
		if s.held || s.State != Closed && s.State != Absent && s.State != Broken {
			return true
		}
	}
	return false
}
