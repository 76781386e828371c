// Package catalog reads the definition of a realm: items, pools, limits, and what players start with.
// [Parse] turns YAML into a checked, compiled Catalog, in which every number is an integer.
//
// The package knows how a catalog is written, checked and encoded. It knows nothing of players, drawn
// stock or the log, and imports nothing of the project but internal/document and internal/format.
package catalog

import (
	"reflect"
	"time"
)

// Limits of the format. They are constants: a setting must never make a log unreadable.
const (
	MaxBytes          = 32 << 20      // the largest YAML source accepted, in bytes
	MaxID             = 64            // the longest item, pool or entry id, in bytes
	MaxName           = 256           // the longest display name, in bytes
	MaxItems          = 1 << 16       // the most items in a catalog
	MaxPools          = 1 << 12       // the most pools in a catalog
	MaxEntries        = 1 << 20       // the most entries in all pools together
	MaxBundle         = 64            // the most different items in one reward, price or start
	MaxFamily         = 256           // the most items of a family, and the most that a price can take in all
	MaxPoolDepth      = 8             // the most pools on a chain of pool rewards, the first included
	MaxQuantity       = 1<<53 - 1     // the largest quantity of an item: JSON clients read integers up to it exactly
	MaxWeightSum      = 1<<63 - 1     // the largest sum of a pool's scaled weights (63 bits)
	MaxDrawCount      = 1000          // the largest value of a pool's max_count
	MaxTimedDraws     = 1<<18 - 1     // the most draws that a limit over a day, a week, a month or a window can allow
	MaxPlayerLimits   = 8             // the most player limits on one pool
	MaxPrices         = 8             // the most alternatives of a price, and the most bundles of a pool
	MaxTracks         = 8             // the most tracks of one pool, and the most guarantees
	MaxTrackDraws     = 1_000_000     // the largest number of draws that a track counts to
	MaxTrackTable     = 1000          // the most steps in a table of rising chances
	MaxChanceDigits   = 6             // the most digits after the point of a rising chance
	MaxDropDigits     = 15            // the most digits after the point of an entry's chance in mode each
	MaxLuckSteps      = 100           // the most steps in a table of luck
	MaxRefill         = 1_000_000     // the most times that a box is filled again
	MaxBudgets        = 8             // the most budgets of one pool
	MaxBudgetItems    = 64            // the most different items that budgets are of
	MaxBudgetCounters = 4096          // the most items that all budgets of all pools name together
	MaxConditions     = 64            // the most items, or tracks, that one condition names
	MaxAdaptive       = 4096          // the most entries of one pool with a condition
	MaxInner          = 16            // the most pools that one reward draws from
	MaxCodes          = 16            // the most codes that one reward gives, each from another list
	MaxRedeem         = 16            // the most lists of codes that pay for draws from one pool
	MaxRedeemLists    = 256           // the same for all pools together
	MaxRedeemTimes    = 100           // the most draws that one code pays for
	MaxUses           = 1_000_000_000 // how often one code can pay, at most
	// MaxAsked is the most that the conditions of entries ask about a player in one request, through all
	// pools. It bounds how long a draw takes.
	MaxAsked        = 1_000_000
	MaxPicks        = 1000    // the most entries that a draw takes, through all pools; each counts once for each of its items
	MaxRequestPicks = 100_000 // the same for one request: it bounds the bytes of an event
)

// Catalog is a compiled catalog. Do not change it. Its slices have the order of the source.
type Catalog struct {
	Name        string      `json:"name,omitempty"`     // in the catalog's language
	Names       Texts       `json:"names,omitempty"`    // in several languages: see Display
	Language    string      `json:"language,omitempty"` // of texts that name none; empty: DefaultLanguage
	Rarities    []Rarity    `json:"rarities,omitempty"` // from the most common to the rarest
	Zone        Zone        `json:"zone,omitzero"`
	Day         Day         `json:"day,omitzero"`
	Seasons     []Season    `json:"seasons,omitempty"`
	Items       []Item      `json:"items"`
	Pools       []Pool      `json:"pools"`
	Counters    []Counter   `json:"counters,omitempty"`
	Quests      []Quest     `json:"quests,omitempty"`
	Rounds      []Round     `json:"rounds,omitempty"`
	Start       []Stack     `json:"start,omitempty"` // what a player gets on coming: see kuji.Register
	Idempotency Idempotency `json:"idempotency"`
	Guesses     Guesses     `json:"guesses,omitzero"` // how many wrong codes a player can send
}

