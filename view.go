package kuji

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/plan"
)

// PlayerView is what a player holds.
type PlayerView struct {
	ID     string
	Items  []Stack // in the order in which catalogs first named them; no zero quantities
	Tracks []TrackView
	// Limits are those of the catalog in force of which the player has used some draws. Of others
	// all are left.
	Limits []PoolLimit
	// Free are the free draws of pools of the catalog in force of which the player has used some. Of
	// others all are left.
	Free     []PoolLimit
	Position uint64 // of the last batch that changed this player
}

// Limit is a limit of a pool, or its free draws, and where a player stands in it.
type Limit struct {
	Per    catalog.Per `json:"per"`
	Window int64       `json:"window_ms,omitempty"` // 0 unless Per is catalog.PerWindow
	Draws  uint64      `json:"draws"`               // that the limit allows
	Left   uint64      `json:"left"`                // of them
	// Resets is when more draws than now are left, at the soonest: a time stamp, Unix milliseconds.
	// All of them are left then, except of a window. 0: never, or all are left now.
	Resets int64 `json:"resets,omitempty"`
}

// PoolLimit is a limit, and the pool that has it.
type PoolLimit struct {
	Pool string
	Limit
}

// Lack is an item of which a player had too few.
type Lack struct {
	Item string `json:"item"`
	Have uint64 `json:"have"`
	Need uint64 `json:"need"` // at most 2^53-1 times MaxDrawCount
}

// TrackView is what a track of the catalog in force has counted for a player. A track that is not
// in PlayerView.Tracks has counted 0 draws.
type TrackView struct {
	Name  string // the one that pools share it by, or "pool/track"
	Draws uint64 // since the last hit
	// CertainIn: at the latest so many draws from now, a draw is certain to hit. 1 is the next one; 0: none
	// is, or nothing of the group is in stock and for this player.
	CertainIn uint64
	Pool      string // from which pool that draw must be; empty: each pool of the track promises the same
	// Unless names what can come in place of that hit, with ", " between: tracks before this one that have
	// no entry in common with it, and entries with winning moments. Then the track waits for the next draw.
	Unless string
}

// PoolView is a pool with its stock and odds.
type PoolView struct {
	ID             string
	CatalogVersion uint64
	Config         catalog.Pool // as in the catalog
	Budgets        []BudgetView // as they are now, item by item, in the catalog's order
	Entries        []EntryView  // in the catalog's order; in PoolPage, only those of the page
	TotalWeight    uint64       // the sum of the entries' current weights; 0: sold out
	Position       uint64       // of the last batch that changed this pool
}

// PoolSum is what a pool has given, and what is left of it.
type PoolSum struct {
	ID      string
	Draws   uint64 // single draws from it that requests asked for and that ended OK, since the realm was opened
	Drawn   uint64 // entries taken, over all catalog versions; of a raffle with a refill, since the box was last filled
	Left    uint64 // in stock, of the entries whose stock is limited
	Limited bool   // it has such entries
}

// EntryView is an entry's stock and its odds at one moment.
type EntryView struct {
	ID        string
	Unlimited bool
	Left      uint64 // still in stock; 0 when Unlimited
	Drawn     uint64 // so far, over all catalog versions
	Weight    uint64 // current odds are Weight / PoolView.TotalWeight; 0 when out of stock
	// OverBudget: the entry can give more than is left of a budget of the pool. Its weight is 0 then.
	OverBudget bool
	Moments    *MomentsView // nil: the entry has none
}

// Available reports whether a draw can take the entry now: it has odds, or a winning moment waits.
// It ignores conditions on the player. A draw can also take an entry with random moments if one comes
// before the draw.
func (e *EntryView) Available() bool {
	return e.Weight > 0 || e.Moments != nil && e.Moments.Waiting > 0
}

// BudgetView is what is left of an item of a budget.
type BudgetView struct {
	Per          catalog.Per
	Share        string // its name, if pools share it
	Item         string
	Limit, Spent uint64
	ResetsAt     int64 // from when on the budget is full again, Unix milliseconds; 0: never
}

// Left returns how much can still be given. Spent can be above Limit after a catalog has lowered it.
func (b *BudgetView) Left() uint64 { return b.Limit - min(b.Limit, b.Spent) }

// MomentsView is how the winning moments of an entry stand: see catalog.Moments. How many were taken is
// EntryView.Drawn. It tells no moment of the future but of those that follow from the catalog.
type MomentsView struct {
	Come    uint64 // those that draws have found, and those that must have come by now
	Waiting uint64 // of these, how many the next draws take: none while a budget or a list of codes is used up
	NextAt  int64  // when the next one comes if they are even, Unix milliseconds; 0: not known, or none
}

// CatalogView is the catalog in force.
type CatalogView struct {
	Version  uint64 // 1 for the first catalog, one more with every change; 0: none yet
	Hash     [32]byte
	Catalog  *catalog.Catalog // nil when Version is 0
	Position uint64           // of the batch that applied it
	Index    uint32           // of the event that applied it, in its batch
	Time     int64            // of that event, Unix milliseconds
}

// Plan says what applying a catalog would change.
type Plan = plan.Plan

// Change is one line of a Plan: what happens to one item, pool, entry or realm setting.
type Change = plan.Change

// Setting is a setting before and after, as catalogs write it.
type Setting = plan.Setting

// ChangeKind says what a Change is about.
type ChangeKind = plan.Kind

// The kinds of change.
const (
	ChangeItemAdded    ChangeKind = "item_added"
	ChangeItemChanged  ChangeKind = "item_changed"
	ChangeItemRemoved  ChangeKind = "item_removed"
	ChangePoolAdded    ChangeKind = "pool_added"
	ChangePoolChanged  ChangeKind = "pool_changed"
	ChangePoolRemoved  ChangeKind = "pool_removed"
	ChangeEntryAdded   ChangeKind = "entry_added"
	ChangeEntryChanged ChangeKind = "entry_changed"
	ChangeEntryRemoved ChangeKind = "entry_removed"
	ChangeRealm        ChangeKind = "realm_changed" // starting grants, idempotency window, name
	ChangeNotice       ChangeKind = "notice"        // nothing changes, but the catalog deserves a second look
)
