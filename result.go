package kuji

import (
	"github.com/kuji-dev/kuji/internal/economy"
)

// Status says how a request ended. Every status but OK is an outcome that
// depends on the state: it is logged, it changed nothing, and its request id
// answers the same from then on. Its String is snake_case.
type Status = economy.Status

// The statuses.
const (
	OK                = economy.OK                // carried out
	SoldOut           = economy.SoldOut           // fewer outcomes in stock than asked for, in the worst case of nested pools; Subject is the pool asked for
	LimitReached      = economy.LimitReached      // a player limit of the pool; Subject is the pool
	InsufficientItems = economy.InsufficientItems // the player holds too few; Subject is the item
	NotStarted        = economy.NotStarted        // the pool's start lies ahead; Subject is the pool
	Ended             = economy.Ended             // the pool's end has passed; Subject is the pool
	UnknownPool       = economy.UnknownPool       // not in the catalog; Subject is the id asked for
	UnknownItem       = economy.UnknownItem       // not in the catalog; Subject is the id asked for
	CountTooLarge     = economy.CountTooLarge     // more draws than the pool's max_count; Subject is the pool
	BalanceOverflow   = economy.BalanceOverflow   // a balance would pass MaxQuantity, for a Draw by the most that it can give; Subject is the item
	Aborted           = economy.Aborted           // member of an Atomic: undone, or not tried, because another member failed
	Refused           = economy.Refused           // in DoAll only: not carried out and not logged; Err says why
)

// Result is the answer to one request.
type Result struct {
	Status Status
	// Replayed reports that the request id had been answered before and this
	// is the first answer again.
	Replayed bool
	Err      error  // in DoAll only, with Refused: the *Error that Do returns for the request
	Subject  string // what a status other than OK is about: an id, as Status says
	// Outcomes of a Draw, in order, as many as its Count; nil otherwise.
	// Read-only: results may share their memory. Who keeps them for long may keep
	// 8 KiB of others with them.
	Outcomes []Outcome
	// Members holds the results of an Atomic, one for each member, in order.
	Members []Result
	Receipt Receipt
}

// Outcome is what one draw gave:
//
//	Entry string   // the id of the entry that was drawn, in the pool asked for
//	Items []Stack  // what the player got; nil for nothing
//	Via   []string // when the entry's reward is another pool, the entries that led to
//	               // Items: "pool/entry" for each nested pool, outermost first
//
// Outcomes are read-only: they may share their memory.
type Outcome = economy.Outcome

// Receipt is what proves a result: with it and the log anybody can find the
// batch, see the catalog that was in force, and, once the epoch's seed has been
// revealed, compute the draw again.
type Receipt struct {
	Realm          string
	Position       uint64   // of the batch in the realm's log, from 1
	Index          int      // of the event in its batch, from 0
	Time           int64    // the batch's time stamp, Unix milliseconds
	CatalogVersion uint64   // in force when the outcome was chosen; 0: none yet
	Epoch          uint64   // the writer epoch whose seed the outcome was drawn from
	Commitment     [32]byte // SHA-256 commitment to that seed, logged before the epoch's first draw
}

// slab hands out memory for outcomes from larger pieces: a piece for each result would
// take longer to make and to collect. Who keeps one part keeps the piece that it is of.
type slab struct{ rest []Outcome }

// slabOutcomes is how many a piece has: 8 KiB, a size of which nothing is wasted.
const slabOutcomes = 128

// take returns an empty slice with room for n outcomes. Many are a piece of their own.
func (s *slab) take(n int) []Outcome {
	if n > slabOutcomes/4 {
		return make([]Outcome, 0, n)
	}
	if len(s.rest) < n {
		s.rest = make([]Outcome, slabOutcomes)
	}
	some := s.rest[:0:n]
	s.rest = s.rest[n:]
	return some
}