// ItemKind says what an item is.
type ItemKind uint8

const (
	KindItem     ItemKind = 1 // anything that is held and counted
	KindCurrency ItemKind = 2 // an item that is money
)

// Item is anything that can be held and counted.
type Item struct {
	ID      string   `json:"id"`
	Kind    ItemKind `json:"kind"`
	Name    string   `json:"name,omitempty"`
	Lasts   int64    `json:"lasts,omitempty"` // milliseconds until a unit goes after it came; 0: it stays
	Grows   Grows    `json:"grows,omitzero"`
	Family  string   `json:"family,omitempty"` // in a price, a condition, luck or a counter, it stands for any of its items
	Most    uint64   `json:"most,omitempty"`   // that a player can hold; 0: as many as there can be
	Beyond  Beyond   `json:"beyond,omitzero"`
	Display Display  `json:"display,omitzero"`
	Extend  bool     `json:"extend,omitempty"` // of one that lasts: what comes while some is held begins to last when that goes
}

// Equal reports whether two items are the same in all that a catalog says of them.
func (i *Item) Equal(o *Item) bool { return reflect.DeepEqual(i, o) }

// Mode says how a pool chooses among its entries.
type Mode uint8

const (
	ModeWeighted Mode = 1 // odds by weight among entries still in stock
	ModeRaffle   Mode = 2 // odds by remaining stock: drawing tickets from a box
	ModeEach     Mode = 3 // every entry by itself, with its own chance: a drop table
)

// Pool is weighted entries with stock.
type Pool struct {
	ID         string        `json:"id"`
	Name       string        `json:"name,omitempty"`
	Display    Display       `json:"display,omitzero"`
	Mode       Mode          `json:"mode"`
	Internal   bool          `json:"internal,omitempty"`   // only rewards of other pools draw from it
	Memoryless bool          `json:"memoryless,omitempty"` // nothing here and in pools below adapts to the player
	Price      [][]Stack     `json:"price,omitempty"`      // for each single draw: alternatives, the first that a player can pay; none: free
	Bundles    []Bundle      `json:"bundles,omitempty"`    // by ascending number of draws
	PriceBy    PriceBy       `json:"price_by,omitzero"`    // prices that depend on a counter; needs one Price and no Bundles
	Free       Free          `json:"free,omitzero"`        // draws that cost nothing
	Redeem     []Redeem      `json:"redeem,omitempty"`     // whose codes pay for draws; without a price, only they do
	StartsAt   int64         `json:"starts,omitempty"`     // Unix milliseconds; 0: no start
	EndsAt     int64         `json:"ends,omitempty"`       // Unix milliseconds, exclusive; 0: no end
	MaxCount   uint32        `json:"max_count"`            // most draws in one request, 1 to MaxDrawCount
	Limits     []PlayerLimit `json:"limits,omitempty"`     //
	When       Condition     `json:"when,omitzero"`        // who can draw
	Rolls      Rolls         `json:"rolls"`                // how many entries a draw takes
	Tracks     []Track       `json:"pity,omitempty"`       // the first one that decides a draw wins
	Guarantees []Guarantee   `json:"guarantee,omitempty"`  // at_least adds up to no more than the fewest draws
	Last       Reward        `json:"last,omitzero"`        // in mode raffle: an extra reward for the last ticket of a box
	Refill     uint32        `json:"refill,omitempty"`     // in mode raffle: how often the box is filled again when it is empty
	Budgets    []Budget      `json:"budget,omitempty"`     // all of them hold
	Entries    []Entry       `json:"entries"`
	// WeightScale is a power of ten: the weights (or chances) of the source, times this, are integers.
	WeightScale uint64 `json:"weight_scale"`
}

