package economy

// ChangeKind says what a [Change] is about.
type ChangeKind string

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

// Change is one line of a [Plan]: what happens to one item, pool or entry.
type Change struct {
	Kind  ChangeKind
	ID    string // the item, or the pool
	Entry string // the entry in the pool; empty for items and pools
	// For entries: how many were drawn so far, and the stock in all and left
	// before and after. Before is meaningless for an added entry that was
	// never seen, After for a removed one.
	Drawn                           uint64
	UnlimitedBefore, UnlimitedAfter bool
	StockBefore, StockAfter         uint64
	LeftBefore, LeftAfter           uint64
	// Warning is set when the change deserves a second look: more was drawn
	// already than the new stock, or players hold an item that is removed.
	Warning string
	Text    string // the whole change in words
}

// Plan says what applying a catalog would do.
type Plan struct {
	Unchanged bool   // the catalog is the one in force: applying it does nothing and is not logged
	Version   uint64 // the version it would get, or has when Unchanged
	Changes   []Change
}
