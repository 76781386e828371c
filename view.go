package kuji

import (
	"github.com/kuji-dev/kuji/catalog"
	"github.com/kuji-dev/kuji/internal/rules"
)

// PlayerView is what a player holds.
type PlayerView struct {
	ID       string
	Items    []Stack // in the order in which the catalogs named the items; no zero quantities
	Position uint64  // of the last batch that changed this player
}

// PoolView is a pool with its stock.
type PoolView struct {
	ID             string
	CatalogVersion uint64
	Config         catalog.Pool // as in the catalog
	Entries        []EntryView  // as in the catalog, in order; of a page, its
	TotalWeight    uint64       // the sum of the entries' current weights; 0: sold out
	Position       uint64       // of the last batch that changed this pool
}

// EntryView is an entry's stock and its odds at this moment.
type EntryView struct {
	ID        string
	Unlimited bool
	Left      uint64 // still in stock; 0 when Unlimited
	Drawn     uint64 // so far, over all catalog versions
	Weight    uint64 // current odds are Weight / PoolView.TotalWeight; 0 when out of stock
}

// CatalogView is the catalog in force.
type CatalogView struct {
	Version  uint64 // counts up from 1 with every applied change; 0: none yet
	Hash     [32]byte
	Catalog  *catalog.Catalog // nil when Version is 0
	Position uint64           // of the batch that applied it
	Index    uint32           // in that batch, of the event that applied it
	Time     int64            // of that event, Unix milliseconds
}

// Plan says what applying a catalog would do, before it is done.
type Plan struct {
	Unchanged bool     // the catalog is the one in force: applying it does nothing
	Version   uint64   // the version that it would get, or has when Unchanged
	Changes   []Change // of items, pools and entries
}

// ChangeKind says what a Change is about.
type ChangeKind string

// The kinds of change.
const (
	ChangeItemAdded    ChangeKind = rules.ChangeItemAdded
	ChangeItemChanged  ChangeKind = rules.ChangeItemChanged
	ChangeItemRemoved  ChangeKind = rules.ChangeItemRemoved
	ChangePoolAdded    ChangeKind = rules.ChangePoolAdded
	ChangePoolChanged  ChangeKind = rules.ChangePoolChanged
	ChangePoolRemoved  ChangeKind = rules.ChangePoolRemoved
	ChangeEntryAdded   ChangeKind = rules.ChangeEntryAdded
	ChangeEntryChanged ChangeKind = rules.ChangeEntryChanged
	ChangeEntryKept    ChangeKind = rules.ChangeEntryKept
	ChangeEntryRemoved ChangeKind = rules.ChangeEntryRemoved
	ChangeRealm        ChangeKind = rules.ChangeRealm // starting grants, idempotency window, name
)

// Change is one line of a Plan: what happens to one item, pool or entry.
type Change struct {
	Kind    ChangeKind
	ID      string // the item, or the pool
	Entry   string // the entry in the pool; empty for items and pools
	Warning string // not empty: the change deserves a second look
	Text    string // the whole change in words

	// Of an entry: how many were drawn so far, and the stock in all and left before and
	// after. Before means nothing for an entry that was never there, After for one that is
	// removed.
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
