// Package store says what is: the state of one realm, in memory. That is players with their
// balances and counters, the stock of pools, remembered request ids, and the catalog in force as
// bytes.
//
// Apply is the only way the state changes: live, in recovery, in the verifier and in a reader of
// the log. It carries out the effects in an event. It chooses nothing and knows no rules:
// internal/rules decides which effects an event has. Apply refuses an effect that would break an
// invariant, such as stock below zero.
//
// The same sequence of events gives the same state, and the same [State.Hash], on every run, build
// and architecture: nothing here reads a clock, ranges over a map into the result, uses a float or
// starts a goroutine.
//
// Only one goroutine at a time applies events, under the realm's lock in package kuji. The readers
// in view.go and a [Capture] run concurrently with it and take small locks. This package knows
// nothing of logs: to it, a position is a number that orders changes. It imports nothing of the
// project but the table of format levels.
package store

import "github.com/kuji-dev/kuji/internal/format"

// Bounds on what a realm can ever name, over all its catalogs. Numbers are never reused. An event
// that goes beyond them stops the realm, so code that writes events checks them first.
const (
	MaxItems     = 1 << 20
	MaxPools     = 1 << 16
	MaxEntries   = 1 << 22   // in one pool
	MaxCounters  = 1<<31 - 1 // of players and of the realm
	MaxTallies   = 1 << 16   // counters of the realm
	MaxCodeLists = 1 << 12
	MaxOrders    = 64 // at a time
	MaxPlayers   = 1<<31 - 1
)

// State is a realm's state as of a position. Each part of it is a type of its own, whose methods
// are the state's.
type State struct {
	asOf
	names
	stock
	players // by number, in the order in which they joined
	ids
	codes
	tallies
	readers
	catalog InForce
	named   bool // the current event has named something that readers must know
	begun   begun
	effect  Effect // the one being applied; on the stack, a look would make every event allocate
	records
	orders // in front, it moved what stands behind it to other cache lines, which cost a fifth
	identities
}

// asOf is the place in the log at which a state is, and what counts from there on.
type asOf struct {
	applied uint64       // position of the last applied event
	now     int64        // the time stamp of the last applied event, Unix milliseconds, or what it set the clock back to
	back    int64        // how far the clock was set back in all, milliseconds
	level   format.Level // 0: the log names none; see Level
}

// InForce is the catalog in force.
type InForce struct {
	Version  uint64 // counts from 1; 0: there is none
	Bytes    []byte // its canonical form; read-only
	Position uint64 // of the event that put it in force
	Index    uint32 // of that event in its batch
	Time     int64  // of that event, Unix milliseconds
}

// New returns the empty state of a realm without a catalog.
func New() *State {
	s := &State{}
	s.names.init()
	s.players.init()
	s.ids.init()
	s.codes.init()
	s.records.init()
	s.readers.players, s.orders.of, s.identities.of = &s.players, &s.players, &s.players
	s.show()
	return s
}

// show publishes names and the catalog to readers.
func (s *State) show() {
	n := &s.names
	s.shown.Store(&shown{items: n.items, itemNum: n.itemNum, pools: n.pools, poolNum: n.poolNum, codes: s.codes.lists, named: n.counters, orders: s.orders.list, catalog: s.catalog})
}

// Alone says whether only the writer uses the state, as during a replay. Then it takes no locks.
func (s *State) Alone(alone bool) {
	s.players.index.alone, s.players.guards.alone, s.stock.alone, s.records.alone = alone, alone, alone, alone
}

// Position returns the position of the last applied event.
func (s *asOf) Position() uint64 { return s.applied }

// Now returns the time stamp of the last applied event in Unix milliseconds, or what that event set
// the clock back to.
func (s *asOf) Now() int64 { return s.now }

// Back returns how far the clock was set back in all, in milliseconds. A time stamp plus what Back
// returned at the time is steady time, which never decreases: limits over a time and the ages of
// request ids are measured in it.
func (s *asOf) Back() int64 { return s.back }

// Level returns the realm's format level.
func (s *asOf) Level() format.Level { return max(s.level, format.First) }

// Player returns the number of the player of whom this id is a name.
func (s *State) Player(id string) (num uint32, ok bool) {
	if b := s.players.lookup(id, s.players.key.hash(id)); b != nil {
		if b.is == isName {
			return b.whose(), true
		}
		return b.num, true
	}
	return 0, false
}
