// Package view has the types in which readers are told of a realm: stock, used limits, counts of
// tracks, odds, and what a catalog would change. Package kuji returns them under names of its own.
// Nothing that computes may enter.
package view

import "github.com/kuji-dev/kuji/catalog"

// Pool is a pool with its stock and odds.
type Pool struct {
	ID             string
	CatalogVersion uint64
	Config         catalog.Pool // as in the catalog
	Budgets        []Budget     // as they are now, item by item, in the catalog's order
	Entries        []Entry      // in the catalog's order; of a page, only those in it
	TotalWeight    uint64       // the sum of all entries' current weights, in mode each 100 %; 0: sold out
	Position       uint64       // of the last batch that changed this pool
}

// Entry is an entry's stock and its odds at one moment.
type Entry struct {
	ID         string
	Unlimited  bool
	Left       uint64   // still in stock; 0 when Unlimited
	Drawn      uint64   // so far, over all catalog versions
	Weight     uint64   // current odds are Weight / Pool.TotalWeight; 0 when out of stock
	OverBudget bool     // it can give more than is left of a budget of the pool, so Weight is 0
	Moments    *Moments // nil: the entry has none
}

// Available reports whether a draw can take the entry now: it has odds, or a winning moment waits. It
// ignores conditions on the player. A random moment can still come before the draw.
func (e *Entry) Available() bool {
	return e.Weight > 0 || e.Moments != nil && e.Moments.Waiting > 0
}

// Budget is what is left of an item of a budget.
type Budget struct {
	Per          catalog.Per
	Share        string // its name, if pools share it
	Item         string
	Limit, Spent uint64
	ResetsAt     int64 // when the budget is full again, Unix milliseconds; 0: never
}

// Left returns how much can still be given. Spent can be above Limit after a catalog has lowered that.
func (b *Budget) Left() uint64 { return b.Limit - min(b.Limit, b.Spent) }

// Moments is the state of an entry's winning moments: see catalog.Moments. Entry.Drawn is how many were
// taken. It tells no future moment, unless that follows from the catalog.
type Moments struct {
	Come    uint64 // those that draws have found, and those whose time is over
	Waiting uint64 // of these, how many the next draws take: none while budgets or codes rule the entry out
	NextAt  int64  // when the next one comes, if they are even, Unix milliseconds; 0: not known, or none
}

// PoolSum is what a pool has given, and what is left of it.
type PoolSum struct {
	ID      string
	Draws   uint64 // single draws from it that requests asked for and that ended OK, since the realm was opened
	Drawn   uint64 // entries taken, over all catalog versions; of a raffle with a refill, since the box was last filled
	Left    uint64 // in stock, of the entries whose stock is limited; at most 2^64-1
	Limited bool   // it has such entries
}
