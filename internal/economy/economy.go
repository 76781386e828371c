// Package economy is the rules of Kuji: a deterministic state machine that
// turns commands into events and events into state.
//
//	Decide(state, command, now, entropy) → event    chooses; changes nothing
//	Apply(event)                                    changes; chooses nothing
//
// The same sequence of events gives the same state, and the same [State.Hash],
// on every run, build and architecture: nothing here reads a clock, ranges
// over a map, uses a float, starts a goroutine or keeps package state. Time and
// randomness enter as arguments.
//
// The room does not know that a log exists: a position is a number to it that
// orders changes. One goroutine at a time decides and applies, under the
// realm's lock of the engine above; the readers of view.go and a [Capture] may
// run beside it.
package economy

import (
	"sync/atomic"

	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/sampler"
)

// Source is where Decide takes its randomness from.
type Source = sampler.Source

// Bounds on what a realm can ever have named, over all its catalog versions.
// Numbers given to items, pools, entries and limits are never reused.
const (
	maxItemsEver   = 1 << 20
	maxPoolsEver   = 1 << 16
	maxEntriesEver = 1 << 22 // in one pool
	maxLimitsEver  = 1 << 20
	// MaxPlayers is the most players in a realm.
	MaxPlayers = 1<<31 - 1
)

// State is a realm's state as of a position.
type State struct {
	items   []itemState       // by item number
	itemNum map[string]uint32 // every item ever named
	pools   []*poolState      // by pool number
	poolNum map[string]uint32 // every pool ever named
	limits  []limitKey        // by limit number
	limNum  map[limitKey]uint32
	players players      // by player number, in order of first sight
	current *tables      // the catalog in force; version 0: none
	odds    []poolOdds   // by pool number: what is left of the pools in force; follows from current and pools
	recent  *poolTable   // of current, the last one found: most draws in a row are from one pool
	past    []superseded // rewards of older catalog versions that remembered ids need, oldest first
	applied uint64       // position of the last applied event
	now     int64        // time stamp of the last applied event, Unix ms
	live    bool         // samplers are kept; off while events are only applied
	unread  bool         // nobody reads events: see Unread
	peak    uint64       // at least every item's supply, or maxPeak; follows from items
	most    int          // players: MaxPlayers, less in tests
	chunks  int          // of players' memory: maxChunks, fewer in tests

	alone     bool                  // nobody reads: locks are not taken
	unsettled uint32                // events applied by ApplyGroup since Settle
	replayed  []groupBatch          // where those stand
	common    [2]*guard             // of a pool and a player, while a draw gives the player an item that is new
	heldPools []*poolState          // those whose lock the event being applied has taken
	shown     atomic.Pointer[shown] // what readers beside the writer need besides players and pools

	warmed  uint64   // of no meaning: see Warm
	scratch []byte   // an answer in the making
	hashed  []byte   // a command in the form that is hashed
	d       decision // scratch of Decide
	ev      Event    // scratch result of Decide
	watch   *watch   // what is put down for a catalog that is made ready; nil: there is none

	// RememberGroup changes what follows beside ApplyGroup, which changes the rest: no
	// line of the processor's cache has some of both.
	_      [64]byte
	ids    requestIDs    // the idempotency window
	needed atomic.Uint64 // the oldest catalog version that what is remembered may need; behind, at times
	_      [64]byte
}

// itemState is what the realm knows of an item over all versions.
type itemState struct {
	id   string
	kind catalog.ItemKind
	// supply is the sum of all balances.
	supply sum
}

// limitKey identifies a player limit across catalog versions.
type limitKey struct {
	pool   uint32
	per    catalog.Per
	window int64
}

// New returns the empty state of a realm that has no catalog yet.
func New() *State {
	s := &State{
		itemNum: map[string]uint32{},
		poolNum: map[string]uint32{},
		limNum:  map[limitKey]uint32{},
		most:    MaxPlayers,
		chunks:  maxChunks,
		current: &tables{
			idempotency: catalog.Idempotency{Count: catalog.DefaultIdempotencyCount, Age: catalog.DefaultIdempotencyAge},
		},
	}
	s.players.init()
	s.ids.init()
	s.d.init()
	s.setCurrent(s.current)
	return s
}

// shown is what readers beside the writer need of the catalog in force. It is
// replaced as a whole; the slices only ever grow beyond what is shown here.
type shown struct {
	tables *tables
	pools  []*poolState
	items  []itemState // their ids alone
}

// setCurrent puts tables in force and shows them to readers.
func (s *State) setCurrent(t *tables) {
	s.current, s.recent = t, nil
	s.d.draws = nil // which would keep older tables
	s.shown.Store(&shown{tables: t, pools: s.pools, items: s.items})
}

// Position returns the position of the last applied event.
func (s *State) Position() uint64 { return s.applied }

// Now returns the time stamp of the last applied event in Unix milliseconds.
func (s *State) Now() int64 { return s.now }

// Players returns how many players have been seen.
func (s *State) Players() int { return s.players.count() }

// RequestIDs returns how many request ids are remembered.
func (s *State) RequestIDs() int { return s.ids.count() }

// Version returns the version of the catalog in force, 0 when there is none.
func (s *State) Version() uint64 { return s.current.version }

// InForce is the catalog in force.
type InForce struct {
	Version  uint64 // 0: there is none
	Hash     [32]byte
	Catalog  *catalog.Catalog
	Position uint64 // of the event that applied it
	Index    uint32 // of that event in its batch
	Time     int64  // of that event
}

// Catalog returns the catalog in force. It may be called beside the writer.
func (s *State) Catalog() InForce {
	t := s.shown.Load().tables
	return InForce{Version: t.version, Hash: t.hash, Catalog: t.catalog, Position: t.position, Index: t.index, Time: t.time}
}

// Unread says that nobody reads the events that commands carried out in one go append:
// they are not encoded, unless a request id has them remembered. It is called before
// anything else.
func (s *State) Unread() { s.unread = true }

// Ready builds a sampler for every pool, and from then on Apply keeps them; a
// state that only replays goes without. Decide needs it to have been called.
// What a sampler chooses depends on nothing but the current weights and the
// values that it is given, so that it does not matter when it was built.
func (s *State) Ready() error {
	if s.live {
		return nil
	}
	s.live = true
	for _, p := range s.pools {
		if err := s.buildSampler(p); err != nil {
			return err
		}
	}
	return nil
}
