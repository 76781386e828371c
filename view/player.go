package view

import "github.com/kuji-dev/kuji/catalog"

// Limit is a limit of a pool, and where a player stands in it.
type Limit struct {
	Per    catalog.Per `json:"per"`
	Window int64       `json:"window_ms,omitempty"` // 0 unless Per is catalog.PerWindow
	Draws  uint64      `json:"draws"`               // that the limit allows
	Left   uint64      `json:"left"`                // of them
	// Resets is the first time stamp at which more draws are left than now, Unix milliseconds. All are
	// left then, except in a window. 0: never, or all are left now.
	Resets int64 `json:"resets,omitempty"`
}

// PoolLimit is a limit, and the pool that has it.
type PoolLimit struct {
	Pool string
	Limit
}

// Lot is units of an item that go at one moment.
type Lot struct {
	Item     string `json:"item"`
	Quantity uint64 `json:"quantity"`
	// Until is the first time stamp at which they are gone, Unix milliseconds. If it has passed, they go
	// before the player's next request. Setting the clock back makes it earlier by as much.
	Until int64 `json:"until"`
}

// Letter is some of an item that waits in a player's mailbox: see kuji.Collect.
type Letter struct {
	Item     string `json:"item"`
	Quantity uint64 `json:"quantity"`
	// Until is the first time stamp at which it is gone, Unix milliseconds: as in a Lot.
	Until int64 `json:"until"`
}

// Track is what a track of the catalog in force has counted for a player.
type Track struct {
	Name  string // the one that pools share it by, or "pool/track"
	Draws uint64 // since the last hit; not 0
	// CertainIn says that a draw is certain to hit, this many draws from now at the latest. 1 is the
	// next one; 0: none is, or nothing of the group is in stock for this player.
	CertainIn uint64
	Pool      string // that the draw must be from; empty: each pool of the track promises the same
	// Unless names what can come in place of that hit, with ", " between: tracks before this one that
	// have no entry in common with it, and entries with winning moments. Then the track waits for the
	// next draw.
	Unless string
}

// Growing is an item of a player that grows by itself.
type Growing struct {
	Item string `json:"item"`
	Next int64  `json:"next"` // the time stamp at which there is more of it, Unix milliseconds
	Full int64  `json:"full"` // at which it grows no more
}
