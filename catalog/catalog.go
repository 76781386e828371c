// Package catalog reads the definition of a realm: items, pools, limits, and
// what players start with. [Parse] turns YAML into a checked, compiled Catalog.
// Every number that a rule needs later is an integer in it.
//
// The package knows how a catalog is written, checked and encoded. It knows
// nothing of players, of stock already drawn or of the log, and imports nothing
// else of the project.
package catalog

import "time"

// Limits of the format. They are constants: a setting must never make a log
// unreadable.
const (
	// MaxBytes is the largest YAML source accepted, in bytes.
	MaxBytes = 32 << 20
	// MaxID is the longest item, pool or entry id, in bytes.
	MaxID = 64
	// MaxName is the longest display name, in bytes.
	MaxName = 256
	// MaxItems is the most items in a catalog.
	MaxItems = 1 << 16
	// MaxPools is the most pools in a catalog.
	MaxPools = 1 << 12
	// MaxEntries is the most entries in all pools together.
	MaxEntries = 1 << 20
	// MaxBundle is the most different items in one reward, price or start.
	MaxBundle = 64
	// MaxPoolDepth is the most pools on a chain of pool rewards, the first included.
	MaxPoolDepth = 8
	// MaxQuantity is the largest quantity of an item anywhere: JSON clients
	// read every integer up to it exactly.
	MaxQuantity = 1<<53 - 1
	// MaxWeightSum is the largest sum of a pool's scaled weights (63 bits).
	MaxWeightSum = 1<<63 - 1
	// MaxDrawCount is the largest value of a pool's max_count.
	MaxDrawCount = 1000
	// MaxTimedDraws is the most draws that a limit over a day, a week or a rolling window can allow.
	MaxTimedDraws = 1<<18 - 1
	// MaxPlayerLimits is the most player limits on one pool.
	MaxPlayerLimits = 8
)

// Catalog is a compiled catalog. It is immutable after [Parse]: do not write to
// its slices. Their order is that of the source.
type Catalog struct {
	Name        string      `json:"name,omitempty"`
	Items       []Item      `json:"items"`
	Pools       []Pool      `json:"pools"`
	Start       []Stack     `json:"start,omitempty"` // what a player holds when first seen
	Idempotency Idempotency `json:"idempotency"`
}

// ItemKind says what an item is.
type ItemKind uint8

const (
	KindItem     ItemKind = 1 // anything that is held and counted
	KindCurrency ItemKind = 2 // an item that is money
)

// Item is anything that can be held and counted.
type Item struct {
	ID   string   `json:"id"`
	Kind ItemKind `json:"kind"`
	Name string   `json:"name,omitempty"`
}

// Mode says how a pool chooses among its entries.
type Mode uint8

const (
	ModeWeighted Mode = 1 // odds by weight among entries still in stock
	ModeRaffle   Mode = 2 // odds by remaining stock: drawing tickets from a box
)

// Pool is weighted entries with stock.
type Pool struct {
	ID       string        `json:"id"`
	Name     string        `json:"name,omitempty"`
	Mode     Mode          `json:"mode"`
	Price    []Stack       `json:"price,omitempty"`  // for each single draw
	StartsAt int64         `json:"starts,omitempty"` // Unix milliseconds; 0: no start
	EndsAt   int64         `json:"ends,omitempty"`   // Unix milliseconds, exclusive; 0: no end
	MaxCount uint32        `json:"max_count"`        // most draws in one request, 1 to MaxDrawCount
	Limits   []PlayerLimit `json:"limits,omitempty"`
	Entries  []Entry       `json:"entries"`
	// WeightScale is the power of ten by which the decimal weights of the
	// source were multiplied to become integers; 1 when all were integers.
	WeightScale uint64 `json:"weight_scale"`
}

// Per says over what a player limit counts.
type Per uint8

const (
	PerForever Per = 1 // all time
	PerDay     Per = 2 // the UTC calendar day
	PerWeek    Per = 3 // the ISO week, from Monday 00:00 UTC
	PerWindow  Per = 4 // a rolling window of Window milliseconds
)

// PlayerLimit bounds the draws of one player from a pool.
type PlayerLimit struct {
	Per    Per    `json:"per"`
	Window int64  `json:"window,omitempty"` // milliseconds, for PerWindow only
	Draws  uint64 `json:"draws"`            // at least 1
}

// Entry is one line of a pool.
type Entry struct {
	ID     string `json:"id"`
	Weight uint64 `json:"weight"` // scaled; in mode raffle always 0: the odds are the stock
	Stock  Stock  `json:"stock"`
	Reward Reward `json:"reward"`
}

// Stock is how many times an entry can be drawn in all, counted from the first
// catalog that had it. The zero value is a limited stock of nothing.
type Stock struct {
	Unlimited bool   `json:"unlimited,omitempty"`
	Count     uint64 `json:"count,omitempty"` // at most MaxQuantity; 0 when Unlimited
}

// RewardKind says what a reward is.
type RewardKind uint8

const (
	RewardNothing RewardKind = 1
	RewardItems   RewardKind = 2
	RewardPool    RewardKind = 3
)

// Reward is what an entry gives.
type Reward struct {
	Kind  RewardKind `json:"kind"`
	Items []Quantity `json:"items,omitempty"` // for RewardItems, at least one
	Pool  string     `json:"pool,omitempty"`  // for RewardPool: the pool to draw once from, free of its price, times and limits
}

// Stack is a quantity of one item.
type Stack struct {
	Item     string `json:"item"`
	Quantity uint64 `json:"quantity"` // 1 to MaxQuantity
}

// Quantity is a fixed (Min == Max) or uniform quantity of one item.
type Quantity struct {
	Item string `json:"item"`
	Min  uint64 `json:"min"` // 1 to Max
	Max  uint64 `json:"max"` // Min to MaxQuantity
}

// Idempotency declares how long a request id is remembered: until its batch is
// older than Age, by the log's time stamps. It stays longer while it is among
// the newest 1 048 576 ids of the realm (or the newest Count, if that is less).
// If Count ids are no older than Age, new ids are refused; none is forgotten
// early.
type Idempotency struct {
	Count uint32        `json:"count"` // 1 to MaxIdempotencyCount
	Age   time.Duration `json:"age"`   // at least one minute
}

// Bounds and defaults of [Idempotency]. The defaults hold 55 000 new ids a second
// without end, in 2 GB of memory. A quieter realm takes less in proportion.
const (
	MaxIdempotencyCount     = 1 << 26
	DefaultIdempotencyCount = 1 << 25
	DefaultIdempotencyAge   = 10 * time.Minute
	MinIdempotencyAge       = time.Minute
)
