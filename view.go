package kuji

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/plan"
	"github.com/kuji-dev/kuji/internal/rules"
	"github.com/kuji-dev/kuji/internal/view"
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
type Limit = rules.LimitState

// PoolLimit is a limit, and the pool that has it.
type PoolLimit = view.PoolLimit

// Lack is an item of which a player had too few.
type Lack struct {
	Item string `json:"item"`
	Have uint64 `json:"have"`
	Need uint64 `json:"need"` // at most 2^53-1 times MaxDrawCount
}

// TrackView is what a track of the catalog in force has counted for a player. A track that is not
// in PlayerView.Tracks has counted 0 draws.
type TrackView = view.TrackDraws

// PoolView is a pool with its stock and odds.
type PoolView = view.PoolStock

// PoolSum is what a pool has given, and what is left of it.
type PoolSum = view.PoolSum

// EntryView is an entry's stock and its odds at one moment.
type EntryView = view.EntryStock

// BudgetView is what is left of an item of a budget.
type BudgetView = view.BudgetLeft

// MomentsView is how the winning moments of an entry stand.
type MomentsView = view.MomentsLeft

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
