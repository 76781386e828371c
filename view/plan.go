package view

// Plan says what applying a catalog would change.
type Plan struct {
	Unchanged bool     // the catalog is already in force: applying it does nothing and is not logged
	Version   uint64   // that it would get; if Unchanged, that it has
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
	// Settings are those that differ; of what is added or removed, all that are set.
	Settings []Setting

	// For entries: how many were drawn so far, and the total and remaining stock before and after.
	// Before has no meaning for a new entry, nor has After for a removed one.
	Drawn                           uint64
	UnlimitedBefore, UnlimitedAfter bool
	StockBefore, StockAfter         uint64
	LeftBefore, LeftAfter           uint64
}

// ChangeKind says what a Change is about. Package kuji has the constants.
type ChangeKind string

// Setting is a setting before and after, as in a catalog; empty: it is not set. "odds of POOL/ENTRY"
// and "ITEM per draw" are what the next draw gives a player who was never seen.
type Setting struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}
