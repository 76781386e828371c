package view

import "github.com/kuji-dev/kuji/catalog"

// Limit is a limit of a pool, and where a player stands in it.
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

// Track is what a track of the catalog in force has counted for a player.
type Track struct {
	Name  string // the one that pools share it by, or "pool/track"
	Draws uint64 // since the last hit; not 0
	// CertainIn: at the latest so many draws from now, a draw is certain to hit. 1 is the next one; 0: none
	// is, or nothing of the group is in stock and for this player.
	CertainIn uint64
	Pool      string // from which pool that draw must be; empty: each pool of the track promises the same
	// Unless names what can come in place of that hit, with ", " between: tracks before this one that have
	// no entry in common with it, and entries with winning moments. Then the track waits for the next draw.
	Unless string
}