// Bundle is a price for several draws in one request.
type Bundle struct {
	Draws uint32  `json:"draws"` // at least 2: a request for exactly so many
	Price []Stack `json:"price"`
}

// Free says how many draws of a player cost nothing. The zero value: none.
type Free struct {
	Per   Per    `json:"per"`   // not PerWindow
	Draws uint64 `json:"draws"` // at least 1
}

// Rolls is how many entries one draw takes: a fixed (Min == Max) or uniform number.
type Rolls struct {
	Min      uint32 `json:"min"`                // at least 1
	Max      uint32 `json:"max"`                // at most MaxPicks
	Distinct bool   `json:"distinct,omitempty"` // a draw takes no entry twice
}

// Track is a player's counter of draws since the last one that hit a group, and what follows from it.
type Track struct {
	Name    string   `json:"name"`
	Of      []string `json:"of"`                // the group: ids of entries, and groups that entries say they are in
	Certain uint32   `json:"certain,omitempty"` // the draw, counted from the last hit, that is sure to hit (hard pity); 0: none
	Rising  Rising   `json:"rising,omitzero"`
	Share   string   `json:"share,omitempty"` // the name of the counter, if pools share it; empty: this pool's own
}

// Rising raises a group's chance from a draw on (soft pity). The zero value raises nothing.
type Rising struct {
	From uint32 `json:"from"` // the first draw, counted from the last hit, that has a higher chance
	// By is in percentage points, times Scale: what each draw adds or, with Table, what each draw from
	// From on has in addition. The last number holds for all later draws.
	By    []uint64 `json:"by"`
	Table bool     `json:"table,omitempty"`
	Scale uint64   `json:"scale"` // a power of ten
}

// Guarantee promises at least AtLeast of a group in each Draws draws of one request.
type Guarantee struct {
	Draws   uint32   `json:"draws"`
	AtLeast uint32   `json:"at_least"`
	Of      []string `json:"of"` // as in a Track
}

// Condition says when something applies to a player. All of it must hold. The zero value always does.
type Condition struct {
	Holds    []Stack   `json:"holds,omitempty"`    // at least this many
	Lacks    []string  `json:"lacks,omitempty"`    // not a single one of these items
	Tracks   []Reached `json:"pity,omitempty"`     // the pool's own tracks
	Counters []Counted `json:"counters,omitempty"` // each within its bounds
	Quests   []Done    `json:"quests,omitempty"`   // each claimed so far
}

// Empty reports whether the condition always holds.
func (c *Condition) Empty() bool {
	return len(c.Holds)+len(c.Lacks)+len(c.Tracks)+len(c.Counters)+len(c.Quests) == 0
}

// Reached asks that a track of the pool has counted at least Draws draws since the last hit.
type Reached struct {
	Track string `json:"track"`
	Draws uint64 `json:"draws"`
}

// Per says over what a player limit counts.
type Per uint8

const (
	PerForever Per = 1 // all time
	PerDay     Per = 2 // the day, in the catalog's zone: Catalog.Day says when it begins
	PerWeek    Per = 3 // the week, in the catalog's zone: Catalog.Day says when it begins
	PerWindow  Per = 4 // a rolling window of Window milliseconds
	PerHour    Per = 5 // the hour, in the catalog's zone; of budgets, guesses and caps of counters only
	PerMonth   Per = 6 // the month, in the catalog's zone: it begins with its first day
	PerSeason  Per = 7 // a season of the catalog; of counters and quests only
)

// PlayerLimit bounds the draws of one player from a pool.
type PlayerLimit struct {
	Per    Per    `json:"per"`
	Window int64  `json:"window,omitempty"` // milliseconds, for PerWindow only
	Draws  uint64 `json:"draws"`            // at least 1
}

