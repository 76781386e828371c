// Package rules says what may happen: it turns commands into events.
//
//	Decide(command, now, entropy) → event with its effects
//
// Deciding changes no state. Package internal/store applies the effects, and nothing else: a new or
// changed rule never changes what an old log means.
//
// Each noun has a file. A kind of command is a type with the methods of kind, in command.go. Its
// method check makes all checks against the state, in the order in which they fail. [Rules] has
// layers, and each knows only those below it:
//
//	Rules      decides
//	ladder     settles what is due for counters that rank players
//	drawing    makes the draws of a command
//	effects    writes its event
//	timing     writes deadlines and mail
//	checks     says whether it may
//	registry   knows what records say: rounds, holds, names
//	accounts   knows what players can pay, and what they can take
//	counting   counts draws in limits
//	stocks     knows what can be drawn, and what is sure to be there
//	Sight      shows the realm as the command sees it
//
// Draws, odds and views get an entry's weight from the same functions, in chance.go. Those read
// [Facts]: what chance depends on. Odds, plans and views are other packages, which read [Tables], a
// compiled catalog.
//
// The same state, command, time and entropy give the same bytes on every run and every machine.
// Nothing here reads a clock, ranges over a map into a result, uses a float or starts a goroutine.
package rules

import (
	"iter"
	"math/bits"

	"github.com/kuji-dev/kuji/internal/store"
	"github.com/kuji-dev/kuji/sampler"
)

// Source is where Decide gets its random values.
type Source = sampler.Source

// State is everything that the rules see of a realm. Numbers are those of internal/store.
type State interface {
	Names
	// Answered is what the idempotency window remembers of a request id; valid until the next change.
	Answered(id string) (event []byte, position uint64, ok bool)
	IDFloor() int64                         // ids from before it may have been forgotten
	Now() int64                             // time stamp of the last event, Unix milliseconds
	Back() int64                            // how far the clock was set back in all, milliseconds
	Players() uint32                        // how many there are: the number that the next one gets
	Player(id string) (num uint32, ok bool) // by id
	PlayerID(num uint32) string             // the inverse
	Balance(player, item uint32) uint64     // 0 if there is no such player
	Counter(player, counter uint32) uint64  // 0 if there is no such player
	Tally(counter uint32) uint64            // of the realm
	Left(pool, entry uint32) uint64         // of the stock; huge if it is unlimited
	DrawnOf(pool, entry uint32) uint64      // from the stock, less what was put back
	Peak() uint64                           // no balance is higher
	CodesGiven(list uint32) uint64          // the next code has this number
	CodesLeft(list uint32) (left, last uint64)
	FindCode(list uint32, sum CodeSum) (number uint64, ok bool)
	CodeTimes(list uint32, number uint64) uint64 // how often it was used
	CodeUsedBy(list uint32, number uint64, player uint32) bool
	CodeGivenTo(list uint32, number uint64, player uint32) bool
	Record(key []byte) (value []byte, ok bool)
	Records(from, to []byte) iter.Seq2[[]byte, []byte]
	// Of identities: see internal/store/identity.go.
	Whose(num uint32) uint32
	NumberOf(id string) (num uint32, ok bool)
	AnyBlocked() bool
	Blocked(num uint32) bool
	Slots(num uint32, items, counters []store.CounterValue) (i, c []store.CounterValue)
	RecordChanges() uint64                     // how often records have changed
	CodeUses(list uint32) (uses, codes uint64) // of all its codes
	// Of an order by time: the first player with the value of the counter, or the first few.
	Earliest(counter uint32) (player uint32, value uint64, ok bool)
	EachEarliest(counter uint32, most int) iter.Seq2[uint32, uint64]
	// Of an order by standing: the rank of a player, how many players there are and who, and the latest period.
	Rank(counter, player uint32) (rank uint64, ok bool)
	Standing(counter uint32, period uint64) uint64
	Top(counter uint32, period, from uint64, most int, into []store.Ranked) []store.Ranked
	Latest(counter uint32) (period uint64, ok bool)
	Counters(player, first, last uint32, into []store.CounterValue) []store.CounterValue
}

// Names is everything that events have named so far.
type Names interface {
	Items() int
	ItemNum(id string) (num uint32, ok bool)
	ItemID(num uint32) string
	ItemKind(num uint32) uint8
	Pools() int
	PoolNum(id string) (num uint32, ok bool)
	PoolID(num uint32) string
	Entries(pool uint32) int
	EntryNum(pool uint32, id string) (num uint32, ok bool)
	Stock(pool, entry uint32) (stock uint64, limited bool)
	CounterNum(name string) (first uint32, ok bool)
	CounterName(first uint32) string
	CounterNames() iter.Seq2[string, uint32] // and how many counters each name has
	NextCounter() uint32
	Ordered() iter.Seq2[uint32, store.By] // the counters by which players are kept in order
	CodeLists() int
	CodeListNum(name string) (num uint32, ok bool)
}

// Rules decides the commands of one realm. Only one goroutine at a time may use it.
type Rules struct {
	ladder
}

// New returns the rules of a realm whose catalog in force is t.
func New(state State, t *Tables) *Rules {
	r := new(Rules)
	r.state, r.notes.state = state, state
	r.Sight.init()
	r.touches.init()
	r.heads.init()
	t.Grown(state)
	r.Reset(t)
	return r
}

// Resolve looks up what a command names in the catalog in force: see [Finder].
func (r *Rules) Resolve(c *Command) *CommandError { return r.finder.Resolve(r.t, c) }

// Tables returns the catalog in force.
func (r *Rules) Tables() *Tables { return r.t }

// Reset puts tables in force, and rebuilds samplers and odds from the stock that is left. Call it
// after an event was applied that Decide did not write.
func (r *Rules) Reset(t *Tables) {
	r.t, r.purchases = t, ""
	if t.Version != 0 {
		r.purchases = t.Catalog.Idempotency.Purchases
	}
	r.periods = [len(r.periods)]dated{}
	r.runs = runs{many: r.many} // the counters are other ones
	r.endsOf = nil
	r.Sight.begin(0)
	r.loadKept()
	r.notes.first = firstDue{}
	r.countSamplers()
}

// uniform returns an unbiased integer in [0, n), n > 0: see package sampler.
func uniform(src Source, n uint64) uint64 {
	hi, lo := bits.Mul64(src.Uint64(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(src.Uint64(), n)
		}
	}
	return hi
}
