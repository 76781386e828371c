package view

import (
	"math/big"

	"github.com/kuji-dev/kuji/catalog"
)

// Odds is what a player's next request for draws from a pool gives. It is exact, through all pools
// below, with pity, stock, budgets, codes, winning moments, limits and conditions as they are at one
// moment.
type Odds struct {
	// Status is how the request would end, and Subject what that is about: see Status. If no player is
	// named, the price is left out. If Status is not OK, the odds are those if the player could draw.
	Status   Status
	Subject  string
	Count    int           // how many draws the request makes
	Outcomes []OutcomeOdds // of the pool and those below it: each pool before those it leads to
	Items    []ItemOdds    // what can be given, in the catalog's order
	Pity     []TrackOdds   // of the pool and those below it

	CatalogVersion uint64
	Position       uint64 // of the state whose odds these are
}

// OutcomeOdds says how likely a draw takes an entry. Most draws take an entry at most once: then
// both numbers are the same.
type OutcomeOdds struct {
	Pool, Entry string
	Chance      *big.Rat // that the draw takes it at least once; nil for a request for several draws
	Expected    *big.Rat // how many times the request takes it on average
}

// ItemOdds says how many of an item a draw gives on average.
type ItemOdds struct {
	Item     string
	Expected *big.Rat
}

// TrackOdds says what a track has counted for a player, and what it makes certain.
type TrackOdds struct {
	Pool, Track string
	Draws       uint64 // since the last hit
	CertainIn   uint64 // 1: the next draw is certain to hit; 0: none is, or nothing of the group can be drawn
	Unless      string // what can come in place of that hit: see Track.Unless
}

// Disclosed is what a catalog says of the odds of one pool.
type Disclosed struct {
	Pool *catalog.Pool
	Odds Odds  // of the first draw of a player who was never seen: stock as declared, full budgets, no moment
	Err  error // why they are not computed: see Pools.Odds in package kuji
	// LongRun is how many times a draw takes each entry on average when a player draws again and again,
	// in the order of Odds.Outcomes, while stock, codes and budgets last and no moment comes. It is nil
	// if that is not known: then Why says why.
	LongRun []*big.Rat
	Why     string
	// Requests are what requests with as many draws as guarantees need give a player who was never seen,
	// by ascending count.
	Requests []DisclosedRequest
}

// DisclosedRequest is what a request for several draws gives.
type DisclosedRequest struct {
	Count    int
	Expected []*big.Rat // how many times the request takes each entry on average, in the order of Odds.Outcomes
	Err      error      // why that is not computed: see Pools.Odds in package kuji
}