// Entry is one line of a pool.
type Entry struct {
	ID      string    `json:"id"`
	Weight  uint64    `json:"weight"` // scaled; in mode raffle 0 (the odds are the stock), in mode each the chance in percent
	Stock   Stock     `json:"stock"`
	Group   string    `json:"group,omitempty"`  // tracks and guarantees can name it, or the entry's id
	When    Condition `json:"when,omitzero"`    // otherwise the entry weighs nothing for this player
	Unique  bool      `json:"unique,omitempty"` // only for players who hold none of the items that it gives
	Luck    Luck      `json:"luck,omitzero"`    // in mode weighted only
	Moments Moments   `json:"moments,omitzero"` // release it, whatever the odds: weight 0, and stock for each
	Reward  Reward    `json:"reward"`
}

// Luck replaces an entry's weight by that of the last step that the player has reached. Below the
// first step the entry has its own. The zero value replaces nothing.
type Luck struct {
	Item    string     `json:"item,omitempty"`    // counts how many of it the player holds
	Track   string     `json:"pity,omitempty"`    // or counts as this track of the pool does
	Counter string     `json:"counter,omitempty"` // or as this counter does; one of the three is not empty
	Steps   []LuckStep `json:"weights"`           // by ascending From
}

// Empty reports whether the weight is always the entry's own.
func (l *Luck) Empty() bool { return len(l.Steps) == 0 }

// LuckStep is the weight of an entry from a count on.
type LuckStep struct {
	From   uint64 `json:"from"`   // at least 1
	Weight uint64 `json:"weight"` // scaled like the pool's other weights
}

// Stock is how often an entry can be drawn in all, over all catalogs. The zero value is a stock of 0.
type Stock struct {
	Unlimited bool   `json:"unlimited,omitempty"`
	Count     uint64 `json:"count,omitempty"` // at most MaxQuantity; 0 when Unlimited
}

// Reward is what an entry gives: items, codes, and draws from other pools. All may be empty.
type Reward struct {
	Items []Quantity `json:"items,omitempty"`
	Codes []string   `json:"codes,omitempty"` // lists of codes: the next one of each
	// Draws are made in this order, free of their pools' prices, times, limits and conditions.
	Draws []Inner `json:"draws,omitempty"`
}

// Nothing reports whether the reward is a blank.
func (w *Reward) Nothing() bool {
	return len(w.Items) == 0 && len(w.Codes) == 0 && len(w.Draws) == 0
}

// Inner is a fixed (Min == Max) or uniform number of draws from another pool.
type Inner struct {
	Pool string `json:"pool"`
	Min  uint32 `json:"min"` // at least 1
	Max  uint32 `json:"max"` // at most MaxPicks
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

// Idempotency says how long a request id is remembered: until its batch is older than Age by the log's
// time stamps, and longer while it is among the newest 1,048,576 of the realm, or the newest Count if
// that is less. If Count ids are no older than Age, new ids are refused; none is forgotten early.
type Idempotency struct {
	Count uint32        `json:"count"` // 1 to MaxIdempotencyCount
	Age   time.Duration `json:"age"`   // at least one minute
	IDs   IDForm        `json:"ids"`
	Ahead time.Duration `json:"ahead"` // how far an id's own time may be ahead; 0 unless IDs is IDsTimeOrdered
	// Purchases is how request ids begin that are never forgotten, 1 to MaxPurchases bytes; empty: all are.
	Purchases string `json:"purchases,omitempty"`
}

// IDForm says what request ids are like.
type IDForm uint8

const (
	IDsAny         IDForm = 0 // any text
	IDsTimeOrdered IDForm = 1 // UUIDv7 or ULID, which carry the time at which they were made
)

// Bounds and defaults of [Idempotency]. The defaults hold 388 new ids a second without end, in 2 GB
// of memory. A quieter realm takes less in proportion.
const (
	MaxIdempotencyCount     = 1 << 26
	DefaultIdempotencyCount = 1 << 25
	DefaultIdempotencyAge   = 24 * time.Hour
	MinIdempotencyAge       = time.Minute
	// Bounds and default of Idempotency.Ahead, which is at most half of Age too. A batch is stamped when
	// it begins to fill, so an id can be slightly later than its batch even if all clocks agree.
	MinAhead     = 10 * time.Second
	MaxAhead     = time.Hour
	DefaultAhead = 5 * time.Minute

	MaxPurchases = 16 // the longest Idempotency.Purchases, in bytes
)
