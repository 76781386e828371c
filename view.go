package kuji

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// PlayerView is what a player holds.
type PlayerView struct {
	ID       string
	Items    []Stack // in the order in which catalogs first named them; no zero quantities
	Position uint64  // of the last batch that changed this player
}

// PoolView is a pool with its stock and odds.
type PoolView struct {
	ID             string
	CatalogVersion uint64
	Config         catalog.Pool // as in the catalog
	Entries        []EntryView  // in the catalog's order; in PoolPage, only those of the page
	TotalWeight    uint64       // the sum of the entries' current weights; 0: sold out
	Position       uint64       // of the last batch that changed this pool
}

// EntryView is an entry's stock and its odds at one moment.
type EntryView struct {
	ID        string
	Unlimited bool
	Left      uint64 // still in stock; 0 when Unlimited
	Drawn     uint64 // so far, over all catalog versions
	Weight    uint64 // current odds are Weight / PoolView.TotalWeight; 0 when out of stock
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
type Plan struct {
	Unchanged bool     // the catalog is already in force: applying it does nothing
	Version   uint64   // the version it would get; if Unchanged, the one it has
	Changes   []Change // one for each item, pool or entry that changes
}

// ChangeKind says what a Change is about.
type ChangeKind string

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
	ChangeEntryKept    ChangeKind = "entry_kept"
	ChangeEntryRemoved ChangeKind = "entry_removed"
	ChangeRealm        ChangeKind = "realm_changed" // starting grants, idempotency window, name
)

// Change is one line of a Plan: what happens to one item, pool, entry or realm setting.
type Change struct {
	Kind    ChangeKind
	ID      string // of the item or the pool
	Entry   string // id of the entry in the pool; empty for items and pools
	Warning string // why the change deserves a second look; empty: it does not
	Text    string // the whole change, in words

	// For entries: how many were drawn so far, and the total and remaining stock before and after.
	// Before has no meaning for a new entry, After none for a removed one.
	Drawn                           uint64
	UnlimitedBefore, UnlimitedAfter bool
	StockBefore, StockAfter         uint64
	LeftBefore, LeftAfter           uint64
}

func planOf(p *rules.Plan) Plan {
	out := Plan{Unchanged: p.Unchanged, Version: p.Version}
	for _, c := range p.Changes {
		out.Changes = append(out.Changes, Change{
			Kind: ChangeKind(c.Kind), ID: c.ID, Entry: c.Entry, Warning: c.Warning, Text: c.Text, Drawn: c.Drawn,
			UnlimitedBefore: c.UnlimitedBefore, UnlimitedAfter: c.UnlimitedAfter,
			StockBefore: c.StockBefore, StockAfter: c.StockAfter, LeftBefore: c.LeftBefore, LeftAfter: c.LeftAfter,
		})
	}
	return out
}
