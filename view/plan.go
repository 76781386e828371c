package view

// Plan says what applying a catalog would change.
type Plan struct {
	Unchanged bool     // the catalog is already in force: applying it does nothing and is not logged
	Version   uint64   // the version it would get; if Unchanged, the one it has
	Changes   []Change // one for each item, pool or entry that changes
	Kept      int      // entries that do not change
}

// Warnings returns how many of the changes deserve a second look.
func (p *Plan) Warnings() (n int) {
	for i := range p.Changes {
		if p.Changes[i].Warning != "" {
			n++
		}
	}
	return n
}

// Change is one line of a [Plan]: what happens to one item, pool, entry or realm setting.
type Change struct {
	Kind    ChangeKind
	ID      string // of the item or the pool
	Entry   string // id of the entry in the pool; empty for items and pools
	Warning string // why the change deserves a second look; empty: it does not
	Text    string // the whole change, in words
	// Settings are what differs; all that is set of what is added or removed.
	Settings []Setting

	// For entries: how many were drawn so far, and the total and remaining stock before and after.
	// Before has no meaning for a new entry, After none for a removed one.
	Drawn                           uint64
	UnlimitedBefore, UnlimitedAfter bool
	StockBefore, StockAfter         uint64
	LeftBefore, LeftAfter           uint64
}

// ChangeKind says what a Change is about. Package kuji has the constants.
type ChangeKind string

// Setting is a setting before and after, as catalogs write it; empty: it is not set. "odds of
// POOL/ENTRY" and "ITEM per draw" are what the next draw from the pool gives a player who was never
// seen.
type Setting struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}
