// Package store says what is: the state of one realm, in memory. That is players with their
// balances and counters, the stock of pools, remembered request ids, and the catalog in force as
// bytes.
//
//	Apply(event)   changes the state by the effects in an event
//
// Apply is the only way the state changes: live, in recovery, in the verifier and in a reader of
// the log. It chooses nothing and knows no rules: internal/rules decides which effects an event
// has. It refuses an effect that would break an invariant, such as stock below zero.
//
// The same sequence of events gives the same state, and the same [State.Hash], on every run, build
// and architecture: nothing here reads a clock, ranges over a map into the result, uses a float or
// starts a goroutine.
//
// Only one goroutine at a time applies events, under the realm's lock in package kuji. The readers
// in view.go and a [Capture] run concurrently with it and take small locks. This package knows
// nothing of logs: to it, a position is a number that orders changes. It imports nothing of
// the project but the table of format levels.
package store

import (
	"sync/atomic"

	"github.com/kuji-dev/kuji/internal/format"
)

// Bounds on what a realm can ever name, over all its catalogs. Numbers are never reused. Whoever
// writes events keeps to these bounds: an event that goes beyond them stops the realm.
const (
	MaxItems     = 1 << 20
	MaxPools     = 1 << 16
	MaxEntries   = 1 << 22   // in one pool
	MaxCounters  = 1<<31 - 1 // of players and of the realm
	MaxTallies   = 1 << 16   // counters of the realm
	MaxCodeLists = 1 << 12
	MaxPlayers   = 1<<31 - 1
)

// State is a realm's state as of a position.
type State struct {
	names   names
	players players // by number, in the order in which they joined
	ids     requestIDs
	catalog InForce
	tallies tallies
	codes   codeLists
	level   format.Level // 0: the log names none; see Level
	applied uint64       // position of the last applied event
	now     int64        // the time stamp of the last applied event, Unix milliseconds, or what it set the clock back to
	back    int64        // how far the clock was set back in all, milliseconds
	peak    uint64       // no less than any item's supply; at most maxPeak

	held  []*pool               // pools that the current event has locked
	named bool                  // the current event has named something that readers must know
	shown atomic.Pointer[shown] // what readers need apart from players and pools

	begun        begun  // the current command
	most, chunks int    // the most players, and chunks of memory for them; less in tests
	warmed       uint64 // has no meaning: see Warm
}

// InForce is the catalog in force.
type InForce struct {
	Version  uint64 // counts from 1; 0: there is none
	Bytes    []byte // its canonical form; read-only
	Position uint64 // of the event that put it in force
	Index    uint32 // of that event in its batch
	Time     int64  // of that event, Unix milliseconds
}

// shown is what readers need of names. It is replaced as a whole. Its slices only ever grow past
// what is shown.
type shown struct {
	items   []item // readers use only their ids
	itemNum map[string]uint32
	pools   []*pool
	poolNum map[string]uint32
	codes   []*codeList // readers use only left and last
	catalog InForce
}

// New returns the empty state of a realm without a catalog.
func New() *State {
	s := &State{most: MaxPlayers, chunks: maxChunks}
	s.names.init()
	s.players.init()
	s.ids.init()
	s.codes.init()
	s.show()
	return s
}

// show publishes names and the catalog to readers.
func (s *State) show() {
	n := &s.names
	s.shown.Store(&shown{items: n.items, itemNum: n.itemNum, pools: n.pools, poolNum: n.poolNum, codes: s.codes.lists, catalog: s.catalog})
}

// Alone says whether nobody but the writer uses the state, as while a log is replayed. Then no
// locks are taken.
func (s *State) Alone(alone bool) { s.players.index.alone = alone }

// Position returns the position of the last applied event.
func (s *State) Position() uint64 { return s.applied }

// Now returns the time stamp of the last applied event in Unix milliseconds, or what that event set
// the clock back to.
func (s *State) Now() int64 { return s.now }

// Back returns how far the clock was set back in all, in milliseconds. A time stamp plus what Back
// returned at the time is steady time, which never decreases: limits over a time and the ages of
// request ids are measured in it.
func (s *State) Back() int64 { return s.back }

// Players returns the number of players. The next player gets this number.
func (s *State) Players() uint32 { return uint32(s.players.count()) }

// Catalog returns the catalog in force. It may be called concurrently with the writer.
func (s *State) Catalog() InForce { return s.shown.Load().catalog }

// Player returns the number of the player with this id.
func (s *State) Player(id string) (num uint32, ok bool) {
	h := s.begun.Hashes.player
	if id != s.begun.player || id == "" {
		h = s.players.key.hash(id)
	}
	if b := s.players.lookup(id, h); b != nil {
		return b.num, true
	}
	return 0, false
}

// PlayerID returns the id of a player, who must exist.
func (s *State) PlayerID(num uint32) string { return s.players.id(num) }

// Balance returns how many of an item a player holds, 0 if there is no such player.
func (s *State) Balance(player, item uint32) uint64 {
	if int(player) >= s.players.count() {
		return 0
	}
	return s.players.get(player, item)
}

// Counter returns a player's counter, 0 if there is no such player.
func (s *State) Counter(player, counter uint32) uint64 {
	if int(player) >= s.players.count() {
		return 0
	}
	return s.players.get(player, counterSlot|counter)
}

// Counters appends to into those of a player's counters first to last that are not 0, ascending.
func (s *State) Counters(player, first, last uint32, into []CounterValue) []CounterValue {
	if int(player) >= s.players.count() {
		return into
	}
	h := s.players.holdings(player)
	for _, sl := range h[search(h, counterSlot|first):] {
		if sl.key > counterSlot|last {
			break
		}
		into = append(into, CounterValue{Counter: sl.key &^ counterSlot, Value: sl.value()})
	}
	return into
}

// maxPeak bounds sums that only tell whether a balance could come near MaxQuantity.
const maxPeak = 1 << 60

// Peak returns a number that no balance exceeds.
func (s *State) Peak() uint64 { return s.peak }

// raisePeak raises peak to an item's supply, if that is higher.
func (s *State) raisePeak(it *item) {
	if it.supply.lo > s.peak || it.supply.hi != 0 {
		s.peak = maxPeak
		if it.supply.hi == 0 {
			s.peak = min(it.supply.lo, maxPeak)
		}
	}
}
